//! Syntax that is short for other syntax, written out before names are resolved: `FROM t`, `TABLE t`, `FETCH FIRST`, named
//! windows, `SEMI JOIN`, `ASOF JOIN`, operators that are functions, and functions that are expressions ([`super::function_forms`]).

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, GroupByExpr, Ident,
    Join, JoinConstraint, JoinOperator, LimitClause, NamedWindowDefinition, NamedWindowExpr, ObjectName,
    ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr, SetOperator, TableAlias,
    TableFactor, TableFunctionArgs, TableWithJoins, Value, Visit, VisitMut, Visitor, VisitorMut,
    WildcardAdditionalOptions, WindowSpec, WindowType,
};

use super::accepted::has_limit;
use super::cast_aggregates::{tell_casts_apart, tell_groups_apart};
use super::collations::{write_out_collations, write_out_order};
use super::column_names::{WrittenColumn, name_columns, names_in_order, written_columns};
use super::expression_forms::{write_out_form, write_out_patterns};
use super::fetch_ties::write_out_ties;
use super::first_of_groups::write_out_first_rows;
use super::function_forms;
use super::grouping_sets::write_out_sets;
use super::json_operators::write_out_json_operators;
use super::lambda_fields::write_out_fields;
use super::marks;
use super::operator_forms::operators;
use super::ordinality::write_out_ordinality;
use super::overlapping_periods::write_out_overlaps;
use super::percent_limits::write_out_percent;
use super::predicate_subqueries::write_out_predicates;
use super::rounded_times::round_times;
use super::row_values::write_out_rows;
use super::syntax::try_visit_statement;
use super::unary_minus::bind_minus;
use super::unnamed_subqueries::name_subqueries;
use super::unnest_joins::write_out_unnest;
use super::untyped_texts::{write_out_columns, write_out_elements};
use super::volatile_queries::check_volatile;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// Writes out what a statement abbreviates. Errors: `sql_plan_error`, `unsupported`.
pub(super) fn write_out(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut ShorthandWriter::default())
}

/// `WITH c AS (...) INSERT INTO t SELECT ...` is an INSERT of a query with that WITH.
pub(super) fn insert_with(statement: &mut Statement) {
    let Statement::Statement(inner) = statement else { return };
    let ast::Statement::Query(query) = inner.as_mut() else { return };
    let is_bare = query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let (SetExpr::Insert(ast::Statement::Insert(insert)), true) = (query.body.as_mut(), is_bare) else { return };
    match &mut insert.source {
        Some(source) if source.with.is_none() => source.with = query.with.take(),
        _ => return,
    }
    let insert = insert.clone();
    **inner = ast::Statement::Insert(insert);
}

/// Writes out the joins of a query whose text would not be read again: the parser prints an ASOF join by its own mark.
pub(super) fn write_out_asof(query: &mut Query) {
    struct AsofWriter;
    impl VisitorMut for AsofWriter {
        type Break = ();
        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            select.from.iter_mut().for_each(asof_joins);
            ControlFlow::Continue(())
        }
    }
    let _: ControlFlow<()> = VisitMut::visit(query, &mut AsofWriter);
}

#[derive(Default)]
struct ShorthandWriter {
    /// How the columns of each SELECT around are written, which they are named after.
    columns: Vec<Vec<WrittenColumn>>,
    /// The names in the ORDER BY of each query around.
    in_order: Vec<HashSet<String>>,
}

