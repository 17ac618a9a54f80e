//! Queries, their clauses, tables and joins.

use datafusion::sql::sqlparser::ast::{
    Cte, Distinct, ExcludeSelectItem, Expr, Fetch, GroupByExpr, GroupByWithModifier, Join, JoinConstraint,
    JoinOperator, LateralView, LimitClause, NamedWindowDefinition, NamedWindowExpr, ObjectNamePart, Offset, OrderBy,
    OrderByExpr, OrderByKind, OrderByOptions, PipeOperator, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SelectModifiers, SetExpr, SetOperator, SetQuantifier, Table, TableAlias,
    TableFactor, TableFunctionArgs, TableSample, TableSampleKind, TableWithJoins, Top, Value, Values,
    WildcardAdditionalOptions, With,
};

use super::expression::check_window_spec;
use super::{LEAVE_OUT, refuse, refuse_if};
use crate::error::Result;
use crate::sql::json_records::takes_columns_of_alias;

pub(super) fn check_query(query: &Query) -> Result<()> {
    let Query { with, body, order_by, limit_clause, fetch, locks, for_clause, settings, format_clause, pipe_operators } =
        query;
    if let Some(with) = with {
        check_with(with)?;
    }
    check_body(body)?;
    if let Some(order_by) = order_by {
        check_order_by(order_by)?;
    }
    if let Some(limit) = limit_clause {
        check_limit(limit)?;
    }
    // Ties are kept by their rank: see `fetch_ties`.
    if let Some(Fetch { with_ties: _, percent, quantity: _ }) = fetch {
        refuse_if(*percent, "FETCH ... PERCENT", "compute the number of rows first, or use USING SAMPLE")?;
        refuse_if(limit_clause.as_ref().is_some_and(has_limit), "FETCH beside LIMIT", "write one of them")?;
    }
    refuse_if(
        !locks.is_empty(),
        "FOR UPDATE and FOR SHARE",
        "leave it out: a statement reads one snapshot and locks no rows",
    )?;
    refuse_if(for_clause.is_some(), "FOR JSON, FOR XML and FOR BROWSE", "ask for JSON as the format of the answer")?;
    refuse_if(settings.is_some(), "SETTINGS in a query", LEAVE_OUT)?;
    refuse_if(format_clause.is_some(), "FORMAT in a query", "ask for the format of the answer beside the statement")?;
    pipe_operators.iter().try_for_each(check_pipe)
}

/// Returns whether the clause has a number of rows, and not only an offset.
pub(in crate::sql) fn has_limit(limit: &LimitClause) -> bool {
    match limit {
        LimitClause::LimitOffset { limit, offset: _, limit_by: _ } => limit.is_some(),
        LimitClause::OffsetCommaLimit { offset: _, limit: _ } => true,
    }
}

fn check_with(with: &With) -> Result<()> {
    let With { with_token: _, recursive: _, cte_tables } = with;
    for cte in cte_tables {
        // Whether a common table expression is materialized changes no answer.
        let Cte { alias, query: _, from, materialized: _, closing_paren_token: _ } = cte;
        check_alias(Some(alias))?;
        refuse_if(from.is_some(), "FROM behind a WITH query", LEAVE_OUT)?;
    }
    Ok(())
}

fn check_body(body: &SetExpr) -> Result<()> {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) => Ok(()),
        SetExpr::SetOperation { left, op, set_quantifier, right } => {
            match (op, set_quantifier) {
                (_, SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None) => {}
                (
                    SetOperator::Union,
                    SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName,
                ) => {}
                (
                    SetOperator::Except | SetOperator::Intersect | SetOperator::Minus,
                    SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName,
                ) => refuse("BY NAME other than with UNION", "list the columns of both sides in the same order")?,
            }
            check_body(left)?;
            check_body(right)
        }
        SetExpr::Values(values) => {
            let Values { explicit_row: _, value_keyword, rows: _ } = values;
            refuse_if(*value_keyword, "VALUE", "write VALUES")
        }
        SetExpr::Table(table) => {
            let Table { table_name: _, schema_name: _ } = table.as_ref();
            Ok(())
        }
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            refuse("a statement that writes inside a query", "send it by itself")
        }
    }
}

fn check_order_by(order_by: &OrderBy) -> Result<()> {
    let OrderBy { kind, interpolate } = order_by;
    refuse_if(interpolate.is_some(), "INTERPOLATE", "join with generate_series to fill gaps")?;
    match kind {
        OrderByKind::All(OrderByOptions { asc: _, nulls_first: _ }) => Ok(()),
        OrderByKind::Expressions(exprs) => {
            let is_text = |expr: &Expr| match expr {
                Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
                _ => false,
            };
            refuse_if(
                exprs.iter().any(|sort| is_text(&sort.expr)),
                "ORDER BY of a text in quotes, which is the same for each row,",
                "write the name of a column, in double quotes where it needs them",
            )?;
            check_sorts(exprs)
        }
    }
}

