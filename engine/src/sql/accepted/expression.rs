//! Expressions, calls of functions and windows.

use std::collections::HashSet;
use std::sync::LazyLock;

use datafusion::execution::SessionStateDefaults;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CaseWhen, CastFormat, CeilFloorKind, DateTimeField, DuplicateTreatment, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Interval,
    LambdaFunction, OneOrManyWithParens, OrderByExpr, Subscript, TypedString, UnaryOperator, Value, ValueWithSpan,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::query::check_sorts;
use super::{LEAVE_OUT, refuse, refuse_if};
use crate::error::{EngineError, Result};
use crate::sql::collations::check_collation;
use crate::sql::expression_forms::listed_patterns;
use crate::sql::function_forms::is_aggregate_form;
use crate::sql::marks;
use crate::sql::overlapping_periods::period;

/// The window functions that skip nulls where they are told to.
const NULL_TREATMENT: [&str; 10] =
    ["lead", "lag", "first_value", "last_value", "nth_value", "array_agg", "first", "last", "any_value", "arbitrary"];

/// The names of functions of many rows, which take FILTER, DISTINCT, ORDER BY and OVER.
static OF_ROWS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut names = HashSet::new();
    for function in crate::functions::aggregate_functions() {
        names.insert(function.name().to_owned());
        names.extend(function.aliases().iter().cloned());
    }
    for function in SessionStateDefaults::default_window_functions() {
        names.insert(function.name().to_owned());
        names.extend(function.aliases().iter().cloned());
    }
    names
});

