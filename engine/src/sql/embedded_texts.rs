//! Puts vectors in the place of `embed('text')`, once the values of parameters are known.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{FixedSizeListArray, Float32Array};
use arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as PlanResult, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use querent_catalog::Catalog;

use crate::error::{EngineError, Result};
use crate::functions::EMBED;

/// The most different texts of one statement: each takes a call of the model.
const MAX_TEXTS: usize = 16;

/// Returns the plan without calls of `embed`. Errors: `embedder_error`; `unsupported` where a text is not constant, or
/// there are too many.
pub(crate) async fn with_embedded_texts(plan: LogicalPlan, catalog: &Catalog) -> Result<LogicalPlan> {
    let mut texts: Vec<String> = Vec::new();
    let mut has_column = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match constant_text(expr) {
                    None => {}
                    Some(Some(text)) if texts.iter().any(|known| known == text) => {}
                    Some(Some(text)) => texts.push(text.to_owned()),
                    Some(None) => has_column = true,
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    if has_column || texts.len() > MAX_TEXTS {
        let what =
            if has_column { "embed() of anything but a text in quotes or a parameter" } else { "so many embed()" };
        return Err(EngineError::Unsupported {
            what: what.to_owned(),
            hint: format!(
                "a statement embeds up to {MAX_TEXTS} texts, each of which is written out or a parameter; embed the texts \
                 of a column before they are written"
            ),
        });
    }
    if texts.is_empty() {
        return Ok(plan);
    }
    let mut vectors = HashMap::with_capacity(texts.len());
    for text in texts {
        let vector = vector_literal(&catalog.search().embed(&text).await?)?;
        vectors.insert(text, vector);
    }
    let replaced = plan.transform_down_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_up(|expr| {
                let vector = constant_text(&expr).flatten().and_then(|text| vectors.get(text));
                Ok(match vector {
                    Some(vector) => Transformed::yes(Expr::Literal(vector.clone(), None)),
                    None => Transformed::no(expr),
                })
            })?;
            Ok(replaced.update_data(|expr| name.restore(expr)))
        })
    });
    Ok(replaced.data()?)
}

/// Returns the text of a call of `embed`, which is `None` where it is not constant; `None` for other expressions.
fn constant_text(expr: &Expr) -> Option<Option<&str>> {
    let Expr::ScalarFunction(call) = expr else { return None };
    if call.func.name() != EMBED {
        return None;
    }
    let text = match call.args.first() {
        Some(Expr::Literal(value, _)) => value.try_as_str().flatten(),
        Some(Expr::Cast(cast)) => match cast.expr.as_ref() {
            Expr::Literal(value, _) => value.try_as_str().flatten(),
            _ => None,
        },
        _ => None,
    };
    Some(text)
}

fn vector_literal(vector: &[f32]) -> PlanResult<ScalarValue> {
    let field = Arc::new(Field::new_list_field(arrow::datatypes::DataType::Float32, true));
    let dimension = i32::try_from(vector.len()).unwrap_or(i32::MAX);
    let numbers = Arc::new(Float32Array::from_iter_values(vector.iter().copied()));
    Ok(ScalarValue::FixedSizeList(Arc::new(FixedSizeListArray::try_new(field, dimension, numbers, None)?)))
}
