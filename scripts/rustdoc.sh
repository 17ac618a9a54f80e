#!/usr/bin/env bash
# A rustdoc for `cargo test --doc` that writes a crate's documentation in the place of testing it, with the dependencies
# that the tests have compiled.
set -euo pipefail
arguments=()
while (($#)); do
    case $1 in
        --test | --no-run) ;;
        --test-run-directory | --test-args) shift ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
exec rustdoc "${arguments[@]}" -D warnings --out-dir "${CARGO_TARGET_DIR:-target}/doc"
