//! Answers to requests that may be sent again: kept in memory, within a bound and for a while, and followed as they come.
//!
//! An answer is its caller's own, and holds what the caller could read when it was made: whoever asks for it again must reach as
//! much. Where there are too many, the caller whose answers take most loses its oldest one.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use querent_catalog::policy::ReadReach;
use tokio::sync::watch;
use uuid::Uuid;

/// On an answer that was made for an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// How long an answer is kept.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Answers that are kept at most, their bytes together, and the bytes of one beyond which it is not kept.
const MAX_ANSWERS: usize = 1_000;
const MAX_BYTES: usize = 64 << 20;
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Within how much of its beginning an answer says its own id.
const MAX_BYTES_TO_ID: usize = 4 << 10;
/// The digits of a run's id, of which the ids of its answer's parts are made.
const RUN_ID_DIGITS: usize = 32;
/// What an answer takes beside its bytes.
const ANSWER_BYTES: usize = 1 << 10;

/// The answers to requests with a key. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct IdempotentAnswers {
    answers: Arc<Mutex<HashMap<[u8; 32], Arc<KeptAnswer>>>>,
}

/// An answer, as far as it is.
pub(crate) struct KeptAnswer {
    pub(crate) body_digest: [u8; 32],
    /// Whose it is.
    subject: String,
    /// What its caller could read.
    reach: ReadReach,
    made_at: Instant,
    bytes: AtomicUsize,
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
    /// Keeps a response, and returns the work that reads its body to the end. It is forgotten then where its body lacks
    /// `needed`, without which it is a refusal.
    pub(crate) fn keep(
        mut self,
        response: Response,
        needed: Option<&'static str>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.done = true;
        let (head, body) = response.into_parts();
        *self.answer.head.lock() = Some((head.status, head.headers));
        self.answer.progress.send_replace(AnswerProgress::Begun(0));
        let (answer, answers, name) = (Arc::clone(&self.answer), self.answers.clone(), self.name);
        async move { read_whole(&answer, &answers, &name, body, needed).await }
    }
}

/// Reads an answer to its end.
async fn read_whole(
    answer: &KeptAnswer,
    answers: &IdempotentAnswers,
    name: &[u8; 32],
    body: Body,
    needed: Option<&'static str>,
) {
    let mut stream = body.into_data_stream();
    let mut bytes = 0;
    let mut count = 0;
    while let Some(chunk) = stream.next().await {
        let Ok(chunk) = chunk else {
            // Half an answer is none.
            answers.forget(name);
            break;
        };
        bytes += chunk.len();
        answer.chunks.lock().push(chunk);
        answer.bytes.store(bytes, Ordering::Relaxed);
        count += 1;
        if bytes > MAX_ANSWER_BYTES {
            // Those who read it now have it whole; nobody finds it later.
            answers.forget(name);
        }
        answer.progress.send_replace(AnswerProgress::Begun(count));
    }
    // Before its client has the end, and may ask again.
    if needed.is_some_and(|needed| !answer.has(needed)) {
        answers.forget(name);
    }
    answer.progress.send_replace(AnswerProgress::Whole(count));
    answers.make_room(name);
}

impl IdempotentAnswers {
    /// Returns the answer of a request of `subject`, and whether this is the first that asks for it.
    pub(crate) fn find_or_make(
        &self,
        name: [u8; 32],
        body_digest: [u8; 32],
        subject: &str,
        reach: ReadReach,
    ) -> (Arc<KeptAnswer>, bool) {
        let mut answers = self.answers.lock();
        answers.retain(|_, answer| answer.made_at.elapsed() < LIFETIME);
        if let Some(answer) = answers.get(&name) {
            return (Arc::clone(answer), false);
        }
        let answer = Arc::new(KeptAnswer {
            body_digest,
            subject: subject.to_owned(),
            reach,
            made_at: Instant::now(),
            bytes: AtomicUsize::new(0),
            head: Mutex::default(),
            chunks: Mutex::default(),
            progress: watch::Sender::new(AnswerProgress::Asked),
        });
        answers.insert(name, Arc::clone(&answer));
        drop(answers);
        self.make_room(&name);
        (answer, true)
    }

    /// Forgets answers until those that are left fit; not the one that it is made for.
    fn make_room(&self, kept: &[u8; 32]) {
        let mut answers = self.answers.lock();
        loop {
            let mut taken: HashMap<&str, usize> = HashMap::new();
            for answer in answers.values() {
                *taken.entry(&answer.subject).or_default() += answer.taken_bytes();
            }
            if answers.len() <= MAX_ANSWERS && taken.values().sum::<usize>() <= MAX_BYTES {
                return;
            }
            let share = |answer: &KeptAnswer| taken.get(answer.subject.as_str()).copied().unwrap_or(0);
            let others = answers.iter().filter(|(name, _)| *name != kept);
            let given_up = others.max_by_key(|(_, answer)| (share(answer), Reverse(answer.made_at)));
            let Some(given_up) = given_up.map(|(name, _)| *name) else { return };
            answers.remove(&given_up);
        }
    }

