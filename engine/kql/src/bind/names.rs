//! The names of result columns that the query does not name: `count_`, `avg_v`, `Column1`, `k1`.

use crate::ast::{Expr, ExprKind, FunctionCall, Literal, UnaryOperator};

/// How a function's result is named where the query does not name it.
enum ResultName {
    /// As its first argument is.
    First,
    /// As its argument is, if it has only one.
    Only,
    /// After this word and the first argument: `avg_v`.
    Prefixed(&'static str),
    /// Always so.
    Fixed(&'static str),
}

/// Functions whose result is named as their first argument is. All others that stand in no table here name nothing.
const NAMED_AS_FIRST: &[&str] = &[
    "__hll_normalize",
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "bin",
    "bin_at",
    "bin_auto",
    "binary_all_and",
    "binary_all_or",
    "binary_all_xor",
    "binary_and",
    "binary_not",
    "binary_or",
    "binary_shift_left",
    "binary_shift_right",
    "binary_xor",
    "bitset_count_ones",
    "ceiling",
    "cos",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "floor",
    "format_bytes",
    "format_datetime",
    "format_timespan",
    "gamma",
    "log",
    "log10",
    "log2",
    "loggamma",
    "parse_csv",
    "parse_json",
    "parse_xml",
    "parsejson",
    "rand",
    "round",
    "series_fill_backward",
    "series_fill_const",
    "series_fill_forward",
    "series_fill_linear",
    "series_fir",
    "series_iir",
    "series_outliers",
    "sin",
    "split",
    "sqrt",
    "startofday",
    "take_anyif",
    "tan",
    "tobool",
    "toboolean",
    "todatetime",
    "todecimal",
    "todouble",
    "todynamic",
    "toguid",
    "tohex",
    "toint",
    "tolong",
    "toobject",
    "toreal",
    "tostring",
    "totime",
    "totimespan",
];

/// Functions and aggregates whose result is named after a word and their first argument.
const PREFIXED: &[(&str, &str)] = &[
    ("any", "any"),
    ("anyif", "anyif"),
    ("avg", "avg"),
    ("avgif", "avgif"),
    ("buildschema", "schema"),
    ("cnt", "cnt"),
    ("count", "count"),
    ("count_distinct", "count_distinct"),
    ("count_distinctif", "count_distinctif"),
    ("countif", "countif"),
    ("covariance", "covariance"),
    ("covarianceif", "covarianceif"),
    ("covariancep", "covariancep"),
    ("covariancepif", "covariancepif"),
    ("dcount", "dcount"),
    ("dcount_hll", "dcount_hll"),
    ("dcountif", "dcountif"),
    ("gettype", "type"),
    ("hll", "hll"),
    ("hll_if", "hll_if"),
    ("make_bag", "bag"),
    ("make_bag_if", "bag"),
    ("make_dictionary", "dictionary"),
    ("make_list", "list"),
    ("make_list_if", "list"),
    ("make_list_with_nulls", "list"),
    ("make_set", "set"),
    ("make_set_if", "set"),
    ("makelist", "list"),
    ("makeset", "set"),
    ("max", "max"),
    ("maxif", "maxif"),
    ("min", "min"),
    ("minif", "minif"),
    ("percentile_tdigest", "percentile_tdigest"),
    ("percentiles_array_tdigest", "percentile_tdigest"),
    ("repeat", "repeat"),
    ("stdev", "stdev"),
    ("stdevif", "stdevif"),
    ("stdevp", "stdevp"),
    ("string_size", "string_size"),
    ("strlen", "strlen"),
    ("sum", "sum"),
    ("sumif", "sumif"),
    ("tdigest", "tdigest"),
    ("treepath", "tree"),
    ("variance", "variance"),
    ("varianceif", "varianceif"),
    ("variancep", "variancep"),
    ("variancepif", "variancepif"),
];

impl ResultName {
    fn of_function(name: &str) -> Option<Self> {
        if NAMED_AS_FIRST.binary_search(&name).is_ok() {
            return Some(ResultName::First);
        }
        if let Ok(index) = PREFIXED.binary_search_by_key(&name, |(function, _)| function) {
            return PREFIXED.get(index).map(|(_, prefix)| ResultName::Prefixed(prefix));
        }
        match name {
            "make_datetime" | "make_timespan" => Some(ResultName::Only),
            "hll_merge" => Some(ResultName::Fixed("hll_merged_result")),
            "tdigest_merge" | "merge_tdigest" => Some(ResultName::Fixed("tdigests_merge_result")),
            "ingestion_time" => Some(ResultName::Fixed("$IngestionTime")),
            _ => None,
        }
    }
}

/// Returns the name that an expression gives its column; `None` where it gives none.
pub(crate) fn argument_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name.text.clone()),
        ExprKind::Member { base, name } => {
            let is_side =
                matches!(&base.kind, ExprKind::Name(side) if matches!(side.text.as_str(), "$left" | "$right"));
            let base = if is_side { None } else { argument_name(base) };
            Some(joined(base, &name.text))
        }
        ExprKind::Element { base, index } => {
            let base = argument_name(base);
            match &index.kind {
                ExprKind::Literal(Literal::String(text)) => Some(joined(base, text)),
                ExprKind::Literal(Literal::Long(index)) => Some(joined(base, &index.to_string())),
                // What no name can have becomes `_`.
                ExprKind::Unary { operator: UnaryOperator::Minus, operand } => match operand.kind {
                    ExprKind::Literal(Literal::Long(index)) => Some(joined(base, &format!("_{index}"))),
                    _ => base.map(|base| format!("{base}_")),
                },
                _ => base.map(|base| format!("{base}_")),
            }
        }
        ExprKind::Call(call) => call_name(call),
        _ => None,
    }
}

fn joined(base: Option<String>, last: &str) -> String {
    match base {
        Some(base) => format!("{base}_{last}"),
        None => last.to_owned(),
    }
}

/// Returns the name that a call gives its column; `None` where it gives none.
pub(crate) fn call_name(call: &FunctionCall) -> Option<String> {
    if call.target.is_some() {
        return None;
    }
    let first = || argument_name(&call.arguments.first()?.expr);
    match ResultName::of_function(&call.function.text)? {
        ResultName::First => first(),
        ResultName::Only if call.arguments.len() == 1 => first(),
        ResultName::Only => None,
        ResultName::Prefixed(prefix) => Some(format!("{prefix}_{}", first().unwrap_or_default())),
        ResultName::Fixed(name) => Some(name.to_owned()),
    }
}

/// Returns `name`, or `name1`, `name2`, ... if it is taken.
pub(crate) fn unique_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(name) {
        return name.to_owned();
    }
    let mut number = 1_usize;
    loop {
        let numbered = format!("{name}{number}");
        if !is_taken(&numbered) {
            return numbered;
        }
        number += 1;
    }
}
