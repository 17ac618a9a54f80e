//! Names of tables. A name that finds nothing is looked for among the tables at hand: by itself in whichever database,
//! as the name of a database, and by its likeness. Of several the one is meant whose database has all tables that the
//! query names, then the one whose columns the query asks for, then one of a database that the query names anyway, then
//! the best-ranked.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use querent_catalog::{TableInfo, TableName};
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Statement, TableAlias, TableFactor, Visit, VisitMut, Visitor,
    VisitorMut,
};

use super::near::{Likeness, nearest};
use super::{KnownTables, Repair, RepairKind, TablesAtHand};
use crate::sql_text::{quote_identifier, quoted_table};

/// Other tables that a repair names.
const NAMED_OTHERS: usize = 3;

/// Returns the names of the tables that a statement reads, without common table expressions.
pub(super) fn names_in(statement: &Statement) -> Vec<ObjectName> {
    let mut finder = NameFinder { names: Vec::new(), ctes: common_tables(statement) };
    let _: ControlFlow<()> = statement.visit(&mut finder);
    finder.names
}

/// Returns the full name that a written one stands for.
pub(super) fn full_name(name: &ObjectName, database: &str) -> Option<TableName> {
    let mut parts = name.0.iter().rev().map(|part| part.as_ident());
    let table = parts.next()??.value.clone();
    let database = match parts.next() {
        Some(part) => part?.value.clone(),
        None => database.to_owned(),
    };
    Some(TableName { database, table })
}

/// Writes the database before the bare names of the tables that it has among `tables`. Returns whether there were any, and no
/// other bare name of a table.
pub(super) fn qualify(statement: &mut Statement, database: &str, tables: &[TableInfo]) -> bool {
    let ctes = common_tables(statement);
    let mut qualifier = Qualifier { database, tables, ctes, is_whole: true, changed: false };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut qualifier);
    qualifier.changed && qualifier.is_whole
}

struct Qualifier<'a> {
    database: &'a str,
    tables: &'a [TableInfo],
    ctes: BTreeSet<String>,
    is_whole: bool,
    changed: bool,
}

impl VisitorMut for Qualifier<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && let [ObjectNamePart::Identifier(only)] = name.0.as_slice()
            && !is_common_table(name, &self.ctes)
        {
            let is_meant = |info: &TableInfo| {
                info.name.database == self.database && info.name.table.eq_ignore_ascii_case(&only.value)
            };
            match self.tables.iter().find(|info| is_meant(info)) {
                Some(info) => {
                    let parts = [&info.name.database, &info.name.table].map(|part| identifier(part));
                    *name = ObjectName(parts.map(ObjectNamePart::Identifier).into());
                    self.changed = true;
                }
                None => self.is_whole = false,
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns an identifier that is quoted where it must be.
pub(super) fn identifier(name: &str) -> Ident {
    if quote_identifier(name).starts_with('"') { Ident::with_quote('"', name) } else { Ident::new(name) }
}

struct NameFinder {
    names: Vec<ObjectName>,
    ctes: BTreeSet<String>,
}

impl Visitor for NameFinder {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && !is_common_table(name, &self.ctes)
        {
            self.names.push(name.clone());
        }
        ControlFlow::Continue(())
    }
}

fn is_common_table(name: &ObjectName, ctes: &BTreeSet<String>) -> bool {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(only)] => ctes.contains(&only.value.to_lowercase()),
        _ => false,
    }
}

/// Returns the lowercase names of the common table expressions of a statement.
fn common_tables(statement: &Statement) -> BTreeSet<String> {
    struct CteFinder(BTreeSet<String>);
    impl Visitor for CteFinder {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
            self.0.extend(ctes.map(|cte| cte.alias.name.value.to_lowercase()));
            ControlFlow::Continue(())
        }
    }
    let mut finder = CteFinder(BTreeSet::new());
    let _: ControlFlow<()> = statement.visit(&mut finder);
    finder.0
}

/// The columns that a statement names, in lower case: with what they are qualified by, and without.
#[derive(Default)]
struct QueryColumns {
    qualified: BTreeSet<(String, String)>,
    bare: BTreeSet<String>,
}

