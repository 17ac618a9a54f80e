//! `reduce by`: texts that have most of their terms in common become one pattern, with `*` for what differs. Binding reads
//! the texts. Kusto's own way to group is not documented; texts are alike here when they have as many terms and at least
//! half of them at the same places.

use std::collections::HashMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::{LogicalPlanBuilder, cast, lit};
use datafusion::scalar::ScalarValue;

use super::Relation;
use crate::ast::{NamedExpr, Operator};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, constant_of, fail, given_name, invalid, not_supported,
    text_literal, text_of,
};
use crate::types::KqlType;

/// The most different texts that are read.
const MAX_TEXTS: usize = 100_000;
/// The most patterns that a text is compared with.
const MAX_PATTERNS: usize = 1_000;
const DEFAULT_THRESHOLD: f64 = 0.1;
/// The pattern of texts that are like no others.
const OTHERS: &str = "others";

impl<'a> Binder<'a> {
    pub(super) fn reduce(
        &mut self,
        input: Relation,
        by: &'a NamedExpr,
        with: &'a [NamedExpr],
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        if operator.parameter("kind").is_some() {
            return not_supported(operator.span, "`reduce kind=source`");
        }
        let (mut threshold, mut characters) = (DEFAULT_THRESHOLD, String::new());
        for setting in with {
            let value = self.scalar(&setting.expr, &ExpressionScope::constant(environment))?;
            match given_name(&setting.names) {
                Some("threshold") => {
                    let real = self.convert(value, KqlType::Real, setting.span)?;
                    match constant_of(&real.expr)? {
                        Some(ScalarValue::Float64(Some(real))) if (0.0..=1.0).contains(&real) => threshold = real,
                        _ => return invalid(setting.span, "the threshold is a number from 0 to 1"),
                    }
                }
                Some("characters") => match text_of(constant_of(&value.expr)?.as_ref()) {
                    Some(text) => text.clone_into(&mut characters),
                    None => return invalid(setting.span, "expected a constant string"),
                },
                _ => return invalid(setting.span, "`reduce` has `threshold` and `characters`"),
            }
        }
        let text = self.scalar(&by.expr, &ExpressionScope::over_columns(environment, &input.columns))?;
        let text = self.convert(text, KqlType::String, by.span)?;
        let plan = LogicalPlanBuilder::from(input.plan)
            .aggregate(vec![text.expr.alias("text")], vec![count_all().alias("count")])?
            .build()?;
        let plan = LogicalPlanBuilder::from(plan)
            .project(vec![super::field_column("text"), cast(super::field_column("count"), KqlType::Long.arrow_type())])?
            .sort(vec![super::field_column("text").sort(true, true)])?
            .build()?;
        let batches = self.rows(plan, MAX_TEXTS + 1)?;
        let mut texts: Vec<(String, i64)> = Vec::new();
        for batch in batches {
            let (Some(words), Some(counts)) =
                (batch.column(0).as_string_view_opt(), batch.column(1).as_primitive_opt::<Int64Type>())
            else {
                return invalid(by.span, "expected texts");
            };
            for row in 0..batch.num_rows() {
                let word = if words.is_null(row) { "" } else { words.value(row) };
                texts.push((word.to_owned(), counts.value(row)));
            }
        }
        if texts.len() > MAX_TEXTS {
            return fail(BindErrorCode::TooLarge, by.span, format!("more than {MAX_TEXTS} different texts"));
        }
        let rows = patterns(&texts, &characters, threshold)
            .into_iter()
            .map(|pattern| vec![text_literal(pattern.text), lit(pattern.count), text_literal(pattern.representative)]);
        let columns = [("Pattern", KqlType::String), ("Count", KqlType::Long), ("Representative", KqlType::String)];
        self.values(columns.map(|(name, kql_type)| (name.to_owned(), kql_type)).to_vec(), rows.collect())
    }
}

