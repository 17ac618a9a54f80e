//! Parses operators that order or limit rows.

use super::{Parser, Result};
use crate::ast::{NullsOrder, OperatorKind, SortDirection, SortKey, TopLevel};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn sort(&mut self) -> Result<OperatorKind> {
        self.expect_word("by")?;
        Ok(OperatorKind::Sort(self.sort_keys()?))
    }

    pub(super) fn sort_keys(&mut self) -> Result<Vec<SortKey>> {
        self.separated(Self::sort_key)
    }

    fn sort_key(&mut self) -> Result<SortKey> {
        let start = self.token().span;
        let expr = self.named_expression()?;
        let direction = if self.eat_word("asc") {
            Some(SortDirection::Ascending)
        } else if self.eat_word("desc") {
            Some(SortDirection::Descending)
        } else {
            None
        };
        let mut nulls = None;
        if self.eat_word("nulls") {
            nulls = if self.eat_word("first") {
                Some(NullsOrder::First)
            } else if self.eat_word("last") {
                Some(NullsOrder::Last)
            } else {
                return Err(self.expected("`first` or `last`"));
            };
        }
        Ok(SortKey { expr, direction, nulls, span: self.since(start) })
    }

    pub(super) fn top(&mut self) -> Result<OperatorKind> {
        let count = self.named_expression()?;
        self.expect_word("by")?;
        Ok(OperatorKind::Top { count, by: self.sort_key()? })
    }

    pub(super) fn top_hitters(&mut self) -> Result<OperatorKind> {
        let count = self.named_expression()?;
        self.expect_word("of")?;
        let of = self.named_expression()?;
        let by = if self.eat_word("by") { Some(self.sort_key()?) } else { None };
        Ok(OperatorKind::TopHitters { count, of, by })
    }

    pub(super) fn top_nested(&mut self) -> Result<OperatorKind> {
        let mut levels = vec![self.top_level()?];
        while self.eat(TokenKind::Comma) {
            self.expect_word("top-nested")?;
            levels.push(self.top_level()?);
        }
        Ok(OperatorKind::TopNested(levels))
    }

    fn top_level(&mut self) -> Result<TopLevel> {
        let start = self.token().span;
        let count = if self.at_word("of") { None } else { Some(self.named_expression()?) };
        self.expect_word("of")?;
        let of = self.named_expression()?;
        let mut others = None;
        if self.eat_word("with") {
            self.expect_word("others")?;
            self.expect(TokenKind::Assign, "`=`")?;
            others = Some(self.expression()?);
        }
        self.expect_word("by")?;
        let by = self.sort_key()?;
        Ok(TopLevel { count, of, others, by, span: self.since(start) })
    }

    pub(super) fn sample_distinct(&mut self) -> Result<OperatorKind> {
        let count = self.named_expression()?;
        self.expect_word("of")?;
        Ok(OperatorKind::SampleDistinct { count, of: self.named_expression()? })
    }

    pub(super) fn reduce(&mut self) -> Result<OperatorKind> {
        self.expect_word("by")?;
        let by = self.named_expression()?;
        let with = if self.eat_word("with") { self.named_expressions()? } else { Vec::new() };
        Ok(OperatorKind::Reduce { by, with })
    }
}
