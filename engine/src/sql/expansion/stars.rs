//! Select lists in which `*`, `COLUMNS(...)` and `value.*` are written out.

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, RenameSelectItem, Select, SelectItem, SelectItemQualifiedWildcardKind,
    WildcardAdditionalOptions,
};

use super::columns::{spelled, without_excluded};
use super::{Source, expanded, has_columns};
use crate::error::EngineError;
use crate::identifiers::same_name;
use crate::sql::shorthand::{call, text};
use crate::sql::syntax::has_relation;

/// Returns whether a select list has `name.*` of what is no relation of its FROM clause: of a struct, if anything.
pub(super) fn names_struct(select: &Select) -> bool {
    select.projection.iter().any(|item| match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            !names_relation(select, name)
        }
        _ => false,
    })
}

/// Returns whether a select list has a `*` of all columns that can be written out. `* ILIKE` is the planner's.
pub(super) fn has_star(select: &Select) -> bool {
    let mut stars = select.projection.iter().filter_map(|item| match item {
        SelectItem::Wildcard(options) => Some(options.opt_ilike.is_none()),
        _ => None,
    });
    stars.next().is_some_and(|first| first && stars.all(|other| other))
}

/// Returns whether a name is one of a relation of the FROM clause.
pub(super) fn names_relation(select: &Select, name: &ObjectName) -> bool {
    name.0.last().and_then(ObjectNamePart::as_ident).is_none_or(|last| has_relation(&select.from, last))
}

/// Returns what `value.*` of a struct stands for, each of its fields; `None` where there is no such column.
fn fields_of(name: &ObjectName, sources: &[Source]) -> Option<Vec<Source>> {
    let (table, column) = match name.0.as_slice() {
        [ObjectNamePart::Identifier(column)] => (None, column),
        [ObjectNamePart::Identifier(table), ObjectNamePart::Identifier(column)] => (Some(table), column),
        _ => return None,
    };
    let is_of_table = |source: &Source| match (table, &source.table) {
        (None, _) => true,
        (Some(table), own) => own.as_ref().is_some_and(|own| same_name(own, &table.value)),
    };
    let is_named =
        |source: &&Source| same_name(&source.name, &column.value) && !source.fields.is_empty() && is_of_table(source);
    let source = sources.iter().find(is_named)?;
    let field = |field: &String| Source {
        name: field.clone(),
        expr: call("get_field", vec![source.expr.clone(), text(field)]),
        table: None,
        fields: Vec::new(),
    };
    Some(source.fields.iter().map(field).collect())
}

/// The names of chosen columns in one select list, where each may stand once: the second `a` is `a_1`.
#[derive(Default)]
struct ChosenNames(Vec<String>);

impl ChosenNames {
    fn unique(&mut self, name: String) -> Ident {
        let mut candidate = name.clone();
        let mut number = 0;
        while self.0.iter().any(|used| same_name(used, &candidate)) {
            number += 1;
            candidate = format!("{name}_{number}");
        }
        self.0.push(candidate.clone());
        Ident::with_quote('"', candidate)
    }
}

/// Returns whether `* RENAME` or `* REPLACE` stands there: the planner knows none of the first, and passes over what is no column in
/// the second. Beside ILIKE the second is the planner's.
pub(super) fn changes_columns(options: &WildcardAdditionalOptions) -> bool {
    options.opt_rename.is_some() || (options.opt_replace.is_some() && options.opt_ilike.is_none())
}

/// Writes out `COLUMNS(...)`, `* RENAME` and `* REPLACE` in a select list, with `all` every `*`.
pub(super) fn write_out_stars(select: &mut Select, sources: &[Source], all: bool) -> Result<()> {
    let mut items = Vec::new();
    let mut names = ChosenNames::default();
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::UnnamedExpr(expr) if has_columns(&expr) => {
                for (expr, chosen) in expanded(&expr, sources)? {
                    let Some(source) = sources.get(chosen.index) else { continue };
                    let name = source.name.clone();
                    items.push(SelectItem::ExprWithAlias { expr, alias: names.unique(name) });
                }
            }
            SelectItem::ExprWithAlias { expr, alias } if has_columns(&expr) => {
                for (expr, chosen) in expanded(&expr, sources)? {
                    let mut name = alias.value.clone();
                    for (index, group) in chosen.groups.iter().enumerate() {
                        name = name.replace(&format!("\\{index}"), group);
                    }
                    items.push(SelectItem::ExprWithAlias { expr, alias: names.unique(name) });
                }
            }
            SelectItem::Wildcard(options) if all || changes_columns(&options) => {
                items.extend(renamed(&options, sources, None)?);
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                if !names_relation(select, &name)
                    && let Some(fields) = fields_of(&name, sources)
                {
                    for item in renamed(&options, &fields, None)? {
                        items.push(match item {
                            SelectItem::ExprWithAlias { expr, alias } => {
                                SelectItem::ExprWithAlias { expr, alias: names.unique(alias.value) }
                            }
                            other => other,
                        });
                    }
                } else if changes_columns(&options) {
                    let table = name.0.last().and_then(ObjectNamePart::as_ident).map(|ident| ident.value.clone());
                    items.extend(renamed(&options, sources, table.as_deref())?);
                } else {
                    let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
                    items.push(SelectItem::QualifiedWildcard(kind, options));
                }
            }
            other => items.push(other),
        }
    }
    select.projection = items;
    Ok(())
}

/// Writes out `* RENAME (a AS b)` and `* REPLACE (x AS a)`, with what else stands behind the star.
pub(super) fn renamed(
    options: &WildcardAdditionalOptions,
    sources: &[Source],
    table: Option<&str>,
) -> Result<Vec<SelectItem>> {
    if options.opt_ilike.is_some() {
        let message = "RENAME and ILIKE do not stand together; name the columns".into();
        return Err(EngineError::Plan { message }.into());
    }
    let is_of_table =
        |source: &&Source| table.is_none_or(|table| source.table.as_ref().is_some_and(|own| same_name(own, table)));
    let sources: Vec<&Source> = sources.iter().filter(is_of_table).collect();
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    let renames = match &options.opt_rename {
        None => Vec::new(),
        Some(RenameSelectItem::Single(one)) => vec![one.clone()],
        Some(RenameSelectItem::Multiple(all)) => all.clone(),
    };
    for rename in &renames {
        spelled(&rename.ident.value, &names)?;
    }
    for replaced in options.opt_replace.iter().flat_map(|replace| &replace.items) {
        spelled(&replaced.column_name.value, &names)?;
    }
    let kept = without_excluded(options, &names)?;
    let mut items = Vec::new();
    for source in sources.iter().filter(|source| kept.contains(&source.name)) {
        let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
        let replaced = replaced.into_iter().find(|element| same_name(&element.column_name.value, &source.name));
        let expr = replaced.map_or_else(|| source.expr.clone(), |element| element.expr.clone());
        let rename = renames.iter().find(|rename| same_name(&rename.ident.value, &source.name));
        if rename.is_none() && matches!(expr, Expr::CompoundIdentifier(_)) {
            // Columns of two tables may have one name.
            items.push(SelectItem::UnnamedExpr(expr));
            continue;
        }
        let alias = rename.map_or_else(|| Ident::with_quote('"', &source.name), |rename| rename.alias.clone());
        items.push(SelectItem::ExprWithAlias { expr, alias });
    }
    Ok(items)
}
