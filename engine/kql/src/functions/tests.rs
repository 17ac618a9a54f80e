//! Functions and operators on literals and on columns, as the engine calls them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{Field, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{BoundFunction, FunctionContext, FunctionError, ScalarOperator, bind, operator};
use crate::ast::{BinaryOperator, ListOperator, TextMatch, TextMatchKind};
use crate::types::{DECIMAL_PRECISION, DECIMAL_SCALE, KqlType};
use crate::values;

/// 2020-01-01.
const NOW: i64 = 637_134_336_000_000_000;

/// A literal: its type and its value.
type TypedScalar = (KqlType, ScalarValue);

fn long(value: i64) -> TypedScalar {
    (KqlType::Long, ScalarValue::Int64(Some(value)))
}

fn int(value: i32) -> TypedScalar {
    (KqlType::Int, ScalarValue::Int32(Some(value)))
}

fn real(value: f64) -> TypedScalar {
    (KqlType::Real, ScalarValue::Float64(Some(value)))
}

fn bool(value: bool) -> TypedScalar {
    (KqlType::Bool, ScalarValue::Boolean(Some(value)))
}

fn text(value: &str) -> TypedScalar {
    (KqlType::String, ScalarValue::from(value))
}

fn dynamic(json: &str) -> TypedScalar {
    (KqlType::Dynamic, ScalarValue::from(json))
}

fn datetime(value: &str) -> TypedScalar {
    (KqlType::DateTime, ScalarValue::Int64(Some(values::parse_datetime(value).unwrap())))
}

fn timespan(value: &str) -> TypedScalar {
    (KqlType::TimeSpan, ScalarValue::Int64(Some(values::parse_timespan(value).unwrap())))
}

fn decimal(value: &str) -> TypedScalar {
    let stored = values::parse_decimal(value);
    (KqlType::Decimal, ScalarValue::Decimal256(stored, DECIMAL_PRECISION, DECIMAL_SCALE))
}

fn null(kql_type: KqlType) -> TypedScalar {
    (kql_type, ScalarValue::try_from(&kql_type.arrow_type()).unwrap())
}

fn invoke(bound: &BoundFunction, columns: Vec<ColumnarValue>, rows: usize) -> ColumnarValue {
    try_invoke(bound, columns, rows).unwrap()
}

fn try_invoke(bound: &BoundFunction, columns: Vec<ColumnarValue>, rows: usize) -> Result<ColumnarValue> {
    let fields = columns.iter().map(|column| Arc::new(Field::new("", column.data_type(), true))).collect();
    let return_field = Arc::new(Field::new("", bound.returns.arrow_type(), true));
    let config_options = Arc::new(ConfigOptions::default());
    let args =
        ScalarFunctionArgs { args: columns, arg_fields: fields, number_rows: rows, return_field, config_options };
    bound.function.invoke_with_args(args)
}

/// The text of what a function makes of literals, and of columns that hold them twice, which must be the same.
fn evaluate(bound: &BoundFunction, arguments: &[TypedScalar]) -> String {
    let scalars = arguments.iter().map(|(_, value)| ColumnarValue::Scalar(value.clone())).collect();
    let array = invoke(bound, scalars, 1).into_array(1).unwrap();
    assert_eq!(array.data_type(), &bound.returns.arrow_type());
    let shown = show(bound.returns, &array, 0);
    let columns = arguments.iter().map(|(_, value)| ColumnarValue::Array(value.to_array_of_size(2).unwrap())).collect();
    let array = invoke(bound, columns, 2).into_array(2).unwrap();
    assert_eq!(show(bound.returns, &array, 1), shown, "as columns");
    shown
}

fn show(kql_type: KqlType, array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) { "null".to_owned() } else { values::format_value(kql_type, array, row) }
}

fn types(arguments: &[TypedScalar]) -> Vec<KqlType> {
    arguments.iter().map(|(kql_type, _)| *kql_type).collect()
}

fn call(name: &str, arguments: &[TypedScalar]) -> String {
    let bound = bind(name, &types(arguments), FunctionContext { now_ticks: NOW });
    evaluate(&bound.unwrap_or_else(|error| panic!("{name}: {error:?}")), arguments)
}

