//! Server-sent events from bytes, as the HTML standard frames them: fields by line, an empty line ends an event.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The `event:` field; `message` when there is none.
    pub(super) name: String,
    /// The `data:` lines.
    pub(super) data: String,
}

/// Cuts a byte stream into events. Chunks may end anywhere, inside a character too.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    after_carriage_return: bool,
    name: String,
    data: Vec<String>,
}

impl SseParser {
    /// The events that end within `chunk`.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for &byte in chunk {
            let ends_crlf = byte == b'\n' && self.after_carriage_return;
            self.after_carriage_return = byte == b'\r';
            match byte {
                _ if ends_crlf => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.line(&String::from_utf8_lossy(&line)));
                }
                byte => self.line.push(byte),
            }
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            if data.is_empty() {
                return None;
            }
            let name = if name.is_empty() { "message".to_owned() } else { name };
            return Some(SseEvent { name, data: data.join("\n") });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push(value.to_owned()),
            // Comments keep the connection alive; ids and retry times are for reconnecting, which a run cannot.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\r\nevent: answer_delta\r\ndata: {\"text\":\"é\"}\r\n\r\ndata: a\ndata: b\n\nevent: nothing\n\n";

    #[test]
    fn chunks_may_end_anywhere() {
        let expected = vec![
            SseEvent { name: "answer_delta".to_owned(), data: "{\"text\":\"é\"}".to_owned() },
            SseEvent { name: "message".to_owned(), data: "a\nb".to_owned() },
        ];
        for size in 1..STREAM.len() {
            let mut parser = SseParser::default();
            let events: Vec<_> = STREAM.as_bytes().chunks(size).flat_map(|chunk| parser.push(chunk)).collect();
            assert_eq!(events, expected, "chunks of {size}");
        }
    }
}
