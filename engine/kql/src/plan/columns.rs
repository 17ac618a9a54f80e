//! Operators that choose and compute columns: `project` and its kin, `extend`, `where`, `distinct`, `getschema`.

use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, cast, lit};

use super::{Column, Relation, plain_key};
use crate::ast::{
    ColumnDeclaration, Expr, ExprKind, Name, NamePattern, NamedExpr, Names, ReorderColumn, ReorderDirection,
};
use crate::bind::{
    BindError, BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, Windows, argument_name, constant_of,
    invalid, text_literal, text_of, too_many_names, unique_name,
};
use crate::span::Span;
use crate::types::KqlType;

/// Returns the first of `Column1`, `Column2`, ... that is free.
pub(super) fn numbered_name(outputs: &[(String, Typed)]) -> String {
    let mut number = 1_usize;
    while has_name(outputs, &format!("Column{number}")) {
        number += 1;
    }
    format!("Column{number}")
}

fn has_name(outputs: &[(String, Typed)], name: &str) -> bool {
    outputs.iter().any(|(known, _)| known == name)
}

/// A column that a clause computes, with the name it is given or the one of its expression.
pub(super) struct Assigned {
    pub(super) given: Option<String>,
    pub(super) natural: Option<String>,
    pub(super) value: Typed,
    pub(super) span: Span,
    /// One of a function's several values, where the query names others and not this one.
    pub(super) is_rest: bool,
}

impl<'a> Binder<'a> {
    /// Binds a clause's expressions. All of them may name the columns of `input`, and none those of another one.
    pub(super) fn assigned(
        &mut self,
        input: Relation,
        exprs: &'a [NamedExpr],
        environment: &Environment<'a>,
    ) -> Result<(Relation, Vec<Assigned>)> {
        let windows = Windows::over(&input);
        let mut all = Vec::with_capacity(exprs.len());
        for named in exprs {
            let scope = ExpressionScope {
                windows: Some(&windows),
                ..ExpressionScope::over_columns(environment, &input.columns)
            };
            if let Some(parts) = self.several(named, &scope)? {
                let some_are_named = named.names != Names::Unnamed;
                all.extend(parts.into_iter().map(|part| Assigned {
                    is_rest: some_are_named && part.given.is_none(),
                    given: part.given,
                    natural: Some(part.natural),
                    value: part.typed,
                    span: named.span,
                }));
                continue;
            }
            let value = self.scalar(&named.expr, &scope)?;
            let natural = argument_name(&named.expr);
            match &named.names {
                Names::Several(names) => return too_many_names(names.len(), 1, named.span),
                Names::One(name) => {
                    let given = Some(name.text.clone());
                    all.push(Assigned { given, natural, value, span: named.span, is_rest: false });
                }
                Names::Unnamed => {
                    // A column keeps its name as if it was given.
                    let given = if matches!(named.expr.kind, ExprKind::Name(_)) { natural.clone() } else { None };
                    let natural = match natural {
                        Some(natural) => Some(natural),
                        None => self.existing_column_name(&named.expr, &scope)?,
                    };
                    all.push(Assigned { given, natural, value, span: named.span, is_rest: false });
                }
            }
        }
        let input = self.with_windows(input, windows)?;
        Ok((input, all))
    }

