//! Parts of a SELECT that stand for columns of its tables: `COLUMNS(...)`, `* RENAME`, `ORDER BY ALL`, and aliases where the
//! standard knows columns only. The FROM clause is planned by itself to learn its columns, where a statement has such parts.
//!
//! A column always comes before an alias of the same name, as in DuckDB.

mod chosen_by_lambda;
mod columns;
mod counted_rows;
mod having_aliases;
mod hidden_columns;
mod merged_columns;
mod multisets;
mod outer_merged;
mod partial_aliases;
mod repeated_names;
mod stars;
mod struct_unnests;
mod union_by_name;
mod whole_rows;

use std::collections::HashSet;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Distinct, Expr, Function, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, OrderByExpr,
    OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
    TableWithJoins, Visit, VisitMut, Visitor, VisitorMut, With,
};

use super::column_folding::plan_expanded;
use super::shorthand::{number, query_of, select_star, taken};
use super::syntax::{any_expr, count_nodes, visit_outermost_queries, visit_own_exprs};
use super::volatile_queries::refuse_volatile;
use crate::error::EngineError;
use crate::identifiers::same_name;
use chosen_by_lambda::choose_by_lambda;
use columns::{Chosen, columns_call, is_columns};
use having_aliases::name_aggregates_in_having;
use hidden_columns::{rename_subquery_columns, sort_by_hidden, write_out_distinct};
use merged_columns::{MergedFrom, columns_of_star, merge_columns, name_sides_in_where};
use multisets::numbered;
use outer_merged::name_sides_in_subqueries;
use partial_aliases::name_all_columns;
use repeated_names::number_repeated;
use stars::{changes_columns, has_star, names_struct, write_out_stars};
use struct_unnests::write_out_struct_unnests;
use whole_rows::write_out_rows;

pub(super) use columns::chosen_columns;

/// The most nodes of an expression once aliases are written out in it: each use of one can double it.
const MAX_NODES: usize = 5_000;

/// Writes out what stands for columns. Errors: those of planning the tables, `sql_plan_error`.
pub(super) fn expand_columns<S: ContextProvider>(scope: &S, statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => {
            let makes_columns = matches!(**statement, ast::Statement::CreateTable(_) | ast::Statement::CreateView(_));
            let mut expander = Expander { scope, withs: Vec::new(), depth: usize::from(makes_columns), subqueries: 0 };
            expander.queries_in(statement.as_mut())
        }
        Statement::Explain(explain) => expand_columns(scope, &mut explain.statement),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

struct Expander<'a, S> {
    scope: &'a S,
    /// The WITH clauses in force, innermost last.
    withs: Vec<With>,
    /// Within how many relations the query is whose columns have to have names of their own.
    depth: usize,
    /// Within how many subqueries of expressions it is.
    subqueries: usize,
}

/// A column of a FROM clause as it is written in expressions.
struct Source {
    name: String,
    expr: Expr,
    table: Option<String>,
    /// The names of its fields, where it is a struct.
    fields: Vec<String>,
}

/// Which columns of a FROM clause are written with their table.
#[derive(Clone, Copy)]
enum Qualified {
    Always,
    /// Those of a name that another one has too.
    WhereTwice,
}

/// Returns the names of a struct's fields.
fn struct_fields(data_type: &DataType) -> Vec<String> {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| field.name().clone()).collect(),
        _ => Vec::new(),
    }
}

