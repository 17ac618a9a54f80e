//! `reduce by`: texts that have most of their terms in common become one pattern, with `*` for what differs. Binding reads
//! the texts. Kusto's own way to group is not documented; texts are alike here when they have as many terms and at
//! least half of them at the same places. With `kind=source` the rows stay, each with its text's pattern.

use std::collections::HashMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::common::{Column as PlanColumn, JoinType};
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, cast, lit};
use datafusion::scalar::ScalarValue;

use super::{Column, Relation};
use crate::ast::{NamedExpr, Operator, ParameterValue};
use crate::bind::{
    BindError, BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, constant_of, fail, given_name,
    invalid, text_literal, text_of, unique_name,
};
use crate::interrupt::is_interrupted;
use crate::types::KqlType;

/// The most different texts that are read.
const MAX_TEXTS: usize = 100_000;
/// The most patterns that a text is compared with.
const MAX_PATTERNS: usize = 1_000;
/// With more terms a text is compared with patterns for so long that it is looked in between whether the query is over.
const LONG_TEXT_TERMS: usize = 1_000;
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
        let keeps_rows = match operator.parameter("kind").map(|kind| (&kind.value, kind.span)) {
            None => false,
            Some((ParameterValue::Name(kind), _)) if kind.text == "source" => true,
            Some((_, span)) => return invalid(span, "`reduce` has the kind `source`, and none"),
        };
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
        if text.kql_type != KqlType::String {
            let message = format!("`reduce` takes a string, this is a {}", text.kql_type.name());
            let error = BindError::new(BindErrorCode::TypeMismatch, by.span, message);
            return Err(error.with_hint("tostring() makes one").into());
        }
        let plan = LogicalPlanBuilder::from(input.plan.clone())
            .aggregate(vec![text.expr.clone().alias("text")], vec![count_all().alias("count")])?
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
        let patterns = patterns(&texts, &characters, threshold);
        // Where the query is over they are not all.
        self.spend(0, by.span)?;
        if keeps_rows {
            return self.with_patterns(input, text, &texts, &patterns);
        }
        let rows = patterns.into_iter().map(TextPattern::values);
        self.values(PATTERN_COLUMNS.map(|(name, kql_type)| (name.to_owned(), kql_type)).to_vec(), rows.collect())
    }

    /// Returns the rows with the pattern that the text of each has.
    fn with_patterns(
        &mut self,
        input: Relation,
        text: Typed,
        texts: &[(String, i64)],
        patterns: &[TextPattern],
    ) -> Result<Relation> {
        let mut of_texts = Vec::with_capacity(texts.len());
        for pattern in patterns {
            for index in &pattern.texts {
                let mut row = vec![text_literal(texts[*index].0.clone())];
                row.extend(pattern.clone().values());
                of_texts.push(row);
            }
        }
        let columns = std::iter::once(("text", KqlType::String)).chain(PATTERN_COLUMNS);
        let columns = columns.map(|(name, kql_type)| (name.to_owned(), kql_type)).collect();
        let known = self.values(columns, of_texts)?;
        let key = self.field("text");
        let mut kept: Vec<PlanExpr> = input.columns.iter().map(Column::expr).collect();
        kept.push(text.expr.alias(key.clone()));
        let rows = LogicalPlanBuilder::from(input.plan).project(kept)?;
        let keys = (vec![field_name(key)], vec![field_name(known.columns[0].field.clone())]);
        let plan = rows.join(known.plan, JoinType::Left, keys, None)?.build()?;
        let mut outputs: Vec<(String, Typed)> = input.columns.iter().map(Column::output).collect();
        for column in &known.columns[1..] {
            let name = unique_name(&column.name, |taken| outputs.iter().any(|(name, _)| name == taken));
            outputs.push((name, column.typed()));
        }
        let columns = input.columns.iter().chain(&known.columns).cloned().collect();
        self.projected(Relation::new(plan, columns), outputs)
    }
}

fn field_name(field: String) -> PlanColumn {
    PlanColumn::new_unqualified(field)
}

/// The columns that a pattern has.
const PATTERN_COLUMNS: [(&str, KqlType); 3] =
    [("Pattern", KqlType::String), ("Count", KqlType::Long), ("Representative", KqlType::String)];

#[derive(Clone)]
struct TextPattern {
    text: String,
    count: i64,
    representative: String,
    /// Which texts have it.
    texts: Vec<usize>,
}

impl TextPattern {
    fn values(self) -> Vec<PlanExpr> {
        vec![text_literal(self.text), lit(self.count), text_literal(self.representative)]
    }
}

/// Texts that are alike: their common terms, `None` where they differ.
struct LikeTexts<'t> {
    terms: Vec<Option<&'t str>>,
    /// What stands before, between and after the terms of the first text.
    between: Vec<&'t str>,
    count: i64,
    representative: &'t str,
    /// Which texts they are.
    texts: Vec<usize>,
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

/// Returns the patterns of texts, those of all of them unless the query is over.
fn patterns(texts: &[(String, i64)], characters: &str, threshold: f64) -> Vec<TextPattern> {
    let mut groups: Vec<LikeTexts> = Vec::new();
    let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
    for (number, (text, count)) in texts.iter().enumerate() {
        if is_interrupted() {
            break;
        }
        let (terms, between) = split(text, characters);
        let candidates = by_length.entry(terms.len()).or_default();
        let common = |group: &LikeTexts| {
            group.terms.iter().zip(&terms).filter(|(known, term)| known.as_deref() == Some(**term)).count()
        };
        let is_long = terms.len() > LONG_TEXT_TERMS;
        let alike = candidates
            .iter()
            .take_while(|_| !(is_long && is_interrupted()))
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
                group.texts.push(number);
            }
            None if candidates.len() < MAX_PATTERNS => {
                candidates.push(groups.len());
                let terms = terms.into_iter().map(Some).collect();
                groups.push(LikeTexts { terms, between, count: *count, representative: text, texts: vec![number] });
            }
            None => groups.push(LikeTexts {
                terms: Vec::new(),
                between,
                count: *count,
                representative: text,
                texts: vec![number],
            }),
        }
    }
    let total: i64 = texts.iter().map(|(_, count)| count).sum();
    let is_rare = |group: &LikeTexts| group.count as f64 <= threshold * total as f64;
    let (rare, frequent): (Vec<LikeTexts>, Vec<LikeTexts>) = groups.into_iter().partition(is_rare);
    let mut patterns: Vec<TextPattern> = frequent
        .into_iter()
        .map(|group| TextPattern {
            text: if group.texts.len() == 1 { group.representative.to_owned() } else { written(&group) },
            count: group.count,
            representative: group.representative.to_owned(),
            texts: group.texts,
        })
        .collect();
    let others: i64 = rare.iter().map(|group| group.count).sum();
    if others > 0 {
        let texts = rare.into_iter().flat_map(|group| group.texts).collect();
        patterns.push(TextPattern { text: OTHERS.to_owned(), count: others, representative: String::new(), texts });
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
