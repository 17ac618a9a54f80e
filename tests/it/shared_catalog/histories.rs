//! What two servers did to the same tables at once, as one after the other could have done it: every call has a moment between its
//! beginning and its end at which its answer was right. A table's calls depend on no other table's, so each table's history is
//! looked at by itself.
//!
//! `QUERENT_SHARED_TABLES` takes another number of tables, such as 10000.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::{DataType, Field};
use querent_catalog::{Catalog, CatalogError, Principal, TableAlteration, TableKind, TableName};
use querent_tests::PostgresProcess;
use tokio::task::JoinSet;

use super::{create, names, open, snapshot};

/// Tables that are changed, unless the environment says another number.
const TABLES: usize = 40;
/// Tasks of each server.
const TASKS: usize = 3;
const COLUMNS: [&str; 2] = ["x", "y"];

/// What was asked of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HistoryStep {
    Create,
    Add(&'static str),
    Drop,
    Read,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HistoryOutcome {
    Done,
    /// The columns that were there, of those that calls add; `None`: no table.
    Seen(Option<BTreeSet<String>>),
    Failed(&'static str),
}

#[derive(Debug, Clone)]
struct HistoryEvent {
    table: usize,
    call: HistoryStep,
    outcome: HistoryOutcome,
    begun: Instant,
    ended: Instant,
}

/// A table as calls see it: the columns that were added, or no table.
type TableState = Option<BTreeSet<String>>;

fn table_name(table: usize) -> TableName {
    TableName::new("default", format!("t{table:05}"))
}

/// The state after a call, if its answer is right in `state`.
fn after(state: &TableState, call: HistoryStep, outcome: &HistoryOutcome) -> Option<TableState> {
    match (call, outcome, state) {
        // Nothing came of it, whatever was there.
        (_, HistoryOutcome::Failed("conflict" | "catalog_busy"), _) => Some(state.clone()),
        (HistoryStep::Create, HistoryOutcome::Done, None) => Some(Some(BTreeSet::new())),
        (HistoryStep::Create, HistoryOutcome::Failed("already_exists"), Some(_)) => Some(state.clone()),
        (HistoryStep::Add(column), HistoryOutcome::Done, Some(columns)) if !columns.contains(column) => {
            let mut columns = columns.clone();
            columns.insert(column.to_owned());
            Some(Some(columns))
        }
        (HistoryStep::Add(column), HistoryOutcome::Failed("already_exists"), Some(columns))
            if columns.contains(column) =>
        {
            Some(state.clone())
        }
        (HistoryStep::Drop, HistoryOutcome::Done, Some(_)) => Some(None),
        (HistoryStep::Add(_) | HistoryStep::Drop, HistoryOutcome::Failed("table_not_found"), None) => Some(None),
        (HistoryStep::Read, HistoryOutcome::Seen(seen), state) if seen == state => Some(state.clone()),
        _ => None,
    }
}

/// Whether the calls could have been made one after the other, with these answers and `last` as what is left.
fn is_linearizable(events: &[HistoryEvent], last: &TableState) -> bool {
    assert!(events.len() < 64, "too many calls of one table");
    let all = (1_u64 << events.len()) - 1;
    let (mut waiting, mut seen) = (vec![(0_u64, None)], HashSet::new());
    while let Some((done, state)) = waiting.pop() {
        if done == all {
            if &state == last {
                return true;
            }
            continue;
        }
        let open = |event: usize| done & (1 << event) == 0;
        for (next, event) in events.iter().enumerate().filter(|(event, _)| open(*event)) {
            // Whatever ended before it began comes first.
            let is_next = events.iter().enumerate().all(|(other, before)| !open(other) || before.ended >= event.begun);
            if let (true, Some(state)) = (is_next, after(&state, event.call, &event.outcome)) {
                let reached = (done | (1 << next), state);
                if seen.insert(reached.clone()) {
                    waiting.push(reached);
                }
            }
        }
    }
    false
}

async fn outcome(catalog: &Catalog, table: usize, call: HistoryStep) -> HistoryOutcome {
    let name = table_name(table);
    let tables = catalog.tables();
    let done = |result: Result<(), CatalogError>| match result {
        Ok(()) => HistoryOutcome::Done,
        Err(error) => HistoryOutcome::Failed(error.code()),
    };
    match call {
        HistoryStep::Create => done(create(catalog, &name.table).await),
        HistoryStep::Add(column) => {
            let field = Field::new(column, DataType::Int64, true);
            done(
                tables
                    .alter(
                        &name,
                        vec![TableAlteration::AddColumn {
                            field,
                            is_json: false,
                            is_uuid: false,
                            default: None,
                            if_missing: false,
                        }],
                    )
                    .await,
            )
        }
        HistoryStep::Drop => done(tables.drop(&name, &[TableKind::Managed], false).await.map(drop)),
        HistoryStep::Read => HistoryOutcome::Seen(columns(catalog, table).await),
    }
}

async fn columns(catalog: &Catalog, table: usize) -> TableState {
    let found = catalog.tables().resolve(&Principal::local_admin(), &[table_name(table)]).await.unwrap();
    let found = found.into_iter().next().unwrap()?;
    let added = found.info.columns.into_iter().map(|column| column.name);
    Some(added.filter(|name| COLUMNS.contains(&name.as_str())).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_servers_did_could_have_been_done_one_after_the_other() {
    let tables: usize = std::env::var("QUERENT_SHARED_TABLES").map_or(TABLES, |count| count.parse().unwrap());
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let before = snapshot(&one).await;
    let calls = [
        HistoryStep::Create,
        HistoryStep::Read,
        HistoryStep::Add("x"),
        HistoryStep::Add("y"),
        HistoryStep::Read,
        HistoryStep::Drop,
        HistoryStep::Create,
    ];
    let mut tasks = JoinSet::new();
    for (server, catalog) in [&one, &two].into_iter().enumerate() {
        for task in 0..TASKS {
            let catalog = Arc::clone(catalog);
            tasks.spawn(async move {
                let mut events = Vec::new();
                // Everybody is at the same tables at about the same time, each with another call.
                for table in 0..tables {
                    for step in 0..2 {
                        let call = calls[(table * 3 + server * 2 + task + step * 4) % calls.len()];
                        let begun = Instant::now();
                        let outcome = outcome(&catalog, table, call).await;
                        events.push(HistoryEvent { table, call, outcome, begun, ended: Instant::now() });
                    }
                }
                events
            });
        }
    }
    let events: Vec<HistoryEvent> = tasks.join_all().await.into_iter().flatten().collect();
    let changes = events.iter().filter(|event| event.outcome == HistoryOutcome::Done).count();
    assert!(changes > tables, "{changes} changes of {tables} tables");
    let mut there = BTreeSet::new();
    for table in 0..tables {
        let history: Vec<HistoryEvent> = events.iter().filter(|event| event.table == table).cloned().collect();
        let last = columns(&one, table).await;
        assert_eq!(columns(&two, table).await, last);
        assert!(is_linearizable(&history, &last), "t{table:05} is {last:?} after {history:#?}");
        if last.is_some() {
            there.insert(table_name(table).table);
        }
    }
    // Lists have no other tables than names do, and each change was a snapshot of its own.
    let listed: BTreeSet<String> = names(&two).await.into_iter().collect();
    assert_eq!(listed, there);
    assert_eq!(usize::try_from(snapshot(&two).await - before).unwrap(), changes);
}

#[test]
fn a_history_that_cannot_be_is_found() {
    let begin = Instant::now();
    let at = |call, outcome, from, to| {
        let moment = |milliseconds| begin + std::time::Duration::from_millis(milliseconds);
        HistoryEvent { table: 0, call, outcome, begun: moment(from), ended: moment(to) }
    };
    let some = |columns: &[&str]| Some(columns.iter().map(|column| (*column).to_owned()).collect::<BTreeSet<_>>());
    // Two at once: one of them came first.
    let both = [
        at(HistoryStep::Create, HistoryOutcome::Done, 0, 10),
        at(HistoryStep::Create, HistoryOutcome::Failed("already_exists"), 0, 10),
    ];
    assert!(is_linearizable(&both, &some(&[])));
    // Two that both made it.
    let twice =
        [at(HistoryStep::Create, HistoryOutcome::Done, 0, 10), at(HistoryStep::Create, HistoryOutcome::Done, 5, 15)];
    assert!(!is_linearizable(&twice, &some(&[])));
    // A change that was acknowledged and then not seen.
    let lost = [
        at(HistoryStep::Create, HistoryOutcome::Done, 0, 1),
        at(HistoryStep::Add("x"), HistoryOutcome::Done, 2, 3),
        at(HistoryStep::Read, HistoryOutcome::Seen(some(&[])), 4, 5),
    ];
    assert!(!is_linearizable(&lost, &some(&["x"])));
    // Seen while it was made, or not yet.
    let meanwhile = [lost[0].clone(), lost[1].clone(), at(HistoryStep::Read, HistoryOutcome::Seen(some(&[])), 2, 5)];
    assert!(is_linearizable(&meanwhile, &some(&["x"])));
    assert!(!is_linearizable(&meanwhile, &some(&[])), "what is left has it");
}
