//! DELETE, UPDATE and MERGE as queries: each row that changes, by its file and its position there, with the values that it gets.
//! The table is resolved in the same batch as the other names of the statement, under a name of ours.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, CastKind, Delete, DictionaryField, Expr, FromTable, Ident, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, Update,
    UpdateTableFromKind, Value, With,
};
use querent_catalog::{ColumnInfo, ResolvedTable, TableName, TableSource};

use super::catalog_table::CatalogTable;
use super::column_defaults::{default_value, is_default};
use super::parse::{Nesting, parse_statement};
use super::resolved_names::{NUMBERED_TABLE, NumberedRows};
use super::row_values::{STRUCT, query_of_rows, row_values};
use super::shorthand::{call, number, plain, query_of, select_star, table_factor};
use super::statement::StatementPlanner;
use super::syntax::spelled_columns;
use super::write_statement::{RowStatement, WriteStatement};
use crate::error::{EngineError, Result};
use crate::functions::is_bytes;
use crate::identifiers::{FILE_COLUMN, POSITION_COLUMN, same_name};
use crate::type_names::sql_name;

/// What the rows of an UPDATE are called where a query gives several of their values.
const CHANGED_ROWS: &str = "__querent_changed";

/// What a column is set to.
#[expect(clippy::large_enum_variant, reason = "a statement has few of them")]
pub(super) enum AssignedValue {
    Value(Expr),
    /// A column of one of the queries that give several values, both by their places.
    OfQuery {
        query: usize,
        column: usize,
    },
}

/// The values of `SET`.
pub(super) struct Assignments {
    /// A value for each column of the table, if it is set.
    pub(super) values: Vec<Option<AssignedValue>>,
    /// Queries of one row, as structures.
    pub(super) queries: Vec<Expr>,
}

/// A table whose rows change, as the statement names it.
pub(super) struct ChangedTable {
    name: TableName,
    /// The name of a table of the session.
    temporary: Option<String>,
    /// What its columns are qualified by.
    pub(super) alias: Ident,
    /// Its columns, as they are spelled.
    pub(super) columns: Vec<String>,
    /// The same, with what they are where a new row does not say it.
    described: Vec<ColumnInfo>,
}

