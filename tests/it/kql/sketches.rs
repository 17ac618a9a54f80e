//! Sketches, schemas and the like: what aggregates make, stored, merged and read again.

use super::{cells, code_of, flights};
use crate::sql::admin;

#[tokio::test(flavor = "multi_thread")]
async fn sketches_are_stored_merged_and_read() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    for (query, expected) in [
        (
            "range x from 1 to 1000 step 1 | summarize h = hll(x % 300) | project dcount_hll(h), hll_isvalid(h)",
            "300 True",
        ),
        (
            "range x from 1 to 1000 step 1 | summarize h = hll(x) by g = x % 7 | summarize h = hll_merge(h) | project dcount_hll(h)",
            "1000",
        ),
        (
            "range x from 1 to 100 step 1 | summarize a = hll_if(x, x <= 60), b = hll_if(x, x > 40, 4) | project dcount_hll(hll_merge(a, b)), dcount_hll(a)",
            "100 60",
        ),
        // A sketch is the string of it: it can be written and read back.
        (
            "range x from 1 to 1000 step 1 | summarize h = tostring(hll(x)) by g = x % 2 | summarize h = hll_merge(todynamic(h)) | project dcount_hll(h)",
            "1000",
        ),
        (
            "flights | where delay > 1000000 | summarize h = hll(delay), t = tdigest(delay) | project dcount_hll(h), percentile_tdigest(t, 50)",
            "null null",
        ),
        (
            "range x from 1 to 1000 step 1 | summarize t = tdigest(x) by g = x % 7 | summarize t = tdigest_merge(t) | project percentile_tdigest(t, 90, typeof(long)), rank_tdigest(t, 685), percentrank_tdigest(t, 500), percentiles_array_tdigest(t, 1, 99), percentiles_array_tdigest(t, dynamic([50]))",
            "900 685.0 50.0 [10,990] [500]",
        ),
        (
            "datatable(t:datetime)[datetime(2020-01-01), datetime(2020-01-03)] | summarize s = tdigest(t) | project percentile_tdigest(s, 100, typeof(datetime)), rank_tdigest(s, datetime(2020-01-02)), rank_tdigest(s, 5)",
            "2020-01-03T00:00:00.0000000Z 1.0 null",
        ),
        ("print dcount_hll(dynamic({})), tdigest_isvalid('x'), hll_merge(dynamic(1), dynamic(2))", "null False null"),
        ("range x from 1 to 10 step 1 | extend t = '1234567890' | summarize sum(estimate_data_size(*))", "180"),
        (
            "set query_bin_auto_size=1h; set query_bin_auto_at=datetime(2017-01-01 00:05); range t from datetime(2017-01-01 00:05) to datetime(2017-01-01 02:00) step 1m | summarize count() by bin_auto(t) | project count_ | sort by count_ desc",
            "60|56",
        ),
        ("print current_database(), current_principal(), isnull(ingestion_time())", "default local True"),
        (
            "datatable(v:dynamic)[dynamic({'x':1, 'y':3.5}), dynamic({'x':'s', 'z':[1, 2, 3]}), dynamic({'y':{'w':'zzz'}, 't':['aa', 'bb'], 'z':['foo']})] | summarize s = buildschema(v) | project tostring(s) == tostring(dynamic({'t':{'`indexer`':'string'},'x':['long','string'],'y':['double',{'w':'string'}],'z':{'`indexer`':['long','string']}}))",
            "True",
        ),
    ] {
        let rows: Vec<String> = cells(&session, query).await.into_iter().map(|row| row.join(" ")).collect();
        assert_eq!(rows.join("|"), expected, "{query}");
    }
    for (query, code) in [
        ("flights | summarize hll(delay, 9)", "kql_invalid"),
        ("flights | summarize tdigest(carrier)", "kql_type_mismatch"),
        ("flights | summarize hll_merge(delay)", "kql_type_mismatch"),
        ("print x = dynamic(1) | summarize hll_merge(x)", "invalid_value"),
        ("print bin_auto(5)", "kql_invalid"),
        ("print current_database(1)", "kql_invalid"),
    ] {
        assert_eq!(code_of(&session, query).await, code, "{query}");
    }
}
