//! What the names of a query can mean, SELECT by SELECT: the tables of its FROM clause with their columns, as far as
//! they are known, and the aliases of what it selects. Inner SELECTs see those around them.

use arrow::datatypes::DataType;
use querent_catalog::TableName;
use sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableAlias, TableFactor, TableWithJoins,
};

use super::KnownTables;
use super::tables::full_name;

/// A column, with its type where it is known.
pub(crate) type ScopeColumn = (String, Option<DataType>);

/// A table of a FROM clause.
#[derive(Debug, Clone)]
pub(crate) struct ScopeSource {
    /// What its columns are qualified by.
    pub(crate) name: String,
    /// The table of the catalog that it is.
    pub(crate) table: Option<TableName>,
    /// Its columns; absent where they are not known, so that it may have any.
    pub(crate) columns: Option<Vec<ScopeColumn>>,
}

impl ScopeSource {
    /// Returns the column as it is spelled, with its type. `None` where it is known to have no such column.
    pub(crate) fn column(&self, name: &str) -> Option<(&str, Option<&DataType>)> {
        let found = self.columns.as_ref()?.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(known, data_type)| (known.as_str(), data_type.as_ref()))
    }

    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.columns.is_none() || self.column(name).is_some()
    }
}

/// What the names of one SELECT can mean.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) sources: Vec<ScopeSource>,
    /// Of what it selects.
    pub(crate) aliases: Vec<String>,
    /// Columns that joins have made one.
    pub(crate) merged: Vec<String>,
    pub(crate) is_natural: bool,
}

impl Scope {
    pub(crate) fn source(&self, name: &str) -> Option<&ScopeSource> {
        self.sources.iter().find(|source| source.name.eq_ignore_ascii_case(name))
    }

    pub(crate) fn has_alias(&self, name: &str) -> bool {
        self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }
}

/// The scopes around a place of a statement, innermost last.
#[derive(Clone)]
pub(crate) struct Scopes<'a> {
    known: &'a KnownTables,
    database: &'a str,
    /// Common table expressions with their columns.
    ctes: Vec<(String, Option<Vec<ScopeColumn>>)>,
    /// The number of common table expressions outside of each query around.
    outside: Vec<usize>,
    pub(crate) stack: Vec<Scope>,
}

impl<'a> Scopes<'a> {
    pub(crate) fn new(known: &'a KnownTables, database: &'a str) -> Self {
        Self { known, database, ctes: Vec::new(), outside: Vec::new(), stack: Vec::new() }
    }

