//! Parses statements: queries, `let`, and whatever else may be between semicolons.

use super::{Parser, Reported, Result};
use crate::ast::{
    Function, Literal, Parameter, ParameterKind, Pattern, PatternDefinition, PatternRule, Query, Statement,
    StatementKind,
};
use crate::error::SyntaxErrorCode;
use crate::lexer::TokenKind;
use crate::span::Span;

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Query {
        if self.at_kind(TokenKind::Dot) && !self.word_at(1).is_empty() {
            return self.command();
        }
        let statements = self.statements(TokenKind::End);
        if !self.at_kind(TokenKind::End) {
            self.expected("`;` or the end of the query");
        }
        Query { statements, span: Span::new(0, self.text.len()) }
    }

    /// Skips a management command, which is written in another language, and drops the lexer's errors in it.
    fn command(&mut self) -> Query {
        self.errors.clear();
        self.at = self.tokens.len().saturating_sub(1);
        let span = Span::new(0, self.text.len());
        Query { statements: vec![Statement { kind: StatementKind::Command, span }], span }
    }

    /// Parses statements, separated by `;`, up to the token that closes the block around them.
    pub(super) fn statements(&mut self, closing: TokenKind) -> Vec<Statement> {
        let mut statements = Vec::new();
        while !self.at_kind(closing) && !self.at_kind(TokenKind::End) {
            let first = self.at;
            statements.push(self.statement());
            if !self.at_kind(TokenKind::Semicolon) && !self.at_kind(closing) && !self.at_kind(TokenKind::End) {
                self.expected("`;` or the end of the query");
                self.recover_statement(first);
            }
            if !self.eat(TokenKind::Semicolon) {
                break;
            }
        }
        statements
    }

    fn statement(&mut self) -> Statement {
        let first = self.at;
        let start = self.token().span;
        match self.nested(Self::statement_kind) {
            Ok(kind) => Statement { kind, span: self.since(start) },
            Err(Reported) => {
                self.recover_statement(first);
                Statement { kind: StatementKind::Invalid, span: self.since(start) }
            }
        }
    }

    fn statement_kind(&mut self) -> Result<StatementKind> {
        let is_named = !self.word_at(1).is_empty() || self.at_bracketed_name(1);
        match (self.word(), self.word_at(1)) {
            ("let", _) if is_named => self.let_statement(),
            ("set", _) => self.set_statement(),
            ("declare", "query_parameters") => {
                self.advance();
                self.advance();
                Ok(StatementKind::QueryParameters(self.parameters()?))
            }
            ("declare", "pattern") => self.pattern(),
            ("alias", "database") => self.alias_database(),
            ("restrict", "access") => self.restrict_access(),
            _ if self.at_kind(TokenKind::Semicolon) || self.at_kind(TokenKind::Pipe) => Err(self.expected("a query")),
            _ => Ok(StatementKind::Expression(self.pipeline_expression())),
        }
    }

    fn let_statement(&mut self) -> Result<StatementKind> {
        self.advance();
        let name = self.name("a name")?;
        self.expect(TokenKind::Assign, "`=`")?;
        let is_view = self.at_word("view") && self.peek(1).kind == TokenKind::OpenParen;
        if is_view {
            self.advance();
        }
        if is_view || self.at_function() {
            let function = Box::new(self.function(is_view)?);
            return Ok(StatementKind::LetFunction { name, function });
        }
        let value = self.pipeline_expression();
        Ok(StatementKind::Let { name, value })
    }

    /// Whether a list of parameters is next: `()`, or `(name:` and a type.
    fn at_function(&self) -> bool {
        if !self.at_kind(TokenKind::OpenParen) {
            return false;
        }
        if self.peek(1).kind == TokenKind::CloseParen {
            return true;
        }
        let name_length = if self.at_bracketed_name(1) { 3 } else { 1 };
        let is_name = name_length == 3 || !self.word_at(1).is_empty();
        let after_colon = self.peek(2 + name_length).kind;
        is_name
            && self.peek(1 + name_length).kind == TokenKind::Colon
            && matches!(after_colon, TokenKind::Word | TokenKind::OpenParen | TokenKind::Typed)
    }

    fn function(&mut self, is_view: bool) -> Result<Function> {
        let start = self.token().span;
        let parameters = self.parameters()?;
        let body = self.body()?;
        Ok(Function { is_view, parameters, body, span: self.since(start) })
    }

    /// `{ statements }`.
    fn body(&mut self) -> Result<Vec<Statement>> {
        self.expect(TokenKind::OpenBrace, "`{`")?;
        let body = self.statements(TokenKind::CloseBrace);
        self.check_body(&body);
        self.expect(TokenKind::CloseBrace, "`;` or `}`")?;
        Ok(body)
    }

    /// Only the last statement of a body may be an expression.
    fn check_body(&mut self, body: &[Statement]) {
        let mut others = body.iter().rev().skip(1);
        if let Some(early) = others.find(|statement| matches!(statement.kind, StatementKind::Expression(_))) {
            let message = "only the last statement of a function is its result".to_owned();
            let hint = "give the others a name with `let`".to_owned();
            self.report(SyntaxErrorCode::Unexpected, message, early.span, Some(hint));
        }
    }

    /// `(a:long = 1, T:(b:string))`.
    pub(super) fn parameters(&mut self) -> Result<Vec<Parameter>> {
        self.expect(TokenKind::OpenParen, "`(` and parameters")?;
        if self.eat(TokenKind::CloseParen) {
            return Ok(Vec::new());
        }
        let parameters = self.separated(Self::parameter)?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        Ok(parameters)
    }

    fn parameter(&mut self) -> Result<Parameter> {
        let start = self.token().span;
        let name = self.declared_name("a parameter")?;
        self.expect(TokenKind::Colon, "`:` and a type")?;
        let kind = if self.eat(TokenKind::OpenParen) {
            self.tabular_parameter()?
        } else {
            let scalar_type = self.scalar_type()?;
            let default = if self.eat(TokenKind::Assign) { Some(self.signed_literal()?) } else { None };
            ParameterKind::Scalar { scalar_type, default }
        };
        Ok(Parameter { name, kind, span: self.since(start) })
    }

    /// Parses what follows the `(`.
    fn tabular_parameter(&mut self) -> Result<ParameterKind> {
        if self.eat(TokenKind::Star) {
            self.expect(TokenKind::CloseParen, "`)`")?;
            return Ok(ParameterKind::Tabular(Vec::new()));
        }
        Ok(ParameterKind::Tabular(self.column_declarations()?))
    }

    fn set_statement(&mut self) -> Result<StatementKind> {
        self.advance();
        let name = self.any_word("an option")?;
        let value = if self.eat(TokenKind::Assign) { Some(self.parameter_value()?) } else { None };
        Ok(StatementKind::Set { name, value })
    }

    fn alias_database(&mut self) -> Result<StatementKind> {
        self.advance();
        self.advance();
        let name = self.name("a name")?;
        self.expect(TokenKind::Assign, "`=`")?;
        let database = self.expression()?;
        Ok(StatementKind::AliasDatabase { name, database })
    }

    fn restrict_access(&mut self) -> Result<StatementKind> {
        self.advance();
        self.advance();
        self.expect_word("to")?;
        self.expect(TokenKind::OpenParen, "`(`")?;
        let tables = self.separated(Self::table_expression)?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        Ok(StatementKind::RestrictAccess(tables))
    }

    fn pattern(&mut self) -> Result<StatementKind> {
        self.advance();
        self.advance();
        let name = self.name("a name")?;
        let definition = if self.eat(TokenKind::Assign) { Some(self.pattern_definition()?) } else { None };
        Ok(StatementKind::Pattern(Box::new(Pattern { name, definition })))
    }

    fn pattern_definition(&mut self) -> Result<PatternDefinition> {
        let parameters = self.row_schema()?;
        let mut path = None;
        if self.eat(TokenKind::OpenBracket) {
            path = Some(self.column_declaration()?);
            self.expect(TokenKind::CloseBracket, "`]`")?;
        }
        self.expect(TokenKind::OpenBrace, "`{`")?;
        let mut rules = Vec::new();
        while self.at_kind(TokenKind::OpenParen) {
            rules.push(self.pattern_rule()?);
            self.eat(TokenKind::Semicolon);
        }
        self.expect(TokenKind::CloseBrace, "`(` or `}`")?;
        Ok(PatternDefinition { parameters, path, rules })
    }

    fn pattern_rule(&mut self) -> Result<PatternRule> {
        let start = self.expect(TokenKind::OpenParen, "`(`")?;
        let arguments = self.separated(|parser| Ok(Literal::String(parser.string()?)))?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        let mut path = None;
        if self.eat(TokenKind::Dot) {
            self.expect(TokenKind::OpenBracket, "`[`")?;
            path = Some(Literal::String(self.string()?));
            self.expect(TokenKind::CloseBracket, "`]`")?;
        }
        self.expect(TokenKind::Assign, "`=`")?;
        let body = self.body()?;
        Ok(PatternRule { arguments, path, body, span: self.since(start) })
    }
}