impl StatementPlanner<'_> {
    /// Plans a DELETE.
    pub(super) async fn delete(&self, delete: Delete, with: Option<With>, nesting: Nesting) -> Result<LogicalPlan> {
        let returning = delete.returning;
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = delete.from;
        let table = self.changed_table(RowStatement::Delete, single(RowStatement::Delete, from)?).await?;
        let mut tables = vec![plain(table.numbered())];
        tables.extend(delete.using.unwrap_or_default());
        let mut projection = table.numbers();
        if returning.is_some() {
            projection.extend(
                (0..table.columns.len())
                    .map(|index| SelectItem::ExprWithAlias { expr: table.column(index), alias: value_name(index) }),
            );
        }
        let select = Select { projection, selection: delete.selection, ..select_star(tables) };
        let plan = self.row_statement(&table, RowStatement::Delete, with, select, nesting).await?;
        self.returning(plan, returning, Some(table.alias), nesting).await
    }

    /// Plans an UPDATE.
    pub(super) async fn update(&self, update: Update, with: Option<With>, nesting: Nesting) -> Result<LogicalPlan> {
        let table = self.changed_table(RowStatement::Update, single(RowStatement::Update, vec![update.table])?).await?;
        let Assignments { values, queries } = table.assigned(update.assignments)?;
        let (mut projection, mut outside) = (table.numbers(), numbers_of(&Ident::new(CHANGED_ROWS)));
        for (index, value) in values.into_iter().enumerate() {
            let of_changed = |name: Ident| Expr::CompoundIdentifier(vec![Ident::new(CHANGED_ROWS), name]);
            let taken = match value {
                Some(AssignedValue::OfQuery { query, column }) => {
                    let place = number(&(column + 1).to_string());
                    call("struct_extract_at", vec![of_changed(query_name(query)), place])
                }
                Some(AssignedValue::Value(expr)) => {
                    projection.push(SelectItem::ExprWithAlias { expr, alias: value_name(index) });
                    of_changed(value_name(index))
                }
                None => {
                    let expr = table.column(index);
                    projection.push(SelectItem::ExprWithAlias { expr, alias: value_name(index) });
                    of_changed(value_name(index))
                }
            };
            outside.push(SelectItem::ExprWithAlias { expr: taken, alias: value_name(index) });
        }
        let has_queries = !queries.is_empty();
        let queries = queries.into_iter().enumerate();
        projection.extend(queries.map(|(query, expr)| SelectItem::ExprWithAlias { expr, alias: query_name(query) }));
        let mut tables = vec![plain(table.numbered())];
        if let Some(UpdateTableFromKind::BeforeSet(others) | UpdateTableFromKind::AfterSet(others)) = update.from {
            tables.extend(others);
        }
        let mut select = Select { projection, selection: update.selection, ..select_star(tables) };
        if has_queries {
            // Each query runs once, and its values are taken from its row.
            let alias = TableAlias { explicit: true, name: Ident::new(CHANGED_ROWS), columns: Vec::new(), at: None };
            let rows = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
                alias: Some(alias),
                sample: None,
            };
            select = Select { projection: outside, ..select_star(vec![plain(rows)]) };
        }
        let plan = self.row_statement(&table, RowStatement::Update, with, select, nesting).await?;
        self.returning(plan, update.returning, Some(table.alias), nesting).await
    }

    /// Resolves the table whose rows change. Errors: one that is not a managed table.
    pub(super) async fn changed_table(&self, kind: RowStatement, factor: TableFactor) -> Result<ChangedTable> {
        let TableFactor::Table { name, alias, args: None, sample: None, .. } = factor else {
            return Err(one_table(kind));
        };
        let reference = object_name_to_table_reference(name.clone(), false)?;
        let temporary = self.temporary_name(&reference);
        let (full, described) = match (&temporary, self.temporary_columns(&reference)) {
            (Some(name), Some(columns)) => (TableName::new("", name), columns),
            _ => {
                let full = self.full_name(&reference)?;
                let tables = self.catalog.tables();
                let found = tables.resolve(self.who, std::slice::from_ref(&full)).await?.pop().flatten();
                let Some(found) = found else { return Err(tables.not_found(self.who, &full).await.into()) };
                require_managed(kind.label(), &found)?;
                (full, found.info.columns)
            }
        };
        let alias = match alias {
            Some(TableAlias { name, columns, .. }) if columns.is_empty() => name,
            Some(_) => return Err(one_table(kind)),
            None => name.0.last().and_then(ObjectNamePart::as_ident).cloned().ok_or_else(|| one_table(kind))?,
        };
        let columns = described.iter().map(|column| column.name.clone()).collect();
        Ok(ChangedTable { name: full, temporary, alias, columns, described })
    }

    /// Plans the query of a statement over the rows of `table`.
    pub(super) async fn row_statement(
        &self,
        table: &ChangedTable,
        statement: RowStatement,
        with: Option<With>,
        select: Select,
        nesting: Nesting,
    ) -> Result<LogicalPlan> {
        let numbered = match &table.temporary {
            Some(name) => NumberedRows::Temporary(name),
            None => NumberedRows::Catalog(&table.name),
        };
        // Before its rows are read, so that a change after is found.
        let version = self.temporary.map_or(0, |tables| tables.version());
        let planner = StatementPlanner { numbered: Some(numbered), ..*self };
        let query = Query { with, ..query_of(SetExpr::Select(Box::new(select))) };
        let query = ast::Statement::Query(Box::new(query));
        let input = planner.plan_datafusion(Statement::Statement(Box::new(query)), nesting).await?;
        if let Some(name) = &table.temporary {
            let (name, input) = (name.clone(), input.into());
            let columns = table.described.iter().map(|column| column.data_type.clone()).collect();
            return Ok(WriteStatement::ChangeTemporary { name, version, columns, statement, input }.into_plan());
        }
        let Some(target) = numbered_target(&input)? else {
            return Err(EngineError::Internal(format!("the rows of `{}` are not in the plan", table.name)));
        };
        Ok(WriteStatement::ChangeRows { target: Box::new(target), statement, input: input.into() }.into_plan())
    }
}

