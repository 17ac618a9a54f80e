//! A deterministic simulation of what servers that share a catalog agree on: who has a lease ([`lease_holders`]), and
//! what each takes from the log into its index ([`index_log`]). The rules are those of production (`store/leases.rs`,
//! `store/change_log/protocol.rs`), called from here with a store in memory and a clock of its own; what is made up is
//! everything around them: messages that are late or lost, answers that never come, clocks that differ, processes that
//! stand still, crash or lose what was not synced.
//!
//! A seed says all that happens. `QUERENT_SIM_SEED=7` runs one seed and prints what happened in it, `QUERENT_SIM_SEEDS`
//! says how many there are; `make simulate` runs a hundred thousand.

mod index_log;
mod lease_holders;

use index_log::LogRules;
use lease_holders::LeaseRules;

/// Seeds that every test run has.
const SEEDS: u64 = 1_000;
/// Lines of what happened that a failure shows.
const SHOWN_LINES: usize = 80;

/// Numbers that look random and are the same for a seed: SplitMix64.
pub(super) struct SimulatedChance(u64);

impl SimulatedChance {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number of `from..to`.
    fn between(&mut self, from: i64, to: i64) -> i64 {
        from + (self.draw() % (to - from).unsigned_abs()) as i64
    }

    /// An index of a list.
    fn index(&mut self, count: usize) -> usize {
        (self.draw() % count as u64) as usize
    }

    /// True once in so many times.
    fn one_in(&mut self, times: u64) -> bool {
        self.draw().is_multiple_of(times)
    }
}

/// What happened, kept for the seed that somebody looks at.
#[derive(Default)]
pub(super) struct SimulatedStory {
    is_kept: bool,
    lines: Vec<String>,
}

impl SimulatedStory {
    fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.is_kept {
            self.lines.push(line());
        }
    }
}

/// One simulation of a seed. Errors: the promise that was broken.
type SeedRun<'r> = &'r dyn Fn(u64, &mut SimulatedStory) -> Result<(), String>;

/// Runs a seed, and once more with its story where it breaks a promise.
fn broken_promise(seed: u64, run: SeedRun<'_>) -> Option<String> {
    let promise = run(seed, &mut SimulatedStory::default()).err()?;
    let mut story = SimulatedStory { is_kept: true, ..SimulatedStory::default() };
    let again = run(seed, &mut story).err();
    assert_eq!(again.as_ref(), Some(&promise), "a seed is not deterministic");
    let shown = story.lines.len().saturating_sub(SHOWN_LINES);
    Some(format!("{}\n{promise}\nagain with QUERENT_SIM_SEED={seed}", story.lines[shown..].join("\n")))
}

fn leases(rules: LeaseRules) -> impl Fn(u64, &mut SimulatedStory) -> Result<(), String> {
    move |seed, story| lease_holders::simulate(SimulatedChance(seed), rules, story)
}

fn log(rules: LogRules) -> impl Fn(u64, &mut SimulatedStory) -> Result<(), String> {
    move |seed, story| index_log::simulate(SimulatedChance(seed), rules, story)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs the seeds that are asked for.
fn keep_promises(run: SeedRun<'_>) {
    if let Some(seed) = number("QUERENT_SIM_SEED") {
        let mut story = SimulatedStory { is_kept: true, ..SimulatedStory::default() };
        let outcome = run(seed, &mut story);
        println!("{}", story.lines.join("\n"));
        assert_eq!(outcome, Ok(()), "seed {seed}");
        return;
    }
    for seed in 0..number("QUERENT_SIM_SEEDS").unwrap_or(SEEDS) {
        if let Some(broken) = broken_promise(seed, run) {
            panic!("{broken}");
        }
    }
}

/// Whether one of the first seeds breaks a promise under rules that lack one of ours.
fn is_found_out(run: SeedRun<'_>) -> bool {
    (0..SEEDS).any(|seed| run(seed, &mut SimulatedStory::default()).is_err())
}

#[test]
fn a_lease_has_one_holder_whatever_happens() {
    keep_promises(&leases(LeaseRules::default()));
}

#[test]
fn every_index_gets_every_row_whatever_happens() {
    keep_promises(&log(LogRules::default()));
}

#[test]
fn a_lease_without_its_fence_is_found_out() {
    assert!(is_found_out(&leases(LeaseRules { is_fenced: false, ..LeaseRules::default() })));
}

#[test]
fn a_lease_whose_holder_stops_too_late_is_found_out() {
    assert!(is_found_out(&leases(LeaseRules { has_margin: false, ..LeaseRules::default() })));
}

#[test]
fn an_index_that_is_taken_for_whole_is_found_out() {
    assert!(is_found_out(&log(LogRules { has_epochs: false, ..LogRules::default() })));
}

#[test]
fn a_log_that_waits_for_nobody_is_found_out() {
    assert!(is_found_out(&log(LogRules { waits_for_all: false, ..LogRules::default() })));
}

#[test]
fn an_index_that_is_taken_for_a_better_one_is_found_out() {
    assert!(is_found_out(&log(LogRules { takes_only_more: false, ..LogRules::default() })));
}