/// Checks the keys of an ORDER BY, wherever it stands.
pub(super) fn check_sorts(sorts: &[OrderByExpr]) -> Result<()> {
    for sort in sorts {
        let OrderByExpr { expr: _, options, with_fill } = sort;
        let OrderByOptions { asc: _, nulls_first: _ } = options;
        refuse_if(with_fill.is_some(), "WITH FILL", "join with generate_series to fill gaps")?;
    }
    Ok(())
}

fn check_limit(limit: &LimitClause) -> Result<()> {
    match limit {
        LimitClause::LimitOffset { limit: _, offset, limit_by } => {
            if let Some(Offset { value: _, rows: _ }) = offset {}
            refuse_if(!limit_by.is_empty(), "LIMIT ... BY", "write QUALIFY row_number() OVER (PARTITION BY ...) <= n")
        }
        LimitClause::OffsetCommaLimit { offset: _, limit: _ } => Ok(()),
    }
}

fn check_pipe(operator: &PipeOperator) -> Result<()> {
    const HINT: &str = "write it as a query around the ones before";
    match operator {
        PipeOperator::Limit { expr: _, offset: _ }
        | PipeOperator::Where { expr: _ }
        | PipeOperator::Select { exprs: _ }
        | PipeOperator::Extend { exprs: _ }
        | PipeOperator::As { alias: _ }
        | PipeOperator::Union { set_quantifier: _, queries: _ }
        | PipeOperator::Intersect { set_quantifier: _, queries: _ }
        | PipeOperator::Except { set_quantifier: _, queries: _ } => Ok(()),
        PipeOperator::OrderBy { exprs } => check_sorts(exprs),
        PipeOperator::Aggregate { full_table_exprs, group_by_expr } => {
            let options = full_table_exprs.iter().chain(group_by_expr).map(|expr| expr.order_by);
            for OrderByOptions { asc, nulls_first } in options {
                let is_ordered = asc.is_some() || nulls_first.is_some();
                refuse_if(is_ordered, "an order in |> AGGREGATE", "write |> ORDER BY behind it")?;
            }
            Ok(())
        }
        PipeOperator::Join(join) => check_join(join),
        PipeOperator::Set { assignments: _ } => refuse("|> SET", HINT),
        PipeOperator::Drop { columns: _ } => refuse("|> DROP", "write |> SELECT * EXCLUDE (column)"),
        PipeOperator::TableSample { sample: _ } => refuse("|> TABLESAMPLE", HINT),
        PipeOperator::Rename { mappings: _ } => refuse("|> RENAME", "write |> SELECT with AS"),
        PipeOperator::Call { function: _, alias: _ } => refuse("|> CALL", HINT),
        PipeOperator::Pivot { aggregate_functions: _, value_column: _, value_source: _, alias: _ } => {
            refuse("|> PIVOT", "write PIVOT in FROM")
        }
        PipeOperator::Unpivot { value_column: _, name_column: _, unpivot_columns: _, alias: _ } => {
            refuse("|> UNPIVOT", "write UNPIVOT in FROM")
        }
    }
}

