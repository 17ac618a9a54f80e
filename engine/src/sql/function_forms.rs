//! Functions that are expressions over other functions: DuckDB's and PostgreSQL's names for what there is already. A call is
//! written out in the syntax tree, so that it is planned, coerced and judged by policy as what it stands for.

mod indexed_lambda;
mod json_values;
mod lambda_parameters;
mod more_forms;
mod table;
mod time_patterns;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SqlDialect;
use super::shorthand::{call, number, text};
use super::syntax::{any_expr, count_nodes};
use super::volatile_queries::calls_volatile;
use crate::error::{EngineError, Result};

pub(super) use json_values::makes_json;
pub(super) use more_forms::{ANY_TEXT, has_wildcard, is_any_text};
pub(super) use table::{is_aggregate, is_aggregate_form};

/// The most nodes of arguments that a form may repeat: nested calls double them each time.
const MAX_REPEATED_NODES: usize = 2_000;
/// The most nodes that an argument makes which is repeated for each item of a list.
const MAX_LISTED_NODES: usize = 20_000;

/// Returns whether the function of a name computes one value of many rows: DataFusion's, ours, or one that is written in others.
pub fn aggregates_rows(name: &str) -> bool {
    let name = name.to_lowercase();
    is_aggregate(&name) || is_aggregate_form(&name)
}

/// A function, written out: `$1`, `$2`, ... are its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) arguments: usize,
    pub(super) meaning: &'static str,
    /// Whether it is over many rows.
    pub(super) aggregate: bool,
}

/// By name and number of arguments: a form's expression, and whether it repeats an argument.
type ParsedForms = HashMap<(&'static str, usize), (Expr, bool)>;

/// The expressions of all forms.
static PARSED: LazyLock<ParsedForms> = LazyLock::new(|| {
    let parsed = table::forms().filter_map(|form| {
        let expr = Parser::new(&SqlDialect).try_with_sql(form.meaning).ok()?.parse_expr().ok()?;
        Some(((form.name, form.arguments), (expr, repeats(form.meaning))))
    });
    parsed.collect()
});

/// Returns all forms.
pub(super) fn all() -> impl Iterator<Item = &'static Form> {
    table::forms()
}

/// Writes out a call of a form; other expressions stay as they are. Errors: `sql_plan_error`, `unsupported`.
pub(super) fn expand(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return Ok(()) };
    let name = name.value.to_lowercase();
    json_values::mark(&name, &mut function.args);
    lambda_parameters::name_all(&name, &mut function.args);
    let arguments = match &function.args {
        FunctionArguments::List(list) => positional(list),
        // It is called without brackets.
        FunctionArguments::None if name == "localtimestamp" => Some(Vec::new()),
        FunctionArguments::None | FunctionArguments::Subquery(_) => None,
    };
    if let Some(written) = special(&name, function, arguments.as_deref())? {
        *expr = written;
        return Ok(());
    }
    if let Some(written) = more_forms::written(&name, function, arguments.as_deref())? {
        *expr = written;
        return Ok(());
    }
    let Some(arguments) = arguments else { return Ok(()) };
    let Some((meaning, repeats)) = PARSED.get(&(name.as_str(), arguments.len())) else { return Ok(()) };
    if *repeats && count_nodes(&arguments) > MAX_REPEATED_NODES {
        return Err(EngineError::too_deep());
    }
    if *repeats && !is_aggregate_form(&name) && arguments.iter().any(calls_volatile) {
        return Err(EngineError::Unsupported {
            what: format!("{name} of a value that is another one each time, such as random(),"),
            hint: format!("select the value in a subquery: SELECT {name}(x) FROM (SELECT random() AS x FROM ...)"),
        });
    }
    let mut written = meaning.clone();
    let mut filling = Filling { arguments: &arguments };
    let _: ControlFlow<()> = VisitMut::visit(&mut written, &mut filling);
    let has_aggregates = arguments.iter().any(calls_aggregate);
    if *repeats && has_aggregates && (function.filter.is_some() || function.over.is_some()) {
        return Err(EngineError::Unsupported {
            what: format!("{name} of an aggregate, with FILTER or OVER,"),
            hint: "compute the inner aggregate in a subquery".into(),
        });
    }
    carry(&mut written, function, !has_aggregates);
    *expr = Expr::Nested(Box::new(written));
    Ok(())
}

fn calls_aggregate(expr: &Expr) -> bool {
    any_expr(expr, |part| match part {
        Expr::Function(function) => table::is_aggregate(&function.name.to_string().to_lowercase()),
        _ => false,
    })
}

