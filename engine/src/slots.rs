//! The right to run beside other queries, or beside other runs of the agent: so many slots, shared fairly between callers.
//!
//! A slot that becomes free goes to the caller that has the fewest, and among equals to the one whose turn was longest ago;
//! those of one caller wait in the order in which they came. So whoever sends many queries waits behind its own.
//!
//! Invariant: while somebody waits who may take a slot, none is free.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Slots for queries. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QuerySlots {
    shared: Arc<SharedSlots>,
}

/// How many slots there are, and how many queries may wait for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimits {
    /// Slots of all callers.
    pub slots: usize,
    /// Slots that one caller may have at once.
    pub per_caller: usize,
    /// Queries that may wait to begin.
    pub queued: usize,
}

/// The slots as one caller takes them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CallerSlots {
    shared: Arc<SharedSlots>,
    caller: Arc<str>,
}

/// A slot, which is free again when this is dropped.
#[derive(Debug)]
pub struct QuerySlot {
    slots: CallerSlots,
}

/// All slots are taken, and as many queries wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all slots are taken, and no more queries may wait for one")]
pub struct QueueFull;

#[derive(Debug)]
struct SharedSlots {
    limits: SlotLimits,
    state: Mutex<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    free: usize,
    /// Queries that wait to begin, of all callers.
    queued: usize,
    /// Those who have slots or wait for some.
    callers: HashMap<Arc<str>, SlotCaller>,
    /// Counts what was given, and who came.
    turn: u64,
}

#[derive(Debug, Default)]
struct SlotCaller {
    running: usize,
    /// When it was last given a slot.
    last_turn: u64,
    waiting: VecDeque<SlotWaiter>,
}

#[derive(Debug)]
struct SlotWaiter {
    id: u64,
    /// Whether it waits to begin; one that has begun is never sent away.
    is_new: bool,
    given: oneshot::Sender<QuerySlot>,
}

/// A place in the queue, which is left when this is dropped.
struct QueuePlace {
    slots: CallerSlots,
    id: u64,
    given: oneshot::Receiver<QuerySlot>,
}

enum EnteredQueue {
    Slot(QuerySlot),
    Queue(QueuePlace),
}

impl SlotLimits {
    /// Limits where one caller has `per_caller` of the slots: 0 all of them, `None` seven eighths. The rest is for others, who
    /// would otherwise wait until something long of that caller ends.
    pub fn shared(slots: usize, per_caller: Option<usize>, queued: usize) -> Self {
        let per_caller = match per_caller {
            Some(0) => slots,
            Some(limit) => limit,
            None => slots - slots / 8,
        };
        Self { slots, per_caller, queued }
    }
}

impl QuerySlots {
    /// Makes slots that are all free.
    pub fn new(limits: SlotLimits) -> Self {
        let state = SlotState { free: limits.slots, queued: 0, callers: HashMap::new(), turn: 0 };
        Self { shared: Arc::new(SharedSlots { limits, state: Mutex::new(state) }) }
    }

    /// Returns them as this caller takes them.
    pub fn of(&self, caller: impl Into<Arc<str>>) -> CallerSlots {
        CallerSlots { shared: Arc::clone(&self.shared), caller: caller.into() }
    }

    /// Returns how many are free.
    pub fn free(&self) -> usize {
        self.shared.state.lock().free
    }
}

impl CallerSlots {
    /// Takes a slot for a query that begins, or waits for one. Where as many wait as may, the youngest of the caller that has
    /// most of them is sent away for it, if that has two more than this one.
    /// Errors: [`QueueFull`], at once or when it is sent away.
    pub async fn begin(&self) -> Result<QuerySlot, QueueFull> {
        self.take(true).await
    }

    /// Takes a slot for a query that has begun and gave its own back, or waits for one.
    pub async fn resume(&self) -> QuerySlot {
        loop {
            // It is not sent away; the loop is for the compiler, which does not know.
            if let Ok(slot) = self.take(false).await {
                return slot;
            }
        }
    }

    async fn take(&self, is_new: bool) -> Result<QuerySlot, QueueFull> {
        match self.enter(is_new)? {
            EnteredQueue::Slot(slot) => Ok(slot),
            EnteredQueue::Queue(mut place) => (&mut place.given).await.map_err(|_| QueueFull),
        }
    }

