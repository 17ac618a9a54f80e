//! Parses `scan`.

use super::{Parser, Result};
use crate::ast::{NamedExpr, Names, OperatorKind, Scan, ScanOutput, ScanStep};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn scan(&mut self) -> Result<OperatorKind> {
        let mut scan =
            Scan { order_by: Vec::new(), partition_by: Vec::new(), declarations: Vec::new(), steps: Vec::new() };
        if self.eat_word("order") {
            self.expect_word("by")?;
            scan.order_by = self.sort_keys()?;
        }
        if self.eat_word("partition") {
            self.expect_word("by")?;
            scan.partition_by = self.separated(Self::expression)?;
        }
        if self.eat_word("declare") {
            scan.declarations = self.parameters()?;
        }
        self.expect_word("with")?;
        self.expect(TokenKind::OpenParen, "`(`")?;
        while self.at_word("step") {
            scan.steps.push(self.scan_step()?);
        }
        if scan.steps.is_empty() {
            return Err(self.expected("`step`"));
        }
        self.expect(TokenKind::CloseParen, "`step` or `)`")?;
        Ok(OperatorKind::Scan(Box::new(scan)))
    }

    fn scan_step(&mut self) -> Result<ScanStep> {
        let start = self.expect_word("step")?;
        let name = self.declared_name("a step's name")?;
        let optional = self.eat_word("optional");
        let output = if self.eat_word("output") { Some(self.scan_output()?) } else { None };
        self.expect(TokenKind::Colon, "`:`")?;
        let condition = self.expression()?;
        let assignments =
            if self.eat(TokenKind::FatArrow) { self.separated(Self::scan_assignment)? } else { Vec::new() };
        self.expect(TokenKind::Semicolon, "`;`")?;
        Ok(ScanStep { name, optional, output, condition, assignments, span: self.since(start) })
    }

    fn scan_output(&mut self) -> Result<ScanOutput> {
        self.expect(TokenKind::Assign, "`=`")?;
        let output = match self.word() {
            "all" => ScanOutput::All,
            "last" => ScanOutput::Last,
            "none" => ScanOutput::None,
            _ => return Err(self.expected("`all`, `last` or `none`")),
        };
        self.advance();
        Ok(output)
    }

    fn scan_assignment(&mut self) -> Result<NamedExpr> {
        let start = self.token().span;
        let Some(name) = self.assigned_name() else { return Err(self.expected("`column = value`")) };
        let expr = self.expression()?;
        Ok(NamedExpr { names: Names::One(name), expr, span: self.since(start) })
    }
}
