//! Work on the chunks of a file beside reading it: one thread cuts records, others look at their values, and what they make
//! comes out in the order of the file.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::error::{EngineError, Result};

/// The most threads that work beside the one that reads: reading keeps no more of them busy.
const MOST_WORKERS: usize = 6;
/// The chunks that wait for each thread.
const QUEUE: usize = 2;

/// Returns how many threads are worth it.
pub(super) fn worker_count() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).clamp(1, MOST_WORKERS)
}

/// Calls `work` for each item that `next` returns, on several threads, and `each` for each result in order, until it returns
/// false. Errors: the first one, of whichever step. Blocks.
pub(super) fn in_order<I: Send, O: Send>(
    workers: usize,
    mut next: impl FnMut() -> Result<Option<I>> + Send,
    work: impl Fn(I) -> Result<O> + Sync,
    mut each: impl FnMut(O) -> Result<bool>,
) -> Result<()> {
    thread::scope(|scope| {
        let work = &work;
        let mut inputs: Vec<SyncSender<Result<I>>> = Vec::with_capacity(workers);
        let mut outputs: Vec<Receiver<Result<O>>> = Vec::with_capacity(workers);
        let mut threads = Vec::with_capacity(workers + 1);
        for _ in 0..workers {
            let (input, received) = sync_channel::<Result<I>>(QUEUE);
            let (made, output) = sync_channel(QUEUE);
            inputs.push(input);
            outputs.push(output);
            threads.push(scope.spawn(move || {
                for item in received {
                    // Whoever takes the results has gone: nobody needs more of them.
                    if made.send(item.and_then(work)).is_err() {
                        break;
                    }
                }
            }));
        }
        threads.push(scope.spawn(move || {
            for input in inputs.iter().cycle() {
                let item = match next() {
                    Ok(Some(item)) => Ok(item),
                    Ok(None) => break,
                    Err(error) => Err(error),
                };
                let is_last = item.is_err();
                if input.send(item).is_err() || is_last {
                    break;
                }
            }
        }));
        // The items were dealt out in turn, and so are the results. A thread whose queue is closed was the first without one.
        let mut taken = Ok(());
        for output in outputs.iter().cycle() {
            let Ok(result) = output.recv() else { break };
            match result.and_then(&mut each) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    taken = Err(error);
                    break;
                }
            }
        }
        drop(outputs);
        let mut panicked = None;
        for thread in threads {
            if let Err(panic) = thread.join() {
                panicked = Some(EngineError::from_panic(panic.as_ref()));
            }
        }
        match panicked {
            Some(error) => Err(error),
            None => taken,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(count: u32, fails_at: Option<u32>, stops_at: Option<u32>) -> (Vec<u32>, Result<()>) {
        let mut items = 0..count;
        let mut seen = Vec::new();
        let work = |item: u32| match fails_at == Some(item) {
            true => Err(EngineError::Internal("failed".into())),
            false => Ok(item * 2),
        };
        let result = in_order(
            3,
            || Ok(items.next()),
            work,
            |made| {
                seen.push(made);
                Ok(stops_at != Some(made))
            },
        );
        (seen, result)
    }

    #[test]
    fn results_come_in_order_and_errors_end_it() {
        assert_eq!(run(100, None, None).0, (0..100).map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(run(0, None, None).0, Vec::<u32>::new());
        let (seen, result) = run(100, Some(7), None);
        assert_eq!(seen, [0, 2, 4, 6, 8, 10, 12]);
        assert_eq!(result.unwrap_err().code(), "internal");
        let (seen, result) = run(100, None, Some(8));
        assert_eq!((seen.len(), result.is_ok()), (5, true));
    }
}
