//! MERGE INTO as a query: source and table are joined, and the first clause whose condition holds says what becomes of a row.

mod sides;
mod whole_rows;

use std::ops::ControlFlow;

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, BinaryOperator, CaseWhen, ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, Join, JoinConstraint, JoinOperator, Merge, MergeAction, MergeClause, MergeClauseKind,
    MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, ObjectName, ObjectNamePart, OutputClause, Parens, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, Value, VisitMut,
    VisitorMut, WildcardAdditionalOptions, With,
};

use self::sides::settle_side;
use self::whole_rows::{SourceColumns, WholeRow, with_defaults};
use super::column_defaults::is_default;
use super::marks;
use super::parse::Nesting;
use super::row_statements::{AssignedValue, Assignments, ChangedTable, value_name};
use super::shorthand::{plain, query_of, select_star};
use super::statement::StatementPlanner;
use super::write_statement::{MERGE_ACTION, RowStatement};
use crate::error::{EngineError, Result};
use crate::identifiers::{FILE_COLUMN, same_name};

/// True in every row of the source; null beside a row of the table that has none.
const IN_SOURCE: &str = "__querent_source";

/// What a clause does with its rows.
enum MergedRow {
    /// `DO NOTHING`: the clauses behind are not asked.
    Keep,
    Delete,
    /// A value for each column; `None`: as it was, or null in a new row.
    Write(Vec<Option<Expr>>),
}

impl StatementPlanner<'_> {
    /// Plans a MERGE.
    pub(super) async fn merge(&self, merge: Merge, with: Option<With>, nesting: Nesting) -> Result<LogicalPlan> {
        let Merge { merge_token: _, optimizer_hints: _, into: _, table, source, on, clauses, output } = merge;
        let returning = match output {
            None => None,
            Some(OutputClause::Returning { returning_token: _, select_items }) => Some(select_items),
            Some(OutputClause::Output { .. }) => {
                return Err(unsupported("OUTPUT of MERGE", "write RETURNING merge_action, *"));
            }
        };
        refuse_idle_clauses(&clauses)?;
        let table = self.changed_table(RowStatement::Merge, table).await?;
        let mut cases: Vec<(Expr, MergedRow)> = Vec::with_capacity(clauses.len());
        let keeps_all = clauses.iter().any(|clause| clause.clause_kind == MergeClauseKind::NotMatchedBySource);
        let source_name = source_name(&source)
            .ok_or_else(|| unsupported("MERGE of a source without a name", "write USING (...) AS s"))?;
        let on = match merge_columns(&on) {
            Some(columns) => all_equal(&table.alias, &source_name, columns),
            None => *on,
        };
        let in_source = Expr::CompoundIdentifier(vec![source_name.clone(), Ident::new(IN_SOURCE)]);
        let columns = self.source_columns(&clauses, &source, &source_name, with.as_ref(), nesting).await?;
        for mut clause in clauses {
            settle_side(&mut clause, &table.alias, &source_name)?;
            cases.push(case_of(&table, &in_source, columns.as_ref(), clause)?);
        }
        let joined = Join {
            relation: table.numbered(),
            global: false,
            join_operator: match keeps_all {
                true => JoinOperator::FullOuter(JoinConstraint::On(on)),
                false => JoinOperator::LeftOuter(JoinConstraint::On(on)),
            },
        };
        let tables = TableWithJoins { relation: marked(source, source_name), joins: vec![joined] };
        let projection = merged_values(&table, &cases);
        let is_changed = cases.iter().map(|(condition, row)| {
            let changes = !matches!(row, MergedRow::Keep);
            (condition.clone(), boolean(changes))
        });
        let selection = Some(first_of(is_changed.collect(), boolean(false)));
        let select = Select { projection, selection, ..select_star(vec![tables]) };
        let plan = self.row_statement(&table, RowStatement::Merge, with, select, nesting).await?;
        let returning = match returning {
            Some(items) => Some(returned_items(items, &table)?),
            None => None,
        };
        self.returning(plan, returning, Some(table.alias), nesting).await
    }
}

