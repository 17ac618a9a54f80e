//! A thread as those read it who come later: of each message its last line, whole. Long threads are shown from their
//! newest runs.

use std::collections::HashMap;

use querent_catalog::RunRecord;
use serde_json::Value;

use super::render::CubeRenderer;
use super::{Line, Output};
use crate::{Result, RunEvent, events_of};

/// Bytes of the lines of one history.
const MAX_HISTORY_BYTES: usize = 2 << 20;
/// Left free behind a run that ended with its process: some of its lines may have been read and not stored.
const LOST_LINES: u64 = 100_000;

/// What was said in a thread before.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    lines: Vec<Line>,
    messages: Vec<Value>,
    next_sort: u64,
    /// Runs that are shown.
    shown: u64,
}

impl Thread {
    /// Of these runs, oldest first, which have all ended.
    pub fn of(runs: &[RunRecord]) -> Result<Self> {
        let mut thread = Self::default();
        let mut of_runs: Vec<Vec<Line>> = Vec::new();
        for run in runs {
            let mut renderer = CubeRenderer::new(Vec::new());
            let mut lines: Vec<Output> = Vec::new();
            for event in events_of(run)? {
                lines.extend(renderer.lines(&event));
            }
            let has_finished = renderer.has_finished();
            lines.extend(renderer.break_off());
            thread.next_sort = thread.next_sort.max(renderer.next_sort());
            if !has_finished {
                thread.next_sort += LOST_LINES;
            }
            thread.messages.extend(renderer.into_messages());
            of_runs.push(compacted(lines));
        }
        let mut bytes = 0;
        let fitting = of_runs.iter().rev().take_while(|lines| {
            bytes += lines.iter().map(|line| Output::from((*line).clone()).to_text().len()).sum::<usize>();
            bytes <= MAX_HISTORY_BYTES
        });
        let shown = fitting.count();
        thread.shown = shown as u64;
        thread.lines = of_runs.split_off(of_runs.len() - shown).into_iter().flatten().collect();
        Ok(thread)
    }

    /// The first `sort` of the run that comes next.
    pub fn next_sort(&self) -> u64 {
        self.next_sort
    }

    /// Runs whose lines are shown.
    pub fn shown_runs(&self) -> u64 {
        self.shown
    }

    /// The whole lines.
    pub fn lines(&self) -> impl Iterator<Item = Output> + use<'_> {
        self.lines.iter().cloned().map(Output::from)
    }

    /// What the state says of it.
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }
}

/// A run as somebody sees it who comes while it goes on: first what was, then what comes.
#[derive(Debug)]
pub struct Joining {
    renderer: CubeRenderer,
    lines: Vec<Output>,
}

impl Joining {
    /// Of a run that follows these messages.
    pub fn new(before: Vec<Value>) -> Self {
        Self { renderer: CubeRenderer::new(before), lines: Vec::new() }
    }

    /// Something that happened before.
    pub fn was(&mut self, event: &RunEvent) {
        self.lines.extend(self.renderer.lines(event));
    }

    /// What was said until now. Of what is being said there is one line with the text so far, to which the coming
    /// pieces add.
    pub fn until_now(mut self) -> Now {
        let is_last = |output: &Output| matches!(output, Output::Line(line) if !line.is_marker());
        let end = self.lines.iter().rposition(is_last).map_or(0, |last| last + 1);
        let end = self.lines.split_off(end);
        let ahead = end.iter().filter(|output| matches!(output, Output::Line(_))).count() as f64;
        let cutoff_sort = self.renderer.next_sort() as f64 - ahead - 0.5;
        let lines = compacted(self.lines).into_iter().map(Output::from).collect();
        Now { lines, cutoff_sort, end, renderer: self.renderer }
    }
}

/// A run at one moment.
#[derive(Debug)]
pub struct Now {
    /// What was said.
    pub lines: Vec<Output>,
    /// Where the mark stands behind it.
    pub cutoff_sort: f64,
    /// How the run ended, if it has.
    pub end: Vec<Output>,
    /// For what comes.
    pub renderer: CubeRenderer,
}

/// Of each message the last line with all that it said, in their order; marks and errors left out.
fn compacted(outputs: Vec<Output>) -> Vec<Line> {
    let mut at: HashMap<String, usize> = HashMap::new();
    let mut whole: Vec<Line> = Vec::new();
    for output in outputs {
        let Output::Line(mut line) = output else { continue };
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
