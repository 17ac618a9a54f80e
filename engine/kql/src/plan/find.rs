//! `find`: the rows of several tables for which a condition holds, each with its table's name. Tables that have none of
//! the columns that the condition names are left out; values that have no column in the result are packed into a bag.

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::{Expr as PlanExpr, lit};

use super::search::Searched;
use super::{Column, Relation, field_of};
use crate::ast::{BinaryOperator, Expr, ExprKind, Find, FindColumn, FindProjection, Literal, Operator, ParameterValue};
use crate::bind::{
    BindError, BindErrorCode, BindStop, Binder, Environment, Result, Typed, fail, invalid, null_of, unique_name,
};
use crate::span::Span;
use crate::types::KqlType;

const SOURCE_COLUMN: &str = "source_";
const PACKED_COLUMN: &str = "pack_";

/// The names of the tables' columns with their types, in order of appearance.
#[derive(Default)]
struct KnownColumns {
    names: Vec<String>,
    types: HashMap<String, Vec<KqlType>>,
}

impl KnownColumns {
    fn from_sources(sources: &[Relation]) -> Self {
        let mut known = Self::default();
        for column in sources.iter().flat_map(|source| &source.columns) {
            match known.types.get_mut(&column.name) {
                Some(types) if types.contains(&column.kql_type) => {}
                Some(types) => types.push(column.kql_type),
                None => {
                    known.types.insert(column.name.clone(), vec![column.kql_type]);
                    known.names.push(column.name.clone());
                }
            }
        }
        known
    }

    fn types_of(&self, name: &str) -> &[KqlType] {
        self.types.get(name).map_or(&[], Vec::as_slice)
    }
}

/// A column of the result: the columns of a name that are of a type, or all of them converted to it.
struct FoundColumn {
    name: String,
    source: String,
    kql_type: KqlType,
    converts: bool,
}

impl<'a> Binder<'a> {
    pub(super) fn find_rows(
        &mut self,
        find: &'a Find,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mut sources = Vec::with_capacity(find.sources.len());
        if find.sources.is_empty() {
            self.add_matching(&mut sources, None, "*", operator.span, environment)?;
        }
        for source in &find.sources {
            self.add_tables(&mut sources, source, false, environment)?;
        }
        if sources.is_empty() {
            return fail(BindErrorCode::UnknownTable, operator.span, "there is no table to look in");
        }
        for (index, source) in sources.iter_mut().enumerate() {
            if source.is_variable || source.name.is_none() {
                source.name = Some(format!("union_arg{index}"));
            }
        }
        let known = KnownColumns::from_sources(&sources);
        let mut named = NamedColumns::default();
        named.gather(&find.predicate);
        named.names.retain(|name| known.types.contains_key(name));
        let found = self.found(sources, &named, &known, find, environment)?;
        let (wanted, is_packed) = wanted_columns(&find.projection, &found, &named, &known)?;
        let source_column = source_column(operator)?;
        let mut inputs = Vec::with_capacity(found.len());
        for table in found {
            inputs.push(self.shown(table, &source_column, &wanted, is_packed, operator.span)?);
        }
        self.united(inputs, &[])
    }

    /// Returns the rows of each table for which the condition holds, without the tables for which it cannot.
    fn found(
        &mut self,
        sources: Vec<Relation>,
        named: &NamedColumns,
        known: &KnownColumns,
        find: &'a Find,
        environment: &Environment<'a>,
    ) -> Result<Vec<Relation>> {
        let mut found = Vec::with_capacity(sources.len());
        let mut refused: Option<BindError> = None;
        for source in sources {
            let has_some = named.names.iter().any(|name| source.column(name).is_some());
            if !has_some && !named.names.is_empty() && !named.looks_everywhere {
                continue;
            }
            let mut seen = source.columns.clone();
            let mut missing: HashMap<String, KqlType> = HashMap::new();
            for name in named.names.iter().filter(|name| source.column(name).is_none()) {
                let Some(kql_type) = known.types_of(name).first() else { continue };
                let field = self.field(name);
                missing.insert(field.clone(), *kql_type);
                seen.push(Column { name: name.clone(), field, kql_type: *kql_type });
            }
            let searched = Searched { terms: &source.columns, columns: &seen, case_sensitive: false };
            match self.search_predicate(&find.predicate, &searched, environment) {
                Ok(predicate) => {
                    let predicate = without_missing(predicate, &missing)?;
                    found.push(self.filtered(source, predicate)?);
                }
                // Where a name has several types, only the tables where the condition binds are searched.
                Err(BindStop::Error(error)) if error.code == BindErrorCode::TypeMismatch => {
                    refused.get_or_insert(error);
                }
                Err(stop) => return Err(stop),
            }
        }
        match refused {
            Some(error) if found.is_empty() => Err(error.into()),
            _ => Ok(found),
        }
    }

