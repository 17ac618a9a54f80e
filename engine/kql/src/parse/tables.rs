//! Parses `datatable`, `externaldata` and `inline_external_table`, and declarations of columns.

use super::{Parser, Result};
use crate::ast::{ColumnDeclaration, DataTable, ExprKind, ExternalData};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn datatable(&mut self) -> Result<ExprKind> {
        self.advance();
        let parameters = self.any_parameters()?;
        let columns = self.row_schema()?;
        self.expect(TokenKind::OpenBracket, "`[`")?;
        // Kusto allows a comma at either end.
        self.eat(TokenKind::Comma);
        let mut values = Vec::new();
        while !self.at_kind(TokenKind::CloseBracket) {
            values.push(self.signed_literal()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseBracket, "`,` or `]`")?;
        Ok(ExprKind::DataTable(Box::new(DataTable { parameters, columns, values })))
    }

    pub(super) fn externaldata(&mut self) -> Result<ExprKind> {
        self.advance();
        let parameters = self.any_parameters()?;
        let columns = self.row_schema()?;
        self.expect(TokenKind::OpenBracket, "`[`")?;
        let locations = self.separated(Self::expression)?;
        self.expect(TokenKind::CloseBracket, "`,` or `]`")?;
        let properties = self.with_properties()?;
        Ok(ExprKind::ExternalData(Box::new(ExternalData { parameters, columns, locations, properties })))
    }

    /// `inline_external_table (a:long) kind=storage dataformat=csv ("...") with (includeHeaders='All')`. Where the
    /// kind is another one there may be no columns.
    pub(super) fn inline_external_table(&mut self) -> Result<ExprKind> {
        self.advance();
        let columns = if self.at_kind(TokenKind::OpenParen) { self.row_schema()? } else { Vec::new() };
        let parameters = self.any_parameters()?;
        if self.at_word("partition") {
            let hint = "partitions of paths are not read here; name the files".to_owned();
            return Err(self.expected_with_hint("`dataformat=` or `(` and locations", Some(hint)));
        }
        self.expect(TokenKind::OpenParen, "`dataformat=` or `(` and locations")?;
        let locations = self.separated(Self::expression)?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        let properties = self.with_properties()?;
        Ok(ExprKind::ExternalData(Box::new(ExternalData { parameters, columns, locations, properties })))
    }

    /// `(a:long, b:string)`.
    pub(super) fn row_schema(&mut self) -> Result<Vec<ColumnDeclaration>> {
        self.expect(TokenKind::OpenParen, "`(` and columns")?;
        self.column_declarations()
    }

    /// Parses what follows the `(`.
    pub(super) fn column_declarations(&mut self) -> Result<Vec<ColumnDeclaration>> {
        let mut columns = Vec::new();
        while !self.at_kind(TokenKind::CloseParen) {
            columns.push(self.column_declaration()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        Ok(columns)
    }

    pub(super) fn column_declaration(&mut self) -> Result<ColumnDeclaration> {
        let start = self.token().span;
        let name = self.declared_name("a column")?;
        self.expect(TokenKind::Colon, "`:` and a type")?;
        let scalar_type = self.scalar_type()?;
        Ok(ColumnDeclaration { name, scalar_type, span: self.since(start) })
    }
}
