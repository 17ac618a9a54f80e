//! The small local model, started once a test process by `scripts/local_model.py` when `QUERENT_TEST_LLM` asks for it.
//! It stops with the process: its standard input closes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use querent_tests::{models_dir, package_folder};

/// The model that `make` installs.
const MODEL: &str = "qwen2.5-coder:1.5b";
const MODEL_FILE: &str = "llm/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";

pub struct LlamaServer {
    pub host: String,
    pub name: &'static str,
    _process: Child,
}

/// Returns the running model; the first caller waits until it is loaded.
pub fn local_model() -> &'static LlamaServer {
    static MODEL: OnceLock<LlamaServer> = OnceLock::new();
    MODEL.get_or_init(start)
}

fn start() -> LlamaServer {
    let models = models_dir();
    let python = models.join("venv/bin/python");
    let file = models.join(MODEL_FILE);
    assert!(python.exists() && file.exists(), "no local model in {}; run `make test-llm`", models.display());
    let script = package_folder().join("../scripts/local_model.py");
    let mut process = Command::new(python)
        .arg(script)
        .args(["--port", "0", "--until-stdin-closes", "--model"])
        .arg(format!("{MODEL}={}", file.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let host = ready.split(' ').nth(1).unwrap_or_else(|| panic!("the local model did not start: {ready:?}"));
    LlamaServer { host: host.to_owned(), name: MODEL, _process: process }
}