fn binary(operation: BinaryOperator, left: TypedScalar, right: TypedScalar) -> String {
    let arguments = [left, right];
    evaluate(&operator(ScalarOperator::Binary(operation), &types(&arguments)).unwrap(), &arguments)
}

fn apply(operation: ScalarOperator, arguments: &[TypedScalar]) -> String {
    evaluate(&operator(operation, &types(arguments)).unwrap(), arguments)
}

#[track_caller]
fn all(cases: &[(String, &str)]) {
    for (index, (found, expected)) in cases.iter().enumerate() {
        assert_eq!(found, expected, "case {index}");
    }
}

#[test]
fn arithmetic_is_kustos() {
    use BinaryOperator::{Add, Divide, Modulo, Multiply, Subtract};
    all(&[
        (binary(Add, int(i32::MAX), int(1)), "2147483648"),
        (binary(Add, long(i64::MAX), long(1)), "-9223372036854775808"),
        (binary(Divide, int(-7), long(2)), "-3"),
        (binary(Divide, long(1), long(0)), "null"),
        (binary(Divide, real(1.0), real(0.0)), "inf"),
        (binary(Divide, long(10), real(4.0)), "2.5"),
        (binary(Modulo, long(-7), long(3)), "2"),
        (binary(Modulo, long(7), long(-3)), "1"),
        (binary(Modulo, real(-5.5), real(3.0)), "0.5"),
        (binary(Modulo, timespan("1d"), timespan("5h")), "04:00:00"),
        (binary(Multiply, timespan("1d"), real(2.5)), "2.12:00:00"),
        (binary(Multiply, long(2), timespan("1d")), "2.00:00:00"),
        (binary(Divide, timespan("1.5h"), int(2)), "00:45:00"),
        (binary(Divide, timespan("1d"), timespan("1h")), "24.0"),
        (binary(Subtract, datetime("2020-06-15"), datetime("2020-06-14")), "1.00:00:00"),
        (binary(Add, datetime("9999-12-31 23:59:59.9999999"), timespan("1tick")), "null"),
        (binary(Add, decimal("0.1"), decimal("0.2")), "0.3"),
        (binary(Divide, decimal("10"), int(4)), "2.5"),
        (binary(Add, null(KqlType::Int), long(1)), "null"),
        (apply(ScalarOperator::Negate, &[int(i32::MIN)]), "2147483648"),
        (apply(ScalarOperator::Negate, &[timespan("1d")]), "-1.00:00:00"),
    ]);
    assert!(operator(ScalarOperator::Binary(Add), &[KqlType::String, KqlType::Long]).is_err());
    assert!(operator(ScalarOperator::Binary(Multiply), &[KqlType::DateTime, KqlType::DateTime]).is_err());
}

#[test]
fn equality_is_total_and_order_is_not() {
    use BinaryOperator::{Equal, Greater, Less, NotEqual};
    all(&[
        (binary(Equal, null(KqlType::Long), long(1)), "False"),
        (binary(NotEqual, null(KqlType::Long), long(1)), "True"),
        (binary(Equal, null(KqlType::Long), null(KqlType::Long)), "null"),
        (binary(Less, null(KqlType::Long), long(1)), "null"),
        (binary(Equal, real(f64::NAN), real(f64::NAN)), "False"),
        (binary(NotEqual, real(f64::NAN), real(f64::NAN)), "True"),
        (binary(Equal, int(1), real(1.0)), "True"),
        (binary(Equal, text("café"), text("Café")), "False"),
        (binary(BinaryOperator::EqualIgnoreCase, text("café"), text("CAFÉ")), "True"),
        (binary(Greater, dynamic("1.5"), long(1)), "True"),
        (binary(Equal, dynamic("\"a\""), text("a")), "True"),
        (binary(Less, dynamic("\"2020-01-01\""), datetime("2020-01-02")), "True"),
        (apply(ScalarOperator::Between { negated: false }, &[long(5), long(1), long(5)]), "True"),
        (apply(ScalarOperator::Between { negated: true }, &[null(KqlType::Long), long(1), long(5)]), "null"),
        (
            apply(
                ScalarOperator::Between { negated: false },
                &[datetime("2020-01-05"), datetime("2020-01-01"), timespan("5d")],
            ),
            "True",
        ),
    ]);
    assert!(operator(ScalarOperator::Binary(Less), &[KqlType::String, KqlType::Long]).is_err());
    for comparison in [Equal, NotEqual, Less, Greater] {
        assert!(operator(ScalarOperator::Binary(comparison), &[KqlType::Dynamic, KqlType::Dynamic]).is_err());
    }
    assert!(operator(ScalarOperator::Between { negated: false }, &[KqlType::Dynamic; 3]).is_err());
}

