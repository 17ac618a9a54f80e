//! Parses `render`. It does not change the rows, but a misspelt property is an error.

use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, OperatorKind, Property, Render};
use crate::lexer::TokenKind;

/// The charts whose names are keywords; any other name is also a chart.
const CHARTS: &[&str] = &[
    "3Dchart",
    "anomalychart",
    "areachart",
    "barchart",
    "card",
    "columnchart",
    "ladderchart",
    "linechart",
    "piechart",
    "pivotchart",
    "scatterchart",
    "stackedareachart",
    "timechart",
    "timeline",
    "timepivot",
    "treemap",
];

/// Properties in `with (...)`.
const PROPERTIES: &[&str] = &[
    "accumulate",
    "anomalycolumns",
    "kind",
    "legend",
    "series",
    "title",
    "xaxis",
    "xcolumn",
    "xmax",
    "xmin",
    "xtitle",
    "yaxis",
    "ycolumns",
    "ymax",
    "ymin",
    "ysplit",
    "ytitle",
];

impl Parser<'_> {
    pub(super) fn render(&mut self) -> Result<OperatorKind> {
        let chart = if CHARTS.contains(&self.word()) { self.plain_name() } else { self.name("a kind of chart")? };
        let mut properties = Vec::new();
        if self.at_word("with") && self.peek(1).kind == TokenKind::OpenParen {
            self.advance();
            self.advance();
            properties = self.render_properties()?;
            self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        } else {
            while let Some(property) = self.old_render_property()? {
                properties.push(property);
            }
        }
        Ok(OperatorKind::Render(Render { chart, properties }))
    }

    fn render_properties(&mut self) -> Result<Vec<Property>> {
        let mut properties = Vec::new();
        while !self.at_kind(TokenKind::CloseParen) {
            properties.push(self.render_property()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        Ok(properties)
    }

    fn render_property(&mut self) -> Result<Property> {
        let start = self.token().span;
        if !PROPERTIES.contains(&self.word()) {
            let hint = format!("properties are {}", PROPERTIES.join(", "));
            return Err(self.expected_with_hint("a property of the chart", Some(hint)));
        }
        let name = self.plain_name();
        self.expect(TokenKind::Assign, "`=`")?;
        let values = match name.text.as_str() {
            "anomalycolumns" | "series" | "ycolumns" => self.column_list()?,
            "kind" | "legend" | "xaxis" | "yaxis" | "ysplit" | "xcolumn" => vec![self.name_value()?],
            _ => vec![self.expression()?],
        };
        Ok(Property { name, values, span: self.since(start) })
    }

    /// Parses columns, up to the comma before the next property.
    fn column_list(&mut self) -> Result<Vec<Expr>> {
        let mut columns = vec![self.name_value()?];
        while self.at_kind(TokenKind::Comma) && self.peek(2).kind != TokenKind::Assign {
            self.advance();
            columns.push(self.name_value()?);
        }
        Ok(columns)
    }

    fn name_value(&mut self) -> Result<Expr> {
        let name = self.any_word("a name")?;
        let span = name.span;
        Ok(Expr { kind: ExprKind::Name(name), span })
    }

    /// Parses `kind=stacked`, `title="x"`, `by a` without parentheses, the old form.
    fn old_render_property(&mut self) -> Result<Option<Property>> {
        let start = self.token().span;
        let values = match self.word() {
            "by" => {
                let name = self.plain_name();
                let values = self.column_list()?;
                return Ok(Some(Property { name, values, span: self.since(start) }));
            }
            "with" => {
                let name = self.plain_name();
                let value = self.signed_literal()?;
                return Ok(Some(Property { name, values: vec![value], span: self.since(start) }));
            }
            "title" | "accumulate" => Self::expression,
            "kind" => Self::name_value,
            _ => return Ok(None),
        };
        let name = self.plain_name();
        self.expect(TokenKind::Assign, "`=`")?;
        let value = values(self)?;
        Ok(Some(Property { name, values: vec![value], span: self.since(start) }))
    }
}
