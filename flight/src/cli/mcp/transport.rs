//! Messages of one client on standard input, and their answers on standard output, one a line.
//!
//! A line is looked at as a body of `POST /mcp` is before the protocol library reads it, which would pass over what is no
//! JSON, over lines that are too long and over cursors that are none. What is refused is answered, and the lines after it are read.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use querent_agent::protocols::json::parse_exact_json;
use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{StdioReader, StdioWriter, Transport, stdio_pipes};
use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, mpsc};

use super::lines::{InputLine, next_line};
use crate::error::{ApiError, ErrorCode};
use crate::mcp::{RpcMessage, refusal};

/// The most messages that wait for the service to take them.
const WAITING: usize = 16;

/// The messages that were read, and where answers are written.
pub(super) struct StdioTransport {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    output: Arc<Mutex<StdioWriter>>,
}

/// Standard input, with where its messages go and where refusals are written.
pub(super) struct StdioInput {
    stdin: StdioReader,
    messages: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    output: Arc<Mutex<StdioWriter>>,
}

impl StdioTransport {
    /// Returns the transport, and the input that [`read_messages`] reads for it.
    pub(super) fn new() -> (Self, StdioInput) {
        let (stdin, stdout) = stdio_pipes();
        let output = Arc::new(Mutex::new(stdout));
        let (sender, messages) = mpsc::channel(WAITING);
        (Self { messages, output: Arc::clone(&output) }, StdioInput { stdin, messages: sender, output })
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (line, output) = (serde_json::to_vec(&message), Arc::clone(&self.output));
        async move { write_line(&output, line?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.lock().await.flush().await
    }
}

/// Reads lines until standard input ends, which the transport learns, and then waits for ever: who serves the messages knows
/// when all are answered.
pub(super) async fn read_messages(input: StdioInput, max_line: usize) -> Infallible {
    let StdioInput { stdin, messages, output } = input;
    let mut stdin = BufReader::new(stdin);
    while let Ok(Some(line)) = next_line(&mut stdin, max_line).await {
        let refused = match line {
            InputLine::Text(line) if line.trim().is_empty() => continue,
            InputLine::Text(line) => match message_of(&line) {
                Ok(None) => continue,
                Ok(Some(message)) => match messages.send(message).await {
                    Ok(()) => continue,
                    Err(_) => break,
                },
                Err(refused) => refused,
            },
            InputLine::TooLong => unreadable(format!("a message is larger than {max_line} bytes")),
            InputLine::NotText => unreadable("the message is not UTF-8".to_owned()),
        };
        if write_line(&output, refused.to_string().into_bytes()).await.is_err() {
            break;
        }
    }
    drop(messages);
    std::future::pending().await
}

/// Returns the message of a line; `None` for a notification or an answer that the library does not know, which nobody waits
/// for. Errors: the refusal that answers it.
fn message_of(line: &str) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
    let invalid =
        |id: &Value, message: &str| refusal(&ApiError::new(ErrorCode::InvalidRequest, message.to_owned()), id);
    let sent = parse_exact_json(line.trim_start_matches('\u{feff}').as_bytes())
        .map_err(|error| unreadable(format!("the message is not JSON: {error}")))?;
    if sent.is_array() {
        return Err(invalid(&Value::Null, "the message is a batch; send its messages one by one"));
    }
    let checked = RpcMessage::of(&sent).map_err(|error| refusal(&error, &Value::Null))?;
    let id = checked.id.clone();
    checked.check_cursor().map_err(|error| refusal(&error, id.as_ref().unwrap_or(&Value::Null)))?;
    match (serde_json::from_value(sent), id) {
        (Ok(message), _) => Ok(Some(message)),
        (Err(_), None) => Ok(None),
        (Err(_), Some(id)) => Err(invalid(&id, "the message is no message of MCP")),
    }
}

/// Returns the refusal of a line in which no message can be read.
fn unreadable(message: String) -> Value {
    refusal(&ApiError::new(ErrorCode::BadRequestBody, message), &Value::Null)
}

async fn write_line(output: &Mutex<StdioWriter>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_refused_as_bodies_are() {
        for (line, id, code) in [
            ("{not json", json!(null), -32_700),
            (r#"{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}"#, json!(null), -32_700),
            ("[]", json!(null), -32_600),
            ("7", json!(null), -32_600),
            (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, json!(null), -32_600),
            (r#"{"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {"cursor": 1}}"#, json!(4), -32_602),
            (
                r#"{"jsonrpc": "2.0", "id": "r", "method": "resources/list", "params": {"cursor": {}}}"#,
                json!("r"),
                -32_602,
            ),
        ] {
            let refused = message_of(line).unwrap_err();
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&id, &json!(code)), "{line}: {refused}");
        }
        for line in [
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#,
            r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"cursor": null}}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
        ] {
            assert!(message_of(line).is_ok_and(|message| message.is_some()), "{line}");
        }
    }
}