#[test]
fn strings_are_matched_and_listed() {
    let matching = |kind, negated, case_sensitive| BinaryOperator::Text(TextMatch { kind, negated, case_sensitive });
    let is_in = ScalarOperator::List(ListOperator::In { negated: false, ignore_case: false });
    let not_in = ScalarOperator::List(ListOperator::In { negated: true, ignore_case: false });
    let in_any_case = ScalarOperator::List(ListOperator::In { negated: false, ignore_case: true });
    all(&[
        (binary(matching(TextMatchKind::Has, false, false), text("a_b"), text("A")), "True"),
        (binary(matching(TextMatchKind::Has, true, false), text("alphabeta"), text("alpha")), "True"),
        (binary(matching(TextMatchKind::Has, false, true), text("Quick"), text("quick")), "False"),
        (binary(matching(TextMatchKind::Contains, false, false), text("emoji😀here"), text("😀HERE")), "True"),
        (binary(matching(TextMatchKind::Contains, true, false), null(KqlType::Dynamic), text("a")), "True"),
        (binary(BinaryOperator::MatchesRegex, text("a1"), text("[a-z][0-9]")), "True"),
        (apply(is_in, &[long(2), long(1), int(2)]), "True"),
        (apply(is_in, &[real(2.0), long(1), long(2)]), "True"),
        (apply(is_in, &[text("b"), dynamic("[\"a\",\"b\"]")]), "True"),
        (apply(is_in, &[null(KqlType::Long), long(1)]), "False"),
        (apply(not_in, &[null(KqlType::Long), long(1)]), "True"),
        (apply(in_any_case, &[text("MÜLLER"), text("müller")]), "True"),
        (apply(is_in, &[datetime("2020-01-01"), datetime("2020-01-01")]), "True"),
        (apply(ScalarOperator::List(ListOperator::HasAny), &[text("x-beta"), text("alpha"), text("Beta")]), "True"),
        (apply(ScalarOperator::List(ListOperator::HasAll), &[text("x-beta"), dynamic("[\"x\",\"alpha\"]")]), "False"),
    ]);
}

#[test]
fn conversions_give_null_and_never_fail() {
    all(&[
        (call("toint", &[text("0xFF")]), "255"),
        (call("toint", &[text("2147483648")]), "null"),
        (call("toint", &[timespan("1h")]), "1640261632"),
        (call("tolong", &[real(-9.99)]), "-9"),
        (call("tolong", &[real(f64::INFINITY)]), "null"),
        (call("todouble", &[text(" 3.14 ")]), "3.14"),
        (call("tobool", &[text("-1")]), "True"),
        (call("toint", &[dynamic("true")]), "1"),
        (call("tostring", &[dynamic("true")]), "true"),
        (call("tostring", &[bool(true)]), "True"),
        (call("tostring", &[null(KqlType::Long)]), ""),
        (call("tostring", &[dynamic("{\"a\":\"b\"}")]), "{\"a\":\"b\"}"),
        (call("todatetime", &[text("2020-02-30")]), "null"),
        (call("todatetime", &[long(1)]), "0001-01-01T00:00:00.0000001Z"),
        (call("totimespan", &[text("1.02:03:04.5")]), "1.02:03:04.5000000"),
        (call("toguid", &[text("xyz")]), "null"),
        (call("toguid", &[long(1)]), "null"),
        (call("todecimal", &[text("3.14159")]), "3.14159"),
        (call("parse_json", &[text("not json")]), "not json"),
        (call("parse_json", &[text("null")]), "null"),
        (call("gettype", &[dynamic("1.5")]), "double"),
        (call("gettype", &[null(KqlType::Dynamic)]), "null"),
        (call("gettype", &[dynamic("{}")]), "dictionary"),
    ]);
}