impl<S: ContextProvider> Expander<'_, S> {
    /// Expands the outermost queries of a part of a statement.
    fn queries_in(&mut self, part: &mut impl VisitMut) -> Result<()> {
        let visited = visit_outermost_queries(part, |query| match self.query(query) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        });
        visited.break_value().map_or(Ok(()), Err)
    }

    /// Expands a query that is a relation of another one.
    fn inner_query(&mut self, query: &mut Query) -> Result<()> {
        self.depth += 1;
        let expanded = self.query(query);
        self.depth -= 1;
        expanded
    }

    fn query(&mut self, query: &mut Query) -> Result<()> {
        let has_with = query.with.is_some();
        if let Some(with) = &mut query.with {
            self.withs.push(With { cte_tables: Vec::new(), ..with.clone() });
            for cte in &mut with.cte_tables {
                self.inner_query(&mut cte.query)?;
                if let Some(known) = self.withs.last_mut() {
                    known.cte_tables.push(cte.clone());
                }
            }
        }
        let merged = self.body(&mut query.body)?;
        if let SetExpr::Select(select) = query.body.as_ref()
            && let Some(order_by) = &mut query.order_by
            && let OrderByKind::Expressions(sorts) = &mut order_by.kind
        {
            // The rows of DISTINCT ON are ordered before anything is chosen.
            let is_chosen_first = matches!(&select.distinct, Some(Distinct::On(_)));
            for sort in sorts {
                // An alias comes before a column there.
                let is_output =
                    !is_chosen_first && matches!(&sort.expr, Expr::Identifier(name) if has_output(select, &name.value));
                if !is_output {
                    write_out_aliases(&mut sort.expr, &merged)?;
                }
            }
        }
        if let SetExpr::Select(select) = query.body.as_ref()
            && let Some(order_by) = &mut query.order_by
            && let OrderByKind::Expressions(sorts) = &mut order_by.kind
            && sorts.iter().any(|sort| has_columns(&sort.expr))
        {
            let sources = self.sources(&select.from)?;
            choose_by_lambda(self.scope, sorts, &source_names(&sources))?;
            let mut all = Vec::new();
            for sort in sorts.drain(..) {
                match has_columns(&sort.expr) {
                    true => all.extend(
                        expanded(&sort.expr, &sources)?
                            .into_iter()
                            .map(|(expr, _)| OrderByExpr { expr, ..sort.clone() }),
                    ),
                    false => all.push(sort),
                }
            }
            *sorts = all;
        }
        self.order_by_all(query)?;
        write_out_distinct(query);
        sort_by_hidden(self, query);
        if has_with {
            self.withs.pop();
        }
        Ok(())
    }

    /// `ORDER BY ALL` is by every column of the result, from the left.
    fn order_by_all(&mut self, query: &mut Query) -> Result<()> {
        let options = match &query.order_by {
            Some(ast::OrderBy { kind: OrderByKind::All(options), .. }) => OrderByOptions { ..*options },
            _ => return Ok(()),
        };
        let plan = self.planned(query_of(query.body.as_ref().clone()))?;
        let by_position = (1..=plan.schema().fields().len()).map(|position| OrderByExpr {
            expr: number(&position.to_string()),
            options,
            with_fill: None,
        });
        if let Some(order_by) = &mut query.order_by {
            order_by.kind = OrderByKind::Expressions(by_position.collect());
        }
        Ok(())
    }

    /// Expands a query's body, and returns the columns of its FROM clause that joins made of two.
    fn body(&mut self, body: &mut SetExpr) -> Result<Vec<(String, Expr)>> {
        match body {
            SetExpr::Select(select) => return self.select(select),
            SetExpr::Query(query) => self.query(query)?,
            SetExpr::SetOperation { set_quantifier: by, .. } if Self::is_by_name(by) => drop(self.by_name(body)?),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                self.body(left)?;
                self.body(right)?;
                if let (SetOperator::Except | SetOperator::Intersect, SetQuantifier::All) = (&*op, &*set_quantifier) {
                    let plan = self.planned(query_of(left.as_ref().clone()))?;
                    let names: Vec<String> = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
                    let numbered = numbered(*op, left.as_ref().clone(), right.as_ref().clone(), &names);
                    *body = numbered.map_err(DataFusionError::from)?;
                }
            }
            SetExpr::Values(_)
            | SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_)
            | SetExpr::Table(_) => {}
        }
        Ok(Vec::new())
    }

    fn select(&mut self, select: &mut Select) -> Result<Vec<(String, Expr)>> {
        self.queries_of_select(select)?;
        self.own_columns(select, self.depth > 0)
    }

    /// Expands subqueries, in FROM and in expressions; those of our own relations choose their columns themselves.
    fn queries_of_select(&mut self, select: &mut Select) -> Result<()> {
        for tables in &mut select.from {
            self.relation(&mut tables.relation)?;
            for join in &mut tables.joins {
                self.relation(&mut join.relation)?;
            }
        }
        let from = std::mem::take(&mut select.from);
        self.subqueries += 1;
        let inside = self.queries_in(select);
        self.subqueries -= 1;
        let _: ControlFlow<()> = visit_outermost_queries(select, |query| {
            rename_subquery_columns(query);
            ControlFlow::Continue(())
        });
        select.from = from;
        inside
    }

    /// Expands what a SELECT says itself; its relations and subqueries were expanded before. `is_inner` as in [`number_repeated`].
    fn own_columns(&self, select: &mut Select, is_inner: bool) -> Result<Vec<(String, Expr)>> {
        let merged = self.written_out(select)?;
        number_repeated(self, select, is_inner)?;
        Ok(merged)
    }

    fn written_out(&self, select: &mut Select) -> Result<Vec<(String, Expr)>> {
        write_out_rows(self, select)?;
        write_out_struct_unnests(self, select);
        let merged = merge_columns(self, &mut select.from)?;
        let in_order = match merged {
            None if has_star(select) => columns_of_star(self, &select.from),
            _ => None,
        };
        if merged.is_some() || in_order.is_some() || needs_columns(select) || names_struct(select) {
            let writes_stars = in_order.is_some();
            let (sources, merged) = match (merged, in_order) {
                (Some(MergedFrom { sources, merged }), _) => (sources, merged),
                (None, Some(sources)) => (sources, Vec::new()),
                (None, None) => (self.sources(&select.from)?, Vec::new()),
            };
            let from = std::mem::take(&mut select.from);
            let chosen = choose_by_lambda(self.scope, select, &source_names(&sources));
            select.from = from;
            chosen?;
            let writes_stars = writes_stars || !merged.is_empty();
            write_out_stars(select, &sources, writes_stars)?;
            write_out_conditions(select, &sources)?;
            write_out_merged(select, &merged)?;
            name_sides_in_subqueries(self, select, &merged);
            self.aliases(select)?;
            name_sides_in_where(self, select)?;
            return Ok(merged);
        }
        self.aliases(select)?;
        name_sides_in_where(self, select)?;
        Ok(Vec::new())
    }

    fn relation(&mut self, relation: &mut TableFactor) -> Result<()> {
        match relation {
            TableFactor::Derived { subquery, .. } => {
                self.inner_query(subquery)?;
                name_all_columns(self, relation);
                Ok(())
            }
            TableFactor::Table { args: None, alias: Some(_), .. } => {
                name_all_columns(self, relation);
                Ok(())
            }
            // As a query, whose names come once.
            TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } => {
                let joined = select_star(vec![table_with_joins.as_ref().clone()]);
                let subquery = Box::new(query_of(SetExpr::Select(Box::new(joined))));
                let alias = Some(alias.clone());
                *relation = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
                self.relation(relation)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.relation(&mut table_with_joins.relation)?;
                table_with_joins.joins.iter_mut().try_for_each(|join| self.relation(&mut join.relation))
            }
            TableFactor::Pivot { table, .. } | TableFactor::Unpivot { table, .. } => self.relation(table),
            TableFactor::Table { args: Some(args), .. } => {
                // The first two may be relations: see `marks`.
                for argument in args.args.iter_mut().take(2) {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) = argument
                        && matches!(query.body.as_ref(), SetExpr::Select(select) if !select.from.is_empty())
                    {
                        self.query(query)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the columns of a FROM clause.
    fn sources(&self, from: &[TableWithJoins]) -> Result<Vec<Source>> {
        self.listed(from, Qualified::WhereTwice)
    }

    fn listed(&self, from: &[TableWithJoins], qualified: Qualified) -> Result<Vec<Source>> {
        if from.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = select_star(from.to_vec());
        self.own_columns(&mut all, false)?;
        let plan = self.planned(query_of(SetExpr::Select(Box::new(all))))?;
        let columns = plan.schema().iter().map(|(table, field)| {
            let ident = Ident::with_quote('"', field.name());
            let needs_table = match qualified {
                Qualified::Always => true,
                Qualified::WhereTwice => {
                    plan.schema().fields().iter().filter(|other| other.name() == field.name()).count() > 1
                }
            };
            let table = table.map(|table| table.table().to_owned());
            let expr = match &table {
                Some(table) if needs_table => Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), ident]),
                _ => Expr::Identifier(ident),
            };
            Source { name: field.name().clone(), expr, table, fields: struct_fields(field.data_type()) }
        });
        Ok(columns.collect())
    }

    /// Plans a query that was expanded before, as the WITH queries were: to expand them once more for each query that
    /// names them takes time that doubles with each.
    fn planned(&self, mut query: Query) -> Result<LogicalPlan> {
        write_out_distinct(&mut query);
        let mut joined: Option<With> = None;
        for with in &self.withs {
            let all = joined.get_or_insert_with(|| With { cte_tables: Vec::new(), ..with.clone() });
            all.recursive |= with.recursive;
            for cte in &with.cte_tables {
                // The innermost of two with one name is the one that is seen.
                all.cte_tables.retain(|known| !same_name(&known.alias.name.value, &cte.alias.name.value));
                all.cte_tables.push(cte.clone());
            }
        }
        let query = Query { with: joined.filter(|with| !with.cte_tables.is_empty()), ..query };
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        plan_expanded(self.scope, statement, &[])
    }

    /// Writes out aliases in WHERE, in HAVING and in the select list behind them.
    fn aliases(&self, select: &mut Select) -> Result<()> {
        name_aggregates_in_having(select);
        let mut aliases: HashSet<String> = HashSet::new();
        let mut used = false;
        for item in &select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
            used |= !aliases.is_empty() && names_any(expr, |name| aliases.contains(&name.to_lowercase()));
            if let SelectItem::ExprWithAlias { expr, alias } = item
                && !matches!(expr, Expr::Identifier(own) if same_name(&own.value, &alias.value))
                && alias.quote_style != Some('\'')
            {
                aliases.insert(alias.value.to_lowercase());
            }
        }
        let is_alias = |name: &str| aliases.contains(&name.to_lowercase());
        used |= select.selection.as_ref().is_some_and(|condition| names_any(condition, is_alias));
        if !used {
            return Ok(());
        }
        // Where the tables cannot be planned by themselves (LATERAL ones), aliases are what the standard says.
        let Ok(sources) = self.sources(&select.from) else { return Ok(()) };
        let is_column = |name: &str| sources.iter().any(|source| same_name(&source.name, name));
        let mut known: Vec<(String, Expr)> = Vec::new();
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
            refuse_volatile(expr, &known)?;
            write_out_aliases(expr, &known)?;
            if let SelectItem::ExprWithAlias { expr, alias } = item
                && !is_column(&alias.value)
            {
                known.push((alias.value.clone(), expr.clone()));
            }
        }
        if let Some(condition) = &mut select.selection {
            refuse_volatile(condition, &known)?;
            write_out_aliases(condition, &known)?;
        }
        Ok(())
    }
}

