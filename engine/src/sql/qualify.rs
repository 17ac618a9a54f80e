//! Qualifies the bare table names of a statement with a database, so that it means the same in any session.
//!
//! Only names are inserted into the text, at the positions that the parser reports; everything else stays as it was written.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, ObjectNamePart, Query, SetExpr, ShowStatementIn, ShowStatementInClause, TableFactor,
    TableFunctionArgs, Value, VisitMut, VisitorMut, With,
};
use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;
use datafusion::sql::sqlparser::tokenizer::{Location, Span};

use super::parse::{ParsedStatement, parse_statement};
use super::table_functions::tables_of;
use crate::identifiers::same_name;

/// Returns the statement with its bare table names in `database`. A text that is not one statement is returned as it is.
pub fn qualify_tables(sql: &str, database: &str) -> String {
    let Ok(ParsedStatement { statement, nesting, .. }) = parse_statement(sql) else { return sql.to_owned() };
    let qualified = nesting.with_room(|| qualified(sql, statement, database));
    qualified.filter(|text| parse_statement(text).is_ok()).unwrap_or_else(|| sql.to_owned())
}

fn qualified(sql: &str, mut statement: Statement, database: &str) -> Option<String> {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    let Statement::Statement(inner) = inner else { return None };
    match inner.as_mut() {
        ast::Statement::ShowTables { show_options, .. } => {
            show_options.show_in.is_none().then(|| {
                show_options.show_in = Some(ShowStatementIn {
                    clause: ShowStatementInClause::FROM,
                    parent_type: None,
                    parent_name: Some(vec![name_of(database)].into()),
                });
            })?;
            return Some(statement.to_string());
        }
        ast::Statement::ShowDatabases { .. } | ast::Statement::ShowSchemas { .. } => return None,
        _ => {}
    }
    let mut finder = Finder { database, ctes: Vec::new(), withs: Vec::new(), factor: Factor::None, edits: Vec::new() };
    match inner.visit(&mut finder) {
        ControlFlow::Continue(()) => edited(sql, finder.edits),
        ControlFlow::Break(Unplaced) => None,
    }
}

/// A name that the parser reports no position of.
struct Unplaced;

/// A part of the text and what replaces it.
struct Edit {
    span: Span,
    text: String,
}

/// The table of FROM whose name is visited next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Factor {
    None,
    /// Columns may be qualified with its name.
    Unaliased,
    Function,
}

struct Finder<'a> {
    database: &'a str,
    /// Names of the common table expressions in scope, innermost last.
    ctes: Vec<String>,
    /// The WITH clauses of the enclosing queries, each with the number of names in scope outside of it.
    withs: Vec<(Option<With>, usize)>,
    factor: Factor,
    edits: Vec<Edit>,
}