#[test]
fn string_functions_count_characters() {
    all(&[
        (call("strlen", &[text("👨‍👩‍👧")]), "5"),
        (call("string_size", &[text("café")]), "5"),
        (call("substring", &[text("abcdef"), long(-2)]), "ef"),
        (call("substring", &[text("hello"), long(1), long(-1)]), ""),
        (call("substring", &[text("a😀b"), long(1), long(1)]), "😀"),
        (call("indexof", &[text("abcdefg"), text("cde"), long(1), long(2)]), "2"),
        (call("indexof", &[text("abcdefg"), text("cde"), long(3), long(4)]), "-1"),
        (call("indexof", &[text("abcdefgabcdefg"), text("cde"), long(1), long(10), long(2)]), "9"),
        (call("indexof", &[text("abcdefg"), text("cde"), long(-5)]), "2"),
        (call("indexof", &[text("äbcä"), text("ä"), long(0), long(-1), long(2)]), "3"),
        (call("indexof", &[text("aaaa"), text("aa"), long(0), long(-1), long(3)]), "2"),
        (call("indexof", &[text("abc"), text(""), long(0), long(-1), long(4)]), "3"),
        (call("indexof", &[text("abc"), text(""), long(0), long(-1), long(i64::MAX)]), "-1"),
        (call("strcat", &[text("a"), long(1), bool(true)]), "a1True"),
        (call("strcat_delim", &[text("-"), long(1), text("A"), timespan("1s")]), "1-A-00:00:01"),
        (call("strcat_array", &[dynamic("[1,null,3]"), text("-")]), "1--3"),
        (call("split", &[text("a__b"), text("_")]), "[\"a\",\"\",\"b\"]"),
        (call("split", &[text(""), text(",")]), "[\"\"]"),
        (call("split", &[text("aaa_bbb"), text("_"), long(1)]), "[\"bbb\"]"),
        (call("replace_string", &[text("aaa"), text(""), text("X")]), "aaa"),
        (call("replace_regex", &[text("ab"), text("(a)(b)"), text("\\2\\1")]), "ba"),
        (call("trim", &[text("x"), text("xxabcxx")]), "xabcx"),
        (call("trim", &[text("\\s+"), text("  a  ")]), "a"),
        (call("extract", &[text("(\\d+)%"), long(1), text("100%done")]), "100"),
        (call("extract_all", &[text("([a-z])(\\d)"), text("a1 b2")]), "[[\"a\",\"1\"],[\"b\",\"2\"]]"),
        (call("extract_all", &[text("\\d"), text("x")]), "null"),
        (call("countof", &[text("aaaa"), text("aa")]), "3"),
        (call("translate", &[text("aab"), text("xyz"), text("abca")]), "xzcx"),
        (call("translate", &[text("bä"), text("ü"), text("äbc")]), "üüc"),
        (call("translate", &[text("ab"), text(""), text("abc")]), "c"),
        (call("strrep", &[text("ab"), long(2), text(".")]), "ab.ab"),
        (call("toupper", &[text("Straße")]), "STRAßE"),
        (call("reverse", &[text("éa")]), "aé"),
        (call("url_encode_component", &[text("https://a b/")]), "https%3a%2f%2fa%20b%2f"),
        (call("base64_encode_tostring", &[text("Kusto")]), "S3VzdG8="),
        (call("hash_md5", &[text("World")]), "f5a7924e621e84c9280a9a27e1bcb7f6"),
        (call("hash_md5", &[datetime("2020-01-01")]), "786c530672d1f8db31fee25ea8a9390b"),
        (call("parse_ipv4_mask", &[text("127.0.0.1"), long(24)]), "2130706432"),
        (call("ipv4_is_in_range", &[text("192.168.1.6"), text("192.168.1.1/24")]), "True"),
        (call("has_ipv4", &[text("05:04:54127.0.0.1 GET"), text("127.0.0.1")]), "False"),
        (call("parse_csv", &[text("aa,\"b,\"\"b\"\nx")]), "[\"aa\",\"b,\\\"b\"]"),
    ]);
}

