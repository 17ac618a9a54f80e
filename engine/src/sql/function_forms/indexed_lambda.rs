//! Lambdas over an element and its index: `list_transform(l, (x, i) -> x * i)`. The list is zipped with its indices, from 1
//! on, and the lambda takes both from the pair.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, LambdaFunction, LambdaFunctionParameter, OneOrManyWithParens, VisitMut, VisitorMut,
};

use super::parse;
use crate::error::Result;
use crate::identifiers::same_name;
use crate::sql::shorthand::{call, text};

/// The name of the pair; the depth keeps those of nested lambdas apart.
const PAIR: &str = "__element_and_index";

/// Writes out a call of a function over a list and a lambda of two parameters. `None`: the lambda has another number.
pub(super) fn indexed(function: &str, list: &Expr, lambda: &LambdaFunction) -> Result<Option<Expr>> {
    let OneOrManyWithParens::Many(params) = &lambda.params else { return Ok(None) };
    let [element, index] = params.as_slice() else { return Ok(None) };
    let pair = Ident::with_quote('"', format!("{PAIR}{}", depth(&lambda.body)));
    let part = |position: &str| call("get_field", vec![Expr::Identifier(pair.clone()), text(position)]);
    let mut body = lambda.body.as_ref().clone();
    let mut filling = ParameterFilling {
        names: [element.name.value.clone(), index.name.value.clone()],
        parts: [part("1"), part("2")],
        hidden: Vec::new(),
    };
    let _: ControlFlow<()> = VisitMut::visit(&mut body, &mut filling);
    let over = |body: Expr| {
        Expr::Lambda(LambdaFunction {
            params: OneOrManyWithParens::One(LambdaFunctionParameter { name: pair.clone(), data_type: None }),
            body: Box::new(body),
            syntax: lambda.syntax,
        })
    };
    let mut zipped = parse("arrays_zip($1, range(1, CAST(len($1) AS BIGINT) + 1))")?;
    let _: ControlFlow<()> =
        VisitMut::visit(&mut zipped, &mut super::Filling { arguments: std::slice::from_ref(list) });
    Ok(Some(match function {
        "array_filter" => {
            let kept = call("array_filter", vec![zipped, over(body)]);
            call("array_transform", vec![kept, over(part("1"))])
        }
        function => call(function, vec![zipped, over(body)]),
    }))
}

/// Returns how many lambdas of ours are in an expression.
fn depth(expr: &Expr) -> usize {
    expr.to_string().matches(PAIR).count()
}

/// Puts the parts of the pair in the places of the parameters, except where an inner lambda has parameters of their names.
struct ParameterFilling {
    names: [String; 2],
    parts: [Expr; 2],
    hidden: Vec<Vec<String>>,
}

impl ParameterFilling {
    fn part_of(&self, ident: &Ident) -> Option<&Expr> {
        let is_hidden = self.hidden.iter().flatten().any(|name| same_name(name, &ident.value));
        let position = self.names.iter().position(|name| same_name(name, &ident.value))?;
        (!is_hidden).then(|| self.parts.get(position)).flatten()
    }
}

impl VisitorMut for ParameterFilling {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            let params = match &lambda.params {
                OneOrManyWithParens::One(one) => std::slice::from_ref(one),
                OneOrManyWithParens::Many(many) => many.as_slice(),
            };
            self.hidden.push(params.iter().map(|param| param.name.value.clone()).collect());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Lambda(_) => {
                self.hidden.pop();
            }
            Expr::Identifier(ident) => {
                if let Some(part) = self.part_of(ident) {
                    *expr = part.clone();
                }
            }
            // A field of an element that is a struct.
            Expr::CompoundIdentifier(parts) => {
                if let [first, fields @ ..] = parts.as_slice()
                    && let Some(part) = self.part_of(first)
                {
                    let field = |value, field: &Ident| call("get_field", vec![value, text(&field.value)]);
                    *expr = fields.iter().fold(part.clone(), field);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
