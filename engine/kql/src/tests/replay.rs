//! The cases, run over a DataFusion session of their own: each query's columns and rows against what Kusto gave, by the
//! rules of the folder's README. What is expected to fail is listed by id in a file of its own, below its reason, and
//! may only shrink: a listed case that passes fails the test, and so does a share of passing cases below the bar.
//! `QUERENT_KQL_CASES_SHOW` prints why cases whose id holds it fail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use datafusion::error::DataFusionError;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;
use serde_json::Value;

use super::{folder, rows};
use crate::functions::{self, FunctionContext, FunctionError};
use crate::{KqlError, KqlHost, KqlType, StoredComparisons, values};

const EXPECTED_FAILURES: &str = include_str!("expected_failures.txt");
/// Before a case that an order which no query asks for lets pass or fail.
const BY_CHANCE: &str = "? ";
/// Each with the least share of it that must pass whatever is listed.
const FILES: &[(&str, f64)] =
    &[("emulator_fuzz", 0.995), ("emulator_docs", 0.988), ("kusto_loco_endtoend", 0.92), ("kusto_loco_basic", 0.94)];
/// How long one case may take.
const CASE_TIME: Duration = Duration::from_secs(120);
/// Plans are walked recursively; memory is taken only as deep as one goes.
const STACK_BYTES: usize = 64 << 20;
const RELATIVE_ERROR: f64 = 1e-9;
const LOOSE_RELATIVE_ERROR: f64 = 1e-6;
const APPROXIMATE_RELATIVE_ERROR: f64 = 0.05;

/// How exactly cells are compared.
#[derive(Clone, Copy)]
struct Leniency {
    tolerance: f64,
    /// Sets have no order.
    elements_ordered: bool,
}

impl Leniency {
    fn for_case(case: &Value) -> Self {
        let text = case["kql"].as_str().unwrap_or_default();
        let tolerance = match () {
            () if case["approximate"].as_bool().unwrap_or(false) => APPROXIMATE_RELATIVE_ERROR,
            () if ["stdev", "percentile", "variance", "geo_"].iter().any(|name| text.contains(name)) => {
                LOOSE_RELATIVE_ERROR
            }
            () => RELATIVE_ERROR,
        };
        Self { tolerance, elements_ordered: !text.contains("make_set") }
    }
}

/// Plugins whose cases are run.
const PLUGINS: &[&str] =
    &["active_users_count", "bag_unpack", "ipv4_lookup", "ipv6_lookup", "narrow", "pivot", "session_count"];

/// Looks at the last of rows that are in no order.
const UNORDERED: &[&str] = &["kusto-loco-basic/RenderTests.RenderWithEmptyWithStatement"];

/// One answer of ours.
struct CaseAnswer {
    columns: Vec<(String, KqlType)>,
    rows: Vec<CaseRow>,
}

/// As Kusto prints them; null is `None`.
type CaseRow = Vec<Option<String>>;

#[expect(clippy::disallowed_methods, reason = "a test drives a runtime of its own")]
#[cfg_attr(not(kql_cases), ignore = "no folder of KQL cases; QUERENT_KQL_CASES names it")]
#[test]
fn cases_give_what_kusto_gave() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::spawn(replay_all()).await.unwrap() });
}

async fn replay_all() {
    let folder = folder();
    let config = SessionConfig::new().with_default_catalog_and_schema("querent", "default");
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_optimizer_rule(Arc::new(StoredComparisons))
        .build();
    let entries = || EXPECTED_FAILURES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let listed: BTreeSet<&str> = entries().map(|line| line.trim_start_matches(BY_CHANCE)).collect();
    let by_chance: BTreeSet<&str> = entries().filter_map(|line| line.strip_prefix(BY_CHANCE)).collect();
    let shown = std::env::var("QUERENT_KQL_CASES_SHOW").ok();
    let mut failed: Vec<String> = Vec::new();
    let mut unneeded: Vec<String> = Vec::new();
    let mut all_failures: Vec<String> = Vec::new();
    let mut below_bar = Vec::new();
    for (file, least) in FILES {
        let (mut passed, mut count) = (0, 0);
        for case in rows(&folder.join(format!("{file}.jsonl"))).iter().filter(|case| is_run(file, case)) {
            let id = case["id"].as_str().unwrap();
            count += 1;
            match replayed(file, case, &state).await {
                Ok(()) => {
                    passed += 1;
                    if listed.contains(id) && !by_chance.contains(id) {
                        unneeded.push(id.to_owned());
                    }
                }
                Err(why) => {
                    all_failures.push(id.to_owned());
                    if shown.as_deref().is_some_and(|part| id.contains(part)) {
                        println!("{id}\n{}\n{why}\n", case["kql"].as_str().unwrap());
                    }
                    if !listed.contains(id) {
                        failed.push(id.to_owned());
                    }
                }
            }
        }
        println!("{file}: {passed} of {count}");
        if f64::from(passed) < least * f64::from(count) {
            below_bar.push(*file);
        }
    }
    for id in &all_failures {
        println!("failing: {id}");
    }
    assert!(below_bar.is_empty(), "fewer pass than must: {below_bar:?}");
    assert!(failed.is_empty(), "{} fail and are not listed: {failed:#?}", failed.len());
    assert!(unneeded.is_empty(), "listed, but right by now: {unneeded:#?}");
}