pub(super) fn check(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(_, _)
        | Expr::IsNotDistinctFrom(_, _)
        | Expr::InList { expr: _, list: _, negated: _ }
        | Expr::InSubquery { expr: _, subquery: _, negated: _ }
        | Expr::Between { expr: _, negated: _, low: _, high: _ }
        | Expr::AtTimeZone { timestamp: _, time_zone: _ }
        | Expr::Extract { field: _, syntax: _, expr: _ }
        | Expr::Position { expr: _, r#in: _ }
        | Expr::Substring { expr: _, substring_from: _, substring_for: _, special: _, shorthand: _ }
        | Expr::Overlay { expr: _, overlay_what: _, overlay_from: _, overlay_for: _ }
        | Expr::Nested(_)
        | Expr::Exists { subquery: _, negated: _ }
        | Expr::Subquery(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_)
        | Expr::Tuple(_)
        | Expr::Named { expr: _, name: _ }
        | Expr::Dictionary(_)
        | Expr::Map(_)
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(_, _) => Ok(()),
        Expr::CompoundFieldAccess { root: _, access_chain } => access_chain.iter().try_for_each(check_access),
        Expr::JsonAccess { value: _, path: _ } => refuse("`:` behind a value", "take a part of JSON with -> and ->>"),
        Expr::IsNormalized { expr: _, form: _, negated: _ } => refuse("IS NORMALIZED", LEAVE_OUT),
        Expr::InUnnest { expr: _, array_expr: _, negated: _ } => refuse("IN UNNEST", "write value = ANY(array)"),
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right }
            if period(left).is_some() && period(right).is_some() =>
        {
            Ok(())
        }
        Expr::BinaryOp { left: _, op, right: _ } => check_binary(op),
        Expr::Like { negated: _, any, expr: _, pattern, escape_char: _ }
        | Expr::ILike { negated: _, any, expr: _, pattern, escape_char: _ } => {
            let is_refused = *any && listed_patterns(pattern).is_none();
            refuse_if(
                is_refused,
                "LIKE ANY of this",
                "write the patterns in brackets, or one regular expression with ~",
            )
        }
        Expr::SimilarTo { negated: _, expr: _, pattern: _, escape_char } => {
            refuse_if(escape_char.is_some(), "ESCAPE of SIMILAR TO", "write a regular expression with ~")
        }
        Expr::RLike { negated: _, expr: _, pattern: _, regexp: _ } => {
            refuse("RLIKE and REGEXP", "write text ~ 'pattern'")
        }
        Expr::AnyOp { left: _, compare_op, right: _, is_some: _ } | Expr::AllOp { left: _, compare_op, right: _ } => {
            check_binary(compare_op)
        }
        Expr::UnaryOp { op, expr: _ } => check_unary(op),
        Expr::Convert { is_try: _, expr: _, data_type: _, charset: _, target_before_value: _, styles: _ } => {
            refuse("CONVERT", "write CAST(value AS type)")
        }
        Expr::Cast { kind: _, expr: _, data_type: _, array, format } => {
            refuse_if(*array, "CAST ... ARRAY", "write CAST(value AS type[])")?;
            match format {
                None => Ok(()),
                Some(CastFormat::Value(_) | CastFormat::ValueAtTimeZone(_, _)) => {
                    refuse("FORMAT in CAST", "write strptime(text, format) or strftime(time, format)")
                }
            }
        }
        Expr::Ceil { expr: _, field } | Expr::Floor { expr: _, field } => match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => Ok(()),
            CeilFloorKind::DateTimeField(_) => refuse("CEIL and FLOOR of a time", "write date_trunc('day', time)"),
            CeilFloorKind::Scale(_) => refuse("CEIL and FLOOR with digits", "write round(value, digits)"),
        },
        Expr::Trim { trim_where: _, trim_what: _, expr: _, trim_characters } => {
            let several = trim_characters.as_ref().is_some_and(|all| all.len() > 1);
            refuse_if(several, "TRIM of several texts", "write their characters as one text")
        }
        Expr::Collate { expr: _, collation } => check_collation(collation),
        Expr::Value(ValueWithSpan { value, span: _ }) => check_value(value),
        Expr::Prefixed { prefix: _, value: _ } => refuse("a prefix of a text", LEAVE_OUT),
        Expr::TypedString(TypedString { data_type: _, value: _, uses_odbc_syntax: _ }) => Ok(()),
        Expr::Function(function) => check_function(function),
        Expr::Case { case_token: _, end_token: _, operand: _, conditions, else_result: _ } => {
            conditions.iter().for_each(|CaseWhen { condition: _, result: _ }| {});
            Ok(())
        }
        Expr::Struct { values: _, fields } => {
            refuse_if(!fields.is_empty(), "STRUCT with types", "write named_struct('name', value), and cast the values")
        }
        Expr::Array(Array { elem: _, named: _ }) => Ok(()),
        Expr::Interval(interval) => {
            let Interval { value: _, leading_field: _, leading_precision, last_field, fractional_seconds_precision } =
                interval;
            let precise = leading_precision.is_some() || fractional_seconds_precision.is_some();
            refuse_if(precise, "a precision of INTERVAL", LEAVE_OUT)?;
            refuse_if(last_field.is_some(), "INTERVAL ... TO ...", "write INTERVAL '1 year 2 months'")
        }
        Expr::MatchAgainst { columns: _, match_value: _, opt_search_modifier: _ } => {
            refuse("MATCH ... AGAINST", "write text ILIKE '%words%', or search with `querent search`")
        }
        Expr::OuterJoin(_) => refuse("(+)", "write LEFT JOIN"),
        Expr::Prior(_) => refuse("PRIOR", "write WITH RECURSIVE"),
        Expr::Lambda(LambdaFunction { params, body: _, syntax: _ }) => {
            let params = match params {
                OneOrManyWithParens::One(param) => std::slice::from_ref(param),
                OneOrManyWithParens::Many(params) => params,
            };
            refuse_if(params.iter().any(|param| param.data_type.is_some()), "types of a lambda's parameters", LEAVE_OUT)
        }
        Expr::MemberOf(_) => refuse("MEMBER OF", "write list_contains(list, value)"),
    }
}

fn check_access(access: &AccessExpr) -> Result<()> {
    match access {
        AccessExpr::Dot(_) => Ok(()),
        AccessExpr::Subscript(Subscript::Index { index: _ }) => Ok(()),
        AccessExpr::Subscript(Subscript::Slice { lower_bound: _, upper_bound: _, stride: _ }) => Ok(()),
    }
}

