//! Parses `search`, `find`, `parse` and `parse-kv`.

use super::{Parser, Result};
use crate::ast::{Find, FindColumn, FindProjection, Literal, OperatorKind, Parse, ParsePart, Search};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn search(&mut self) -> Result<OperatorKind> {
        let sources = self.in_tables()?;
        let predicate = match self.at_kind(TokenKind::Star) && self.word_at(1) == "and" {
            // `* and a == 1` is `a == 1`.
            true => {
                self.advance();
                self.advance();
                self.expression()?
            }
            false => self.named_expression_or_star()?.expr,
        };
        Ok(OperatorKind::Search(Box::new(Search { sources, predicate })))
    }

    pub(super) fn find(&mut self) -> Result<OperatorKind> {
        let sources = self.in_tables()?;
        if !sources.is_empty() {
            self.expect_word("where")?;
        } else {
            self.eat_word("where");
        }
        let predicate = self.expression()?;
        let projection = if self.eat_word("project-smart") {
            FindProjection::Smart
        } else if self.eat_word("project") {
            FindProjection::Columns(self.separated(Self::find_column)?)
        } else {
            FindProjection::Default
        };
        Ok(OperatorKind::Find(Box::new(Find { sources, predicate, projection })))
    }

    fn find_column(&mut self) -> Result<FindColumn> {
        let start = self.token().span;
        let is_pack_all = self.at_word("pack_all");
        if (is_pack_all || self.at_word("pack")) && self.peek(1).kind == TokenKind::OpenParen {
            self.advance();
            self.advance();
            if !is_pack_all {
                self.expect(TokenKind::Star, "`*`")?;
            }
            self.expect(TokenKind::CloseParen, "`)`")?;
            return Ok(FindColumn::Pack(self.since(start)));
        }
        let name = self.declared_name("a column")?;
        let scalar_type = if self.eat(TokenKind::Colon) { Some(self.scalar_type()?) } else { None };
        Ok(FindColumn::Column { name, scalar_type })
    }

    pub(super) fn parse_operator(&mut self, filters: bool) -> Result<OperatorKind> {
        let expr = self.expression()?;
        self.expect_word("with")?;
        let mut pattern = Vec::new();
        while let Some(part) = self.parse_part()? {
            pattern.push(part);
        }
        Ok(OperatorKind::Parse(Box::new(Parse { filters, expr, pattern })))
    }

    fn parse_part(&mut self) -> Result<Option<ParsePart>> {
        let token = self.token();
        match token.kind {
            TokenKind::Star => {
                self.advance();
                Ok(Some(ParsePart::Skip(token.span)))
            }
            TokenKind::String => {
                let text = Literal::String(self.string()?);
                Ok(Some(ParsePart::Text { text, span: self.since(token.span) }))
            }
            TokenKind::Word | TokenKind::OpenBracket => {
                let name = self.declared_name("a column, a text or `*`")?;
                let scalar_type = if self.eat(TokenKind::Colon) { Some(self.scalar_type()?) } else { None };
                Ok(Some(ParsePart::Column { name, scalar_type }))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn parse_kv(&mut self) -> Result<OperatorKind> {
        let expr = self.expression()?;
        self.expect_word("as")?;
        let columns = self.row_schema()?;
        let properties = self.with_properties()?;
        Ok(OperatorKind::ParseKv { expr, columns, properties })
    }
}
