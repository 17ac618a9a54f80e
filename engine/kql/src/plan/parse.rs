//! `parse`, `parse-where` and `parse-kv`: columns extracted from a string by the delimiters between them. The pattern
//! becomes one regular expression, whose groups are converted to the columns' types.

mod captures;
mod key_values;
mod shapes;
mod text_parts;

use std::collections::HashSet;

use datafusion::logical_expr::{Expr as PlanExpr, lit};
use datafusion::prelude::coalesce;

use super::{Column, Relation, field_column};
use crate::ast::{
    ColumnDeclaration, Expr, ExprKind, Literal, Operator, ParameterValue, Parse, ParsePart, Property, ScalarType,
};
use crate::bind::{Binder, Environment, ExpressionScope, Result, Typed, invalid, null_of, text_literal};
use crate::functions::part_of;
use crate::span::Span;
use crate::types::KqlType;
use captures::group_name;
pub(super) use captures::{captures, is_captures_function, pattern_of_captures};
use key_values::Notation;
pub(super) use key_values::{KeyValues, is_key_values_function, key_values, wanted_key_values};

/// What may stand in the `with` of `parse-kv`.
const KEY_VALUE_OPTIONS: [&str; 6] = ["pair_delimiter", "kv_delimiter", "quote", "escape", "greedy", "regex"];

/// How strictly a string is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParseMode {
    /// A value that does not convert to its type makes the whole row a mismatch.
    Simple,
    /// A value that does not convert to its type is null.
    Relaxed,
    /// The delimiters are regular expressions.
    Regex,
}