    /// Returns what forgets an answer unless there is one.
    pub(crate) fn awaited(&self, name: [u8; 32], answer: &Arc<KeptAnswer>) -> AwaitedAnswer {
        AwaitedAnswer { answers: self.clone(), name, answer: Arc::clone(answer), done: false }
    }

    /// Forgets the answers of `subject` that are the document `id`, or its events: it is deleted, and asked for with the same
    /// key again it is made anew.
    pub(crate) fn forget_document(&self, subject: &str, id: &str) {
        // Others name it otherwise, such as the responses that go on from it.
        let own_id = format!("\"id\":\"{id}\"");
        self.answers.lock().retain(|_, answer| answer.subject != subject || !answer.begins_with(&own_id));
    }

    /// Forgets the answers of runs that are deleted, in whichever protocol they were given.
    pub(crate) fn forget_runs(&self, run_ids: &[Uuid]) {
        if run_ids.is_empty() {
            return;
        }
        let run_ids: HashSet<String> = run_ids.iter().map(|run_id| run_id.simple().to_string()).collect();
        self.answers.lock().retain(|_, answer| !answer.begins_with_run(&run_ids));
    }

    fn forget(&self, name: &[u8; 32]) {
        self.answers.lock().remove(name);
    }
}

impl KeptAnswer {
    /// Whether somebody who reaches so far may have it.
    pub(crate) fn is_within(&self, reach: &ReadReach) -> bool {
        reach.covers(&self.reach)
    }

    /// Whether its body, as far as it has come, has these words.
    fn has(&self, words: &str) -> bool {
        self.has_within(words, usize::MAX)
    }

    /// Whether the beginning of its body has these words.
    fn begins_with(&self, words: &str) -> bool {
        self.has_within(words, MAX_BYTES_TO_ID)
    }

    fn has_within(&self, words: &str, bytes: usize) -> bool {
        self.beginning(bytes).windows(words.len()).any(|part| part == words.as_bytes())
    }

    /// Whether the beginning of its body names one of these runs, by an id with or without hyphens.
    fn begins_with_run(&self, run_ids: &HashSet<String>) -> bool {
        let body = self.beginning(MAX_BYTES_TO_ID);
        let ids = body.split(|byte| !(byte.is_ascii_hexdigit() || *byte == b'-'));
        ids.filter(|id| id.len() >= RUN_ID_DIGITS).any(|id| {
            let digits: String = id.iter().filter(|byte| **byte != b'-').map(|byte| char::from(*byte)).collect();
            (RUN_ID_DIGITS..=digits.len())
                .any(|end| digits.get(end - RUN_ID_DIGITS..end).is_some_and(|id| run_ids.contains(id)))
        })
    }

    fn beginning(&self, bytes: usize) -> Vec<u8> {
        self.chunks.lock().iter().flatten().copied().take(bytes).collect()
    }

    fn taken_bytes(&self) -> usize {
        ANSWER_BYTES + self.bytes.load(Ordering::Relaxed)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_deleted_runs_are_forgotten_whatever_names_them() {
        let answers = IdempotentAnswers::default();
        let run_id = Uuid::from_u128(0x0191_7a2b_3c4d_7e5f_8a9b_0c1d_2e3f_4a5b);
        let bodies = [
            format!("{{\"run_id\":\"{run_id}\"}}"),
            format!("{{\"id\":\"chatcmpl-{}\"}}", run_id.simple()),
            format!("{{\"id\":\"{}0003\",\"invocationId\":\"e-{}\"}}", run_id.simple(), Uuid::nil()),
            format!("{{\"id\":\"{}\"}}", Uuid::nil()),
            "{\"text\":\"Hello.\"}".to_owned(),
        ];
        for (number, body) in (0_u8..).zip(bodies) {
            let (answer, _) = answers.find_or_make([number; 32], [0; 32], "ann", ReadReach::default());
            // An id may be cut by the chunks.
            for part in body.into_bytes().chunks(20) {
                answer.chunks.lock().push(Bytes::copy_from_slice(part));
            }
        }
        answers.forget_runs(&[run_id]);
        let mut left: Vec<u8> = answers.answers.lock().keys().map(|name| name[0]).collect();
        left.sort_unstable();
        assert_eq!(left, [3, 4]);
    }

    #[test]
    fn whoever_keeps_most_gives_way() {
        let answers = IdempotentAnswers::default();
        let name = |number: usize| {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&number.to_le_bytes());
            name
        };
        let make = |number, subject| answers.find_or_make(name(number), [0; 32], subject, ReadReach::default());
        assert!(make(0, "ann").1);
        for number in 1..2 * MAX_ANSWERS {
            assert!(make(number, "ben").1);
        }
        assert!(!make(0, "ann").1, "the one answer of somebody else stays");
        assert!(!make(2 * MAX_ANSWERS - 1, "ben").1, "the newest one stays");
        assert_eq!(answers.answers.lock().len(), MAX_ANSWERS);
    }
}