    fn enter(&self, is_new: bool) -> Result<EnteredQueue, QueueFull> {
        let limits = self.shared.limits;
        let mut state = self.shared.state.lock();
        let mine = state.callers.get(&self.caller).map_or((0, 0), |mine| (mine.running, mine.new_ones()));
        let (running, queued) = mine;
        if state.free > 0 && running < limits.per_caller {
            state.give(&self.caller);
            return Ok(EnteredQueue::Slot(QuerySlot { slots: self.clone() }));
        }
        // Dropped outside of the lock: it wakes somebody.
        let mut sent_away = None;
        if is_new && state.queued >= limits.queued {
            sent_away = Some(state.send_away(queued + 2).ok_or(QueueFull)?);
        }
        state.turn += 1;
        state.queued += usize::from(is_new);
        let (id, (sender, given)) = (state.turn, oneshot::channel());
        let waiter = SlotWaiter { id, is_new, given: sender };
        state.callers.entry(Arc::clone(&self.caller)).or_default().waiting.push_back(waiter);
        drop(state);
        drop(sent_away);
        Ok(EnteredQueue::Queue(QueuePlace { slots: self.clone(), id, given }))
    }
}

impl QuerySlot {
    /// Returns the slots that it is one of, as its caller takes them.
    pub fn slots(&self) -> &CallerSlots {
        &self.slots
    }
}

impl Drop for QuerySlot {
    fn drop(&mut self) {
        let shared = &self.slots.shared;
        let mut state = shared.state.lock();
        state.free = state.free.saturating_add(1);
        if let Some(caller) = state.callers.get_mut(&self.slots.caller) {
            caller.running -= 1;
        }
        state.forget(&self.slots.caller);
        let next = state.next(shared.limits.per_caller);
        drop(state);
        if let Some((caller, given)) = next {
            // One who has gone in this moment drops it, and it goes to the next.
            let _ = given.send(QuerySlot { slots: CallerSlots { shared: Arc::clone(shared), caller } });
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.slots.shared.state.lock();
        let Some(caller) = state.callers.get_mut(&self.slots.caller) else { return };
        let Some(place) = caller.waiting.iter().position(|waiter| waiter.id == self.id) else { return };
        let left = caller.waiting.remove(place);
        state.queued -= usize::from(left.as_ref().is_some_and(|waiter| waiter.is_new));
        state.forget(&self.slots.caller);
    }
}

impl SlotState {
    /// Counts a slot as the caller's.
    fn give(&mut self, caller: &Arc<str>) {
        self.free -= 1;
        self.turn += 1;
        let turn = self.turn;
        let caller = self.callers.entry(Arc::clone(caller)).or_default();
        caller.running += 1;
        caller.last_turn = turn;
    }

    /// Gives a free slot to the one whose turn it is.
    fn next(&mut self, per_caller: usize) -> Option<(Arc<str>, oneshot::Sender<QuerySlot>)> {
        let waiting = self.callers.iter().filter(|(_, caller)| caller.running < per_caller);
        let waiting = waiting.filter_map(|(name, caller)| Some((name, caller, caller.waiting.front()?.id)));
        let (name, ..) = waiting.min_by_key(|(_, caller, came)| (caller.running, caller.last_turn, *came))?;
        let name = Arc::clone(name);
        let waiter = self.callers.get_mut(&name)?.waiting.pop_front()?;
        self.queued -= usize::from(waiter.is_new);
        self.give(&name);
        Some((name, waiter.given))
    }

    /// Takes the youngest waiter out of the queue of the caller that has most who wait to begin, where those are at least
    /// `least`.
    fn send_away(&mut self, least: usize) -> Option<SlotWaiter> {
        let (caller, waiting) = self
            .callers
            .values_mut()
            .map(|caller| (caller.new_ones(), caller))
            .map(|(waiting, caller)| (caller, waiting))
            .max_by_key(|(_, waiting)| *waiting)?;
        let youngest = caller.waiting.iter().rposition(|waiter| waiter.is_new).filter(|_| waiting >= least)?;
        let sent_away = caller.waiting.remove(youngest);
        self.queued -= usize::from(sent_away.is_some());
        sent_away
    }

    /// Forgets a caller that has nothing here any more.
    fn forget(&mut self, caller: &Arc<str>) {
        if self.callers.get(caller).is_some_and(|caller| caller.running == 0 && caller.waiting.is_empty()) {
            self.callers.remove(caller);
        }
    }
}

impl SlotCaller {
    /// How many of its queries wait to begin.
    fn new_ones(&self) -> usize {
        self.waiting.iter().filter(|waiter| waiter.is_new).count()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn slots(slots: usize, per_caller: usize, queued: usize) -> QuerySlots {
        QuerySlots::new(SlotLimits { slots, per_caller, queued })
    }

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        future.now_or_never()
    }

