//! The agent's conversations in the catalog, through its public interface: their owners, their order, that a call is
//! decided once, and what is deleted with them or when they are old.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use querent_catalog::{
    Catalog, ConversationAccess, ConversationChange, ConversationFilter, ConversationKey, ConversationRecord,
    DecidedRun, Decision, FileRecord, ItemRecord, ItemRole, ItemScope, LeasedWork, PageRequest, PendingCall,
    PendingDecision, PendingKind, PendingState, Principal, Purged, Role, RunRecord, RunStatus,
};
use uuid::Uuid;

use crate::lake::{admin, open, sqlite};

#[tokio::test]
async fn a_conversation_is_its_owners() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let new = ConversationRecord { title: "errors".into(), ..conversation("ann", "c", 0) };
    assert_eq!(catalog.conversations().open(&ann(), &new).await.unwrap(), ConversationAccess::Created(new.clone()));
    let again = conversation("ann", "c", 5);
    assert_eq!(catalog.conversations().open(&ann(), &again).await.unwrap(), ConversationAccess::Existing(new.clone()));
    // Whoever opens it after its first request is about to use it.
    let used = ConversationRecord { updated_at: new.updated_at + Duration::microseconds(1), ..new.clone() };
    assert!(!catalog.conversations().delete_unused(&ann(), &key("c")).await.unwrap(), "it was opened again");
    for other in [ben(), admin()] {
        assert_eq!(catalog.conversations().open(&other, &new).await.unwrap(), ConversationAccess::Foreign);
    }
    let elsewhere = ConversationKey { space: "adk/ben".into(), id: "c".into() };
    let of_ben = ConversationRecord::new(elsewhere, "ben", at_second(0));
    assert_eq!(catalog.conversations().open(&ben(), &of_ben).await.unwrap(), ConversationAccess::Created(of_ben));

    assert_eq!(catalog.conversations().get(&admin(), &key("c")).await.unwrap(), used);
    let unseen = catalog.conversations().get(&ben(), &key("c")).await.unwrap_err();
    assert_eq!((unseen.code(), unseen.to_string().as_str()), ("conversation_not_found", "unknown conversation `c`"));
    let change = ConversationChange { state_json: Some(r#"{"n":1}"#.into()), ..Default::default() };
    let refused = catalog.conversations().update(&ben(), &key("c"), &change).await.unwrap_err();
    assert_eq!(refused.code(), "conversation_not_found");
    let changed = catalog.conversations().update(&ann(), &key("c"), &change).await.unwrap();
    assert_eq!((changed.title.as_str(), changed.state_json.as_str()), ("errors", r#"{"n":1}"#));
    assert!(changed.updated_at > used.updated_at);
    assert!(!catalog.conversations().delete(&ben(), &key("c")).await.unwrap());
    assert!(!catalog.conversations().delete_unused(&ann(), &key("c")).await.unwrap(), "it was changed");
    assert!(catalog.conversations().delete(&ann(), &key("c")).await.unwrap());
    assert!(!catalog.conversations().delete(&ann(), &key("c")).await.unwrap());
    catalog.conversations().open(&ann(), &new).await.unwrap();
    assert!(!catalog.conversations().delete_unused(&ben(), &key("c")).await.unwrap(), "it is another's");
    assert!(catalog.conversations().delete_unused(&ann(), &key("c")).await.unwrap());
}

#[tokio::test]
async fn conversations_are_listed_by_their_last_activity() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    for second in 0..4 {
        let user_id = if second % 2 == 0 { "even" } else { "odd" };
        let id = format!("a.{second}");
        let new = ConversationRecord { user_id: user_id.into(), ..conversation("ann", &id, second) };
        catalog.conversations().open(&ann(), &new).await.unwrap();
    }
    catalog.conversations().open(&ben(), &conversation("ben", "b", 9)).await.unwrap();
    catalog.runs().insert(&run_in("ann", "a.1", 20)).await.unwrap();

    let all = ConversationFilter::default();
    for limit in 1..=4 {
        assert_eq!(ids_by(&catalog, &ann(), &all, limit).await, ["a.1", "a.3", "a.2", "a.0"], "pages of {limit}");
    }
    assert_eq!(ids_by(&catalog, &admin(), &all, 2).await, ["a.1", "b", "a.3", "a.2", "a.0"]);
    let odd = ConversationFilter { user_id: Some("odd".into()), ..Default::default() };
    assert_eq!(ids_by(&catalog, &ann(), &odd, 1).await, ["a.1", "a.3"]);
    assert_eq!(ids_by(&catalog, &admin(), &odd, 1).await, ["a.1", "a.3"]);
    assert!(ids_by(&catalog, &ben(), &odd, 1).await.is_empty());
    let app = ConversationFilter { app: Some("other".into()), ..Default::default() };
    assert!(ids_by(&catalog, &ann(), &app, 1).await.is_empty());
    assert_eq!(catalog.conversations().get(&ann(), &key("a.1")).await.unwrap().run_count, 1);
    let page = PageRequest { limit: 1, after: Some(querent_catalog::PageToken("nonsense".into())) };
    assert_eq!(catalog.conversations().list(&ann(), &all, page).await.unwrap_err().code(), "invalid_name");
}

#[tokio::test]
async fn runs_of_a_conversation_come_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let refused = catalog.runs().insert(&run_in("ann", "c", 0)).await.unwrap_err();
    assert_eq!(refused.code(), "conversation_not_found");
    catalog.conversations().open(&ann(), &conversation("ann", "c", 0)).await.unwrap();
    assert_eq!(catalog.runs().insert(&run_in("ben", "c", 0)).await.unwrap_err().code(), "conversation_not_found");
    let mut runs = Vec::new();
    for second in 0..3 {
        let run = RunRecord {
            invocation_id: Some("e-1".into()),
            protocol: "adk".into(),
            previous_run_id: runs.last().map(|run: &RunRecord| run.run_id),
            retained: second != 1,
            ..run_in("ann", "c", second)
        };
        catalog.runs().insert(&run).await.unwrap();
        let ended = RunRecord {
            status: RunStatus::Success,
            finished_at: Some(at_second(second + 1)),
            usage_json: r#"{"tool_calls":1}"#.into(),
            trace_json: r#"["trace"]"#.into(),
            events_json: r#"["events"]"#.into(),
            messages_json: format!("[{second}]"),
            ..run
        };
        catalog.runs().update(&ended).await.unwrap();
        runs.push(ended);
    }
    assert_eq!(catalog.runs().of_conversation(&ann(), &key("c"), 10).await.unwrap(), runs);
    assert_eq!(catalog.runs().of_conversation(&admin(), &key("c"), 2).await.unwrap(), runs[1..]);
    assert!(catalog.runs().of_conversation(&ben(), &key("c"), 10).await.unwrap().is_empty());
    assert_eq!(catalog.runs().last_of_conversation(&ann(), &key("c")).await.unwrap().as_ref(), runs.last());
    assert_eq!(catalog.runs().of_invocation(&ann(), "e-1").await.unwrap().as_ref(), runs.last());
    assert_eq!(catalog.runs().of_invocation(&ben(), "e-1").await.unwrap(), None);
    let listed = catalog.runs().list(&ann(), PageRequest::first(1)).await.unwrap().items.remove(0);
    assert_eq!((listed.trace_json, listed.events_json, listed.messages_json), Default::default());
    assert_eq!(listed.conversation, Some(key("c")));
    assert_eq!(catalog.runs().trace(&ann(), listed.run_id).await.unwrap().as_deref(), Some(r#"["trace"]"#));
    assert_eq!(catalog.runs().trace(&ben(), listed.run_id).await.unwrap(), None);
}

#[tokio::test]
async fn items_are_found_by_id_and_listed_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let run = begun(&catalog, "c").await;
    let roles = [ItemRole::Input, ItemRole::Input, ItemRole::Output, ItemRole::Output, ItemRole::Added];
    let items: Vec<ItemRecord> =
        roles.into_iter().enumerate().map(|(index, role)| item(&format!("i{index}"), &run, role)).collect();
    catalog.items().insert(&items).await.unwrap();

    let wanted = ["i3", "nothing", "i0"].map(String::from);
    let found = catalog.items().get(&ann(), &wanted).await.unwrap();
    assert_eq!(found, [Some(items[3].clone()), None, Some(items[0].clone())]);
    assert_eq!(catalog.items().get(&ben(), &wanted).await.unwrap(), [None, None, None]);

    let (whole, input, output) =
        (ItemScope::Conversation(key("c")), ItemScope::RunInput(run.run_id), ItemScope::RunOutput(run.run_id));
    assert_eq!(listed(&catalog, &whole, None, 3, true).await, ids(["i0", "i1", "i2"], true));
    assert_eq!(listed(&catalog, &whole, Some("i2"), 2, true).await, ids(["i3", "i4"], false));
    assert_eq!(listed(&catalog, &whole, None, 2, false).await, ids(["i4", "i3"], true));
    assert_eq!(listed(&catalog, &whole, Some("i1"), 9, false).await, ids(["i0"], false));
    assert_eq!(listed(&catalog, &input, None, 9, true).await, ids(["i0", "i1"], false));
    assert_eq!(listed(&catalog, &output, None, 9, false).await, ids(["i3", "i2"], false));
    let unknown = catalog.items().list(&ann(), &whole, Some("nothing"), 1, true).await.unwrap_err();
    assert_eq!(unknown.code(), "item_not_found");
    assert_eq!(catalog.items().list(&ben(), &whole, None, 1, true).await.unwrap_err().code(), "conversation_not_found");
    assert_eq!(catalog.items().list(&ben(), &input, None, 1, true).await.unwrap_err().code(), "run_not_found");

    assert!(!catalog.items().delete(&ben(), "i0").await.unwrap());
    assert!(catalog.items().delete(&ann(), "i0").await.unwrap());
    assert!(!catalog.items().delete(&ann(), "i0").await.unwrap());
}

#[tokio::test]
async fn items_that_cannot_be_stored_store_none_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let run = begun(&catalog, "c").await;
    catalog.items().insert(&[item("taken", &run, ItemRole::Input)]).await.unwrap();
    let nobody = ItemRecord { conversation: None, run_id: None, ..item("x", &run, ItemRole::Added) };
    let of_another = ItemRecord { subject: "ben".into(), ..item("x", &run, ItemRole::Added) };
    let of_another_run = ItemRecord { conversation: None, ..of_another.clone() };
    let cases = [
        (item("taken", &run, ItemRole::Output), "item_exists"),
        (nobody, "invalid_object"),
        (of_another, "conversation_not_found"),
        (of_another_run, "run_not_found"),
    ];
    for (bad, code) in cases {
        let batch = [item("beside", &run, ItemRole::Output), bad];
        assert_eq!(catalog.items().insert(&batch).await.unwrap_err().code(), code);
    }
    assert_eq!(catalog.items().get(&ann(), &["beside".to_string()]).await.unwrap(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_decided_once_however_many_decide() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let run = begun(&catalog, "c").await;
    let calls = [call("mcpr_1", &run), PendingCall { kind: PendingKind::ClientTool, ..call("call_2", &run) }];
    catalog.pending_calls().insert(&calls).await.unwrap();
    assert_eq!(catalog.pending_calls().insert(&calls[..1]).await.unwrap_err().code(), "item_exists");
    let of_another = PendingCall { subject: "ben".into(), ..call("call_3", &run) };
    assert_eq!(catalog.pending_calls().insert(&[of_another]).await.unwrap_err().code(), "run_not_found");
    assert_eq!(catalog.pending_calls().of_run(&ann(), run.run_id).await.unwrap(), calls);
    assert_eq!(catalog.pending_calls().of_run(&ben(), run.run_id).await.unwrap_err().code(), "run_not_found");
    assert_eq!(catalog.pending_calls().get(&ben(), "mcpr_1").await.unwrap_err().code(), "pending_call_not_found");
    let stolen = catalog.pending_calls().decide(&ben(), "mcpr_1", PendingState::Approved, "{}").await.unwrap_err();
    assert_eq!(stolen.code(), "pending_call_not_found");
    let undecided = catalog.pending_calls().decide(&ann(), "mcpr_1", PendingState::Waiting, "{}").await.unwrap_err();
    assert_eq!(undecided.code(), "invalid_object");

    let mut deciders = tokio::task::JoinSet::new();
    for decider in 0..16 {
        let catalog = Arc::clone(&catalog);
        deciders.spawn(async move {
            let state = if decider % 2 == 0 { PendingState::Approved } else { PendingState::Denied };
            catalog.pending_calls().decide(&ann(), "mcpr_1", state, &decider.to_string()).await.unwrap()
        });
    }
    let decisions = deciders.join_all().await;
    let stored = catalog.pending_calls().get(&ann(), "mcpr_1").await.unwrap();
    assert!(stored.decided_at.is_some() && stored.decision_json.is_some());
    assert_eq!(decisions.iter().filter(|decision| **decision == Decision::Now(stored.clone())).count(), 1);
    assert_eq!(decisions.iter().filter(|decision| **decision == Decision::Before(stored.clone())).count(), 15);

    catalog.pending_calls().put_receipt("mcpr_1", r#"{"rows":3}"#).await.unwrap();
    assert_eq!(
        catalog.pending_calls().put_receipt("nothing", "{}").await.unwrap_err().code(),
        "pending_call_not_found"
    );
    let before = catalog.pending_calls().decide(&ann(), "mcpr_1", PendingState::Approved, "{}").await.unwrap();
    let receipt_json = Some(r#"{"rows":3}"#.to_string());
    assert_eq!(before, Decision::Before(PendingCall { receipt_json, ..stored }));
}

#[tokio::test]
async fn a_run_begins_with_all_its_decisions_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let run = begun(&catalog, "c").await;
    catalog.pending_calls().insert(&[call("one", &run), call("two", &run), call("three", &run)]).await.unwrap();
    catalog.pending_calls().decide(&ann(), "two", PendingState::Denied, "{}").await.unwrap();
    let approved = |call_id: &str| PendingDecision {
        call_id: call_id.into(),
        state: PendingState::Approved,
        decision_json: "{}".into(),
    };
    let next = run_in("ann", "c", 1);
    let begin = async |calls: &[&str], run: &RunRecord| {
        let decisions = calls.iter().map(|call_id| approved(call_id)).collect();
        catalog.pending_calls().begin_run(&ann(), run, decisions).await
    };
    for (calls, before) in [(["one", "two"], "two"), (["one", "one"], "one")] {
        let outcome = begin(&calls, &next).await.unwrap();
        assert_eq!(outcome, DecidedRun::DecidedBefore { call_id: before.into() });
    }
    assert_eq!(begin(&["one", "nothing"], &next).await.unwrap_err().code(), "pending_call_not_found");
    // A run that cannot be stored takes its decisions with it.
    let of_nobody = run_in("ann", "not there", 1);
    assert_eq!(begin(&["one", "three"], &of_nobody).await.unwrap_err().code(), "conversation_not_found");
    assert_eq!(catalog.runs().get(&ann(), next.run_id).await.unwrap_err().code(), "run_not_found");
    assert_eq!(catalog.pending_calls().get(&ann(), "one").await.unwrap(), call("one", &run));

    assert_eq!(begin(&["one", "three"], &next).await.unwrap(), DecidedRun::Begun);
    for call_id in ["one", "three"] {
        assert_eq!(catalog.pending_calls().get(&ann(), call_id).await.unwrap().state, PendingState::Approved);
    }
    assert_eq!(catalog.runs().get(&ann(), next.run_id).await.unwrap().status, RunStatus::Running);
}

#[tokio::test]
async fn what_belongs_to_a_run_or_a_conversation_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let first = begun(&catalog, "c").await;
    let second = run_in("ann", "c", 1);
    catalog.runs().insert(&second).await.unwrap();
    let other = begun(&catalog, "d").await;
    for (name, run) in [("first", &first), ("second", &second), ("other", &other)] {
        catalog.items().insert(&[item(name, run, ItemRole::Input)]).await.unwrap();
        catalog.pending_calls().insert(&[call(name, run)]).await.unwrap();
    }
    let added = ItemRecord { run_id: None, ..item("added", &first, ItemRole::Added) };
    catalog.items().insert(&[added]).await.unwrap();

    assert!(!catalog.runs().delete(&ben(), first.run_id).await.unwrap());
    assert!(catalog.runs().delete(&ann(), first.run_id).await.unwrap());
    assert!(!catalog.runs().delete(&ann(), first.run_id).await.unwrap());
    assert_eq!(catalog.runs().update(&first).await.unwrap_err().code(), "run_not_found");
    assert_eq!(stored(folder.path()), ["other", "other", "second", "second", "added"]);
    assert_eq!(catalog.conversations().get(&ann(), &key("c")).await.unwrap().run_count, 1);

    assert!(catalog.conversations().delete(&ann(), &key("c")).await.unwrap());
    assert_eq!(stored(folder.path()), ["other", "other"]);
    assert_eq!(catalog.runs().get(&ann(), second.run_id).await.unwrap_err().code(), "run_not_found");
    catalog.runs().get(&ann(), other.run_id).await.unwrap();
}

#[tokio::test]
async fn runs_of_a_conversation_may_outlive_it() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let run = begun(&catalog, "c").await;
    let other = begun(&catalog, "d").await;
    for (name, run) in [("run", &run), ("other", &other)] {
        catalog.items().insert(&[item(name, run, ItemRole::Input)]).await.unwrap();
        catalog.pending_calls().insert(&[call(name, run)]).await.unwrap();
    }
    let added = ItemRecord { run_id: None, ..item("added", &run, ItemRole::Added) };
    catalog.items().insert(&[added]).await.unwrap();

    assert!(!catalog.conversations().delete_and_keep_runs(&ben(), &key("c")).await.unwrap());
    assert!(catalog.conversations().delete_and_keep_runs(&ann(), &key("c")).await.unwrap());
    assert!(!catalog.conversations().delete_and_keep_runs(&ann(), &key("c")).await.unwrap());
    assert_eq!(stored(folder.path()), ["other", "other", "run", "run"]);
    assert_eq!(catalog.runs().get(&ann(), run.run_id).await.unwrap().conversation, None);
    assert_eq!(catalog.pending_calls().get(&ann(), "run").await.unwrap().conversation, None);
    assert_eq!(catalog.runs().get(&ann(), other.run_id).await.unwrap().conversation, Some(key("d")));
    // Whoever takes the name next has nothing of it.
    catalog.conversations().open(&ben(), &conversation("ben", "c", 1)).await.unwrap();
    assert!(catalog.runs().of_conversation(&ben(), &key("c"), 9).await.unwrap().is_empty());
    // A run in progress ends all the same.
    catalog.runs().update(&ended(run.clone())).await.unwrap();
    assert!(catalog.runs().delete(&ann(), run.run_id).await.unwrap());
    assert_eq!(stored(folder.path()), ["other", "other"]);
}

#[tokio::test]
async fn the_bytes_of_a_callers_conversations_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let stored = async |subject: &str| catalog.conversations().stored_bytes(subject).await.unwrap();
    assert_eq!(stored("ann").await, 0);
    catalog.conversations().open(&ann(), &conversation("ann", "c", 1)).await.unwrap();
    assert_eq!(stored("ann").await, 1_024 + 4);
    let change = ConversationChange { title: Some("é".into()), ..ConversationChange::default() };
    catalog.conversations().update(&ann(), &key("c"), &change).await.unwrap();
    assert_eq!((stored("ann").await, stored("ben").await), (1_024 + 6, 0));
}

#[tokio::test]
async fn files_of_a_caller_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let insert = async |file: FileRecord, bytes: usize| {
        catalog.files().insert_within(&file, vec![7; bytes], 5_000).await.unwrap()
    };
    assert!(insert(file("ann", 1), 2_500).await);
    assert!(!insert(file("ann", 2), 1_000).await);
    assert!(insert(file("ann", 3), 0).await);
    // Empty ones count too, and so do those of nobody else.
    assert!(!insert(file("ann", 4), 0).await);
    assert!(insert(file("ben", 5), 3_900).await);
    assert!(catalog.files().delete(&ann(), "file-1").await.unwrap());
    assert!(insert(file("ann", 6), 2_500).await);
}

