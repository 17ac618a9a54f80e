//! The second gate: a walk over the analysed plan and all its subqueries that knows every kind of node and
//! expression there is. A kind that a new DataFusion adds does not compile here before somebody decided about it.
//!
//! Extension nodes, table sources and functions pass by allow-list. Text is never looked at.

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::view::ViewTable;
use datafusion::datasource::source_as_provider;
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, Sort, WindowFunction, WindowFunctionDefinition, WindowFunctionParams,
};
use datafusion::logical_expr::{
    DdlStatement, Distinct, Expr, GroupingSet, LogicalPlan, Partitioning, Statement, Subquery, TableScan, WriteOp,
};
use querent_catalog::{CatalogError, Principal, Role};

use super::functions::ALLOWED;
use super::{AuthorizedPlan, Mode};
use crate::sql::catalog_table::CatalogTable;
use crate::sql::change::Change;
use crate::sql::is_system;
use crate::{EngineError, Result};

/// How deep operators nest, subqueries and views included.
const MAX_PLAN_DEPTH: usize = 1_000;
/// How deep expressions nest.
const MAX_EXPR_DEPTH: usize = 4_000;

/// Decides whether `who` may run `plan` in `mode`.
///
/// A query passes when all it does is read what was resolved for its principal. Read-only mode and role `read` let
/// nothing else through; role `write` and above may also carry out the statements of `sql::change`. Everything else
/// that DataFusion can plan (SET, COPY, PREPARE, DELETE, ...) is refused for everybody.
pub fn authorize(plan: LogicalPlan, who: &Principal, mode: Mode) -> Result<AuthorizedPlan> {
    let walk = Walk { who, mode };
    match Change::of(&plan) {
        Some(change) => {
            walk.change(change)?;
            if let Some(input) = change.input() {
                walk.plan(input, 0)?;
            }
        }
        None => walk.plan(&plan, 0)?,
    }
    Ok(AuthorizedPlan { plan })
}

struct Walk<'a> {
    who: &'a Principal,
    mode: Mode,
}

