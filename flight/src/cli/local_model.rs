//! A model server that the demo starts for itself: any command that prints `ready URL MODEL` once it answers in
//! Ollama's protocol, such as `scripts/local_model.py`.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::error::CliError;

/// How long a model server may take to start: a gigabyte from a cold disk takes a while.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// A running model server. Killed when dropped.
pub(super) struct LocalModel {
    /// Its address.
    pub(super) host: String,
    /// Its model's name.
    pub(super) model: String,
    process: Child,
    /// Held open so that the server can keep writing.
    _output: Lines<BufReader<ChildStdout>>,
}

impl LocalModel {
    /// Starts `command` in a shell and waits for its `ready` line.
    pub(super) async fn start(command: &str) -> Result<Self, CliError> {
        let failed = |what: String| CliError::Unavailable(format!("local model `{command}`: {what}"));
        let mut process = Command::new("sh")
            // `exec` makes the server the process that is killed.
            .args(["-c", &format!("exec {command}")])
            // Held open: a server may stop when its standard input ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let stdout = process.stdout.take().ok_or_else(|| failed("has no standard output".to_owned()))?;
        let mut output = BufReader::new(stdout).lines();
        let ready = tokio::time::timeout(START_TIMEOUT, ready_line(&mut output)).await;
        match ready {
            Ok(Ok(Some((host, model)))) => Ok(Self { host, model, process, _output: output }),
            Ok(Ok(None)) => Err(failed("ended before it was ready".to_owned())),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed(format!("was not ready within {} s", START_TIMEOUT.as_secs()))),
        }
    }

    /// Stops it and waits for its end.
    pub(super) async fn stop(mut self) {
        if let Err(error) = self.process.kill().await {
            tracing::warn!(%error, "the local model server could not be stopped");
        }
    }
}

async fn ready_line(output: &mut Lines<BufReader<ChildStdout>>) -> std::io::Result<Option<(String, String)>> {
    while let Some(line) = output.next_line().await? {
        let mut words = line.split_whitespace();
        if let (Some("ready"), Some(host), Some(model)) = (words.next(), words.next(), words.next()) {
            return Ok(Some((host.to_owned(), model.to_owned())));
        }
    }
    Ok(None)
}
