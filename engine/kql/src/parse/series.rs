//! Parses `make-series` and `range`.

use super::{Parser, Result};
use crate::ast::{MakeSeries, OperatorKind, SeriesAggregate, SeriesRange};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn make_series(&mut self) -> Result<OperatorKind> {
        let aggregates = self.separated(Self::series_aggregate)?;
        self.expect_word("on")?;
        let on = self.named_expression()?;
        let range = self.series_range()?;
        let by = if self.eat_word("by") { self.named_expressions()? } else { Vec::new() };
        Ok(OperatorKind::MakeSeries(Box::new(MakeSeries { aggregates, on, range, by })))
    }

    fn series_aggregate(&mut self) -> Result<SeriesAggregate> {
        let expr = self.named_expression()?;
        let mut default = None;
        if self.eat_word("default") {
            self.expect(TokenKind::Assign, "`=`")?;
            default = Some(self.expression()?);
        }
        Ok(SeriesAggregate { expr, default })
    }

    fn series_range(&mut self) -> Result<SeriesRange> {
        if self.eat_word("in") {
            self.expect_word("range")?;
            return Ok(SeriesRange::InRange(self.arguments()?));
        }
        let from = if self.eat_word("from") { Some(self.expression()?) } else { None };
        let to = if self.eat_word("to") { Some(self.expression()?) } else { None };
        self.expect_word("step")?;
        let step = self.expression()?;
        Ok(SeriesRange::FromToStep { from, to, step })
    }

    pub(super) fn range(&mut self) -> Result<OperatorKind> {
        let column = self.name("a column")?;
        self.expect_word("from")?;
        let from = self.expression()?;
        self.expect_word("to")?;
        let to = self.expression()?;
        self.expect_word("step")?;
        let step = self.expression()?;
        Ok(OperatorKind::Range { column, from, to, step })
    }
}