impl ChangedTable {
    /// Its rows with their numbers.
    pub(super) fn numbered(&self) -> TableFactor {
        let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', NUMBERED_TABLE))]);
        let mut factor = table_factor(name, None);
        if let TableFactor::Table { alias, .. } = &mut factor {
            *alias = Some(TableAlias { explicit: true, name: self.alias.clone(), columns: Vec::new(), at: None });
        }
        factor
    }

    /// The numbers of a row, in a select list.
    pub(super) fn numbers(&self) -> Vec<SelectItem> {
        numbers_of(&self.alias)
    }

    /// One of its columns.
    pub(super) fn column(&self, index: usize) -> Expr {
        self.qualified(self.columns.get(index).map_or("", String::as_str))
    }

    /// Returns a value as one of a column's type: beside values of other clauses it would become what all of them have in
    /// common, such as a double beside a number that a double cannot hold, or a structure of dates beside one of texts.
    pub(super) fn as_column(&self, index: usize, value: Expr) -> Expr {
        let column = self.described.get(index);
        if column.is_some_and(|column| has_no_field_of(&column.data_type, &value)) {
            // It is refused where it is assigned.
            return value;
        }
        match column.and_then(|column| cast_to(&column.data_type)) {
            Some(Expr::Cast { kind, expr: _, data_type, array, format }) => {
                Expr::Cast { kind, expr: Box::new(value), data_type, array, format }
            }
            _ => value,
        }
    }

    /// Returns a value as it is written for a column, as one of the column's type where it would be read otherwise.
    pub(super) fn as_written(&self, index: usize, value: Expr) -> Expr {
        match self.described.get(index) {
            Some(column) => as_written(&column.data_type, value),
            None => value,
        }
    }

    pub(super) fn qualified(&self, column: &str) -> Expr {
        Expr::CompoundIdentifier(vec![self.alias.clone(), Ident::with_quote('"', column)])
    }

    /// Returns the value that each column is set to, if it is. Errors: `column_not_found`, a column that is set twice.
    pub(super) fn assigned(&self, assignments: Vec<Assignment>) -> Result<Assignments> {
        let mut values: Vec<Option<AssignedValue>> = self.columns.iter().map(|_| None).collect();
        let mut queries = Vec::new();
        for assignment in assignments {
            for (name, value) in single_assignments(assignment, &mut queries)? {
                let index = self.position(&name)?;
                let value = match value {
                    AssignedValue::Value(value) if is_default(&value) => AssignedValue::Value(self.default_of(index)?),
                    AssignedValue::Value(value) => AssignedValue::Value(self.as_written(index, value)),
                    value => value,
                };
                if let Some(slot) = values.get_mut(index)
                    && slot.replace(value).is_some()
                {
                    return Err(EngineError::Plan {
                        message: format!("column `{}` is set twice", self.columns[index]),
                    });
                }
            }
        }
        Ok(Assignments { values, queries })
    }

    /// What a column is where a new row does not say it.
    pub(super) fn default_of(&self, index: usize) -> Result<Expr> {
        let default = self.described.get(index).map(default_value);
        let default = default.unwrap_or_else(|| Ok(Expr::Value(Value::Null.into())))?;
        Ok(self.as_written(index, default))
    }

    /// Returns the place of a column that is written `column`, or with the table before it.
    pub(super) fn position(&self, name: &ObjectName) -> Result<usize> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
        let column = match parts.as_slice() {
            [column] => *column,
            [table, column] if same_name(&table.value, &self.alias.value) => *column,
            _ => {
                return Err(EngineError::Unsupported {
                    what: format!("setting `{name}`"),
                    hint: "name a column; a part of a value is set with struct_update(value, name := ...)".into(),
                });
            }
        };
        let known: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let spelled = spelled_columns(std::slice::from_ref(column), &known, &self.name.table)?;
        let index = spelled.first().and_then(|spelled| self.columns.iter().position(|column| column == spelled));
        index.ok_or_else(|| EngineError::Internal(format!("column `{name}` vanished")))
    }
}