#[test]
fn times_are_computed_in_ticks() {
    all(&[
        (call("now", &[]), "2020-01-01T00:00:00.0000000Z"),
        (call("ago", &[timespan("1d")]), "2019-12-31T00:00:00.0000000Z"),
        (call("bin", &[datetime("1955-11-05"), timespan("7d")]), "1955-10-31T00:00:00.0000000Z"),
        (call("bin", &[long(-5), long(2)]), "-6"),
        (call("bin", &[real(-3.25), long(1)]), "-4.0"),
        (call("bin_at", &[real(6.5), real(2.5), long(7)]), "4.5"),
        (call("startofweek", &[datetime("2020-06-15 13:45")]), "2020-06-14T00:00:00.0000000Z"),
        (call("endofmonth", &[datetime("2020-01-31"), long(13)]), "2021-02-28T23:59:59.9999999Z"),
        (call("startofday", &[datetime("2020-06-15 13:45"), long(3)]), "2020-06-18T00:00:00.0000000Z"),
        (call("weekofyear", &[datetime("2016-01-01")]), "52"),
        (call("dayofweek", &[datetime("1970-05-11")]), "1.00:00:00"),
        (call("datetime_add", &[text("quarter"), long(-5), datetime("2020-05-31")]), "2019-02-28T00:00:00.0000000Z"),
        (call("datetime_add", &[text("year"), long(100_000), datetime("2020-01-01")]), "null"),
        (call("datetime_diff", &[text("year"), datetime("2020-12-31"), datetime("2021-01-01")]), "-1"),
        (call("datetime_diff", &[text("week"), datetime("2021-03-01"), datetime("2020-12-31")]), "9"),
        (call("make_datetime", &[long(2020), long(13), long(1)]), "null"),
        (call("make_timespan", &[long(1), long(2), long(3), long(4)]), "1.02:03:04"),
        (call("make_timespan", &[long(25), long(70)]), "null"),
        (
            call("format_datetime", &[datetime("2007-03-09 17:04:03.5"), text("yy-M-d h:mm:ss.fff tt")]),
            "07-3-9 5:04:03.500 PM",
        ),
        (call("format_timespan", &[timespan("-1.02:30:00"), text("d.hh:mm:ss")]), "-1.02:30:00"),
        (call("unixtime_seconds_todatetime", &[long(1_546_300_800)]), "2019-01-01T00:00:00.0000000Z"),
    ]);
}

#[test]
fn choices_and_numbers() {
    all(&[
        (call("iff", &[null(KqlType::Bool), text("t"), text("f")]), "f"),
        (call("case", &[bool(false), int(1), bool(true), long(2), long(3)]), "2"),
        (call("coalesce", &[null(KqlType::Int), long(-1)]), "-1"),
        (call("coalesce", &[text(""), text("fb")]), "fb"),
        (call("isnull", &[text("")]), "False"),
        (call("isempty", &[null(KqlType::Dynamic)]), "True"),
        (call("min_of", &[null(KqlType::Int), long(5)]), "5"),
        (call("max_of", &[null(KqlType::Real), real(f64::NAN)]), "NaN"),
        (call("min_of", &[real(f64::NAN), real(1.0)]), "NaN"),
        (call("log", &[real(-1.0)]), "null"),
        (call("log", &[real(0.0)]), "-inf"),
        (call("sqrt", &[real(-1.0)]), "NaN"),
        (call("sign", &[real(f64::NAN)]), "0.0"),
        (call("abs", &[int(i32::MIN)]), "2147483648"),
        (call("round", &[real(3.25), long(1)]), "3.3"),
        (call("isnan", &[real(f64::NAN)]), "True"),
        (call("binary_and", &[long(6), long(3)]), "2"),
    ]);
}

