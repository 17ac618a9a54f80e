//! Parses operators over several tables, and those that run a part of a query several times.

use super::{Parser, Result};
use crate::ast::{
    Expr, ExprKind, ForkBranch, JoinCondition, OperatorKind, Partition, PartitionBody, Pipeline, PluginSchema,
};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn join(&mut self) -> Result<OperatorKind> {
        let table = self.expression()?;
        let condition = if self.eat_word("on") {
            Some(JoinCondition::On(self.separated(Self::expression)?))
        } else if self.eat_word("where") {
            Some(JoinCondition::Where(self.expression()?))
        } else {
            None
        };
        Ok(OperatorKind::Join { table, condition })
    }

    pub(super) fn lookup(&mut self) -> Result<OperatorKind> {
        let table = self.expression()?;
        self.expect_word("on")?;
        Ok(OperatorKind::Lookup { table, on: self.separated(Self::expression)? })
    }

    pub(super) fn union(&mut self) -> Result<OperatorKind> {
        Ok(OperatorKind::Union(self.separated(Self::table_expression)?))
    }

    /// A table: `T`, `T*`, `database('d').T*`, `f()`, `(T | where a)`.
    pub(super) fn table_expression(&mut self) -> Result<Expr> {
        let start = self.token().span;
        if let Some((pattern, span)) = self.wildcard() {
            return Ok(Expr { kind: ExprKind::Wildcard { base: None, pattern }, span });
        }
        if !matches!(self.token().kind, TokenKind::Word | TokenKind::OpenBracket | TokenKind::OpenParen) {
            return Err(self.expected("a table"));
        }
        let mut table = self.primary()?;
        while self.eat(TokenKind::Dot) {
            self.grow(0)?;
            let kind = match self.wildcard() {
                Some((pattern, _)) => ExprKind::Wildcard { base: Some(Box::new(table)), pattern },
                None => self.after_dot(table)?,
            };
            table = Expr { kind, span: self.since(start) };
        }
        Ok(table)
    }

    pub(super) fn evaluate(&mut self) -> Result<OperatorKind> {
        let plugin = self.call("a plugin call")?;
        let schema = if self.eat(TokenKind::Colon) { Some(self.plugin_schema()?) } else { None };
        Ok(OperatorKind::Evaluate { plugin, schema })
    }

    /// `(a:long)`, `(*)`, `(*, a:long)`.
    pub(super) fn plugin_schema(&mut self) -> Result<PluginSchema> {
        self.expect(TokenKind::OpenParen, "`(`")?;
        let keeps_input = self.eat(TokenKind::Star);
        if keeps_input && !self.eat(TokenKind::Comma) {
            self.expect(TokenKind::CloseParen, "`,` or `)`")?;
            return Ok(PluginSchema { keeps_input, columns: Vec::new() });
        }
        let columns = self.column_declarations()?;
        Ok(PluginSchema { keeps_input, columns })
    }

    /// `f(...)`, `database('d').f(...)`.
    pub(super) fn call(&mut self, what: &str) -> Result<Expr> {
        let span = self.token().span;
        let name = self.name(what)?;
        if !self.at_kind(TokenKind::OpenParen) {
            return Err(self.expected("`(`"));
        }
        let kind = self.name_or_call(name)?;
        let mut call = Expr { kind, span: self.since(span) };
        while self.eat(TokenKind::Dot) {
            self.grow(0)?;
            let kind = self.after_dot(call)?;
            call = Expr { kind, span: self.since(span) };
        }
        if matches!(call.kind, ExprKind::Call(_)) { Ok(call) } else { Err(self.expected("`(`")) }
    }

    pub(super) fn facet(&mut self) -> Result<OperatorKind> {
        self.expect_word("by")?;
        let by = self.separated(Self::column_path)?;
        let with = match (self.eat_word("with"), self.token().kind) {
            (false, _) => None,
            (true, TokenKind::OpenParen) => Some(self.piped_body()?),
            (true, _) => Some(Pipeline { source: None, operators: vec![self.operator(self.at)] }),
        };
        Ok(OperatorKind::Facet { by, with })
    }

    pub(super) fn fork(&mut self) -> Result<OperatorKind> {
        let mut branches = Vec::new();
        loop {
            let name = self.assigned_name();
            let pipeline = self.piped_body()?;
            branches.push(ForkBranch { name, pipeline });
            let more = self.at_kind(TokenKind::OpenParen) || self.peek(1).kind == TokenKind::Assign;
            if !more {
                return Ok(OperatorKind::Fork(branches));
            }
        }
    }

    pub(super) fn partition(&mut self) -> Result<OperatorKind> {
        self.expect_word("by")?;
        self.partition_body()
    }

    pub(super) fn partition_body(&mut self) -> Result<OperatorKind> {
        let by = self.column_path()?;
        let body = if self.eat(TokenKind::OpenBrace) {
            let query = self.pipeline_expression();
            self.expect(TokenKind::CloseBrace, "`|` or `}`")?;
            PartitionBody::Query(query)
        } else {
            PartitionBody::Piped(self.piped_body()?)
        };
        Ok(OperatorKind::Partition(Box::new(Partition { by, body })))
    }

    pub(super) fn macro_expand(&mut self) -> Result<OperatorKind> {
        let group = self.path()?;
        self.expect_word("as")?;
        let name = self.name("a name")?;
        self.expect(TokenKind::OpenParen, "`(`")?;
        let body = self.statements(TokenKind::CloseParen);
        self.expect(TokenKind::CloseParen, "`;` or `)`")?;
        Ok(OperatorKind::MacroExpand { group, name, body })
    }

    /// Parses the tables of `search in (...)` and `find in (...)`; none where there is no `in`.
    pub(super) fn in_tables(&mut self) -> Result<Vec<Expr>> {
        if !self.at_word("in") || self.peek(1).kind != TokenKind::OpenParen {
            return Ok(Vec::new());
        }
        self.advance();
        self.advance();
        let tables = self.separated(Self::table_expression)?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        Ok(tables)
    }
}