#[tokio::test]
async fn files_are_their_owners_and_listed_without_content() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    for second in 0..3 {
        assert!(catalog.files().insert_within(&file("ann", second), vec![7; second as usize], u64::MAX).await.unwrap());
    }
    let again = catalog.files().insert_within(&file("ben", 1), Vec::new(), u64::MAX).await;
    assert_eq!(again.unwrap_err().code(), "item_exists");
    assert_eq!(catalog.files().get(&ann(), "file-2").await.unwrap(), file("ann", 2));
    assert_eq!(catalog.files().content(&admin(), "file-2").await.unwrap(), [7, 7]);
    assert_eq!(catalog.files().get(&ben(), "file-2").await.unwrap_err().code(), "file_not_found");
    assert_eq!(catalog.files().content(&ben(), "file-2").await.unwrap_err().code(), "file_not_found");
    let first = catalog.files().list(&ann(), None, 2).await.unwrap();
    assert_eq!((first.items, first.has_more), (vec![file("ann", 2), file("ann", 1)], true));
    let second = catalog.files().list(&ann(), Some("file-1"), 2).await.unwrap();
    assert_eq!((second.items, second.has_more), (vec![file("ann", 0)], false));
    assert!(catalog.files().list(&ben(), None, 2).await.unwrap().items.is_empty());
    assert!(!catalog.files().delete(&ben(), "file-2").await.unwrap());
    assert!(catalog.files().delete(&ann(), "file-2").await.unwrap());
    let contents: i64 =
        sqlite(folder.path()).query_row("SELECT count(*) FROM querent_file_content", [], |row| row.get(0)).unwrap();
    assert_eq!(contents, 2);
}

