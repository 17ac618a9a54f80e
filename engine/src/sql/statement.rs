//! From a parsed statement to an analysed plan. Queries become DataFusion's nodes, and statements that write a
//! [`WriteStatement`]; the others (SET, COPY, PREPARE, ...) keep DataFusion's node, which policy refuses.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    CreateExternalTable, CreateMemoryTable, DdlStatement, DmlStatement, LogicalPlan, Projection, Values, WriteOp,
};
use datafusion::sql::TableReference;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    self, ColumnOption, CommentObject, ObjectName, ObjectType, SchemaName, ShowCreateObject,
};
use querent_catalog::{Catalog, CatalogError, ColumnDefault, IfExists, Principal, TableName};

use super::accepted::check_accepted;
use super::catalog_table::CatalogTable;
use super::column_defaults::{check_defaults, take_defaults};
use super::column_folding::plan_folded;
use super::date_coercions::with_coerced_types;
use super::exact_text::exact_text;
use super::foreign_keys::{NewTableKeys, resolve_foreign_keys, take_foreign_keys};
use super::inserted_values::{mark_inner_values, number_columns, settle_parameters};
use super::json_columns::TextColumns;
use super::parse::{Nesting, ParsedStatement, parse_statement};
use super::plan_notes::PlanNotes;
use super::relation_folding::fold_relations;
use super::resolved_names::{FileSources, NumberedRows, OwnTables, PlanningScope, ResolvedNames, full_name};
use super::row_statements::take_with;
use super::session_functions::{SessionValues, write_out_session};
use super::session_variables::SessionVariables;
use super::shorthand::{insert_with, write_out_asof};
use super::show;
use super::show_functions;
use super::sort_orders::{sort_keys, take_sort_order};
use super::sql_types::check_columns;
use super::syntax::folded_name;
use super::unique_keys::{WrittenKey, resolve_unique_keys, take_unique_keys};
use super::vector_index_statement::{is_of_vectors, shown_indexes};
use super::write_statement::{CommentTarget, ExternalTableRequest, WriteStatement};
use crate::error::{EngineError, Result};
use crate::identifiers::{quote_identifier, same_name};
use crate::temporary::{TemporaryTables, no_session};

/// Plans statements for one principal in one database.
#[derive(Clone, Copy)]
pub(crate) struct StatementPlanner<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) state: &'a SessionState,
    pub(crate) who: &'a Principal,
    pub(crate) database: &'a str,
    /// The types of `$1`, `$2`, ... where they are known before planning.
    pub(crate) parameters: &'a [Option<FieldRef>],
    /// The session's own tables.
    pub(crate) temporary: Option<&'a Arc<TemporaryTables>>,
    /// What statements set for those that follow, where there is a session that keeps it.
    pub(crate) variables: Option<&'a SessionVariables>,
    /// The files that the statement reads, by the names that stand for them in it.
    pub(crate) files: &'a FileSources,
    /// Where it is noted what planning depends on, if the plan may be kept.
    pub(crate) notes: Option<&'a PlanNotes>,
    /// The table whose rows a statement changes, where its query is planned.
    pub(crate) numbered: Option<NumberedRows<'a>>,
}