/// Errors: no clause, or one behind another that decides about all of its rows.
fn refuse_idle_clauses(clauses: &[MergeClause]) -> Result<()> {
    if clauses.is_empty() {
        return Err(EngineError::Plan {
            message: "MERGE says nothing of what to do: write WHEN MATCHED THEN ...".into(),
        });
    }
    let mut decided: Vec<MergeClauseKind> = Vec::new();
    for clause in clauses {
        let kind = match clause.clause_kind {
            MergeClauseKind::NotMatchedByTarget => MergeClauseKind::NotMatched,
            other => other,
        };
        if decided.contains(&kind) {
            let message = format!(
                "a WHEN {kind} without a condition decides about all of its rows, and another one behind it about none: \
                 write WHEN {kind} AND condition THEN first"
            );
            return Err(EngineError::Plan { message });
        }
        if clause.predicate.is_none() {
            decided.push(kind);
        }
    }
    Ok(())
}

/// Returns the columns of `USING (a, b)`.
fn merge_columns(on: &Expr) -> Option<Vec<Ident>> {
    let Expr::Function(function) = on else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let name = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => Some(name.clone()),
        _ => None,
    };
    let is_mark = function.name.to_string() == marks::MERGE_COLUMNS;
    is_mark.then(|| list.args.iter().map(name).collect()).flatten()
}

/// Returns the condition that columns of two relations are equal.
fn all_equal(left: &Ident, right: &Ident, columns: Vec<Ident>) -> Expr {
    let equal = |column: Ident| {
        let of = |relation: &Ident| Box::new(Expr::CompoundIdentifier(vec![relation.clone(), column.clone()]));
        Expr::BinaryOp { left: of(left), op: BinaryOperator::Eq, right: of(right) }
    };
    let both = |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) };
    columns.into_iter().map(equal).reduce(both).unwrap_or_else(|| boolean(true))
}

/// Returns what RETURNING names: `*` is the table's columns, and `merge_action()` is PostgreSQL's for the column `merge_action`.
fn returned_items(items: Vec<SelectItem>, table: &ChangedTable) -> Result<Vec<SelectItem>> {
    if table.columns.iter().any(|column| same_name(column, MERGE_ACTION)) {
        return Err(unsupported(
            &format!("RETURNING of a MERGE into a table with a column `{MERGE_ACTION}`"),
            "query the table afterwards",
        ));
    }
    let mut items = items;
    for item in &mut items {
        let _: ControlFlow<()> = VisitMut::visit(item, &mut ActionCalls);
        if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
            let action = || ObjectName(vec![ObjectNamePart::Identifier(Ident::new(MERGE_ACTION))]);
            options.opt_exclude = Some(match options.opt_exclude.take() {
                None => ExcludeSelectItem::Single(action()),
                Some(ExcludeSelectItem::Single(other)) => ExcludeSelectItem::Multiple(vec![other, action()]),
                Some(ExcludeSelectItem::Multiple(mut others)) => {
                    others.push(action());
                    ExcludeSelectItem::Multiple(others)
                }
            });
        }
    }
    Ok(items)
}

struct ActionCalls;

impl VisitorMut for ActionCalls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && function.name.to_string().eq_ignore_ascii_case(MERGE_ACTION)
            && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty())
        {
            *expr = Expr::Identifier(Ident::new(MERGE_ACTION));
        }
        ControlFlow::Continue(())
    }
}

/// What the columns of the source are qualified by.
fn source_name(source: &TableFactor) -> Option<Ident> {
    match source {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::Table { name, alias: None, .. } => name.0.last().and_then(ObjectNamePart::as_ident).cloned(),
        _ => None,
    }
}

