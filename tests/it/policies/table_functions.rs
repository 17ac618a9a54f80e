//! Table functions that become queries over the tables that they name see no more of them than any query.

use super::{admin, caller, code, run};
use crate::sql::{engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn table_functions_see_what_policies_leave() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE DATABASE lib",
            "CREATE TABLE lib.notes AS SELECT * FROM (VALUES (1, 'red fox', [1.0, 0.0]), (2, 'red bus', [0.9, 0.1]),
                (3, 'fox fox fox', [1.0, 0.0])) AS v(id, body, meaning)",
            "CREATE TABLE lib.links AS SELECT * FROM (VALUES (1, 2), (2, 3)) AS v(src, dst)",
            "GRANT SELECT ON lib.notes TO PUBLIC",
            "CREATE ROW POLICY first ON lib.notes USING (id < 3) TO PUBLIC",
            "CREATE MASK short ON lib.notes(body) USING (left(body, 3)) TO PUBLIC",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &[], None);
    // Neither returned nor counted: of two texts both have `red`, and `fox` is not there.
    let found = "SELECT id, body, round(text_score, 4) FROM hybrid_search(lib.notes, 'body', 'meaning', 'red fox', 9,
        [1, 0]) ORDER BY id";
    assert_eq!(rows(&anna, found).await.unwrap(), [["1", "red", "0.1823"], ["2", "red", "0.1823"]]);
    let matched = "SELECT * FROM graph_match(lib.links, 'src', 'dst', '(a)-->(b)', 'a')";
    assert_eq!(code(&anna, matched).await, "table_not_found");
    run(&root, &["GRANT SELECT ON lib.links TO PUBLIC"]).await;
    let matched = "SELECT * FROM graph_match(lib.links, 'src', 'dst', '(a)-->(b)-->(c)', 'a.body, c.body AS other',
        nodes => lib.notes, node_key => 'id')";
    assert_eq!(rows(&anna, matched).await.unwrap(), [["red", "NULL"]]);
    let guessed = format!("{}, \"where\" => 'a.body = ''red fox''')", matched.trim_end_matches(')'));
    assert!(rows(&anna, &guessed).await.unwrap().is_empty());
}
