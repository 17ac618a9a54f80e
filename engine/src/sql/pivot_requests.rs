//! PIVOT on whatever values there are. The columns of a statement are known before it runs, so the values are found first,
//! by a query of their own: here it is written, and what it found is put into the statement.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, Cte, Expr, ExprWithAlias, FunctionArg, FunctionArgExpr, Ident, PivotValueSource, Query, SelectItem, SetExpr,
    TableFactor, Visit, Visitor, VisitorMut, With,
};

use super::marks;
use super::parse::{ParsedStatement, parse_statement};
use super::relations::{MAX_PIVOT_COLUMNS, arguments_of, derived, subquery};
use super::shorthand::{plain, query_of_items};
use super::syntax::visit_statement;
use crate::error::Result;
use crate::identifiers::same_name;

/// A value of a pivot's column, and the text that names what it becomes.
pub(crate) type PivotValue = (Expr, String);

/// The source and the column of a pivot whose values are not given, and what is visible to it.
struct OpenPivot {
    source: TableFactor,
    on: Expr,
    /// Where the values are a query's.
    values: Option<Query>,
    with: Vec<Cte>,
    is_recursive: bool,
}

/// Returns the query for the values of the first pivot that has none: two columns, the values and their texts, one row
/// more than a pivot may have. `None`: all have theirs.
pub(crate) fn pivot_query(statement: &Statement) -> Result<Option<ParsedStatement>> {
    let inner = match statement {
        Statement::Statement(inner) => inner,
        Statement::Explain(explain) => return pivot_query(&explain.statement),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => return Ok(None),
    };
    // A view would keep the values of today.
    if matches!(**inner, ast::Statement::CreateView(_)) {
        return Ok(None);
    }
    let mut finder = PivotFinder { levels: Vec::new() };
    match inner.visit(&mut finder) {
        ControlFlow::Break(open) => values_query(*open).map(Some),
        ControlFlow::Continue(()) => Ok(None),
    }
}

/// Gives the first column that is pivoted on and has no values these.
pub(crate) fn give_pivot_values(statement: &mut Statement, values: Vec<PivotValue>) {
    struct Giver(Vec<PivotValue>);
    impl VisitorMut for Giver {
        type Break = ();
        fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
            if parts_of(factor).is_none() {
                return ControlFlow::Continue(());
            }
            let named = std::mem::take(&mut self.0).into_iter();
            match factor {
                TableFactor::Pivot { value_source, .. } => {
                    let named = named.map(|(expr, name)| ExprWithAlias { expr, alias: Some(quoted(name)) });
                    *value_source = PivotValueSource::List(named.collect());
                }
                TableFactor::Table { args: Some(args), .. } => {
                    let Some(at) = open_column(&args.args) else { return ControlFlow::Continue(()) };
                    let given = |name: String| quoted(format!("{}{name}", marks::PIVOT_NAME));
                    let items = named.map(|(expr, name)| SelectItem::ExprWithAlias { expr, alias: given(name) });
                    let items: Vec<SelectItem> = items.collect();
                    // Of no rows there are no values, and a select list has at least one.
                    let values = match items.is_empty() {
                        true => Expr::Value(ast::Value::Null.into()),
                        false => Expr::Subquery(Box::new(query_of_items(items))),
                    };
                    let replaced = usize::from(args.args.get(at + 1).and_then(argument).is_some_and(is_values_query));
                    let values = FunctionArg::Unnamed(FunctionArgExpr::Expr(values));
                    drop(args.args.splice(at + 1..at + 1 + replaced, [values]));
                }
                _ => {}
            }
            ControlFlow::Break(())
        }
    }
    let _: ControlFlow<()> = visit_statement(statement, &mut Giver(values));
}

/// A query on the way down to a pivot, and the queries of WITH that are visible in it.
struct QueryLevel {
    inherited: Vec<Cte>,
    own: Vec<Cte>,
    /// Where those of its own are in the tree.
    places: Vec<*const Query>,
    is_recursive: bool,
}

struct PivotFinder {
    levels: Vec<QueryLevel>,
}