fn check_binary(op: &BinaryOperator) -> Result<()> {
    match op {
        BinaryOperator::Plus
        | BinaryOperator::Minus
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::StringConcat
        | BinaryOperator::Gt
        | BinaryOperator::Lt
        | BinaryOperator::GtEq
        | BinaryOperator::LtEq
        | BinaryOperator::Spaceship
        | BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::And
        | BinaryOperator::Or
        | BinaryOperator::Xor
        | BinaryOperator::BitwiseOr
        | BinaryOperator::BitwiseAnd
        | BinaryOperator::BitwiseXor
        | BinaryOperator::DuckIntegerDivide
        | BinaryOperator::MyIntegerDivide
        | BinaryOperator::PGBitwiseXor
        | BinaryOperator::PGBitwiseShiftLeft
        | BinaryOperator::PGBitwiseShiftRight
        | BinaryOperator::PGExp
        | BinaryOperator::PGRegexMatch
        | BinaryOperator::PGRegexIMatch
        | BinaryOperator::PGRegexNotMatch
        | BinaryOperator::PGRegexNotIMatch
        | BinaryOperator::PGLikeMatch
        | BinaryOperator::PGILikeMatch
        | BinaryOperator::PGNotLikeMatch
        | BinaryOperator::PGNotILikeMatch
        | BinaryOperator::PGStartsWith
        | BinaryOperator::PGOverlap
        | BinaryOperator::Arrow
        | BinaryOperator::LongArrow
        | BinaryOperator::HashArrow
        | BinaryOperator::HashLongArrow
        | BinaryOperator::AtArrow
        | BinaryOperator::ArrowAt => Ok(()),
        BinaryOperator::Custom(name) if marks::is_operator(name) => Ok(()),
        BinaryOperator::Assignment => refuse("`:=`", "write = to compare"),
        BinaryOperator::Match | BinaryOperator::Regexp => refuse("MATCH and REGEXP", "write text ~ 'pattern'"),
        BinaryOperator::Overlaps => refuse("OVERLAPS", "compare the ends: a.start < b.end AND b.start < a.end"),
        BinaryOperator::AtAt | BinaryOperator::AtQuestion => refuse("a JSON path with an operator", "use json_extract"),
        BinaryOperator::Question | BinaryOperator::QuestionAnd | BinaryOperator::QuestionPipe => {
            refuse("`?` between values", "write json_exists(json, key)")
        }
        // Written out as calls.
        BinaryOperator::HashMinus => Ok(()),
        BinaryOperator::Custom(_)
        | BinaryOperator::PGCustomBinaryOperator(_)
        | BinaryOperator::DoubleHash
        | BinaryOperator::LtDashGt
        | BinaryOperator::AndLt
        | BinaryOperator::AndGt
        | BinaryOperator::LtLtPipe
        | BinaryOperator::PipeGtGt
        | BinaryOperator::AndLtPipe
        | BinaryOperator::PipeAndGt
        | BinaryOperator::LtCaret
        | BinaryOperator::GtCaret
        | BinaryOperator::QuestionHash
        | BinaryOperator::QuestionDash
        | BinaryOperator::QuestionDashPipe
        | BinaryOperator::QuestionDoublePipe
        | BinaryOperator::At
        | BinaryOperator::TildeEq => refuse(&format!("the operator `{op}`"), "write it as a function"),
    }
}

fn check_unary(op: &UnaryOperator) -> Result<()> {
    match op {
        UnaryOperator::Plus
        | UnaryOperator::Minus
        | UnaryOperator::Not
        | UnaryOperator::PGAbs
        | UnaryOperator::PGSquareRoot
        | UnaryOperator::PGCubeRoot
        | UnaryOperator::PGPostfixFactorial
        | UnaryOperator::PGPrefixFactorial
        | UnaryOperator::BitwiseNot => Ok(()),
        UnaryOperator::BangNot => refuse("`!`", "write NOT"),
        UnaryOperator::AtDashAt
        | UnaryOperator::DoubleAt
        | UnaryOperator::Hash
        | UnaryOperator::QuestionDash
        | UnaryOperator::QuestionPipe => refuse(&format!("the operator `{op}`"), "write it as a function"),
    }
}

