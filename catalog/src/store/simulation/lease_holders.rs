//! Servers that want one lease. Promises: what is written under a lease is written by its newest holder, of whom there
//! is one a fence; at no time do two servers take themselves for the holder, as long as nobody sets the database's
//! clock; and a lease whose holder is gone is taken by another.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use super::{SimulatedChance, SimulatedStory};
use crate::error::{CatalogError, Result as CatalogResult};
use crate::store::leases::{
    LeaseAnswer, LeaseFence, LeaseRequest, LeaseRow, LeaseTable, LeaseTiming, TIMING, Tenure, TenureStep, give_back,
    renew, require_held, take,
};

const LEASE: &str = "work";
const SECOND: i64 = 1_000_000;
/// How long faults happen.
const STORMY: i64 = 200 * SECOND;
/// How long there are none after that.
const CALM: i64 = 180 * SECOND;
/// By how many millionths a server's clock may be fast or slow: far more than any clock is, and less than the margin
/// allows.
const DRIFT: i64 = 100_000;
/// After which time a server does not wait for an answer any more.
const PATIENCE: i64 = 10 * SECOND;

/// The rules that hold, of which tests leave one out.
#[derive(Clone, Copy)]
pub(super) struct LeaseRules {
    /// Writes look for the fence.
    pub(super) is_fenced: bool,
    /// A holder stops a while before its time is over.
    pub(super) has_margin: bool,
}

impl Default for LeaseRules {
    fn default() -> Self {
        Self { is_fenced: true, has_margin: true }
    }
}

impl LeaseRules {
    fn timing(self) -> LeaseTiming {
        match self.has_margin {
            true => TIMING,
            false => LeaseTiming { margin: Duration::ZERO, ..TIMING },
        }
    }
}

/// What is sent to the database.
#[derive(Clone)]
enum LeaseMessage {
    Take { every: Duration },
    Renew { fence: LeaseFence, sent_at: Duration },
    Write(LeaseFence),
    GiveBack(LeaseFence),
}

/// What happens to a server, of the life in which it was meant.
enum LeaseEvent {
    /// It looks what is to be done.
    Wakes,
    /// What it sent reaches the database.
    Arrives { message: LeaseMessage, request: u64 },
    /// It is told what came of a request to have the lease.
    Answered { answer: LeaseAnswer, request: u64 },
    /// It is told what came of a renewal.
    Renewed { is_held: bool, fence: LeaseFence, sent_at: Duration },
    /// Its process begins.
    Starts,
}

#[derive(Default)]
struct SimulatedLeaseTable {
    clock: Cell<i64>,
    row: RefCell<Option<LeaseRow>>,
}

impl LeaseTable for SimulatedLeaseTable {
    fn now(&self) -> CatalogResult<i64> {
        Ok(self.clock.get())
    }

    fn lease(&self, _: &str) -> CatalogResult<Option<LeaseRow>> {
        Ok(self.row.borrow().clone())
    }

    fn keep_lease(&self, _: &str, row: &LeaseRow) -> CatalogResult<()> {
        *self.row.borrow_mut() = Some(row.clone());
        Ok(())
    }
}

struct SimulatedHolder {
    member: String,
    life: u64,
    is_up: bool,
    /// By how many millionths its clock is fast.
    drift: i64,
    /// Until when it stands still.
    still_until: i64,
    lease: Option<(LeaseFence, Tenure)>,
    /// The newest request to have the lease, and when it was sent.
    asked: Option<(u64, i64, Duration)>,
}

impl SimulatedHolder {
    fn local(&self, now: i64) -> Duration {
        let micros = now + now / 1_000 * self.drift / 1_000;
        Duration::from_micros(micros.unsigned_abs())
    }

    /// Whether it takes itself for the holder.
    fn believes(&self, now: i64) -> bool {
        let tenure = self.lease.as_ref().map(|(_, tenure)| tenure);
        self.is_up && tenure.is_some_and(|tenure| tenure.step(self.local(now)) != TenureStep::Stop)
    }
}

struct SimulatedLeases<'s> {
    chance: SimulatedChance,
    rules: LeaseRules,
    story: &'s mut SimulatedStory,
    now: i64,
    table: SimulatedLeaseTable,
    /// Whether the database's clock may be set.
    has_steps: bool,
    holders: Vec<SimulatedHolder>,
    /// What is to happen, in order.
    events: BTreeMap<(i64, u64), (usize, u64, LeaseEvent)>,
    sequence: u64,
    /// Who wrote under a fence.
    writers: BTreeMap<i64, usize>,
    last_write: i64,
}

