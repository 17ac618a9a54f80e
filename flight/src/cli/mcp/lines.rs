//! Lines of standard input, each within a bound. A line that is too long or no text is told apart and skipped, and the lines
//! after it are read.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    /// Its text.
    Text(String),
    /// Longer than the bound.
    TooLong,
    /// Not UTF-8.
    NotText,
}

/// Reads the next line without its end; `None` at the end of the input.
pub(super) async fn next_line(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    let (mut is_too_long, mut has_begun) = (false, false);
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            if !has_begun {
                return Ok(None);
            }
            break;
        }
        has_begun = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        is_too_long |= line.len() + piece.len() > max_bytes;
        match is_too_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(piece),
        }
        let read = piece.len() + usize::from(end.is_some());
        input.consume(read);
        if end.is_some() {
            break;
        }
    }
    if is_too_long {
        return Ok(Some(InputLine::TooLong));
    }
    Ok(Some(String::from_utf8(line).map_or(InputLine::NotText, InputLine::Text)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn a_bad_line_does_not_end_the_input() {
        let input: &[u8] = b"one\n\xff\xfe\n0123456789\ntwo";
        let mut input = BufReader::with_capacity(4, input);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, 6).await.unwrap() {
            lines.push(line);
        }
        let text = |text: &str| InputLine::Text(text.to_owned());
        assert_eq!(lines, [text("one"), InputLine::NotText, InputLine::TooLong, text("two")]);
    }
}
