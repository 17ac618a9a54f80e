//! What a task is told of its query: how long it may take and how much memory it may have, as headers of the requests that
//! carry it. They are covered by the signature of each request.

use std::time::Duration;

use datafusion::error::{DataFusionError, Result};
use http::{HeaderMap, HeaderName, HeaderValue};

const TIME_LEFT: HeaderName = HeaderName::from_static("x-querent-time-left-ms");
const MEMORY: HeaderName = HeaderName::from_static("x-querent-memory-bytes");

/// The limits of a query's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskHeaders {
    /// The time that the query has left.
    pub(crate) time_left: Duration,
    /// The most that each task may reserve.
    pub(crate) memory_bytes: usize,
}

impl TaskHeaders {
    /// Returns the headers of requests that carry them.
    pub(crate) fn write(self) -> HeaderMap {
        let time = u64::try_from(self.time_left.as_millis()).unwrap_or(u64::MAX);
        let mut headers = HeaderMap::new();
        headers.insert(TIME_LEFT, HeaderValue::from(time));
        headers.insert(MEMORY, HeaderValue::from(self.memory_bytes));
        headers
    }

    /// Reads what a request carries. Errors: a request without limits is none of a coordinator's.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self> {
        let number = |name: &HeaderName| -> Result<u64> {
            let text = headers.get(name).and_then(|value| value.to_str().ok());
            text.and_then(|text| text.parse().ok())
                .ok_or_else(|| DataFusionError::Execution(format!("a task without the header {name}")))
        };
        Ok(Self {
            time_left: Duration::from_millis(number(&TIME_LEFT)?),
            memory_bytes: usize::try_from(number(&MEMORY)?).unwrap_or(usize::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let written = TaskHeaders { time_left: Duration::from_millis(1_500), memory_bytes: 7 << 20 };
        assert_eq!(TaskHeaders::read(&written.write()).unwrap(), written);
        assert!(TaskHeaders::read(&HeaderMap::new()).is_err());
    }
}