    /// Returns the name that `column_ifexists("name", default)` gives: the column's, where there is one.
    fn existing_column_name(&mut self, expr: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<Option<String>> {
        let ExprKind::Call(call) = &expr.kind else { return Ok(None) };
        let is_choice = matches!(call.function.text.as_str(), "column_ifexists" | "columnifexists");
        let Some(name) = call.arguments.first().filter(|_| is_choice) else { return Ok(None) };
        let name = constant_of(&self.scalar(&name.expr, scope)?.expr)?;
        let column = text_of(name.as_ref()).and_then(|name| scope.column(name));
        Ok(column.map(|column| column.name.clone()))
    }

    /// Returns unique names for the columns that a clause computes, in order. A name that the query gives stays as it
    /// is, unless a column before it took it for its own. Columns without any name are numbered, past the columns of
    /// `passed`.
    pub(super) fn named(&self, assigned: Vec<Assigned>, passed: &[Column]) -> Result<Vec<(String, Typed)>> {
        let mut outputs: Vec<(String, Typed)> = Vec::with_capacity(assigned.len());
        let mut declared: Vec<String> = Vec::new();
        let given: Vec<String> = assigned.iter().filter_map(|one| one.given.clone()).collect();
        let mut number = 0_usize;
        for Assigned { given: name, natural, value, span, .. } in assigned {
            let base = match (name, natural) {
                (Some(name), _) => {
                    if declared.contains(&name) {
                        return invalid(span, format!("the column `{name}` is there twice"));
                    }
                    declared.push(name.clone());
                    name
                }
                (None, Some(natural)) => natural,
                (None, None) => loop {
                    number += 1;
                    let numbered = format!("Column{number}");
                    if !passed.iter().any(|column| column.name == numbered) {
                        break numbered;
                    }
                },
            };
            let name = if has_name(&outputs, &base) {
                unique_name(&base, |name| has_name(&outputs, name) || given.iter().any(|known| known == name))
            } else {
                base
            };
            outputs.push((name, value));
        }
        Ok(outputs)
    }

    pub(super) fn project(
        &mut self,
        input: Relation,
        columns: &'a [NamedExpr],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let (input, assigned) = self.assigned(input, columns, environment)?;
        let outputs = self.named(assigned, &[])?;
        self.projected(input, outputs)
    }

    pub(super) fn extend(
        &mut self,
        input: Relation,
        columns: &'a [NamedExpr],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let (input, assigned) = self.assigned(input, columns, environment)?;
        let mut outputs: Vec<(String, Typed)> = input.columns.iter().map(Column::output).collect();
        // Unlike `project`, `extend` adds only the values that it names, if it names some.
        let mut declared: Vec<String> = Vec::new();
        for Assigned { given, natural, value, span, .. } in assigned.into_iter().filter(|one| !one.is_rest) {
            if let Some(name) = &given {
                if declared.contains(name) {
                    return invalid(span, format!("the column `{name}` is there twice"));
                }
                declared.push(name.clone());
            }
            // A name that a function takes from its argument replaces the column of that name, as a given one does.
            let name = given.or(natural).unwrap_or_else(|| numbered_name(&outputs));
            match outputs.iter_mut().find(|(known, _)| *known == name) {
                Some(output) => output.1 = value,
                None => outputs.push((name, value)),
            }
        }
        self.projected(input, outputs)
    }

    pub(super) fn serialize(
        &mut self,
        input: Relation,
        columns: &'a [NamedExpr],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        self.extend(Relation { is_serialized: true, ..input }, columns, environment)
    }

    /// Keeps the rows of a condition. One that has a name is a truth value: `where a = 1` is no comparison.
    pub(super) fn where_rows(
        &mut self,
        input: Relation,
        predicate: &'a NamedExpr,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        if predicate.names != Names::Unnamed {
            let windows = Windows::over(&input);
            let columns = ExpressionScope::over_columns(environment, &input.columns);
            let scope = ExpressionScope { windows: Some(&windows), ..columns };
            let named = self.scalar(&predicate.expr, &scope)?.kql_type;
            if named != KqlType::Bool {
                let message = format!("`=` gives the condition a name, and it is a {}, no bool", named.name());
                let error = BindError::new(BindErrorCode::TypeMismatch, predicate.span, message);
                return Err(error.with_hint("compare with `==`").into());
            }
        }
        let windows = Windows::over(&input);
        let scope =
            ExpressionScope { windows: Some(&windows), ..ExpressionScope::over_columns(environment, &input.columns) };
        let predicate = self.predicate(&predicate.expr, &scope)?;
        let (input, predicate) = self.with_windows(input, windows)?.narrowed(predicate)?;
        match predicate {
            Some(predicate) => self.filtered(input, predicate),
            None => Ok(input),
        }
    }