#[tokio::test]
async fn what_is_old_is_forgotten_and_what_runs_stays() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    catalog.conversations().open(&ann(), &conversation("ann", "c", 0)).await.unwrap();
    for second in 0..250 {
        let run = ended(RunRecord { conversation: None, ..run_in("ann", "", second) });
        catalog.runs().insert(&run).await.unwrap();
    }
    let in_conversation = ended(run_in("ann", "c", 1));
    catalog.runs().insert(&in_conversation).await.unwrap();
    catalog.items().insert(&[item("old", &in_conversation, ItemRole::Input)]).await.unwrap();
    let running = begun(&catalog, "running").await;
    catalog.conversations().open(&ann(), &conversation("ann", "new", 500)).await.unwrap();
    for second in [0, 500] {
        assert!(catalog.files().insert_within(&file("ann", second), vec![1], u64::MAX).await.unwrap());
    }

    let turn = catalog.leases().take(LeasedWork::Retention, std::time::Duration::ZERO).await.unwrap();
    let lease = turn.had().unwrap();
    let purged = catalog.purge_before(at_second(240), &lease).await.unwrap();
    assert_eq!(purged, Purged { runs: 241, conversations: 1, files: 1 });
    assert_eq!(catalog.purge_before(at_second(240), &lease).await.unwrap(), Purged::default());
    assert_eq!(catalog.conversations().get(&ann(), &key("c")).await.unwrap_err().code(), "conversation_not_found");
    assert!(stored(folder.path()).is_empty());
    catalog.runs().get(&ann(), running.run_id).await.unwrap();
    catalog.conversations().get(&ann(), &key("running")).await.unwrap();
    catalog.conversations().get(&ann(), &key("new")).await.unwrap();
    catalog.files().get(&ann(), "file-500").await.unwrap();
    assert_eq!(catalog.runs().list(&ann(), PageRequest::first(100)).await.unwrap().items.len(), 11);
}