/// Runs servers for some minutes. Errors: the promise that was broken.
pub(super) fn simulate(
    mut chance: SimulatedChance,
    rules: LeaseRules,
    story: &mut SimulatedStory,
) -> Result<(), String> {
    let count = 2 + chance.index(3);
    let has_steps = chance.one_in(3);
    let holder = |number: usize, chance: &mut SimulatedChance| SimulatedHolder {
        member: format!("server {number}"),
        life: 0,
        is_up: false,
        drift: chance.between(-DRIFT, DRIFT + 1),
        still_until: 0,
        lease: None,
        asked: None,
    };
    let holders: Vec<SimulatedHolder> = (0..count).map(|number| holder(number, &mut chance)).collect();
    let mut world = SimulatedLeases {
        chance,
        rules,
        story,
        now: 0,
        table: SimulatedLeaseTable::default(),
        has_steps,
        holders,
        events: BTreeMap::new(),
        sequence: 0,
        writers: BTreeMap::new(),
        last_write: 0,
    };
    world.table.clock.set(1_700_000_000 * SECOND);
    for server in 0..world.holders.len() {
        let delay = world.chance.between(0, 3 * SECOND);
        world.happens(delay, server, LeaseEvent::Starts);
    }
    world.run()
}

impl SimulatedLeases<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(((at, _), (server, life, event))) = self.events.pop_first() {
            self.pass_time(at);
            if at > STORMY + CALM {
                break;
            }
            if life != self.holders[server].life && !matches!(event, LeaseEvent::Arrives { .. }) {
                // Of a process that is gone.
                continue;
            }
            self.take_place(server, life, event)?;
        }
        let idle = self.now - self.last_write;
        match idle < 60 * SECOND {
            true => Ok(()),
            false => Err(format!("nobody has worked for {} s although nothing fails any more", idle / SECOND)),
        }
    }

    fn pass_time(&mut self, at: i64) {
        self.table.clock.set(self.table.clock.get() + at - self.now);
        self.now = at;
        if self.has_steps && self.is_stormy() && self.chance.one_in(100) {
            let step = self.chance.between(-10 * SECOND, 60 * SECOND);
            self.table.clock.set(self.table.clock.get() + step);
            self.tell(|now| format!("{now} the database's clock is set by {} ms", step / 1_000));
        }
    }

    fn take_place(&mut self, server: usize, life: u64, event: LeaseEvent) -> Result<(), String> {
        if let LeaseEvent::Arrives { message, request } = event {
            return self.arrives(server, life, message, request);
        }
        let still_for = self.holders[server].still_until - self.now;
        if still_for > 0 {
            self.happens(still_for, server, event);
            return Ok(());
        }
        match event {
            LeaseEvent::Starts => self.starts(server),
            LeaseEvent::Wakes => self.wakes(server)?,
            LeaseEvent::Answered { answer, request } => self.answered(server, answer, request),
            LeaseEvent::Renewed { is_held, fence, sent_at } => self.renewed(server, is_held, &fence, sent_at),
            LeaseEvent::Arrives { .. } => {}
        }
        Ok(())
    }

    fn starts(&mut self, server: usize) {
        let holder = &mut self.holders[server];
        holder.is_up = true;
        holder.lease = None;
        holder.asked = None;
        self.tell(|now| format!("{now} server {server} starts"));
        self.happens(0, server, LeaseEvent::Wakes);
    }

    fn wakes(&mut self, server: usize) -> Result<(), String> {
        if self.is_stormy() && self.chance.one_in(60) {
            self.crashes(server);
            return Ok(());
        }
        if self.is_stormy() && self.chance.one_in(40) {
            let time = self.chance.between(SECOND, 60 * SECOND);
            self.holders[server].still_until = self.now + time;
            self.tell(|now| format!("{now} server {server} stands still for {} s", time / SECOND));
        } else {
            self.works(server)?;
        }
        let pause = self.chance.between(SECOND / 2, 4 * SECOND);
        self.happens(pause, server, LeaseEvent::Wakes);
        Ok(())
    }

    fn crashes(&mut self, server: usize) {
        let holder = &mut self.holders[server];
        holder.life += 1;
        holder.is_up = false;
        holder.lease = None;
        holder.still_until = 0;
        self.tell(|now| format!("{now} server {server} crashes"));
        let away = self.chance.between(SECOND, 90 * SECOND);
        // The last server may stay away; the others are there again.
        if server + 1 < self.holders.len() || self.chance.one_in(2) {
            self.happens(away, server, LeaseEvent::Starts);
        }
    }

    fn works(&mut self, server: usize) -> Result<(), String> {
        let now = self.holders[server].local(self.now);
        let Some((fence, mut tenure)) = self.holders[server].lease.clone() else {
            let is_asking = self.holders[server].asked.is_some_and(|(_, at, _)| self.now - at < PATIENCE);
            if !is_asking {
                let every = Duration::from_secs(if self.chance.one_in(4) { 5 } else { 0 });
                let request = self.send(server, LeaseMessage::Take { every });
                self.holders[server].asked = Some((request, self.now, now));
            }
            return Ok(());
        };
        match tenure.step(now) {
            TenureStep::Stop => {
                self.holders[server].lease = None;
                self.tell(|now| format!("{now} server {server} stops: its time under {} is over", fence.number));
            }
            TenureStep::Renew => {
                tenure.renewal_sent(now);
                self.holders[server].lease = Some((fence.clone(), tenure));
                self.send(server, LeaseMessage::Renew { fence, sent_at: now });
            }
            TenureStep::Work(_) => {
                let other =
                    (0..self.holders.len()).find(|other| *other != server && self.holders[*other].believes(self.now));
                if let Some(other) = other.filter(|_| !self.has_steps) {
                    return Err(format!("servers {server} and {other} take themselves for the holder"));
                }
                if self.chance.one_in(12) {
                    self.holders[server].lease = None;
                    self.send(server, LeaseMessage::GiveBack(fence));
                } else {
                    self.send(server, LeaseMessage::Write(fence));
                }
            }
        }
        Ok(())
    }

    /// Sends a message, which may be late, or lost, or be sent after the process stood still.
    fn send(&mut self, server: usize, message: LeaseMessage) -> u64 {
        self.sequence += 1;
        let request = self.sequence;
        if !(self.is_stormy() && self.chance.one_in(30)) {
            let delay = self.delay();
            self.happens(delay, server, LeaseEvent::Arrives { message, request });
        }
        request
    }

    fn delay(&mut self) -> i64 {
        match self.is_stormy() {
            true if self.chance.one_in(80) => self.chance.between(SECOND, 90 * SECOND),
            true if self.chance.one_in(15) => self.chance.between(SECOND, 9 * SECOND),
            _ => self.chance.between(SECOND / 1_000, SECOND / 20),
        }
    }

    /// Does what a message says, in a transaction, and answers; also one of a process that is gone by now.
    fn arrives(&mut self, server: usize, life: u64, message: LeaseMessage, request: u64) -> Result<(), String> {
        let timing = self.rules.timing();
        let member = self.holders[server].member.clone();
        let failed = |error: CatalogError| format!("the database failed: {error}");
        let answer = match message {
            LeaseMessage::Take { every } => {
                let wanted = LeaseRequest { name: LEASE, member: &member, every };
                let answer = take(&self.table, wanted, timing).map_err(failed)?;
                self.tell(|now| format!("{now} server {server} asks for the lease: {answer:?}"));
                Some(LeaseEvent::Answered { answer, request })
            }
            LeaseMessage::Renew { fence, sent_at } => {
                let is_held = renew(&self.table, &fence, timing).map_err(failed)?;
                self.tell(|now| format!("{now} server {server} renews {}: {is_held}", fence.number));
                Some(LeaseEvent::Renewed { is_held, fence, sent_at })
            }
            LeaseMessage::Write(fence) => {
                self.writes(server, &fence)?;
                None
            }
            LeaseMessage::GiveBack(fence) => {
                give_back(&self.table, &fence, true).map_err(failed)?;
                self.tell(|now| format!("{now} server {server} gives {} back", fence.number));
                None
            }
        };
        if let Some(answer) = answer
            && !(self.is_stormy() && self.chance.one_in(30))
        {
            let delay = self.delay();
            self.happens_to(life, delay, server, answer);
        }
        Ok(())
    }

    /// The transaction that the lease protects.
    fn writes(&mut self, server: usize, fence: &LeaseFence) -> Result<(), String> {
        if self.rules.is_fenced && require_held(&self.table, fence).is_err() {
            self.tell(|now| format!("{now} server {server} may not write under {}", fence.number));
            return Ok(());
        }
        self.tell(|now| format!("{now} server {server} writes under {}", fence.number));
        self.last_write = self.now;
        let newest = self.table.row.borrow().as_ref().map_or(0, |row| row.fence);
        if fence.number != newest {
            return Err(format!("server {server} writes under {} after {newest} was given", fence.number));
        }
        match self.writers.insert(fence.number, server).filter(|earlier| *earlier != server) {
            None => Ok(()),
            Some(earlier) => Err(format!("servers {earlier} and {server} write under {}", fence.number)),
        }
    }

    fn answered(&mut self, server: usize, answer: LeaseAnswer, request: u64) {
        let holder = &mut self.holders[server];
        // What was given up is not waited for: the lease is asked for again.
        let Some((_, _, sent_at)) = holder.asked.take_if(|(asked, ..)| *asked == request) else { return };
        if let LeaseAnswer::Granted(fence) = answer {
            holder.lease = Some((fence, Tenure::granted(sent_at, self.rules.timing())));
        }
    }

    fn renewed(&mut self, server: usize, is_held: bool, fence: &LeaseFence, sent_at: Duration) {
        let holder = &mut self.holders[server];
        let Some((_, tenure)) = holder.lease.as_mut().filter(|(held, _)| held == fence) else { return };
        match is_held {
            true => tenure.renewed(sent_at),
            false => holder.lease = None,
        }
    }

    fn happens(&mut self, delay: i64, server: usize, event: LeaseEvent) {
        self.happens_to(self.holders[server].life, delay, server, event);
    }

    fn happens_to(&mut self, life: u64, delay: i64, server: usize, event: LeaseEvent) {
        self.sequence += 1;
        self.events.insert((self.now + delay, self.sequence), (server, life, event));
    }

    fn is_stormy(&self) -> bool {
        self.now < STORMY
    }

    fn tell(&mut self, line: impl FnOnce(String) -> String) {
        let now = self.now / 1_000;
        self.story.tell(|| line(format!("{now:>7} ms")));
    }
}