impl Walk<'_> {
    fn change(&self, change: &Change) -> Result<()> {
        self.may_write(change.label())?;
        let database = change.database();
        if is_system(database) {
            return Err(EngineError::NotAllowed {
                what: change.label().to_owned(),
                why: format!(" in `{database}`, which Querent keeps itself"),
            });
        }
        if self.who.may_see(database) {
            return Ok(());
        }
        match change {
            Change::CreateDatabase { name, .. } => Err(EngineError::NotAllowed {
                what: format!("creating database `{name}`"),
                why: ": this caller is limited to other databases".into(),
            }),
            Change::DropDatabase { .. }
            | Change::CreateTable { .. }
            | Change::CreateExternalTable(_)
            | Change::CreateView { .. }
            | Change::DropTable { .. }
            | Change::Insert { .. }
            | Change::Comment { .. } => {
                Err(CatalogError::DatabaseNotFound { database: database.to_owned(), nearest: None }.into())
            }
        }
    }

    fn may_write(&self, what: &str) -> Result<()> {
        let why = match (self.mode, self.who.role()) {
            (Mode::ReadOnly, _) => " in read-only mode",
            (Mode::ReadWrite, Role::Read) => " for role read (it needs role write)",
            (Mode::ReadWrite, Role::Write | Role::Admin) => return Ok(()),
        };
        Err(EngineError::NotAllowed { what: what.to_owned(), why: why.to_owned() })
    }

    /// A statement that nobody may run, refused with the reason that is nearest to the caller.
    fn refuse<T>(&self, what: &str, hint: &str) -> Result<T> {
        self.may_write(what)?;
        Err(EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() })
    }

    fn plan(&self, plan: &LogicalPlan, depth: usize) -> Result<()> {
        if depth > MAX_PLAN_DEPTH {
            return Err(EngineError::too_deep());
        }
        let below = depth + 1;
        match plan {
            LogicalPlan::Projection(projection) => {
                self.exprs(&projection.expr, below)?;
                self.plan(&projection.input, below)
            }
            LogicalPlan::Filter(filter) => {
                self.expr(&filter.predicate, below, 0)?;
                self.plan(&filter.input, below)
            }
            LogicalPlan::Window(window) => {
                self.exprs(&window.window_expr, below)?;
                self.plan(&window.input, below)
            }
            LogicalPlan::Aggregate(aggregate) => {
                self.exprs(&aggregate.group_expr, below)?;
                self.exprs(&aggregate.aggr_expr, below)?;
                self.plan(&aggregate.input, below)
            }
            LogicalPlan::Sort(sort) => {
                self.sorts(&sort.expr, below, 0)?;
                self.plan(&sort.input, below)
            }
            LogicalPlan::Join(join) => {
                for (left, right) in &join.on {
                    self.expr(left, below, 0)?;
                    self.expr(right, below, 0)?;
                }
                self.exprs(join.filter.as_ref(), below)?;
                self.plan(&join.left, below)?;
                self.plan(&join.right, below)
            }
            LogicalPlan::Repartition(repartition) => {
                match &repartition.partitioning_scheme {
                    Partitioning::RoundRobinBatch(_) => {}
                    Partitioning::Hash(exprs, _) | Partitioning::DistributeBy(exprs) => self.exprs(exprs, below)?,
                }
                self.plan(&repartition.input, below)
            }
            LogicalPlan::Union(union) => union.inputs.iter().try_for_each(|input| self.plan(input, below)),
            LogicalPlan::TableScan(scan) => self.scan(scan, below),
            LogicalPlan::EmptyRelation(_) | LogicalPlan::DescribeTable(_) => Ok(()),
            LogicalPlan::Subquery(subquery) => self.subquery(subquery, below),
            LogicalPlan::SubqueryAlias(alias) => self.plan(&alias.input, below),
            LogicalPlan::Limit(limit) => {
                self.exprs(limit.skip.as_deref(), below)?;
                self.exprs(limit.fetch.as_deref(), below)?;
                self.plan(&limit.input, below)
            }
            LogicalPlan::Values(values) => values.values.iter().try_for_each(|row| self.exprs(row, below)),
            LogicalPlan::Explain(explain) => self.plan(&explain.plan, below),
            LogicalPlan::Analyze(analyze) => self.plan(&analyze.input, below),
            LogicalPlan::Distinct(Distinct::All(input)) => self.plan(input, below),
            LogicalPlan::Distinct(Distinct::On(on)) => {
                self.exprs(&on.on_expr, below)?;
                self.exprs(&on.select_expr, below)?;
                self.sorts(on.sort_expr.iter().flatten(), below, 0)?;
                self.plan(&on.input, below)
            }
            LogicalPlan::Unnest(unnest) => self.plan(&unnest.input, below),
            LogicalPlan::RecursiveQuery(query) => {
                self.plan(&query.static_term, below)?;
                self.plan(&query.recursive_term, below)
            }
            LogicalPlan::Extension(extension) => match Change::of(plan) {
                Some(change) => self.refuse(change.label(), "it cannot be part of another statement"),
                None => Err(EngineError::NotAllowed {
                    what: format!("the operator {}", extension.node.name()),
                    why: String::new(),
                }),
            },
            LogicalPlan::Statement(statement) => self.statement(statement),
            LogicalPlan::Dml(dml) => self.dml(&dml.op),
            LogicalPlan::Ddl(ddl) => self.ddl(ddl),
            LogicalPlan::Copy(_) => self.refuse("COPY", "query the rows and write them where you are"),
        }
    }

    fn statement(&self, statement: &Statement) -> Result<()> {
        let (what, hint) = match statement {
            Statement::TransactionStart(_) => ("BEGIN", "each statement is a transaction of its own"),
            Statement::TransactionEnd(_) => ("COMMIT or ROLLBACK", "each statement is a transaction of its own"),
            Statement::SetVariable(_) => ("SET", "settings are the server's, not a statement's"),
            Statement::ResetVariable(_) => ("RESET", "settings are the server's, not a statement's"),
            Statement::Prepare(_) => ("PREPARE", "send the statement itself"),
            Statement::Execute(_) => ("EXECUTE", "send the statement itself"),
            Statement::Deallocate(_) => ("DEALLOCATE", "nothing is prepared by statements"),
        };
        self.refuse(what, hint)
    }

    fn dml(&self, op: &WriteOp) -> Result<()> {
        const REWRITE: &str = "rewrite the table with CREATE OR REPLACE TABLE ... AS SELECT, or INSERT OVERWRITE";
        match op {
            WriteOp::Insert(_) => self.refuse("INSERT", "it cannot be part of another statement"),
            WriteOp::Ctas => self.refuse("CREATE TABLE AS", "it cannot be part of another statement"),
            WriteOp::Delete => self.refuse("DELETE", REWRITE),
            WriteOp::Update => self.refuse("UPDATE", REWRITE),
            WriteOp::Truncate => self.refuse("TRUNCATE", "drop the table and create it again"),
        }
    }

    fn ddl(&self, ddl: &DdlStatement) -> Result<()> {
        const NESTED: &str = "it cannot be part of another statement";
        let (what, hint) = match ddl {
            DdlStatement::CreateExternalTable(_) => ("CREATE EXTERNAL TABLE", NESTED),
            DdlStatement::CreateMemoryTable(_) => ("CREATE TABLE", NESTED),
            DdlStatement::CreateView(_) => ("CREATE VIEW", NESTED),
            DdlStatement::CreateCatalogSchema(_) => ("CREATE SCHEMA", NESTED),
            DdlStatement::CreateCatalog(_) => ("CREATE DATABASE", NESTED),
            DdlStatement::DropTable(_) => ("DROP TABLE", NESTED),
            DdlStatement::DropView(_) => ("DROP VIEW", NESTED),
            DdlStatement::DropCatalogSchema(_) => ("DROP SCHEMA", NESTED),
            DdlStatement::CreateIndex(_) => ("CREATE INDEX", "tables are pruned by their statistics"),
            DdlStatement::CreateFunction(_) => ("CREATE FUNCTION", "only built-in functions can be called"),
            DdlStatement::DropFunction(_) => ("DROP FUNCTION", "only built-in functions can be called"),
        };
        self.refuse(what, hint)
    }

    fn scan(&self, scan: &TableScan, depth: usize) -> Result<()> {
        self.exprs(&scan.filters, depth)?;
        if CatalogTable::is_behind(&scan.source) {
            return Ok(());
        }
        let provider = source_as_provider(&scan.source)?;
        if let Some(view) = provider.downcast_ref::<ViewTable>() {
            return self.plan(view.logical_plan(), depth);
        }
        if provider.is::<CteWorkTable>() || provider.is::<GenerateSeriesTable>() {
            return Ok(());
        }
        Err(EngineError::NotAllowed { what: format!("reading `{}`", scan.table_name), why: String::new() })
    }

    fn subquery(&self, subquery: &Subquery, depth: usize) -> Result<()> {
        self.exprs(&subquery.outer_ref_columns, depth)?;
        self.plan(&subquery.subquery, depth)
    }

    fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>, plan_depth: usize) -> Result<()> {
        exprs.into_iter().try_for_each(|expr| self.expr(expr, plan_depth, 0))
    }

    fn all<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>, plan_depth: usize, depth: usize) -> Result<()> {
        exprs.into_iter().try_for_each(|expr| self.expr(expr, plan_depth, depth))
    }

    fn sorts<'e>(&self, sorts: impl IntoIterator<Item = &'e Sort>, plan_depth: usize, depth: usize) -> Result<()> {
        sorts.into_iter().try_for_each(|sort| self.expr(&sort.expr, plan_depth, depth))
    }

    fn expr(&self, expr: &Expr, plan_depth: usize, depth: usize) -> Result<()> {
        if depth > MAX_EXPR_DEPTH {
            return Err(EngineError::too_deep());
        }
        let below = depth + 1;
        match expr {
            Expr::Column(_) | Expr::OuterReferenceColumn(_, _) | Expr::Literal(_, _) | Expr::LambdaVariable(_) => {
                Ok(())
            }
            Expr::Alias(alias) => self.expr(&alias.expr, plan_depth, below),
            Expr::BinaryExpr(binary) => {
                self.expr(&binary.left, plan_depth, below)?;
                self.expr(&binary.right, plan_depth, below)
            }
            Expr::Like(like) | Expr::SimilarTo(like) => {
                self.expr(&like.expr, plan_depth, below)?;
                self.expr(&like.pattern, plan_depth, below)
            }
            Expr::Not(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::Negative(inner) => self.expr(inner, plan_depth, below),
            Expr::Between(between) => {
                self.all([between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()], plan_depth, below)
            }
            Expr::Case(case) => {
                self.all(case.expr.as_deref(), plan_depth, below)?;
                for (when, then) in &case.when_then_expr {
                    self.all([when.as_ref(), then.as_ref()], plan_depth, below)?;
                }
                self.all(case.else_expr.as_deref(), plan_depth, below)
            }
            Expr::Cast(cast) => self.expr(&cast.expr, plan_depth, below),
            Expr::TryCast(cast) => self.expr(&cast.expr, plan_depth, below),
            Expr::ScalarFunction(call) => {
                allowed(ALLOWED.scalar.contains(call.name()), call.name())?;
                self.all(&call.args, plan_depth, below)
            }
            Expr::HigherOrderFunction(call) => {
                allowed(ALLOWED.higher_order.contains(call.name()), call.name())?;
                self.all(&call.args, plan_depth, below)
            }
            Expr::Lambda(lambda) => self.expr(&lambda.body, plan_depth, below),
            Expr::AggregateFunction(call) => self.aggregate(call, plan_depth, below),
            Expr::WindowFunction(call) => self.window(call, plan_depth, below),
            Expr::InList(list) => {
                self.expr(&list.expr, plan_depth, below)?;
                self.all(&list.list, plan_depth, below)
            }
            Expr::Exists(exists) => self.subquery(&exists.subquery, plan_depth + 1),
            Expr::InSubquery(query) => {
                self.expr(&query.expr, plan_depth, below)?;
                self.subquery(&query.subquery, plan_depth + 1)
            }
            Expr::SetComparison(comparison) => {
                self.expr(&comparison.expr, plan_depth, below)?;
                self.subquery(&comparison.subquery, plan_depth + 1)
            }
            Expr::ScalarSubquery(subquery) => self.subquery(subquery, plan_depth + 1),
            Expr::GroupingSet(GroupingSet::Rollup(exprs) | GroupingSet::Cube(exprs)) => {
                self.all(exprs, plan_depth, below)
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => self.all(sets.iter().flatten(), plan_depth, below),
            Expr::Unnest(unnest) => self.expr(&unnest.expr, plan_depth, below),
            Expr::ScalarVariable(_, names) => Err(EngineError::NotAllowed {
                what: format!("the variable {}", names.join(".")),
                why: ": there are none".into(),
            }),
            Expr::Placeholder(placeholder) => Err(EngineError::Plan {
                message: format!("parameter `{}` has no value; write the value in its place", placeholder.id),
            }),
            #[expect(deprecated, reason = "an exhaustive match names it")]
            Expr::Wildcard { .. } => Err(EngineError::Internal("a wildcard was left in an analysed plan".into())),
        }
    }

    fn aggregate(&self, call: &AggregateFunction, plan_depth: usize, depth: usize) -> Result<()> {
        allowed(ALLOWED.aggregate.contains(call.func.name()), call.func.name())?;
        let AggregateFunctionParams { args, distinct: _, filter, order_by, null_treatment: _ } = &call.params;
        self.all(args, plan_depth, depth)?;
        self.all(filter.as_deref(), plan_depth, depth)?;
        self.sorts(order_by, plan_depth, depth)
    }

    fn window(&self, call: &WindowFunction, plan_depth: usize, depth: usize) -> Result<()> {
        match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                allowed(ALLOWED.aggregate.contains(function.name()), function.name())?;
            }
            WindowFunctionDefinition::WindowUDF(function) => {
                allowed(ALLOWED.window.contains(function.name()), function.name())?;
            }
        }
        // A frame's bounds are literals.
        let WindowFunctionParams {
            args,
            partition_by,
            order_by,
            window_frame: _,
            filter,
            null_treatment: _,
            distinct: _,
        } = &call.params;
        self.all(args, plan_depth, depth)?;
        self.all(partition_by, plan_depth, depth)?;
        self.all(filter.as_deref(), plan_depth, depth)?;
        self.sorts(order_by, plan_depth, depth)
    }
}

fn allowed(is_listed: bool, function: &str) -> Result<()> {
    if is_listed {
        return Ok(());
    }
    Err(EngineError::NotAllowed { what: format!("the function `{function}`"), why: String::new() })
}
