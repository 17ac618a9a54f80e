//! `DEFAULT`: taken from CREATE TABLE, and written out where INSERT, UPDATE and MERGE leave a column out or say `DEFAULT`.

use std::collections::{HashMap, HashSet};

use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use datafusion::sql::TableReference;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    CastKind, ColumnOption, ColumnOptionDef, CreateTable, DataType, ExactNumberInfo, Expr, FunctionArguments, Ident,
    Insert, ObjectName, ObjectNamePart, Parens, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Statement as SqlStatement, TableAlias, TableFactor, TableObject, UnaryOperator, Value, Values,
    WildcardAdditionalOptions,
};
use querent_catalog::{ColumnDefault, ColumnInfo};

use super::marks;
use super::parse::{Nesting, parse_statement};
use super::row_statements::as_written;
use super::shorthand::{plain, query_of, select_star, taken, text};
use super::statement::StatementPlanner;
use super::syntax::folded_name;
use crate::error::{EngineError, Result};
use crate::functions::{is_bytes, no_uuid, stored_value, uuid_text, written_bytes};
use crate::identifiers::{quote_identifier, same_name};
use crate::type_names::sql_name;

/// The functions that a default may call: without arguments, and known to DuckDB by the same name.
const FUNCTIONS: [&str; 6] =
    ["now", "current_timestamp", "current_date", "uuid", "gen_random_uuid", "get_current_timestamp"];

/// What the rows of an INSERT are called where defaults stand beside them.
const ROWS: &str = "__querent_inserted";

/// Removes the defaults of columns from a statement and returns them, by the columns' names. Errors: `unsupported` for one
/// that is no value and calls no function of [`FUNCTIONS`].
pub(super) fn take_defaults(table: &mut CreateTable) -> Result<Vec<(String, ColumnDefault)>> {
    let mut taken = Vec::new();
    for column in &mut table.columns {
        for ColumnOptionDef { name, option } in std::mem::take(&mut column.options) {
            match option {
                ColumnOption::Default(expr) => {
                    let default = stored_default(&expr)?;
                    taken.extend(default.map(|default| (folded_name(&column.name), default)));
                }
                option => column.options.push(ColumnOptionDef { name, option }),
            }
        }
    }
    Ok(taken)
}

/// Returns a default as the lake keeps it; `None` for null. Errors: `unsupported`.
pub(super) fn stored_default(expr: &Expr) -> Result<Option<ColumnDefault>> {
    let literal = |text: &str| Ok(Some(ColumnDefault::Literal(text.to_owned())));
    match expr {
        Expr::Nested(inner) => stored_default(inner),
        // As dumps of PostgreSQL and DuckDB have them: a value with its type.
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: inner, data_type, .. } => {
            match stored_default(inner)? {
                None => Ok(None),
                Some(ColumnDefault::Literal(text)) if is_kept_by(&text, data_type) => literal(&text),
                Some(_) => Err(no_default(expr)),
            }
        }
        Expr::Value(value) => match &value.value {
            Value::Null => Ok(None),
            Value::Number(digits, _) => literal(digits),
            Value::Boolean(value) => literal(if *value { "true" } else { "false" }),
            // Where a literal says null, DuckDB reads that there is no default.
            Value::SingleQuotedString(value) if value.eq_ignore_ascii_case("null") => {
                Ok(Some(ColumnDefault::Expression(format!("'{value}'"))))
            }
            Value::SingleQuotedString(value) => literal(value),
            _ => Err(no_default(expr)),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } => match operand.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => literal(&format!("-{digits}")),
                _ => Err(no_default(expr)),
            },
            _ => Err(no_default(expr)),
        },
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(value) => literal(value),
            _ => Err(no_default(expr)),
        },
        Expr::Function(function) => {
            let has_arguments = match &function.args {
                FunctionArguments::None => false,
                FunctionArguments::List(list) => !list.args.is_empty(),
                FunctionArguments::Subquery(_) => true,
            };
            let name = function.name.to_string().to_lowercase();
            match !has_arguments && function.over.is_none() && FUNCTIONS.contains(&name.as_str()) {
                true => Ok(Some(ColumnDefault::Expression(expr.to_string().to_lowercase()))),
                false => Err(no_default(expr)),
            }
        }
        _ => Err(no_default(expr)),
    }
}

