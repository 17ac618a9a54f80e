//! What a query does with what it reads, for questions whose words tell too little: whether it takes all rows of a table,
//! whether it is about a column whose name says nothing, what it computes or keeps rows by that the question says in other
//! words, whether it calls a figure otherwise than its column is called, and whether it returns more than the question says.

use querent_catalog::{ColumnInfo, TableInfo};
use querent_proof::common_words::is_common_word;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, SelectItem,
    SetExpr, Statement, TableFactor, UnaryOperator, Value,
};

use crate::coverage::{AskedGap, GapKind, is_opaque_name, misnamed_figure};
use crate::repair::parse_query;

/// The shortest text of a question that a column is looked up by; of a code, a question may have the letters by chance.
const SHORTEST_TEXT: usize = 3;

/// Whether a query counts or lists all rows of one table, so that nothing of a question can have told them apart.
pub(super) fn takes_all_rows(sql: &str) -> bool {
    let Some(parsed) = parse_query(sql) else { return false };
    let Statement::Query(query) = &parsed.statement else { return false };
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_whole_query = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    is_whole_query && reads_one_table(select) && select.projection.iter().all(is_count_or_column)
}

fn reads_one_table(select: &Select) -> bool {
    let [from] = select.from.as_slice() else { return false };
    let is_ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    from.joins.is_empty()
        && is_ungrouped
        && select.selection.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.distinct.is_none()
}

fn is_count_or_column(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
            Expr::Function(function) => {
                let is_plain = function.filter.is_none() && function.over.is_none();
                is_plain && expr.to_string().to_lowercase().starts_with("count(") && !expr.to_string().contains("CASE")
            }
            _ => false,
        },
        SelectItem::Wildcard(_) => true,
        _ => false,
    }
}

/// What a query says by how it is built, and not by names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SaidByQuery {
    /// It computes a figure of several columns, which has no name in the data: a margin, a length of stay.
    computes: bool,
    /// It keeps rows by a truth value or by what is not there: `sea_view`, `returned_on IS NULL`.
    filters_by_flag: bool,
}

impl SaidByQuery {
    /// Whether what is missing may be what the query says so. Who or what is counted has to have a name.
    pub(super) fn may_be(self, gap: &AskedGap, question: &str) -> bool {
        let is_counted = question.to_lowercase().contains("how many");
        match gap.kind {
            GapKind::Thing => self.computes && !is_counted,
            GapKind::Said => self.filters_by_flag || (self.computes && !is_counted),
            GapKind::Counted => false,
        }
    }
}

/// Returns what a query says by how it is built.
pub(super) fn what_is_said(sql: &str) -> SaidByQuery {
    let parsed = parse_query(sql);
    let Some(Statement::Query(query)) = parsed.as_ref().map(|parsed| &parsed.statement) else {
        return SaidByQuery::default();
    };
    let SetExpr::Select(select) = query.body.as_ref() else { return SaidByQuery::default() };
    let computes = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => computes_of_columns(expr),
        _ => false,
    });
    // What is computed within is not looked at.
    let computes = computes || reads_query(select) || query.with.is_some();
    SaidByQuery { computes, filters_by_flag: select.selection.as_ref().is_some_and(has_flag) }
}

fn reads_query(select: &Select) -> bool {
    select.from.iter().any(|from| {
        let joined = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joined).any(|factor| matches!(factor, TableFactor::Derived { .. }))
    })
}

/// Returns the word of a question by which a query calls a figure that is of a column which is called otherwise, and what is
/// said of it.
pub(super) fn figure_called_otherwise(sql: &str, question: &str, read: &[TableInfo]) -> Option<(String, String)> {
    let parsed = parse_query(sql)?;
    let Statement::Query(query) = &parsed.statement else { return None };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    if query.with.is_some() || reads_query(select) {
        return None;
    }
    select.projection.iter().find_map(|item| {
        let SelectItem::ExprWithAlias { expr, alias } = item else { return None };
        let (table, column) = column_called(only_column(expr)?, read)?;
        if !column.data_type.is_numeric() {
            return None;
        }
        let word = misnamed_figure(&alias.value, question, table, column)?;
        let sentence = format!("the query takes `{}.{}` for “{word}”", table.name.table, column.name);
        Some((word, sentence))
    })
}

