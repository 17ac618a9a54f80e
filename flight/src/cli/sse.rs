//! The server-sent events of a response, as they arrive.

use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures::{Stream, TryStreamExt};

use super::client::Client;
use super::error::CliError;

/// Returns the events of `response`. Events without data are left out, as the HTML standard has it.
pub(super) fn events(
    client: &Client,
    response: reqwest::Response,
) -> impl Stream<Item = Result<Event, CliError>> + Unpin {
    response.bytes_stream().eventsource().map_err(|error| match error {
        EventStreamError::Transport(error) => client.http_error(error),
        EventStreamError::Utf8(_) | EventStreamError::Parser(_) => {
            CliError::failed("the server's event stream cannot be read; is it a querent server?")
        }
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const STREAM: &str =
        ": hello\r\nevent: answer_delta\r\ndata: {\"text\":\"é\"}\r\n\r\ndata: a\ndata: b\n\nevent: nothing\n\n";

    #[tokio::test]
    async fn chunks_may_end_anywhere() {
        for size in 1..STREAM.len() {
            let chunks = STREAM.as_bytes().chunks(size).map(Ok::<_, Infallible>);
            let events: Vec<Event> = futures::stream::iter(chunks).eventsource().try_collect().await.unwrap();
            let events: Vec<_> = events.iter().map(|event| (event.event.as_str(), event.data.as_str())).collect();
            assert_eq!(events, [("answer_delta", "{\"text\":\"é\"}"), ("message", "a\nb")], "chunks of {size}");
        }
    }
}