pub(super) fn check_select(select: &Select) -> Result<()> {
    // Hints to an optimizer are comments.
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into: _,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    match distinct {
        None | Some(Distinct::All | Distinct::Distinct) => {}
        Some(Distinct::On(_)) => {}
    }
    if let Some(modifiers) = select_modifiers {
        let SelectModifiers {
            high_priority,
            straight_join,
            sql_small_result,
            sql_big_result,
            sql_buffer_result,
            sql_no_cache,
            sql_calc_found_rows,
        } = modifiers;
        let any = [
            *high_priority,
            *straight_join,
            *sql_small_result,
            *sql_big_result,
            *sql_buffer_result,
            *sql_no_cache,
            *sql_calc_found_rows,
        ];
        refuse_if(any.contains(&true), "a modifier behind SELECT", LEAVE_OUT)?;
    }
    if let Some(Top { with_ties: _, percent: _, quantity: _ }) = top {
        refuse("TOP", "write LIMIT at the end")?;
    }
    let without_columns = projection.is_empty() && !matches!(flavor, SelectFlavor::FromFirstNoSelect);
    refuse_if(without_columns, "SELECT without columns", "write SELECT *")?;
    projection.iter().try_for_each(check_item)?;
    match exclude {
        None => {}
        Some(ExcludeSelectItem::Single(_) | ExcludeSelectItem::Multiple(_)) => {
            refuse("EXCLUDE behind the select list", "write it behind the star: * EXCLUDE (column)")?;
        }
    }
    from.iter().try_for_each(check_tables)?;
    if let Some(LateralView { lateral_view: _, lateral_view_name: _, lateral_col_alias: _, outer: _ }) =
        lateral_views.first()
    {
        refuse("LATERAL VIEW", "write unnest(column) in the select list")?;
    }
    refuse_if(prewhere.is_some(), "PREWHERE", "write WHERE")?;
    refuse_if(!connect_by.is_empty(), "CONNECT BY", "write WITH RECURSIVE")?;
    check_group_by(group_by)?;
    refuse_if(!cluster_by.is_empty(), "CLUSTER BY", LEAVE_OUT)?;
    refuse_if(!distribute_by.is_empty(), "DISTRIBUTE BY", LEAVE_OUT)?;
    refuse_if(!sort_by.is_empty(), "SORT BY", "write ORDER BY")?;
    for NamedWindowDefinition(_, window) in named_window {
        match window {
            NamedWindowExpr::NamedWindow(_) => {}
            NamedWindowExpr::WindowSpec(spec) => check_window_spec(spec)?,
        }
    }
    refuse_if(value_table_mode.is_some(), "SELECT AS STRUCT and AS VALUE", "build a value with named_struct")?;
    match flavor {
        SelectFlavor::Standard | SelectFlavor::FromFirst | SelectFlavor::FromFirstNoSelect => Ok(()),
    }
}

fn check_group_by(group_by: &GroupByExpr) -> Result<()> {
    let modifiers = match group_by {
        GroupByExpr::All(modifiers) => modifiers,
        GroupByExpr::Expressions(_, modifiers) => modifiers,
    };
    match modifiers.first() {
        None => Ok(()),
        Some(GroupByWithModifier::Rollup) => refuse("WITH ROLLUP", "write GROUP BY ROLLUP (columns)"),
        Some(GroupByWithModifier::Cube) => refuse("WITH CUBE", "write GROUP BY CUBE (columns)"),
        Some(GroupByWithModifier::Totals) => refuse("WITH TOTALS", "write GROUP BY ROLLUP (columns)"),
        Some(GroupByWithModifier::GroupingSets(_)) => {
            refuse("GROUPING SETS behind other columns", "write GROUP BY GROUPING SETS ((a, b), (a))")
        }
    }
}

fn check_item(item: &SelectItem) -> Result<()> {
    match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { expr: _, alias: _ } => Ok(()),
        SelectItem::ExprWithAliases { expr: _, aliases: _ } => refuse("several aliases of one column", "name one"),
        SelectItem::QualifiedWildcard(kind, options) => {
            match kind {
                SelectItemQualifiedWildcardKind::ObjectName(_) => {}
                SelectItemQualifiedWildcardKind::Expr(_) => {
                    refuse("a star behind a value", "write unnest(value), which has a column for each field")?;
                }
            }
            check_wildcard(options)
        }
        SelectItem::Wildcard(options) => check_wildcard(options),
    }
}

fn check_wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike: _,
        opt_exclude: _,
        opt_except: _,
        opt_replace: _,
        opt_rename: _,
        opt_alias,
    } = options;
    refuse_if(opt_alias.is_some(), "AS behind a star", "write it behind each column")
}

fn check_tables(tables: &TableWithJoins) -> Result<()> {
    let TableWithJoins { relation: _, joins } = tables;
    joins.iter().try_for_each(check_join)
}

fn check_join(join: &Join) -> Result<()> {
    // `global` marks an ASOF join: see `tokens`.
    let Join { relation: _, global, join_operator } = join;
    let constraint = match join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => constraint,
        JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => {
            refuse_if(*global, "this kind of ASOF JOIN", "there are ASOF JOIN and ASOF LEFT JOIN")?;
            constraint
        }
        JoinOperator::CrossJoin(constraint) => {
            return match constraint {
                JoinConstraint::None => Ok(()),
                JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural => {
                    refuse("a condition of CROSS JOIN", "write JOIN")
                }
            };
        }
        JoinOperator::CrossApply => return refuse("CROSS APPLY", "write CROSS JOIN LATERAL"),
        JoinOperator::OuterApply => return refuse("OUTER APPLY", "write LEFT JOIN LATERAL (...) ON true"),
        JoinOperator::AsOf { match_condition: _, constraint: _ } => {
            return refuse("MATCH_CONDITION", "write ASOF JOIN t ON a.key = t.key AND a.time >= t.time");
        }
        JoinOperator::StraightJoin(_) => return refuse("STRAIGHT_JOIN", "write JOIN"),
        JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
            return refuse("ARRAY JOIN", "write unnest(column) in the select list");
        }
    };
    match constraint {
        JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural => Ok(()),
        JoinConstraint::None => refuse("a join without a condition", "write ON, USING or NATURAL, or CROSS JOIN"),
    }
}

