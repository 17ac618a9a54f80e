//! Prepared statements: what they say of themselves, their parameters, and what becomes of their handles.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Decimal32Array, FixedSizeBinaryArray, Int32Array, Int64Array, ListArray, NullArray, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Int64Type, IntervalUnit, TimeUnit};
use arrow_flight::Ticket;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, CommandPreparedStatementQuery, CommandPreparedStatementUpdate,
    DoPutPreparedStatementResult, ProstMessageExt,
};
use bytes::Bytes;
use prost::Message;
use querent_catalog::Principal;
use querent_engine::Limits;
use querent_tests::{TestServer, TestSettings};
use tonic::{Code, Status};

use super::{Raw, decode, refused, schema_of, ticket_of};

pub fn row(columns: Vec<ArrayRef>) -> RecordBatch {
    let names = (0..columns.len()).map(|at| at.to_string());
    RecordBatch::try_from_iter_with_nullable(names.zip(columns).map(|(name, column)| (name, column, true))).unwrap()
}

fn numbers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn query(handle: &Bytes) -> CommandPreparedStatementQuery {
    CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() }
}

fn update(handle: &Bytes) -> CommandPreparedStatementUpdate {
    CommandPreparedStatementUpdate { prepared_statement_handle: handle.clone() }
}

impl Raw {
    /// Binds values; returns the handle that has them.
    async fn bind(&mut self, handle: &Bytes, values: RecordBatch) -> Result<Bytes, Status> {
        let answers = self.put(&query(handle), &[values]).await?;
        let bound = DoPutPreparedStatementResult::decode(answers[0].app_metadata.clone()).unwrap();
        Ok(bound.prepared_statement_handle.expect("a handle with the values"))
    }

    /// Returns the first column of a prepared query's rows, as numbers.
    async fn numbers_of(&mut self, handle: &Bytes) -> Result<Vec<i64>, Status> {
        let info = self.info(&query(handle)).await?;
        let announced = schema_of(&info);
        let (schema, batches) = decode(self.fetch(ticket_of(&info)).await?).await;
        assert_eq!(announced, *schema);
        let mut found: Vec<i64> =
            batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        found.sort_unstable();
        Ok(found)
    }
}

#[tokio::test]
async fn a_statement_says_what_it_takes_and_gives() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint, b varchar, d date)").await.unwrap();
    for (sql, result, parameters, is_update) in [
        ("select 1 as a", vec![DataType::Int64], vec![], false),
        (
            "select a from t where a = ? and b like ?",
            vec![DataType::Int64],
            vec![DataType::Int64, DataType::Utf8],
            false,
        ),
        ("select a from t where a in ($1, $1 + 1)", vec![DataType::Int64], vec![DataType::Int64], false),
        ("select ? as x", vec![DataType::Null], vec![DataType::Null], false),
        ("select date_trunc('day', ?) as x", vec![], vec![DataType::Timestamp(TimeUnit::Microsecond, None)], false),
        ("select count(*) as n from t having count(*) > ?", vec![DataType::Int64], vec![DataType::Int64], false),
        ("select a from t where ? between a and 5", vec![DataType::Int64], vec![DataType::Int64], false),
        ("select coalesce(b, ?) as x from t", vec![DataType::Utf8], vec![DataType::Utf8], false),
        ("select case when a = 1 then ? else d end as x from t", vec![DataType::Date32], vec![DataType::Date32], false),
        ("select unnest(?) as x", vec![], vec![DataType::Null], false),
        ("select a from t limit ?", vec![DataType::Int64], vec![DataType::Int64], false),
        ("insert into t values (?, ?, ?)", vec![], vec![DataType::Int64, DataType::Utf8, DataType::Date32], true),
        ("insert into t (b) select b from t where a > ?", vec![], vec![DataType::Int64], true),
        ("delete from t where a = ?", vec![], vec![DataType::Int64], true),
        // JDBC's driver binds nothing but null to a parameter of type null.
        (
            "update t set b = ?, d = ? where a = ?",
            vec![],
            vec![DataType::Utf8, DataType::Date32, DataType::Int64],
            true,
        ),
        (
            "merge into t using (select 1 as k) s on t.a = s.k when matched then update set b = ? \
             when not matched then insert (a, d) values (s.k, ?)",
            vec![],
            vec![DataType::Utf8, DataType::Date32],
            true,
        ),
        (
            "select ?::bigint as x, ? as y",
            vec![DataType::Int64, DataType::Null],
            vec![DataType::Int64, DataType::Null],
            false,
        ),
        // What is told as an update loses its rows.
        (
            "insert into t (a, b) values (?, ?) returning a",
            vec![DataType::Int64],
            vec![DataType::Int64, DataType::Utf8],
            false,
        ),
        (
            "delete from t where a = ? returning b, a",
            vec![DataType::Utf8, DataType::Int64],
            vec![DataType::Int64],
            false,
        ),
        ("create table u (a int)", vec![], vec![], true),
        ("drop table t", vec![], vec![], true),
    ] {
        let prepared = raw.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(prepared.is_update, Some(is_update), "{sql}");
        assert_eq!(
            prepared.dataset.is_none(),
            is_update,
            "{sql}: JDBC takes a statement without columns for an update"
        );
        if let Some(dataset) = prepared.dataset.filter(|_| !result.is_empty()) {
            let types: Vec<_> = dataset.fields().iter().map(|field| field.data_type().clone()).collect();
            assert_eq!(types, result, "{sql}");
        }
        let types: Vec<_> = prepared.parameters.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, parameters, "{sql}");
    }
    // ADBC's clients take UNIMPLEMENTED for a server that prepares nothing, and then have no statement to bind values to.
    let unsupported = refused(raw.prepare("select from t where a = ?").await);
    assert_eq!(unsupported, (Code::InvalidArgument, "unsupported".to_owned()));
    let unsupported = refused(raw.prepare("select from t").await);
    assert_eq!(unsupported, (Code::Unimplemented, "unsupported".to_owned()), "it is sent without being prepared, too");
    for (sql, code) in [
        ("select ?, $1", "sql_plan_error"),
        ("select nothing from t where a = ?", "column_not_found"),
        ("selec ?", "sql_parse_error"),
        ("select 1; select 2", "multiple_statements"),
    ] {
        assert_eq!(refused(raw.prepare(sql).await).1, code, "{sql}");
    }
}

