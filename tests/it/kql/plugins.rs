//! Plugins of `evaluate` that are queries themselves, and patterns.

use super::{answered, code_of};
use crate::sql::{admin, engine};

const USERS: &str = "let T = datatable(user:string, at:datetime, kind:string) [
    'Bob', datetime(2017-08-01), 'x', 'David', datetime(2017-08-01), 'x', 'David', datetime(2017-08-01 05:00), 'x',
    'John', datetime(2017-08-01), 'x', 'Bob', datetime(2017-08-01), 'x', 'Ananda', datetime(2017-08-02), 'x',
    'Atul', datetime(2017-08-02), 'x', 'John', datetime(2017-08-02), 'x', 'Ananda', datetime(2017-08-03), 'y',
    'Atul', datetime(2017-08-03), 'x', 'Atul', datetime(2017-08-03 23:00), 'x', 'John', datetime(2017-08-03), 'x',
    'Bob', datetime(2017-08-03), 'y', 'Betsy', datetime(2017-08-04), 'x', 'Bob', datetime(2017-08-05), 'x'];";
const DAYS: &str = "datetime(2017-08-01), datetime(2017-08-07)";

/// A query after `USERS`, its columns, and its rows with days in place of datetimes.
struct PluginCase {
    query: String,
    columns: &'static str,
    rows: &'static str,
}

