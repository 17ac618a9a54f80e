//! The policy of a catalog that servers share: what one of them changes of it holds for the next statement of any other.

use std::path::Path;

use querent_catalog::Role;
use querent_engine::{Engine, EngineOptions, Limits};
use querent_tests::PostgresProcess;

use crate::policies::{admin, principal, run};
use crate::sql::rows;

#[tokio::test(flavor = "multi_thread")]
async fn what_one_server_grants_and_revokes_holds_for_the_next_statement_of_another() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = async |folder: &Path| {
        Engine::open_with(EngineOptions { catalog_url: Some(url.clone()), ..EngineOptions::new(folder) }).await.unwrap()
    };
    let (one, two) = (open(folders[0].path()).await, open(folders[1].path()).await);
    let root = admin(&one);
    run(&root, &["CREATE TABLE t AS SELECT 1 AS a", "GRANT SELECT ON t TO SUBJECT anna"]).await;
    let anna = two.session(principal("anna", Role::Write, &[], None), Limits::default());
    assert_eq!(rows(&anna, "SELECT a FROM t").await.unwrap(), [["1"]]);

    // None of them reads a table.
    for (allowed, refused) in [
        ("CREATE TABLE u (a INT)", "CREATE TABLE v (a INT)"),
        ("COMMENT ON TABLE u IS 'x'", "COMMENT ON TABLE t IS 'x'"),
        ("DROP TABLE u", "DROP TABLE t"),
    ] {
        run(&root, &["GRANT SELECT, MODIFY ON DATABASE default TO SUBJECT anna"]).await;
        run(&anna, &[allowed]).await;
        run(&root, &["REVOKE MODIFY ON DATABASE default FROM SUBJECT anna"]).await;
        assert_eq!(rows(&anna, refused).await.unwrap_err().code(), "not_allowed", "{refused}");
    }
    assert_eq!(rows(&root, "SELECT a FROM t").await.unwrap(), [["1"]]);

    run(&root, &["CREATE MASK hush ON t(a) USING (0) TO PUBLIC"]).await;
    let shown = rows(&admin(&two), "SELECT count(*) FROM system.policies WHERE name = 'hush'").await.unwrap();
    assert_eq!(shown, [["1"]]);
    drop((root, anna));
    one.close().await.unwrap();
    two.close().await.unwrap();
}
