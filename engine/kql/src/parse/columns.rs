//! Parses operators that choose, compute and group columns.

use super::{Parser, Result};
use crate::ast::{Literal, NamePattern, OperatorKind, ReorderColumn, ReorderDirection};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn count(&mut self) -> Result<OperatorKind> {
        let name = if self.eat_word("as") { Some(self.name("a name")?) } else { None };
        Ok(OperatorKind::Count(name))
    }

    pub(super) fn distinct(&mut self) -> Result<OperatorKind> {
        Ok(OperatorKind::Distinct(self.separated(Self::named_expression_or_star)?))
    }

    pub(super) fn name_patterns(&mut self) -> Result<Vec<NamePattern>> {
        if self.at_no_operand() {
            return Ok(Vec::new());
        }
        self.separated(|parser| parser.name_pattern("a column"))
    }

    pub(super) fn project_by_names(&mut self) -> Result<OperatorKind> {
        if self.at_no_operand() {
            return Ok(OperatorKind::ProjectByNames(Vec::new()));
        }
        Ok(OperatorKind::ProjectByNames(self.separated(Self::expression)?))
    }

    pub(super) fn project_reorder(&mut self) -> Result<OperatorKind> {
        if self.at_no_operand() {
            return Ok(OperatorKind::ProjectReorder(Vec::new()));
        }
        Ok(OperatorKind::ProjectReorder(self.separated(Self::reorder_column)?))
    }

    fn reorder_column(&mut self) -> Result<ReorderColumn> {
        let pattern = self.name_pattern("a column")?;
        let direction = match self.word() {
            "asc" => Some(ReorderDirection::Ascending),
            "desc" => Some(ReorderDirection::Descending),
            "granny-asc" => Some(ReorderDirection::GrannyAscending),
            "granny-desc" => Some(ReorderDirection::GrannyDescending),
            _ => None,
        };
        if direction.is_some() {
            self.advance();
        }
        Ok(ReorderColumn { pattern, direction })
    }

    pub(super) fn summarize(&mut self) -> Result<OperatorKind> {
        let aggregates =
            if self.at_word("by") || self.at_no_operand() { Vec::new() } else { self.named_expressions()? };
        let mut by = Vec::new();
        let mut bin = None;
        if self.eat_word("by") {
            by = self.named_expressions()?;
            bin = self.summarize_bin()?;
        }
        Ok(OperatorKind::Summarize { aggregates, by, bin })
    }

    fn summarize_bin(&mut self) -> Result<Option<Literal>> {
        if !self.at_word("bin") || self.peek(1).kind != TokenKind::Assign {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let literal = if matches!(self.token().kind, TokenKind::Minus | TokenKind::Plus) {
            self.signed_number()?
        } else {
            self.literal()?
        };
        Ok(Some(literal))
    }

    fn at_no_operand(&self) -> bool {
        matches!(
            self.token().kind,
            TokenKind::Pipe | TokenKind::Semicolon | TokenKind::CloseParen | TokenKind::CloseBrace | TokenKind::End
        )
    }
}