impl VisitorMut for ShorthandWriter {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<EngineError> {
        self.in_order.push(names_in_order(query));
        if let Err(error) =
            check_volatile(query).and_then(|()| write_out_percent(query)).and_then(|()| write_out_ties(query))
        {
            return ControlFlow::Break(error);
        }
        write_out_tables(&mut query.body);
        if let SetExpr::Values(values) = query.body.as_mut() {
            // Those of a statement by itself may be rows of a table, which has types.
            if self.in_order.len() > 1 {
                write_out_columns(values);
            }
            values.rows.iter_mut().flat_map(|row| &mut **row).for_each(write_out_predicates);
        }
        if let Some(fetch) = query.fetch.take_if(|_| !query.limit_clause.as_ref().is_some_and(has_limit)) {
            let offset = match query.limit_clause.take() {
                Some(LimitClause::LimitOffset { offset, .. }) => offset,
                _ => None,
            };
            let limit = Some(fetch.quantity.unwrap_or_else(|| number("1")));
            query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
        }
        write_out_first_rows(query);
        let written = recursive_queries(query);
        name_columns_of_with(query);
        flow(written.and_then(|()| windows_in_order_by(query)).and_then(|()| write_out_order(query)))
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<EngineError> {
        self.in_order.pop();
        if let Some(OrderBy { kind: OrderByKind::Expressions(sorts), .. }) = &mut query.order_by {
            sorts.iter_mut().for_each(|sort| write_out_predicates(&mut sort.expr));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        write_out_ordinality(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<EngineError> {
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) {
            select.flavor = SelectFlavor::Standard;
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        name_subqueries(&mut select.from);
        write_out_unnest(&mut select.from);
        for tables in &mut select.from {
            tables.joins.iter_mut().for_each(one_sided);
            asof_joins(tables);
        }
        write_out_sets(select);
        one_group(select);
        grouped_columns(&mut select.group_by);
        if let Err(error) = named_windows(select) {
            return ControlFlow::Break(error);
        }
        self.columns.push(written_columns(select));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<EngineError> {
        let columns = self.columns.pop().unwrap_or_default();
        tell_casts_apart(select);
        tell_groups_apart(select);
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                write_out_predicates(expr);
            }
        }
        name_columns(select, &columns, self.in_order.last());
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        bind_minus(expr);
        write_out_elements(expr);
        write_out_patterns(expr);
        write_out_fields(expr);
        write_out_json_operators(expr);
        let written = write_out_overlaps(expr).and_then(|()| round_times(expr));
        flow(written.and_then(|()| write_out_collations(expr)))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        let written = operators(expr).and_then(|()| write_out_rows(expr)).and_then(|()| write_out_form(expr));
        flow(written.and_then(|()| function_forms::expand(expr)))
    }
}

fn flow(result: Result<()>) -> ControlFlow<EngineError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// `TABLE t` is `SELECT * FROM t`.
fn write_out_tables(body: &mut SetExpr) {
    match body {
        SetExpr::Table(table) => {
            let parts = [table.schema_name.take(), table.table_name.take()].into_iter().flatten();
            let name = ObjectName(parts.map(|part| ObjectNamePart::Identifier(Ident::new(part))).collect());
            *body = SetExpr::Select(Box::new(select_star(vec![plain(table_factor(name, None))])));
        }
        SetExpr::SetOperation { left, right, .. } => {
            write_out_tables(left);
            write_out_tables(right);
        }
        _ => {}
    }
}

/// The names of `WITH RECURSIVE t(n)` are the recursive member's as well, and what is behind the UNION is not lost.
fn recursive_queries(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return Ok(()) };
    for cte in &mut with.cte_tables {
        let behind = cte.query.order_by.is_some()
            || cte.query.limit_clause.is_some()
            || cte.query.fetch.is_some()
            || cte.query.with.is_some();
        let names_itself = names_relation(&cte.query.body, &cte.alias.name.value);
        let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = cte.query.body.as_mut() else { continue };
        if names_itself && behind {
            return Err(EngineError::Unsupported {
                what: "ORDER BY, LIMIT or WITH in a recursive query".into(),
                hint: "write it in the query that reads the recursive one".into(),
            });
        }
        if behind {
            let inner = Query { with: None, ..(*cte.query).clone() };
            let (with, whole) = (cte.query.with.take(), SetExpr::Query(Box::new(inner)));
            *cte.query = Query { with, ..query_of(whole) };
        } else if names_itself {
            // By a name of its own also because columns that only the recursive member reads would be pruned from it.
            const FIRST: &str = "__first_rows";
            let body = std::mem::replace(left.as_mut(), SetExpr::Values(no_rows()));
            let factor = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(query_of(body)),
                alias: Some(TableAlias { name: Ident::new(FIRST), ..cte.alias.clone() }),
                sample: None,
            };
            **left = SetExpr::Select(Box::new(select_star(vec![plain(factor)])));
            // The first rows have the names, and what comes behind them takes theirs.
            cte.alias.columns.clear();
        }
    }
    Ok(())
}

/// `WITH c(x) AS (query)` is `WITH c AS (SELECT * FROM (query) AS c(x))`, where names are given by
/// [`super::relations`]: the planner's own way for common table expressions misses columns that are not in lower case.
fn name_columns_of_with(query: &mut Query) {
    let Some(with) = query.with.as_mut() else { return };
    for cte in &mut with.cte_tables {
        let returns_rows = matches!(
            cte.query.body.as_ref(),
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::SetOperation { .. } | SetExpr::Values(_)
        );
        if cte.alias.columns.is_empty() || !returns_rows {
            continue;
        }
        let alias = TableAlias { explicit: true, ..cte.alias.clone() };
        cte.alias.columns.clear();
        let none = query_of(SetExpr::Values(no_rows()));
        let named = std::mem::replace(cte.query.as_mut(), none);
        let factor =
            TableFactor::Derived { lateral: false, subquery: Box::new(named), alias: Some(alias), sample: None };
        *cte.query = query_of(SetExpr::Select(Box::new(select_star(vec![plain(factor)]))));
    }
}

fn names_relation(body: &SetExpr, name: &str) -> bool {
    struct RelationFinder<'a>(&'a str);
    impl Visitor for RelationFinder<'_> {
        type Break = ();
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            match relation.0.as_slice() {
                [ObjectNamePart::Identifier(ident)] if same_name(&ident.value, self.0) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    Visit::visit(body, &mut RelationFinder(name)).is_break()
}

/// `SEMI JOIN` and `ANTI JOIN` keep rows of the left side.
fn one_sided(join: &mut Join) {
    let no_condition = JoinOperator::CrossJoin(JoinConstraint::None);
    join.join_operator = match std::mem::replace(&mut join.join_operator, no_condition) {
        JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
        JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
        other => other,
    };
}

/// Makes a relation of an ASOF join and all before it.
fn asof_joins(tables: &mut TableWithJoins) {
    while let Some(at) = tables.joins.iter().position(|join| join.global) {
        let rest = tables.joins.split_off(at + 1);
        let Some(join) = tables.joins.pop() else { return };
        if matches!(join.join_operator, JoinOperator::CrossJoin(_)) {
            let left = std::mem::take(&mut tables.joins);
            tables.relation = positional_join(&mut tables.relation, left, join.relation);
            tables.joins = rest;
            continue;
        }
        let (kind, constraint) = match join.join_operator {
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ("left", constraint),
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => ("inner", constraint),
            // Refused before.
            _ => return,
        };
        let condition = match constraint {
            JoinConstraint::On(condition) => condition,
            JoinConstraint::Using(columns) => Expr::Tuple(
                columns
                    .iter()
                    .filter_map(|name| name.0.last().and_then(ObjectNamePart::as_ident))
                    .map(|ident| Expr::Identifier(ident.clone()))
                    .collect(),
            ),
            JoinConstraint::Natural | JoinConstraint::None => Expr::Tuple(Vec::new()),
        };
        let relation = std::mem::replace(&mut tables.relation, table_factor(ObjectName(Vec::new()), None));
        let left = TableWithJoins { relation, joins: std::mem::take(&mut tables.joins) };
        let arguments = vec![
            Expr::Subquery(Box::new(query_of(SetExpr::Select(Box::new(select_star(vec![left])))))),
            Expr::Subquery(Box::new(query_of(SetExpr::Select(Box::new(select_star(vec![plain(join.relation)])))))),
            condition,
            text(kind),
        ];
        let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(marks::ASOF))]);
        tables.relation = table_factor(name, Some(arguments));
        tables.joins = rest;
    }
}