struct TextPattern {
    text: String,
    count: i64,
    representative: String,
}

/// Texts that are alike: their common terms, `None` where they differ.
struct LikeTexts<'t> {
    terms: Vec<Option<&'t str>>,
    /// What stands before, between and after the terms of the first text.
    between: Vec<&'t str>,
    count: i64,
    representative: &'t str,
    is_one_text: bool,
}

/// Splits a text into terms and what is around them.
fn split<'t>(text: &'t str, characters: &str) -> (Vec<&'t str>, Vec<&'t str>) {
    let is_term = |char: char| char.is_alphanumeric() && !characters.contains(char);
    let (mut terms, mut between) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let start = rest.find(is_term).unwrap_or(rest.len());
        between.push(&rest[..start]);
        rest = &rest[start..];
        if rest.is_empty() {
            return (terms, between);
        }
        let end = rest.find(|char| !is_term(char)).unwrap_or(rest.len());
        terms.push(&rest[..end]);
        rest = &rest[end..];
    }
}

fn patterns(texts: &[(String, i64)], characters: &str, threshold: f64) -> Vec<TextPattern> {
    let mut groups: Vec<LikeTexts> = Vec::new();
    let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
    for (text, count) in texts {
        let (terms, between) = split(text, characters);
        let candidates = by_length.entry(terms.len()).or_default();
        let common = |group: &LikeTexts| {
            group.terms.iter().zip(&terms).filter(|(known, term)| known.as_deref() == Some(**term)).count()
        };
        let alike = candidates
            .iter()
            .map(|index| (*index, common(&groups[*index])))
            .filter(|(_, common)| *common > 0 && 2 * common >= terms.len())
            .max_by_key(|(index, common)| (*common, usize::MAX - index));
        match alike {
            Some((index, _)) => {
                let group = &mut groups[index];
                for (known, term) in group.terms.iter_mut().zip(&terms) {
                    if known.as_deref() != Some(*term) {
                        *known = None;
                    }
                }
                group.count += count;
                group.is_one_text = false;
            }
            None if candidates.len() < MAX_PATTERNS => {
                candidates.push(groups.len());
                let terms = terms.into_iter().map(Some).collect();
                groups.push(LikeTexts { terms, between, count: *count, representative: text, is_one_text: true });
            }
            None => groups.push(LikeTexts {
                terms: Vec::new(),
                between,
                count: *count,
                representative: text,
                is_one_text: true,
            }),
        }
    }
    let total: i64 = texts.iter().map(|(_, count)| count).sum();
    let is_rare = |group: &LikeTexts| group.count as f64 <= threshold * total as f64;
    let (rare, frequent): (Vec<LikeTexts>, Vec<LikeTexts>) = groups.into_iter().partition(is_rare);
    let mut patterns: Vec<TextPattern> = frequent
        .iter()
        .map(|group| TextPattern {
            text: if group.is_one_text { group.representative.to_owned() } else { written(group) },
            count: group.count,
            representative: group.representative.to_owned(),
        })
        .collect();
    let others: i64 = rare.iter().map(|group| group.count).sum();
    if others > 0 {
        patterns.push(TextPattern { text: OTHERS.to_owned(), count: others, representative: String::new() });
    }
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.count));
    patterns
}

/// Returns the common terms with what is between them. What differs is a `*`, with all that is beside it but blanks.
fn written(group: &LikeTexts) -> String {
    let mut text = String::new();
    for (index, between) in group.between.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| group.terms.get(before));
        let after = group.terms.get(index);
        let is_beside_gap = [before, after].iter().any(|term| matches!(term, Some(None)));
        if !is_beside_gap || between.trim().is_empty() {
            text.push_str(between);
        }
        match after {
            Some(Some(term)) => text.push_str(term),
            Some(None) if !text.ends_with('*') => text.push('*'),
            Some(None) | None => {}
        }
    }
    text
}