/// Whether a value is a structure, written out, of which a column of structures has no field.
fn has_no_field_of(data_type: &DataType, value: &Expr) -> bool {
    let (DataType::Struct(fields), Expr::Dictionary(written)) = (data_type, value) else { return false };
    let is_field = |name: &Ident| fields.iter().any(|field| same_name(field.name(), &name.value));
    !written.iter().any(|part| is_field(&part.key))
}

/// `SET (a, b) = (1, 2)` is `SET a = 1, b = 2`; a query of one row gives all values of `SET (a, b) = (SELECT x, y ...)`.
fn single_assignments(
    Assignment { target, value }: Assignment,
    queries: &mut Vec<Expr>,
) -> Result<Vec<(ObjectName, AssignedValue)>> {
    let names = match target {
        AssignmentTarget::ColumnName(name) => return Ok(vec![(name, AssignedValue::Value(value))]),
        AssignmentTarget::Tuple(names) => names,
    };
    if let Expr::Subquery(query) = &value {
        let query = match query_of_rows(query, names.len(), STRUCT)? {
            Some(rows) => Expr::Subquery(Box::new(rows)),
            None => value,
        };
        queries.push(query);
        let query = queries.len() - 1;
        let named = names.into_iter().enumerate();
        return Ok(named.map(|(column, name)| (name, AssignedValue::OfQuery { query, column })).collect());
    }
    let values = match row_values(&value) {
        Some(values) => values,
        None => vec![value],
    };
    if values.len() != names.len() {
        return Err(EngineError::Plan {
            message: format!("{} values for {} columns in SET", values.len(), names.len()),
        });
    }
    Ok(names.into_iter().zip(values.into_iter().map(AssignedValue::Value)).collect())
}

/// The numbers of a row of a relation, in a select list.
fn numbers_of(relation: &Ident) -> Vec<SelectItem> {
    let number = |name: &str| {
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![relation.clone(), Ident::with_quote('"', name)]))
    };
    [FILE_COLUMN, POSITION_COLUMN].map(number).to_vec()
}

/// The name of the structure of a query that gives several values.
fn query_name(query: usize) -> Ident {
    Ident::with_quote('"', format!("__querent_query_{query}"))
}

/// `WITH c AS (...) DELETE FROM t USING c` is a DELETE of a query with that WITH, which is returned.
pub(super) fn take_with(statement: &mut Statement) -> Option<With> {
    let Statement::Statement(inner) = statement else { return None };
    let ast::Statement::Query(query) = inner.as_mut() else { return None };
    let is_bare = query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let changing = match query.body.as_ref() {
        SetExpr::Delete(changing) | SetExpr::Update(changing) | SetExpr::Merge(changing) if is_bare => changing.clone(),
        _ => return None,
    };
    let with = query.with.take();
    **inner = changing;
    with
}

/// The name of a value in the query of a statement.
pub(super) fn value_name(index: usize) -> Ident {
    Ident::with_quote('"', format!("__querent_value_{index}"))
}

/// Refuses a statement about anything but a managed table. That its caller sees a part of it only is told when the plan is
/// authorised, to whom may change tables at all.
pub(super) fn require_managed(what: &str, table: &ResolvedTable) -> Result<()> {
    let name = &table.info.name;
    let refused = |why: &str| Err(EngineError::NotAllowed { what: format!("{what} of `{name}`"), why: why.to_owned() });
    match &table.source {
        TableSource::Managed(_) => Ok(()),
        TableSource::External(_) => refused(": it is an external table; its files belong to somebody else"),
        TableSource::View { .. } => refused(": it is a view; change the tables that it reads"),
    }
}

