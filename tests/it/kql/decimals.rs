//! Decimals of 34 significant digits: computed, added up, stored, and as readers of Arrow have them.

use arrow::datatypes::DataType;

use super::{answered, cells};
use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn decimals_keep_their_digits() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for (query, expected) in [
        ("print decimal(1.23456789012345678901)", "1.23456789012345678901"),
        (
            "print decimal(1) / 3, decimal(2) / 3",
            "0.3333333333333333333333333333333333 0.6666666666666666666666666666666667",
        ),
        ("print todecimal('3.14159265358979323846') * 2", "6.28318530717958647692"),
        (
            "print todecimal(9223372036854775807) * todecimal(9223372036854775807)",
            "85070591730234615847396907784232500000",
        ),
        ("print decimal(0.1) + decimal(0.2) == decimal(0.3), decimal(10) % 3, -decimal(1.50)", "True 1 -1.5"),
        (
            "print round(decimal(2.5)), round(decimal(1.005), 2), ceiling(decimal(-1.5)), abs(decimal(-3.10))",
            "3 1.01 -1 3.1",
        ),
        (
            "print bin(decimal(7.77), decimal(0.5)), bin_at(decimal(7.7), 1, decimal(0.25)), floor(decimal(-1.5), 1)",
            "7.5 7.25 -2",
        ),
        ("print decimal(1) / 0, todecimal('abc'), todecimal(1e300), gettype(decimal(1))", "null null null decimal"),
        (
            "print tolong(decimal(-9.99)), todouble(decimal(0.1)), tostring(decimal(1.10)), tobool(decimal(0.0))",
            "-9 0.1 1.1 False",
        ),
        ("print min_of(decimal(2), 1.5), max_of(decimal(2), 1.5), decimal(1.5) between (1 .. 2)", "1.5 2 True"),
        (
            "print parse_version('99999999.99999999.99999999.99999999') \
             > parse_version('99999999.99999999.99999999.99999998')",
            "True",
        ),
        (
            "datatable(d: decimal) [decimal(0.1), decimal(0.2), decimal(null)] \
             | summarize sum(d), avg(d), min(d), max(d), dcount(d), count()",
            "0.3 0.15 0.1 0.2 2 3",
        ),
        ("datatable(d: decimal) [] | summarize sum(d), avg(d)", "0 null"),
        ("datatable(d: decimal) [1, 1, 2] | summarize n = count() by d | sort by d desc | project n", "1|2"),
        ("datatable(d: decimal) [1, 2] | join kind=inner (print d = decimal(2.0)) on d | project d", "2"),
        (
            "datatable(d: decimal) [1, 3] | serialize | extend s = row_cumsum(d), p = prev(d) | project s, p",
            "1 null|4 1",
        ),
    ] {
        let written: Vec<String> = cells(&session, query).await.iter().map(|row| row.join(" ")).collect();
        assert_eq!(written.join("|"), expected, "{query}");
    }
}

/// A stored decimal leaves as it is stored, a computed one with 18 digits behind the point.
#[tokio::test(flavor = "multi_thread")]
async fn decimals_leave_in_types_that_readers_know() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE prices (price DECIMAL(10,2), wide DECIMAL(38,0), big BIGINT UNSIGNED)").await.unwrap();
    rows(
        &session,
        "INSERT INTO prices SELECT 1.50, CAST('12345678901234567890123456789012345678' AS DECIMAL(38,0)), \
                  18446744073709551615",
    )
    .await
    .unwrap();
    let (_, kept) = answered(&session, "prices | project price, wide, big").await.unwrap();
    assert_eq!(kept, [["1.5", "12345678901234567890123456789012345678", "18446744073709551615"]]);
    let query =
        "prices | where price > 1.25 | sort by price asc | project price, wide, big, third = price / 3 | take 1";
    let (batches, _) = session.kql(query).await.unwrap().collect().await.unwrap();
    let types: Vec<DataType> = batches[0].schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let decimal = DataType::Decimal128;
    assert_eq!(types, [decimal(10, 2), decimal(38, 0), decimal(20, 0), decimal(38, 18)]);
    let written = batches[0]
        .columns()
        .iter()
        .map(|column| arrow::util::display::array_value_to_string(column.as_ref(), 0).unwrap());
    assert_eq!(
        written.collect::<Vec<_>>(),
        ["1.50", "12345678901234567890123456789012345678", "18446744073709551615", "0.500000000000000000"]
    );
    assert_eq!(session.describe_kql(query).await.unwrap(), batches[0].schema());
}
