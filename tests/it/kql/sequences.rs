//! `scan`: rows in their order as sequences of steps.

use super::{answered, cells, code_of, flights};
use crate::sql::{admin, engine};

#[tokio::test(flavor = "multi_thread")]
async fn steps_carry_what_they_matched() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let events = "let E = datatable(t:long, e:string)[0,'A', 1,'Start', 2,'B', 3,'D', 4,'Stop', 6,'C', 8,'Start', 11,'E', 12,'Stop'];";
    for (query, expected) in [
        (
            "range v from 1 to 4 step 1 | scan declare (sum:long = 0) with (step s: true => sum = v + s.sum;)",
            "1 1|2 3|3 6|4 10",
        ),
        // A declared column is its default until a step assigns it; what was assigned is under the step's name.
        (
            "range v from 1 to 3 step 1 | scan declare (a:long = 0, b:long = 1) with (step s: true => a = s.b, b = s.a + v;)",
            "1 1 1|2 1 3|3 3 4",
        ),
        (
            "range v from 1 to 3 step 1 | scan declare (a:long) with (step s: true => a = iff(isnull(s.a), 10, s.a + 1), v = v * 2;)",
            "2 10|4 11|6 12",
        ),
        // Rows that match no step are left out; each sequence has a number.
        (
            "E | sort by t asc | scan with_match_id = id with (step s1: e == 'Start'; step s2: e != 'Start' and e != 'Stop' and t - s1.t <= 5; step s3: e == 'Stop' and t - s1.t <= 5;)",
            "1 Start 0|2 B 0|3 D 0|4 Stop 0|8 Start 1|11 E 1|12 Stop 1",
        ),
        (
            "E | sort by t asc | scan declare (began:long) with (step inside: true => began = iff(isnull(inside.began), t, inside.began); step outside output=none: t - inside.began > 5;)",
            "0 A 0|1 Start 0|2 B 0|3 D 0|4 Stop 0|6 C 6|8 Start 6|11 E 6|12 Stop 12",
        ),
        (
            "datatable(g:string, v:long)['a',1, 'b',5, 'a',2, 'b',6] | sort by v asc | scan partition by g declare (n:long = 0) with (step s: true => n = s.n + 1;) | sort by g asc, v asc",
            "a 1 1|a 2 2|b 5 1|b 6 2",
        ),
        ("range v from 1 to 3 step 1 | scan with (step s: v > 5;)", ""),
        // Of each sequence the step's last row.
        (
            "datatable(g:string, v:long)['a',1, 'b',5, 'a',2, 'b',6] | sort by v asc | scan partition by g declare (sum:long = 0) with (step s output=last: true => sum = v + s.sum;) | sort by g asc",
            "a 2 3|b 6 11",
        ),
        (
            "E | sort by t asc | scan with_match_id = id with (step s1: e == 'Start'; step s2 output=last: e != 'Start' and e != 'Stop' and t - s1.t <= 5; step s3: e == 'Stop' and t - s1.t <= 5;)",
            "1 Start 0|3 D 0|4 Stop 0|8 Start 1|11 E 1|12 Stop 1",
        ),
    ] {
        let query = format!("{} {query}", if query.starts_with('E') { events } else { "" });
        let rows: Vec<String> = cells(&session, &query).await.into_iter().map(|row| row.join(" ")).collect();
        assert_eq!(rows.join("|"), expected, "{query}");
    }
    for (query, code) in [
        ("flights | scan with (step s: true;)", "kql_invalid"),
        ("range v from 1 to 3 step 1 | scan with (step s: true => n = 1;)", "kql_unknown_column"),
        ("range v from 1 to 3 step 1 | scan with (step s: true => v = s.nope;)", "kql_unknown_column"),
        ("range v from 1 to 3 step 1 | scan declare (v:long) with (step s: true;)", "kql_invalid"),
        ("range v from 1 to 3 step 1 | scan with (step s optional: true;)", "kql_not_supported"),
    ] {
        assert_eq!(code_of(&session, query).await, code, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn funnels_count_how_far_a_sequence_came() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let events = "datatable(u:string, at:datetime, s:string)[
        'ann', datetime(2024-01-01 00:00), 'open', 'ann', datetime(2024-01-01 00:30), 'cart',
        'ann', datetime(2024-01-01 02:00), 'buy', 'bob', datetime(2024-01-01 01:00), 'cart',
        'bob', datetime(2024-01-01 02:00), 'open', 'bob', datetime(2024-01-01 02:00), 'cart',
        'cid', datetime(2024-01-01 05:00), 'open', 'cid', datetime(2024-01-01 09:00), 'open',
        'cid', datetime(2024-01-01 09:40), 'cart', 'cid', datetime(2024-01-02 00:00), 'buy',
        'dan', datetime(2024-01-02 00:00), 'open']";
    let funnel = "evaluate funnel_sequence_completion(u, at, datetime(2024-01-01), datetime(2024-01-03), 1d, s, \
                  dynamic(['open', 'cart', 'buy']), dynamic([1h, 1d]))";
    let (columns, rows) = answered(&session, &format!("{events} | {funnel}")).await.unwrap();
    assert_eq!(columns, ["at:datetime", "s:string", "Period:timespan", "dcount:long"]);
    let rows: Vec<String> =
        rows.iter().map(|row| format!("{} {} {} {}", &row[0][8..10], row[1], row[2], row[3])).collect();
    // What began on one day does not end on the next, and a later beginning is the nearer one.
    assert_eq!(
        rows,
        [
            "01 open 01:00:00 3",
            "01 cart 01:00:00 3",
            "01 buy 01:00:00 0",
            "01 open 1.00:00:00 3",
            "01 cart 1.00:00:00 3",
            "01 buy 1.00:00:00 1",
            "02 open 01:00:00 1",
            "02 open 1.00:00:00 1",
        ]
    );
    let twice = "datatable(u:long, at:long, s:string)[1, 0, 'a', 2, 0, 'a', 2, 3, 'a'] \
                 | evaluate funnel_sequence_completion(u, at, 0, 9, 10, s, dynamic(['a', 'a']), dynamic([5])) | project dcount";
    assert_eq!(answered(&session, twice).await.unwrap().1, [["2"], ["1"]]);
    for (wrong, code) in [
        (funnel.replace("dynamic(['open', 'cart', 'buy'])", "dynamic([])"), "kql_invalid"),
        (funnel.replace("dynamic(['open', 'cart', 'buy'])", "'open'"), "kql_invalid"),
        ("evaluate funnel_sequence_completion(u, at)".to_owned(), "kql_invalid"),
        (funnel.replace("_completion", ""), "kql_invalid"),
    ] {
        assert_eq!(code_of(&session, &format!("{events} | {wrong}")).await, code, "{wrong}");
    }
}
