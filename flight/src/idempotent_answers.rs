//! Answers to requests that may be sent again: kept in memory, within a bound and for a while, and followed as they come.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use tokio::sync::watch;

/// On an answer that was made for an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// How long an answer is kept.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Answers that are kept at most, the oldest going first, and the bytes of one beyond which it is not kept.
const MAX_ANSWERS: usize = 1_000;
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The answers to requests with a key. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct IdempotentAnswers {
    answers: Arc<Mutex<HashMap<[u8; 32], Arc<KeptAnswer>>>>,
}

/// An answer, as far as it is.
pub(crate) struct KeptAnswer {
    pub(crate) body_digest: [u8; 32],
    made_at: Instant,
    head: Mutex<Option<(StatusCode, HeaderMap)>>,
    chunks: Mutex<Vec<Bytes>>,
    progress: watch::Sender<AnswerProgress>,
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerProgress {
    /// Nothing is known yet.
    Asked,
    /// There are so many chunks.
    Begun(usize),
    /// There are so many, and no more.
    Whole(usize),
    /// It is not kept: it was a refusal, or too long.
    Gone,
}

/// An answer that is asked for the first time: forgotten, unless there is one.
pub(crate) struct AwaitedAnswer {
    answers: IdempotentAnswers,
    name: [u8; 32],
    answer: Arc<KeptAnswer>,
    done: bool,
}

impl Drop for AwaitedAnswer {
    fn drop(&mut self) {
        if !self.done {
            self.answers.forget(&self.name);
            self.answer.progress.send_replace(AnswerProgress::Gone);
        }
    }
}

impl AwaitedAnswer {
    /// Keeps a response, and returns the work that reads its body to the end.
    pub(crate) fn keep(mut self, response: Response) -> impl Future<Output = ()> + Send + 'static {
        self.done = true;
        let (head, body) = response.into_parts();
        *self.answer.head.lock() = Some((head.status, head.headers));
        self.answer.progress.send_replace(AnswerProgress::Begun(0));
        let (answer, answers, name) = (Arc::clone(&self.answer), self.answers.clone(), self.name);
        async move { read_whole(&answer, &answers, &name, body).await }
    }
}

/// Reads an answer to its end.
async fn read_whole(answer: &KeptAnswer, answers: &IdempotentAnswers, name: &[u8; 32], body: Body) {
    let mut stream = body.into_data_stream();
    let mut bytes = 0;
    let mut count = 0;
    while let Some(chunk) = stream.next().await {
        let Ok(chunk) = chunk else { break };
        bytes += chunk.len();
        answer.chunks.lock().push(chunk);
        count += 1;
        if bytes > MAX_ANSWER_BYTES {
            // Those who read it now have it whole; nobody finds it later.
            answers.forget(name);
        }
        answer.progress.send_replace(AnswerProgress::Begun(count));
    }
    answer.progress.send_replace(AnswerProgress::Whole(count));
}

impl IdempotentAnswers {
    /// Returns the answer of a request, and whether this is the first that asks for it.
    pub(crate) fn find_or_make(&self, name: [u8; 32], body_digest: [u8; 32]) -> (Arc<KeptAnswer>, bool) {
        let mut answers = self.answers.lock();
        answers.retain(|_, answer| answer.made_at.elapsed() < LIFETIME);
        if let Some(answer) = answers.get(&name) {
            return (Arc::clone(answer), false);
        }
        if answers.len() >= MAX_ANSWERS
            && let Some(oldest) = answers.iter().min_by_key(|(_, answer)| answer.made_at).map(|(name, _)| *name)
        {
            answers.remove(&oldest);
        }
        let answer = Arc::new(KeptAnswer {
            body_digest,
            made_at: Instant::now(),
            head: Mutex::default(),
            chunks: Mutex::default(),
            progress: watch::Sender::new(AnswerProgress::Asked),
        });
        answers.insert(name, Arc::clone(&answer));
        (answer, true)
    }

    /// Returns what forgets an answer unless there is one.
    pub(crate) fn awaited(&self, name: [u8; 32], answer: &Arc<KeptAnswer>) -> AwaitedAnswer {
        AwaitedAnswer { answers: self.clone(), name, answer: Arc::clone(answer), done: false }
    }

    fn forget(&self, name: &[u8; 32]) {
        self.answers.lock().remove(name);
    }
}

impl KeptAnswer {
    /// Returns the answer from its beginning, followed to its end; `None` where there is none to be had.
    pub(crate) async fn replay(self: Arc<Self>, is_again: bool) -> Option<Response> {
        let mut progress = self.progress.subscribe();
        let begun =
            progress.wait_for(|progress| *progress != AnswerProgress::Asked).await.ok().map(|progress| *progress);
        if matches!(begun, None | Some(AnswerProgress::Gone)) {
            return None;
        }
        let (status, mut headers) = self.head.lock().clone()?;
        // The body comes in the same chunks, of which the length is known at the end only.
        headers.remove(header::TRANSFER_ENCODING);
        if is_again {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        let body = async_stream::stream! {
            let mut read = 0;
            loop {
                let now = *progress.borrow_and_update();
                let ready: Vec<Bytes> = self.chunks.lock().get(read..).map(<[Bytes]>::to_vec).unwrap_or_default();
                read += ready.len();
                for chunk in ready {
                    yield Ok::<Bytes, Infallible>(chunk);
                }
                match now {
                    AnswerProgress::Whole(count) if read >= count => break,
                    AnswerProgress::Whole(_) => {}
                    _ => {
                        if progress.changed().await.is_err() {
                            break;
                        }
                    }
                }
            }
        };
        let mut response = Response::new(Body::from_stream(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Some(response)
    }
}
