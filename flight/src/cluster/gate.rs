//! What stands before a worker's service: lets signed requests of the worker's own version pass, has their rows made on
//! threads of their own, and ends a task whose caller is gone.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt, future, stream};
use http_body_util::{BodyExt, StreamBody};
use querent_engine::ClusterWorker;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::signature::{ClusterKey, FirstMessageError, Refusal, first_message, resumed};

/// The path of the service's methods.
const SERVICE: &str = "/worker.WorkerService/";
/// The method that sends a plan, and is open for as long as the query is.
const SENDS_PLAN: &str = "/worker.WorkerService/CoordinatorChannel";
/// The method that executes a part of a plan, and sends its rows.
const MAKES_ROWS: &str = "/worker.WorkerService/ExecuteTask";
/// Messages of rows that wait for the connection.
const MESSAGES_AHEAD: usize = 2;
/// The largest plan of a task.
const MAX_PLAN_BYTES: usize = 256 << 20;
/// What may follow a plan: that nothing does.
const MAX_BYTES_BEYOND: usize = 64;

/// How much is read of a request that is refused, and for how long.
const MAX_REFUSED_BYTES: usize = 64 << 10;
const REFUSAL_TIME: Duration = Duration::from_millis(200);

/// What the gate checks with.
#[derive(Clone)]
pub(crate) struct WorkerGate {
    pub(crate) key: ClusterKey,
    pub(crate) worker: ClusterWorker,
}

/// The layer around a worker's routes.
pub(crate) async fn gate(State(gate): State<WorkerGate>, request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with(SERVICE) {
        return next.run(request).await;
    }
    match admitted(&gate, request).await {
        Ok(request) if request.uri().path() == MAKES_ROWS => {
            on_task_threads(&gate.worker, async move { next.run(request).await }).await
        }
        Ok(request) => next.run(request).await,
        Err(refusal) => {
            let status = match refusal {
                Refusal::Version(why) => Status::failed_precondition(why),
                Refusal::Signature(why) => Status::unauthenticated(why),
                Refusal::Malformed(why) => Status::invalid_argument(why),
            };
            tracing::warn!(reason = status.message(), "a request was refused");
            status.into_http()
        }
    }
}

/// Answers on threads of a task, and sends on what they make. On the server's own, an operator that does not yield would
/// keep it from telling the other servers that it is there, and they would take it for lost.
async fn on_task_threads(worker: &ClusterWorker, answer: impl Future<Output = Response> + Send + 'static) -> Response {
    let threads = match worker.task_threads() {
        Ok(threads) => threads,
        Err(error) => return Status::internal(error.to_string()).into_http(),
    };
    let (head, mut body) = match threads.spawn(answer).await {
        Ok(response) => response.into_parts(),
        Err(ended) => return Status::internal(ended.to_string()).into_http(),
    };
    let (sender, frames) = mpsc::channel(MESSAGES_AHEAD);
    let sending = threads.spawn(async move {
        while let Some(frame) = body.frame().await {
            if sender.send(frame).await.is_err() {
                return;
            }
        }
    });
    // It ends with the answer's body; where it ends otherwise, the rows are not all there.
    let fault =
        stream::once(sending).filter_map(|ended| future::ready(ended.err().map(|error| Err(axum::Error::new(error)))));
    Response::from_parts(head, Body::new(StreamBody::new(ReceiverStream::new(frames).chain(fault))))
}

async fn admitted(gate: &WorkerGate, request: Request) -> Result<Request, Refusal> {
    let (mut parts, mut body) = request.into_parts();
    if let Err(refusal) = gate.key.check_headers(parts.uri.path(), &parts.headers) {
        // A client that still sends may not read the refusal: a little of what it sends is read, and thrown away.
        let read = async {
            let first = first_message(&mut body, MAX_REFUSED_BYTES).await;
            if matches!(first, Ok(Some(_))) {
                let _ = body.frame().await;
            }
        };
        let _ = tokio::time::timeout(REFUSAL_TIME, read).await;
        return Err(refusal);
    }
    let first = match first_message(&mut body, MAX_PLAN_BYTES).await {
        Ok(Some(first)) => first,
        Ok(None) => return Err(Refusal::Malformed("the request has no message".to_owned())),
        Err(FirstMessageError::TooLarge(bytes)) => {
            return Err(Refusal::Malformed(format!("a plan of {bytes} bytes is larger than {MAX_PLAN_BYTES}")));
        }
        Err(FirstMessageError::Body(error)) => return Err(Refusal::Malformed(error.to_string())),
    };
    let path = parts.uri.path();
    gate.key.check(path, &parts.headers, &first.message)?;
    if path != SENDS_PLAN {
        return Ok(Request::from_parts(parts, Body::new(StreamBody::new(resumed(first, body)))));
    }
    let (name, value, ended) = gate.worker.begin_task();
    parts.headers.insert(name, value);
    let mut room = first.message.len() + MAX_BYTES_BEYOND;
    let frames = resumed(first, body).map(move |frame| {
        // The task ends with this stream.
        let _running = &ended;
        let frame = frame?;
        let bytes = frame.data_ref().map_or(0, |data| data.len());
        room = room.checked_sub(bytes).ok_or_else(|| axum::Error::new(std::io::Error::other("more than a plan")))?;
        Ok::<_, axum::Error>(frame)
    });
    Ok(Request::from_parts(parts, Body::new(StreamBody::new(frames))))
}
