#!/usr/bin/env bash
# Builds the released binary with profile-guided optimisation: a build that counts, the suites of queries as what it counts, and a
# build that knows the counts. Needs the component llvm-tools of the compiler (rustup component add llvm-tools).
# usage: scripts/pgo.sh     QUERENT_PGO_SUITES="tpch-external tpch-managed clickbench-external joins-external"
#
# The target is named, so that build scripts and macros, which run while it builds, are not counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

host=$(rustc -vV | sed -n 's/^host: //p')
merge=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
[ -x "$merge" ] || { echo "please install: rustup component add llvm-tools" >&2; exit 1; }
export CARGO_TARGET_DIR=${QUERENT_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/querent/target}-pgo
counts=$CARGO_TARGET_DIR/counts
suites=${QUERENT_PGO_SUITES:-tpch-external tpch-managed clickbench-external joins-external}
flags=${RUSTFLAGS:-}

say "a build that counts"
rm -rf "$counts" && mkdir -p "$counts"
RUSTFLAGS="$flags -Cprofile-generate=$counts" cargo build --release --target "$host" -p querent-benches

for suite in $suites; do
  say "$suite"
  folder=$(mktemp -d "$CARGO_TARGET_DIR/suite.XXXXXX")
  QUERENT_BENCH_ROWS=${QUERENT_BENCH_ROWS:-1000000} \
    "$CARGO_TARGET_DIR/$host/release/querent-benches" measure "$suite" "$folder" >/dev/null
  rm -rf "$folder"
done
"$merge" merge -o "$CARGO_TARGET_DIR/counts.profdata" "$counts"

say "a build that knows the counts"
RUSTFLAGS="$flags -Cprofile-use=$CARGO_TARGET_DIR/counts.profdata" \
  cargo build --release --target "$host" -p querent-flight --bin querent --features mimalloc
say "built $CARGO_TARGET_DIR/$host/release/querent"
say "its cells: CARGO_TARGET_DIR=$CARGO_TARGET_DIR RUSTFLAGS=\"-Cprofile-use=$CARGO_TARGET_DIR/counts.profdata\" \\"
say "  cargo run --release --target $host -p querent-benches -- run tpch"
