//! Parses `name=value` between an operator's keyword and its operands, and `with (name = value, ...)` after them.

use super::{Parser, Result};
use crate::ast::{Name, OperatorParameter, ParameterValue, Property};
use crate::keywords;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Parameters that are recognised by name, where a named expression could follow.
    pub(super) fn operator_parameters(&mut self) -> Result<Vec<OperatorParameter>> {
        let mut parameters = Vec::new();
        while self.parameter_name_length().is_some() && (self.at_hint() || keywords::is_parameter(self.word())) {
            parameters.push(self.operator_parameter()?);
        }
        Ok(parameters)
    }

    /// Parses any `name=value`, where nothing else can have this form.
    pub(super) fn any_parameters(&mut self) -> Result<Vec<OperatorParameter>> {
        let mut parameters = Vec::new();
        while self.parameter_name_length().is_some() {
            parameters.push(self.operator_parameter()?);
        }
        Ok(parameters)
    }

    fn at_hint(&self) -> bool {
        self.at_word("hint") && self.peek(1).kind == TokenKind::Dot
    }

    /// Returns the number of tokens before the `=`, if they are a parameter's name.
    fn parameter_name_length(&self) -> Option<usize> {
        if self.word().is_empty() {
            return None;
        }
        let length = if self.at_hint() && !self.word_at(2).is_empty() { 3 } else { 1 };
        (self.peek(length).kind == TokenKind::Assign).then_some(length)
    }

    fn operator_parameter(&mut self) -> Result<OperatorParameter> {
        let start = self.token().span;
        while !self.at_kind(TokenKind::Assign) {
            self.advance();
        }
        let span = self.since(start);
        let name = Name { text: span.slice(self.text).to_owned(), bracketed: false, span };
        self.advance();
        let value = self.parameter_value()?;
        Ok(OperatorParameter { name, value, span: self.since(start) })
    }

    pub(super) fn parameter_value(&mut self) -> Result<ParameterValue> {
        let is_literal = matches!(self.word(), "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
            || (self.at_word("dynamic") && self.peek(1).kind == TokenKind::OpenParen);
        if is_literal {
            return Ok(ParameterValue::Literal(self.literal()?));
        }
        if !self.word().is_empty() || self.at_bracketed_name(0) {
            return Ok(ParameterValue::Name(self.any_word("a value")?));
        }
        if matches!(self.token().kind, TokenKind::Minus | TokenKind::Plus) {
            return Ok(ParameterValue::Literal(self.signed_number()?));
        }
        if matches!(
            self.token().kind,
            TokenKind::Long | TokenKind::Real | TokenKind::Timespan | TokenKind::String | TokenKind::Typed
        ) {
            return Ok(ParameterValue::Literal(self.literal()?));
        }
        Err(self.expected("a name or a literal"))
    }

    /// Parses the `with (name = value, ...)` of `externaldata` and `parse-kv`, if there is one.
    pub(super) fn with_properties(&mut self) -> Result<Vec<Property>> {
        if !self.eat_word("with") {
            return Ok(Vec::new());
        }
        self.expect(TokenKind::OpenParen, "`(`")?;
        if self.eat(TokenKind::CloseParen) {
            return Ok(Vec::new());
        }
        let properties = self.separated(Self::property)?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        Ok(properties)
    }

    fn property(&mut self) -> Result<Property> {
        let start = self.token().span;
        let name = self.any_word("a property's name")?;
        self.expect(TokenKind::Assign, "`=`")?;
        let value = self.expression()?;
        Ok(Property { name, values: vec![value], span: self.since(start) })
    }
}