/// Returns the call that stands for a join by position; the relations before it are one side.
fn positional_join(first: &mut TableFactor, joins: Vec<Join>, right: TableFactor) -> TableFactor {
    let relation = std::mem::replace(first, table_factor(ObjectName(Vec::new()), None));
    let side = |tables: TableWithJoins| {
        Expr::Subquery(Box::new(query_of(SetExpr::Select(Box::new(select_star(vec![tables]))))))
    };
    let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(marks::POSITIONAL))]);
    table_factor(name, Some(vec![side(TableWithJoins { relation, joins }), side(plain(right))]))
}

/// `GROUP BY ()` makes one group, also where nothing is aggregated.
fn one_group(select: &mut Select) {
    let GroupByExpr::Expressions(exprs, _) = &select.group_by else { return };
    if select.having.is_none() && matches!(exprs.as_slice(), [Expr::Tuple(columns)] if columns.is_empty()) {
        select.having = Some(Expr::IsNotNull(Box::new(call("count", vec![number("1")]))));
    }
}

/// `GROUP BY (a, b)` is `GROUP BY a, b`.
fn grouped_columns(groups: &mut GroupByExpr) {
    let GroupByExpr::Expressions(exprs, _) = groups else { return };
    if exprs.iter().any(|expr| matches!(expr, Expr::Tuple(_))) {
        let columns = std::mem::take(exprs).into_iter().flat_map(|expr| match expr {
            Expr::Tuple(columns) => columns,
            other => vec![other],
        });
        *exprs = columns.collect();
    }
}

