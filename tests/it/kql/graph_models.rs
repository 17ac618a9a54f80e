//! Stored graph models and their snapshots: commands that keep them, and `graph("name")`, which makes a graph of one.

use querent_catalog::{Principal, Role};
use querent_engine::{Limits, Session};

use super::{answered, cells, code_of};
use crate::maintenance::parquet_files;
use crate::sql::{admin, engine, rows};

const MODEL: &str = r#".create-or-alter graph_model Work ```
{
  "Schema": {
    "Nodes": { "Person": { "Name": "string", "Age": "long", "Title": "string" }, "Company": { "Name": "string" } },
    "Edges": { "WORKS_AT": { "Since": "int" } }
  },
  "Definition": {
    "Steps": [
      { "Kind": "AddNodes", "Query": "let adults = 18; people | where Age >= adults // all of them",
        "NodeIdColumn": "Id", "Labels": ["Person"], "LabelsColumn": "Kind" },
      { "Kind": "AddNodes", "Query": "companies | project Id, Name", "NodeIdColumn": "Id", "Labels": ["Company"] },
      { "Kind": "AddEdges", "Query": "jobs", "SourceColumn": "Person", "TargetColumn": "Company",
        "Labels": ["WORKS_AT"] },
      { "Kind": "AddEdges", "Query": "people | where Knows != '' | project Id, Knows", "SourceColumn": "Id",
        "TargetColumn": "Knows", "LabelsColumn": "Knows" }
    ]
  }
}
```"#;

const TABLES: [&str; 3] = [
    "CREATE TABLE people AS SELECT * FROM (VALUES ('p1', 'Ann', 40, 'boss', 'p2'), ('p2', 'Bob', 30, '', ''),
        ('p3', 'Cid', 9, '', 'p1')) AS v(\"Id\", \"Name\", \"Age\", \"Kind\", \"Knows\")",
    "CREATE TABLE companies AS SELECT 'c1' AS \"Id\", 'Acme' AS \"Name\", 3 AS rooms",
    "CREATE TABLE jobs AS SELECT * FROM (VALUES ('p1', 'c1', '2001'), ('p2', 'c1', 'long ago')) AS
        v(\"Person\", \"Company\", \"Since\")",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_kept_and_queried() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in TABLES {
        rows(&session, sql).await.unwrap();
    }
    assert_eq!(code_of(&session, "graph('Work') | graph-to-table nodes").await, "kql_unknown_table");
    let (columns, made) = answered(&session, MODEL).await.unwrap();
    let expected = "Name:string CreationTime:datetime Id:string SnapshotsCount:int Model:string AuthorizedPrincipals:string \
                    RetentionPolicy:string";
    assert_eq!(columns.join(" "), expected);
    assert_eq!((made.len(), made[0][0].as_str(), made[0][3].as_str()), (1, "Work", "0"));
    let id = made[0][2].clone();

    let staff = "graph('work') | graph-match (p)-[e]->(c) where labels(c) has 'Company' \
                 project name = p.Name, at = c.Name, e.Since, l = labels(p), k = labels(e) | sort by name asc";
    assert_eq!(
        cells(&session, staff).await,
        [
            ["Ann", "Acme", "2001", r#"["Person","boss"]"#, r#"["WORKS_AT"]"#],
            ["Bob", "Acme", "null", r#"["Person"]"#, r#"["WORKS_AT"]"#]
        ]
    );
    // A property of the schema that no table has is null; the model's own columns are not shown.
    let (columns, nodes) =
        answered(&session, "graph('Work', true) | graph-to-table nodes | sort by Id asc").await.unwrap();
    assert!(columns.contains(&"Title:string".to_owned()) && !columns.iter().any(|name| name.starts_with('$')));
    assert_eq!(nodes.len(), 4, "{nodes:?}");
    let joined = "graph('Work') | graph-match (a)-[e*1..2]->(b) where b.Id == 'c1' project from = a.Id \
                  | join kind=inner (people) on $left.from == $right.Id | summarize count() by Name | sort by Name asc";
    assert_eq!(cells(&session, joined).await, [["Ann", "2"], ["Bob", "1"], ["Cid", "1"]]);
    // The tables are read as they are.
    rows(&session, "INSERT INTO jobs VALUES ('p3', 'c1', '2020')").await.unwrap();
    let count = "graph('Work') | graph-match (p)-->(c) where c.Id == 'c1' project p.Id | count";
    assert_eq!(cells(&session, count).await, [["3"]]);

    // Altered, it is the same model; through the other doors of KQL as well.
    let smaller = r#".create-or-alter graph_model ['WORK'] {"Definition": {"Steps": [{"Kind": "AddEdges", "Query": "jobs",
        "SourceColumn": "Person", "TargetColumn": "Company"}]}}"#;
    session.kql(smaller).await.unwrap().collect().await.unwrap();
    assert_eq!(cells(&session, ".show graph_models | project Id").await, [[id]]);
    let detailed = ".show graph_model Work details | project SnapshotCount, Model.Schema";
    assert_eq!(cells(&session, detailed).await, [["0", "null"]]);
    let counted = "graph('Work') | graph-to-table edges | count";
    assert_eq!(cells(&session, counted).await, [["3"]]);
    assert_eq!(cells(&session, ".drop graph_model Work").await, Vec::<Vec<String>>::new());
    assert_eq!(code_of(&session, ".drop graph_model Work").await, "object_not_found");
    assert!(cells(&session, ".drop graph_model Work ifexists").await.is_empty());
    assert_eq!(code_of(&session, counted).await, "kql_unknown_table");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_has_the_properties_of_all_steps_that_add_it() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in TABLES {
        rows(&session, sql).await.unwrap();
    }
    let model = r#".create-or-alter graph_model Work {"Schema": {"Nodes": {"Person": {}, "Boss": {}}}, "Definition": {"Steps": [
        {"Kind": "AddNodes", "Query": "people | project Id, Name, Age", "NodeIdColumn": "Id", "Labels": ["Person"]},
        {"Kind": "AddNodes", "Query": "people | where Kind == 'boss' | project Id, Name = 'The boss', Rank = 1",
         "NodeIdColumn": "Id", "Labels": ["Boss"]},
        {"Kind": "AddEdges", "Query": "jobs", "SourceColumn": "Person", "TargetColumn": "Company"}]}}"#;
    answered(&session, model).await.unwrap();
    let staff = "graph('Work') | graph-match (p)-->() project id = p.Id, name = p.Name, age = tostring(p.Age), p.Rank, \
                 l = labels(p) | sort by id asc";
    assert_eq!(
        cells(&session, staff).await,
        [["p1", "The boss", "40", "1", r#"["Person","Boss"]"#], ["p2", "Bob", "30", "null", r#"["Person"]"#]]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_their_databases_and_their_readers_see_what_they_may() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in TABLES {
        rows(&session, sql).await.unwrap();
    }
    answered(&session, MODEL).await.unwrap();
    for sql in ["CREATE DATABASE shop", "CREATE ROW POLICY one ON jobs USING (\"Person\" = 'p1') TO PUBLIC"] {
        rows(&session, sql).await.unwrap();
    }
    rows(&session, "GRANT SELECT ON DATABASE \"default\" TO PUBLIC").await.unwrap();
    let reader = engine.session(Principal::new("reader", Role::Read), Limits::default());
    let edges = "graph('Work') | graph-match (p)-->(c) where c.Id == 'c1' project p.Id";
    assert_eq!(cells(&session, edges).await.len(), 2);
    assert_eq!(cells(&reader, edges).await, [["p1"]]);
    assert_eq!(code_of(&reader, ".drop graph_model Work").await, "not_allowed");
    assert_eq!(code_of(&reader, MODEL).await, "not_allowed");
    assert_eq!(code_of(&session.clone().read_only(), MODEL).await, "not_allowed");

    let shop = session.clone().with_database("shop").await.unwrap();
    assert_eq!(code_of(&shop, edges).await, "kql_unknown_table");
    assert_eq!(code_of(&shop, ".show graph_model Work").await, "kql_invalid");
    assert_eq!(code_of(&session, ".make graph_snapshot S from Work").await, "not_allowed");
    // So it is of whatever reads the table with the policy, and of nothing else.
    rows(&session, "CREATE VIEW hired AS SELECT * FROM jobs").await.unwrap();
    for (query, made) in [
        ("people | where Knows != '' | project From = Id, To = Knows", Ok(())),
        ("hired | project From = Person, To = Company", Err("not_allowed")),
        ("people | where toscalar(jobs | count) > 0 | project From = Id, To = Knows", Err("not_allowed")),
        ("graph('Work') | graph-match (p)-->(c) project From = p.Id, To = c.Id", Err("not_allowed")),
    ] {
        let step =
            format!(r#"{{"Kind": "AddEdges", "Query": "{query}", "SourceColumn": "From", "TargetColumn": "To"}}"#);
        let model = format!(r#".create-or-alter graph_model Part {{"Definition": {{"Steps": [{step}]}}}}"#);
        answered(&session, &model).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let snapshot = answered(&session, ".make graph_snapshot S from Part").await;
        assert_eq!(snapshot.map(drop).map_err(|error| error.code()), made, "{query}");
        answered(&session, ".drop graph_model Part").await.unwrap();
    }
    answered(&shop, &MODEL.replace("graph_model Work", "graph_model Mine")).await.unwrap();
    assert_eq!(cells(&shop, ".show graph_models | project Name").await, [["Mine"]]);
    // They go with their database.
    rows(&session, "DROP DATABASE shop").await.unwrap();
    rows(&session, "CREATE DATABASE shop").await.unwrap();
    assert!(cells(&shop, ".show graph_models").await.is_empty());

    for (command, code) in [
        (".create-or-alter graph_model G ```{}```", "kql_invalid"),
        (".create-or-alter graph_model G {\"Definition\": {\"Steps\": []}}", "kql_invalid"),
        (".make async graph_snapshot S from Work", "kql_not_supported"),
        (".make graph_snapshot S from Nothing", "kql_invalid"),
        ("graph('Work', 'S') | graph-to-table nodes", "kql_unknown_table"),
        ("graph('Work', snapshot='S') | graph-to-table nodes", "kql_unknown_table"),
        ("graph('Work', 5) | graph-to-table nodes", "kql_invalid"),
        ("graph('Work')", "kql_invalid"),
        ("graph() | graph-to-table nodes", "kql_invalid"),
    ] {
        assert_eq!(code_of(&session, command).await, code, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_stays_as_it_was() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in TABLES {
        rows(&session, sql).await.unwrap();
    }
    // Types that no table has come back.
    let model = r#".create-or-alter graph_model Work {"Definition": {"Steps": [
        {"Kind": "AddNodes", "Query": "people | extend Tags = pack_array(Kind, Name), Took = 1h", "NodeIdColumn": "Id",
            "LabelsColumn": "Tags"},
        {"Kind": "AddEdges", "Query": "jobs", "SourceColumn": "Person", "TargetColumn": "Company"}]}}"#;
    answered(&session, model).await.unwrap();
    let (columns, made) = answered(&session, ".make graph_snapshot First from Work").await.unwrap();
    assert_eq!(columns[5..], ["NodesCount:long", "EdgesCount:long", "RetentionPolicy:string"]);
    assert_eq!([&made[0][0], &made[0][2], &made[0][5], &made[0][6]], ["First", "Work", "4", "2"]);
    rows(&session, "INSERT INTO jobs VALUES ('p3', 'c1', '2020')").await.unwrap();
    let edges = |graph: &str| format!("{graph} | graph-to-table edges | count");
    for (graph, count) in [
        ("graph('Work')", "2"),
        ("graph('Work', false)", "2"),
        ("graph('work', 'FIRST')", "2"),
        ("graph('Work', snapshot='First')", "2"),
        ("graph('Work', true)", "3"),
    ] {
        assert_eq!(cells(&session, &edges(graph)).await, [[count]], "{graph}");
    }
    let ann = "graph('Work') | graph-match (p)-->(c) where p.Name == 'Ann' project p.Took + 1h, p.Tags[1], labels(p)";
    assert_eq!(cells(&session, ann).await, [["02:00:00", "Ann", r#"["boss","Ann"]"#]]);
    assert_eq!(code_of(&session, ".make graph_snapshot First from Work").await, "kql_invalid");
    let store = rusqlite::Connection::open(folder.path().join("data").join("catalog.sqlite")).unwrap();
    let newest =
        || store.query_row("SELECT max(snapshot_id) FROM ducklake_snapshot", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = newest();
    answered(&session, ".make graph_snapshot Second from Work").await.unwrap();
    assert_eq!(newest(), before + 1, "the snapshot and its tables come at once");
    assert_eq!(cells(&session, &edges("graph('Work')")).await, [["3"]]);
    let shown = ".show graph_snapshots * | project Name, ModelName";
    assert_eq!(cells(&session, shown).await, [["First", "Work"], ["Second", "Work"]]);
    assert_eq!(cells(&session, ".show graph_models details | project SnapshotsCount").await, [["2"]]);
    let kept = async || {
        let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'Work@%'";
        rows(&session, tables).await.unwrap()[0][0].clone()
    };
    assert_eq!(kept().await, "4");

    assert_eq!(cells(&session, ".drop graph_snapshot Work.Second").await[0][0], "Second");
    assert_eq!(code_of(&session, ".drop graph_snapshot Work.Second").await, "object_not_found");
    assert_eq!(kept().await, "2");
    assert_eq!(cells(&session, &edges("graph('Work')")).await, [["2"]]);
    let reader = engine.session(Principal::new("reader", Role::Read), Limits::default());
    assert_eq!(code_of(&reader, ".make graph_snapshot Mine from Work").await, "not_allowed");
    assert_eq!(cells(&reader, &edges("graph('Work')")).await, [["2"]]);
    // What fails leaves nothing behind.
    rows(&session, "DROP TABLE jobs").await.unwrap();
    let files = parquet_files(folder.path()).len();
    assert_eq!(code_of(&session, ".make graph_snapshot Third from Work").await, "kql_unknown_table");
    assert_eq!(kept().await, "2");
    assert_eq!(parquet_files(folder.path()).len(), files);
    let (models, who) = (engine.catalog().graph_models(), Principal::local_admin());
    let model = models.get(&who, "default", "Work").await.unwrap().unwrap();
    let before = newest();
    cells(&session, ".drop graph_model Work").await;
    assert_eq!(newest(), before + 1, "the model and its tables go at once");
    assert_eq!(kept().await, "0");
    // Of a model that is dropped while one is made there is none.
    let late = models.add_snapshot(&who, &model, "Late", &model.definition, Vec::new()).await.unwrap_err();
    assert_eq!(late.code(), "object_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_what_the_caller_may_not_see_is_not_there() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    for sql in [
        "CREATE DATABASE vault",
        "CREATE TABLE vault.zebra AS SELECT 'a' AS f, 'b' AS t",
        "CREATE TABLE people AS SELECT 'p1' AS \"Id\", 'p2' AS \"Boss\", 7 AS \"Salary\"",
        "GRANT SELECT ON vault.zebra TO ROLE keeper",
        "GRANT SELECT (\"Id\", \"Boss\") ON people TO PUBLIC",
    ] {
        rows(&root, sql).await.unwrap();
    }
    let models = [
        ("Hidden", "database('vault').zebra", "f", "t"),
        ("Paid", "people | where Salary > 1", "Id", "Boss"),
        ("Shown", "people", "Id", "Boss"),
    ];
    for (name, query, from, to) in models {
        let step =
            format!(r#"{{"Kind": "AddEdges", "Query": "{query}", "SourceColumn": "{from}", "TargetColumn": "{to}"}}"#);
        let made = format!(r#".create-or-alter graph_model {name} {{"Definition": {{"Steps": [{step}]}}}}"#);
        answered(&root, &made).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let ann = engine.session(Principal::new("ann", Role::Read), Limits::default());
    assert_eq!(cells(&root, ".show graph_models | project Name").await.len(), 3);
    assert_eq!(cells(&ann, ".show graph_models | project Name").await, [["Shown"]]);
    assert_eq!(cells(&ann, "graph('Shown') | graph-to-table edges | count").await, [["1"]]);
    for name in ["Hidden", "Paid"] {
        for kql in [
            format!("graph('{name}') | graph-to-table edges"),
            format!("graph('{name}', true) | graph-match (a)-[e]->(b) project e"),
            format!(".show graph_model {name} details"),
            format!(".show graph_snapshots {name}"),
        ] {
            let hidden = answered(&ann, &kql).await.unwrap_err().to_string();
            let absent = answered(&ann, &kql.replace(name, "Absent")).await.unwrap_err().to_string();
            assert_eq!(hidden.replace(name, "Absent").replace('^', ""), absent.replace('^', ""), "{kql}");
            assert!(!hidden.contains("zebra") && !hidden.contains("Salary"), "{hidden}");
        }
    }
    // Nor does who may write in the database take it away.
    rows(&root, "GRANT SELECT, MODIFY ON DATABASE \"default\" TO ROLE builder").await.unwrap();
    let wes = crate::policies::principal("wes", Role::Write, &["builder"], None);
    let wes = engine.session(wes, Limits::default());
    let names = async |session: &Session| cells(session, ".show graph_models | project Name").await;
    assert_eq!(names(&wes).await, [["Paid"], ["Shown"]]);
    assert_eq!(code_of(&wes, ".drop graph_model Hidden").await, "object_not_found");
    assert!(answered(&wes, ".drop graph_model Hidden ifexists").await.is_ok());
    let step = r#"{"Kind": "AddEdges", "Query": "people", "SourceColumn": "Id", "TargetColumn": "Boss"}"#;
    let made = format!(r#".create-or-alter graph_model Hidden {{"Definition": {{"Steps": [{step}]}}}}"#);
    assert_eq!(code_of(&wes, &made).await, "already_exists");
    assert_eq!(code_of(&ann, ".drop graph_model Hidden").await, "not_allowed");
    assert_eq!(cells(&root, "graph('Hidden') | graph-to-table edges | count").await, [["1"]]);
    answered(&wes, ".drop graph_model Paid").await.unwrap();
    assert_eq!(names(&root).await, [["Hidden"], ["Shown"]]);
}