/// Returns whether a value, as text, stays what it is as one of a type.
fn is_kept_by(text: &str, data_type: &DataType) -> bool {
    use DataType as Sql;

    match data_type {
        Sql::Text
        | Sql::String(_)
        | Sql::JSON
        | Sql::JSONB
        | Sql::Uuid
        | Sql::Varchar(None)
        | Sql::CharacterVarying(None)
        | Sql::Date
        | Sql::Boolean
        | Sql::Bool
        | Sql::Timestamp(None, _)
        | Sql::Time(None, _)
        | Sql::Numeric(ExactNumberInfo::None)
        | Sql::Double(ExactNumberInfo::None)
        | Sql::DoublePrecision
        | Sql::Float8 => true,
        Sql::SmallInt(None)
        | Sql::Int(None)
        | Sql::Integer(None)
        | Sql::BigInt(None)
        | Sql::Int2(None)
        | Sql::Int4(None)
        | Sql::Int8(None) => text.parse::<i64>().is_ok(),
        Sql::Numeric(ExactNumberInfo::PrecisionAndScale(_, scale))
        | Sql::Decimal(ExactNumberInfo::PrecisionAndScale(_, scale)) => {
            let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            text.parse::<f64>().is_ok() && i64::try_from(digits).is_ok_and(|digits| digits <= *scale)
        }
        _ => false,
    }
}

fn no_default(expr: &Expr) -> EngineError {
    EngineError::Unsupported {
        what: format!("`DEFAULT {expr}`"),
        hint: format!("a default is a value, or one of {}", FUNCTIONS.join("(), ") + "()"),
    }
}

/// Refuses defaults that are no values of their columns, of which `uuids` hold UUIDs. Errors: `invalid_value`.
pub(super) fn check_defaults(defaults: &[(String, ColumnDefault)], schema: &Schema, uuids: &[String]) -> Result<()> {
    for (name, default) in defaults {
        let (ColumnDefault::Literal(text), Ok(field)) = (default, schema.field_with_name(name)) else { continue };
        check_value(text, field)?;
        if uuids.contains(name) {
            uuid_default(text, name)?;
        }
    }
    Ok(())
}

/// Returns the default of a column of UUIDs as it is stored. Errors: `invalid_value`.
pub(super) fn uuid_default(text: &str, column: &str) -> Result<String> {
    let message = || format!("the default of column `{column}`: {}", no_uuid(text));
    uuid_text(text).ok_or_else(|| EngineError::InvalidValue { message: message() })
}

/// Refuses a default that is no value of its column. Errors: `invalid_value`; `unsupported` for a list, a structure or a map, of which
/// DuckDB knows no default: it would be null there.
pub(super) fn check_value(text: &str, field: &Field) -> Result<()> {
    if field.data_type().is_nested() {
        return Err(EngineError::Unsupported {
            what: format!("a default of column `{}`, which is no single value,", field.name()),
            hint: "leave it out, and say the value where rows are inserted".into(),
        });
    }
    if is_bytes(field.data_type()) {
        written_bytes(text)?;
    }
    stored_value(text, field.data_type()).map(|_| ()).map_err(|_| EngineError::InvalidValue {
        message: format!("the default `{text}` of column `{}` is no {}", field.name(), sql_name(field.data_type())),
    })
}

/// Returns the default of a new column as it is kept for the rows that are there: numbers and booleans are spelled as values of the
/// column's type, which is how DuckDB keeps them. Errors: as [`check_value`].
pub(super) fn spelled_default(text: &str, field: &Field) -> Result<String> {
    check_value(text, field)?;
    let data_type = field.data_type();
    if !data_type.is_integer() && !data_type.is_decimal() && *data_type != ArrowType::Boolean {
        return Ok(text.to_owned());
    }
    let spelled = stored_value(text, data_type)?.cast_to(&ArrowType::Utf8)?;
    Ok(spelled.try_as_str().flatten().unwrap_or(text).to_owned())
}