impl<'a> Binder<'a> {
    pub(super) fn parse(
        &mut self,
        input: Relation,
        parse: &'a Parse,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mode = match operator.parameter("kind").map(|parameter| &parameter.value) {
            Some(ParameterValue::Name(name)) if name.text == "relaxed" => ParseMode::Relaxed,
            Some(ParameterValue::Name(name)) if name.text == "regex" => ParseMode::Regex,
            _ => ParseMode::Simple,
        };
        let flags = match operator.parameter("flags").map(|parameter| &parameter.value) {
            Some(ParameterValue::Name(name)) => name.text.clone(),
            Some(ParameterValue::Literal(Literal::String(text))) => text.clone(),
            _ => String::new(),
        };
        if !flags.is_empty() && mode != ParseMode::Regex {
            return invalid(operator.span, "only `kind=regex` takes flags");
        }
        if parse.filters && mode == ParseMode::Relaxed {
            return invalid(operator.span, "`parse-where` takes `kind=simple` and `kind=regex`");
        }
        let text = self.scalar(&parse.expr, &ExpressionScope::over_columns(environment, &input.columns))?;
        let text = self.convert(text, KqlType::String, parse.expr.span)?;
        let columns: Vec<(String, KqlType)> = parse
            .pattern
            .iter()
            .filter_map(|part| match part {
                ParsePart::Column { name, scalar_type } => {
                    Some((name.text.clone(), scalar_type.map_or(KqlType::String, KqlType::from)))
                }
                ParsePart::Skip(_) | ParsePart::Text { .. } => None,
            })
            .collect();
        check_pattern(&parse.pattern)?;
        let pattern = pattern_of(&parse.pattern, mode, &flags)?;
        let function = match captures(&pattern, columns.len()) {
            Ok(function) => function,
            Err(message) => return invalid(operator.span, message),
        };
        let (input, matched) = self.with_field(input, "parsed", function.call(vec![text.expr]))?;
        self.taken_apart(input, &matched, columns, mode, parse.filters, operator.span)
    }

    fn taken_apart(
        &mut self,
        input: Relation,
        matched: &str,
        columns: Vec<(String, KqlType)>,
        mode: ParseMode,
        filters: bool,
        span: Span,
    ) -> Result<Relation> {
        let mut is_whole = field_column(matched).is_not_null();
        let mut values: Vec<(String, Typed)> = Vec::with_capacity(columns.len());
        for (index, (name, kql_type)) in columns.into_iter().enumerate() {
            let group = part_of(field_column(matched), index, KqlType::String);
            let text = Typed::new(coalesce(vec![group, text_literal("")]), KqlType::String);
            let value = self.value_of_text(text, kql_type, span)?;
            if mode == ParseMode::Simple && !matches!(kql_type, KqlType::String | KqlType::Dynamic) {
                is_whole = is_whole.and(value.expr.clone().is_not_null());
            }
            values.push((name, value));
        }
        let (mut input, whole) = self.with_field(input, "whole", is_whole)?;
        if filters {
            input = self.filtered(input, field_column(&whole))?;
        }
        let mut outputs: Vec<(String, Typed)> = input.columns.iter().map(Column::output).collect();
        for (name, value) in values {
            let guarded = if mode == ParseMode::Relaxed { value } else { only_where(field_column(&whole), value)? };
            match outputs.iter_mut().find(|(known, _)| *known == name) {
                Some(output) => output.1 = guarded,
                None => outputs.push((name, guarded)),
            }
        }
        self.projected(input, outputs)
    }

    /// `parse-kv a as (b:long) with (pair_delimiter=",", kv_delimiter="=")`.
    pub(super) fn parse_kv(
        &mut self,
        input: Relation,
        expr: &'a Expr,
        columns: &'a [ColumnDeclaration],
        properties: &'a [Property],
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        for property in properties {
            let name = property.name.text.as_str();
            if !KEY_VALUE_OPTIONS.contains(&name) {
                let known = KEY_VALUE_OPTIONS.join(", ");
                return invalid(property.name.span, format!("`parse-kv` has no option `{name}`; it has {known}"));
            }
            let is_fit = |value: &Expr| match &value.kind {
                ExprKind::Literal(Literal::Bool(_)) => name == "greedy",
                ExprKind::Literal(Literal::String(_)) => name != "greedy",
                _ => false,
            };
            if !property.values.iter().all(is_fit) {
                let wanted = if name == "greedy" { "true or false" } else { "a text in quotes" };
                return invalid(property.name.span, format!("`{name}` of `parse-kv` is {wanted}"));
            }
        }
        let texts = |name: &str| -> Vec<String> {
            let named = properties.iter().filter(|property| property.name.text == name);
            let texts = named.flat_map(|property| &property.values).filter_map(|value| match &value.kind {
                ExprKind::Literal(Literal::String(text)) => Some(text.clone()),
                _ => None,
            });
            texts.collect()
        };
        let first = |name: &str| texts(name).into_iter().next();
        let is_greedy = properties.iter().any(|property| {
            property.name.text == "greedy"
                && property.values.iter().any(|value| value.kind == ExprKind::Literal(Literal::Bool(true)))
        });
        let quotes = texts("quote").into_iter().filter_map(|quote| {
            let mut chars = quote.chars();
            let open = chars.next()?;
            Some((open, chars.next().unwrap_or(open)))
        });
        let notation = match (first("regex"), first("pair_delimiter"), first("kv_delimiter")) {
            (Some(pattern), ..) => Notation::Pattern(pattern),
            (None, None, None) => Notation::Open,
            (None, pair, between) => {
                let pair = pair.unwrap_or_else(|| " ".to_owned());
                let between = between.unwrap_or_else(|| "=".to_owned());
                if pair.is_empty() || between.is_empty() {
                    return invalid(span, "a delimiter of `parse-kv` is not empty");
                }
                Notation::Delimited { pair, between, is_greedy }
            }
        };
        let wanted = KeyValues {
            keys: columns.iter().map(|column| column.name.text.clone()).collect(),
            notation,
            quotes: quotes.collect(),
            escapes: texts("escape").iter().flat_map(|escape| escape.chars().next()).collect(),
        };
        let function = match key_values(wanted) {
            Ok(function) => function,
            Err(message) => return invalid(span, message),
        };
        let text = self.scalar(expr, &ExpressionScope::over_columns(environment, &input.columns))?;
        let text = self.convert(text, KqlType::String, expr.span)?;
        let (input, found) = self.with_field(input, "parsed", function.call(vec![text.expr]))?;
        let mut outputs: Vec<(String, Typed)> = input.columns.iter().map(Column::output).collect();
        for (index, column) in columns.iter().enumerate() {
            let found = Typed::new(part_of(field_column(&found), index, KqlType::String), KqlType::String);
            let value = self.value_of_text(found, KqlType::from(column.scalar_type), column.span)?;
            match outputs.iter_mut().find(|(known, _)| *known == column.name.text) {
                Some(output) => output.1 = value,
                None => outputs.push((column.name.text.clone(), value)),
            }
        }
        self.projected(input, outputs)
    }

    /// Reads a part of a text as a column's value: a dynamic one as JSON, as `extract(..., typeof(dynamic))` does.
    fn value_of_text(&mut self, text: Typed, kql_type: KqlType, span: Span) -> Result<Typed> {
        match kql_type {
            KqlType::Dynamic => self.apply("parse_json", vec![text], span),
            _ => self.convert(text, kql_type, span),
        }
    }
}