fn repeats(meaning: &str) -> bool {
    (1..=6).any(|position| meaning.matches(&format!("${position}")).count() > 1)
}

/// Returns a call's values, where they are values only.
fn positional(list: &FunctionArgumentList) -> Option<Vec<Expr>> {
    let value = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        FunctionArg::Unnamed(_) | FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => None,
    };
    list.args.iter().map(value).collect()
}

/// Puts arguments in the places of parameters.
struct Filling<'a> {
    arguments: &'a [Expr],
}

impl VisitorMut for Filling<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expr
            && let Some(argument) =
                name[1..].parse::<usize>().ok().and_then(|at| self.arguments.get(at.wrapping_sub(1)))
        {
            *expr = match argument {
                Expr::Identifier(_)
                | Expr::CompoundIdentifier(_)
                | Expr::Value(_)
                | Expr::Lambda(_)
                | Expr::Function(_) => argument.clone(),
                other => Expr::Nested(Box::new(other.clone())),
            };
        }
        ControlFlow::Continue(())
    }
}

/// Gives the aggregates of `written` what the call had beside its arguments.
fn carry(written: &mut Expr, call: &Function, to_all: bool) {
    struct Carrier<'a>(&'a Function, bool);
    impl Carrier<'_> {
        /// Returns whether the expression is an aggregate.
        fn add_to(&self, expr: &mut Expr) -> bool {
            let Expr::Function(function) = expr else { return false };
            if !table::is_aggregate(&function.name.to_string()) {
                return false;
            }
            add_modifiers(function, self.0);
            // `listagg(x, ',') WITHIN GROUP (ORDER BY y)` is `string_agg(x, ',' ORDER BY y)`.
            if let FunctionArguments::List(own) = &mut function.args
                && !self.0.within_group.is_empty()
            {
                own.clauses.push(FunctionArgumentClause::OrderBy(self.0.within_group.clone()));
            }
            true
        }
    }
    impl VisitorMut for Carrier<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            // What an argument calls is not ours.
            if !self.1 && self.add_to(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        // Behind its parts: what is added may call aggregates too, as in `OVER (ORDER BY count(*))`, and is not visited.
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if self.1 {
                self.add_to(expr);
            }
            ControlFlow::Continue(())
        }
    }
    let _: ControlFlow<()> = VisitMut::visit(written, &mut Carrier(call, to_all));
}

fn add_modifiers(function: &mut Function, call: &Function) {
    if let Some(filter) = &call.filter {
        function.filter = Some(Box::new(match function.filter.take() {
            Some(own) => Expr::BinaryOp {
                left: Box::new(Expr::Nested(own)),
                op: BinaryOperator::And,
                right: Box::new(Expr::Nested(filter.clone())),
            },
            None => filter.as_ref().clone(),
        }));
    }
    function.over = call.over.clone();
    function.null_treatment = function.null_treatment.or(call.null_treatment);
    if let (FunctionArguments::List(own), FunctionArguments::List(given)) = (&mut function.args, &call.args) {
        own.duplicate_treatment = own.duplicate_treatment.or(given.duplicate_treatment);
        own.clauses.extend(given.clauses.iter().cloned());
    }
}

