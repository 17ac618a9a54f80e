//! `project-by-names`: columns by names and patterns that are values, such as those of `column_names_of`.

use datafusion::scalar::ScalarValue;

use super::columns::matches_wildcard;
use super::{Column, Relation};
use crate::ast::Expr;
use crate::bind::{Binder, Environment, ExpressionScope, Result, constant_of, invalid, text_of};
use crate::types::KqlType;

impl<'a> Binder<'a> {
    /// Keeps the columns in the order of the names. A name that no column has is passed over.
    pub(super) fn project_by_names(
        &mut self,
        input: Relation,
        names: &'a [Expr],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mut kept: Vec<Column> = Vec::new();
        for expr in names {
            let typed = self.scalar(expr, &ExpressionScope::constant(environment))?;
            let value = constant_of(&typed.expr)?;
            let patterns: Vec<String> = match (typed.kql_type, &value) {
                (KqlType::String, value) => text_of(value.as_ref()).map(str::to_owned).into_iter().collect(),
                (KqlType::Dynamic, Some(ScalarValue::Utf8(Some(json)))) => match serde_json::from_str(json) {
                    Ok(serde_json::Value::Array(items)) => {
                        items.iter().filter_map(|item| item.as_str()).map(str::to_owned).collect()
                    }
                    Ok(serde_json::Value::String(name)) => vec![name],
                    _ => return invalid(expr.span, "expected names of columns"),
                },
                _ => return invalid(expr.span, "expected constant names of columns"),
            };
            for pattern in &patterns {
                let is_new = |column: &&Column| {
                    matches_wildcard(pattern, &column.name) && !kept.iter().any(|known| known.field == column.field)
                };
                let found: Vec<Column> = input.columns.iter().filter(is_new).cloned().collect();
                kept.extend(found);
            }
        }
        let outputs = kept.iter().map(Column::output).collect();
        self.projected(input, outputs)
    }
}
