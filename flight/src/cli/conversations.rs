//! The last conversation with each server and data folder, for `querent ask --follow-up`: a small file in the user's folder
//! of state. Losing it costs the flag, nothing else.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// Servers and folders that are remembered at most.
const MAX_PLACES: usize = 100;

/// Returns the last conversation with a place.
pub(super) async fn last(place: &str) -> Option<String> {
    read().await.get(place)?.as_str().map(str::to_owned)
}

/// Remembers a conversation as the last one with a place.
pub(super) async fn remember(place: &str, conversation: &str) {
    let Some(file) = state_file() else { return };
    let mut places = read().await;
    places.shift_remove(place);
    while places.len() >= MAX_PLACES {
        let Some(oldest) = places.keys().next().cloned() else { break };
        places.shift_remove(&oldest);
    }
    places.insert(place.to_owned(), Value::from(conversation));
    if let Some(folder) = file.parent() {
        // Where nothing can be written there is nothing to follow up, which the flag says.
        let _ = tokio::fs::create_dir_all(folder).await;
        let _ = tokio::fs::write(&file, Value::Object(places).to_string()).await;
    }
}

/// The user's folder of state for this program.
pub(super) fn state_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("querent"))
}

async fn read() -> Map<String, Value> {
    let Some(file) = state_file() else { return Map::new() };
    let text = tokio::fs::read_to_string(file).await.unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(Value::Object(places)) => places,
        _ => Map::new(),
    }
}

fn state_file() -> Option<PathBuf> {
    Some(state_folder()?.join("conversations.json"))
}