impl Visitor for PivotFinder {
    type Break = Box<OpenPivot>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<OpenPivot>> {
        let (inherited, above) = match self.levels.last() {
            None => (Vec::new(), false),
            Some(level) => {
                // One query of a WITH sees those before it.
                let seen = level.places.iter().position(|place| std::ptr::eq(*place, query));
                let own = level.own.iter().take(seen.unwrap_or(level.own.len()));
                (level.inherited.iter().chain(own).cloned().collect(), level.is_recursive)
            }
        };
        let (own, places, is_recursive) = match &query.with {
            None => (Vec::new(), Vec::new(), false),
            Some(With { with_token: _, recursive, cte_tables }) => {
                let places = cte_tables.iter().map(|cte| std::ptr::from_ref(cte.query.as_ref())).collect();
                (cte_tables.clone(), places, *recursive)
            }
        };
        self.levels.push(QueryLevel { inherited, own, places, is_recursive: is_recursive || above });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Box<OpenPivot>> {
        self.levels.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Box<OpenPivot>> {
        let Some((source, on, values)) = parts_of(factor) else { return ControlFlow::Continue(()) };
        let level = self.levels.last();
        let visible = level.map(|level| level.inherited.iter().chain(&level.own).cloned().collect::<Vec<_>>());
        // Of two of one name, the inner one is meant.
        let mut with: Vec<Cte> = Vec::new();
        for cte in visible.unwrap_or_default() {
            with.retain(|outer| !same_name(&outer.alias.name.value, &cte.alias.name.value));
            with.push(cte);
        }
        let is_recursive = level.is_some_and(|level| level.is_recursive);
        ControlFlow::Break(Box::new(OpenPivot { source, on, values, with, is_recursive }))
    }
}

/// Returns the source, the column and the values' query of a pivot that has no values.
fn parts_of(factor: &TableFactor) -> Option<(TableFactor, Expr, Option<Query>)> {
    match factor {
        TableFactor::Table { name, args: Some(args), .. } if name.to_string() == marks::PIVOT => {
            let at = open_column(&args.args)?;
            let source = args.args.first().and_then(argument).and_then(subquery)?;
            let on = args.args.get(at).and_then(argument).and_then(|on| arguments_of(on, marks::PIVOT_ON))?;
            let values = args.args.get(at + 1).and_then(argument).filter(|values| is_values_query(values));
            let values = values.and_then(subquery).cloned();
            Some((derived(source.clone(), None), on.into_iter().next()?, values))
        }
        TableFactor::Pivot { table, value_column, value_source, .. } => {
            let [on] = value_column.as_slice() else { return None };
            match value_source {
                PivotValueSource::List(_) => None,
                PivotValueSource::Any(_) => Some((table.as_ref().clone(), on.clone(), None)),
                PivotValueSource::Subquery(query) => {
                    Some((table.as_ref().clone(), on.clone(), Some(query.as_ref().clone())))
                }
            }
        }
        _ => None,
    }
}

/// Returns where the first column stands that is pivoted on and has no list of values: by itself, or before a query.
fn open_column(args: &[FunctionArg]) -> Option<usize> {
    let is_on = |expr: &Expr| arguments_of(expr, marks::PIVOT_ON).is_some();
    (0..args.len()).find(|at| {
        args.get(*at).and_then(argument).is_some_and(is_on)
            && args.get(at + 1).and_then(argument).is_none_or(|values| is_on(values) || is_values_query(values))
    })
}

fn argument(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Whether the values are a query's rows; a list of values is a SELECT of them, without tables.
fn is_values_query(expr: &Expr) -> bool {
    subquery(expr).is_some_and(|query| match query.body.as_ref() {
        SetExpr::Select(select) => !select.from.is_empty(),
        _ => true,
    })
}

/// Returns the query that finds the values. Those of a query with an order keep it, also where there are several of one value.
fn values_query(open: OpenPivot) -> Result<ParsedStatement> {
    let limit = MAX_PIVOT_COLUMNS + 1;
    let inner = "SELECT 1 AS pivot_value FROM source";
    let columns = "pivot_value, CAST(pivot_value AS VARCHAR) AS pivot_name";
    let text = match &open.values {
        Some(query) if query.order_by.is_some() => format!("SELECT {columns} FROM ({inner}) AS found"),
        _ => format!(
            "SELECT {columns} FROM (SELECT DISTINCT pivot_value FROM ({inner}) AS found WHERE pivot_value IS NOT NULL) \
             AS listed ORDER BY pivot_value LIMIT {limit}"
        ),
    };
    let mut parsed = parse_statement(&text)?;
    parsed.nesting = super::parse::Nesting::Deep;
    let OpenPivot { source, on, values, with, is_recursive } = open;
    let source = match values {
        // Its one column is the values.
        Some(query) => SourceOfValues::Query(Box::new(query)),
        None => SourceOfValues::Column(Box::new((source, on))),
    };
    if let Statement::Statement(statement) = &mut parsed.statement
        && let ast::Statement::Query(query) = statement.as_mut()
    {
        if !with.is_empty() {
            let with_token = AttachedToken::empty();
            query.with = Some(With { with_token, recursive: is_recursive, cte_tables: with });
        }
        innermost(&mut query.body, source);
    }
    Ok(parsed)
}

enum SourceOfValues {
    Query(Box<Query>),
    Column(Box<(TableFactor, Expr)>),
}

/// Puts the source into the innermost query.
fn innermost(body: &mut SetExpr, source: SourceOfValues) {
    let SetExpr::Select(select) = body else { return };
    let Some(table) = select.from.first_mut() else { return };
    if let TableFactor::Derived { subquery, .. } = &mut table.relation {
        match (subquery.body.as_ref(), source) {
            (SetExpr::Select(inner), SourceOfValues::Query(query))
                if matches!(inner.from.first().map(|table| &table.relation), Some(TableFactor::Table { .. })) =>
            {
                let columns = vec![ast::TableAliasColumnDef { name: Ident::new("pivot_value"), data_type: None }];
                let alias = ast::TableAlias { explicit: true, name: Ident::new("found"), columns, at: None };
                table.relation = derived(*query, Some(alias));
            }
            (_, source) => innermost(&mut subquery.body, source),
        }
        return;
    }
    if let SourceOfValues::Column(column) = source {
        let (source, on) = *column;
        select.projection = vec![SelectItem::ExprWithAlias { expr: on, alias: Ident::new("pivot_value") }];
        select.from = vec![plain(source)];
    }
}

fn quoted(name: String) -> Ident {
    Ident::with_quote('"', name)
}