    #[tokio::test]
    async fn a_free_slot_goes_to_whoever_has_fewest() {
        let slots = slots(2, 2, 10);
        let (heavy, light) = (slots.of("heavy"), slots.of("light"));
        let first = heavy.begin().await.unwrap();
        let second = heavy.begin().await.unwrap();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(heavy.begin())).collect();
        assert!(waiting.iter_mut().all(|one| now(one).is_none()));
        let mut point = Box::pin(light.begin());
        assert!(now(&mut point).is_none());
        drop(first);
        let point = now(&mut point).expect("it came last, and has none").unwrap();
        assert!(now(&mut waiting[0]).is_none());
        drop(point);
        let third = now(&mut waiting[0]).unwrap().unwrap();
        drop((second, third));
        let rest: Vec<_> = waiting.drain(1..).map(|mut one| now(&mut one).unwrap().unwrap()).collect();
        assert_eq!(slots.free(), 0);
        drop(rest);
        assert_eq!(slots.free(), 2);
        assert!(slots.shared.state.lock().callers.is_empty(), "nobody is remembered");
    }

    #[tokio::test]
    async fn callers_who_wait_have_it_in_turn() {
        let slots = slots(1, 1, 10);
        let held = slots.of("a").begin().await.unwrap();
        let mut waiting = Vec::new();
        for caller in ["a", "a", "a", "b", "b", "c"] {
            let (one, caller) = (slots.of(caller), caller);
            let mut waits = Box::pin(async move { one.begin().await });
            assert!(now(&mut waits).is_none());
            waiting.push((caller, waits));
        }
        let mut given = Vec::new();
        let mut held = Some(held);
        while !waiting.is_empty() {
            drop(held.take());
            let ready = waiting.iter_mut().position(|(_, waits)| match now(waits) {
                Some(slot) => {
                    held = Some(slot.unwrap());
                    true
                }
                None => false,
            });
            given.push(waiting.remove(ready.unwrap()).0);
        }
        assert_eq!(given, ["b", "c", "a", "b", "a", "a"]);
    }

    #[tokio::test]
    async fn one_caller_leaves_some_to_others() {
        let slots = slots(3, 2, 10);
        let heavy = slots.of("heavy");
        let held = [heavy.begin().await.unwrap(), heavy.begin().await.unwrap()];
        let mut third = Box::pin(heavy.begin());
        assert!(now(&mut third).is_none(), "one is free, and not for it");
        let point = now(slots.of("light").begin()).unwrap().unwrap();
        drop(point);
        assert!(now(&mut third).is_none());
        drop(held);
        assert!(now(&mut third).unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_full_queue_makes_room_for_those_who_have_fewer_in_it() {
        let slots = slots(1, 1, 3);
        let held = slots.of("heavy").begin().await.unwrap();
        let heavy = slots.of("heavy");
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(heavy.begin())).collect();
        assert!(waiting.iter_mut().all(|one| now(one).is_none()));
        assert_eq!(now(heavy.begin()).unwrap().unwrap_err(), QueueFull);
        let light = slots.of("light");
        let mut point = Box::pin(light.begin());
        assert!(now(&mut point).is_none());
        assert_eq!(now(&mut waiting[2]).unwrap().unwrap_err(), QueueFull, "the youngest makes room");
        assert_eq!(now(light.begin()).unwrap().unwrap_err(), QueueFull, "two and one are fair");
        // One that has begun is queued beside them, and never sent away.
        let mut resumed = Box::pin(heavy.resume());
        assert!(now(&mut resumed).is_none());
        drop(held);
        assert!(now(&mut point).unwrap().is_ok());
        assert!(now(&mut waiting[0]).unwrap().is_ok());
        assert!(now(&mut waiting[1]).unwrap().is_ok());
        drop(now(&mut resumed).unwrap());
        assert_eq!(slots.free(), 1);
    }

    #[tokio::test]
    async fn whoever_stops_waiting_leaves_nothing_behind() {
        let slots = slots(1, 1, 1);
        let held = slots.of("a").begin().await.unwrap();
        let b = slots.of("b");
        let mut gone = Box::pin(b.begin());
        assert!(now(&mut gone).is_none());
        drop(gone);
        let mut gone = Box::pin(b.begin());
        assert!(now(&mut gone).is_none(), "its place is free again");
        drop(held);
        // It was given the slot, and goes without taking it.
        drop(gone);
        assert_eq!((slots.free(), slots.shared.state.lock().callers.len()), (1, 0));
    }
}
