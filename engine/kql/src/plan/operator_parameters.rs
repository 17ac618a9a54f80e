//! The parameters that operators have: `name=value` before their operands. One that an operator does not have, or a
//! value that it does not take, is refused. Hints are for Kusto's engine and change no answer.

use crate::ast::{Literal, Operator, OperatorKind, ParameterValue};
use crate::bind::{Result, invalid};

/// What a parameter takes.
enum AllowedValues {
    Any,
    Truth,
    Words(&'static [&'static str]),
}

type KnownParameter = (&'static str, AllowedValues);

const UNION: &[KnownParameter] = &[
    ("kind", AllowedValues::Words(&["inner", "outer"])),
    ("withsource", AllowedValues::Any),
    ("with_source", AllowedValues::Any),
    ("isfuzzy", AllowedValues::Truth),
    ("best_effort", AllowedValues::Truth),
];
const FIND: &[KnownParameter] = &[("withsource", AllowedValues::Any), ("with_source", AllowedValues::Any)];
const GET_SCHEMA: &[KnownParameter] = &[("kind", AllowedValues::Words(&["csl"]))];
const JOIN: &[KnownParameter] = &[("kind", AllowedValues::Any)];
const MAKE_SERIES: &[KnownParameter] = &[("kind", AllowedValues::Words(&["nonempty"]))];
const EXPANSION: &[KnownParameter] = &[
    ("kind", AllowedValues::Words(&["bag", "array"])),
    ("bagexpansion", AllowedValues::Words(&["bag", "array"])),
    ("with_itemindex", AllowedValues::Any),
];
const PARSE: &[KnownParameter] =
    &[("kind", AllowedValues::Words(&["simple", "regex", "relaxed"])), ("flags", AllowedValues::Any)];
const REDUCE: &[KnownParameter] = &[("kind", AllowedValues::Words(&["source"]))];
const SCAN: &[KnownParameter] = &[
    ("kind", AllowedValues::Words(&["partial", "full"])),
    ("with_match_id", AllowedValues::Any),
    ("with_step_name", AllowedValues::Any),
];
const SEARCH: &[KnownParameter] = &[("kind", AllowedValues::Words(&["default", "case_insensitive", "case_sensitive"]))];
const CONSUME: &[KnownParameter] = &[("decodeblocks", AllowedValues::Truth)];

/// Returns what an operator takes; `None` where its own planning says so.
fn known_parameters(kind: &OperatorKind) -> Option<&'static [KnownParameter]> {
    Some(match kind {
        OperatorKind::Union(_) => UNION,
        OperatorKind::Find(_) => FIND,
        OperatorKind::GetSchema => GET_SCHEMA,
        OperatorKind::Join { .. } | OperatorKind::Lookup { .. } => JOIN,
        OperatorKind::MakeSeries(_) => MAKE_SERIES,
        OperatorKind::MvApply(_) | OperatorKind::MvExpand(_) => EXPANSION,
        OperatorKind::Parse(_) => PARSE,
        OperatorKind::Reduce { .. } => REDUCE,
        OperatorKind::Scan(_) => SCAN,
        OperatorKind::Search(_) => SEARCH,
        OperatorKind::Consume => CONSUME,
        OperatorKind::As(_) | OperatorKind::Evaluate { .. } | OperatorKind::Partition(_) | OperatorKind::Sort(_) => &[],
        _ => return None,
    })
}

/// Checks the parameters of an operator.
pub(super) fn check_parameters(operator: &Operator) -> Result<()> {
    let Some(known) = known_parameters(&operator.kind) else { return Ok(()) };
    for parameter in &operator.parameters {
        let name = parameter.name.text.as_str();
        if name.starts_with("hint.") || name.starts_with("__") {
            continue;
        }
        let Some((_, takes)) = known.iter().find(|(known, _)| *known == name) else {
            return invalid(parameter.span, format!("this operator has no parameter `{name}`"));
        };
        let word = match &parameter.value {
            ParameterValue::Name(word) => Some(word.text.as_str()),
            ParameterValue::Literal(Literal::String(text)) => Some(text.as_str()),
            ParameterValue::Literal(Literal::Bool(true)) => Some("true"),
            ParameterValue::Literal(Literal::Bool(false)) => Some("false"),
            ParameterValue::Literal(_) => None,
        };
        let wanted: &[&str] = match takes {
            AllowedValues::Any => continue,
            AllowedValues::Truth => &["true", "false"],
            AllowedValues::Words(words) => words,
        };
        if !word.is_some_and(|word| wanted.contains(&word)) {
            return invalid(parameter.span, format!("`{name}` is one of: {}", wanted.join(", ")));
        }
    }
    Ok(())
}