/// Calls whose meaning is more than a template.
fn special(name: &str, function: &Function, arguments: Option<&[Expr]>) -> Result<Option<Expr>> {
    Ok(match (name, arguments) {
        ("struct_pack" | "row_pack", _) => struct_pack(function),
        (
            "list_transform" | "array_transform" | "list_apply" | "array_apply" | "apply" | "transform" | "list_filter"
            | "array_filter" | "filter",
            Some([list, Expr::Lambda(lambda)]),
        ) => {
            let function = if name.ends_with("filter") { "array_filter" } else { "array_transform" };
            indexed_lambda::indexed(function, list, lambda)?
        }
        // The planner takes a null without a type beside a list for the value of a key.
        ("map", Some([keys, values])) if is_null(keys) || is_null(values) => {
            let typed = |list: &Expr| match is_null(list) {
                true => parse("CASE WHEN false THEN make_array() END"),
                false => Ok(list.clone()),
            };
            Some(call("map", vec![typed(keys)?, typed(values)?]))
        }
        ("list_value" | "list_pack" | "array_value", Some(values)) => Some(call("make_array", values.to_vec())),
        ("group_concat", _) => group_concat(function),
        (
            "json_extract"
            | "json_extract_string"
            | "json_exists"
            | "json_value"
            | "json_type"
            | "json_keys"
            | "json_array_length",
            Some([json, Expr::Array(paths)]),
        ) => {
            let nodes = count_nodes(std::slice::from_ref(json)).saturating_mul(paths.elem.len());
            if nodes > MAX_LISTED_NODES {
                let message = format!(
                    "{name} of a list reads its JSON once for each of the {} paths, and this is too long for so many; \
                     ask for fewer paths at a time, or keep the JSON in a table",
                    paths.elem.len()
                );
                return Err(EngineError::Plan { message });
            }
            let each = paths.elem.iter().map(|path| call(name, vec![json.clone(), path.clone()]));
            Some(call("make_array", each.collect()))
        }
        ("date_part" | "datepart", Some([Expr::Array(Array { elem, .. }), time])) => {
            let mut fields = Vec::new();
            for part in elem {
                let mut one = call("date_part", vec![part.clone(), time.clone()]);
                expand(&mut one)?;
                fields.extend([part.clone(), parse("CAST($1 AS BIGINT)").map(|cast| filled(cast, &[one]))?]);
            }
            Some(call("named_struct", fields))
        }
        ("date_part" | "datepart", Some([part, time])) => return date_part(part, time),
        ("date_trunc" | "datetrunc", Some([part, time])) => return date_trunc(part, time),
        ("struct_insert", _) => with_named_fields(function, "struct_concat"),
        ("struct_update", _) => with_named_fields(function, "struct_merge"),
        ("struct_extract", Some([value, position @ Expr::Value(ValueWithSpan { value: Value::Number(..), .. })])) => {
            Some(call("struct_extract_at", vec![value.clone(), position.clone()]))
        }
        (
            "list_aggregate" | "array_aggregate" | "list_aggr" | "array_aggr" | "aggregate",
            Some([list, which, separator]),
        ) if which.to_string().eq_ignore_ascii_case("'string_agg'") => {
            if count_nodes(std::slice::from_ref(list)) > MAX_REPEATED_NODES {
                return Err(EngineError::too_deep());
            }
            let meaning = "CASE WHEN list_count($1) > 0 THEN array_to_string($1, $2) END";
            Some(filled(parse(meaning)?, &[list.clone(), separator.clone()]))
        }
        // Also of texts and structs, as the subscript is.
        ("array_extract" | "list_extract" | "list_element", Some([value, position])) => {
            Some(filled(parse("($1)[$2]")?, &[value.clone(), position.clone()]))
        }
        // Also of texts, as the subscript is.
        ("array_slice" | "list_slice", Some(parts @ [_, _, _])) => Some(filled(parse("($1)[$2:$3]")?, parts)),
        ("array_slice" | "list_slice", Some(parts @ [_, _, _, _])) => Some(filled(parse("($1)[$2:$3:$4]")?, parts)),
        ("make_date", Some([days])) => Some(call("date_from_days", vec![days.clone()])),
        // A null by itself has no type that they take.
        ("sum" | "avg" | "mean" | "median", Some([value])) if is_null(value) => {
            let mut typed = function.clone();
            if let FunctionArguments::List(list) = &mut typed.args {
                list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(parse("CAST(NULL AS DOUBLE)")?))];
            }
            Some(Expr::Function(typed))
        }
        ("list_concat" | "list_cat" | "array_concat" | "array_cat", Some(lists)) if lists.iter().any(is_null) => {
            let known: Vec<Expr> = lists.iter().filter(|list| !is_null(list)).cloned().collect();
            Some(match known.is_empty() {
                true => Expr::Value(Value::Null.into()),
                false => call(name, known),
            })
        }
        ("count" | "count_star", Some([])) => {
            let mut counted = function.clone();
            counted.name = ObjectName::from(vec![Ident::new("count")]);
            counted.args = FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args: vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)],
                clauses: Vec::new(),
            });
            Some(Expr::Function(counted))
        }
        ("list_aggregate" | "array_aggregate" | "list_aggr" | "array_aggr" | "aggregate", Some([list, which])) => {
            let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(which), .. }) = which else {
                return Err(EngineError::Plan { message: format!("{name} takes the name of an aggregate as a text") });
            };
            let mut written = call(&format!("list_{}", which.to_lowercase()), vec![list.clone()]);
            expand(&mut written)?;
            Some(written)
        }
        (
            "quantile_cont" | "quantile_disc" | "quantile" | "approx_quantile",
            Some([value, Expr::Array(Array { elem, .. })]),
        ) => {
            let mut quantiles = Vec::with_capacity(elem.len());
            for fraction in elem {
                let Expr::Function(mut one) = call(name, vec![value.clone(), fraction.clone()]) else { continue };
                add_modifiers(&mut one, function);
                let mut one = Expr::Function(one);
                expand(&mut one)?;
                quantiles.push(one);
            }
            Some(list_of_values(quantiles)?)
        }
        ("max" | "min", Some([value, count])) => {
            let order = if name == "max" { "DESC" } else { "ASC" };
            let meaning =
                format!("array_slice(array_agg($1 ORDER BY $1 {order}) FILTER (WHERE $1 IS NOT NULL), 1, $2)");
            let mut written = parse(&meaning)?;
            let _: ControlFlow<()> =
                VisitMut::visit(&mut written, &mut Filling { arguments: &[value.clone(), count.clone()] });
            carry(&mut written, function, false);
            Some(written)
        }
        ("string_to_array", Some([value, separator])) => {
            Some(call("string_to_array", vec![value.clone(), separator.clone()]))
        }
        // DuckDB's parts of an empty text are one, and it parts a text at every character by an empty one; PostgreSQL's function has
        // none of an empty text, and one by an empty one.
        ("string_split" | "str_split" | "split", Some(arguments @ [value, _])) => {
            if count_nodes(std::slice::from_ref(value)) > MAX_REPEATED_NODES {
                return Err(EngineError::too_deep());
            }
            let meaning = "CASE WHEN $1 = '' THEN make_array('') WHEN $2 = '' THEN string_to_array($1, NULL) \
                           WHEN $1 IS NOT NULL AND $2 IS NULL THEN make_array($1) \
                           ELSE string_to_array($1, $2) END";
            Some(filled(parse(meaning)?, arguments))
        }
        ("percentile_cont" | "percentile_disc", Some([Expr::Array(Array { elem, .. })]))
            if !function.within_group.is_empty() =>
        {
            let percentiles = elem.iter().map(|fraction| {
                let Expr::Function(mut one) = call(name, vec![fraction.clone()]) else { return Ok(fraction.clone()) };
                add_modifiers(&mut one, function);
                one.within_group = function.within_group.clone();
                let mut one = Expr::Function(one);
                expand(&mut one)?;
                Ok(one)
            });
            Some(list_of_values(percentiles.collect::<Result<_>>()?)?)
        }
        ("regexp_extract", Some([value, pattern, Expr::Array(Array { elem: names, .. })])) => {
            if count_nodes(std::slice::from_ref(value)) > MAX_REPEATED_NODES {
                return Err(EngineError::too_deep());
            }
            let fields = names.iter().zip(1..).flat_map(|(name, group)| {
                let group = number(&group.to_string());
                [name.clone(), call("regexp_extract", vec![value.clone(), pattern.clone(), group])]
            });
            Some(call("named_struct", fields.collect()))
        }
        _ => None,
    })
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Null, .. }))
}