/// JDBC's driver binds nothing but null to a parameter of type null.
#[tokio::test]
async fn parameters_are_told_by_rows_lists_and_sums() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint, b varchar, ts timestamp, l bigint[])").await.unwrap();
    let instant = raw.prepare("select ts from t").await.unwrap().dataset.unwrap().field(0).data_type().clone();
    let (number, text) = (DataType::Int64, DataType::Utf8);
    let numbers = DataType::new_list(DataType::Int64, true);
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    for (condition, parameters) in [
        ("(a, b) = (?, ?)", vec![number.clone(), text.clone()]),
        ("(a, ?) = (?, b)", vec![text.clone(), number.clone()]),
        ("row(a, b) = row(?, ?)", vec![number.clone(), text.clone()]),
        ("(a, b) < (?, ?)", vec![number.clone(), text.clone()]),
        ("(a, b) in ((?, ?), (?, ?))", vec![number.clone(), text.clone(), number.clone(), text]),
        ("a = any(?)", vec![numbers.clone()]),
        ("a > any(?)", vec![numbers.clone()]),
        ("a <> all(?)", vec![numbers]),
        ("? = any(l)", vec![number.clone()]),
        ("l = array[?, a]", vec![number.clone()]),
        ("ts < ? + interval '1 day'", vec![instant.clone()]),
        ("ts - ? < interval '1 day'", vec![instant.clone()]),
        ("ts + ? < timestamp '2024-05-06 00:00:00'", vec![interval]),
        ("ts < ? + interval '1 day' and a = ?", vec![instant, number.clone()]),
    ] {
        let sql = format!("select a from t where {condition}");
        let prepared = raw.prepare(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let types: Vec<_> = prepared.parameters.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, parameters, "{sql}");
    }
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    for (sql, parameters) in [
        ("select value from generate_series(1, ?)", vec![number.clone()]),
        ("select value from generate_series(1, ?) where value > ?", vec![number.clone(), number.clone()]),
        ("select value from generate_series(?, ?)", vec![number.clone(), number]),
        ("select value from generate_series(?, ?, interval '1 day')", vec![time.clone(), time]),
    ] {
        let prepared = raw.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let types: Vec<_> = prepared.parameters.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, parameters, "{sql}");
    }
}

