//! Options of a query: those that `set` gives it and change its answer, and the limits that it asks for.

use std::time::Duration;

use querent_catalog::Principal;
use querent_engine::Limits;

use super::{answered, cells, code_of, flights};
use crate::sql::{admin, rows};

#[tokio::test(flavor = "multi_thread")]
async fn options_change_the_answer() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE marks (at TIMESTAMP, n INT)").await.unwrap();
    rows(&session, "INSERT INTO marks VALUES ('2020-01-01', 1), ('2020-01-02', 2), ('2020-01-03', 3)").await.unwrap();
    let scope = "set query_datetimescope_column = 'at';";
    for (query, expected) in [
        (
            "set query_now = datetime(2020-05-06); print now() - 1d, datetime(now) == now()",
            "2020-05-05T00:00:00.0000000Z True",
        ),
        ("set query_now = datetime(2020-05-06); print ago(1d) == datetime(2020-05-05)", "True"),
        ("set query_take_max_records = 2; range x from 1 to 5 step 1 | sort by x desc", "5|4"),
        (
            "set query_results_apply_getschema; flights | project flight | extend a = 1.5 | project a",
            "a 0 System.Double real",
        ),
        ("set query_results_apply_getschema = false; print 1", "1"),
        ("set best_effort = true; union (print a = 1), nosuch", "1"),
        (
            &format!("{scope} set query_datetimescope_from = datetime(2020-01-02); marks | summarize make_list(n)"),
            "[2,3]",
        ),
        (
            &format!(
                "{scope} set query_datetimescope_from = datetime(2020-01-02); set query_datetimescope_to = datetime(2020-01-02); marks | project n"
            ),
            "2",
        ),
        (&format!("{scope} set query_datetimescope_from = datetime(2020-01-02); flights | count"), "5"),
        ("set servertimeout = 1m; set truncationmaxrecords = 10; set notruncation; print 1", "1"),
    ] {
        let written: Vec<String> = cells(&session, query).await.iter().map(|row| row.join(" ")).collect();
        assert_eq!(written.join("|"), expected, "{query}");
    }
    for query in [
        "set query_now = 5; print now()",
        "set query_now = 'soon'; print now()",
        "set query_take_max_records = 1.5; print 1",
        "set truncationmaxrecords = many; print 1",
        "set truncationmaxsize = many; print 1",
        "set servertimeout = true; print 1",
    ] {
        assert_eq!(code_of(&session, query).await, "kql_invalid", "{query}");
    }
    assert_eq!(code_of(&session, "set best_effort = false; union (print a = 1), nosuch").await, "kql_unknown_table");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_query_are_kept() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let cut = "set truncationmaxrecords = 2; range x from 1 to 5 step 1";
    let mut answers = session.kql_answers(cut, Default::default()).await.unwrap();
    let (_, stats) = answers.next_rows().await.unwrap().unwrap().collect().await.unwrap();
    assert_eq!((stats.rows, stats.truncated), (2, true));
    // Where the answer is one result, as at most doors, more rows are a failure of its own.
    let failed = session.kql(cut).await.unwrap().collect().await.unwrap_err();
    assert_eq!(failed.code(), "kql_too_large");
    assert!(failed.to_string().contains("truncationmaxrecords"), "{failed}");
    let fits = session.kql("set truncationmaxrecords = 5; range x from 1 to 5 step 1").await.unwrap();
    let (_, stats) = fits.collect().await.unwrap();
    assert_eq!((stats.rows, stats.truncated), (5, false));
    // Eight bytes a row.
    let cut = "set truncationmaxsize = 24; range x from 1 to 5 step 1";
    let mut answers = session.kql_answers(cut, Default::default()).await.unwrap();
    let (_, stats) = answers.next_rows().await.unwrap().unwrap().collect().await.unwrap();
    assert_eq!((stats.rows, stats.truncated), (3, true));
    let failed = session.kql(cut).await.unwrap().collect().await.unwrap_err();
    assert_eq!(failed.code(), "kql_too_large");
    assert!(failed.to_string().contains("more than 24 bytes"), "{failed}");
    let fits = session.kql("set truncationmaxsize = 40; range x from 1 to 5 step 1").await.unwrap();
    let (_, stats) = fits.collect().await.unwrap();
    assert_eq!((stats.rows, stats.truncated), (5, false));
    let fewer = session.kql("set truncationmaxrecords = 2; set query_take_max_records = 1; range x from 1 to 5 step 1");
    assert_eq!(fewer.await.unwrap().collect().await.unwrap().1.rows, 1);
    assert_eq!(session.describe_kql(cut).await.unwrap().fields().len(), 1);
    assert!(session.kql("set servertimeout = 10h; print 1").await.is_ok(), "the session's own limit is shorter");
    let endless = super::ENDLESS[0];
    let ended = async { session.kql(&format!("set servertimeout = 200ms; {endless}")).await?.collect().await };
    assert_eq!(ended.await.unwrap_err().code(), "wall_clock_exceeded");
    let error = answered(&session, &format!("set servertimeout = 200ms; {endless}")).await.unwrap_err();
    assert_eq!(error.code(), "wall_clock_exceeded");
    let limits = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
    let short = engine.session(Principal::local_admin(), limits);
    assert_eq!(code_of(&short, &format!("set servertimeout = 10m; {endless}")).await, "wall_clock_exceeded");
}