/// `date_part('century', t)`, of a part that is a function and not one of DataFusion's parts.
fn date_part(part: &Expr, time: &Expr) -> Result<Option<Expr>> {
    const FUNCTIONS: [&str; 10] = [
        "century",
        "decade",
        "millennium",
        "era",
        "yearweek",
        "julian",
        "isoyear",
        "dayofyear",
        "weekday",
        "weekofyear",
    ];
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(part), .. }) = part else { return Ok(None) };
    let part = part.to_lowercase();
    if !FUNCTIONS.contains(&part.as_str()) {
        return Ok(None);
    }
    let mut written = call(&part, vec![time.clone()]);
    expand(&mut written)?;
    Ok(Some(written))
}

/// `date_trunc('decade', t)`, which DataFusion lacks. Of centuries PostgreSQL and DuckDB have different beginnings.
fn date_trunc(part: &Expr, time: &Expr) -> Result<Option<Expr>> {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(part), .. }) = part else { return Ok(None) };
    match part.to_lowercase().as_str() {
        "decade" | "decades" => {
            // An interval has none here, as it has no other part.
            let meaning = "date_trunc('year', $1) - CAST(CAST((CAST(date_part('year', $1) AS BIGINT) % 10 + 10) % 10 AS \
                           VARCHAR) || ' years' AS INTERVAL)";
            Ok(Some(Expr::Nested(Box::new(filled(parse(meaning)?, std::slice::from_ref(time))))))
        }
        "century" | "centuries" | "millennium" | "millennia" => Err(EngineError::Unsupported {
            what: format!("date_trunc of a {part}"),
            hint: "PostgreSQL begins one in 1901 and DuckDB in 1900: write make_date(year, 1, 1)".into(),
        }),
        _ => Ok(None),
    }
}