/// A function may take a class of types, of which the likeliest is told; an inner query may name a parameter, of which what is
/// beyond it tells.
#[tokio::test]
async fn parameters_are_told_by_functions_and_beyond_inner_queries() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let columns = "a bigint, b varchar, ts timestamp, l bigint[], s struct(x int, y varchar), m map(varchar, int)";
    raw.rows(&format!("create table t ({columns})")).await.unwrap();
    let (number, text, int) = (DataType::Int64, DataType::Utf8, DataType::Int32);
    let instant = DataType::Timestamp(TimeUnit::Microsecond, None);
    for (sql, parameters) in [
        ("select ts at time zone ? from t", vec![text.clone()]),
        ("select strftime(ts, ?), strptime(b, ?) from t", vec![text.clone(); 2]),
        ("select regexp_extract(b, ?), json_extract(b, ?), concat(b, ?) from t", vec![text.clone(); 3]),
        ("select b glob ?, b similar to ? from t", vec![text.clone(); 2]),
        ("select round(a, ?), lag(a, ?) over (order by a) from t", vec![number.clone(); 2]),
        ("select lead(a, ?, ?) over (order by a), nth_value(a, ?) over (order by a) from t", vec![number.clone(); 3]),
        ("select m[?] from t", vec![text.clone()]),
        ("select abs(?) as x", vec![DataType::Float64]),
        ("select make_date(?, ?, ?) as x", vec![number.clone(); 3]),
        ("select to_days(?) as x", vec![number.clone()]),
        ("select year(?), date_diff('day', ?, ts) from t", vec![instant; 2]),
        ("select count(*) filter (where ?) as n from t", vec![DataType::Boolean]),
        ("select a from t where a in (select ?)", vec![number.clone()]),
        ("with x as (select ? as v) select * from x where v = 3", vec![number.clone()]),
        ("select ? as x union all select a from t", vec![number.clone()]),
        ("insert into t (a, b) select ?, ? from t", vec![number.clone(), text.clone()]),
        (
            "insert into t (l, s, m) values ([?, ?], {'x': ?, 'y': ?}, map {'k': ?})",
            vec![number.clone(), number.clone(), int.clone(), text, int],
        ),
        ("merge into t using (select ? as k) s on t.a = s.k when matched then delete", vec![number]),
    ] {
        let prepared = raw.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let types: Vec<_> = prepared.parameters.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, parameters, "{sql}");
    }
}

#[tokio::test]
async fn values_are_bound_and_bound_again() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t as select value as a from generate_series(1, 100)").await.unwrap();
    let handle = raw.prepare("select a from t where a between ? and ?").await.unwrap().handle;
    let open = refused(raw.numbers_of(&handle).await);
    assert_eq!(open, (Code::InvalidArgument, "sql_plan_error".to_owned()), "values are missing");

    let bound = raw.bind(&handle, row(vec![numbers(&[5]), numbers(&[7])])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [5, 6, 7]);
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [5, 6, 7], "it can be executed again");
    let other: ArrayRef = Arc::new(Int32Array::from(vec![99]));
    let again = raw.bind(&bound, row(vec![other, numbers(&[1_000])])).await.unwrap();
    assert_eq!(raw.numbers_of(&again).await.unwrap(), [99, 100]);
    assert_eq!(raw.numbers_of(&handle).await.unwrap(), [99, 100], "old clients go on with the handle that they had");

    let several = raw.bind(&handle, row(vec![numbers(&[1, 50]), numbers(&[2, 51])])).await.unwrap();
    assert_eq!(raw.numbers_of(&several).await.unwrap(), [1, 2, 50, 51], "each row is an execution");
    // Some clients bind what they have, though that is nothing.
    let answers = raw.put(&query(&several), &[]).await.unwrap();
    let unbound = DoPutPreparedStatementResult::decode(answers[0].app_metadata.clone()).unwrap();
    let unbound = unbound.prepared_statement_handle.unwrap();
    assert_eq!(refused(raw.numbers_of(&unbound).await), open, "values are missing again");
    let closed = raw.prepare("select cast(7 as bigint)").await.unwrap().handle;
    raw.put(&query(&closed), &[]).await.unwrap();
    assert_eq!(raw.numbers_of(&closed).await.unwrap(), [7], "nothing is bound to a statement that takes nothing");
    for wrong in [row(vec![numbers(&[5])]), row(vec![numbers(&[5]), numbers(&[6]), numbers(&[7])])] {
        let bound = raw.bind(&handle, wrong).await.unwrap();
        assert_eq!(refused(raw.numbers_of(&bound).await).1, "sql_plan_error");
    }
}

