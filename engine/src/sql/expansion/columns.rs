//! Which columns `*`, `* EXCLUDE (...)` and `COLUMNS(...)` choose among those of a relation.

use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName,
    ObjectNamePart, SelectItem, Value, ValueWithSpan, WildcardAdditionalOptions,
};
use regex::Regex;

use crate::error::EngineError;
use crate::governor::MAX_PATTERN_BYTES;
use crate::identifiers::same_name;

const COLUMNS: &str = "columns";

/// Returns the columns that `*` or `COLUMNS(...)` stands for, among `all`; `None` where the item is neither.
pub(in crate::sql) fn chosen_columns(item: &SelectItem, all: &[String]) -> Result<Option<Vec<String>>> {
    match item {
        SelectItem::Wildcard(options) => Ok(Some(without_excluded(options, all)?)),
        SelectItem::UnnamedExpr(Expr::Function(function)) if is_columns(function) => {
            let chosen = columns_call(function, all, None)?;
            Ok(Some(chosen.into_iter().filter_map(|chosen| all.get(chosen.index).cloned()).collect()))
        }
        _ => Ok(None),
    }
}

/// A column that `COLUMNS(...)` chose, and what its pattern's groups matched.
#[derive(Clone)]
pub(super) struct Chosen {
    /// Which of all columns it is; two of a join may have one name.
    pub(super) index: usize,
    pub(super) groups: Vec<String>,
}

pub(super) fn is_columns(function: &Function) -> bool {
    matches!(function.name.0.as_slice(), [ObjectNamePart::Identifier(name)] if name.value.eq_ignore_ascii_case(COLUMNS))
}

/// Returns the columns that a call of `COLUMNS` chooses among `all`; `tables` are the tables that they are of, where they are
/// known. Errors: `sql_plan_error`, `column_not_found`.
pub(super) fn columns_call(
    function: &Function,
    all: &[String],
    tables: Option<&[Option<String>]>,
) -> Result<Vec<Chosen>> {
    const USAGE: &str = "COLUMNS takes *, table.*, * EXCLUDE (column), a 'regular expression', ['a', 'b'], or a condition on \
                         the column's name, c -> c LIKE 'x%'";
    let wrong = || -> DataFusionError { EngineError::Plan { message: USAGE.into() }.into() };
    let FunctionArguments::List(list) = &function.args else { return Err(wrong()) };
    let [FunctionArg::Unnamed(argument)] = list.args.as_slice() else { return Err(wrong()) };
    let plain = |(index, name): (usize, &String)| Chosen { index, groups: vec![name.clone()] };
    let numbered = || all.iter().enumerate();
    let chosen: Vec<Chosen> = match argument {
        FunctionArgExpr::Wildcard => numbered().map(plain).collect(),
        FunctionArgExpr::WildcardWithOptions(options) if changes(options) => return Err(wrong()),
        FunctionArgExpr::WildcardWithOptions(options) => {
            let kept = without_excluded(options, all)?;
            numbered().filter(|(_, name)| kept.contains(name)).map(plain).collect()
        }
        FunctionArgExpr::Expr(Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(pattern), .. })) => {
            if pattern.len() > MAX_PATTERN_BYTES {
                let message = format!("a text of more than {MAX_PATTERN_BYTES} bytes is no pattern");
                return Err(EngineError::Plan { message }.into());
            }
            let pattern = Regex::new(pattern).map_err(|error| EngineError::Plan {
                message: format!("`{pattern}` is no regular expression: {error}"),
            })?;
            let matched = |(index, name): (usize, &String)| {
                let captures = pattern.captures(name)?;
                let groups = captures.iter().map(|group| group.map_or("", |group| group.as_str()).to_owned());
                Some(Chosen { index, groups: groups.collect() })
            };
            numbered().filter_map(matched).collect()
        }
        FunctionArgExpr::Expr(Expr::Array(array)) => {
            let mut chosen = Vec::new();
            for elem in &array.elem {
                let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(name), .. }) = elem else {
                    return Err(wrong());
                };
                let name = spelled(name, all)?;
                chosen.extend(numbered().find(|(_, own)| **own == name).map(plain));
            }
            chosen
        }
        FunctionArgExpr::Expr(Expr::Wildcard(_)) => numbered().map(plain).collect(),
        FunctionArgExpr::QualifiedWildcard(table) | FunctionArgExpr::Expr(Expr::QualifiedWildcard(table, _)) => {
            let table = table.0.last().and_then(ObjectNamePart::as_ident).map(|ident| ident.value.clone());
            let (Some(table), Some(tables)) = (table, tables) else { return Err(wrong()) };
            let is_own = |index: usize| matches!(tables.get(index), Some(Some(own)) if same_name(own, &table));
            numbered().filter(|(index, _)| is_own(*index)).map(plain).collect()
        }
        FunctionArgExpr::Expr(_) => return Err(wrong()),
    };
    if chosen.is_empty() {
        let message = format!("`{function}` chooses none of the columns {}", all.join(", "));
        return Err(EngineError::Plan { message }.into());
    }
    Ok(chosen)
}

/// Returns whether something else than EXCLUDE stands behind a star.
fn changes(options: &WildcardAdditionalOptions) -> bool {
    options.opt_replace.is_some() || options.opt_rename.is_some() || options.opt_ilike.is_some()
}

pub(super) fn spelled(name: &str, all: &[String]) -> Result<String> {
    let found = all.iter().find(|column| *column == name).or_else(|| all.iter().find(|column| same_name(column, name)));
    found.cloned().ok_or_else(|| {
        let hint = match querent_kql::nearest_name(name, all.iter().map(String::as_str)) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; the columns are {}", all.join(", ")),
        };
        EngineError::ColumnNotFound { column: name.to_owned(), hint }.into()
    })
}

pub(super) fn without_excluded(options: &WildcardAdditionalOptions, all: &[String]) -> Result<Vec<String>> {
    let last = |name: &ObjectName| {
        name.0.last().and_then(ObjectNamePart::as_ident).map(|ident| ident.value.clone()).unwrap_or_default()
    };
    let mut excluded: Vec<String> = match &options.opt_exclude {
        None => Vec::new(),
        Some(ExcludeSelectItem::Single(name)) => vec![last(name)],
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().map(last).collect(),
    };
    if let Some(ExceptSelectItem { first_element, additional_elements }) = &options.opt_except {
        excluded.extend(std::iter::once(first_element).chain(additional_elements).map(|ident| ident.value.clone()));
    }
    for name in &excluded {
        spelled(name, all)?;
    }
    Ok(all.iter().filter(|column| !excluded.iter().any(|name| same_name(name, column))).cloned().collect())
}