fn is_run(file: &str, case: &Value) -> bool {
    let is = |name: &str| case[name].as_bool().unwrap_or(false);
    let is_unordered = case["id"].as_str().is_some_and(|id| UNORDERED.contains(&id));
    let is_upstream = is("skipped_upstream") || is("nondeterministic") || is_unordered;
    match file {
        "emulator_docs" => {
            let text = case["kql"].as_str().unwrap_or_default();
            let is_ours = |plugin: &&str| text.contains(&format!("evaluate {plugin}("));
            !is_upstream && (!is("plugin") || PLUGINS.iter().any(is_ours)) && !is("graph") && has_known_geography(case)
        }
        _ => !is_upstream,
    }
}

/// Whether all functions of geography that a case calls are there; those that are not are known to Kusto only.
fn has_known_geography(case: &Value) -> bool {
    let text = case["kql"].as_str().unwrap_or_default();
    let words = text.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
    let is_missing = |name: &str| {
        functions::bind(name, &[], FunctionContext { now_ticks: 0 })
            .is_err_and(|error| error == FunctionError::KnownToKusto)
    };
    !words.filter(|word| word.starts_with("geo_")).any(is_missing)
}

async fn replayed(file: &str, case: &Value, state: &SessionState) -> Result<(), String> {
    let text = case["kql"].as_str().unwrap();
    let answer = answer(state, text).await;
    if file == "emulator_fuzz" && !case["error"].is_null() {
        return match answer {
            Ok(_) => Err("should fail".to_owned()),
            Err(error) if error.starts_with("kql_") => Ok(()),
            Err(error) => Err(format!("should be refused, not fail: {error}")),
        };
    }
    let answer = answer?;
    if file == "kusto_loco_basic" {
        return checks(case, &answer);
    }
    compare_columns(file, case, &answer)?;
    if let Some(count) = case["row_count"].as_u64()
        && answer.rows.len() as u64 != count
    {
        return Err(format!("{} rows, expected {count}", answer.rows.len()));
    }
    let Some(expected) = expected_rows(file, case, &answer) else { return Ok(()) };
    let leniency = Leniency::for_case(case);
    let Err(why) = compare_rows(&answer, &expected, case["ordered"].as_bool().unwrap_or(false), leniency) else {
        return Ok(());
    };
    let Some(whole) = uncut(text).filter(|_| expected.len() == answer.rows.len()) else { return Err(why) };
    // Which rows a limit leaves is open; that they are some of those there are is not.
    let whole = self::answer(state, whole).await?;
    among(&answer.rows, &whole, leniency).and_then(|()| among(&expected, &whole, leniency))
}

fn compare_rows(answer: &CaseAnswer, expected: &[CaseRow], is_ordered: bool, leniency: Leniency) -> Result<(), String> {
    if expected.len() != answer.rows.len() {
        return Err(format!("{} rows, expected {}", answer.rows.len(), expected.len()));
    }
    if !is_ordered {
        return among(expected, answer, leniency);
    }
    match answer.rows.iter().zip(expected).find(|(ours, theirs)| !is_same_row(ours, theirs, answer, leniency)) {
        Some((ours, theirs)) => Err(format!("ours {ours:?}, expected {theirs:?}")),
        None => Ok(()),
    }
}