/// Words that ask for something, in the languages of questions that are judged; not those that begin a question which is
/// answered by yes or no.
const ASKS: [&str; 29] = [
    "who", "which", "what", "whose", "where", "when", "wer", "welche", "welcher", "welches", "welchen", "wo", "wann",
    "wie", "qui", "quel", "quelle", "quels", "quelles", "quién", "qué", "cuál", "qual", "quem", "quais", "chi",
    "quale", "quali", "welke",
];

/// Returns what a question asks for, and what is said of it, where its query returns only columns that it compares with
/// texts of the question: `SELECT name FROM agents WHERE name = 'Cleo Barnes'`.
pub(super) fn repeated_question(sql: &str, question: &str) -> Option<(String, String)> {
    let words: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_asked = |word: &&str| ASKS.contains(&word.to_lowercase().as_str());
    // `At which`.
    let asks = words.iter().take(2).position(is_asked)?;
    let asked = words[asks + 1..].iter().find(|word| !is_common_word(&word.to_lowercase()))?;
    let parsed = parse_query(sql)?;
    let Statement::Query(query) = &parsed.statement else { return None };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let lower_question = question.to_lowercase();
    let says = |text: &str| {
        let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| word.chars().count() >= SHORTEST_TEXT);
        first.is_some_and(|word| lower_question.contains(&word.to_lowercase()))
    };
    let mut looked_for = Vec::new();
    let conditions = select.selection.iter().flat_map(conjuncts);
    for (column, text) in conditions.filter_map(column_and_text) {
        if says(text) {
            looked_for.push(column.to_string().to_lowercase());
        }
    }
    let returned = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr.to_string().to_lowercase()).filter(|column| looked_for.contains(column))
        }
        _ => None,
    };
    let columns: Vec<String> = select.projection.iter().map(returned).collect::<Option<_>>()?;
    let sentence = format!("the query returns only what the question says itself, `{}`", columns.join("`, `"));
    Some(((*asked).to_owned(), sentence))
}

/// Returns the conditions that all hold where a condition does.
fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut all = conjuncts(left);
            all.extend(conjuncts(right));
            all
        }
        Expr::Nested(inner) => conjuncts(inner),
        other => vec![other],
    }
}

/// Returns the column and the text of `column = 'text'`.
fn column_and_text(condition: &Expr) -> Option<(&Expr, &str)> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return None };
    match (left.as_ref(), right.as_ref()) {
        (column @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_)), Expr::Value(value)) => match &value.value {
            Value::SingleQuotedString(text) => Some((column, text.as_str())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the column of a name, and its table, where one table alone has it.
fn column_called<'t>(name: &str, read: &'t [TableInfo]) -> Option<(&'t TableInfo, &'t ColumnInfo)> {
    let of_table = |table: &'t TableInfo| {
        let mut columns = table.columns.iter();
        columns.find(|column| column.name.eq_ignore_ascii_case(name)).map(|column| (table, column))
    };
    let mut found = read.iter().filter_map(of_table);
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// Returns the name of the only column that an expression is of, as it is, summed up or in another unit.
fn only_column(expr: &Expr) -> Option<&str> {
    const AGGREGATES: [&str; 5] = ["sum", "avg", "min", "max", "median"];
    match expr {
        Expr::Identifier(name) => Some(name.value.as_str()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.as_str()),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => only_column(inner),
        Expr::BinaryOp { left, op: BinaryOperator::Divide | BinaryOperator::Multiply, right } => {
            match (left.as_ref(), right.as_ref()) {
                (column, Expr::Value(_)) | (Expr::Value(_), column) => only_column(column),
                _ => None,
            }
        }
        Expr::Function(function) => {
            let is_aggregate = AGGREGATES.contains(&function.name.to_string().to_lowercase().as_str());
            match arguments_of(function).as_slice() {
                [argument] if is_aggregate => only_column(argument),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an expression is arithmetic, or holds some, of two parts that are both of columns.
fn computes_of_columns(expr: &Expr) -> bool {
    use BinaryOperator::{Divide, Minus, Multiply, Plus};
    match expr {
        Expr::BinaryOp { left, op: Plus | Minus | Multiply | Divide, right } => {
            (is_of_columns(left) && is_of_columns(right)) || computes_of_columns(left) || computes_of_columns(right)
        }
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => {
            computes_of_columns(inner)
        }
        // The average of a choice is the share of what is chosen.
        Expr::Function(function) => {
            let is_average = function.name.to_string().eq_ignore_ascii_case("avg");
            let is_choice = |expr: &&Expr| matches!(expr, Expr::Case { .. });
            let arguments = arguments_of(function);
            (is_average && arguments.iter().any(is_choice)) || arguments.into_iter().any(computes_of_columns)
        }
        _ => false,
    }
}

/// Whether an expression has a column in it, as far as arithmetic and calls go.
fn is_of_columns(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Case { .. } | Expr::Subquery(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => {
            is_of_columns(inner)
        }
        Expr::BinaryOp { left, right, .. } => is_of_columns(left) || is_of_columns(right),
        Expr::Function(function) => {
            function.name.to_string().eq_ignore_ascii_case("count")
                || arguments_of(function).into_iter().any(is_of_columns)
        }
        _ => false,
    }
}

fn arguments_of(function: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let arguments = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    });
    arguments.collect()
}

/// Whether a condition has a part that is a truth value's column, or asks whether a value is there.
fn has_flag(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            has_flag(left) || has_flag(right)
        }
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => has_flag(inner),
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_) => true,
        _ => false,
    }
}

