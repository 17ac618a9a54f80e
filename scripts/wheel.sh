#!/usr/bin/env bash
# Builds the wheel with maturin, installs it where there is nothing else, and gets an answer from it.
# usage: scripts/wheel.sh [FOLDER]     WHEEL_PROFILE=release|dev, WHEEL_COMPATIBILITY=linux|pypi|...
#
# The debug wheel is made of the workspace's debug build: maturin names one package, with which cargo would resolve other
# features and compile the dependencies a second time, so its call is answered by a build of the whole workspace.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds() { python3 -c 'import time; print(time.time())'; }
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

folder=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
profile=${WHEEL_PROFILE:-release}
cache=${QUERENT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/querent}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/querent-wheel.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

python3 -m venv "$scratch/maturin"
"$scratch/maturin/bin/python" -m pip install -q --require-hashes --no-deps -r scripts/requirements/wheel.txt

if [ "$profile" = dev ]; then
  real=$(command -v cargo)
  mkdir "$scratch/bin"
  cat >"$scratch/bin/cargo" <<END
#!/usr/bin/env bash
if [ "\$1" = rustc ]; then exec "$real" build --workspace --lib --message-format json-render-diagnostics; fi
exec "$real" "\$@"
END
  chmod +x "$scratch/bin/cargo"
  export CARGO=$scratch/bin/cargo PATH="$scratch/bin:$PATH"
fi

say "building the wheel ($profile)"
rm -f "$folder"/querent_db-*.whl
"$scratch/maturin/bin/maturin" build --profile "$profile" --manifest-path python/Cargo.toml --out "$folder" \
  ${WHEEL_COMPATIBILITY:+--compatibility "$WHEEL_COMPATIBILITY"}
wheel=$(ls "$folder"/querent_db-*.whl)

say "from the wheel to the first answer, in a new environment"
python3 -m venv "$scratch/user"
begun=$(seconds)
"$scratch/user/bin/python" -m pip install -q --no-index "$wheel"
printf 'carrier,n\nUA,2\nAA,1\n' >"$scratch/flights.csv"
answer=$(cd "$scratch" && user/bin/querent flights.csv --output csv -c 'SELECT sum(n) AS n FROM flights')
[ "$answer" = $'n\n3' ] || { say "the command line answered: $answer"; exit 1; }
answer=$("$scratch/user/bin/python" -c 'import querent; print(querent.open().sql("SELECT 42 AS n").fetchall()[0][0])')
[ "$answer" = 42 ] || { say "the module answered: $answer"; exit 1; }
say "$(ls -sh "$wheel" | cut -d' ' -f1), installed and answered in $(python3 -c "print(f'{$(seconds) - $begun:.1f}')") s"
echo "$wheel"