/// Of a few narrow ones the sum would wrap around.
#[tokio::test]
async fn decimals_are_summed_up_as_wide_ones() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let narrow = Decimal32Array::from(vec![999_999_999]).with_precision_and_scale(9, 0).unwrap();
    for function in ["sum", "avg"] {
        let sql = format!("select cast({function}(d) as bigint) from (select ? as d from generate_series(1, 5))");
        let expected = if function == "sum" { 4_999_999_995 } else { 999_999_999 };
        let handle = raw.prepare(&sql).await.unwrap().handle;
        let bound = raw.bind(&handle, row(vec![Arc::new(narrow.clone())])).await.unwrap();
        assert_eq!(raw.numbers_of(&bound).await.unwrap(), [expected], "{sql}");
        // Those that a statement makes itself.
        let cast = sql.replace('?', "arrow_cast(999999999, 'Decimal32(9, 0)')");
        assert_eq!(raw.number(&cast).await, expected, "{cast}");
    }
}

/// Few functions of bytes take those of a fixed number.
#[tokio::test]
async fn bytes_of_a_fixed_number_are_bytes() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let bytes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([b"xyz"].into_iter()).unwrap());
    let handle =
        raw.prepare("select cast(length(?) + length(cast(? as varchar)) as bigint) as n").await.unwrap().handle;
    let bound = raw.bind(&handle, row(vec![Arc::clone(&bytes), bytes])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [6]);
}

/// The columns of the values are in any order, and a plan that is kept is not that of another order.
#[tokio::test]
async fn named_parameters_get_the_values_of_their_names() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let handle = raw.prepare("select $tens * 10 + $ones as n").await.unwrap().handle;
    let values = |names: [&str; 2]| {
        let columns = [7, 4].map(|value| numbers(&[value]));
        RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap()
    };
    for (names, expected) in
        [(["tens", "ones"], 74), (["ones", "tens"], 47), (["$tens", "$ones"], 74), (["ones", "tens"], 47)]
    {
        let bound = raw.bind(&handle, values(names)).await.unwrap();
        assert_eq!(raw.numbers_of(&bound).await.unwrap(), [expected], "{names:?}");
    }
    let bound = raw.bind(&handle, values(["tens", "others"])).await.unwrap();
    let missing = raw.numbers_of(&bound).await.unwrap_err();
    assert_eq!(missing.code(), Code::InvalidArgument);
    assert!(missing.message().contains("parameter `$ones` has no value"), "{missing:?}");

    let or_five = raw.prepare("select coalesce($a, $b) as n").await.unwrap().handle;
    let untyped: ArrayRef = Arc::new(NullArray::new(1));
    let rows = RecordBatch::try_from_iter_with_nullable([("b", numbers(&[5]), true), ("a", untyped, true)]).unwrap();
    let bound = raw.bind(&or_five, rows).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [5], "a null without a type has a name as well");

    raw.rows("create table t (id bigint, n bigint)").await.unwrap();
    let insert = raw.prepare("insert into t values ($id, $n)").await.unwrap();
    let fields = insert.parameters.fields().iter();
    let described: Vec<_> = fields.map(|field| (field.name().as_str(), field.data_type())).collect();
    assert_eq!(described, [("$id", &DataType::Int64), ("$n", &DataType::Int64)]);
    let rows = RecordBatch::try_from_iter([("n", numbers(&[7, 8])), ("id", numbers(&[1, 2]))]).unwrap();
    assert_eq!(raw.updated(&update(&insert.handle), &[rows]).await.unwrap(), 2);
    assert_eq!(raw.number("select sum(id * n) from t").await, 23);
}

#[tokio::test]
async fn what_is_returned_by_a_prepared_change_arrives_once() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint, b varchar)").await.unwrap();
    let insert = raw.prepare("insert into t values (?, 'x') returning a + 1").await.unwrap().handle;
    let bound = raw.bind(&insert, row(vec![numbers(&[1, 2])])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [2, 3]);
    assert_eq!(raw.number("select count(*) from t").await, 2, "it is executed once");
    let sent = raw.updated(&update(&insert), &[row(vec![numbers(&[3, 4, 5])])]).await.unwrap();
    assert_eq!(sent, 3, "a client that sends it as an update learns how many rows it wrote");
    assert_eq!(raw.number("select count(*) from t").await, 5);
}