    /// Returns the rows of a condition. What is random in it, `rand() < 0.1`, becomes a field: DataFusion would move it below
    /// operators that make other rows, but moves nothing below a projection that has such a value.
    pub(super) fn filtered(&mut self, input: Relation, predicate: PlanExpr) -> Result<Relation> {
        let (volatile, others): (Vec<PlanExpr>, Vec<PlanExpr>) =
            split_conjunction_owned(predicate).into_iter().partition(PlanExpr::is_volatile);
        let mut input = input;
        if let Some(condition) = conjunction(others) {
            let plan = LogicalPlanBuilder::from(input.plan.clone()).filter(condition)?.build()?;
            input = input.over(plan);
        }
        if let Some(condition) = conjunction(volatile) {
            let (chosen, field) = self.with_field(input, "chosen", condition)?;
            let plan = LogicalPlanBuilder::from(chosen.plan.clone()).filter(super::field_column(&field))?.build()?;
            input = chosen.over(plan);
        }
        Ok(input)
    }

    pub(super) fn project_away(&mut self, input: Relation, patterns: &'a [NamePattern]) -> Result<Relation> {
        self.check_patterns(&input, patterns)?;
        let kept = input.columns.iter().filter(|column| !patterns.iter().any(|pattern| matches(pattern, &column.name)));
        let outputs = kept.map(Column::output).collect();
        self.projected(input, outputs)
    }

    pub(super) fn project_keep(&mut self, input: Relation, patterns: &'a [NamePattern]) -> Result<Relation> {
        self.check_patterns(&input, patterns)?;
        let kept = input.columns.iter().filter(|column| patterns.iter().any(|pattern| matches(pattern, &column.name)));
        let outputs = kept.map(Column::output).collect();
        self.projected(input, outputs)
    }

    /// Checks that a name without a wildcard is a column.
    fn check_patterns(&self, input: &Relation, patterns: &[NamePattern]) -> Result<()> {
        for pattern in patterns.iter().filter(|pattern| !pattern.wildcard) {
            if input.column(&pattern.text).is_none() {
                let name = Name { text: pattern.text.clone(), bracketed: false, span: pattern.span };
                return Err(self.unknown_column(&name, &input.columns).into());
            }
        }
        Ok(())
    }

    pub(super) fn project_rename(&mut self, input: Relation, columns: &'a [NamedExpr]) -> Result<Relation> {
        let mut renamed = input.columns.clone();
        let mut changed: Vec<usize> = Vec::with_capacity(columns.len());
        for named in columns {
            let (Names::One(new), ExprKind::Name(old)) = (&named.names, &named.expr.kind) else {
                return invalid(named.span, "expected `new = old`");
            };
            let Some(index) = input.columns.iter().position(|column| column.name == old.text) else {
                return Err(self.unknown_column(old, &input.columns).into());
            };
            if let Some(column) = renamed.get_mut(index) {
                column.name.clone_from(&new.text);
            }
            changed.push(index);
        }
        for (index, column) in renamed.iter().enumerate() {
            if changed.contains(&index) && renamed.iter().filter(|other| other.name == column.name).count() > 1 {
                let span = columns.first().map(|named| named.span).unwrap_or_default();
                return invalid(span, format!("the column `{}` is there already", column.name));
            }
        }
        Ok(Relation { columns: renamed, ..input })
    }

    pub(super) fn project_reorder(&mut self, input: Relation, columns: &'a [ReorderColumn]) -> Result<Relation> {
        let mut ordered: Vec<Column> = Vec::with_capacity(input.columns.len());
        for reorder in columns {
            self.check_patterns(&input, std::slice::from_ref(&reorder.pattern))?;
            let is_other = |column: &&Column| {
                // A column that is named goes where it is named, not where a pattern before it matches it.
                let is_named = columns.iter().any(|other| !other.pattern.wildcard && other.pattern.text == column.name);
                matches(&reorder.pattern, &column.name)
                    && (!reorder.pattern.wildcard || !is_named)
                    && !ordered.iter().any(|known| known.field == column.field)
            };
            let mut found: Vec<Column> = input.columns.iter().filter(is_other).cloned().collect();
            match reorder.direction {
                // Names are ordered without regard to case.
                Some(ReorderDirection::Ascending) => found.sort_by_key(|column| column.name.to_uppercase()),
                Some(ReorderDirection::Descending) => {
                    found.sort_by_key(|column| std::cmp::Reverse(column.name.to_uppercase()));
                }
                Some(ReorderDirection::GrannyAscending) => found.sort_by_key(|column| granny_key(&column.name)),
                Some(ReorderDirection::GrannyDescending) => {
                    found.sort_by_key(|column| std::cmp::Reverse(granny_key(&column.name)));
                }
                None => {}
            }
            ordered.extend(found);
        }
        let rest = input.columns.iter().filter(|column| !ordered.iter().any(|known| known.field == column.field));
        let rest: Vec<Column> = rest.cloned().collect();
        ordered.extend(rest);
        Ok(Relation { columns: ordered, ..input })
    }

