//! The priority of query threads. Where more work is there than processors, the threads that answer requests come before those
//! that execute queries: so a listing waits for a slice of a busy processor, not for its turn among all queries.
//!
//! A process without rights of its own may lower the priority of its threads and never raise it again. Elsewhere than on Linux a
//! priority is one of the whole process, and nothing is done.

/// How much lower than requests' the priority of queries is: one nice level is about a tenth less of a busy processor.
#[cfg(target_os = "linux")]
const QUERIES: i32 = 5;

/// Lowers the priority of the thread that calls it, to that of queries.
#[cfg(target_os = "linux")]
pub(crate) fn lower_this_thread() {
    let Ok(thread) = u32::try_from(this_thread()) else { return };
    let nice = process_nice() + QUERIES;
    // One that fails changes nothing.
    #[expect(unsafe_code, reason = "numbers alone are passed; on Linux the number of a thread names that thread")]
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, nice) };
}

/// Does nothing here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_this_thread() {}

#[cfg(target_os = "linux")]
fn this_thread() -> libc::pid_t {
    #[expect(unsafe_code, reason = "a call without arguments that always succeeds")]
    unsafe {
        libc::gettid()
    }
}

/// Returns the priority that the process was started with: that of its first thread.
#[cfg(target_os = "linux")]
fn process_nice() -> i32 {
    static NICE: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *NICE.get_or_init(|| {
        #[expect(unsafe_code, reason = "a question about this process")]
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, std::process::id()) };
        nice.clamp(-20, 19)
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[expect(unsafe_code, reason = "a question about a thread of this process")]
    fn nice() -> i32 {
        let thread = u32::try_from(this_thread()).unwrap();
        unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) }
    }

    #[test]
    fn threads_of_queries_come_after_others() {
        std::thread::spawn(|| {
            assert_eq!(nice(), process_nice());
            lower_this_thread();
            assert_eq!(nice(), (process_nice() + QUERIES).min(19));
        })
        .join()
        .unwrap();
    }
}