/// Some functions have to know the values of their arguments before they are planned.
#[tokio::test]
async fn parameters_are_arguments_of_every_function() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let series = raw.prepare("select value from generate_series(1, ?)").await.unwrap().handle;
    let bound = raw.bind(&series, row(vec![numbers(&[3])])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [1, 2, 3]);
    let days = "select count(*) as n from generate_series(?, ?, interval '1 day')";
    let days = raw.prepare(days).await.unwrap().handle;
    let midnight = |day: i64| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(vec![day * 86_400_000_000])) };
    let bound = raw.bind(&days, row(vec![midnight(19_000), midnight(19_002)])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [3]);
    let part = "select cast(date_part(?, date '2024-05-06') as bigint) as n";
    let part = raw.prepare(part).await.unwrap().handle;
    let month: ArrayRef = Arc::new(StringArray::from(vec!["month"]));
    let bound = raw.bind(&part, row(vec![Arc::clone(&month)])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [5]);
    let begin = "select cast(date_part('day', date_trunc(?, timestamp '2024-05-06 07:08:09')) as bigint) as n";
    let begin = raw.prepare(begin).await.unwrap().handle;
    let bound = raw.bind(&begin, row(vec![month])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [1]);
    let next = raw.prepare("select list_transform([?], x -> x + 1)[1] as n").await.unwrap().handle;
    let bound = raw.bind(&next, row(vec![numbers(&[4])])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [5]);
    let elements = raw.prepare("select unnest(?) as n").await.unwrap().handle;
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(7), Some(8)])]);
    let list: ArrayRef = Arc::new(list);
    let bound = raw.bind(&elements, row(vec![list])).await.unwrap();
    assert_eq!(raw.numbers_of(&bound).await.unwrap(), [7, 8]);
}

#[tokio::test]
async fn rows_of_values_are_one_change() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint not null, b varchar)").await.unwrap();
    let handle = raw.prepare("insert into t (b, a) values (?, ? + 1)").await.unwrap().handle;
    let names: ArrayRef =
        Arc::new(StringArray::from_iter((0..10_000).map(|row| (row % 2 == 0).then(|| row.to_string()))));
    let many: Vec<i64> = (0..10_000).collect();
    assert_eq!(raw.updated(&update(&handle), &[row(vec![names, numbers(&many)])]).await.unwrap(), 10_000);
    assert_eq!(raw.number("select count(*) from t where a = coalesce(b::bigint, a - 1) + 1").await, 10_000);

    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let untyped: ArrayRef = Arc::new(NullArray::new(2));
    assert!(raw.updated(&update(&handle), &[row(vec![untyped, nulls])]).await.is_err(), "`a` may not be null");
    assert_eq!(raw.number("select count(*) from t").await, 10_000, "none of the rows was written");

    let insert = raw.prepare("insert into t select a + ?, 'copy' from t where a <= ?").await.unwrap().handle;
    let twice = row(vec![numbers(&[20_000, 30_000]), numbers(&[3, 3])]);
    assert_eq!(raw.updated(&update(&insert), &[twice]).await.unwrap(), 6);
    let none = RecordBatch::new_empty(row(vec![numbers(&[1]), numbers(&[1])]).schema());
    assert_eq!(raw.updated(&update(&insert), &[none]).await.unwrap(), 0, "no rows of values are no executions");
    assert_eq!(raw.number("select count(*) from t").await, 10_006);
}

