//! Functions that need more than the values of their arguments (a type to convert to, or all columns), and those that
//! return something about the query itself.

use datafusion::logical_expr::lit;
use serde_json::json;
use uuid::Uuid;

use super::{Binder, ExpressionScope, Result, Typed, constant_of, invalid, null_of, text_of};
use crate::ast::{ExprKind, FunctionCall, Literal, ParameterValue};
use crate::plan::Column;
use crate::span::Span;
use crate::types::KqlType;
use crate::values::parse_json;

impl<'a> Binder<'a> {
    /// Binds a call of one of these functions; `None` when it is none.
    pub(super) fn special_function(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Option<Typed>> {
        let name = call.function.text.as_str();
        match name {
            "percentile_tdigest" | "percentiles_array_tdigest" => self.percentile_as(call, span, scope),
            "extract" | "extractjson" | "extract_json" => self.extracted_as(call, span, scope),
            "estimate_data_size" if call.arguments.iter().any(|argument| argument.expr.kind == ExprKind::Star) => {
                let all = scope.columns.iter().map(Column::typed).collect();
                self.apply(name, all, span).map(Some)
            }
            "column_names_of" => self.column_names_of(call, span, scope).map(Some),
            "iscolumnexists" => {
                let [name] = call.arguments.as_slice() else {
                    return invalid(span, "`iscolumnexists` takes a column's name");
                };
                let name = self.scalar(&name.expr, scope)?;
                let name = constant_of(&name.expr)?;
                let exists = text_of(name.as_ref()).is_some_and(|name| scope.column(name).is_some());
                Ok(Some(Typed::new(lit(exists), KqlType::Bool)))
            }
            "bin_auto" => self.bin_auto(call, span, scope).map(Some),
            "current_database"
            | "current_principal"
            | "current_principal_details"
            | "ingestion_time"
            | "cursor_current"
            | "current_cursor"
            | "extent_id"
            | "extentid"
            | "extent_tags"
                if !call.arguments.is_empty() =>
            {
                invalid(span, format!("`{name}` takes no arguments"))
            }
            "current_database" => Ok(Some(Typed::text(&self.answers.database))),
            "current_principal" => Ok(Some(Typed::text(&self.answers.principal))),
            "current_principal_details" => {
                let details = json!({"DisplayName": self.answers.principal, "FQN": self.answers.principal});
                Ok(Some(Typed::new(lit(details.to_string()), KqlType::Dynamic)))
            }
            "current_principal_is_member_of" => self.is_member_of(call, span, scope).map(Some),
            // What a table holds is known at the time of the query.
            "cursor_current" | "current_cursor" => Ok(Some(Typed::text(self.now_ticks.to_string()))),
            // Rows are of no extent here, as computed ones are of none in Kusto.
            "extent_id" | "extentid" => Ok(Some(Typed::new(lit(Uuid::nil().to_string()), KqlType::Guid))),
            "extent_tags" => Ok(Some(Typed::new(lit(null_of(KqlType::Dynamic)), KqlType::Dynamic))),
            // No table records when its rows were ingested.
            "ingestion_time" => Ok(Some(Typed::new(lit(null_of(KqlType::DateTime)), KqlType::DateTime))),
            _ => Ok(None),
        }
    }

    /// `current_principal_is_member_of('aaduser=name', ...)`: whether one of the names, or of those in an array, is the
    /// caller's; what stands before `=` and after `;` is Kusto's.
    fn is_member_of(&mut self, call: &'a FunctionCall, span: Span, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        let mut names: Vec<String> = Vec::new();
        for argument in self.arguments(call, scope)? {
            let value = constant_of(&argument.expr)?;
            match (argument.kql_type, text_of(value.as_ref())) {
                (KqlType::String, Some(name)) => names.push(name.to_owned()),
                (KqlType::Dynamic, Some(text)) => match parse_json(text) {
                    serde_json::Value::Array(all) => {
                        names.extend(all.iter().filter_map(serde_json::Value::as_str).map(str::to_owned));
                    }
                    serde_json::Value::String(name) => names.push(name),
                    _ => return invalid(span, "expected names, or an array of them"),
                },
                _ => return invalid(span, "the names must be constant"),
            }
        }
        if names.is_empty() {
            return invalid(span, "`current_principal_is_member_of` takes the name of a user or a group");
        }
        let bare = |name: &str| {
            let named = name.split_once('=').map_or(name, |(_, named)| named);
            named.split_once(';').map_or(named, |(named, _)| named).to_owned()
        };
        let is_caller = names.iter().any(|name| bare(name).eq_ignore_ascii_case(&bare(&self.answers.principal)));
        Ok(Typed::new(lit(is_caller), KqlType::Bool))
    }

    /// `column_names_of(T)`: the names of a table's columns, which are known without its rows.
    fn column_names_of(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        let [table] = call.arguments.as_slice() else {
            return invalid(span, "`column_names_of` takes a table");
        };
        let relation = self.table(&table.expr, scope.environment)?;
        let names: Vec<&str> = relation.columns.iter().map(|column| column.name.as_str()).collect();
        Ok(Typed::new(lit(json!(names).to_string()), KqlType::Dynamic))
    }

    /// `bin_auto(x)`: the size of its bins and the start of one of them are options of the query.
    fn bin_auto(&mut self, call: &'a FunctionCall, span: Span, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        let mut arguments = self.arguments(call, scope)?;
        let (Some(value), None) = (arguments.pop(), arguments.pop()) else {
            return invalid(span, "`bin_auto` takes one value");
        };
        let Some(size) = self.option("query_bin_auto_size", span)? else {
            return invalid(span, "`bin_auto` needs the size of the bins; put `set query_bin_auto_size=...;` first");
        };
        match self.option("query_bin_auto_at", span)? {
            Some(at) => self.apply("bin_at", vec![value, size, at], span),
            None => self.apply("bin", vec![value, size], span),
        }
    }

    /// Returns the value that `set` gave an option; literals only.
    fn option(&mut self, name: &str, span: Span) -> Result<Option<Typed>> {
        match self.options.get(name) {
            Some((Some(ParameterValue::Literal(literal)), _)) => self.literal(literal, span).map(Some),
            Some(_) => invalid(span, format!("the option `{name}` is no literal")),
            None => Ok(None),
        }
    }

    /// `extract("(\d+)", 1, text, typeof(long))`: the last argument is the type to convert to.
    fn extracted_as(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Option<Typed>> {
        let Some((last, values)) = call.arguments.split_last() else { return Ok(None) };
        let ExprKind::Literal(Literal::Type(wanted)) = &last.expr.kind else { return Ok(None) };
        let values = values.iter().map(|value| self.scalar(&value.expr, scope)).collect::<Result<Vec<_>>>()?;
        let found = self.apply(&call.function.text, values, span)?;
        match KqlType::from(*wanted) {
            KqlType::Dynamic => self.apply("todynamic", vec![found], span).map(Some),
            wanted => self.convert(found, wanted, span).map(Some),
        }
    }

    /// `percentile_tdigest(sketch, 95, typeof(long))`: the last argument is the type to convert to.
    fn percentile_as(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Option<Typed>> {
        let Some((last, values)) = call.arguments.split_last() else { return Ok(None) };
        let ExprKind::Literal(Literal::Type(wanted)) = &last.expr.kind else { return Ok(None) };
        let values = values.iter().map(|value| self.scalar(&value.expr, scope)).collect::<Result<Vec<_>>>()?;
        let found = self.apply(&call.function.text, values, span)?;
        // An array has elements of that type already: a sketch is of one.
        if call.function.text == "percentiles_array_tdigest" {
            return Ok(Some(found));
        }
        self.convert(found, KqlType::from(*wanted), span).map(Some)
    }
}
