//! `geo_line_lookup` and `geo_polygon_lookup`: rows joined with the rows of a table of shapes that they are at.

use datafusion::scalar::ScalarValue;

use super::networks::labels;
use crate::ast::{FunctionCall, NamedExpr};
use crate::bind::{Binder, Environment, ExpressionScope, Result, Typed, constant_of, given_name, invalid, unique_name};
use crate::plan::Relation;
use crate::plan::template::TemplateNames;
use crate::types::KqlType;

const MATCHED: &str =
    "let __R = __S | extend __one = 1 | join kind=inner (__L | extend __one = 1) on __one | where {at}; ";
const ONLY_MATCHED: &str = "let __S = __T; {matched}__R";
const WITH_UNMATCHED: &str = "let __S = materialize(__T | serialize __row = row_number()); {matched}\
    let __M = materialize(__R); union (__M), (__S | join kind=leftanti (__M | distinct __row) on __row)";

const OPTIONS: [&str; 4] = ["radius", "return_unmatched", "lookup_area_radius", "return_lookup_key"];

/// The plugins of this file.
pub(super) fn is_one(name: &str) -> bool {
    matches!(name, "geo_line_lookup" | "geo_polygon_lookup")
}

impl<'a> Binder<'a> {
    pub(super) fn place_lookup(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let span = call.function.span;
        let is_line = call.function.text == "geo_line_lookup";
        let [table, shape, longitude, latitude, options @ ..] = call.arguments.as_slice() else {
            return invalid(
                span,
                "this plugin takes a table of shapes, its column of them, a longitude and a latitude",
            );
        };
        let mut values: [Option<ScalarValue>; 4] = Default::default();
        for (index, option) in options.iter().enumerate() {
            let place = match given_name(&option.names) {
                Some(name) => OPTIONS.iter().position(|known| *known == name),
                None => (index < OPTIONS.len()).then_some(index),
            };
            let Some(place) = place else { return invalid(option.span, "this plugin has no such option") };
            let kql_type = if place % 2 == 0 { KqlType::Real } else { KqlType::Bool };
            values[place] = Some(self.lookup_option(option, kql_type, environment)?);
        }
        let flag = |place: usize| values[place] == Some(ScalarValue::Boolean(Some(true)));
        let (keeps_unmatched, keeps_shape) = (flag(1), flag(3));
        let radius = match &values[0] {
            None if is_line => return invalid(span, "this plugin takes a radius"),
            None => None,
            Some(ScalarValue::Float64(Some(radius))) if *radius >= 0.0 && radius.is_finite() => Some(*radius),
            Some(_) => return invalid(span, "the radius is a number of meters"),
        };
        let at = match (is_line, radius) {
            (true, radius) => {
                format!("geo_distance_point_to_line(__x, __y, __k) <= {:?}", radius.unwrap_or_default())
            }
            (false, Some(radius)) => format!("geo_distance_point_to_polygon(__x, __y, __k) <= {radius:?}"),
            (false, None) => "geo_point_in_polygon(__x, __y, __k)".to_owned(),
        };
        let shapes = self.table(&table.expr, environment)?;
        let shape = self.column_of(&shapes, shape)?;
        let mut left: Vec<(String, Typed)> = Vec::new();
        for (index, column) in input.columns.iter().enumerate() {
            left.push((format!("__t{index}"), column.typed()));
        }
        for (name, argument) in [("__x", longitude), ("__y", latitude)] {
            let scope = ExpressionScope::over_columns(environment, &input.columns);
            let degrees = self.scalar(&argument.expr, &scope)?;
            left.push((name.to_owned(), self.convert(degrees, KqlType::Real, argument.span)?));
        }
        let left = self.projected(input.clone(), left)?;
        let mut right: Vec<(String, Typed)> = Vec::new();
        for (index, column) in shapes.columns.iter().enumerate() {
            right.push((format!("__l{index}"), column.typed()));
        }
        right.push(("__k".to_owned(), self.convert(shape.typed(), KqlType::Dynamic, span)?));
        let right = self.projected(shapes.clone(), right)?;

        let text = if keeps_unmatched { WITH_UNMATCHED } else { ONLY_MATCHED };
        let text = text.replace("{matched}", MATCHED).replace("{at}", &at);
        let made = self.templated(text, TemplateNames::default().table("__T", left).table("__L", right), span)?;

        let own: Vec<(String, String)> = labels("__t", &input, &[]);
        let dropped = if keeps_shape { Vec::new() } else { vec![shape] };
        let mut found: Vec<(String, String)> = labels("__l", &shapes, &dropped);
        let mut taken: Vec<String> = own.iter().map(|(_, name)| name.clone()).collect();
        for (_, name) in &mut found {
            *name = unique_name(name, |name| taken.iter().any(|known| known == name));
            taken.push(name.clone());
        }
        self.relabelled(made, &[own, found].concat(), span)
    }

    fn lookup_option(
        &mut self,
        argument: &'a NamedExpr,
        kql_type: KqlType,
        environment: &Environment<'a>,
    ) -> Result<ScalarValue> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        let typed = self.convert(typed, kql_type, argument.span)?;
        match constant_of(&typed.expr)? {
            Some(value) => Ok(value),
            None => invalid(argument.span, "this must be a constant"),
        }
    }
}
