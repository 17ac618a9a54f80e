//! Filters over stored columns: they reach the files as comparisons of stored values, and mean the same as elsewhere.

use super::cells;
use crate::sql::{admin, engine, rows};

const OPERATORS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

/// Strings with nulls and times of every unit, some of them outside KQL's years: a filter keeps the rows for which the
/// same condition is true where nothing rewrites it.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_keeps_what_its_condition_is_true_of() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(
        &session,
        "CREATE TABLE stored AS
         SELECT arrow_cast(s, 'Utf8') AS s, arrow_cast(us / 1000000, 'Timestamp(Second, None)') AS t_s,
                arrow_cast(us / 1000, 'Timestamp(Millisecond, None)') AS t_ms, arrow_cast(us, 'Timestamp(Microsecond, None)') AS t_us,
                arrow_cast(ns, 'Timestamp(Nanosecond, None)') AS t_ns, arrow_cast(us, 'Timestamp(Microsecond, Some(\"UTC\"))') AS t_utc,
                arrow_cast(arrow_cast(us / 86400000000, 'Int32'), 'Date32') AS d
         FROM (VALUES
           ('a', -99999999999999999, -1), ('', -1, 0), (NULL, 0, 99), ('b', 1, 100), ('A', 1500000, 199),
           ('ab', 86399999999, NULL), (NULL, NULL, 1767225600000000050), ('c', 253402300800000000, 1767225600000000000),
           ('d', 253402300799999999, 1), ('e', 1767225600000000, 200)
         ) AS v(s, us, ns)",
    )
    .await
    .unwrap();
    let texts = ["''", "'a'", "'ab'", "'zz'"];
    let times = [
        "datetime(1970-01-01)",
        "datetime(1969-12-31 23:59:59.9999999)",
        "datetime(1970-01-01 00:00:00.0000001)",
        "datetime(1970-01-01 00:00:01.5)",
        "datetime(2026-01-01)",
        "datetime(0001-01-01)",
        "datetime(9999-12-31 23:59:59.9999999)",
        "datetime(null)",
    ];
    let mut conditions = vec![
        "s in ('a', 'b')".to_owned(),
        "s !in ('a', 'b')".to_owned(),
        "s in ('a', '')".to_owned(),
        "s == 'a' or t_us > datetime(2000)".to_owned(),
        "t_us between (datetime(1970-01-01) .. datetime(1970-01-01 00:00:02))".to_owned(),
        "t_us between (datetime(1970-01-01) .. 2s) and s != 'b'".to_owned(),
        "not(s == 'a')".to_owned(),
    ];
    for operator in OPERATORS {
        // Kusto has no order of strings.
        if ["==", "!="].contains(&operator) {
            conditions.extend(texts.map(|text| format!("s {operator} {text}")));
            conditions.extend(texts.map(|text| format!("{text} {operator} s")));
        }
        for column in ["t_s", "t_ms", "t_us", "t_ns", "t_utc", "d"] {
            conditions.extend(times.map(|time| format!("{column} {operator} {time}")));
        }
    }
    for some in conditions.chunks(40) {
        let counts: Vec<String> = some.iter().map(|condition| format!("sum(iff({condition}, 1, 0))")).collect();
        let counted = cells(&session, &format!("stored | summarize {}", counts.join(", "))).await;
        for (condition, count) in some.iter().zip(&counted[0]) {
            let kept = cells(&session, &format!("stored | where {condition} | count")).await;
            assert_eq!(kept[0][0], *count, "{condition}");
        }
    }
}

/// The filter that reaches a scan names the column itself.
#[tokio::test(flavor = "multi_thread")]
async fn filters_reach_the_files() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE seen AS SELECT 'UA' AS carrier, TIMESTAMP '2026-01-01T00:00:00' AS at, 1 AS n")
        .await
        .unwrap();
    let asked = ".show queryplan <| seen | where carrier == 'UA' and at >= datetime(2026-01-01) and at < datetime(2026-01-02) \
                 | summarize count() by carrier";
    let plan = format!("{:?}", cells(&session, asked).await);
    let filters = plan.split("_filters=[").nth(1).and_then(|rest| rest.split(']').next()).expect("filters in the scan");
    assert!(!filters.contains("kql_") && filters.contains("seen.carrier = Utf8View"), "{filters}");
    assert!(plan.contains("pruning_predicate=at_null_count"), "{plan}");
}