/// The source, with a column that says that it is there.
fn marked(source: TableFactor, name: Ident) -> TableFactor {
    let of_source = ObjectName(vec![ObjectNamePart::Identifier(name.clone())]);
    let all = SelectItem::QualifiedWildcard(
        SelectItemQualifiedWildcardKind::ObjectName(of_source),
        WildcardAdditionalOptions::default(),
    );
    let mark = SelectItem::ExprWithAlias { expr: boolean(true), alias: Ident::new(IN_SOURCE) };
    let select = Select { projection: vec![all, mark], ..select_star(vec![plain(source)]) };
    TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
        alias: Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None }),
        sample: None,
    }
}

/// The numbers of the row that goes, whether one comes, and its values.
fn merged_values(table: &ChangedTable, cases: &[(Expr, MergedRow)]) -> Vec<SelectItem> {
    let writes = cases.iter().map(|(condition, row)| (condition.clone(), boolean(matches!(row, MergedRow::Write(_)))));
    let writes = first_of(writes.collect(), boolean(false));
    let mut items = table.numbers();
    items.push(SelectItem::ExprWithAlias { expr: writes, alias: Ident::with_quote('"', "__querent_writes") });
    for index in 0..table.columns.len() {
        // Beside a row of the source that the table has not, the column is null.
        let values = cases.iter().map(|(condition, row)| {
            let value = match row {
                // As it was, for RETURNING.
                MergedRow::Keep | MergedRow::Delete => None,
                MergedRow::Write(values) => {
                    let value = values.get(index).cloned().flatten();
                    value.map(|value| table.as_column(index, value))
                }
            };
            (condition.clone(), value.unwrap_or_else(|| table.column(index)))
        });
        let expr = first_of(values.collect(), table.column(index));
        items.push(SelectItem::ExprWithAlias { expr, alias: value_name(index) });
    }
    items
}

fn case_of(
    table: &ChangedTable,
    in_source: &Expr,
    columns: Option<&SourceColumns>,
    clause: MergeClause,
) -> Result<(Expr, MergedRow)> {
    let MergeClause { when_token: _, clause_kind, predicate, action } = clause;
    let in_table = || Expr::IsNotNull(Box::new(table.qualified(FILE_COLUMN)));
    let is_of_source = || Expr::IsNotNull(Box::new(in_source.clone()));
    let (condition, has_row) = match clause_kind {
        MergeClauseKind::Matched => (and(in_table(), is_of_source()), true),
        MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => (not(in_table()), false),
        MergeClauseKind::NotMatchedBySource => (not(is_of_source()), true),
    };
    let whole_row = match (WholeRow::of(&action), columns) {
        (Some(how), Some(columns)) => Some(columns.row(how, table)?),
        _ => None,
    };
    let row = match (action, has_row, whole_row) {
        (action, _, _) if does_nothing(&action) => MergedRow::Keep,
        (MergeAction::Delete { delete_token: _ }, true, _) => MergedRow::Delete,
        (MergeAction::Update(_), true, Some(_)) if clause_kind == MergeClauseKind::NotMatchedBySource => {
            return Err(unsupported("UPDATE of a row that the source has not, by its columns", "write SET a = value"));
        }
        (MergeAction::Update(_), true, Some(row)) => MergedRow::Write(row),
        (MergeAction::Insert(_), false, Some(row)) => MergedRow::Write(with_defaults(table, row)?),
        (MergeAction::Update(update), true, None) => {
            let MergeUpdateExpr { update_token: _, assignments, update_predicate, delete_predicate } = update;
            if update_predicate.is_some() || delete_predicate.is_some() {
                return Err(unsupported("WHERE in an UPDATE of MERGE", "write WHEN MATCHED AND condition THEN"));
            }
            let Assignments { values, queries: _ } = table.assigned(assignments)?;
            let value = |value: Option<AssignedValue>| match value {
                Some(AssignedValue::OfQuery { .. }) => Err(unsupported(
                    "SET of several columns by a query in MERGE",
                    "join the query in USING, and set each column to a column of it",
                )),
                Some(AssignedValue::Value(value)) => Ok(Some(value)),
                None => Ok(None),
            };
            MergedRow::Write(values.into_iter().map(value).collect::<Result<_>>()?)
        }
        (MergeAction::Insert(insert), false, None) => MergedRow::Write(inserted(table, insert)?),
        (MergeAction::Insert(_), true, _) => {
            return Err(unsupported("INSERT of a row that matches", "write WHEN NOT MATCHED THEN INSERT"));
        }
        (MergeAction::Delete { .. } | MergeAction::Update(_), false, _) => {
            return Err(unsupported("UPDATE and DELETE of a row that is not there", "write WHEN MATCHED THEN"));
        }
    };
    let condition = match predicate {
        Some(predicate) => and(condition, Expr::Nested(Box::new(predicate))),
        None => condition,
    };
    Ok((condition, row))
}