#[tokio::test]
async fn a_store_of_the_version_before_keeps_its_runs_and_can_be_reopened() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).await.close().await.unwrap();
    let run_id = Uuid::now_v7();
    let store = sqlite(folder.path());
    store
        .execute_batch(&format!(
            "DROP TABLE querent_run; DROP TABLE querent_conversation; DROP TABLE querent_item;
             DROP TABLE querent_pending_call; DROP TABLE querent_file; DROP TABLE querent_file_content;
             DROP TABLE querent_member; DROP TABLE querent_lease;
             DELETE FROM querent_migrations WHERE version IN (4, 16, 17);
             CREATE TABLE querent_run (run_id VARCHAR PRIMARY KEY, subject VARCHAR NOT NULL, question VARCHAR NOT NULL, model_id VARCHAR NOT NULL, status VARCHAR NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, usage_json VARCHAR NOT NULL, trace_json VARCHAR NOT NULL);
             CREATE INDEX querent_ix_run_time ON querent_run (started_at, run_id);
             CREATE INDEX querent_ix_run_subject ON querent_run (subject, started_at, run_id);
             CREATE INDEX querent_ix_run_running ON querent_run (status) WHERE status = 'running';
             INSERT INTO querent_run VALUES ('{run_id}', 'ann', 'how many?', 'm', 'success', {}, {}, '{{}}', '[1]');",
            at_second(0).timestamp_micros(),
            at_second(1).timestamp_micros(),
        ))
        .unwrap();
    drop(store);

    let kept = RunRecord {
        status: RunStatus::Success,
        finished_at: Some(at_second(1)),
        trace_json: "[1]".into(),
        retained: false,
        ..RunRecord::new(run_id, "ann", "how many?", "m", at_second(0))
    };
    let catalog = open(folder.path()).await;
    assert_eq!(catalog.runs().get(&ann(), run_id).await.unwrap(), kept);
    let run = begun(&catalog, "c").await;
    catalog.items().insert(&[item("i", &run, ItemRole::Input)]).await.unwrap();
    catalog.pending_calls().insert(&[call("p", &run)]).await.unwrap();
    catalog.close().await.unwrap();
    drop(catalog);

    let catalog = open(folder.path()).await;
    assert_eq!(catalog.runs().get(&ann(), run_id).await.unwrap(), kept);
    assert_eq!(catalog.runs().get(&ann(), run.run_id).await.unwrap(), run);
    assert_eq!(catalog.pending_calls().get(&ann(), "p").await.unwrap(), call("p", &run));
    assert_eq!(listed(&catalog, &ItemScope::Conversation(key("c")), None, 9, true).await.0, ["i"]);
}

