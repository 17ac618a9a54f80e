//! Columns without regard to case, scope by scope. DataFusion looks in the outer query for every name that the inner one
//! does not have as it is spelled, so that `Id` would be an outer table's column `Id` although the subquery's own table
//! has `id`. Here the subquery's tables come first, whatever the case.
//!
//! Each FROM clause is planned by itself to learn its columns: where planning missed a column, and where a plan took a
//! name from an outer query that other tables of the statement have too. A name that stays ambiguous is then refused.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan};
use datafusion::sql::TableReference;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, JoinConstraint, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, Value,
    VisitMut, VisitorMut, With,
};

use super::json_tables::named_value;
use super::parse::parse_statement;
use super::predicate_subqueries::{VALUE, is_of_values};
use super::syntax::{join_constraint, relation_name, relations_of};
use crate::error::EngineError;
use crate::identifiers::same_name;

/// The names that are checked.
pub(super) enum Doubt {
    /// These, in lower case. An ambiguous name is an error.
    About(BTreeSet<String>),
    /// All, after planning failed for want of a column. An ambiguous name stays as it is.
    Any,
}

/// Returns the names, in lower case, that the plan took from an outer query and that more than one table has.
pub(super) fn doubtful(plan: &LogicalPlan) -> Result<Doubt> {
    let mut outer = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let PlannedExpr::OuterReferenceColumn(_, column) = part {
                    outer.insert(column.name.to_lowercase());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let mut owners: BTreeMap<String, BTreeSet<(Option<String>, String)>> = BTreeMap::new();
    if !outer.is_empty() {
        plan.apply_with_subqueries(|node| {
            for (table, field) in node.schema().iter() {
                let name = field.name().to_lowercase();
                if outer.contains(&name) {
                    let owner = (table.map(ToString::to_string), field.name().clone());
                    owners.entry(name).or_default().insert(owner);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(Doubt::About(owners.into_iter().filter(|(_, owners)| owners.len() > 1).map(|(name, _)| name).collect()))
}

impl Doubt {
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Doubt::About(names) if names.is_empty())
    }

    fn covers(&self, name: &str) -> bool {
        match self {
            Doubt::About(names) => names.contains(&name.to_lowercase()),
            Doubt::Any => true,
        }
    }
}

/// Spells columns as the innermost tables that have them do, and returns whether anything changed.
pub(super) fn rebind<S: ContextProvider>(context: &S, statement: &mut Statement, doubt: &Doubt) -> Result<bool> {
    match statement {
        Statement::Statement(statement) => {
            let mut rebinder =
                Rebinder { context, doubt, withs: Vec::new(), scopes: Vec::new(), lambdas: Vec::new(), changed: false };
            rebinder.expressions(statement.as_mut(), &[])?;
            Ok(rebinder.changed)
        }
        Statement::Explain(explain) => rebind(context, &mut explain.statement, doubt),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(false),
    }
}

/// What the names of one SELECT can mean.
enum ColumnScope {
    /// The outermost of a statement that plans.
    Outermost,
    Known {
        columns: Vec<(Option<TableReference>, String)>,
        /// Tables whose name stands for the value of a column, with that column.
        values: Vec<(String, String)>,
    },
    /// Its FROM clause cannot be planned by itself; these are its tables.
    Unknown(Vec<String>),
}

enum ColumnLookup {
    Nothing,
    AsWritten,
    Spelled { table: Option<String>, name: String },
    Several,
}

impl ColumnScope {
    fn find(&self, table: Option<&str>, name: &str) -> ColumnLookup {
        match self {
            ColumnScope::Outermost => ColumnLookup::Nothing,
            ColumnScope::Known { columns, values: _ } => find(columns, table, name),
            ColumnScope::Unknown(tables) => match table {
                Some(table) if tables.iter().any(|known| known == table) => ColumnLookup::AsWritten,
                Some(table) if !tables.iter().any(|known| same_name(known, table)) => ColumnLookup::Nothing,
                _ => ColumnLookup::Several,
            },
        }
    }
}

fn find(columns: &[(Option<TableReference>, String)], table: Option<&str>, name: &str) -> ColumnLookup {
    let mut exact = 0;
    let mut folded = BTreeSet::new();
    for (owner, column) in columns {
        let owner = owner.as_ref().map(TableReference::table);
        let is_owner = match (table, owner) {
            (None, _) => true,
            (Some(table), Some(owner)) => same_name(table, owner),
            (Some(_), None) => false,
        };
        if !is_owner || !same_name(column, name) {
            continue;
        }
        let spelled = (table.and(owner), column.as_str());
        exact += usize::from(spelled == (table, name));
        folded.insert(spelled);
    }
    match (exact, folded.len(), folded.pop_first()) {
        (1, ..) => ColumnLookup::AsWritten,
        (0, 1, Some((table, name))) => ColumnLookup::Spelled { table: table.map(str::to_owned), name: name.to_owned() },
        (0, 0, _) => ColumnLookup::Nothing,
        _ => ColumnLookup::Several,
    }
}

struct Rebinder<'a, S> {
    context: &'a S,
    doubt: &'a Doubt,
    /// The WITH clauses in force, innermost last.
    withs: Vec<With>,
    scopes: Vec<ColumnScope>,
    lambdas: Vec<Vec<String>>,
    changed: bool,
}

impl<S: ContextProvider> Rebinder<'_, S> {
    /// Corrects the expressions of `part` and its subqueries. Columns of the result that are called `aliases` stay.
    fn expressions(&mut self, part: &mut impl VisitMut, aliases: &[String]) -> Result<()> {
        match part.visit(&mut Expressions { rebinder: self, aliases, depth: 0 }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn query(&mut self, query: &mut Query) -> Result<()> {
        let has_with = query.with.is_some();
        if let Some(with) = &mut query.with {
            self.withs.push(With { cte_tables: Vec::new(), ..with.clone() });
            for cte in &mut with.cte_tables {
                self.query(&mut cte.query)?;
                if let Some(known) = self.withs.last_mut() {
                    known.cte_tables.push(cte.clone());
                }
            }
        }
        match query.body.as_mut() {
            SetExpr::Select(select) => {
                let aliases = self.enter(select)?;
                self.expressions(&mut query.order_by, &aliases)?;
                self.expressions(&mut query.limit_clause, &aliases)?;
                self.scopes.pop();
            }
            other => self.set_expr(other)?,
        }
        if has_with {
            self.withs.pop();
        }
        Ok(())
    }

    fn set_expr(&mut self, body: &mut SetExpr) -> Result<()> {
        match body {
            SetExpr::Select(select) => {
                self.enter(select)?;
                self.scopes.pop();
                Ok(())
            }
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                self.set_expr(left)?;
                self.set_expr(right)
            }
            SetExpr::Values(_)
            | SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_)
            | SetExpr::Table(_) => Ok(()),
        }
    }

    /// Corrects a SELECT, leaves its scope in force, and returns the names of its columns.
    fn enter(&mut self, select: &mut Select) -> Result<Vec<String>> {
        let mut from = std::mem::take(&mut select.from);
        self.relations(&mut from)?;
        let scope = self.scope_of(&from);
        self.scopes.push(scope);
        for join in from.iter_mut().flat_map(|from| &mut from.joins) {
            if let Some(JoinConstraint::On(condition)) = join_constraint(&mut join.join_operator) {
                self.expressions(condition, &[])?;
            }
        }
        let mut projection = std::mem::take(&mut select.projection);
        let mut selection = select.selection.take();
        self.expressions(&mut projection, &[])?;
        self.expressions(&mut selection, &[])?;
        let aliases: Vec<String> = projection
            .iter()
            .filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
                _ => None,
            })
            .collect();
        self.expressions(select, &aliases)?;
        select.from = from;
        select.projection = projection;
        select.selection = selection;
        Ok(aliases)
    }

    /// Corrects the subqueries in FROM, which see what is outside of it; LATERAL ones also see the tables before them.
    fn relations(&mut self, from: &mut [TableWithJoins]) -> Result<()> {
        for index in 0..from.len() {
            let (before, rest) = from.split_at_mut(index);
            let Some(item) = rest.first_mut() else { break };
            let mut left = TableWithJoins { relation: item.relation.clone(), joins: Vec::new() };
            self.relation(&mut item.relation, before)?;
            for join in &mut item.joins {
                let visible: Vec<TableWithJoins> = before.iter().chain([&left]).cloned().collect();
                self.relation(&mut join.relation, &visible)?;
                left.joins.push(join.clone());
            }
        }
        Ok(())
    }

    fn relation(&mut self, relation: &mut TableFactor, before: &[TableWithJoins]) -> Result<()> {
        match relation {
            TableFactor::Derived { lateral: false, subquery, .. } => self.query(subquery),
            TableFactor::Derived { lateral: true, subquery, .. } => {
                let scope = self.scope_of(before);
                self.scopes.push(scope);
                self.query(subquery)?;
                self.scopes.pop();
                Ok(())
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.relations(std::slice::from_mut(table_with_joins.as_mut()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the columns of a FROM clause, whatever its joins are on. Those of the outermost cannot be mistaken for others.
    fn scope_of(&self, from: &[TableWithJoins]) -> ColumnScope {
        if self.scopes.is_empty() && matches!(self.doubt, Doubt::About(_)) {
            return ColumnScope::Outermost;
        }
        if from.is_empty() {
            return ColumnScope::Known { columns: Vec::new(), values: Vec::new() };
        }
        match self.planned(from.to_vec()) {
            Some(plan) => {
                let columns = plan.schema().iter().map(|(table, field)| (table.cloned(), field.name().clone()));
                let values = relations_of(from).filter_map(named_value);
                let values = values.map(|(table, column)| (table.to_owned(), column.to_owned())).collect();
                ColumnScope::Known { columns: columns.collect(), values }
            }
            // A query that depends on the row around it cannot be planned by itself.
            None if is_of_values(from) => {
                ColumnScope::Known { columns: vec![(None, VALUE.to_owned())], values: Vec::new() }
            }
            None => match relations_of(from).map(named_value).collect::<Option<Vec<_>>>() {
                Some(values) => {
                    let column =
                        |(table, column): &(&str, &str)| (Some(TableReference::bare(*table)), (*column).to_owned());
                    let columns = values.iter().map(column).collect();
                    let values = values.into_iter().map(|(table, column)| (table.to_owned(), column.to_owned()));
                    ColumnScope::Known { columns, values: values.collect() }
                }
                None => ColumnScope::Unknown(relations_of(from).filter_map(relation_name).collect()),
            },
        }
    }

    fn planned(&self, mut from: Vec<TableWithJoins>) -> Option<LogicalPlan> {
        for join in from.iter_mut().flat_map(|from| &mut from.joins) {
            // With USING a column of both tables would show once.
            if let Some(constraint) = join_constraint(&mut join.join_operator) {
                *constraint = JoinConstraint::On(Expr::Value(Value::Boolean(true).into()));
            }
        }
        let Statement::Statement(mut statement) = parse_statement("SELECT *").ok()?.statement else { return None };
        let ast::Statement::Query(query) = statement.as_mut() else { return None };
        let SetExpr::Select(select) = query.body.as_mut() else { return None };
        select.from = from;
        query.with = self.with()?;
        SqlToRel::new(self.context).statement_to_plan(Statement::Statement(statement)).ok()
    }

    /// Returns all WITH clauses in force as one; `None` where an inner one hides a name of an outer one.
    fn with(&self) -> Option<Option<With>> {
        let mut all: Option<With> = None;
        let mut names = BTreeSet::new();
        for with in &self.withs {
            let joined = all.get_or_insert_with(|| With { cte_tables: Vec::new(), ..with.clone() });
            joined.recursive |= with.recursive;
            for cte in &with.cte_tables {
                if !names.insert(cte.alias.name.value.to_lowercase()) {
                    return None;
                }
                joined.cte_tables.push(cte.clone());
            }
        }
        Some(all.filter(|with| !with.cte_tables.is_empty()))
    }

    /// Spells a column as the innermost scope that has it does, and returns whether there is none.
    fn bind(&mut self, idents: &mut [Ident], aliases: &[String]) -> Result<bool> {
        let (mut table, name) = match idents {
            [name] => (None, name),
            [table, name] => (Some(table), name),
            _ => return Ok(false),
        };
        let is_own = |names: &[String]| table.is_none() && names.contains(&name.value);
        if !self.doubt.covers(&name.value) || is_own(aliases) || self.lambdas.iter().any(|names| is_own(names)) {
            return Ok(false);
        }
        let alias = aliases.iter().find(|alias| table.is_none() && same_name(alias, &name.value));
        for scope in self.scopes.iter().rev() {
            let written = table.as_ref().map(|table| table.value.as_str());
            match (scope.find(written, &name.value), alias) {
                (ColumnLookup::AsWritten, _) => return Ok(false),
                (_, Some(alias)) => {
                    name.value.clone_from(alias);
                    self.changed = true;
                    return Ok(false);
                }
                (ColumnLookup::Nothing, None) => {}
                (ColumnLookup::Spelled { table: spelled, name: column }, None) => {
                    if let (Some(table), Some(spelled)) = (&mut table, spelled) {
                        table.value = spelled;
                    }
                    name.value = column;
                    self.changed = true;
                    return Ok(false);
                }
                (ColumnLookup::Several, None) if matches!(self.doubt, Doubt::Any) => return Ok(false),
                (ColumnLookup::Several, None) => {
                    let message = format!(
                        "column `{}` of a subquery could be one of several tables; write it with its table's name, \
                         both as they are spelled there",
                        name.value
                    );
                    return Err(EngineError::Plan { message }.into());
                }
            }
        }
        Ok(true)
    }

    /// Returns the column for whose value a table's name stands, where no column is called so.
    fn value_of(&mut self, name: &mut Ident, aliases: &[String]) -> Result<Option<Expr>> {
        if !self.bind(std::slice::from_mut(name), aliases)? {
            return Ok(None);
        }
        let values = self.scopes.iter().rev().flat_map(|scope| match scope {
            ColumnScope::Known { values, .. } => values.as_slice(),
            ColumnScope::Outermost | ColumnScope::Unknown(_) => Default::default(),
        });
        let mut named = values.filter(|(table, _)| same_name(table, &name.value));
        let value = named.next().map(|(table, column)| [table, column].map(|part| Ident::with_quote('"', part)));
        self.changed |= value.is_some();
        Ok(value.map(|parts| Expr::CompoundIdentifier(parts.into())))
    }
}

/// Finds the columns of one SELECT's expressions, and hands its subqueries back.
struct Expressions<'r, 'a, S> {
    rebinder: &'r mut Rebinder<'a, S>,
    aliases: &'r [String],
    /// How many subqueries deep the visit is; their insides are not corrected here.
    depth: usize,
}

impl<S: ContextProvider> VisitorMut for Expressions<'_, '_, S> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        if self.depth == 0
            && let Err(error) = self.rebinder.query(query)
        {
            return ControlFlow::Break(error);
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<DataFusionError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let bound = match expr {
            Expr::Identifier(ident) => match self.rebinder.value_of(ident, self.aliases) {
                Ok(Some(value)) => {
                    *expr = value;
                    Ok(())
                }
                other => other.map(|_| ()),
            },
            Expr::CompoundIdentifier(idents) => self.rebinder.bind(idents, self.aliases).map(|_| ()),
            Expr::Lambda(lambda) => {
                let names = lambda.params.iter().map(|param| param.name.value.clone()).collect();
                self.rebinder.lambdas.push(names);
                Ok(())
            }
            _ => Ok(()),
        };
        match bound {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        if self.depth == 0 && matches!(expr, Expr::Lambda(_)) {
            self.rebinder.lambdas.pop();
        }
        ControlFlow::Continue(())
    }
}
