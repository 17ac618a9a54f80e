//! The priority of query threads. Where more work is there than processors, the threads that answer requests come before those
//! that execute queries, and queries that have just begun before those that have run for a while: so a listing or a point query
//! waits for a slice of a busy processor, not for its turn among all queries.
//!
//! A process without rights of its own may lower the priority of its threads and never raise it again, so that threads of long
//! queries are replaced rather than used for the next one ([`crate::threads`]). Elsewhere than on Linux a priority is one of the
//! whole process, and nothing is done.

use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;

use parking_lot::Mutex;

/// How much lower than requests' the priority of queries is that have just begun: one nice level is about a tenth less of a
/// busy processor.
const BEGUN: i32 = 3;
/// And of queries that have run for a while.
const LONG: i32 = 10;

/// The threads of one lane, as the operating system knows them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LanePriority {
    threads: Arc<Mutex<Vec<u32>>>,
}

impl LanePriority {
    /// Adds the thread that calls it, with the priority of a query that has just begun.
    pub(crate) fn add_this_thread(&self) {
        if let Some(thread) = this_thread() {
            set_nice(thread, BEGUN);
            self.threads.lock().push(thread);
        }
    }

    /// Removes the thread that calls it, which ends: its number may become another's.
    pub(crate) fn remove_this_thread(&self) {
        if let Some(thread) = this_thread() {
            self.threads.lock().retain(|known| *known != thread);
        }
    }

    /// Gives all of them the priority of a query that has run for a while. Returns whether that is a lower one.
    pub(crate) fn lower(&self) -> bool {
        let threads = self.threads.lock();
        threads.iter().for_each(|thread| set_nice(*thread, LONG));
        !threads.is_empty()
    }
}

#[cfg(target_os = "linux")]
fn this_thread() -> Option<u32> {
    #[expect(unsafe_code, reason = "a call without arguments that always succeeds")]
    let thread = unsafe { libc::gettid() };
    u32::try_from(thread).ok()
}

/// Lowers the priority of a thread to so much below that of the process.
#[cfg(target_os = "linux")]
fn set_nice(thread: u32, below: i32) {
    let nice = process_nice() + below;
    // One that fails, of a thread that has just ended, changes nothing.
    #[expect(unsafe_code, reason = "numbers alone are passed; on Linux the number of a thread names that thread")]
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, nice) };
}

/// Returns the priority that the process was started with: that of its first thread.
#[cfg(target_os = "linux")]
fn process_nice() -> i32 {
    static NICE: OnceLock<i32> = OnceLock::new();
    *NICE.get_or_init(|| {
        #[expect(unsafe_code, reason = "a question about this process")]
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, std::process::id()) };
        nice.clamp(-20, 19)
    })
}

#[cfg(not(target_os = "linux"))]
fn this_thread() -> Option<u32> {
    None
}

#[cfg(not(target_os = "linux"))]
fn set_nice(_thread: u32, _below: i32) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[expect(unsafe_code, reason = "a question about a thread of this process")]
    fn nice(thread: u32) -> i32 {
        unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) }
    }

    #[test]
    fn threads_of_long_queries_have_a_lower_priority() {
        std::thread::spawn(|| {
            let own = this_thread().unwrap();
            let lane = LanePriority::default();
            assert!(!lane.lower(), "it has no threads yet");
            lane.add_this_thread();
            assert_eq!(nice(own), (process_nice() + BEGUN).min(19));
            assert!(lane.lower());
            assert_eq!(nice(own), (process_nice() + LONG).min(19));
            lane.remove_this_thread();
            assert!(!lane.lower());
        })
        .join()
        .unwrap();
    }
}