fn check_value(value: &Value) -> Result<()> {
    match value {
        Value::Number(_, _)
        | Value::SingleQuotedString(_)
        | Value::DollarQuotedString(_)
        | Value::EscapedStringLiteral(_)
        | Value::HexStringLiteral(_)
        | Value::DoubleQuotedString(_)
        | Value::Boolean(_)
        | Value::Null
        | Value::UnicodeStringLiteral(_)
        | Value::NationalStringLiteral(_) => Ok(()),
        Value::Placeholder(name) if name.starts_with('$') => Ok(()),
        Value::Placeholder(name) => Err(EngineError::Plan {
            message: format!("parameters are written `?`, `$1`, `$2`, ... or `$name`, not `{name}`"),
        }),
        Value::SingleQuotedByteStringLiteral(_)
        | Value::DoubleQuotedByteStringLiteral(_)
        | Value::TripleSingleQuotedByteStringLiteral(_)
        | Value::TripleDoubleQuotedByteStringLiteral(_) => refuse("B'...'", "write bytes as X'00ff', bits as a number"),
        Value::TripleSingleQuotedString(_)
        | Value::TripleDoubleQuotedString(_)
        | Value::SingleQuotedRawStringLiteral(_)
        | Value::DoubleQuotedRawStringLiteral(_)
        | Value::TripleSingleQuotedRawStringLiteral(_)
        | Value::TripleDoubleQuotedRawStringLiteral(_)
        | Value::QuoteDelimitedStringLiteral(_)
        | Value::NationalQuoteDelimitedStringLiteral(_) => refuse("this kind of quotes", "write 'text' or $$text$$"),
    }
}

fn check_function(function: &Function) -> Result<()> {
    let Function { name, uses_odbc_syntax: _, parameters, args, filter, null_treatment, over, within_group } = function;
    match parameters {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) | FunctionArguments::List(_) => {
            refuse("parameters of a function before its arguments", "write them as arguments")?;
        }
    }
    let lowered = name.to_string().to_lowercase();
    let of_rows = OF_ROWS.contains(&lowered) || is_aggregate_form(&lowered);
    let only_rows = |what: &str| {
        refuse(&format!("{what} of {lowered}"), "leave it out: it is a function of one row, or one that there is not")
    };
    let mut ordered = false;
    let mut treats_nulls = null_treatment.is_some();
    match args {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) => {
            refuse_if(lowered != "array", &format!("a query as the argument of {lowered}"), "put it in parentheses")?;
        }
        FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) => {
            if duplicate_treatment.is_some() && !of_rows {
                only_rows("DISTINCT")?;
            }
            refuse_if(
                matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct)) && counts_all_rows(&lowered),
                &format!("DISTINCT in {lowered}"),
                "aggregate the rows of a query: FROM (SELECT DISTINCT a, b FROM t)",
            )?;
            args.iter().try_for_each(check_argument)?;
            if args.iter().any(is_star) {
                // The planner makes a constant of the star.
                let is_distinct = matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct));
                refuse_if(
                    is_distinct,
                    "DISTINCT *",
                    "count the rows of a query: SELECT count(*) FROM (SELECT DISTINCT * FROM t)",
                )?;
                let what = format!("`*` in {lowered}");
                let is_refused = of_rows && !lowered.starts_with("count");
                refuse_if(is_refused, &what, "name a column, or write COLUMNS(*) for each of them")?;
            }
            for clause in clauses {
                match clause {
                    FunctionArgumentClause::IgnoreOrRespectNulls(_) => treats_nulls = true,
                    FunctionArgumentClause::OrderBy(sorts) => {
                        ordered = true;
                        check_sorts(sorts)?;
                        refuse_if(
                            lowered == "mode" && !is_upwards(args, sorts),
                            "ORDER BY of mode",
                            "of values that are as frequent it is the least; for another write \
                             (SELECT value FROM t GROUP BY value ORDER BY count(*) DESC, min(key) LIMIT 1)",
                        )?;
                    }
                    FunctionArgumentClause::Limit(_) => {
                        refuse(
                            "LIMIT in a function",
                            "take a part of the list: array_slice(array_agg(x ORDER BY x), 1, n)",
                        )?;
                    }
                    FunctionArgumentClause::OnOverflow(_) => refuse("ON OVERFLOW", LEAVE_OUT)?,
                    FunctionArgumentClause::Having(_) => refuse("HAVING in a function", "write arg_max(value, key)")?,
                    // `group_concat(x SEPARATOR ',')`: see `function_forms`.
                    FunctionArgumentClause::Separator(_) if lowered == "group_concat" => {}
                    FunctionArgumentClause::Separator(_) => refuse("SEPARATOR", "write string_agg(text, ',')")?,
                    FunctionArgumentClause::JsonNullClause(_) => refuse("a NULL clause in a function", LEAVE_OUT)?,
                    FunctionArgumentClause::JsonReturningClause(_) => {
                        refuse("RETURNING in a function", "cast its value")?
                    }
                }
            }
        }
    }
    check_sorts(within_group)?;
    if !of_rows {
        if filter.is_some() {
            only_rows("FILTER")?;
        }
        if over.is_some() {
            only_rows("OVER")?;
        }
        if ordered {
            only_rows("ORDER BY")?;
        }
        if !within_group.is_empty() && lowered != "percentile_disc" {
            only_rows("WITHIN GROUP")?;
        }
        if treats_nulls {
            only_rows("IGNORE NULLS")?;
        }
    }
    if treats_nulls && over.is_some() && !NULL_TREATMENT.contains(&lowered.as_str()) {
        refuse(&format!("IGNORE NULLS of {lowered}"), "write FILTER (WHERE value IS NOT NULL)")?;
    }
    match over {
        None | Some(WindowType::NamedWindow(_)) => Ok(()),
        Some(WindowType::WindowSpec(spec)) => check_window_spec(spec),
    }
}

