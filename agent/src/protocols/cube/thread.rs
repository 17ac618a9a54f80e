//! A thread for readers that come later: the last, complete line of each message. Of a long thread the newest runs are
//! shown.

use std::collections::HashMap;

use querent_catalog::RunRecord;
use serde_json::Value;

use super::render::CubeRenderer;
use super::{CubeLine, CubeOutput};
use crate::conversation::events_of;
use crate::error::Result;
use crate::event::RunEvent;

/// Bytes of the lines of one history.
const MAX_HISTORY_BYTES: usize = 2 << 20;
/// Numbers skipped after a run that ended with its process: clients may have read lines that were not stored.
const LOST_LINES: u64 = 100_000;

/// The history of a thread.
#[derive(Debug, Clone, Default)]
pub struct CubeThread {
    lines: Vec<CubeLine>,
    messages: Vec<Value>,
    next_sort: u64,
    /// Number of shown runs.
    shown: u64,
}

impl CubeThread {
    /// Reads the thread of these runs, oldest first, which have all ended.
    pub fn from_runs(runs: &[RunRecord]) -> Result<Self> {
        let mut thread = Self::default();
        let mut of_runs: Vec<Vec<CubeLine>> = Vec::new();
        for run in runs {
            let mut renderer = CubeRenderer::new(Vec::new());
            let mut lines: Vec<CubeOutput> = Vec::new();
            let mut is_lost = false;
            for event in events_of(run)? {
                is_lost |= event.ended_with_server();
                lines.extend(renderer.lines(&event));
            }
            is_lost |= !renderer.has_finished();
            lines.extend(renderer.break_off());
            thread.next_sort = thread.next_sort.max(renderer.next_sort());
            if is_lost {
                thread.next_sort += LOST_LINES;
            }
            thread.messages.extend(renderer.into_messages());
            of_runs.push(compacted(lines));
        }
        let mut bytes = 0;
        let fitting = of_runs.iter().rev().take_while(|lines| {
            bytes += lines.iter().map(|line| CubeOutput::from((*line).clone()).to_text().len()).sum::<usize>();
            bytes <= MAX_HISTORY_BYTES
        });
        let shown = fitting.count();
        thread.shown = shown as u64;
        thread.lines = of_runs.split_off(of_runs.len() - shown).into_iter().flatten().collect();
        Ok(thread)
    }

    /// Returns the first `sort` of the next run.
    pub fn next_sort(&self) -> u64 {
        self.next_sort
    }

    /// Returns the number of shown runs.
    pub fn shown_runs(&self) -> u64 {
        self.shown
    }

    /// Returns the complete lines.
    pub fn lines(&self) -> impl Iterator<Item = CubeOutput> + use<'_> {
        self.lines.iter().cloned().map(CubeOutput::from)
    }

    /// Returns the messages for the thread's state.
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }
}

/// A reader that joins a run in progress: it first gets the lines so far, then the new ones.
#[derive(Debug)]
pub struct LateReader {
    renderer: CubeRenderer,
    lines: Vec<CubeOutput>,
}

impl LateReader {
    /// Joins a run that follows these messages.
    pub fn new(before: Vec<Value>) -> Self {
        Self { renderer: CubeRenderer::new(before), lines: Vec::new() }
    }

    /// Adds an earlier event.
    pub fn replay(&mut self, event: &RunEvent) {
        self.lines.extend(self.renderer.lines(event));
    }

    /// Returns the run so far. A message in progress is one line with its text so far, which the following pieces
    /// extend.
    pub fn snapshot(mut self) -> RunSnapshot {
        let is_last = |output: &CubeOutput| matches!(output, CubeOutput::Line(line) if !line.is_marker());
        let end = self.lines.iter().rposition(is_last).map_or(0, |last| last + 1);
        let end = self.lines.split_off(end);
        let ahead = end.iter().filter(|output| matches!(output, CubeOutput::Line(_))).count() as f64;
        let cutoff_sort = self.renderer.next_sort() as f64 - ahead - 0.5;
        let lines = compacted(self.lines).into_iter().map(CubeOutput::from).collect();
        RunSnapshot { lines, cutoff_sort, end, renderer: self.renderer }
    }
}

/// A run in progress, at one moment.
#[derive(Debug)]
pub struct RunSnapshot {
    /// The lines so far.
    pub lines: Vec<CubeOutput>,
    /// The `sort` of the mark after them.
    pub cutoff_sort: f64,
    /// The lines of the run's end, if it has ended.
    pub end: Vec<CubeOutput>,
    /// Renders the following events.
    pub renderer: CubeRenderer,
}

/// Returns the last line of each message, with all of its text, in order; without marks and errors.
fn compacted(outputs: Vec<CubeOutput>) -> Vec<CubeLine> {
    let mut at: HashMap<String, usize> = HashMap::new();
    let mut whole: Vec<CubeLine> = Vec::new();
    for output in outputs {
        let CubeOutput::Line(mut line) = output else { continue };
        if line.is_marker() {
            continue;
        }
        let Some(known) = at.get(&line.id).and_then(|at| whole.get_mut(*at)) else {
            line.is_delta = Some(false);
            line.is_in_process.get_or_insert(false);
            at.insert(line.id.clone(), whole.len());
            whole.push(*line);
            continue;
        };
        if line.is_delta == Some(true) {
            line.content = joined(known.content.take(), line.content);
            line.thinking = joined(known.thinking.take(), line.thinking);
            line.is_delta = Some(false);
        }
        *known = *line;
    }
    whole.sort_by(|a, b| a.sort.total_cmp(&b.sort));
    whole
}

fn joined(so_far: Option<String>, piece: Option<String>) -> Option<String> {
    match (so_far, piece) {
        (Some(so_far), Some(piece)) => Some(so_far + &piece),
        (so_far, piece) => so_far.or(piece),
    }
}