#[tokio::test]
async fn a_change_that_reads_its_table_is_executed_row_after_row() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let cases: [(&str, [i64; 2], i64, &str, i64); 6] = [
        ("update steps set a = a + 1 where a = ?", [1, 2], 4, "select count(*) from steps where a = 3", 3),
        ("update steps set b = b + 1 where a = ?", [1, 2], 3, "select cast(sum(b) as bigint) from steps", 54),
        ("delete from steps where a >= ?", [2, 1], 3, "select count(*) from steps", 0),
        (
            "delete from steps where a = (select max(a) from steps) and b > ?",
            [0, 0],
            3,
            "select count(*) from steps",
            0,
        ),
        ("insert into steps select max(a) + ?, 0 from steps", [1, 1], 2, "select max(a) from steps", 4),
        ("insert into steps values (?, (select max(a) from steps))", [8, 9], 2, "select b from steps where a = 9", 8),
    ];
    for kind in ["", "temporary "] {
        for (sql, values, changed, check, expected) in cases {
            raw.rows(&format!("create or replace {kind}table steps (a bigint, b bigint)")).await.unwrap();
            raw.rows("insert into steps values (1, 10), (2, 20), (2, 21)").await.unwrap();
            let handle = raw.prepare(sql).await.unwrap().handle;
            let updated = raw.updated(&update(&handle), &[row(vec![numbers(&values)])]).await.unwrap();
            assert_eq!(updated, changed, "{kind}: {sql}");
            assert_eq!(raw.number(check).await, expected, "{kind}: {sql}");
        }
    }
    // The second row of values is one too large: the first one stays, and the error says so.
    raw.rows("create or replace table heights (a bigint)").await.unwrap();
    raw.rows("insert into heights values (1)").await.unwrap();
    let handle = raw.prepare("insert into heights select max(a) + ? from heights").await.unwrap().handle;
    let refused = raw.updated(&update(&handle), &[row(vec![numbers(&[1, i64::MAX])])]).await.unwrap_err();
    assert!(refused.message().contains("the rows of values before it, 1, were executed and stay"), "{refused}");
    assert_eq!(raw.number("select max(a) from heights").await, 2);
}

/// What is planned for each row of values is executed for a thousand of them after the other.
#[tokio::test]
async fn a_statement_says_how_many_rows_of_values_it_takes_at_once() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint, b bigint)").await.unwrap();
    let session = server.engine().session(Principal::local_admin(), Limits::default());
    for (sql, rows) in [
        ("insert into t values (?, ? + 1)", usize::MAX),
        ("insert into t values (?, (select count(*) from generate_series(1, 3) as g(value) where value < ?))", 1_000),
        ("insert into t select value, 0 from generate_series(1, ?) as g(value)", 1),
        ("delete from t where a = ?", 1_000),
        ("update t set b = ? where a = ?", 1_000),
        ("update t set a = a + 1 where a = ?", 1),
        ("insert into t select max(a) + ?, 0 from t", 1),
    ] {
        assert_eq!(session.describe_sql(sql).await.unwrap().rows_at_once, rows, "{sql}");
    }
}

#[tokio::test]
async fn a_parameter_that_stands_twice_keeps_its_value() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a double, b int)").await.unwrap();
    let value: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![2.5]));
    let twice = raw.prepare("insert into t values ($1, $1)").await.unwrap().handle;
    raw.updated(&update(&twice), &[row(vec![Arc::clone(&value)])]).await.unwrap();
    let computed = raw.prepare("insert into t values ($1 + 0.25, $1)").await.unwrap().handle;
    raw.updated(&update(&computed), &[row(vec![value])]).await.unwrap();
    assert_eq!(raw.number("select count(*) from t where a in (2.5, 2.75)").await, 2);

    for (sql, code) in [
        ("select $20000000000", "sql_plan_error"),
        ("insert into t values ($0, 1)", "sql_plan_error"),
        ("create view v as select * from t where b = ?", "sql_plan_error"),
    ] {
        assert_eq!(refused(raw.prepare(sql).await).1, code, "{sql}");
    }
}

#[tokio::test]
async fn a_handle_is_its_callers_until_it_is_closed() {
    const TOKENS: &str = "reader-tok:read:anna,writer-tok:write:bob";
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let mut anna = Raw::connect(&server).await.token("reader-tok");
    let mut bob = Raw::connect(&server).await.token("writer-tok");
    let handle = anna.prepare("select cast(7 as bigint)").await.unwrap().handle;
    assert_eq!(refused(bob.numbers_of(&handle).await), (Code::PermissionDenied, "forbidden".to_owned()));
    assert_eq!(anna.numbers_of(&handle).await.unwrap(), [7]);
    assert_eq!(refused(anna.prepare("create table t (a int)").await).1, "not_allowed", "rights are checked at once");

    let close = ActionClosePreparedStatementRequest { prepared_statement_handle: handle.clone() };
    let close = close.as_any().encode_to_vec();
    anna.act("ClosePreparedStatement", close.clone()).await.unwrap();
    assert_eq!(refused(anna.numbers_of(&handle).await), (Code::InvalidArgument, "invalid_ticket".to_owned()));
    anna.act("ClosePreparedStatement", close).await.unwrap();
    for garbage in [Bytes::from_static(b""), Bytes::from_static(b"not a handle"), handle.slice(..handle.len() - 1)] {
        assert_eq!(refused(anna.numbers_of(&garbage).await).1, "invalid_ticket");
    }
}