/// Whether an aggregate would take no notice of DISTINCT.
fn counts_all_rows(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "approx_median",
        "approx_percentile_cont",
        "approx_percentile_cont_with_weight",
        "approx_quantile",
        "corr",
        "count_if",
        "countif",
        "covar",
        "covar_pop",
        "covar_samp",
        "product",
        "wavg",
        "weighted_avg",
    ];
    NAMES.contains(&name) || name.starts_with("regr_")
}

/// Whether an aggregate's one value is what its rows are ordered by, from the least.
fn is_upwards(args: &[FunctionArg], sorts: &[OrderByExpr]) -> bool {
    match (args, sorts) {
        ([FunctionArg::Unnamed(FunctionArgExpr::Expr(value))], [sort]) => {
            sort.expr == *value && sort.options.asc != Some(false)
        }
        _ => false,
    }
}

fn check_argument(argument: &FunctionArg) -> Result<()> {
    let argument = match argument {
        FunctionArg::Named { name: _, arg, operator: _ } => arg,
        FunctionArg::ExprNamed { name: _, arg: _, operator: _ } => {
            return refuse("an argument named by an expression", "name it by a word");
        }
        FunctionArg::Unnamed(argument) => argument,
    };
    match argument {
        FunctionArgExpr::Expr(_)
        | FunctionArgExpr::QualifiedWildcard(_)
        | FunctionArgExpr::Wildcard
        // `COLUMNS(* EXCLUDE (a))`: see `expansion`, which refuses it elsewhere.
        | FunctionArgExpr::WildcardWithOptions(_) => Ok(()),
    }
}

/// Whether an argument is `*` or `t.*`.
fn is_star(argument: &FunctionArg) -> bool {
    let (FunctionArg::Named { name: _, arg, operator: _ }
    | FunctionArg::ExprNamed { name: _, arg, operator: _ }
    | FunctionArg::Unnamed(arg)) = argument;
    !matches!(arg, FunctionArgExpr::Expr(_))
}

pub(super) fn check_window_spec(spec: &WindowSpec) -> Result<()> {
    let WindowSpec { window_name: _, partition_by: _, order_by, window_frame } = spec;
    check_sorts(order_by)?;
    let Some(WindowFrame { units, start_bound, end_bound }) = window_frame else { return Ok(()) };
    match units {
        WindowFrameUnits::Rows | WindowFrameUnits::Range | WindowFrameUnits::Groups => {}
    }
    for bound in [Some(start_bound), end_bound.as_ref()].into_iter().flatten() {
        match bound {
            WindowFrameBound::CurrentRow | WindowFrameBound::Preceding(_) | WindowFrameBound::Following(_) => {}
        }
    }
    Ok(())
}
