//! Progress on standard error: bars on a terminal; elsewhere a line when a task ends that took long.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use futures::StreamExt;
use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use querent_catalog::Progress;

use super::client::StreamedRows;

/// What takes no longer is not waited for.
const QUICK: Duration = Duration::from_millis(300);

/// A task that takes as long is worth a line in a log.
const LONG: Duration = Duration::from_secs(5);

/// One bar a task, made at the task's first report.
pub(super) struct Bars {
    all: MultiProgress,
    by_task: Mutex<HashMap<String, ProgressBar>>,
    terminal: bool,
}

impl Bars {
    /// Makes bars on standard error; `quiet` shows none.
    pub(super) fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = match quiet || !terminal {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        Self { all: MultiProgress::with_draw_target(target), by_task: Mutex::default(), terminal: terminal || quiet }
    }

    /// Adds a bar of bytes, for an upload.
    pub(super) fn bytes(&self, task: &str, total: u64) -> ProgressBar {
        let style = ProgressStyle::with_template("{msg:30!} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
        self.add(task, total, style)
    }

    /// Removes all bars.
    pub(super) fn clear(&self) {
        for (_, bar) in self.by_task.lock().drain() {
            bar.finish_and_clear();
        }
        // A terminal that cannot be cleared is not a failure.
        let _ = self.all.clear();
    }

    fn add(
        &self,
        task: &str,
        total: u64,
        style: Result<ProgressStyle, indicatif::style::TemplateError>,
    ) -> ProgressBar {
        let bar = ProgressBar::new(total).with_message(task.to_owned());
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        self.all.add(bar)
    }
}

/// A spinner with the time that has passed, for a result that is waited for. It goes when it is dropped.
pub(super) struct Waiting {
    bar: ProgressBar,
}

impl Waiting {
    /// Makes a spinner on standard error; it is not shown where that is not a terminal, or not `shown`.
    pub(super) fn new(what: &str, shown: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        if shown && std::io::stderr().is_terminal() {
            let waiting = bar.downgrade();
            std::thread::spawn(move || {
                std::thread::sleep(QUICK);
                // What was quicker shows nothing.
                if let Some(bar) = waiting.upgrade() {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(Duration::from_millis(150));
                }
            });
        }
        Self { bar }
    }

    /// Runs `print` while the spinner is away.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Says what is waited for now.
    pub(super) fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Counts the rows of a result as they come; the spinner goes with the last of them.
    pub(super) fn counting(self, rows: StreamedRows) -> StreamedRows {
        let StreamedRows { schema, mut batches } = rows;
        let counted = async_stream::try_stream! {
            let mut count = 0;
            while let Some(batch) = batches.next().await.transpose()? {
                count += batch.num_rows() as u64;
                let noun = if count == 1 { "row" } else { "rows" };
                self.say(&format!("running, {} {noun}", HumanCount(count)));
                yield batch;
            }
            drop(self);
        };
        StreamedRows { schema, batches: counted.boxed() }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bars {
    fn report(&self, task: &str, done: u64, total: u64) {
        let finished = total > 0 && done >= total;
        let mut by_task = self.by_task.lock();
        if finished {
            if let Some(bar) = by_task.remove(task) {
                let took = bar.elapsed();
                bar.finish_and_clear();
                if !self.terminal && took >= LONG {
                    // A closed standard error must not end the work.
                    let _ = writeln!(std::io::stderr(), "{task}: done in {} s", took.as_secs());
                }
            }
            return;
        }
        let bar = by_task.entry(task.to_owned()).or_insert_with(|| {
            let template = match total {
                0 => ProgressStyle::with_template("{spinner} {msg} {human_pos} {elapsed}"),
                _ => ProgressStyle::with_template("{msg:30!} {bar:30} {human_pos}/{human_len} {eta}"),
            };
            self.add(task, total, template)
        });
        bar.set_length(total);
        bar.set_position(done);
    }
}
