//! Fields of a lambda's parameters: `list_transform(rows, r -> r.price * r.count)`. The planner takes `r.price` for a column of a
//! table `r`; written as a subscript it is the field of the value.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Subscript, VisitMut, VisitorMut};

use super::shorthand::text;
use crate::identifiers::same_name;

/// Writes out the fields of the parameters of a lambda; other expressions stay as they are.
pub(super) fn write_out_fields(expr: &mut Expr) {
    let Expr::Lambda(lambda) = expr else { return };
    let names: Vec<String> = lambda.params.iter().map(|param| param.name.value.clone()).collect();
    let _: ControlFlow<()> = VisitMut::visit(&mut *lambda.body, &mut ParameterFields(&names));
}

struct ParameterFields<'a>(&'a [String]);

impl VisitorMut for ParameterFields<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(idents) = expr
            && let Some((param, fields)) = idents.split_first()
            && self.0.iter().any(|name| same_name(name, &param.value))
        {
            let fields = fields.iter().map(|field| {
                let index = text(&field.value);
                AccessExpr::Subscript(Subscript::Index { index })
            });
            let access_chain = fields.collect();
            *expr = Expr::CompoundFieldAccess { root: Box::new(Expr::Identifier(param.clone())), access_chain };
        }
        ControlFlow::Continue(())
    }
}