fn source_names(sources: &[Source]) -> Vec<String> {
    sources.iter().map(|source| source.name.clone()).collect()
}

fn needs_columns(select: &Select) -> bool {
    let in_items = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_columns(expr),
        SelectItem::ExprWithAliases { .. } => false,
        SelectItem::QualifiedWildcard(_, options) | SelectItem::Wildcard(options) => changes_columns(options),
    });
    let in_groups = match &select.group_by {
        GroupByExpr::All(_) => false,
        GroupByExpr::Expressions(exprs, _) => exprs.iter().any(has_columns),
    };
    let conditions = [&select.selection, &select.having, &select.qualify];
    in_items || in_groups || conditions.into_iter().flatten().any(has_columns)
}

/// Returns whether an expression has a call of `COLUMNS` outside of its subqueries.
fn has_columns(expr: &Expr) -> bool {
    calls(expr).is_some()
}

/// Returns the first call of `COLUMNS` in an expression, outside of its subqueries.
fn calls(expr: &Expr) -> Option<Function> {
    struct ColumnsCallFinder(usize);
    impl Visitor for ColumnsCallFinder {
        // In a box: every level of a visit has room for what it breaks off with, some hundred times.
        type Break = Box<Function>;
        fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<Self::Break> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<Self::Break> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
            match expr {
                Expr::Function(call) if self.0 == 0 && is_columns(call) => ControlFlow::Break(Box::new(call.clone())),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut ColumnsCallFinder(0)).break_value().map(|call| *call)
}

/// Returns an expression once for each column that its `COLUMNS(...)` chooses.
fn expanded(expr: &Expr, sources: &[Source]) -> Result<Vec<(Expr, Chosen)>> {
    let Some(call) = calls(expr) else { return Ok(Vec::new()) };
    let names = source_names(sources);
    let tables: Vec<Option<String>> = sources.iter().map(|source| source.table.clone()).collect();
    let text = call.to_string();
    let mut all = Vec::new();
    for chosen in columns_call(&call, &names, Some(&tables))? {
        let Some(source) = sources.get(chosen.index) else { continue };
        let mut one = expr.clone();
        let mut replacer = Replacer { text: &text, column: &source.expr };
        let _: ControlFlow<()> = VisitMut::visit(&mut one, &mut replacer);
        if has_columns(&one) {
            let message = "all COLUMNS of one expression have to choose the same columns".into();
            return Err(EngineError::Plan { message }.into());
        }
        all.push((one, chosen));
    }
    Ok(all)
}

struct Replacer<'a> {
    text: &'a str,
    column: &'a Expr,
}