    /// Projects a table to its name, the columns of the result, and the others as a bag.
    fn shown(
        &mut self,
        table: Relation,
        source_column: &str,
        wanted: &[FoundColumn],
        is_packed: bool,
        span: Span,
    ) -> Result<Relation> {
        let name = table.name.clone().unwrap_or_default();
        let mut outputs = vec![(source_column.to_owned(), Typed::text(name))];
        for column in wanted {
            let held = table.column(&column.source);
            let held = held.filter(|held| column.converts || held.kql_type == column.kql_type);
            let value = match held {
                Some(held) => self.convert(held.typed(), column.kql_type, span)?,
                None => Typed::new(lit(null_of(column.kql_type)), column.kql_type),
            };
            outputs.push((column.name.clone(), value));
        }
        if is_packed {
            let rest: Vec<&Column> =
                table.columns.iter().filter(|column| !wanted.iter().any(|it| it.source == column.name)).collect();
            let names: Vec<String> = rest.iter().map(|column| column.name.clone()).collect();
            let values = rest.iter().map(|column| column.typed()).collect();
            let bag = self.packed(&names, values, span)?;
            let taken = |name: &str| outputs.iter().any(|(known, _)| known == name);
            outputs.push((unique_name(PACKED_COLUMN, taken), bag));
        }
        self.projected(table, outputs)
    }
}

/// Returns the name of the result's first column.
fn source_column(operator: &Operator) -> Result<String> {
    let Some(parameter) = operator.parameter("withsource").or_else(|| operator.parameter("with_source")) else {
        return Ok(SOURCE_COLUMN.to_owned());
    };
    match &parameter.value {
        ParameterValue::Name(name) => Ok(name.text.clone()),
        ParameterValue::Literal(Literal::String(name)) => Ok(name.clone()),
        ParameterValue::Literal(_) => invalid(parameter.span, "expected a column's name"),
    }
}

/// Returns the result's columns, and whether a bag of the others follows them.
fn wanted_columns(
    projection: &FindProjection,
    found: &[Relation],
    named: &NamedColumns,
    known: &KnownColumns,
) -> Result<(Vec<FoundColumn>, bool)> {
    let FindProjection::Columns(columns) = projection else { return Ok(smart_columns(found, named, known)) };
    let mut wanted: Vec<FoundColumn> = Vec::with_capacity(columns.len());
    let mut is_packed = false;
    for column in columns {
        let (name, scalar_type) = match column {
            FindColumn::Pack(span) if is_packed => return invalid(*span, "the bag is there twice"),
            FindColumn::Pack(_) => {
                is_packed = true;
                continue;
            }
            FindColumn::Column { name, scalar_type } => (name, scalar_type),
        };
        if is_packed {
            return invalid(name.span, "the bag of the other columns is the last one");
        }
        let kql_type = match (scalar_type, known.types_of(&name.text)) {
            (_, []) => {
                let message = format!("unknown column `{}`: none of the tables has it", name.text);
                return fail(BindErrorCode::UnknownColumn, name.span, message);
            }
            (Some(scalar_type), _) => KqlType::from(*scalar_type),
            (None, [only]) => *only,
            (None, _) => {
                let message = format!("the column `{}` has several types; say which, as in `a:string`", name.text);
                return invalid(name.span, message);
            }
        };
        if wanted.iter().any(|it| it.source == name.text && it.kql_type == kql_type) {
            return invalid(name.span, format!("the column `{}` is there twice", name.text));
        }
        wanted.push(FoundColumn { name: name.text.clone(), source: name.text.clone(), kql_type, converts: true });
    }
    named_by_type(&mut wanted);
    Ok((wanted, is_packed))
}