fn only_where(condition: PlanExpr, value: Typed) -> Result<Typed> {
    let Typed { expr, kql_type } = value;
    let expr = datafusion::logical_expr::when(condition, expr).otherwise(lit(null_of(kql_type)))?;
    Ok(Typed::new(expr, kql_type))
}

/// Refuses, as Kusto does, a pattern that does not say where a column ends.
fn check_pattern(parts: &[ParsePart]) -> Result<()> {
    let mut names = HashSet::new();
    for part in parts {
        match part {
            ParsePart::Text { text: Literal::String(text), span } if text.is_empty() => {
                return invalid(*span, "a text of the pattern is not empty");
            }
            ParsePart::Column { name, .. } if !names.insert(name.text.as_str()) => {
                return invalid(name.span, format!("the column `{}` is there twice", name.text));
            }
            _ => {}
        }
    }
    for pair in parts.windows(2) {
        match pair {
            [ParsePart::Column { .. }, ParsePart::Column { name, .. }] => {
                return invalid(name.span, "between two columns a text must stand");
            }
            [ParsePart::Skip(_), ParsePart::Column { name, .. }] => {
                return invalid(name.span, "between a `*` and a column a text must stand");
            }
            [ParsePart::Skip(_), ParsePart::Skip(span)] => return invalid(*span, "after a `*` a text must stand"),
            [ParsePart::Column { scalar_type: None | Some(ScalarType::String), .. }, ParsePart::Skip(span)] => {
                return invalid(*span, "before a `*` a text must stand, or a column of a type that says where it ends");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the pattern as one regular expression with a group for each column.
fn pattern_of(parts: &[ParsePart], mode: ParseMode, flags: &str) -> Result<String> {
    let mut pattern = match mode {
        ParseMode::Simple | ParseMode::Relaxed => "(?s)^".to_owned(),
        ParseMode::Regex => {
            let flags: String =
                flags.chars().filter(|flag| matches!(flag, 'i' | 'm' | 's' | 'U' | 'R' | 'u' | 'x')).collect();
            if flags.is_empty() { flags } else { format!("(?{flags})") }
        }
    };
    let mut group = 0_usize;
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        match part {
            ParsePart::Skip(_) => pattern.push_str(if is_last { ".*" } else { ".*?" }),
            ParsePart::Text { text: Literal::String(text), .. } if mode == ParseMode::Regex => {
                pattern.push_str(&format!("(?:{text})"));
            }
            ParsePart::Text { text: Literal::String(text), .. } => pattern.push_str(&regex::escape(text)),
            ParsePart::Text { span, .. } => return invalid(*span, "expected a string"),
            ParsePart::Column { scalar_type, .. } => {
                let shape =
                    shapes::shape_of(scalar_type.map_or(KqlType::String, KqlType::from), mode == ParseMode::Regex);
                let is_before_skip = matches!(parts.get(index + 1), Some(ParsePart::Skip(_)));
                let is_before_last_skip = is_before_skip && index + 2 == parts.len();
                let value = match shape {
                    Some(shape) if mode == ParseMode::Regex => shape,
                    Some(shape) if is_before_last_skip => format!("(?:{shape})?"),
                    Some(shape) if is_before_skip => shape,
                    // Between regular expressions a column takes as much as it can.
                    _ if is_last || mode == ParseMode::Regex => ".*".to_owned(),
                    _ => ".*?".to_owned(),
                };
                pattern.push_str(&format!("(?<{}>{value})", group_name(group)));
                group += 1;
            }
        }
    }
    // Regular expressions need not begin where the text does, nor reach its end.
    if mode != ParseMode::Regex {
        pattern.push('$');
    }
    Ok(pattern)
}
