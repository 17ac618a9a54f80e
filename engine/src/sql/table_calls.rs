//! Calls of functions in FROM, as those see them that write them out as subqueries.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor,
};

use super::syntax::any_own_expr;

/// A call of a function by one word.
pub(super) struct TableCall<'a> {
    pub(super) name: &'a Ident,
    args: &'a [FunctionArg],
    pub(super) alias: &'a mut Option<TableAlias>,
    /// Whether `WITH ORDINALITY` stands behind it.
    pub(super) is_numbered: bool,
}

/// Returns the call that a relation is; `None` where it is none, or one by a longer name.
pub(super) fn table_call(factor: &mut TableFactor) -> Option<TableCall<'_>> {
    let (name, args, alias, is_numbered) = match factor {
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
            (&*name, args.args.as_slice(), alias, *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (&*name, args.as_slice(), alias, *with_ordinality)
        }
        _ => return None,
    };
    let ObjectName(parts) = name;
    let [ObjectNamePart::Identifier(name)] = parts.as_slice() else { return None };
    Some(TableCall { name, args, alias, is_numbered })
}

impl TableCall<'_> {
    /// Returns the arguments; `None` where one has a name, or is no value.
    pub(super) fn values(&self) -> Option<Vec<Expr>> {
        let values = self.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        });
        values.collect()
    }

    /// Takes the alias, or returns one that is the function's name.
    pub(super) fn take_alias(&mut self, function: &str) -> TableAlias {
        self.alias.take().unwrap_or_else(|| alias_of(function))
    }
}

/// Returns an alias without columns.
pub(super) fn alias_of(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

/// Returns whether an expression has a column outside of its subqueries.
pub(super) fn names_column(expr: &Expr) -> bool {
    any_own_expr(expr, |part| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
}