/// Returns what a column is in a new row that does not say it. Errors: `unsupported` for an expression of DuckDB that is not
/// read here.
pub(crate) fn default_value(column: &ColumnInfo) -> Result<Expr> {
    let sql = match &column.default {
        None => return Ok(null()),
        Some(ColumnDefault::Literal(value)) => return Ok(text(value)),
        Some(ColumnDefault::Expression(sql)) => sql,
    };
    // DuckDB writes types between quotes.
    let unquoted = match sql.strip_suffix("\")").and_then(|cast| cast.rsplit_once(" AS \"")) {
        Some((operand, data_type)) => format!("{operand} AS {data_type})"),
        None => sql.clone(),
    };
    let unknown = || EngineError::Unsupported {
        what: format!("the default `{sql}` of column `{}`", column.name),
        hint: "name the column and say its value".into(),
    };
    let parsed = parse_statement(&format!("SELECT {unquoted}")).map_err(|_| unknown())?;
    let Statement::Statement(statement) = parsed.statement else { return Err(unknown()) };
    let SqlStatement::Query(query) = *statement else { return Err(unknown()) };
    let SetExpr::Select(select) = *query.body else { return Err(unknown()) };
    match <[SelectItem; 1]>::try_from(select.projection) {
        Ok([SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }]) => Ok(expr),
        _ => Err(unknown()),
    }
}

/// Returns a column as CREATE TABLE has it.
pub(super) fn column_clause(column: &ColumnInfo) -> String {
    let required = if column.nullable { "" } else { " NOT NULL" };
    let default = column.default.as_ref().map(|default| format!(" DEFAULT {}", default.to_sql())).unwrap_or_default();
    let sql_type = match (column.is_json, column.is_uuid) {
        (true, _) => "JSON".to_owned(),
        (_, true) => "UUID".to_owned(),
        _ => sql_name(&column.data_type),
    };
    format!("{} {sql_type}{required}{default}", quote_identifier(&column.name))
}

/// Refuses rows without a column that has a default, where they come from elsewhere than an INSERT. Errors: `unsupported`.
pub(crate) fn refuse_left_out(columns: &[ColumnInfo], mut has: impl FnMut(&str) -> bool) -> Result<()> {
    match columns.iter().find(|column| column.default.is_some() && !has(&column.name)) {
        Some(column) => Err(EngineError::Unsupported {
            what: format!("rows without column `{}`, which has a default,", column.name),
            hint: "import them into a table of their own, and write INSERT INTO t (columns) SELECT ... FROM it".into(),
        }),
        None => Ok(()),
    }
}

/// Returns whether an expression is the word DEFAULT.
pub(super) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if name.quote_style.is_none() && same_name(&name.value, "default"))
}