#[tokio::test]
async fn what_was_prepared_or_planned_sees_what_policies_leave_by_now() {
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss,reader-tok:read:anna")).await;
    for sql in [
        "CREATE DATABASE lib",
        "CREATE TABLE lib.p AS SELECT * FROM (VALUES (1, 10), (2, 20)) AS v(a, num)",
        "GRANT SELECT ON lib.p TO SUBJECT anna",
    ] {
        server.execute(sql).await;
    }
    let mut anna = Raw::connect(&server).await.token("reader-tok");
    let handle = anna.prepare("select num from lib.p").await.unwrap().handle;
    let planned = anna.plan("select num from lib.p").await.unwrap();
    assert_eq!(anna.numbers_of(&handle).await.unwrap(), [10, 20]);

    server.execute("CREATE ROW POLICY second ON lib.p USING (a = 2) TO SUBJECT anna").await;
    assert_eq!(anna.numbers_of(&handle).await.unwrap(), [20]);
    let (_, batches) = decode(anna.fetch(ticket_of(&planned)).await.unwrap()).await;
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 20);

    server.execute("REVOKE SELECT ON lib.p FROM SUBJECT anna").await;
    assert_eq!(refused(anna.numbers_of(&handle).await).1, "database_not_found");
    assert_eq!(refused(anna.fetch(ticket_of(&planned)).await).1, "database_not_found");
}

#[tokio::test]
async fn handles_outlive_the_server_and_cost_nothing_while_open() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let handle = raw.prepare("select cast(7 as bigint)").await.unwrap().handle;
    let change = raw.plan("create table t (a int)").await.unwrap();
    for _ in 0..200 {
        raw.prepare("select ?").await.unwrap();
    }
    drop(raw);
    let server = TestServer::start_in(server.stop().await, TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    assert_eq!(raw.numbers_of(&handle).await.unwrap(), [7]);
    let stale = refused(raw.fetch(ticket_of(&change)).await);
    assert_eq!(stale.1, "invalid_ticket", "a change that was planned before the restart is not executed by accident");
}

#[tokio::test]
async fn a_prepared_command_is_a_ticket_of_its_own_and_has_a_schema() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let handle = raw.prepare("select cast(7 as bigint) as a").await.unwrap().handle;
    let command = query(&handle).as_any().encode_to_vec();
    let (schema, batches) = decode(raw.fetch(Ticket::new(command.clone())).await.unwrap()).await;
    assert_eq!((schema.field(0).name().as_str(), batches[0].num_rows()), ("a", 1));
    let described = raw.client.get_schema(raw.request(super::descriptor(&query(&handle)))).await.unwrap();
    assert_eq!(arrow::datatypes::Schema::try_from(described.into_inner()).unwrap(), *schema);

    let change = raw.prepare("create table t (a int)").await.unwrap().handle;
    let ticket = Ticket::new(query(&change).as_any().encode_to_vec());
    assert_eq!(refused(raw.fetch(ticket).await).1, "unsupported", "a ticket could be sent twice");
}

#[tokio::test]
async fn long_statements_travel_once() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let long = format!("select length('{}')::bigint as n", "x".repeat(9_000_000));
    let info = raw.plan(&long).await.unwrap();
    assert!(info.encoded_len() < 100_000, "ADBC takes 16 MiB and the text is in the ticket and the descriptor");
    assert_eq!(raw.number(&long).await, 9_000_000);
    let prepared = raw.prepare(&long).await.unwrap();
    assert!(prepared.handle.len() < 100_000);
    assert_eq!(raw.numbers_of(&prepared.handle).await.unwrap(), [9_000_000]);
}

#[tokio::test]
async fn values_for_a_query_in_kql_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await.header("x-querent-language", "kql");
    let handle = raw.prepare("declare query_parameters(n: long = 1); print a = n").await.unwrap().handle;
    let bound = refused(raw.bind(&handle, row(vec![numbers(&[5])])).await);
    let updated = refused(raw.updated(&update(&handle), &[row(vec![numbers(&[5])])]).await);
    assert_eq!((bound.0, bound.1.as_str()), (Code::InvalidArgument, "bad_request"));
    assert_eq!(updated, bound);
    assert_eq!(raw.numbers_of(&handle).await.unwrap(), [1]);
}
