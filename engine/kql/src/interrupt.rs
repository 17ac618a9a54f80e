//! Whether the query that a kernel computes for is to end. A function is called for a batch and says nothing until it has
//! computed it; one row may be an array of a million elements. So loops over elements look here now and then.
//!
//! Whoever runs queries says how to look ([`check_interrupts_with`]); without it queries end between batches only.

use std::sync::OnceLock;

use datafusion::error::Result;

type InterruptCheck = fn() -> Result<()>;

static CHECK: OnceLock<InterruptCheck> = OnceLock::new();

/// Lets kernels ask whether the query of their thread is to end: by an error, which they pass on. The first way that is given
/// holds for the whole process.
pub fn check_interrupts_with(check: InterruptCheck) {
    CHECK.get_or_init(|| check);
}

/// Returns an error once the query of this thread is to end.
pub(crate) fn check_interrupt() -> Result<()> {
    CHECK.get().map_or(Ok(()), |check| check())
}

/// Returns whether the query of this thread is to end. For computations that cannot fail: they break off with any value, and
/// whoever makes the column returns the error.
pub(crate) fn is_interrupted() -> bool {
    check_interrupt().is_err()
}

/// Counts the turns of a loop, and looks at every so many of them.
#[derive(Debug, Default)]
pub(crate) struct LoopTurns(usize);

impl LoopTurns {
    const TURNS: usize = 4_096;
    /// How many bytes take as long as a turn.
    const BYTES: usize = 1_024;

    /// Returns an error once the query of this thread is to end.
    pub(crate) fn count(&mut self) -> Result<()> {
        self.count_of(0)
    }

    /// As [`LoopTurns::count`], of a turn that may look at so many bytes.
    pub(crate) fn count_of(&mut self, bytes: usize) -> Result<()> {
        let before = self.0 / Self::TURNS;
        self.0 = self.0.saturating_add(1 + bytes / Self::BYTES);
        if self.0 / Self::TURNS == before { Ok(()) } else { check_interrupt() }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use datafusion::error::DataFusionError;

    use super::*;

    thread_local! {
        static IS_OVER: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_loop_ends_with_its_query() {
        check_interrupts_with(|| match IS_OVER.get() {
            true => Err(DataFusionError::Execution("the query is over".into())),
            false => Ok(()),
        });
        let mut turns = LoopTurns::default();
        assert!((0..100_000).try_for_each(|_| turns.count()).is_ok());
        assert!(!is_interrupted());
        IS_OVER.set(true);
        assert!((0..100_000).try_for_each(|_| turns.count()).is_err());
        assert!((0..2).try_for_each(|_| turns.count_of(4 << 20)).is_err(), "a long turn counts for many");
        assert!(is_interrupted());
    }
}