/// Whether `some` are rows of `all`, each one as often.
fn among(some: &[CaseRow], all: &CaseAnswer, leniency: Leniency) -> Result<(), String> {
    let mut left: Vec<&CaseRow> = all.rows.iter().collect();
    for row in some {
        match left.iter().position(|ours| is_same_row(ours, row, all, leniency)) {
            Some(at) => drop(left.swap_remove(at)),
            None => return Err(format!("expected {row:?}, ours {left:?}")),
        }
    }
    Ok(())
}

fn is_same_row(ours: &CaseRow, theirs: &CaseRow, answer: &CaseAnswer, leniency: Leniency) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).zip(&answer.columns).all(|((ours, theirs), (_, kql_type))| {
            is_same_cell(ours.as_deref(), theirs.as_deref(), *kql_type, leniency)
        })
}

/// The query without the limit that it ends with, where no order decides which rows that leaves.
fn uncut(text: &str) -> Option<&str> {
    let operator = |piece: &str| piece.split_whitespace().next().unwrap_or_default().to_owned();
    let (before, last) = text.trim_end().trim_end_matches(';').rsplit_once('|')?;
    let is_limit = matches!(operator(last).as_str(), "take" | "limit" | "sample");
    let is_sorted =
        before.rsplit_once('|').is_some_and(|(_, sorted)| matches!(operator(sorted).as_str(), "sort" | "order"));
    (is_limit && !is_sorted).then_some(before)
}

async fn answer(state: &SessionState, text: &str) -> Result<CaseAnswer, String> {
    let answered = tokio::time::timeout(CASE_TIME, async {
        // The cases have the first of several results.
        let planned = crate::plan_all(state, text, &Default::default()).await?.swap_remove(0);
        let batches: Vec<_> = state.rows(planned.plan).await?.try_collect().await?;
        Ok((planned.columns, batches))
    });
    let answered = answered.await.map_err(|_| format!("it took longer than {CASE_TIME:?}"))?;
    let (columns, batches) = answered.map_err(described)?;
    let columns: Vec<_> = columns.iter().map(|column| (column.name.clone(), column.kql_type)).collect();
    let mut all = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().zip(&columns).map(|(array, (_, kql_type))| {
                (*kql_type == KqlType::String || array.is_valid(row)).then(|| match kql_type {
                    // As JSON, to tell a text from a number.
                    KqlType::Dynamic => values::json_cell(*kql_type, array.as_ref(), row).to_string(),
                    _ => values::format_value(*kql_type, array.as_ref(), row),
                })
            });
            all.push(cells.collect());
        }
    }
    Ok(CaseAnswer { columns, rows: all })
}

/// The error, after its code where it is one of KQL's.
fn described(error: DataFusionError) -> String {
    let of_query = match &error {
        DataFusionError::External(inner) => inner.downcast_ref::<KqlError>(),
        _ => None,
    };
    match of_query {
        Some(of_query) => format!("{}: {of_query}", of_query.code.as_str()),
        None => error.to_string(),
    }
}

fn compare_columns(file: &str, case: &Value, answer: &CaseAnswer) -> Result<(), String> {
    let expected = case["columns"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = |kql_type: KqlType| match file {
        "emulator_fuzz" => class(kql_type).to_owned(),
        "emulator_docs" => dotnet(kql_type).to_owned(),
        _ => kql_type.name().to_owned(),
    };
    let ours: Vec<String> = answer.columns.iter().map(|(name, it)| format!("{name}:{}", named(*it))).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let theirs: Vec<String> =
        expected.iter().map(|column| format!("{}:{}", text(&column["name"]), text(&column["type"]))).collect();
    if ours == theirs { Ok(()) } else { Err(format!("columns {ours:?}, expected {theirs:?}")) }
}

fn class(kql_type: KqlType) -> &'static str {
    match kql_type {
        KqlType::Bool => "Bool",
        KqlType::Int | KqlType::Long => "Int",
        KqlType::Real | KqlType::Decimal => "Real",
        KqlType::String => "String",
        KqlType::DateTime => "DateTime",
        KqlType::TimeSpan => "TimeSpan",
        KqlType::Guid => "Guid",
        KqlType::Dynamic => "Dynamic",
    }
}

fn dotnet(kql_type: KqlType) -> &'static str {
    match kql_type {
        KqlType::Decimal => "SqlDecimal",
        other => other.dotnet_name().trim_start_matches("System."),
    }
}