impl VisitorMut for Replacer<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && is_columns(function)
            && function.to_string() == self.text
        {
            *expr = self.column.clone();
        }
        ControlFlow::Continue(())
    }
}

/// Puts what joins made of two columns in the places of its name.
fn write_out_merged(select: &mut Select, merged: &[(String, Expr)]) -> Result<()> {
    if merged.is_empty() {
        return Ok(());
    }
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if !names_any(expr, |name| merged.iter().any(|(known, _)| same_name(known, name))) {
            continue;
        }
        let name = match &*expr {
            Expr::Identifier(ident) => ident.value.clone(),
            other => other.to_string(),
        };
        write_out_aliases(expr, merged)?;
        if let SelectItem::UnnamedExpr(expr) = item {
            let expr = taken(expr);
            *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
        }
    }
    let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
    let groups = match &mut select.group_by {
        GroupByExpr::Expressions(exprs, _) => exprs.as_mut_slice(),
        GroupByExpr::All(_) => &mut [],
    };
    let firsts = match &mut select.distinct {
        Some(Distinct::On(exprs)) => exprs.as_mut_slice(),
        _ => &mut [],
    };
    let parts = conditions.into_iter().flatten().chain(groups).chain(firsts);
    parts.into_iter().try_for_each(|part| write_out_aliases(part, merged))
}