fn check_alias(alias: Option<&TableAlias>) -> Result<()> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return Ok(()) };
    let typed = columns.iter().any(|column| column.data_type.is_some());
    refuse_if(typed, "types of an alias's columns", "cast in the select list")?;
    refuse_if(at.is_some(), "AT behind an alias", LEAVE_OUT)
}

fn check_sample(sample: Option<&TableSampleKind>) -> Result<()> {
    let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample else {
        return Ok(());
    };
    let TableSample { modifier: _, name: _, quantity: _, seed: _, bucket, offset } = sample.as_ref();
    refuse_if(bucket.is_some(), "a BUCKET of a sample", "write TABLESAMPLE BERNOULLI (percent)")?;
    refuse_if(offset.is_some(), "an OFFSET of a sample", LEAVE_OUT)
}

pub(super) fn check_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            // The types of those are written out with them: see `json_records`.
            if args.is_none() || !takes_columns_of_alias(name) {
                check_alias(alias.as_ref())?;
            }
            let is_text = |part: &ObjectNamePart| part.as_ident().is_some_and(|ident| ident.quote_style == Some('\''));
            refuse_if(
                name.0.iter().any(is_text),
                "a file as a table",
                "write CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '...', or import it with `querent import`",
            )?;
            if let Some(TableFunctionArgs { args: _, settings }) = args {
                refuse_if(settings.is_some(), "SETTINGS of a table function", LEAVE_OUT)?;
            }
            refuse_if(!with_hints.is_empty(), "hints behind a table", LEAVE_OUT)?;
            refuse_if(
                version.is_some(),
                "an earlier version of a table",
                "leave it out: a statement reads the newest snapshot",
            )?;
            let of_rows = *with_ordinality && args.is_none();
            refuse_if(of_rows, "WITH ORDINALITY of a table", "number the rows with row_number() OVER ()")?;
            refuse_if(!partitions.is_empty(), "PARTITION behind a table", "write a condition in WHERE")?;
            refuse_if(json_path.is_some(), "a path behind a table", "write it behind the column")?;
            refuse_if(!index_hints.is_empty(), "index hints", LEAVE_OUT)?;
            check_sample(sample.as_ref())
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            check_alias(alias.as_ref())?;
            check_sample(sample.as_ref())
        }
        TableFactor::TableFunction { expr: _, alias: _ } => {
            refuse("TABLE(...)", "write the function itself: FROM generate_series(1, 10)")
        }
        TableFactor::Function { lateral: _, name: _, args: _, with_ordinality: _, alias } => {
            check_alias(alias.as_ref())
        }
        TableFactor::UNNEST { alias, array_exprs: _, with_offset, with_offset_alias: _, with_ordinality: _ } => {
            check_alias(alias.as_ref())?;
            refuse_if(*with_offset, "WITH OFFSET", "write WITH ORDINALITY, which counts from 1")
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            check_alias(alias.as_ref())?;
            check_tables(table_with_joins)
        }
        TableFactor::Pivot {
            table: _,
            aggregate_functions: _,
            value_column: _,
            value_source: _,
            default_on_null,
            alias,
        } => {
            refuse_if(default_on_null.is_some(), "DEFAULT ON NULL", "write coalesce(column, value) around it")?;
            check_alias(alias.as_ref())
        }
        TableFactor::Unpivot { table: _, value: _, name: _, columns: _, null_inclusion: _, alias } => {
            check_alias(alias.as_ref())
        }
        TableFactor::JsonTable { json_expr: _, json_path: _, columns: _, alias: _ } => {
            refuse("JSON_TABLE", "take the parts with json_extract and unnest")
        }
        TableFactor::OpenJsonTable { json_expr: _, json_path: _, columns: _, alias: _ } => {
            refuse("OPENJSON", "take the parts with json_extract and unnest")
        }
        TableFactor::MatchRecognize {
            table: _,
            partition_by: _,
            order_by: _,
            measures: _,
            rows_per_match: _,
            after_match_skip: _,
            pattern: _,
            symbols: _,
            alias: _,
        } => refuse("MATCH_RECOGNIZE", "compare neighbouring rows with lag() and lead()"),
        TableFactor::XmlTable { namespaces: _, row_expression: _, passing: _, columns: _, alias: _ } => {
            refuse("XMLTABLE", "import the data as CSV, JSON or Parquet")
        }
        TableFactor::SemanticView { name: _, dimensions: _, metrics: _, facts: _, where_clause: _, alias: _ } => {
            refuse("SEMANTIC_VIEW", "query the view's tables")
        }
    }
}