impl StatementPlanner<'_> {
    /// Names the columns of an INSERT that finds them by the names of its query.
    pub(super) async fn name_columns(&self, insert: &mut Insert, nesting: Nesting) -> Result<()> {
        let is_by_name = matches!(insert.columns.as_slice(), [name] if last_part(name).is_some_and(|name| name.value == marks::BY_NAME));
        let (true, Some(source)) = (is_by_name, &insert.source) else { return Ok(()) };
        let query = Statement::Statement(Box::new(SqlStatement::Query(source.clone())));
        let plan = Box::pin(self.plan_datafusion(query, nesting)).await?;
        let names = plan.schema().fields().iter().map(|field| Ident::with_quote('"', field.name()));
        insert.columns = names.map(column_name).collect();
        Ok(())
    }

    /// Writes out what an INSERT leaves to the defaults of its columns: those that it does not name, `DEFAULT` between its
    /// values, and `DEFAULT VALUES`.
    pub(super) async fn write_out_defaults(&self, insert: &mut Insert) -> Result<()> {
        let says_default = match insert.source.as_deref().map(|source| source.body.as_ref()) {
            None => true,
            Some(SetExpr::Values(values)) => values.rows.iter().flat_map(|row| &row.content).any(is_default),
            Some(_) => false,
        };
        let TableObject::TableName(name) = &insert.table else { return Ok(()) };
        let Some(columns) = self.insert_columns(name).await? else { return Ok(()) };
        let named: Vec<Ident> = match insert.columns.is_empty() {
            true => columns.iter().map(|column| Ident::with_quote('"', &column.name)).collect(),
            false => insert.columns.iter().filter_map(last_part).cloned().collect(),
        };
        let by_name: HashMap<String, &ColumnInfo> =
            columns.iter().map(|column| (column.name.to_lowercase(), column)).collect();
        let column_of = |name: &Ident| by_name.get(&name.value.to_lowercase()).copied();
        let types: Vec<_> = named.iter().map(|name| column_of(name).map(|column| &column.data_type)).collect();
        if let Some(SetExpr::Values(values)) = insert.source.as_deref_mut().map(|source| source.body.as_mut()) {
            for row in &mut values.rows {
                for (value, data_type) in row.content.iter_mut().zip(&types) {
                    if let Some(data_type) = data_type.filter(|data_type| holds_structures(data_type)) {
                        *value = as_written(data_type, taken(value));
                    }
                }
            }
        }
        if insert.source.is_none() {
            let row = columns.iter().map(default_value).collect::<Result<Vec<_>>>()?;
            insert.columns = named.into_iter().map(column_name).collect();
            let rows = vec![Parens::with_empty_span(row)];
            let values = Values { explicit_row: false, value_keyword: false, rows };
            insert.source = Some(Box::new(query_of(SetExpr::Values(values))));
            return Ok(());
        }
        let omitted: Vec<&ColumnInfo> = match insert.columns.is_empty() {
            true => Vec::new(),
            false => {
                let folded: HashSet<String> = named.iter().map(|name| name.value.to_lowercase()).collect();
                let is_named = |column: &ColumnInfo| folded.contains(&column.name.to_lowercase());
                columns.iter().filter(|column| column.default.is_some() && !is_named(column)).collect()
            }
        };
        if omitted.is_empty() && !says_default {
            return Ok(());
        }
        let defaults = omitted.iter().map(|column| default_value(column)).collect::<Result<Vec<_>>>()?;
        let Some(source) = insert.source.as_deref_mut() else { return Ok(()) };
        if let SetExpr::Values(values) = source.body.as_mut() {
            for row in &mut values.rows {
                for (name, value) in named.iter().zip(row.content.iter_mut()).filter(|(_, value)| is_default(value)) {
                    *value = column_of(name).map_or_else(|| Ok(null()), default_value)?;
                }
                row.content.extend(defaults.iter().cloned());
            }
        } else if !defaults.is_empty() {
            let rows = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(source.clone()),
                alias: Some(TableAlias { explicit: true, name: Ident::new(ROWS), columns: Vec::new(), at: None }),
                sample: None,
            };
            let all = SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(column_name(Ident::new(ROWS))),
                WildcardAdditionalOptions::default(),
            );
            let beside = defaults.into_iter().enumerate().map(|(index, expr)| SelectItem::ExprWithAlias {
                expr,
                alias: Ident::with_quote('"', format!("__querent_default_{index}")),
            });
            let mut select = select_star(vec![plain(rows)]);
            select.projection = std::iter::once(all).chain(beside).collect();
            *source = query_of(SetExpr::Select(Box::new(select)));
        }
        let added = omitted.iter().map(|column| Ident::with_quote('"', &column.name));
        if !insert.columns.is_empty() {
            insert.columns.extend(added.map(column_name));
        }
        Ok(())
    }

    /// Returns the columns of the table that an INSERT names; `None` where there is none, which is found later.
    pub(crate) async fn insert_columns(&self, name: &ObjectName) -> Result<Option<Vec<ColumnInfo>>> {
        let reference = object_name_to_table_reference(name.clone(), false)?;
        if let Some(columns) = self.temporary_columns(&reference) {
            return Ok(Some(columns));
        }
        let full = self.full_name(&reference)?;
        let found = self.catalog.tables().resolve(self.who, std::slice::from_ref(&full)).await?.pop().flatten();
        Ok(found.map(|table| table.info.columns.clone()))
    }

    /// Returns the columns of a table of the session; `None` where the name is not one's.
    pub(super) fn temporary_columns(&self, reference: &TableReference) -> Option<Vec<ColumnInfo>> {
        let table = self.temporary_name(reference)?;
        let schema = self.temporary?.provider(&table)?.schema();
        let columns = schema.fields().iter().map(|field| ColumnInfo {
            id: 0,
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            is_json: false,
            is_uuid: false,
            nullable: field.is_nullable(),
            comment: None,
            default: None,
            initial_default: None,
        });
        Some(columns.collect())
    }
}

fn column_name(name: Ident) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(name)])
}

fn last_part(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(ObjectNamePart::as_ident)
}

/// Returns whether values of a type are structures, or lists of such.
fn holds_structures(data_type: &ArrowType) -> bool {
    match data_type {
        ArrowType::Struct(_) => true,
        ArrowType::List(item) => holds_structures(item.data_type()),
        _ => false,
    }
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}