impl VisitorMut for Finder<'_> {
    type Break = Unplaced;

    /// Brings the next common table expression into scope: it sees those before it, and itself only where it is recursive.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Unplaced> {
        let outside = self.ctes.len();
        let mut with = query.with.take();
        let is_recursive = with.as_ref().is_some_and(|with| with.recursive);
        for cte in with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let name = cte.alias.name.value.clone();
            let sees_itself = is_recursive && matches!(cte.query.body.as_ref(), SetExpr::SetOperation { .. });
            if sees_itself {
                self.ctes.push(name.clone());
            }
            cte.query.visit(self)?;
            if !sees_itself {
                self.ctes.push(name);
            }
        }
        self.withs.push((with, outside));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Unplaced> {
        if let Some((with, outside)) = self.withs.pop() {
            query.with = with;
            self.ctes.truncate(outside);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Unplaced> {
        self.factor = match factor {
            TableFactor::Table { name, args: Some(args), .. } => {
                self.tables(name, args)?;
                Factor::Function
            }
            TableFactor::Table { alias: None, .. } => Factor::Unaliased,
            _ => Factor::None,
        };
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Unplaced> {
        let factor = std::mem::replace(&mut self.factor, Factor::None);
        match relation.0.as_slice() {
            [ObjectNamePart::Identifier(name)] if factor != Factor::Function && !self.is_cte(name) => {
                // Columns that are qualified with the bare name, and columns of the result that are named after them,
                // stay as they were.
                let alias = if factor == Factor::Unaliased { format!(" AS {name}") } else { String::new() };
                self.replace(name.span, format!("{}.{name}{alias}", name_of(self.database)))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Finder<'_> {
    fn is_cte(&self, name: &Ident) -> bool {
        self.ctes.iter().any(|cte| same_name(cte, &name.value))
    }

    /// Qualifies the tables that a table function names.
    fn tables(&mut self, function: &ObjectName, args: &TableFunctionArgs) -> ControlFlow<Unplaced> {
        for table in tables_of(function, args) {
            let (name, span) = match table {
                Expr::Identifier(name) => (name.clone(), name.span),
                Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) if !text.contains('.') => (name_of(text), value.span),
                    _ => continue,
                },
                _ => continue,
            };
            if !self.is_cte(&name) {
                self.replace(span, format!("{}.{name}", name_of(self.database)))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn replace(&mut self, span: Span, text: String) -> ControlFlow<Unplaced> {
        if span.start.line == 0 || span.end.line == 0 {
            return ControlFlow::Break(Unplaced);
        }
        self.edits.push(Edit { span, text });
        ControlFlow::Continue(())
    }
}

/// Returns the name as an identifier, quoted where it could be read as something else.
fn name_of(name: &str) -> Ident {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && ALL_KEYWORDS.binary_search(&name.to_ascii_uppercase().as_str()).is_err();
    if is_plain { Ident::new(name) } else { Ident::with_quote('"', name) }
}

fn edited(sql: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|edit| edit.span.start);
    let mut text = String::with_capacity(sql.len() * 2);
    let mut done = 0;
    for Edit { span, text: replacement } in edits {
        let (start, end) = (offset(sql, span.start)?, offset(sql, span.end)?);
        text.push_str(sql.get(done..start)?);
        text.push_str(&replacement);
        done = end;
    }
    text.push_str(sql.get(done..)?);
    Some(text)
}

/// Lines and columns count from 1, and columns are characters.
fn offset(sql: &str, location: Location) -> Option<usize> {
    let (line, column) = (usize::try_from(location.line).ok()?, usize::try_from(location.column).ok()?);
    let start = match line.checked_sub(2) {
        Some(breaks) => sql.match_indices('\n').nth(breaks)?.0 + 1,
        None => 0,
    };
    let rest = sql.get(start..)?;
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column.checked_sub(1)?).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_names_get_the_database() {
        for (written, qualified) in [
            ("SELECT d.a FROM deals d", "SELECT d.a FROM crm.deals d"),
            ("select deals.a\n  from deals -- all\n", "select deals.a\n  from crm.deals AS deals -- all\n"),
            (
                "SELECT 'é' AS e, * FROM \"Deals\", t JOIN u USING (id)",
                "SELECT 'é' AS e, * FROM crm.\"Deals\" AS \"Deals\", crm.t AS t JOIN crm.u AS u USING (id)",
            ),
            (
                "SELECT (SELECT max(x) FROM t) FROM other.t WHERE a IN (SELECT a FROM u)",
                "SELECT (SELECT max(x) FROM crm.t AS t) FROM other.t WHERE a IN (SELECT a FROM crm.u AS u)",
            ),
            ("DESCRIBE deals", "DESCRIBE crm.deals"),
            ("EXPLAIN SELECT 1 FROM deals d", "EXPLAIN SELECT 1 FROM crm.deals d"),
            ("SHOW COLUMNS FROM deals", "SHOW COLUMNS FROM crm.deals"),
            ("SHOW TABLES LIKE 'a%'", "SHOW TABLES FROM crm LIKE 'a%'"),
            (
                "SELECT * FROM graph_traverse('edges', 'a', 'b', 1)",
                "SELECT * FROM graph_traverse(crm.edges, 'a', 'b', 1)",
            ),
            (
                "SELECT x FROM graph_match(nodes => people, node_key => 'id', edges => 'calls', source => 'a', target => 'b', \
                 pattern => '(x)--(y)', columns => 'x') m, hybrid_search(notes, 'body', 'v', 'x', 3) h",
                "SELECT x FROM graph_match(nodes => crm.people, node_key => 'id', edges => crm.calls, source => 'a', target => 'b', \
                 pattern => '(x)--(y)', columns => 'x') m, hybrid_search(crm.notes, 'body', 'v', 'x', 3) h",
            ),
        ] {
            assert_eq!(qualify_tables(written, "crm"), qualified);
        }
        assert_eq!(qualify_tables("SELECT 1 FROM t x", "Order"), "SELECT 1 FROM \"Order\".t x");
        assert_eq!(qualify_tables("SELECT 1 FROM t x", "order"), "SELECT 1 FROM \"order\".t x");
    }

    #[test]
    fn what_a_query_defines_stays() {
        for (written, qualified) in [
            ("WITH t AS (SELECT * FROM t x) SELECT * FROM T", "WITH t AS (SELECT * FROM crm.t x) SELECT * FROM T"),
            (
                "WITH a AS (SELECT 1), b AS (SELECT * FROM a, c x) SELECT * FROM b, (WITH c AS (SELECT 2) SELECT * FROM c)",
                "WITH a AS (SELECT 1), b AS (SELECT * FROM a, crm.c x) SELECT * FROM b, (WITH c AS (SELECT 2) SELECT * FROM c)",
            ),
            (
                "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n, m x",
                "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n, crm.m x",
            ),
        ] {
            assert_eq!(qualify_tables(written, "crm"), qualified);
        }
        for same in [
            "SELECT  *  FROM generate_series(1, 3) AS s(v)",
            "SELECT a.b FROM other.a",
            "SHOW TABLES FROM other",
            "SHOW DATABASES",
            "SELEC 1 FROM a",
            "",
            "SELECT 1 FROM a; SELECT 2 FROM b",
            "SELECT unnest([1, 2])",
        ] {
            assert_eq!(qualify_tables(same, "crm"), same);
        }
    }
}