impl StatementPlanner<'_> {
    /// Plans one statement; its parameters stay open and the plan is not analysed.
    pub(crate) async fn plan(&self, parsed: ParsedStatement) -> Result<LogicalPlan> {
        let ParsedStatement { mut statement, nesting, has_parameters, .. } = parsed;
        insert_with(&mut statement);
        let with = take_with(&mut statement);
        self.write_out_like(&mut statement).await?;
        self.refuse_conflict_clause(&statement).await?;
        nesting.with_room(|| check_accepted(&statement))?;
        match statement {
            Statement::Statement(statement)
                if has_parameters && matches!(*statement, ast::Statement::CreateView(_)) =>
            {
                Err(EngineError::Plan { message: "a view has no parameters; write the value in its place".into() })
            }
            Statement::Statement(statement) => self.plan_sql(*statement, with, nesting).await,
            Statement::Reset(statement) => self.reset_statement(statement),
            Statement::CreateExternalTable(mut table) => {
                for (name, value) in &mut table.options {
                    let is_none =
                        matches!(&*value, ast::Value::SingleQuotedString(text) if text.eq_ignore_ascii_case("none"));
                    if name.eq_ignore_ascii_case("compression") && is_none {
                        // DataFusion has another word for it.
                        *value = ast::Value::SingleQuotedString("uncompressed".to_owned());
                    }
                }
                self.plan_datafusion(Statement::CreateExternalTable(table), nesting).await
            }
            Statement::CopyTo(_) | Statement::Explain(_) => self.plan_datafusion(statement, nesting).await,
        }
    }

    /// Returns the plan with its types coerced: what policy checks and what executes.
    pub(crate) fn analyse(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        Ok(with_coerced_types(self.state, plan)?)
    }

    async fn plan_sql(
        &self,
        statement: ast::Statement,
        with: Option<ast::With>,
        nesting: Nesting,
    ) -> Result<LogicalPlan> {
        match statement {
            ast::Statement::CreateDatabase { db_name, if_not_exists, .. } => {
                let if_exists = if if_not_exists { IfExists::Ignore } else { IfExists::Error };
                Ok(WriteStatement::CreateDatabase { name: database_name(&db_name)?, if_exists }.into_plan())
            }
            ast::Statement::CreateSchema { schema_name: SchemaName::Simple(name), if_not_exists, .. } => {
                let if_exists = if if_not_exists { IfExists::Ignore } else { IfExists::Error };
                Ok(WriteStatement::CreateDatabase { name: database_name(&name)?, if_exists }.into_plan())
            }
            ast::Statement::Drop {
                object_type:
                    object_type @ (ObjectType::Table | ObjectType::View | ObjectType::Schema | ObjectType::Database),
                if_exists,
                names,
                cascade,
                ..
            } => self.drop(&object_type, &names, if_exists, cascade),
            ast::Statement::CreateIndex(index) if is_of_vectors(&index) => self.create_vector_index(index),
            ast::Statement::Drop { object_type: ObjectType::Index, if_exists, names, .. } => {
                self.drop_vector_index(&names, if_exists).await
            }
            ast::Statement::Comment { object_type, object_name, comment, if_exists } => {
                let target = self.comment_target(object_type, &object_name)?;
                Ok(WriteStatement::Comment { target, comment, if_missing_ok: if_exists }.into_plan())
            }
            ast::Statement::CreateView(view) => self.create_view(view).await,
            ast::Statement::ShowTables { show_options, .. } => {
                let own = self.temporary.map(|tables| tables.list()).unwrap_or_default();
                let own: Vec<String> = own.into_iter().map(|(name, _)| name).collect();
                self.query(&show::tables(self.catalog, self.who, self.database, &own, show_options).await?).await
            }
            ast::Statement::ShowDatabases { show_options, .. } | ast::Statement::ShowSchemas { show_options, .. } => {
                self.query(&show::databases(show_options)?).await
            }
            ast::Statement::ShowColumns { show_options, .. } => {
                let reference = object_name_to_table_reference(show::columns_of(show_options)?, false)?;
                self.described(&reference).await
            }
            ast::Statement::ExplainTable { table_name, .. } => {
                let reference = object_name_to_table_reference(table_name, false)?;
                self.described(&reference).await
            }
            ast::Statement::Explain {
                describe_alias: ast::DescribeAlias::Describe | ast::DescribeAlias::Desc,
                analyze: false,
                verbose: false,
                statement,
                ..
            } if matches!(*statement, ast::Statement::Query(_)) => {
                let plan = self.plan_datafusion(Statement::Statement(statement), nesting).await?;
                show::query_columns(plan.schema())
            }
            ast::Statement::Kill { modifier: None | Some(ast::KillType::Query), id } => {
                Ok(WriteStatement::Kill { id }.into_plan())
            }
            ast::Statement::Insert(mut insert) => {
                let returning = insert.returning.take();
                self.name_columns(&mut insert, nesting).await?;
                self.write_out_defaults(&mut insert).await?;
                if let Some(rows) = insert.source.as_deref_mut() {
                    nesting.with_room(|| settle_parameters(rows, self.parameters));
                    nesting.with_room(|| mark_inner_values(rows));
                }
                let alias = match &insert.table {
                    ast::TableObject::TableName(name) => name.0.last().and_then(ast::ObjectNamePart::as_ident).cloned(),
                    ast::TableObject::TableFunction(_) | ast::TableObject::TableQuery(_) => None,
                };
                let insert = Statement::Statement(Box::new(ast::Statement::Insert(insert)));
                let plan = self.plan_datafusion(insert, nesting).await?;
                self.returning(plan, returning, alias, nesting).await
            }
            ast::Statement::Truncate(truncate) => self.truncate(truncate, nesting).await,
            ast::Statement::Delete(delete) => self.delete(delete, with, nesting).await,
            ast::Statement::Update(update) => self.update(update, with, nesting).await,
            ast::Statement::Merge(merge) => self.merge(merge, with, nesting).await,
            ast::Statement::AlterTable(alter) => self.alter_table(alter).await,
            ast::Statement::Analyze(analyze) => self.analyze(analyze).await,
            optimize @ ast::Statement::OptimizeTable { .. } => self.optimize(optimize).await,
            ast::Statement::ShowFunctions { filter } => show_functions::plan(self.state, filter),
            ast::Statement::ShowCreate { obj_type: ShowCreateObject::Table | ShowCreateObject::View, obj_name } => {
                let reference = object_name_to_table_reference(obj_name, false)?;
                if let Some(name) = self.temporary_name(&reference) {
                    return Err(EngineError::Unsupported {
                        what: format!("SHOW CREATE TABLE of the temporary table `{name}`"),
                        hint: format!("write DESCRIBE {}", quote_identifier(&name)),
                    });
                }
                show::definition(self.catalog, self.who, &self.full_name(&reference)?).await
            }
            ast::Statement::ShowVariable { variable } => match shown_indexes(&variable, self.database)? {
                Some(query) => self.query(&query).await,
                None => self.query(&show::variable(&variable, self.database, self.variables)?).await,
            },
            ast::Statement::Use(statement) => self.use_database(statement).await,
            ast::Statement::Set(statement) => self.set(statement).await,
            ast::Statement::Deallocate { name, prepare: _ } => self.deallocate(&name),
            ast::Statement::Prepare { .. } | ast::Statement::Execute { .. } => Err(EngineError::Unsupported {
                what: "PREPARE or EXECUTE inside another statement".into(),
                hint: "send it by itself".into(),
            }),
            ast::Statement::ShowCreate { .. }
            | ast::Statement::ShowVariables { .. }
            | ast::Statement::ShowStatus { .. }
            | ast::Statement::ShowCollation { .. } => Err(EngineError::Unsupported {
                what: "this form of SHOW".into(),
                hint:
                    "there are SHOW DATABASES, SHOW TABLES [FROM database], SHOW ALL TABLES, SHOW COLUMNS FROM table, \
                       SHOW CREATE TABLE table and SHOW FUNCTIONS [LIKE pattern]"
                        .into(),
            }),
            other => self.plan_datafusion(Statement::Statement(Box::new(other)), nesting).await,
        }
    }

    /// Plans a statement with DataFusion's planner, and turns DDL and DML of ours into [`WriteStatement`]s.
    pub(super) async fn plan_datafusion(&self, mut statement: Statement, nesting: Nesting) -> Result<LogicalPlan> {
        let created = match &mut statement {
            Statement::Statement(inner) => match inner.as_mut() {
                ast::Statement::CreateTable(table) => {
                    if !table.columns.is_empty()
                        && let Some(rows) = table.query.as_deref_mut()
                    {
                        nesting.with_room(|| mark_inner_values(rows));
                        number_columns(rows, table.columns.len());
                    }
                    let foreign_keys = take_foreign_keys(table)?;
                    let keys = take_unique_keys(table)?;
                    let defaults = take_defaults(table)?;
                    check_columns(table)?;
                    Some(TableConstraints {
                        with_rows: table.query.is_some(),
                        // DataFusion's planner has no temporary tables.
                        temporary: std::mem::take(&mut table.temporary),
                        keys,
                        foreign_keys,
                        defaults,
                        sort_order: take_sort_order(table),
                        not_null: not_null_columns(table),
                        texts: TextColumns::declared(table),
                    })
                }
                _ => None,
            },
            _ => None,
        };
        let session = SessionValues { who: self.who, database: self.database, variables: self.variables };
        nesting.with_room(|| write_out_session(&mut statement, &session))?;
        nesting.with_room(|| fold_relations(&mut statement, self.database))?;
        let names = ResolvedNames::resolve(
            self.catalog,
            self.state,
            self.who,
            &statement,
            nesting,
            self.database,
            OwnTables { temporary: self.temporary, files: self.files, numbered: self.numbered },
        )
        .await?;
        if let Some(notes) = self.notes {
            notes.resolved(names.origin());
        }
        let scope = PlanningScope { names: &names, state: self.state, database: self.database, sees_temporary: true };
        let plan = match nesting.with_room(|| plan_folded(&scope, statement, self.parameters)) {
            Ok(plan) => plan,
            Err(error) => match ResolvedNames::missing_in(&error) {
                Some(name) => return Err(self.catalog.tables().not_found(self.who, name).await.into()),
                None => return Err(error.into()),
            },
        };
        match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => match created {
                Some(constraints) if constraints.temporary => self.create_temporary_table(table, constraints),
                Some(constraints) => self.create_table(table, constraints).await,
                None => Err(EngineError::Unsupported {
                    what: "SELECT ... INTO".into(),
                    hint: "write CREATE TABLE name AS SELECT ...".into(),
                }),
            },
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => self.create_external_table(table),
            LogicalPlan::Dml(dml) => insert(dml),
            other => Ok(other),
        }
    }

    /// Plans a query over the catalog's tables.
    pub(super) async fn query(&self, sql: &str) -> Result<LogicalPlan> {
        let ParsedStatement { statement, nesting, .. } = parse_statement(sql)?;
        self.plan_datafusion(statement, nesting).await
    }

    /// Returns the name of the table of the session that a reference finds.
    pub(super) fn temporary_name(&self, reference: &TableReference) -> Option<String> {
        match reference {
            TableReference::Bare { table } if self.temporary?.contains(table) => Some(table.to_string()),
            _ => None,
        }
    }

    /// Plans the columns of a table: of the session's own where it has one of that name, as queries read.
    async fn described(&self, reference: &TableReference) -> Result<LogicalPlan> {
        let own = self.temporary_name(reference).and_then(|name| self.temporary?.provider(&name));
        match own {
            Some(table) => show::temporary_columns(&table.schema()),
            None => show::columns(self.catalog, self.who, &self.full_name(reference)?).await,
        }
    }

    pub(super) fn full_name(&self, reference: &TableReference) -> Result<TableName> {
        full_name(reference, self.database)
    }

    fn comment_target(&self, object_type: CommentObject, name: &ObjectName) -> Result<CommentTarget> {
        match object_type {
            CommentObject::Table | CommentObject::View => {
                Ok(CommentTarget::Table(self.full_name(&object_name_to_table_reference(name.clone(), false)?)?))
            }
            CommentObject::Column => {
                let mut parts = name.0.clone();
                let column = parts.pop().and_then(|part| part.as_ident().map(|ident| ident.value.clone()));
                match column {
                    Some(column) if !parts.is_empty() => {
                        let table = object_name_to_table_reference(ObjectName(parts), false)?;
                        Ok(CommentTarget::Column(self.full_name(&table)?, column))
                    }
                    _ => Err(EngineError::Plan { message: format!("`{name}` is not a column; write table.column") }),
                }
            }
            CommentObject::Schema | CommentObject::Database => Ok(CommentTarget::Database(database_name(name)?)),
            other => Err(EngineError::Unsupported {
                what: format!("COMMENT ON {other}"),
                hint: "comments go on a DATABASE, TABLE, VIEW or COLUMN".into(),
            }),
        }
    }

    async fn create_view(&self, view: ast::CreateView) -> Result<LogicalPlan> {
        // A view outlives the session, so it sees none of the session's tables.
        let lasting = StatementPlanner { temporary: None, ..*self };
        let sql = lasting.view_query(&view).await?;
        let reference = object_name_to_table_reference(view.name, false)?;
        let input = lasting.query(&sql).await?;
        Ok(WriteStatement::CreateView {
            name: self.full_name(&reference)?,
            sql,
            default_database: self.database.to_owned(),
            if_exists: if_exists(view.if_not_exists, view.or_replace)?,
            input: Arc::new(input),
        }
        .into_plan())
    }

    /// Returns the query of a view, with its columns renamed where the view names them.
    async fn view_query(&self, view: &ast::CreateView) -> Result<String> {
        let mut query = view.query.clone();
        write_out_asof(&mut query);
        let mut query = exact_text(&query);
        let mut plan = self.query(&query).await?;
        let mut names = HashSet::new();
        if plan.schema().fields().iter().any(|field| !names.insert(field.name().to_lowercase())) {
            // As a relation it has names that come once.
            query = format!("SELECT * FROM ({query}) AS v");
            plan = self.query(&query).await?;
        }
        if view.columns.is_empty() {
            return Ok(query);
        }
        let fields = plan.schema().fields();
        if fields.len() != view.columns.len() {
            return Err(EngineError::Plan {
                message: format!("the view names {} columns, its query has {}", view.columns.len(), fields.len()),
            });
        }
        let mut names = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !names.insert(field.name().to_lowercase())) {
            return Err(EngineError::Plan {
                message: format!("the view's query has two columns `{}`; give each a name with AS", twice.name()),
            });
        }
        let renamed = fields
            .iter()
            .zip(&view.columns)
            .map(|(field, column)| format!("{} AS {}", quote_identifier(field.name()), column.name));
        Ok(format!("SELECT {} FROM ({query}) AS v", renamed.collect::<Vec<_>>().join(", ")))
    }

    async fn create_table(&self, table: CreateMemoryTable, constraints: TableConstraints) -> Result<LogicalPlan> {
        let TableConstraints { with_rows, temporary: _, keys, foreign_keys, defaults, sort_order, not_null, texts } =
            constraints;
        let texts = texts.unwrap_or_else(|| TextColumns::of_plan(&table.input));
        let name = self.full_name(&table.name)?;
        let schema = table.input.schema().as_arrow();
        let columns = schema.fields().iter().map(|field| (field.name().as_str(), field.data_type()));
        let sort_order = sort_keys(&sort_order.unwrap_or_default(), &columns.collect::<Vec<_>>(), &name.table)?;
        let keys = resolve_unique_keys(keys, &name.table, schema)?;
        check_defaults(&defaults, schema, &texts.uuids)?;
        let own = NewTableKeys { name: &name, schema, keys: Some(&keys) };
        let foreign_keys = resolve_foreign_keys(self.catalog, self.who, self.database, own, foreign_keys).await?;
        Ok(WriteStatement::CreateTable {
            name,
            if_exists: if_exists(table.if_not_exists, table.or_replace)?,
            with_rows,
            not_null,
            keys,
            foreign_keys,
            defaults,
            sort_order,
            texts,
            input: table.input,
        }
        .into_plan())
    }

    fn create_temporary_table(&self, table: CreateMemoryTable, constraints: TableConstraints) -> Result<LogicalPlan> {
        let TableConstraints { with_rows, temporary: _, keys, foreign_keys, defaults, sort_order, not_null, texts: _ } =
            constraints;
        if sort_order.is_some() || !keys.is_empty() || !foreign_keys.is_empty() || !defaults.is_empty() {
            return Err(EngineError::Unsupported {
                what: "a key, a default or SORTED BY of a temporary table".into(),
                hint: "leave it out".into(),
            });
        }
        if self.temporary.is_none() {
            return Err(no_session());
        }
        let TableReference::Bare { table: name } = &table.name else {
            return Err(EngineError::Plan {
                message: format!("a temporary table is in no database; write `{}`", table.name.table()),
            });
        };
        Ok(WriteStatement::CreateTemporary {
            name: name.to_string(),
            if_exists: if_exists(table.if_not_exists, table.or_replace)?,
            with_rows,
            not_null,
            input: table.input,
        }
        .into_plan())
    }

    fn create_external_table(&self, table: CreateExternalTable) -> Result<LogicalPlan> {
        if table.temporary || table.unbounded || !table.order_exprs.is_empty() || !table.column_defaults.is_empty() {
            return Err(EngineError::Unsupported {
                what: "TEMPORARY, UNBOUNDED, WITH ORDER or DEFAULT on an external table".into(),
                hint: "leave it out".into(),
            });
        }
        if table.constraints.iter().next().is_some() {
            return Err(EngineError::Unsupported {
                what: "a key of an external table".into(),
                hint: "leave it out; how external tables join is declared with `querent relationships add`".into(),
            });
        }
        let columns: &Schema = table.schema.as_arrow();
        // DataFusion stores every option under `format.`; ours have no prefix.
        let options = table.options.into_iter().map(|(key, value)| {
            let key = key.to_lowercase();
            (key.strip_prefix("format.").map(str::to_owned).unwrap_or(key), value)
        });
        Ok(WriteStatement::CreateExternalTable(ExternalTableRequest {
            name: self.full_name(&table.name)?,
            columns: (!columns.fields().is_empty()).then(|| Arc::new(columns.clone())),
            location: table.location,
            format: table.file_type,
            partition_columns: table.table_partition_cols.iter().map(|name| without_quotes(name)).collect(),
            options: options.collect(),
            if_exists: if_exists(table.if_not_exists, table.or_replace)?,
        })
        .into_plan())
    }
}

