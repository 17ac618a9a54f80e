//! The order of rows: what a `sort` or `serialize` made stays what later operators take, list and number rows by.

use super::cells;
use crate::sql::{admin, engine};

#[tokio::test(flavor = "multi_thread")]
async fn rows_stay_in_their_order() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let pairs = "let P = range x from 1 to 4 step 1 | extend a = pack_array(x, x * 10) | sort by x desc;";
    let rows = "let R = range x from 1 to 20 step 1 | sort by x asc;";
    for (query, expected) in [
        // Elements are where their row was, and in it as in their value.
        ("P | mv-expand a to typeof(long) | take 3", "4 4|4 40|3 3"),
        ("P | mv-expand a to typeof(long) | summarize make_list(a)", "[4,40,3,30,2,20,1,10]"),
        ("P | mv-expand with_itemindex=i a to typeof(long) | where i == 1 | take 2", "4 40 1|3 30 1"),
        (
            "P | mv-expand a to typeof(long) | mv-expand b = pack_array(a, -a) to typeof(long) | take 3 | project b",
            "4|-4|40",
        ),
        ("P | mv-expand a to typeof(long) | extend n = row_number() | where n == 4 | project a", "30"),
        ("P | mv-apply a to typeof(long) on (extend b = a + 1) | summarize make_list(b)", "[5,41,4,31,3,21,2,11]"),
        (
            "P | mv-apply a to typeof(long) on (extend n = row_number() | where n == 2 | project a) | take 2 | project a",
            "40|30",
        ),
        ("P | mv-apply a to typeof(long) on (take 1) | take 2 | project a", "4|3"),
        ("print toscalar(P | mv-expand a to typeof(long) | project a)", "4"),
        (
            "P | mv-expand a to typeof(long) | evaluate narrow() | where Row == 1 and Column == 'a' | project Value",
            "40",
        ),
        // So are rows of functions that restart.
        ("R | extend n = row_number(1, x % 5 == 0) | take 3", "1 1|2 2|3 3"),
        ("R | extend n = row_number(1, x % 5 == 0) | where x > 4 | take 2", "5 1|6 2"),
        ("R | extend n = row_cumsum(x, x % 10 == 0) | summarize make_list(n)", SUMS),
        ("R | extend n = row_rank_min(x / 2, x == 4) | take 5 | project n", "1|2|2|1|1"),
        ("R | where row_number(1, x % 5 == 0) == 2 | take 2", "2|6"),
        ("datatable(v:long)[3, 1, 2] | serialize | extend n = row_cumsum(v, v == 1) | take 3", "3 3|1 1|2 3"),
        ("R | extend y = x * 2 | take 2", "1 2|2 4"),
    ] {
        let cells = cells(&session, &format!("{pairs} {rows} {query}")).await;
        let written: Vec<String> = cells.iter().map(|row| row.join(" ")).collect();
        assert_eq!(written.join("|"), expected, "{query}");
    }
}

/// The sums of 1 to 20 that begin again at 10 and 20.
const SUMS: &str = "[1,3,6,10,15,21,28,36,45,10,21,33,46,60,75,91,108,126,145,20]";