/// Returns the table whose numbered rows a plan reads.
fn numbered_target(plan: &LogicalPlan) -> Result<Option<ResolvedTable>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.table_name.table() == NUMBERED_TABLE
        {
            found = CatalogTable::resolved_behind(&scan.source).cloned();
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Returns a null that is cast to a type; `None` for a type whose name does not say all of it.
fn cast_to(data_type: &DataType) -> Option<Expr> {
    is_named_whole(data_type).then(|| cast_to_any(data_type)).flatten()
}

/// Returns whether the name of a type says all of it.
fn is_named_whole(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => is_named_whole(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_named_whole(field.data_type())),
        DataType::Timestamp(TimeUnit::Microsecond, _)
        | DataType::Timestamp(_, None)
        | DataType::Time64(TimeUnit::Microsecond)
        | DataType::Date32
        | DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View => true,
        other => other.is_numeric(),
    }
}

/// Returns a value of a statement as one of a column's type, where it is written as something else: a list or bytes as a text, and
/// a structure as a row, whose values are its fields by their places, or without some of its fields.
pub(super) fn as_written(data_type: &DataType, value: Expr) -> Expr {
    let is_text = is_text(&value);
    let is_written_so = match data_type {
        // A BLOB is not read as a BYTEA is; this is the type of either.
        bytes if is_text && is_bytes(bytes) => {
            let (expr, data_type) = (Box::new(value), ast::DataType::Varbinary(None));
            return Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None };
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
            is_text || has_other_fields(data_type, &value)
        }
        DataType::Struct(_) => row_values(&value).is_some() || has_other_fields(data_type, &value),
        _ => false,
    };
    match is_written_so.then(|| cast_to_any(data_type)).flatten() {
        Some(Expr::Cast { kind, expr: _, data_type, array, format }) => {
            Expr::Cast { kind, expr: Box::new(value), data_type, array, format }
        }
        _ => value,
    }
}

/// Returns whether a structure, or one in a list, is written with fewer or more fields than those of a column have.
fn has_other_fields(data_type: &DataType, value: &Expr) -> bool {
    match (data_type, value) {
        (_, Expr::Nested(inner)) => has_other_fields(data_type, inner),
        (DataType::Struct(fields), Expr::Dictionary(written)) => {
            let is_other = |part: &DictionaryField| {
                let field = fields.iter().find(|field| same_name(field.name(), &part.key.value));
                field.is_some_and(|field| has_other_fields(field.data_type(), &part.value))
            };
            written.len() != fields.len() || written.iter().any(is_other)
        }
        (DataType::List(item), Expr::Array(list)) => {
            list.elem.iter().any(|value| has_other_fields(item.data_type(), value))
        }
        _ => false,
    }
}

fn is_text(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => is_text(inner),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        _ => false,
    }
}

/// Returns a null that is cast to a type by its name.
fn cast_to_any(data_type: &DataType) -> Option<Expr> {
    let parsed = parse_statement(&format!("SELECT CAST(NULL AS {})", sql_name(data_type)));
    let Statement::Statement(statement) = parsed.ok()?.statement else { return None };
    let ast::Statement::Query(query) = *statement else { return None };
    let SetExpr::Select(select) = *query.body else { return None };
    match <[SelectItem; 1]>::try_from(select.projection) {
        Ok([SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }]) => Some(expr),
        _ => None,
    }
}

fn single(kind: RowStatement, tables: Vec<TableWithJoins>) -> Result<TableFactor> {
    match <[TableWithJoins; 1]>::try_from(tables) {
        Ok([TableWithJoins { relation, joins }]) if joins.is_empty() => Ok(relation),
        _ => Err(one_table(kind)),
    }
}

fn one_table(kind: RowStatement) -> EngineError {
    EngineError::Unsupported {
        what: format!("{} of anything but one table", kind.label()),
        hint: match kind {
            RowStatement::Delete => "write DELETE FROM t [AS a] [USING others] WHERE ...",
            RowStatement::Update => "write UPDATE t [AS a] SET ... [FROM others] WHERE ...",
            RowStatement::Merge => "write MERGE INTO t [AS a] USING source ON ... WHEN ...",
        }
        .into(),
    }
}