/// `struct_insert(s, a := 1)` is `struct_concat(s, named_struct('a', 1))`.
fn with_named_fields(function: &Function, joining: &str) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let (first, rest) = list.args.split_first()?;
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(first)) = first else { return None };
    let mut fields = Vec::new();
    for argument in rest {
        let FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } = argument else { return None };
        fields.extend([text(&name.value), value.clone()]);
    }
    (!fields.is_empty()).then(|| call(joining, vec![first.clone(), call("named_struct", fields)]))
}

/// Returns the list of what is computed of the same values, or null where there are none.
fn list_of_values(computed: Vec<Expr>) -> Result<Expr> {
    let first = computed.first().cloned();
    let list = call("make_array", computed);
    match first {
        Some(first) => Ok(filled(parse("CASE WHEN $1 IS NOT NULL THEN $2 END")?, &[first, list])),
        None => Ok(list),
    }
}

/// Returns an expression with arguments in the places of its parameters.
fn filled(mut expr: Expr, arguments: &[Expr]) -> Expr {
    fill(&mut expr, arguments);
    expr
}

/// Puts arguments in the places of the parameters of a part of a statement.
pub(super) fn fill(part: &mut impl VisitMut, arguments: &[Expr]) {
    let _: ControlFlow<()> = part.visit(&mut Filling { arguments });
}

/// Returns a form that is written out where it is used, with its arguments. Errors: `internal`.
pub(super) fn parsed_form(meaning: &str, arguments: &[Expr]) -> Result<Expr> {
    parse(meaning).map(|form| filled(form, arguments))
}

fn parse(meaning: &str) -> Result<Expr> {
    let parsed = Parser::new(&SqlDialect).try_with_sql(meaning).and_then(|mut parser| parser.parse_expr());
    parsed.map_err(|error| EngineError::Internal(format!("`{meaning}` does not parse: {error}")))
}

/// `struct_pack(a := 1)` is `named_struct('a', 1)`, and a column has its own name.
fn struct_pack(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let mut fields = Vec::new();
    for argument in &list.args {
        match argument {
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                fields.extend([text(&name.value), value.clone()]);
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value @ Expr::Identifier(name))) => {
                fields.extend([text(&name.value), value.clone()]);
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value @ Expr::CompoundIdentifier(names))) => {
                fields.extend([text(&names.last()?.value), value.clone()]);
            }
            _ => return None,
        }
    }
    Some(call("named_struct", fields))
}

/// `group_concat(x [ORDER BY y] [SEPARATOR ','])` is `string_agg(x, ',' ORDER BY y)`.
fn group_concat(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let arguments = positional(list)?;
    let separator = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::Separator(separator) => Some(Expr::Value(separator.clone())),
        _ => None,
    });
    let (value, separator) = match (arguments.as_slice(), separator) {
        ([value], separator) => (value, separator.unwrap_or_else(|| text(","))),
        ([value, given], None) => (value, given.clone()),
        _ => return None,
    };
    let Expr::Function(mut written) = call("string_agg", vec![value.clone(), separator]) else { return None };
    let mut given = function.clone();
    if let FunctionArguments::List(given) = &mut given.args {
        given.clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::Separator(_)));
    }
    add_modifiers(&mut written, &given);
    Some(Expr::Function(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_parses_and_names_only_its_arguments() {
        for form in all() {
            assert!(
                PARSED.contains_key(&(form.name, form.arguments)),
                "{} does not parse: {}",
                form.name,
                form.meaning
            );
            let beyond = format!("${}", form.arguments + 1);
            assert!(!form.meaning.contains(&beyond), "{}", form.name);
            assert_eq!(form.name, form.name.to_lowercase());
        }
    }

    #[test]
    fn repeated_arguments_do_not_grow_without_bound() {
        let mut text = "x".to_owned();
        for _ in 0..40 {
            text = format!("width_bucket({text}, 0, 1, 2)");
        }
        struct Expander;
        impl VisitorMut for Expander {
            type Break = EngineError;
            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
                match expand(expr) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => ControlFlow::Break(error),
                }
            }
        }
        // As deep as on a query's thread.
        let is_refused = stacker::grow(64 << 20, || {
            let mut expr = Parser::new(&SqlDialect).try_with_sql(&text).unwrap().parse_expr().unwrap();
            VisitMut::visit(&mut expr, &mut Expander).is_break()
        });
        assert!(is_refused);
    }
}
