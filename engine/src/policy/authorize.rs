//! The second gate: a walk over the analysed plan and all its subqueries that knows every kind of node and
//! expression. A kind that a new DataFusion adds does not compile here until somebody has decided about it.
//!
//! Extension nodes, table sources and functions pass by an allow-list. The text of a statement is never inspected.

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, Sort, WindowFunction, WindowFunctionDefinition, WindowFunctionParams,
};
use datafusion::logical_expr::{
    DdlStatement, Distinct, Expr, GroupingSet, LogicalPlan, Partitioning, Statement, Subquery, TableScan, WriteOp,
};
use querent_catalog::{CatalogError, Principal};
use querent_kql::{Materialized, graph, is_kql_aggregate, is_kql_function, is_kql_window_function};

use super::functions::ALLOWED;
use super::{AuthorizedPlan, Mode, require_server_admin, require_session_write, require_write};
use crate::error::{EngineError, KEPT_BY_QUERENT, Result};
use crate::sql::catalog_table::CatalogTable;
use crate::sql::write_statement::WriteStatement;
use crate::tables::system::is_system_database;

/// The deepest nesting of operators, subqueries and views included.
const MAX_PLAN_DEPTH: usize = 1_000;
/// The deepest nesting of expressions.
const MAX_EXPR_DEPTH: usize = 4_000;

const NESTED: &str = "it cannot be part of another statement";

/// Decides whether `who` may run `plan` in `mode`.
///
/// A query passes when all it does is read what was resolved for its principal. Read-only mode and role `read` let
/// nothing else through; role `write` and above may also carry out the statements of `sql::write_statement`. Everything else
/// that DataFusion can plan (SET, COPY, PREPARE, TRUNCATE, ...) is refused for everybody.
pub fn authorize(plan: LogicalPlan, who: &Principal, mode: Mode) -> Result<AuthorizedPlan> {
    StatementRights { who, mode, parameters: OpenParameters::Refused }.check(&plan)?;
    Ok(AuthorizedPlan { plan, optimized: None, text: None, result: None })
}

/// As [`authorize`], of a statement whose parameters have no values yet. Such a plan can be described and not executed, so
/// there is no [`AuthorizedPlan`] of it.
pub(crate) fn check_open(plan: &LogicalPlan, who: &Principal, mode: Mode) -> Result<()> {
    StatementRights { who, mode, parameters: OpenParameters::Described }.check(plan)
}

struct StatementRights<'a> {
    who: &'a Principal,
    mode: Mode,
    parameters: OpenParameters,
}

/// What becomes of parameters without values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenParameters {
    /// The plan is to be executed.
    Refused,
    /// The plan is only described.
    Described,
}