/// The rows that are expected, if they are all there.
fn expected_rows(file: &str, case: &Value, answer: &CaseAnswer) -> Option<Vec<CaseRow>> {
    match file {
        "emulator_docs" => {
            let row = |row: &Value| row.as_array().map(|cells| cells.iter().map(cell_of_json).collect());
            case["rows"].as_array()?.iter().map(row).collect()
        }
        "emulator_fuzz" => {
            if !case["complete"].as_bool()? {
                return None;
            }
            case["rows_text"].as_array()?.iter().map(|row| Some(tuple(row.as_str()?))).collect()
        }
        _ => {
            let split = |row: &Value| {
                let cells: Vec<&str> = row.as_str()?.split("; ").collect();
                let mut cells: Vec<Option<String>> =
                    cells.iter().map(|cell| (*cell != "(null)").then(|| (*cell).to_owned())).collect();
                // A row ends with a `;` where its last cell is empty.
                if let Some(Some(last)) = cells.last_mut()
                    && let Some(before) = last.strip_suffix(';')
                {
                    *last = before.to_owned();
                    if cells.len() < answer.columns.len() {
                        cells.push(Some(String::new()));
                    }
                }
                Some(cells)
            };
            case["rows_text"].as_array()?.iter().map(split).collect()
        }
    }
}

fn cell_of_json(cell: &Value) -> Option<String> {
    match cell {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(values::format_bool(*value).to_owned()),
        other => Some(other.to_string()),
    }
}

/// `(1, 'a', null, {"b": [1, 2]})`: the cells between commas that stand in no bracket and no quote.
fn tuple(text: &str) -> CaseRow {
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    let chars: Vec<char> = inner.chars().collect();
    let mut cells: Vec<String> = vec![String::new()];
    let (mut depth, mut quote) = (0_i32, None);
    for (at, char) in chars.iter().enumerate() {
        let next = chars.get(at + 1).copied();
        match (quote, *char) {
            (Some('\''), '\'') if next.is_none() || (next == Some(',') && chars.get(at + 2) == Some(&' ')) => {
                quote = None;
            }
            (Some('"'), '"') if chars.get(at.wrapping_sub(1)) != Some(&'\\') => quote = None,
            (Some(_), _) => {}
            (None, '\'') if depth == 0 => quote = Some('\''),
            (None, '"') => quote = Some('"'),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 && next == Some(' ') => {
                cells.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(cell) = cells.last_mut() {
            cell.push(*char);
        }
    }
    let cell = |cell: &String| {
        let cell = cell.trim_start_matches(' ');
        let quoted = cell.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        match quoted {
            Some(text) => Some(text.to_owned()),
            None => (cell != "null").then(|| cell.to_owned()),
        }
    };
    cells.iter().map(cell).collect()
}

fn is_same_cell(ours: Option<&str>, theirs: Option<&str>, kql_type: KqlType, leniency: Leniency) -> bool {
    let (ours, theirs) = match (ours, theirs) {
        (Some(ours), Some(theirs)) => (ours, theirs),
        // A string is never null; what is written of one that is empty differs.
        _ if kql_type == KqlType::String => (ours.unwrap_or_default(), theirs.unwrap_or_default()),
        (ours, theirs) => return ours == theirs,
    };
    if ours == theirs {
        return true;
    }
    match kql_type {
        KqlType::Long | KqlType::Int => ours.parse::<i64>().is_ok_and(|ours| theirs.parse() == Ok(ours)),
        KqlType::Real | KqlType::Decimal => {
            is_near(ours.parse().unwrap_or(f64::NAN), theirs.parse().unwrap_or(f64::INFINITY), leniency.tolerance)
        }
        KqlType::DateTime => values::parse_datetime(ours) == values::parse_datetime(theirs),
        KqlType::TimeSpan => values::parse_timespan(ours) == values::parse_timespan(theirs),
        KqlType::Dynamic => {
            let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
            is_same_json(&parsed(ours), &parsed(theirs), leniency)
        }
        KqlType::Bool => ours.eq_ignore_ascii_case(theirs),
        KqlType::String if !leniency.elements_ordered => {
            let array = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_array);
            array(ours).zip(array(theirs)).is_some_and(|(ours, theirs)| is_same_json(&ours, &theirs, leniency))
        }
        KqlType::String | KqlType::Guid => false,
    }
}

fn is_near(ours: f64, theirs: f64, tolerance: f64) -> bool {
    ours == theirs
        || (ours.is_nan() && theirs.is_nan())
        || (ours - theirs).abs() <= tolerance * ours.abs().max(theirs.abs())
}

fn is_same_json(ours: &Value, theirs: &Value, leniency: Leniency) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) if ours.is_i64() && theirs.is_i64() => ours == theirs,
        (Value::Number(ours), Value::Number(theirs)) => {
            is_near(ours.as_f64().unwrap_or(f64::NAN), theirs.as_f64().unwrap_or(f64::INFINITY), leniency.tolerance)
        }
        (Value::Array(ours), Value::Array(theirs)) if leniency.elements_ordered => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| is_same_json(ours, theirs, leniency))
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            let mut left: Vec<&Value> = theirs.iter().collect();
            ours.len() == theirs.len()
                && ours.iter().all(|item| match left.iter().position(|it| is_same_json(item, it, leniency)) {
                    Some(at) => {
                        left.remove(at);
                        true
                    }
                    None => false,
                })
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .all(|(name, value)| theirs.get(name).is_some_and(|other| is_same_json(value, other, leniency)))
        }
        (Value::String(ours), Value::String(theirs)) => ours == theirs,
        _ => ours == theirs,
    }
}