/// Puts the definitions of `WINDOW` where they are named; the planner knows names in the select list only.
fn named_windows(select: &mut Select) -> Result<()> {
    let definitions = resolved_windows(&select.named_window)?;
    let mut resolver = WindowNames { definitions: &definitions, depth: 0 };
    let visited = [
        VisitMut::visit(&mut select.projection, &mut resolver),
        VisitMut::visit(&mut select.qualify, &mut resolver),
        VisitMut::visit(&mut select.having, &mut resolver),
    ];
    match visited.into_iter().find_map(ControlFlow::break_value) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn windows_in_order_by(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let definitions = resolved_windows(&select.named_window)?;
    match VisitMut::visit(&mut query.order_by, &mut WindowNames { definitions: &definitions, depth: 0 }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn resolved_windows(definitions: &[NamedWindowDefinition]) -> Result<Vec<(String, WindowSpec)>> {
    let mut known: Vec<(String, WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, window) in definitions {
        let spec = match window {
            NamedWindowExpr::NamedWindow(other) => window_named(&known, other)?,
            NamedWindowExpr::WindowSpec(spec) => based(&known, spec.clone())?,
        };
        known.push((name.value.clone(), spec));
    }
    Ok(known)
}

fn window_named(known: &[(String, WindowSpec)], name: &Ident) -> Result<WindowSpec> {
    let found = known.iter().find(|(own, _)| same_name(own, &name.value));
    found.map(|(_, spec)| spec.clone()).ok_or_else(|| EngineError::Plan {
        message: format!("there is no window `{}`; define it with WINDOW {} AS (...)", name.value, name.value),
    })
}

/// `(w ORDER BY x)` is the window `w` with an order.
fn based(known: &[(String, WindowSpec)], mut spec: WindowSpec) -> Result<WindowSpec> {
    let Some(base) = spec.window_name.take() else { return Ok(spec) };
    let base = window_named(known, &base)?;
    if !spec.partition_by.is_empty() || (!spec.order_by.is_empty() && !base.order_by.is_empty()) {
        return Err(EngineError::Plan { message: "a window keeps the partitions and the order of its base".into() });
    }
    spec.partition_by = base.partition_by;
    if spec.order_by.is_empty() {
        spec.order_by = base.order_by;
    }
    spec.window_frame = spec.window_frame.or(base.window_frame);
    Ok(spec)
}

struct WindowNames<'a> {
    definitions: &'a [(String, WindowSpec)],
    /// Subqueries have windows of their own.
    depth: usize,
}

impl VisitorMut for WindowNames<'_> {
    type Break = EngineError;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<EngineError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<EngineError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        let Expr::Function(Function { over: Some(over), .. }) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let spec = match over {
            WindowType::NamedWindow(name) => window_named(self.definitions, name),
            WindowType::WindowSpec(spec) => based(self.definitions, spec.clone()),
        };
        flow(spec.map(|spec| *over = WindowType::WindowSpec(spec)))
    }
}

/// Returns an expression, and leaves a null in its place.
pub(super) fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

/// A call of a function with values.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

pub(super) fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

pub(super) fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.to_owned(), false).into())
}

/// A table, or a call of a table function.
pub(super) fn table_factor(name: ObjectName, arguments: Option<Vec<Expr>>) -> TableFactor {
    let args = arguments.map(|arguments| TableFunctionArgs {
        args: arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect(),
        settings: None,
    });
    TableFactor::Table {
        name,
        alias: None::<TableAlias>,
        args,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

pub(super) fn plain(relation: TableFactor) -> TableWithJoins {
    TableWithJoins { relation, joins: Vec::new() }
}

/// `SELECT * FROM tables`.
pub(super) fn select_star(from: Vec<TableWithJoins>) -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())],
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

/// Returns `SELECT * FROM name`.
pub(crate) fn query_from_table(name: ObjectName) -> Query {
    query_of(SetExpr::Select(Box::new(select_star(vec![plain(table_factor(name, None))]))))
}

/// Returns `SELECT items`.
pub(crate) fn query_of_items(items: Vec<SelectItem>) -> Query {
    query_of(SetExpr::Select(Box::new(Select { projection: items, ..select_star(Vec::new()) })))
}

/// A query with nothing around its body.
pub(super) fn query_of(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

fn no_rows() -> datafusion::sql::sqlparser::ast::Values {
    datafusion::sql::sqlparser::ast::Values { explicit_row: false, value_keyword: false, rows: Vec::new() }
}
