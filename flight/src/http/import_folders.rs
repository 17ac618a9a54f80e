//! `POST /v1/import/tree`: registers or refreshes the external tables of a folder tree that the server can read. The
//! response is a stream of JSON lines, one a folder.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::header;
use querent_catalog::NoProgress;
use querent_engine::{EngineError, Limits, TreeEvent, TreeRequest, TreeSummary};
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::error::{ApiError, ErrorShape};
use crate::folder_import::TreeLine;
use crate::http::import::too_long;
use crate::http::request::{ApiCall, JsonBody, RequestId};

/// The most lines of one chunk.
const LINES_A_CHUNK: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderImportBody {
    source: String,
    database: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

/// Starts the import. A failure before the first folder is an error response; a later one is the last line.
pub(super) async fn import_folders(
    ApiCall { state, principal }: ApiCall,
    Extension(request_id): Extension<RequestId>,
    JsonBody(body): JsonBody<FolderImportBody>,
) -> Result<Response, ApiError> {
    let FolderImportBody { source, database, dry_run } = body;
    let session = state.session(principal.clone(), Limits::default());
    let act = session.audited_act(&format!("import the folders of {source}"), database.clone());
    let request = TreeRequest { source, database, dry_run };
    // Unbounded, but no longer than the tree's listing, which is in memory too.
    let (sender, mut decided) = unbounded_channel();
    let (engine, within) = (state.engine.clone(), state.settings.http.import_timeout.0);
    let mut import = async move {
        let report = move |event: TreeEvent| {
            // A closed channel means that the import is about to be dropped.
            let _ = sender.send(event);
        };
        let registered = engine.import_tree(&principal, request, Arc::new(NoProgress), &report);
        let registered = tokio::time::timeout(within, registered).await;
        let registered = registered.unwrap_or(Err(EngineError::WallClockExceeded { limit: within }));
        act.ended(registered.as_ref().map(|_| 0).map_err(|error| error.code()));
        registered
    }
    .boxed();
    let mut first = Vec::new();
    let outcome = tokio::select! {
        biased;
        outcome = &mut import => Some(outcome),
        _ = decided.recv_many(&mut first, LINES_A_CHUNK) => None,
    };
    if let Some(Err(error)) = outcome {
        return Err(told(error));
    }
    let lines = lines(first, decided, import, outcome, request_id);
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson; charset=utf-8")], Body::from_stream(lines)).into_response())
}

fn lines(
    first: Vec<TreeEvent>,
    mut decided: UnboundedReceiver<TreeEvent>,
    mut import: impl Future<Output = Result<TreeSummary, EngineError>> + Send + Unpin,
    mut outcome: Option<Result<TreeSummary, EngineError>>,
    request_id: RequestId,
) -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send {
    async_stream::stream! {
        let mut events = first;
        loop {
            if !events.is_empty() {
                yield Ok(text(events.drain(..).map(TreeLine::from)));
            }
            if outcome.is_none() {
                tokio::select! {
                    biased;
                    done = &mut import => outcome = Some(done),
                    _ = decided.recv_many(&mut events, LINES_A_CHUNK) => {}
                }
            } else if decided.recv_many(&mut events, LINES_A_CHUNK).await == 0 {
                break;
            }
        }
        match outcome {
            Some(Ok(summary)) => yield Ok(text([TreeLine::Summary(summary)].into_iter())),
            Some(Err(error)) => {
                let body = told(error).body(ErrorShape::Object, &request_id.0);
                yield Ok(format!("{body}\n").into());
            }
            None => {}
        }
    }
}

fn told(error: EngineError) -> ApiError {
    match error {
        EngineError::WallClockExceeded { limit } => too_long(limit),
        error => error.into(),
    }
}

fn text(lines: impl Iterator<Item = TreeLine>) -> Bytes {
    lines.filter_map(|line| line.to_text().ok()).collect::<String>().into()
}