/// Returns a name that DataFusion gives as it is written.
fn without_quotes(name: &str) -> String {
    match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

/// What `CREATE TABLE` says that the planner does not see.
struct TableConstraints {
    with_rows: bool,
    temporary: bool,
    keys: Vec<WrittenKey>,
    foreign_keys: Vec<ast::ForeignKeyConstraint>,
    /// Of columns, by their names.
    defaults: Vec<(String, ColumnDefault)>,
    /// The keys of SORTED BY.
    sort_order: Option<String>,
    /// The columns that are declared NOT NULL.
    not_null: Vec<String>,
    /// The columns whose types are JSON and UUID; `None` where the query says what the columns are.
    texts: Option<TextColumns>,
}

fn not_null_columns(table: &ast::CreateTable) -> Vec<String> {
    let is_not_null =
        |column: &&ast::ColumnDef| column.options.iter().any(|option| matches!(option.option, ColumnOption::NotNull));
    table.columns.iter().filter(is_not_null).map(|column| folded_name(&column.name)).collect()
}

fn insert(dml: DmlStatement) -> Result<LogicalPlan> {
    let overwrite = match &dml.op {
        WriteOp::Insert(InsertOp::Append) => false,
        WriteOp::Insert(InsertOp::Overwrite) => true,
        WriteOp::Insert(InsertOp::Replace) => {
            return Err(EngineError::Unsupported {
                what: "REPLACE INTO".into(),
                hint: "use INSERT INTO, or INSERT OVERWRITE to replace all rows".into(),
            });
        }
        WriteOp::Delete | WriteOp::Update | WriteOp::Ctas | WriteOp::Truncate => return Ok(LogicalPlan::Dml(dml)),
    };
    let input = match has_required_values(&dml.input) {
        true => Arc::new(with_nullable_values(Arc::unwrap_or_clone(dml.input))?),
        false => dml.input,
    };
    match CatalogTable::resolved_behind(&dml.target).cloned() {
        Some(target) => Ok(WriteStatement::Insert { target: Box::new(target), overwrite, input }.into_plan()),
        None if let Some(name) = CatalogTable::temporary_behind(&dml.target) => {
            Ok(WriteStatement::InsertTemporary { name, overwrite, input }.into_plan())
        }
        None => Err(EngineError::NotAllowed {
            what: format!("inserting into `{}`", dml.table_name.table()),
            why: ", which is a view or a system table".into(),
        }),
    }
}

/// Returns whether rows are those of VALUES, of which some may not be null.
fn has_required_values(rows: &LogicalPlan) -> bool {
    match rows {
        LogicalPlan::Projection(projection) => has_required_values(&projection.input),
        LogicalPlan::Values(values) => values.schema.fields().iter().any(|field| !field.is_nullable()),
        _ => false,
    }
}

/// Returns rows of VALUES of which any may be null: what may not is refused where it is written, by the name of its column.
fn with_nullable_values(rows: LogicalPlan) -> Result<LogicalPlan> {
    match rows {
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let input = with_nullable_values(Arc::unwrap_or_clone(input))?;
            Ok(LogicalPlan::Projection(Projection::try_new(expr, Arc::new(input))?))
        }
        LogicalPlan::Values(Values { schema, values }) => {
            let fields = schema.fields().iter().map(|field| Field::clone(field).with_nullable(true));
            let schema = DFSchema::from_unqualified_fields(fields.collect(), schema.metadata().clone())?;
            Ok(LogicalPlan::Values(Values { schema: Arc::new(schema), values }))
        }
        other => Ok(other),
    }
}

fn if_exists(if_not_exists: bool, or_replace: bool) -> Result<IfExists> {
    match (if_not_exists, or_replace) {
        (false, false) => Ok(IfExists::Error),
        (true, false) => Ok(IfExists::Ignore),
        (false, true) => Ok(IfExists::Replace),
        (true, true) => Err(EngineError::Plan { message: "use either IF NOT EXISTS or OR REPLACE, not both".into() }),
    }
}

/// `db` or `querent.db`.
pub(super) fn database_name(name: &ObjectName) -> Result<String> {
    let reference = object_name_to_table_reference(name.clone(), false)?;
    match reference {
        TableReference::Bare { table } => Ok(table.to_string()),
        TableReference::Partial { schema, table } if same_name(&schema, querent_catalog::CATALOG_NAME) => {
            Ok(table.to_string())
        }
        _ => Err(CatalogError::InvalidName {
            name: name.to_string(),
            reason: "a database is written `name` or `querent.name`".into(),
        }
        .into()),
    }
}