/// Returns whether a select list has a column of that name.
fn has_output(select: &Select, name: &str) -> bool {
    select.projection.iter().any(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => same_name(&alias.value, name),
        _ => false,
    })
}

/// A condition on `COLUMNS(...)` holds for all of them; GROUP BY is by each.
fn write_out_conditions(select: &mut Select, sources: &[Source]) -> Result<()> {
    for condition in [&mut select.selection, &mut select.having, &mut select.qualify].into_iter().flatten() {
        if !has_columns(condition) {
            continue;
        }
        let parts = expanded(condition, sources)?.into_iter().map(|(expr, _)| Expr::Nested(Box::new(expr)));
        let all = parts.reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        });
        if let Some(all) = all {
            *condition = all;
        }
    }
    if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
        let mut all = Vec::new();
        for expr in exprs.drain(..) {
            match has_columns(&expr) {
                true => all.extend(expanded(&expr, sources)?.into_iter().map(|(expr, _)| expr)),
                false => all.push(expr),
            }
        }
        *exprs = all;
    }
    Ok(())
}

pub(super) fn names_any(expr: &Expr, is_alias: impl Fn(&str) -> bool) -> bool {
    any_expr(expr, |part| matches!(part, Expr::Identifier(ident) if is_alias(&ident.value)))
}

fn write_out_aliases(expr: &mut Expr, known: &[(String, Expr)]) -> Result<()> {
    let mut nodes = 0;
    let written = visit_own_exprs(expr, |part| {
        nodes += 1;
        if let Expr::Identifier(ident) = part
            && let Some((_, meaning)) = known.iter().rev().find(|(name, _)| same_name(name, &ident.value))
        {
            nodes += count_nodes(std::slice::from_ref(meaning));
            if nodes > MAX_NODES {
                return ControlFlow::Break(());
            }
            *part = Expr::Nested(Box::new(meaning.clone()));
        }
        ControlFlow::Continue(())
    });
    match written {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(EngineError::too_deep().into()),
    }
}