#[test]
fn dynamic_values_are_built_and_read() {
    all(&[
        (apply(ScalarOperator::DynamicMember, &[dynamic("{\"a\":{\"b\":42}}"), text("a")]), "{\"b\":42}"),
        (apply(ScalarOperator::DynamicElement, &[dynamic("[1,2,3]"), long(-1)]), "3"),
        (apply(ScalarOperator::SplitElement, &[text("a/\"b/c"), text("/"), long(1)]), "\"b"),
        (apply(ScalarOperator::SplitElement, &[text("a/b"), text("/"), long(2)]), "null"),
        (apply(ScalarOperator::SplitElement, &[text("a/b"), text(""), long(0)]), "a/b"),
        (apply(ScalarOperator::SplitText, &[text("a//\"b"), text("//"), long(1)]), "\"b"),
        (apply(ScalarOperator::SplitText, &[text("a/b"), text("/"), long(2)]), ""),
        (apply(ScalarOperator::DynamicElement, &[dynamic("[1,null]"), long(1)]), "null"),
        (call("array_slice", &[dynamic("[1,2,3,4,5,6]"), long(2), long(-2)]), "[3,4,5]"),
        (call("array_slice", &[dynamic("[1,2]"), long(i64::MAX), long(i64::MIN)]), "[]"),
        (call("array_sum", &[dynamic("[1,2,3]")]), "6.0"),
        (call("array_sort_asc", &[dynamic("[null,\"blue\",\"a\"]"), bool(false)]), "[null,\"a\",\"blue\"]"),
        (call("array_sort_desc", &[dynamic("[3,1,2]")]), "[3,2,1]"),
        (call("array_rotate_right", &[dynamic("[1,2,3,4,5]"), long(-2)]), "[3,4,5,1,2]"),
        (call("array_shift_left", &[dynamic("[1,2,3,4,5]"), long(-2), long(-1)]), "[-1,-1,1,2,3]"),
        (call("array_split", &[dynamic("[1,2,3,4]"), dynamic("[1,3]")]), "[[1],[2,3],[4]]"),
        (call("array_iff", &[dynamic("[true,false,null]"), long(1), long(0)]), "[1,0,null]"),
        (call("array_concat", &[dynamic("[1]"), null(KqlType::Dynamic)]), "[1]"),
        (call("set_union", &[dynamic("[1,2,1]"), dynamic("[3]")]), "[1,2,3]"),
        (call("set_intersect", &[dynamic("[1,2]"), dynamic("[2,3]")]), "[2]"),
        (call("zip", &[dynamic("[\"A\",1]"), dynamic("[{}]")]), "[[\"A\",{}],[1,null]]"),
        (call("bag_merge", &[dynamic("{\"a\":1}"), dynamic("{\"a\":2,\"b\":3}")]), "{\"a\":1,\"b\":3}"),
        (call("bag_keys", &[dynamic("[]")]), "null"),
        (
            call("bag_remove_keys", &[dynamic(r#"{"a":1,"b":{"c":2,"d":3},"e":4}"#), dynamic(r#"["e","$.b.c"]"#)]),
            r#"{"a":1,"b":{"d":3}}"#,
        ),
        (call("bag_has_key", &[dynamic("{\"a\":{\"b\":1}}"), text("$.a.b")]), "True"),
        (call("bag_pack", &[text("a"), long(1), text("b"), text("x")]), "{\"a\":1,\"b\":\"x\"}"),
        (call("pack_array", &[real(f64::NAN), datetime("2020-01-01")]), "[\"NaN\",\"2020-01-01T00:00:00.0000000Z\"]"),
        (call("range", &[long(1), long(8), long(3)]), "[1,4,7]"),
        (call("dynamic_to_json", &[dynamic("{\"b\":2,\"a\":1}")]), "{\"a\":1,\"b\":2}"),
        (call("extract_json", &[text("$.a[1]"), text("{\"a\":[1,2]}")]), "2"),
        (call("series_add", &[dynamic("[1,2]"), dynamic("[3,4]")]), "[4.0,6.0]"),
    ]);
}

#[test]
fn a_bag_is_nested_no_deeper_than_it_is_read() {
    let path = |names: usize| text(&format!("${}", ".a".repeat(names)));
    assert!(call("bag_set_key", &[dynamic("{}"), path(100), long(1)]).contains(r#"{"a":1}"#));
    let arguments = [dynamic("{}"), path(1_000_000), long(1)];
    let bound = bind("bag_set_key", &types(&arguments), FunctionContext { now_ticks: NOW }).unwrap();
    let columns = arguments.iter().map(|(_, value)| ColumnarValue::Scalar(value.clone())).collect();
    let error = try_invoke(&bound, columns, 1).unwrap_err().to_string();
    assert!(error.contains("bag_set_key: a path has at most 100 names"), "{error}");
}

#[test]
fn arrays_of_many_elements_are_refused() {
    let numbers = format!("[0{}]", ",0".repeat(199_999));
    let tuples: Vec<TypedScalar> = std::iter::once(dynamic(&numbers)).chain((0..100).map(|_| dynamic("[]"))).collect();
    let long = || text(&"a".repeat(12_000_000));
    let inner = format!("[0{}]", ",0".repeat(999));
    let members: Vec<String> = (0..200).map(|member| format!("\"k{member}\":0")).collect();
    let long_name = format!("{{\"{}\":{{{}}}}}", "a".repeat(1_000_000), members.join(","));
    for (name, arguments) in [
        ("repeat", vec![dynamic(&inner), int(100_000)]),
        ("array_shift_left", vec![dynamic(&numbers), int(100_000), dynamic(&inner)]),
        ("array_iff", vec![dynamic(&numbers), dynamic("[]"), dynamic(&format!("{{\"a\":{inner}}}"))]),
        ("treepath", vec![dynamic(&long_name)]),
        ("zip", tuples),
        ("to_utf8", vec![long()]),
        ("split", vec![long(), text("a")]),
        ("base64_decode_toarray", vec![text(&"AAAA".repeat(4_000_000))]),
    ] {
        let bound = bind(name, &types(&arguments), FunctionContext { now_ticks: NOW }).unwrap();
        let columns = arguments.iter().map(|(_, value)| ColumnarValue::Scalar(value.clone())).collect();
        let error = try_invoke(&bound, columns, 1).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}: makes at most 256 MiB at a time")), "{error}");
    }
}

#[test]
fn the_first_of_many_terms_is_found() {
    let terms: Vec<String> = (0..600).map(|term| format!("t{term}")).collect();
    let terms = || dynamic(&serde_json::Value::from(terms.clone()).to_string());
    all(&[
        (call("has_any_index", &[text("a t599 b"), terms()]), "599"),
        (call("has_any_index", &[text("a b"), terms()]), "-1"),
    ]);
}

#[test]
fn distances_are_those_of_kustos_earth() {
    let line = || {
        dynamic(
            r#"{"type":"LineString","coordinates":[[-73.95807266235352,40.800426144169315],[-73.94966125488281,40.79691751000055],[-73.97317886352539,40.764486356930334]]}"#,
        )
    };
    let park = || {
        dynamic(
            r#"{"type":"Polygon","coordinates":[[[-73.9495,40.7969],[-73.95807266235352,40.80068603561921],[-73.98201942443848,40.76825672305777],[-73.97317886352539,40.76455136505513],[-73.9495,40.7969]]]}"#,
        )
    };
    let near = |found: String, expected: f64| {
        let found: f64 = found.parse().unwrap();
        assert!((found - expected).abs() <= 1e-9 * expected, "{found}, expected {expected}");
    };
    near(call("geo_line_length", &[line()]), 4_922.480_169_920_81);
    near(call("geo_polygon_area", &[park()]), 3_475_207.283_466_06);
    near(call("geo_polygon_perimeter", &[park()]), 9_930.301_496_049_382);
    near(call("geo_azimuth", &[long(5), long(10), long(10), long(-40)]), 3.054_599_397_964_49);
    all(&[
        (call("geo_point_in_polygon", &[real(-73.965), real(40.78), park()]), "True"),
        (call("geo_point_in_polygon", &[real(-73.9), real(40.78), park()]), "False"),
        (call("geo_distance_point_to_polygon", &[real(-73.965), real(40.78), park()]), "0.0"),
        (call("geo_distance_2points", &[long(300), long(0), long(0), long(0)]), "null"),
        (call("geo_point_in_circle", &[long(0), long(0), long(1), long(0), long(-1)]), "null"),
        (call("geo_line_length", &[park()]), "null"),
        (call("geo_point_to_h3cell", &[real(-74.016), real(40.704)]), "862a1072fffffff"),
        (call("geo_h3cell_level", &[text("862a1072fffffff")]), "6"),
        (call("geo_h3cell_parent", &[text("862a1072fffffff"), long(6)]), ""),
        (call("geo_h3cell_to_polygon", &[text("+62a1072fffffff")]), "null"),
        (call("geo_geohash_neighbors", &[text("a")]), "null"),
    ]);
}

#[test]
fn addresses_domains_and_strings_are_formatted() {
    all(&[
        (call("format_ipv4_mask", &[text("192.168.1.1"), long(24)]), "192.168.1.0/24"),
        (call("format_ipv4_mask", &[text("192.168.1.1/24"), long(32)]), "192.168.1.0/24"),
        (call("format_ipv4_mask", &[text("192.168.1.1/24"), long(-1)]), ""),
        (call("format_ipv4_mask", &[long(3_232_235_777)]), "192.168.1.1/32"),
        (
            call("ipv4_range_to_cidr_list", &[text("1.1.128.0"), text("1.1.140.255")]),
            r#"["1.1.128.0/21","1.1.136.0/22","1.1.140.0/24"]"#,
        ),
        (call("ipv4_range_to_cidr_list", &[text("0.0.0.0"), text("255.255.255.255")]), r#"["0.0.0.0/0"]"#),
        (call("ipv4_range_to_cidr_list", &[text("1.1.1.2"), text("1.1.1.1")]), "[]"),
        (
            call("punycode_domain_to_string", &[text("Riðill｡Skáldskaparmál｡org")]),
            "xn--Riill-jta.xn--Skldskaparml-dbbj.org",
        ),
        (call("punycode_domain_to_string", &[text("Kaledvoulc'h.Artorījos.edu")]), "Kaledvoulc'h.xn--Artorjos-ejb.edu"),
        (call("parse_xml", &[text("<e a=\"1\">x</e>")]), r##"{"e":{"@a":"1","#text":"x"}}"##),
        (call("parse_xml", &[text("<e>")]), "null"),
        (call("padleft", &[text("ab"), long(4), text("")]), "  ab"),
        (call("padright", &[text("ab"), long(i64::MAX / 2), text("x")]).len().to_string(), "65536"),
        (call("format_interp", &[text("{{{0:x}}} {1}"), long(255), text("a")]), "{ff} a"),
        (call("bag_pack", &[text(""), long(1), text("b"), long(2)]), r#"{"b":2}"#),
        (call("array_sort_desc", &[dynamic(r#"[1,"b",null,2,"a"]"#)]), r#"[2,1,"b","a",null]"#),
        (call("estimate_data_size", &[long(1), text("abc"), bool(true), dynamic("[1]")]), "15"),
    ]);
}

#[test]
fn literals_and_columns_mix() {
    let arguments = [KqlType::Long, KqlType::Long];
    let bound = operator(ScalarOperator::Binary(BinaryOperator::Subtract), &arguments).unwrap();
    let column = ColumnarValue::Array(Arc::new(arrow::array::Int64Array::from(vec![Some(1), None, Some(3)])));
    let literal = ColumnarValue::Scalar(ScalarValue::Int64(Some(10)));
    let result = invoke(&bound, vec![literal, column], 3).into_array(3).unwrap();
    assert_eq!(result.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(9), None, Some(7)]);

    let bound = bind("strcat", &[KqlType::String, KqlType::String], FunctionContext { now_ticks: NOW }).unwrap();
    let column = ColumnarValue::Array(Arc::new(StringArray::from(vec!["a", "b"])));
    let result = invoke(&bound, vec![column, ColumnarValue::Scalar("-".into())], 2).into_array(2).unwrap();
    assert_eq!(result.as_string_view().iter().collect::<Vec<_>>(), [Some("a-"), Some("b-")]);
}

#[test]
fn an_unknown_function_is_an_error_with_the_nearest_name() {
    let context = FunctionContext { now_ticks: NOW };
    assert_eq!(bind("cursor_after", &[], context).unwrap_err(), FunctionError::KnownToKusto);
    let nearest = Some("strlen".to_owned());
    assert_eq!(bind("strlenn", &[], context).unwrap_err(), FunctionError::Unknown { nearest });
    assert_eq!(bind("qqqq", &[], context).unwrap_err(), FunctionError::Unknown { nearest: None });
    let message = "strlen() takes 1 arguments, not 0".to_owned();
    assert_eq!(bind("strlen", &[], context).unwrap_err(), FunctionError::WrongArguments { message });
    let message = "argument 1 of startofday() must be a datetime, not long".to_owned();
    assert_eq!(bind("startofday", &[KqlType::Long], context).unwrap_err(), FunctionError::WrongArguments { message });
}