impl StatementRights<'_> {
    fn check(&self, plan: &LogicalPlan) -> Result<()> {
        match WriteStatement::from_plan(plan) {
            Some(change) => {
                self.change(change)?;
                let mut read = change.input().into_iter().chain(change.returning());
                read.try_for_each(|query| PlanWalk::over(self, query))
            }
            None => PlanWalk::over(self, plan),
        }
    }

    fn change(&self, change: &WriteStatement) -> Result<()> {
        if let WriteStatement::CopyTo { .. } = change {
            return require_server_admin(change.label(), self.who, self.mode);
        }
        let Some(database) = change.database() else {
            // Tables of the session, and the caller's own queries: no role is needed to keep rows that one may read anyway.
            return require_session_write(change.label(), self.mode);
        };
        require_write(change.label(), self.who, self.mode)?;
        if is_system_database(database) {
            return Err(EngineError::NotAllowed {
                what: change.label().to_owned(),
                why: format!(" in `{database}`, {KEPT_BY_QUERENT}"),
            });
        }
        if self.who.may_see(database) {
            return Ok(());
        }
        match change {
            WriteStatement::CreateDatabase { name, .. } => Err(EngineError::NotAllowed {
                what: format!("creating database `{name}`"),
                why: ": this caller is limited to other databases".into(),
            }),
            WriteStatement::DropDatabase { .. }
            | WriteStatement::CreateTable { .. }
            | WriteStatement::CreateExternalTable(_)
            | WriteStatement::CreateView { .. }
            | WriteStatement::DropTables { .. }
            | WriteStatement::Insert { .. }
            | WriteStatement::ChangeRows { .. }
            | WriteStatement::AlterTable { .. }
            | WriteStatement::Analyze { .. }
            | WriteStatement::Optimize { .. }
            | WriteStatement::CreateTemporary { .. }
            | WriteStatement::InsertTemporary { .. }
            | WriteStatement::ChangeTemporary { .. }
            | WriteStatement::Returning { .. }
            | WriteStatement::DropTemporary { .. }
            | WriteStatement::Session(_)
            | WriteStatement::CopyTo { .. }
            | WriteStatement::Kill { .. }
            | WriteStatement::ChangeGraph { .. }
            | WriteStatement::CreateVectorIndex(_)
            | WriteStatement::DropVectorIndex { .. }
            | WriteStatement::ChangePolicy { .. }
            | WriteStatement::Comment { .. } => {
                Err(CatalogError::DatabaseNotFound { database: database.to_owned(), nearest: None }.into())
            }
        }
    }

    /// Refuses a statement that nobody may run: for want of a right where the caller lacks it, otherwise as unsupported.
    fn refuse<T>(&self, what: &str, hint: &str) -> Result<T> {
        require_write(what, self.who, self.mode)?;
        Err(EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() })
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
        match op {
            WriteOp::Insert(_) => self.refuse("INSERT", NESTED),
            WriteOp::Ctas => self.refuse("CREATE TABLE AS", NESTED),
            WriteOp::Delete => self.refuse("DELETE", NESTED),
            WriteOp::Update => self.refuse("UPDATE", NESTED),
            WriteOp::Truncate => self.refuse("TRUNCATE", "write DELETE FROM t"),
        }
    }

    fn ddl(&self, ddl: &DdlStatement) -> Result<()> {
        let (what, hint) = match ddl {
            DdlStatement::CreateExternalTable(_) => ("CREATE EXTERNAL TABLE", NESTED),
            DdlStatement::CreateMemoryTable(_) => ("CREATE TABLE", NESTED),
            DdlStatement::CreateView(_) => ("CREATE VIEW", NESTED),
            DdlStatement::CreateCatalogSchema(_) => ("CREATE SCHEMA", NESTED),
            DdlStatement::CreateCatalog(_) => ("CREATE DATABASE", NESTED),
            DdlStatement::DropTable(_) => ("DROP TABLE", NESTED),
            DdlStatement::DropView(_) => ("DROP VIEW", NESTED),
            DdlStatement::DropCatalogSchema(_) => ("DROP SCHEMA", NESTED),
            DdlStatement::CreateIndex(_) => ("CREATE INDEX", "leave it out: tables are pruned by their statistics"),
            DdlStatement::CreateFunction(_) => ("CREATE FUNCTION", "only built-in functions can be called"),
            DdlStatement::DropFunction(_) => ("DROP FUNCTION", "only built-in functions can be called"),
        };
        self.refuse(what, hint)
    }
}

/// A walk over a plan with a stack of its own, so that the constants above limit the depth and not the thread's stack.
struct PlanWalk<'a, 'p> {
    rights: &'a StatementRights<'a>,
    pending: Vec<PendingNode<'p>>,
}