    pub(crate) fn count(&mut self, input: Relation, name: Option<&'a Name>) -> Result<Relation> {
        let field = self.field("Count");
        let keys = input.groups.as_ref().map(|groups| groups.keys.clone()).unwrap_or_default();
        let carried = self.carried_aggregates(&input);
        let mut aggregates = vec![count_all().alias(field.clone())];
        aggregates.extend(carried);
        let plan = LogicalPlanBuilder::from(input.plan).aggregate(keys, aggregates)?.build()?;
        let name = name.map_or_else(|| "Count".to_owned(), |name| name.text.clone());
        let columns = vec![Column { name, field, kql_type: KqlType::Long }];
        Ok(Relation { groups: input.groups, ..Relation::new(plan, columns) })
    }

    pub(super) fn distinct(
        &mut self,
        input: Relation,
        columns: &'a [NamedExpr],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let is_all = matches!(columns, [only] if only.expr.kind == ExprKind::Star);
        let projected = if is_all { input } else { self.project(input, columns, environment)? };
        if let Some(first) = columns.first()
            && let Some(wrong) = projected.columns.iter().find(|column| column.kql_type == KqlType::Dynamic)
        {
            let name = &wrong.name;
            let message =
                format!("`{name}` is dynamic, which has no distinct values; convert it, as with tostring(...)");
            return invalid(first.span, message);
        }
        let projected = self.with_plain_reals(projected)?;
        let mut keys: Vec<PlanExpr> = projected.columns.iter().map(Column::expr).collect();
        if let Some(groups) = &projected.groups {
            keys.extend(groups.keys.iter().filter(|key| !keys.contains(key)).cloned().collect::<Vec<_>>());
        }
        // What is carried may be among the columns.
        let is_column = |field: &str| projected.columns.iter().any(|column| column.field == field);
        let mut carried = self.carried_aggregates(&projected);
        carried.retain(|kept| !matches!(kept, PlanExpr::Alias(alias) if is_column(&alias.name)));
        let plan = LogicalPlanBuilder::from(projected.plan).aggregate(keys, carried)?.build()?;
        Ok(Relation { groups: projected.groups, ..Relation::new(plan, projected.columns) })
    }

    /// Returns rows whose reals have the form of their equals.
    fn with_plain_reals(&mut self, input: Relation) -> Result<Relation> {
        if !input.columns.iter().any(|column| column.kql_type == KqlType::Real) {
            return Ok(input);
        }
        let plain =
            |column: &Column| -> Result<(String, Typed)> { Ok((column.name.clone(), plain_key(column.typed())?)) };
        let outputs = input.columns.iter().map(plain).collect::<Result<Vec<_>>>()?;
        self.projected(input, outputs)
    }

    pub(crate) fn get_schema(&mut self, input: Relation) -> Result<Relation> {
        let types = [KqlType::String, KqlType::Int, KqlType::String, KqlType::String];
        let rows = input.columns.iter().enumerate().map(|(ordinal, column)| {
            vec![
                text_literal(&column.name),
                lit(i32::try_from(ordinal).unwrap_or(i32::MAX)),
                text_literal(column.kql_type.dotnet_name()),
                text_literal(column.kql_type.name()),
            ]
        });
        let names = ["ColumnName", "ColumnOrdinal", "DataType", "ColumnType"];
        let columns = names.iter().zip(types).map(|(name, kql_type)| ((*name).to_owned(), kql_type)).collect();
        self.values(columns, rows.collect())
    }

    /// `getschema kind=csl`: the columns as `.create table` has them, one text.
    pub(super) fn schema_text(&mut self, input: &Relation) -> Result<Relation> {
        let written = |column: &Column| {
            let is_plain = column.name.chars().all(|char| char.is_alphanumeric() || char == '_')
                && !column.name.starts_with(|char: char| char.is_ascii_digit());
            let escaped = column.name.replace('\\', r"\\").replace('\'', r"\'");
            let name = if is_plain { column.name.clone() } else { format!("['{escaped}']") };
            format!("{name}:{}", column.kql_type.name())
        };
        let text = input.columns.iter().map(written).collect::<Vec<_>>().join(",");
        self.values(vec![("Schema".to_owned(), KqlType::String)], vec![vec![text_literal(&text)]])
    }

