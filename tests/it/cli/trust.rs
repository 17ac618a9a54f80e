//! Tokens, the policy, the audit log and copies of a folder from the command line, embedded and against a server.

use std::collections::{BTreeMap, BTreeSet};

use querent_catalog::{NewToken, Principal};
use querent_tests::{TestServer, TestSettings};
use serde_json::Value;

use super::WorkFolder;

#[test]
fn tokens_are_made_listed_and_revoked_on_a_folder() {
    let work = WorkFolder::new();
    let refused = work.run(&["token", "create", "anna", "--data", "lake"]);
    assert_eq!((refused.code, refused.stderr.contains("--role admin")), (2, true), "{}", refused.stderr);
    let boss = work.run(&["token", "create", "boss", "--role", "admin", "--data", "lake"]);
    assert_eq!(boss.code, 0, "{}", boss.stderr);
    assert!(boss.stdout.starts_with("qrt_") && boss.stdout.trim().len() == 68, "{}", boss.stdout);
    let anna = [
        "token",
        "create",
        "anna",
        "--database",
        "sales",
        "--policy-role",
        "analyst",
        "--attribute",
        "region=EU",
        "--expires-in",
        "90d",
        "--data",
        "lake",
    ];
    assert_eq!(work.run(&anna).code, 0);
    let listed = work.run(&["token", "list", "--data", "lake"]);
    let lines: Vec<Value> = listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (lines.len(), &lines[1]["attributes"]["region"], &lines[1]["state"]),
        (2, &"EU".into(), &"active".into())
    );
    assert!(!listed.stdout.contains("qrt_"), "{}", listed.stdout);
    assert_eq!(work.run(&["token", "revoke", "2", "--data", "lake"]).code, 0);
    let again = work.run(&["token", "revoke", "9", "--data", "lake"]);
    assert_eq!((again.code, again.stderr.contains("object_not_found")), (1, true), "{}", again.stderr);
    assert!(work.run(&["token", "list", "--data", "lake"]).stdout.contains("revoked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tokens_are_listed_however_many() {
    const MANY: usize = 1_201;
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss")).await;
    for number in 0..MANY {
        let new = NewToken {
            name: format!("t{number}"),
            subject: None,
            role: "read".to_owned(),
            databases: None,
            roles: BTreeSet::new(),
            groups: BTreeSet::new(),
            attributes: BTreeMap::new(),
            expires_at: None,
        };
        let tokens = server.engine().catalog().tokens();
        tokens.create(&Principal::local_admin(), new, chrono::Utc::now()).await.unwrap();
    }
    let work = WorkFolder::new();
    let listed = async |target: &[&str]| {
        let mut command = work.querent(&["token", "list"]);
        command.args(target);
        let done = tokio::task::spawn_blocking(move || super::Done::of(command.output().unwrap())).await.unwrap();
        assert_eq!(done.code, 0, "{}", done.stderr);
        let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
        done.stdout.lines().map(name).collect::<Vec<_>>()
    };
    let expected: Vec<String> = (0..MANY).map(|number| format!("t{number}")).collect();
    assert_eq!(listed(&["--server", &server.url(""), "--token", "boss-tok"]).await, expected);
    let data = server.stop().await;
    assert_eq!(listed(&["--data", data.path().to_str().unwrap()]).await, expected);
}

#[test]
fn a_policy_is_applied_tested_and_explained() {
    let work = WorkFolder::new();
    assert_eq!(work.run(&["import", "flights.csv", "--data", "lake"]).code, 0);
    let policy = "-- who reads flights\nGRANT SELECT ON flights TO ROLE pilot;\n\
                  CREATE ROW POLICY mine ON flights USING (carrier = attribute('carrier')) TO ROLE pilot;\n";
    std::fs::write(work.path("policy.sql"), policy).unwrap();
    let planned = work.run(&["policy", "apply", "policy.sql", "--dry-run", "--data", "lake"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(
        planned.stdout.contains("+ GRANT SELECT ON \"default\".\"flights\" TO ROLE \"pilot\""),
        "{}",
        planned.stdout
    );
    assert!(work.run(&["policy", "show", "--data", "lake"]).stdout.contains("\"version\": 0"));
    let applied = work.run(&["policy", "apply", "policy.sql", "--data", "lake"]);
    assert!(applied.stdout.contains("version 1 holds"), "{} {}", applied.stdout, applied.stderr);
    let cases = r#"[
        {"name": "own", "as": {"roles": ["pilot"], "attributes": {"carrier": "UA"}}, "sql": "SELECT count(*) FROM flights", "rows": [[2]]},
        {"name": "others", "as": {}, "sql": "SELECT * FROM flights", "error": "database_not_found"}]"#;
    std::fs::write(work.path("cases.json"), cases).unwrap();
    let tested = work.run(&["policy", "test", "cases.json", "--data", "lake"]);
    assert_eq!(
        (tested.code, tested.stdout.contains("2 cases passed")),
        (0, true),
        "{} {}",
        tested.stdout,
        tested.stderr
    );
    std::fs::write(work.path("cases.json"), cases.replace("[[2]]", "[[3]]")).unwrap();
    let tested = work.run(&["policy", "test", "cases.json", "--data", "lake"]);
    assert_eq!((tested.code, tested.stdout.contains("failed  own")), (1, true), "{} {}", tested.stdout, tested.stderr);
    let explained = work.run(&["policy", "explain", "flights", "--policy-role", "pilot", "--data", "lake"]);
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    assert_eq!((&explained["visible"], &explained["rows"]), (&true.into(), &"some".into()));
    std::fs::write(work.path("policy.sql"), "GRANT SELECT ON nothing TO PUBLIC;").unwrap();
    let wrong = work.run(&["policy", "apply", "policy.sql", "--data", "lake"]);
    assert_eq!((wrong.code, wrong.stderr.contains("table_not_found")), (1, true), "{}", wrong.stderr);
    assert!(work.run(&["policy", "show", "--data", "lake"]).stdout.contains("\"version\": 1"));
}

#[test]
fn a_folder_is_checked_backed_up_and_restored() {
    let work = WorkFolder::new();
    assert_eq!(work.run(&["import", "flights.csv", "--data", "lake"]).code, 0);
    let checked = work.run(&["check", "--data", "lake"]);
    assert_eq!(
        (checked.code, checked.stdout.contains("no faults")),
        (0, true),
        "{} {}",
        checked.stdout,
        checked.stderr
    );
    let backed = work.run(&["backup", "copy", "--data", "lake"]);
    assert_eq!(backed.code, 0, "{}", backed.stderr);
    assert_eq!(work.run(&["backup", "copy", "--data", "lake"]).code, 1, "nothing is written over");
    let restored = work.run(&["restore", "copy", "--to", "again"]);
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    let read = work.run(&["sql", "SELECT count(*) AS n FROM flights", "--data", "again", "--output", "csv"]);
    assert_eq!(read.stdout.trim().lines().last(), Some("3"), "{} {}", read.stdout, read.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_through_a_server() {
    let settings = TestSettings::default().tokens("boss-tok:admin:boss");
    let server = TestServer::start(settings.change(|settings| settings.audit.enabled = true)).await;
    server.execute("CREATE TABLE t AS SELECT 1 AS a").await;
    let work = WorkFolder::new();
    let url = server.url("");
    let run = async |arguments: &[&str]| {
        let mut command = work.querent(arguments);
        command.args(["--server", &url, "--token", "boss-tok"]);
        tokio::task::spawn_blocking(move || super::Done::of(command.output().unwrap())).await.unwrap()
    };
    let made = run(&["token", "create", "anna"]).await;
    let token = made.stdout.trim().to_owned();
    assert_eq!(server.get("/v1/agent/runs", Some(&token)).await.status, 200, "{}", made.stderr);
    assert!(run(&["token", "list"]).await.stdout.contains("anna"));
    assert_eq!(run(&["token", "revoke", "1"]).await.code, 0);
    assert_eq!(server.get("/v1/agent/runs", Some(&token)).await.status, 401);
    std::fs::write(work.path("policy.sql"), "GRANT SELECT ON t TO PUBLIC;").unwrap();
    assert!(run(&["policy", "apply", "policy.sql"]).await.stdout.contains("version 1 holds"));
    assert!(run(&["policy", "show"]).await.stdout.contains("GRANT SELECT ON t TO PUBLIC"));
    assert!(run(&["policy", "explain", "t"]).await.stdout.contains("\"visible\": true"));
    let checked = run(&["check"]).await;
    assert!(checked.stdout.contains("no faults"), "{} {}", checked.stdout, checked.stderr);
    let backed = run(&["backup", "copy"]).await;
    assert_eq!(backed.code, 0, "{}", backed.stderr);
    let verified = run(&["audit", "verify"]).await;
    assert!(verified.stdout.contains("records stand on one another"), "{} {}", verified.stdout, verified.stderr);
    let exported = run(&["audit", "export"]).await;
    assert!(exported.stdout.lines().any(|line| line.contains("CREATE TABLE t")), "{}", exported.stdout);
}
