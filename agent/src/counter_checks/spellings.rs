//! Values that are the same but for case and the spaces around them: `status = 'paid'` leaves `PAID` out, and groups by
//! such a column are more than there are values.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use sqlparser::ast::{BinaryOperator, Expr, GroupByExpr, Select, Value};

use super::limits::selected_as;
use super::{CheckKind, Checked, Finding, rows_read};
use crate::repair::{Scope, column_of};
use crate::sql_text::{quote_identifier, quoted_table, visit_own_exprs};

/// The shortest text that is no code: of codes, `m` and `M` may be two.
const SHORTEST_TEXT: usize = 2;

/// Looks for values that differ from those of a query in their spelling alone.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let mut findings = Vec::new();
    for ((table, column), texts) in compared_texts(&scope, select) {
        findings.extend(other_spelling(checked, &table, &column, &texts).await);
    }
    if let GroupByExpr::Expressions(keys, _) = &select.group_by {
        for key in keys {
            findings.extend(split_groups(checked, &scope, select, &selected_as(select, key)).await);
        }
    }
    findings
}

/// Finds a value that is one of the texts a column is compared with, in another spelling.
async fn other_spelling(checked: &Checked<'_>, table: &str, column: &str, texts: &[String]) -> Option<Finding> {
    let listed = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| format!("'{}'", text.replace('\'', "''"))).collect();
        quoted.join(", ")
    };
    let folded: Vec<String> = texts.iter().map(|text| text.trim().to_lowercase()).collect();
    let sql = format!(
        "SELECT {column} FROM {table} WHERE lower(trim({column})) IN ({}) AND {column} NOT IN ({}) LIMIT 1",
        listed(&folded),
        listed(texts)
    );
    let other = checked.rows(&sql, 1).await?.pop()?.pop()?;
    let text = texts.iter().find(|text| text.trim().eq_ignore_ascii_case(other.trim())).or_else(|| texts.first())?;
    let message = format!(
        "rows of {table} have '{other}' in {column} as well, which is '{text}' in another spelling; write \
         lower(trim({column})) to have both"
    );
    Some(Finding::new(CheckKind::Literal, message))
}

/// Finds values of one group that another spelling makes two.
async fn split_groups(checked: &Checked<'_>, scope: &Scope, select: &Select, key: &Expr) -> Option<Finding> {
    let (source, column, data_type) = column_of(scope, key)?;
    source.table.as_ref().filter(|_| data_type.is_some_and(DataType::is_string))?;
    let sql = format!(
        "{}SELECT min({key}), max({key}) {} GROUP BY lower(trim({key})) HAVING count(DISTINCT {key}) > 1 LIMIT 1",
        checked.with_clause(),
        rows_read(select)
    );
    let row = checked.rows(&sql, 1).await?.pop()?;
    let [one, other] = row.as_slice() else { return None };
    let message = format!(
        "'{one}' and '{other}' of `{column}` are one value in two spellings, and each is a group of its own; group by \
         lower(trim({key}))"
    );
    Some(Finding::new(CheckKind::Literal, message))
}

/// Returns the texts that columns of tables are to be equal to, by the quoted table and column.
fn compared_texts(scope: &Scope, select: &Select) -> BTreeMap<(String, String), Vec<String>> {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut add = |column: &Expr, text: &Expr| {
        let Expr::Value(value) = text else { return };
        let Value::SingleQuotedString(text) = &value.value else { return };
        let Some((source, name, data_type)) = column_of(scope, column) else { return };
        let Some(table) = source.table.as_ref().filter(|_| data_type.is_some_and(DataType::is_string)) else { return };
        if text.trim().chars().count() >= SHORTEST_TEXT {
            found.entry((quoted_table(table), quote_identifier(name))).or_default().push(text.clone());
        }
    };
    visit_own_exprs(select, |expr| match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            add(left, right);
            add(right, left);
        }
        Expr::InList { expr, list, negated: false } => list.iter().for_each(|text| add(expr, text)),
        _ => {}
    });
    found
}