    pub(super) fn assert_schema(
        &mut self,
        input: Relation,
        columns: &'a [ColumnDeclaration],
        span: Span,
    ) -> Result<Relation> {
        let wanted = columns.iter().map(|column| (column.name.text.as_str(), KqlType::from(column.scalar_type)));
        let found = input.columns.iter().map(|column| (column.name.as_str(), column.kql_type));
        if wanted.eq(found) { Ok(input) } else { invalid(span, "the table has other columns") }
    }

    pub(super) fn consume(&mut self, input: Relation) -> Result<Relation> {
        let plan = LogicalPlanBuilder::from(input.plan.clone()).limit(0, Some(0))?.build()?;
        Ok(input.over(plan))
    }

    /// Adds the fields of a clause's window functions. Where they numbered the rows, the rows are ordered by that.
    fn with_windows(&mut self, input: Relation, windows: Windows) -> Result<Relation> {
        let order = windows.row_order();
        self.windowed(Relation { order, ..input }, windows.steps.into_inner())
    }

    /// Adds the fields that window functions compute, one after the other.
    pub(super) fn windowed(&mut self, input: Relation, steps: Vec<PlanExpr>) -> Result<Relation> {
        let mut plan = input.plan.clone();
        for step in steps {
            let PlanExpr::Alias(alias) = step else { continue };
            let before: Vec<PlanExpr> = plan.schema().columns().into_iter().map(PlanExpr::Column).collect();
            let computed = super::field_column(&alias.expr.schema_name().to_string());
            let mut exprs = before;
            exprs.push(computed.alias(alias.name.clone()));
            plan = LogicalPlanBuilder::from(plan).window(vec![*alias.expr])?.project(exprs)?.build()?;
        }
        Ok(input.over(plan))
    }

    /// Adds a field, and returns its name.
    pub(super) fn with_field(&mut self, input: Relation, name: &str, expr: PlanExpr) -> Result<(Relation, String)> {
        let field = self.field(name);
        let mut exprs: Vec<PlanExpr> = input.plan.schema().columns().into_iter().map(PlanExpr::Column).collect();
        exprs.push(expr.alias(field.clone()));
        let plan = LogicalPlanBuilder::from(input.plan.clone()).project(exprs)?.build()?;
        Ok((input.over(plan), field))
    }
}

/// Whether a name matches a pattern with `*`.
pub(super) fn matches(pattern: &NamePattern, name: &str) -> bool {
    if pattern.wildcard { matches_wildcard(&pattern.text, name) } else { pattern.text == name }
}

/// Whether the parts of a pattern around each `*` are found in a name in their order.
pub(crate) fn matches_wildcard(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Compares names with the numbers in them compared by value.
fn granny_key(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits_at = rest.find(|char: char| char.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits_at);
        let digits_end = after.find(|char: char| !char.is_ascii_digit()).unwrap_or(after.len());
        let (digits, after) = after.split_at(digits_end);
        key.push((text.to_uppercase(), digits.parse().unwrap_or(0)));
        rest = after;
    }
    key
}

/// DataFusion counts in its own width.
pub(super) fn as_long(expr: PlanExpr) -> PlanExpr {
    cast(expr, arrow::datatypes::DataType::Int64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_whole_names() {
        assert!(matches_wildcard("a*", "abc"));
        assert!(matches_wildcard("*c", "abc"));
        assert!(matches_wildcard("a*c", "abc"));
        assert!(matches_wildcard("*", ""));
        assert!(!matches_wildcard("a*b", "abc"));
        assert!(!matches_wildcard("ab*bc", "abc"));
    }

    #[test]
    fn numbers_in_names_are_ordered_by_value() {
        let mut names = ["A100", "B2", "a20", "a3", "b1"];
        names.sort_by_key(|name| granny_key(name));
        assert_eq!(names, ["a3", "a20", "A100", "b1", "B2"]);
    }
}