    /// Enters a query: what it names with WITH, and for its ORDER BY the scope of its SELECT.
    pub(crate) fn enter_query(&mut self, query: &Query) {
        self.outside.push(self.ctes.len());
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let columns = renamed(self.columns_of_query(&cte.query), &cte.alias);
            self.ctes.push((cte.alias.name.value.clone(), columns));
        }
        let scope = first_select(&query.body).map(|select| self.scope_of(select)).unwrap_or_default();
        self.stack.push(scope);
    }

    pub(crate) fn leave_query(&mut self) {
        self.stack.pop();
        if let Some(outside) = self.outside.pop() {
            self.ctes.truncate(outside);
        }
    }

    pub(crate) fn enter_select(&mut self, select: &Select) {
        let scope = self.scope_of(select);
        self.stack.push(scope);
    }

    pub(crate) fn leave_select(&mut self) {
        self.stack.pop();
    }

    /// Returns these scopes with that of a SELECT inside of them.
    pub(crate) fn with_select(&self, select: &Select) -> Self {
        let mut inside = self.clone();
        inside.enter_select(select);
        inside
    }

    /// Returns the scopes from the innermost to the outermost.
    pub(crate) fn inner_to_outer(&self) -> impl Iterator<Item = &Scope> {
        self.stack.iter().rev()
    }

    pub(crate) fn scope_of(&self, select: &Select) -> Scope {
        let mut scope = Scope::default();
        for from in &select.from {
            self.add_tables(from, &mut scope);
        }
        scope.aliases = select
            .projection
            .iter()
            .filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
                _ => None,
            })
            .collect();
        scope
    }

    fn add_tables(&self, from: &TableWithJoins, scope: &mut Scope) {
        self.add_factor(&from.relation, scope);
        for join in &from.joins {
            self.add_factor(&join.relation, scope);
            match constraint_of(join) {
                Some(JoinConstraint::Using(names)) => {
                    let last = names.iter().filter_map(|name| name.0.last().and_then(|part| part.as_ident()));
                    scope.merged.extend(last.map(|ident| ident.value.clone()));
                }
                Some(JoinConstraint::Natural) => scope.is_natural = true,
                _ => {}
            }
        }
    }

    fn add_factor(&self, factor: &TableFactor, scope: &mut Scope) {
        match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let Some(full) = full_name(name, self.database) else { return };
                let binding = alias.as_ref().map_or(full.table.as_str(), |alias| alias.name.value.as_str()).to_owned();
                let (table, columns) = match (args, self.cte(&full.table).filter(|_| name.0.len() == 1)) {
                    (Some(_), _) => (None, None),
                    (None, Some(columns)) => (None, columns),
                    (None, None) => match self.known.get(&full) {
                        Some(info) => {
                            let columns = info.columns.iter();
                            let columns = columns.map(|column| (column.name.clone(), Some(column.data_type.clone())));
                            (Some(info.name.clone()), Some(columns.collect()))
                        }
                        None => (None, None),
                    },
                };
                let columns = match alias {
                    Some(alias) => renamed(columns, alias),
                    None => columns,
                };
                scope.sources.push(ScopeSource { name: binding, table, columns });
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let columns = self.columns_of_query(subquery);
                let (name, columns) = match alias {
                    Some(alias) => (alias.name.value.clone(), renamed(columns, alias)),
                    None => (String::new(), columns),
                };
                scope.sources.push(ScopeSource { name, table: None, columns });
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.add_tables(table_with_joins, scope),
            _ => scope.sources.push(ScopeSource { name: String::new(), table: None, columns: None }),
        }
    }

    fn cte(&self, name: &str) -> Option<Option<Vec<ScopeColumn>>> {
        self.ctes.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, columns)| columns.clone())
    }

    /// Returns the columns of a query's rows, where they are known.
    fn columns_of_query(&self, query: &Query) -> Option<Vec<ScopeColumn>> {
        // Its own common table expressions are not entered: their columns stay unknown.
        let select = first_select(&query.body)?;
        let own = query.with.is_some();
        let scope = self.scope_of(select);
        let mut columns = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { expr, alias } => {
                    columns.push((alias.value.clone(), self.type_in(&scope, expr)));
                }
                SelectItem::UnnamedExpr(expr) => {
                    let name = match expr {
                        Expr::Identifier(ident) => ident.value.clone(),
                        Expr::CompoundIdentifier(parts) => parts.last()?.value.clone(),
                        other => other.to_string(),
                    };
                    columns.push((name, self.type_in(&scope, expr)));
                }
                SelectItem::Wildcard(_) if !own => {
                    for source in &scope.sources {
                        columns.extend(source.columns.clone()?);
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) if !own => {
                    let name = name.0.last()?.as_ident()?;
                    columns.extend(scope.source(&name.value)?.columns.clone()?);
                }
                _ => return None,
            }
        }
        Some(columns)
    }

    fn type_in(&self, scope: &Scope, expr: &Expr) -> Option<DataType> {
        match expr {
            Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("count") => {
                Some(DataType::Int64)
            }
            _ => column_of(scope, expr).and_then(|(_, _, data_type)| data_type.cloned()),
        }
    }
}

/// Returns the source, the name and the type of the column that an expression is, within one scope.
pub(crate) fn column_of<'s>(scope: &'s Scope, expr: &Expr) -> Option<(&'s ScopeSource, &'s str, Option<&'s DataType>)> {
    let (qualifier, column) = match expr {
        Expr::Identifier(ident) => (None, ident),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., qualifier, column] => (Some(qualifier), column),
            _ => return None,
        },
        Expr::Nested(inner) => return column_of(scope, inner),
        _ => return None,
    };
    let mut sources = scope
        .sources
        .iter()
        .filter(|source| qualifier.is_none_or(|qualifier| source.name.eq_ignore_ascii_case(&qualifier.value)));
    sources.find_map(|source| {
        let (name, data_type) = source.column(&column.value)?;
        Some((source, name, data_type))
    })
}

/// Returns the first SELECT of a query's body.
pub(crate) fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// Returns how a join joins, where it says so.
pub(crate) fn constraint_of(join: &Join) -> Option<&JoinConstraint> {
    match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::StraightJoin(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

/// Renames the columns as an alias does.
fn renamed(columns: Option<Vec<ScopeColumn>>, alias: &TableAlias) -> Option<Vec<ScopeColumn>> {
    if alias.columns.is_empty() {
        return columns;
    }
    let types = columns.unwrap_or_default().into_iter().map(|(_, data_type)| data_type);
    let types = types.chain(std::iter::repeat(None));
    Some(alias.columns.iter().map(|column| column.name.value.clone()).zip(types).collect())
}