#[tokio::test(flavor = "multi_thread")]
async fn activity_is_counted_in_windows() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for PluginCase { query, columns, rows } in [
        PluginCase {
            query: format!("T | evaluate sliding_window_counts(user, at, {DAYS}, 3d, 1d)"),
            columns: "at:datetime Count:long Dcount:long",
            rows: "01 5 3; 02 8 5; 03 13 5; 04 9 5; 05 7 5; 06 2 2; 07 1 1",
        },
        PluginCase {
            query: format!("T | where at < datetime(2017-08-04) | evaluate sliding_window_counts(user, at, {DAYS}, 2d, 1d, kind)"),
            columns: "at:datetime kind:string Count:long Dcount:long",
            rows: "01 x 5 3; 02 x 8 5; 03 x 6 3; 03 y 2 2; 04 x 3 2; 04 y 2 2",
        },
        PluginCase {
            query: format!("T | evaluate activity_counts_metrics(user, at, {DAYS}, 1d)"),
            columns: "at:datetime count:long dcount:long new_dcount:long aggregated_dcount:long",
            rows: "01 5 3 3 3; 02 3 3 2 5; 03 5 4 0 5; 04 1 1 1 6; 05 1 1 0 6",
        },
        PluginCase {
            query: format!("T | evaluate activity_counts_metrics(user, at, {DAYS}, 1d, kind)"),
            columns: "at:datetime kind:string count:long dcount:long new_dcount:long aggregated_dcount:long",
            rows: "01 x 5 3 3 3; 02 x 3 3 2 5; 03 x 3 2 0 5; 03 y 2 2 2 2; 04 x 1 1 1 6; 05 x 1 1 0 6",
        },
        PluginCase {
            query: format!("T | evaluate activity_engagement(user, at, {DAYS}, 1d, 2d)"),
            columns: "at:datetime dcount_activities_inner:long dcount_activities_outer:long activity_ratio:real",
            rows: "01 3 3 1.0; 02 3 5 0.6; 03 4 4 1.0; 04 1 5 0.2; 05 1 2 0.5",
        },
        PluginCase {
            query: "T | evaluate activity_metrics(user, at, 1d)".to_owned(),
            columns: "at:datetime dcount_values:long dcount_newvalues:long retention_rate:real churn_rate:real",
            rows: "01 3 3 NaN NaN; 02 3 2 0.3333333333333333 0.6666666666666667; 03 4 1 1.0 0.0; 04 1 1 0.0 1.0; 05 1 1 0.0 1.0",
        },
        PluginCase {
            query: "T | evaluate new_activity_metrics(user, at, datetime(2017-08-01), datetime(2017-08-03), 1d)".to_owned(),
            columns: "from_at:datetime to_at:datetime dcount_new_values:long dcount_retained_values:long dcount_churn_values:long \
                      retention_rate:real churn_rate:real",
            rows: "01 01 3 3 0 1.0 0.0; 01 02 2 1 2 0.3333333333333333 0.6666666666666667; \
                   01 03 2 2 1 0.6666666666666666 0.33333333333333337; 02 02 2 2 0 1.0 0.0; 02 03 0 2 0 1.0 0.0; 03 03 0 0 0 NaN NaN",
        },
        PluginCase {
            query: "let known = T | where user == 'Bob'; T | evaluate new_activity_metrics(user, at, datetime(2017-08-01), \
                    datetime(2017-08-03), 1d, datetime(2017-08-01), known) | project to_at, dcount_retained_values"
                .to_owned(),
            columns: "to_at:datetime dcount_retained_values:long",
            rows: "01 2; 02 1; 03 1",
        },
        PluginCase {
            query: format!("T | evaluate session_count(user, at, {DAYS}, 1d, 25h)"),
            columns: "at:datetime count_sessions:long",
            rows: "01 3; 02 2; 03 1; 04 1; 05 1",
        },
        PluginCase {
            query: "T | evaluate active_users_count(user, at, datetime(2017-08-02), datetime(2017-08-07), 4d, 1d, 2, 1d)".to_owned(),
            columns: "at:datetime dcount:long",
            rows: "02 1; 03 4; 05 1",
        },
        PluginCase {
            query: "T | extend n = strlen(user) | evaluate rolling_percentile(n, 50, at, 1d, 2)".to_owned(),
            columns: "at:datetime rolling_2_percentile_n_50:long",
            rows: "01 4; 02 4; 03 4; 04 4; 05 3",
        },
    ] {
        let kql = format!("{USERS} {query}");
        let (named, mut found) =
            answered(&session, &kql).await.unwrap_or_else(|error| panic!("`{query}`: {}: {error}", error.code()));
        assert_eq!(named.join(" "), columns, "{query}");
        found.sort();
        let day = |cell: &str| cell.strip_prefix("2017-08-").map_or(cell.to_owned(), |rest| rest[..2].to_owned());
        let found: Vec<String> =
            found.iter().map(|row| row.iter().map(|cell| day(cell)).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(found.join("; "), rows, "{query}");
    }
    for (query, code) in [
        ("evaluate activity_metrics(user, at)", "kql_invalid"),
        ("evaluate sliding_window_counts(user, nothing, 1, 2, 3, 4)", "kql_unknown_column"),
        ("evaluate activity_metrics(user, at, 'week')", "kql_not_supported"),
        ("evaluate activity_metrics(user, at, datetime(2017-08-01), datetime(2017-08-02), 1d, 5)", "kql_invalid"),
        ("evaluate funnel_sequence()", "kql_invalid"),
    ] {
        assert_eq!(code_of(&session, &format!("{USERS} T | {query}")).await, code, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_looked_up_in_networks() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let tables = "let N = datatable(net:string, name:string, zone:long) \
        ['10.0.0.0/8', 'private', 1, '10.1.0.0/16', 'lab', 2, '8.8.8.8', 'dns', 1, 'nonsense', 'none', 1]; \
        let A = datatable(ip:string, name:string, zone:long) \
        ['10.1.2.3', 'a', 2, '8.8.8.8', 'b', 1, '10.2.0.0/16', 'c', 1, '1.1.1.1', 'd', 1, '', 'e', 1, '10.0.0.0/4', 'f', 1];";
    for (query, columns, rows) in [
        (
            "A | evaluate ipv4_lookup(N, ip, net) | project name, net, name1",
            "name:string net:string name1:string",
            "a,10.0.0.0/8,private; a,10.1.0.0/16,lab; b,8.8.8.8,dns; c,10.0.0.0/8,private",
        ),
        (
            "A | evaluate ipv4_lookup(N, ip, net, zone)",
            "ip:string name:string zone:long net:string name1:string",
            "10.1.2.3,a,2,10.1.0.0/16,lab; 10.2.0.0/16,c,1,10.0.0.0/8,private; 8.8.8.8,b,1,8.8.8.8,dns",
        ),
        (
            "A | evaluate ipv4_lookup(N, ip, net, zone, return_unmatched = true) | project name, name1",
            "name:string name1:string",
            "a,lab; b,dns; c,private; d,; e,; f,",
        ),
        (
            "print ip = 'fe80::1' | evaluate ipv6_lookup((print net = 'fe80::/10', b = 1), ip, net)",
            "net:string b:long ip:string",
            "fe80::/10,1,fe80::1",
        ),
        (
            "print ip = '10.1.2.3' | evaluate ipv6_lookup((print net = '10.0.0.0/8', b = 1), ip, net, return_unmatched = true)",
            "ip:string net:string b:long",
            "10.1.2.3,10.0.0.0/8,1",
        ),
    ] {
        let (named, mut found) = answered(&session, &format!("{tables} {query}"))
            .await
            .unwrap_or_else(|error| panic!("`{query}`: {}: {error}", error.code()));
        assert_eq!(named.join(" "), columns, "{query}");
        found.sort();
        let found: Vec<String> = found.iter().map(|row| row.join(",")).collect();
        assert_eq!(found.join("; "), rows, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_may_meet_columns() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let bag = "print a = 'own', d = dynamic({\"a\": \"bag's\", \"b\": 2, \"c\": 3})";
    for (arguments, columns) in [
        ("d, columnsConflict='keep_source'", "a:string b:long c:long own 2 3"),
        ("d, 'p_'", "a:string p_a:string p_b:long p_c:long own bag's 2 3"),
        ("d, columnsConflict='replace_source', ignoredProperties=dynamic(['c'])", "a:string b:long bag's 2"),
    ] {
        let (named, rows) = answered(&session, &format!("{bag} | evaluate bag_unpack({arguments})")).await.unwrap();
        assert_eq!([named, rows.concat()].concat().join(" "), columns, "{arguments}");
    }
    assert_eq!(code_of(&session, &format!("{bag} | evaluate bag_unpack(d)")).await, "kql_invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_name_tables_by_texts() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let pattern = "declare pattern app = (id:string)[part:string] {
        (\"X\").[\"Stop\"] = { print told = strcat(id, \" \", part) };
        (\"X\").[\"Start\"] = { let a = 1; print told = tostring(a) };
    }; declare pattern plain = (id:string) { (\"Y\") = { range n from 1 to 3 step 1 } }; declare pattern empty;";
    for (query, expected) in [
        ("app(\"X\").Stop", "X Stop"),
        ("app('X').['Start'] | extend b = 2", "1 2"),
        ("union app(\"X\").[\"*\"] | count", "2"),
        ("let id = 'Y'; plain(id) | summarize max(n)", "3"),
        ("print toscalar(plain('Y') | count)", "3"),
    ] {
        let (_, rows) = answered(&session, &format!("{pattern} {query}")).await.unwrap();
        assert_eq!(rows.concat().join(" "), expected, "{query}");
    }
    for query in ["app('X').Nothing", "app('Z').Stop", "plain('Y').Stop", "empty('Y')", "app(1).Stop"] {
        assert_eq!(code_of(&session, &format!("{pattern} {query}")).await, "kql_invalid", "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_runs_over_each_database_of_a_group() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for statement in [
        "CREATE DATABASE east",
        "CREATE DATABASE west",
        "CREATE TABLE east.sales AS SELECT 1 AS n",
        "CREATE TABLE west.sales AS SELECT 2 AS n, 'w' AS site",
    ] {
        crate::sql::rows(&session, statement).await.unwrap();
    }
    for (query, expected) in [
        (
            "macro-expand entity_group [database('east'), database('west')] as D (D.sales | extend twice = n * 2)",
            "1,2,|2,4,w",
        ),
        (
            "let G = entity_group [database('west')]; macro-expand G as D (let big = D.sales | where n > 1; big | count)",
            "1",
        ),
        ("macro-expand entity_group [database('east'), database('west')] as D (D.sales) | summarize sum(n)", "3"),
    ] {
        let (_, mut rows) = answered(&session, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.sort();
        let rows: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
        assert_eq!(rows.join("|"), expected, "{query}");
    }
    for (query, code) in [
        ("macro-expand entity_group [database('east')] as D (D)", "kql_invalid"),
        ("macro-expand entity_group [cluster('c').database('east')] as D (D.sales)", "kql_not_supported"),
        ("macro-expand isfuzzy=true entity_group [database('east')] as D (D.sales)", "kql_not_supported"),
        ("let G = entity_group [database('east')]; G | count", "kql_type_mismatch"),
        ("macro-expand nothing as D (D.sales)", "kql_invalid"),
    ] {
        assert_eq!(code_of(&session, query).await, code, "{query}");
    }
}