/// Returns whether an action is what stands for `DO NOTHING`.
fn does_nothing(action: &MergeAction) -> bool {
    named_columns(action).iter().any(|name| name.to_string() == marks::NOTHING)
}

/// Returns the columns that an action names, the marks that stand for others among them.
fn named_columns(action: &MergeAction) -> Vec<&ObjectName> {
    match action {
        MergeAction::Insert(insert) => insert.columns.iter().collect(),
        MergeAction::Update(update) => {
            let targets = update.assignments.iter().map(|assignment| &assignment.target);
            targets
                .filter_map(|target| match target {
                    AssignmentTarget::ColumnName(name) => Some(name),
                    AssignmentTarget::Tuple(_) => None,
                })
                .collect()
        }
        MergeAction::Delete { .. } => Vec::new(),
    }
}

fn inserted(table: &ChangedTable, insert: MergeInsertExpr) -> Result<Vec<Option<Expr>>> {
    let MergeInsertExpr { insert_token: _, columns, kind_token: _, kind, insert_predicate } = insert;
    if insert_predicate.is_some() {
        return Err(unsupported("WHERE in an INSERT of MERGE", "write WHEN NOT MATCHED AND condition THEN"));
    }
    let MergeInsertKind::Values(values) = kind else {
        return Err(unsupported("INSERT ROW in MERGE", "write INSERT (columns) VALUES (...)"));
    };
    let rows: Vec<Vec<Expr>> = values.rows.into_iter().map(row_values).collect();
    let Ok([row]) = <[Vec<Expr>; 1]>::try_from(rows) else {
        return Err(unsupported("INSERT of several rows in MERGE", "a row of the source becomes one row"));
    };
    let positions: Vec<usize> = match columns.is_empty() {
        true => (0..table.columns.len()).collect(),
        false => columns.iter().map(|column| table.position(column)).collect::<Result<_>>()?,
    };
    if positions.len() != row.len() {
        let (values, columns) = (row.len(), positions.len());
        return Err(EngineError::Plan { message: format!("{values} values for {columns} columns in INSERT") });
    }
    let mut all = (0..table.columns.len())
        .map(|index| if positions.contains(&index) { Ok(None) } else { table.default_of(index).map(Some) })
        .collect::<Result<Vec<_>>>()?;
    for (position, value) in positions.into_iter().zip(row) {
        let value = match is_default(&value) {
            true => table.default_of(position)?,
            false => table.as_written(position, value),
        };
        if let Some(slot) = all.get_mut(position)
            && slot.replace(value).is_some()
        {
            return Err(EngineError::Plan { message: format!("column `{}` is set twice", table.columns[position]) });
        }
    }
    Ok(all)
}

fn row_values(row: Parens<Vec<Expr>>) -> Vec<Expr> {
    row.content
}

/// The value of the first condition that holds.
fn first_of(cases: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    if cases.is_empty() {
        return otherwise;
    }
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: cases.into_iter().map(|(condition, result)| CaseWhen { condition, result }).collect(),
        else_result: Some(Box::new(otherwise)),
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
}

/// The opposite of `x IS NOT NULL`.
fn not(expr: Expr) -> Expr {
    match expr {
        Expr::IsNotNull(operand) => Expr::IsNull(operand),
        other => other,
    }
}

fn boolean(value: bool) -> Expr {
    Expr::Value(Value::Boolean(value).into())
}

fn unsupported(what: &str, hint: &str) -> EngineError {
    EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() }
}