impl Visitor for QueryColumns {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => {
                self.bare.insert(ident.value.to_lowercase());
            }
            Expr::CompoundIdentifier(parts) => {
                if let [.., qualifier, column] = parts.as_slice() {
                    self.qualified.insert((qualifier.value.to_lowercase(), column.value.to_lowercase()));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Rewrites the names that find no table.
pub(super) fn repair(
    statement: &mut Statement,
    at_hand: &TablesAtHand,
    known: &KnownTables,
    database: &str,
    repairs: &mut Vec<Repair>,
) {
    let mut named = QueryColumns::default();
    let _: ControlFlow<()> = Visit::visit(&*statement, &mut named);
    let names = names_in(statement);
    let found = names.iter().filter_map(|name| full_name(name, database)).filter(|name| known.get(name).is_some());
    let databases: BTreeSet<String> = found.map(|name| name.database.to_lowercase()).collect();
    let ctes = common_tables(statement);
    let read: Vec<TableName> = names.iter().filter_map(|name| full_name(name, database)).collect();
    let whole = whole_databases(&read, at_hand, known);
    let mut resolver = Resolver { at_hand, known, database, named, whole, databases, ctes, repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut resolver);
}

/// Returns the lowercase names of the databases that have every table that a query of several names: one query seldom
/// joins tables of two.
fn whole_databases(read: &[TableName], at_hand: &TablesAtHand, known: &KnownTables) -> BTreeSet<String> {
    let lower = |name: &str| name.to_lowercase();
    let wanted: BTreeSet<String> = read.iter().map(|name| lower(&name.table)).collect();
    if wanted.len() < 2 {
        return BTreeSet::new();
    }
    let mut tables: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for info in &at_hand.tables {
        tables.entry(lower(&info.name.database)).or_default().push(&info.name.table);
    }
    // What is found by its database stays there.
    let found = read.iter().filter(|name| known.get(name).is_some()).map(|name| lower(&name.database));
    let named: BTreeSet<String> = found.collect();
    let is_whole = |database: &String, tables: &[&str]| {
        named.iter().all(|name| name == database) && wanted.iter().all(|name| same_words(name, tables).is_some())
    };
    tables.into_iter().filter(|(database, tables)| is_whole(database, tables)).map(|(database, _)| database).collect()
}

/// Returns the one of some tables whose name has the same words, in the singular or the plural.
fn same_words<'t>(name: &str, tables: &[&'t str]) -> Option<&'t str> {
    let (near, likeness) = nearest(name, tables.iter().copied())?;
    (likeness <= Likeness::Words).then_some(near)
}

struct Resolver<'a> {
    at_hand: &'a TablesAtHand,
    known: &'a KnownTables,
    database: &'a str,
    named: QueryColumns,
    /// The lowercase names of the databases that have all tables that the query names.
    whole: BTreeSet<String>,
    /// The lowercase names of the databases of tables that are found.
    databases: BTreeSet<String>,
    ctes: BTreeSet<String>,
    repairs: &'a mut Vec<Repair>,
}

impl VisitorMut for Resolver<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, args: None, alias, .. } = factor else { return ControlFlow::Continue(()) };
        if is_common_table(name, &self.ctes) {
            return ControlFlow::Continue(());
        }
        let Some(written) = full_name(name, self.database) else { return ControlFlow::Continue(()) };
        if let Some(info) = self.known.get(&written) {
            // BigQuery's project, and the catalog of others.
            if name.0.len() > 2 {
                let parts = [identifier(&info.name.database), identifier(&info.name.table)];
                let short = ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect());
                let why = "a table is named by its database and itself here";
                self.repairs.push(Repair::new(RepairKind::Table, name.to_string(), short.to_string(), why));
                *name = short;
            }
            return ControlFlow::Continue(());
        }
        let binding = alias.as_ref().map_or(written.table.as_str(), |alias| alias.name.value.as_str()).to_lowercase();
        let Some((table, why)) = self.meant(&written, name.0.len() > 1, &binding) else {
            return ControlFlow::Continue(());
        };
        let (new, text) = (table.name.clone(), name.to_string());
        if alias.is_none() && !new.table.eq_ignore_ascii_case(&written.table) {
            *alias =
                Some(TableAlias { explicit: true, name: identifier(&written.table), columns: Vec::new(), at: None });
        }
        let parts = [identifier(&new.database), identifier(&new.table)];
        *name = ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect());
        self.databases.insert(new.database.to_lowercase());
        let repair = Repair::new(RepairKind::Table, text, quoted_table(&new), why);
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
        ControlFlow::Continue(())
    }
}