/// Returns the columns that all tables have, then those that the condition names.
fn smart_columns(found: &[Relation], named: &NamedColumns, known: &KnownColumns) -> (Vec<FoundColumn>, bool) {
    let mut holders: HashMap<&str, usize> = HashMap::new();
    let mut types: HashMap<&str, Vec<KqlType>> = HashMap::new();
    for column in found.iter().flat_map(|table| &table.columns) {
        *holders.entry(&column.name).or_default() += 1;
        let known = types.entry(&column.name).or_default();
        if !known.contains(&column.kql_type) {
            known.push(column.kql_type);
        }
    }
    let is_common = |name: &&String| holders.get(name.as_str()) == Some(&found.len());
    let common = known.names.iter().filter(is_common);
    let others = named.names.iter().filter(|name| !is_common(name) && holders.contains_key(name.as_str()));
    let mut wanted = Vec::new();
    for name in common.chain(others) {
        for kql_type in types.get(name.as_str()).into_iter().flatten() {
            wanted.push(FoundColumn { name: name.clone(), source: name.clone(), kql_type: *kql_type, converts: false });
        }
    }
    named_by_type(&mut wanted);
    let is_packed = found.iter().flat_map(|table| &table.columns).any(|column| {
        let is_shown = wanted.iter().any(|it| it.source == column.name);
        !is_shown
    });
    (wanted, is_packed)
}

/// Adds the type to the names of columns that share a name.
fn named_by_type(wanted: &mut [FoundColumn]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for column in wanted.iter() {
        *counts.entry(column.source.clone()).or_default() += 1;
    }
    for column in wanted {
        if counts.get(&column.source).is_some_and(|count| *count > 1) {
            column.name = format!("{}_{}", column.source, column.kql_type.name());
        }
    }
}

/// Returns the condition with null for the columns that the table lacks.
fn without_missing(predicate: PlanExpr, missing: &HashMap<String, KqlType>) -> Result<PlanExpr> {
    if missing.is_empty() {
        return Ok(predicate);
    }
    let replaced = predicate.transform(|expr| {
        Ok(match field_of(&expr).and_then(|field| missing.get(field)) {
            Some(kql_type) => Transformed::yes(lit(null_of(*kql_type))),
            None => Transformed::no(expr),
        })
    });
    Ok(replaced.data()?)
}

/// What a condition refers to.
#[derive(Default)]
struct NamedColumns {
    /// The names in it, of columns or not, each once.
    names: Vec<String>,
    /// Whether it searches all columns.
    looks_everywhere: bool,
}

impl NamedColumns {
    fn gather(&mut self, predicate: &Expr) {
        let mut pending = vec![(predicate, true)];
        while let Some((expr, is_condition)) = pending.pop() {
            match &expr.kind {
                ExprKind::Name(name) => self.add(&name.text),
                ExprKind::Star | ExprKind::Wildcard { .. } => self.looks_everywhere = true,
                ExprKind::Literal(Literal::String(_)) if is_condition => self.looks_everywhere = true,
                ExprKind::Literal(_) => {}
                ExprKind::Member { base, .. } => pending.push((base, false)),
                ExprKind::Element { base, index } => pending.extend([(&**index, false), (&**base, false)]),
                ExprKind::Call(call) => {
                    let inside = is_condition && call.function.text == "not";
                    pending.extend(call.arguments.iter().rev().map(|argument| (&argument.expr, inside)));
                }
                ExprKind::Unary { operand, .. } => pending.push((operand, false)),
                ExprKind::Binary { operator, left, right, .. } => {
                    if *operator != BinaryOperator::SearchTerm {
                        pending.push((right, false));
                    }
                    pending.push((left, false));
                }
                ExprKind::Logical { operands, .. } => {
                    pending.extend(operands.iter().rev().map(|operand| (operand, is_condition)));
                }
                ExprKind::List { value, list, .. } => {
                    pending.extend(list.iter().rev().map(|item| (item, false)));
                    pending.push((value, false));
                }
                ExprKind::Between { value, low, high, .. } => {
                    pending.extend([(&**high, false), (&**low, false), (&**value, false)]);
                }
                // Sub-queries do not refer to these columns.
                ExprKind::Pipeline(_)
                | ExprKind::Subquery { .. }
                | ExprKind::DataTable(_)
                | ExprKind::ExternalData(_)
                | ExprKind::EntityGroup(_)
                | ExprKind::Invalid => {}
            }
        }
    }

    fn add(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }
}