enum PendingNode<'p> {
    Plan { plan: &'p LogicalPlan, depth: usize },
    Expr { expr: &'p Expr, plan_depth: usize, depth: usize },
}

impl<'p> PlanWalk<'_, 'p> {
    fn over(rights: &StatementRights<'_>, plan: &'p LogicalPlan) -> Result<()> {
        let mut walk = PlanWalk { rights, pending: vec![PendingNode::Plan { plan, depth: 0 }] };
        while let Some(node) = walk.pending.pop() {
            match node {
                PendingNode::Plan { depth, .. } if depth > MAX_PLAN_DEPTH => return Err(EngineError::too_deep()),
                PendingNode::Expr { depth, .. } if depth > MAX_EXPR_DEPTH => return Err(EngineError::too_deep()),
                PendingNode::Plan { plan, depth } => walk.plan(plan, depth + 1)?,
                PendingNode::Expr { expr, plan_depth, depth } => {
                    Below { walk: &mut walk, plan_depth, depth }.expr(expr)?
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, plan: &'p LogicalPlan, depth: usize) {
        self.pending.push(PendingNode::Plan { plan, depth });
    }

    fn exprs(&mut self, exprs: impl IntoIterator<Item = &'p Expr>, plan_depth: usize) {
        self.pending.extend(exprs.into_iter().map(|expr| PendingNode::Expr { expr, plan_depth, depth: 0 }));
    }

    fn sorts(&mut self, sorts: impl IntoIterator<Item = &'p Sort>, plan_depth: usize) {
        self.exprs(sorts.into_iter().map(|sort| &sort.expr), plan_depth);
    }

    fn subquery(&mut self, subquery: &'p Subquery, depth: usize) {
        self.exprs(&subquery.outer_ref_columns, depth);
        self.push(&subquery.subquery, depth);
    }

    /// Checks one operator and pushes what is below it, at `depth`.
    fn plan(&mut self, plan: &'p LogicalPlan, depth: usize) -> Result<()> {
        match plan {
            LogicalPlan::Projection(projection) => {
                self.exprs(&projection.expr, depth);
                self.push(&projection.input, depth);
            }
            LogicalPlan::Filter(filter) => {
                self.exprs([&filter.predicate], depth);
                self.push(&filter.input, depth);
            }
            LogicalPlan::Window(window) => {
                self.exprs(&window.window_expr, depth);
                self.push(&window.input, depth);
            }
            LogicalPlan::Aggregate(aggregate) => {
                self.exprs(&aggregate.group_expr, depth);
                self.exprs(&aggregate.aggr_expr, depth);
                self.push(&aggregate.input, depth);
            }
            LogicalPlan::Sort(sort) => {
                self.sorts(&sort.expr, depth);
                self.push(&sort.input, depth);
            }
            LogicalPlan::Join(join) => {
                for (left, right) in &join.on {
                    self.exprs([left, right], depth);
                }
                self.exprs(&join.filter, depth);
                self.push(&join.left, depth);
                self.push(&join.right, depth);
            }
            LogicalPlan::Repartition(repartition) => {
                match &repartition.partitioning_scheme {
                    Partitioning::RoundRobinBatch(_) => {}
                    Partitioning::Hash(exprs, _) | Partitioning::DistributeBy(exprs) => self.exprs(exprs, depth),
                }
                self.push(&repartition.input, depth);
            }
            LogicalPlan::Union(union) => union.inputs.iter().for_each(|input| self.push(input, depth)),
            LogicalPlan::TableScan(scan) => {
                self.exprs(&scan.filters, depth);
                return source(scan);
            }
            LogicalPlan::EmptyRelation(_) | LogicalPlan::DescribeTable(_) => {}
            LogicalPlan::Subquery(subquery) => self.subquery(subquery, depth),
            LogicalPlan::SubqueryAlias(alias) => self.push(&alias.input, depth),
            LogicalPlan::Limit(limit) => {
                self.exprs(limit.skip.as_deref(), depth);
                self.exprs(limit.fetch.as_deref(), depth);
                self.push(&limit.input, depth);
            }
            LogicalPlan::Values(values) => values.values.iter().for_each(|row| self.exprs(row, depth)),
            LogicalPlan::Explain(explain) => self.push(&explain.plan, depth),
            LogicalPlan::Analyze(analyze) => self.push(&analyze.input, depth),
            LogicalPlan::Distinct(Distinct::All(input)) => self.push(input, depth),
            LogicalPlan::Distinct(Distinct::On(on)) => {
                self.exprs(&on.on_expr, depth);
                self.exprs(&on.select_expr, depth);
                self.sorts(on.sort_expr.iter().flatten(), depth);
                self.push(&on.input, depth);
            }
            LogicalPlan::Unnest(unnest) => self.push(&unnest.input, depth),
            LogicalPlan::RecursiveQuery(query) => {
                self.push(&query.static_term, depth);
                self.push(&query.recursive_term, depth);
            }
            LogicalPlan::Extension(extension) => {
                return match WriteStatement::from_plan(plan) {
                    Some(change) => self.rights.refuse(change.label(), NESTED),
                    None => Err(EngineError::NotAllowed {
                        what: format!("the operator {}", extension.node.name()),
                        why: String::new(),
                    }),
                };
            }
            LogicalPlan::Statement(statement) => return self.rights.statement(statement),
            LogicalPlan::Dml(dml) => return self.rights.dml(&dml.op),
            LogicalPlan::Ddl(ddl) => return self.rights.ddl(ddl),
            LogicalPlan::Copy(_) => {
                return self.rights.refuse("COPY", "query the rows and write them where you are");
            }
        }
        Ok(())
    }
}

/// Checks the source of a scan. A table may be read if it was resolved for the principal, or if it holds nobody's data.
/// Views are expanded while planning; one that is left has a plan of its own that was perhaps never checked, and is refused.
fn source(scan: &TableScan) -> Result<()> {
    if CatalogTable::is_behind(&scan.source) {
        return Ok(());
    }
    let provider = source_as_provider(&scan.source)?;
    // The plan of what is materialized was authorised before `kql_host` gave it to the planner.
    if provider.is::<Materialized>() || provider.is::<CteWorkTable>() || provider.is::<GenerateSeriesTable>() {
        return Ok(());
    }
    Err(EngineError::NotAllowed { what: format!("reading `{}`", scan.table_name), why: String::new() })
}

/// What is below an expression, in the plan at `plan_depth`.
struct Below<'w, 'a, 'p> {
    walk: &'w mut PlanWalk<'a, 'p>,
    plan_depth: usize,
    depth: usize,
}

impl<'p> Below<'_, '_, 'p> {
    fn push(&mut self, exprs: impl IntoIterator<Item = &'p Expr>) {
        let (plan_depth, depth) = (self.plan_depth, self.depth + 1);
        self.walk.pending.extend(exprs.into_iter().map(|expr| PendingNode::Expr { expr, plan_depth, depth }));
    }

    fn sorts(&mut self, sorts: &'p [Sort]) {
        self.push(sorts.iter().map(|sort| &sort.expr));
    }

    fn subquery(&mut self, subquery: &'p Subquery) {
        self.walk.subquery(subquery, self.plan_depth + 1);
    }

    /// Checks one expression and pushes what is below it.
    fn expr(&mut self, expr: &'p Expr) -> Result<()> {
        match expr {
            Expr::Column(_) | Expr::OuterReferenceColumn(_, _) | Expr::Literal(_, _) | Expr::LambdaVariable(_) => {}
            Expr::Alias(alias) => self.push([alias.expr.as_ref()]),
            Expr::BinaryExpr(binary) => self.push([binary.left.as_ref(), binary.right.as_ref()]),
            Expr::Like(like) | Expr::SimilarTo(like) => self.push([like.expr.as_ref(), like.pattern.as_ref()]),
            Expr::Not(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::Negative(inner) => self.push([inner.as_ref()]),
            Expr::Between(between) => {
                self.push([between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()]);
            }
            Expr::Case(case) => {
                self.push(case.expr.as_deref());
                self.push(case.when_then_expr.iter().flat_map(|(when, then)| [when.as_ref(), then.as_ref()]));
                self.push(case.else_expr.as_deref());
            }
            Expr::Cast(cast) => self.push([cast.expr.as_ref()]),
            Expr::TryCast(cast) => self.push([cast.expr.as_ref()]),
            Expr::ScalarFunction(call) => {
                let is_allowed = ALLOWED.scalar.contains(call.name()) || is_kql_function(&call.func);
                allowed(is_allowed, call.name())?;
                self.push(&call.args);
            }
            Expr::HigherOrderFunction(call) => {
                allowed(ALLOWED.higher_order.contains(call.name()), call.name())?;
                self.push(&call.args);
            }
            Expr::Lambda(lambda) => self.push([lambda.body.as_ref()]),
            Expr::AggregateFunction(call) => self.aggregate(call)?,
            Expr::WindowFunction(call) => self.window(call)?,
            Expr::InList(list) => {
                self.push([list.expr.as_ref()]);
                self.push(&list.list);
            }
            Expr::Exists(exists) => self.subquery(&exists.subquery),
            Expr::InSubquery(query) => {
                self.push([query.expr.as_ref()]);
                self.subquery(&query.subquery);
            }
            Expr::SetComparison(comparison) => {
                self.push([comparison.expr.as_ref()]);
                self.subquery(&comparison.subquery);
            }
            Expr::ScalarSubquery(subquery) => self.subquery(subquery),
            Expr::GroupingSet(GroupingSet::Rollup(exprs) | GroupingSet::Cube(exprs)) => self.push(exprs),
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => self.push(sets.iter().flatten()),
            Expr::Unnest(unnest) => self.push([unnest.expr.as_ref()]),
            Expr::ScalarVariable(_, names) => {
                return Err(EngineError::NotAllowed {
                    what: format!("the variable {}", names.join(".")),
                    why: ": there are none".into(),
                });
            }
            Expr::Placeholder(_) if self.walk.rights.parameters == OpenParameters::Described => {}
            Expr::Placeholder(placeholder) => {
                let id = &placeholder.id;
                let message = format!("parameter `{id}` has no value; bind one, or write it in its place");
                return Err(EngineError::Plan { message });
            }
            #[expect(deprecated, reason = "an exhaustive match names it")]
            Expr::Wildcard { .. } => {
                let message = "`*` stands where one value is expected; name the columns";
                return Err(EngineError::Plan { message: message.into() });
            }
        }
        Ok(())
    }

    fn aggregate(&mut self, call: &'p AggregateFunction) -> Result<()> {
        let is_allowed = ALLOWED.aggregate.contains(call.func.name())
            || is_kql_aggregate(&call.func)
            || graph::is_graph_aggregate(&call.func);
        allowed(is_allowed, call.func.name())?;
        let AggregateFunctionParams { args, distinct: _, filter, order_by, null_treatment: _ } = &call.params;
        self.push(args);
        self.push(filter.as_deref());
        self.sorts(order_by);
        Ok(())
    }

    fn window(&mut self, call: &'p WindowFunction) -> Result<()> {
        match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                allowed(ALLOWED.aggregate.contains(function.name()), function.name())?;
            }
            WindowFunctionDefinition::WindowUDF(function) => {
                let is_allowed = ALLOWED.window.contains(function.name()) || is_kql_window_function(function);
                allowed(is_allowed, function.name())?;
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
        self.push(args);
        self.push(partition_by);
        self.push(filter.as_deref());
        self.sorts(order_by);
        Ok(())
    }
}

fn allowed(is_listed: bool, function: &str) -> Result<()> {
    if is_listed {
        return Ok(());
    }
    Err(EngineError::NotAllowed { what: format!("the function `{function}`"), why: String::new() })
}