impl Resolver<'_> {
    /// Returns the table that a name means, and why.
    fn meant(&self, written: &TableName, has_database: bool, binding: &str) -> Option<(&TableInfo, String)> {
        let tables = &self.at_hand.tables;
        let same = |left: &str, right: &str| left.eq_ignore_ascii_case(right);
        // `countries` of a database that has all else is its `country`, and not another's table of that very name.
        let is_of_whole = |info: &TableInfo| {
            self.whole.contains(&info.name.database.to_lowercase())
                && same_words(&written.table, &[info.name.table.as_str()]).is_some()
        };
        let is_meant = |info: &&TableInfo| same(&info.name.table, &written.table) || is_of_whole(info);
        let mut by_name: Vec<&TableInfo> = tables.iter().filter(is_meant).collect();
        // Of two tables of such a database, `country` and `countries`, the one of the very name.
        let is_exact = |info: &&TableInfo| same(&info.name.table, &written.table) && is_of_whole(info);
        if by_name.iter().any(is_exact) {
            by_name.retain(is_exact);
        }
        if !by_name.is_empty() {
            let best = self.best(by_name, binding);
            let why = match has_database {
                true => format!("`{}` has no such table", written.database),
                false if !same(&best.0.name.table, &written.table) => format!(
                    "`{}` has the table `{}`, and the other tables of the query",
                    best.0.name.database, best.0.name.table
                ),
                false => format!("the shown table of that name is in the database `{}`", best.0.name.database),
            };
            return Some(with_others(best, why));
        }
        let of_database = |database: &str| -> Vec<&TableInfo> {
            tables.iter().filter(|info| same(&info.name.database, database)).collect()
        };
        // `FROM poker_player`, and `FROM poker_player.players` of another name.
        let mut databases = vec![written.table.as_str()];
        if has_database {
            // A table of the right database under another name comes before one that has the table's name as its own.
            let inside = of_database(&written.database);
            let names = inside.iter().map(|info| info.name.table.as_str());
            if let Some((near, _)) = nearest(&written.table, names) {
                let info = inside.into_iter().find(|info| info.name.table == near)?;
                return Some((info, format!("`{}` has the table `{near}`", written.database)));
            }
            databases.push(written.database.as_str());
        }
        for name in databases {
            let inside = of_database(name);
            if !inside.is_empty() {
                let best = self.best(inside, binding);
                let why = format!("`{name}` is a database, and `{}` its table that fits the query", best.0.name.table);
                return Some(with_others(best, why));
            }
        }
        if let Some((near, _)) = nearest(&written.table, tables.iter().map(|info| info.name.table.as_str())) {
            let named: Vec<&TableInfo> = tables.iter().filter(|info| same(&info.name.table, near)).collect();
            return Some(with_others(
                self.best(named, binding),
                "there is no such table; this one has nearly that name".to_owned(),
            ));
        }
        let (near, _) = nearest(&written.table, tables.iter().map(|info| info.name.database.as_str()))?;
        let best = self.best(of_database(near), binding);
        let why = format!(
            "`{near}` is a database of nearly that name, and `{}` its table that fits the query",
            best.0.name.table
        );
        Some(with_others(best, why))
    }

    /// Returns the table of several that fits the query best, and the others that fit as well.
    fn best<'t>(&self, candidates: Vec<&'t TableInfo>, binding: &str) -> (&'t TableInfo, Vec<&'t TableInfo>) {
        let mut ranked: Vec<((bool, i64, bool), &TableInfo)> = candidates
            .into_iter()
            .map(|info| {
                let database = info.name.database.to_lowercase();
                let (is_whole, is_near) = (self.whole.contains(&database), self.databases.contains(&database));
                ((is_whole, self.fit(info, binding), is_near), info)
            })
            .collect();
        // Stable: of equals the best-ranked stays first.
        ranked.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        let (rank, best) = ranked[0];
        let equals = ranked[1..].iter().filter(|(other, _)| *other == rank).map(|(_, info)| *info);
        (best, equals.collect())
    }

    /// Counts the columns that the query asks of a table under the name `binding` and that it has, in other letters
    /// (`FirstName` for `first_name`) as well.
    fn fit(&self, info: &TableInfo, binding: &str) -> i64 {
        let has = |column: &str| {
            let names = info.columns.iter().map(|known| known.name.as_str());
            nearest(column, names).is_some_and(|(_, likeness)| likeness <= Likeness::Words)
        };
        let mut fit = 0;
        for (_, column) in self.named.qualified.iter().filter(|(qualifier, _)| qualifier == binding) {
            fit += if has(column) { 2 } else { -2 };
        }
        fit + i64::try_from(self.named.bare.iter().filter(|column| has(column)).count()).unwrap_or_default()
    }
}

/// Adds to a reason the tables that fit as well.
fn with_others<'t>((best, others): (&'t TableInfo, Vec<&'t TableInfo>), mut why: String) -> (&'t TableInfo, String) {
    let names: Vec<String> = others.iter().take(NAMED_OTHERS).map(|info| format!("`{}`", info.name)).collect();
    if !names.is_empty() {
        why.push_str(&format!("; the best-ranked of several, others are {}", names.join(", ")));
    }
    (best, why)
}