/// The text of a result holds what is asked of it. How numbers, times and nulls are written, and what stands between
/// rows, is the library's that the cases are of.
fn checks(case: &Value, answer: &CaseAnswer) -> Result<(), String> {
    let readings = [Writing::Long, Writing::Short].map(|writing| reading(case, answer, writing));
    let checks = case["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut is_first = true;
    for check in checks {
        let wanted = check[1].as_str().unwrap_or_default();
        let kind = check[0].as_str().unwrap_or_default();
        let holds = |read: &String| match kind {
            "Be" => is_same_reading(read, wanted),
            "NotContain" => !read.contains(wanted),
            _ => read.contains(wanted),
        };
        // Of several whole results the first is this query's.
        if kind == "Be" && !std::mem::take(&mut is_first) {
            continue;
        }
        if !readings.iter().any(holds) {
            return Err(format!("read {:?}, expected {check}", readings[0]));
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    Long,
    /// Without zeros that say nothing.
    Short,
}

fn reading(case: &Value, answer: &CaseAnswer, writing: Writing) -> String {
    let cell = |(cell, (_, kql_type)): (&Option<String>, &(String, KqlType))| match (cell, kql_type) {
        (None, KqlType::DateTime) if writing == Writing::Short => String::new(),
        (None, _) => "<null>".to_owned(),
        (Some(text), KqlType::DateTime) if writing == Writing::Short => {
            text.replace('T', " ").trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.').to_owned() + "Z"
        }
        (Some(text), KqlType::DateTime) => text.replace('T', " "),
        (Some(text), KqlType::Real) if writing == Writing::Short => text.strip_suffix(".0").unwrap_or(text).to_owned(),
        (Some(text), KqlType::Dynamic) if writing == Writing::Short => match serde_json::from_str(text) {
            Ok(Value::String(inner)) => inner,
            _ => text.clone(),
        },
        (Some(text), _) => text.clone(),
    };
    let lines = answer.rows.iter();
    let lines = lines.map(|row| row.iter().zip(&answer.columns).map(cell).collect::<Vec<_>>().join(","));
    let lines: Vec<String> = lines.collect();
    let last = lines.last().cloned().unwrap_or_default();
    match case["reader"].as_str().unwrap_or_default() {
        "LastLineOfResult" => last,
        "SquashedLastLineOfResult" => last.replace([' ', '\n', '\r'], ""),
        _ => lines.join("\n"),
    }
}

fn is_same_reading(read: &str, wanted: &str) -> bool {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let strict = Leniency { tolerance: RELATIVE_ERROR, elements_ordered: true };
    // All cells on one line, where the rows come in any order.
    let cells = |text: &str| {
        let mut cells: Vec<String> = text.split([',', '|', '\n']).map(str::to_owned).collect();
        cells.sort();
        cells
    };
    // How many zeros end a fraction is the library's.
    let times = values::parse_datetime(read).zip(values::parse_datetime(wanted));
    let on_one_line = !wanted.contains('\n') && cells(read) == cells(wanted);
    on_one_line
        || times.is_some_and(|(read, wanted)| read == wanted)
        || sorted(read) == sorted(wanted)
        || is_same_cell(Some(read), Some(wanted), KqlType::Dynamic, strict)
}