fn ann() -> Principal {
    Principal::new("ann", Role::Write)
}

fn ben() -> Principal {
    Principal::new("ben", Role::Write)
}

fn at_second(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
}

fn key(id: &str) -> ConversationKey {
    ConversationKey { space: String::new(), id: id.into() }
}

fn conversation(subject: &str, id: &str, second: i64) -> ConversationRecord {
    ConversationRecord::new(key(id), subject, at_second(second))
}

fn run_in(subject: &str, conversation: &str, second: i64) -> RunRecord {
    RunRecord {
        conversation: Some(key(conversation)),
        ..RunRecord::new(Uuid::now_v7(), subject, "how many?", "m", at_second(second))
    }
}

fn ended(run: RunRecord) -> RunRecord {
    RunRecord { status: RunStatus::Success, finished_at: Some(run.started_at), ..run }
}

/// Starts a run of ann's in a new conversation.
async fn begun(catalog: &Catalog, id: &str) -> RunRecord {
    catalog.conversations().open(&ann(), &conversation("ann", id, 0)).await.unwrap();
    let run = run_in("ann", id, 0);
    catalog.runs().insert(&run).await.unwrap();
    run
}

fn item(item_id: &str, run: &RunRecord, role: ItemRole) -> ItemRecord {
    ItemRecord {
        item_id: item_id.into(),
        subject: run.subject.clone(),
        conversation: run.conversation.clone(),
        run_id: Some(run.run_id),
        role,
        item_json: format!(r#"{{"id":"{item_id}"}}"#),
        created_at: run.started_at + Duration::microseconds(3),
    }
}

fn call(call_id: &str, run: &RunRecord) -> PendingCall {
    PendingCall {
        call_id: call_id.into(),
        kind: PendingKind::Approval,
        subject: run.subject.clone(),
        run_id: run.run_id,
        conversation: run.conversation.clone(),
        tool: "create_table_as".into(),
        arguments_json: "{}".into(),
        state: PendingState::Waiting,
        decided_at: None,
        decision_json: None,
        receipt_json: None,
    }
}

fn file(subject: &str, second: i64) -> FileRecord {
    FileRecord {
        file_id: format!("file-{second}"),
        subject: subject.into(),
        filename: "a.csv".into(),
        media_type: "text/csv".into(),
        purpose: "user_data".into(),
        bytes: second.unsigned_abs(),
        created_at: at_second(second),
    }
}

async fn ids_by(catalog: &Catalog, who: &Principal, filter: &ConversationFilter, limit: usize) -> Vec<String> {
    let mut ids = Vec::new();
    let mut request = PageRequest::first(limit);
    loop {
        let page = catalog.conversations().list(who, filter, request).await.unwrap();
        assert!(page.items.len() <= limit);
        ids.extend(page.items.into_iter().map(|conversation| conversation.key.id));
        match page.next {
            Some(next) => request = PageRequest { limit, after: Some(next) },
            None => return ids,
        }
    }
}

async fn listed(
    catalog: &Catalog,
    scope: &ItemScope,
    after: Option<&str>,
    limit: usize,
    ascending: bool,
) -> (Vec<String>, bool) {
    let listed = catalog.items().list(&ann(), scope, after, limit, ascending).await.unwrap();
    (listed.items.into_iter().map(|item| item.item_id).collect(), listed.has_more)
}

fn ids<const N: usize>(ids: [&str; N], has_more: bool) -> (Vec<String>, bool) {
    (ids.map(String::from).to_vec(), has_more)
}

/// Returns the ids of all items and calls in the store; an item without a run is last.
fn stored(folder: &Path) -> Vec<String> {
    sqlite(folder)
        .prepare(
            "SELECT item_id AS id, run_id IS NULL AS loose FROM querent_item
             UNION ALL SELECT call_id, 0 FROM querent_pending_call ORDER BY loose, id",
        )
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(|id| id.unwrap())
        .collect()
}