/// Whether a query is about a column, of the tables that it reads, whose name says nothing: neither one that several tables
/// are joined by, nor one that only finds a text of the question.
pub(super) fn uses_opaque_column(query: &str, question: &str, read: &[TableInfo], tables: &[TableInfo]) -> bool {
    let (lower_query, lower_question) = (query.to_lowercase(), question.to_lowercase());
    let has = |table: &TableInfo, name: &str| table.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let is_shared = |name: &str| tables.iter().filter(|table| has(table, name)).count() > 1;
    // A comment says what a column holds.
    let unexplained = read.iter().flat_map(|table| &table.columns).filter(|column| column.comment.is_none());
    unexplained.map(|column| column.name.as_str()).any(|name| {
        is_opaque_name(name)
            && !is_shared(name)
            && is_used_otherwise(&lower_query, &lower_question, &name.to_lowercase())
    })
}

/// Whether a query uses a column otherwise than to find a text that the question says; all in lower case.
fn is_used_otherwise(query: &str, question: &str, column: &str) -> bool {
    let is_of_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    query.match_indices(column).any(|(at, _)| {
        let after = &query[at + column.len()..];
        if is_of_word(query[..at].chars().next_back()) || is_of_word(after.chars().next()) {
            return false;
        }
        let compared = after.trim_start_matches(['"', '`', ']', ')', ' ']);
        let operand = ["==", "=~", "=", "like ", "ilike "].iter().find_map(|operator| compared.strip_prefix(operator));
        let text = operand
            .and_then(|operand| operand.trim_start().strip_prefix('\''))
            .and_then(|quoted| quoted.split('\'').next())
            .map(|text| text.trim_matches(|c: char| !c.is_alphanumeric()));
        !text.is_some_and(|text| text.chars().count() >= SHORTEST_TEXT && question.contains(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_query_computes_and_keeps_rows_by_is_said() {
        let gap =
            |kind: GapKind| AskedGap { phrase: "gross margin".to_owned(), words: vec!["margin".to_owned()], kind };
        let may_be = |sql: &str, kind: GapKind| what_is_said(sql).may_be(&gap(kind), "What is our gross margin?");
        for sql in [
            "SELECT sum(net - qty * cost) AS margin FROM sales",
            "SELECT count(b.id) / count(DISTINCT r.id) AS x FROM b JOIN r ON r.id = b.r",
            "SELECT sum(CASE WHEN late THEN 1 ELSE 0 END) * 1.0 / count(*) FROM d",
        ] {
            assert!(may_be(sql, GapKind::Thing), "{sql}");
            assert!(!may_be(sql, GapKind::Counted), "{sql}");
        }
        assert!(may_be("SELECT avg(CASE WHEN late THEN 1.0 ELSE 0 END) AS x FROM d", GapKind::Thing));
        for sql in ["SELECT avg(price) FROM t", "SELECT sum(bytes) / 1024.0 FROM t", "SELECT count(*) FROM t"] {
            assert!(!may_be(sql, GapKind::Thing), "{sql}");
        }
        assert!(may_be("SELECT count(*) FROM rooms WHERE sea_view AND floor = 3", GapKind::Said));
        assert!(may_be("SELECT id FROM loans WHERE returned_on IS NULL", GapKind::Said));
        assert!(may_be("SELECT avg(clsd - opnd) AS days FROM wo", GapKind::Said));
        assert!(!may_be("SELECT count(*) FROM rooms WHERE floor = 3", GapKind::Said));
    }

    #[test]
    fn a_query_that_returns_what_the_question_says_repeats_it() {
        let repeated = |sql: &str, question: &str| repeated_question(sql, question).map(|(asked, _)| asked);
        for (sql, question, asked) in [
            ("SELECT agt_nm FROM agt WHERE agt_nm = 'Cleo Barnes'", "What salary does Cleo Barnes get?", "salary"),
            ("SELECT r.no FROM r WHERE r.no = 'IC 202' AND r.up", "Who drove IC 202?", "drove"),
            ("SELECT name1 FROM k WHERE (name1 = 'Huber GmbH')", "Welcher Vertreter betreut Huber?", "Vertreter"),
        ] {
            assert_eq!(repeated(sql, question).as_deref(), Some(asked), "{question}");
        }
        for (sql, question) in [
            ("SELECT nm FROM t WHERE nm = 'Ana'", "Is there somebody called Ana?"),
            ("SELECT nm, fee FROM t WHERE nm = 'Ana'", "What did Ana pay?"),
            ("SELECT nm FROM t WHERE nm = 'Ana' OR nm = 'Ben'", "Who of Ana and Ben is there?"),
            ("SELECT nm FROM t WHERE town = 'York'", "Who lives in York?"),
            ("SELECT count(*) FROM t WHERE town = 'York'", "How many people live in York?"),
            ("SELECT kind FROM t WHERE kind = 'sedan'", "Which cars are saloons?"),
        ] {
            assert_eq!(repeated(sql, question), None, "{question}");
        }
    }

    #[test]
    fn the_only_column_of_a_figure_is_found() {
        let column = |expr: &str| {
            let parsed = parse_query(&format!("SELECT {expr} AS x FROM t")).unwrap();
            let Statement::Query(query) = &parsed.statement else { panic!("{expr}") };
            let SetExpr::Select(select) = query.body.as_ref() else { panic!("{expr}") };
            let SelectItem::ExprWithAlias { expr, .. } = &select.projection[0] else { panic!("no alias") };
            only_column(expr).map(str::to_owned)
        };
        for expr in ["price", "t.price", "avg(t.price)", "sum(price) / 60.0", "max(CAST(price AS DOUBLE))"] {
            assert_eq!(column(expr).as_deref(), Some("price"), "{expr}");
        }
        for expr in ["count(price)", "price - cost", "sum(price * qty)", "price > 5", "1"] {
            assert_eq!(column(expr), None, "{expr}");
        }
    }

    #[test]
    fn what_a_query_takes_and_uses_is_read() {
        assert!(takes_all_rows("SELECT count(*) AS n FROM cntr"));
        assert!(takes_all_rows("SELECT nm, dob FROM anml ORDER BY dob"));
        for sql in [
            "SELECT count(*) AS n FROM cntr WHERE reefer",
            "SELECT count(DISTINCT dir) AS n FROM mv GROUP BY dir",
            "SELECT sum(qty) AS n FROM ord_ln",
            "SELECT nm FROM anml ORDER BY wgt DESC LIMIT 1",
            "SELECT count(CASE WHEN reefer THEN 1 END) AS n FROM cntr",
        ] {
            assert!(!takes_all_rows(sql), "{sql}");
        }
        let question = "who is the captain of the baltic wind?";
        assert!(!is_used_otherwise("select built from vsl where nm = 'baltic wind'", question, "nm"));
        assert!(!is_used_otherwise("select nmr from vsl where lower(nm) like '%wind%'", question, "nm"));
        assert!(is_used_otherwise("select opr from vsl where nm = 'baltic wind'", question, "opr"));
        assert!(is_used_otherwise("select count(*) from subscr where st = 'a'", question, "st"));
    }
}
