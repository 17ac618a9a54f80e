//! Parses literals, and the JSON of `dynamic(...)`.

use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, Json, JsonKind, JsonProperty, Literal, ScalarType, UnaryOperator};
use crate::error::SyntaxErrorCode;
use crate::lexer::{TokenKind, decode, long_value, timespan_ticks};
use crate::span::Span;

impl Parser<'_> {
    /// A literal without a sign.
    pub(super) fn literal(&mut self) -> Result<Literal> {
        let token = self.token();
        let text = token.span.slice(self.text);
        let literal = match token.kind {
            TokenKind::String => return Ok(Literal::String(self.string()?)),
            TokenKind::Typed => return self.typed_literal(),
            TokenKind::Long => match long_value(text) {
                Some(value) => Literal::Long(value),
                None => return Err(self.out_of_range("long")),
            },
            TokenKind::Timespan => match timespan_ticks(text) {
                Some(ticks) => Literal::Timespan(ticks),
                None => return Err(self.out_of_range("timespan")),
            },
            TokenKind::Real => Literal::Real(text.parse().unwrap_or(f64::NAN)),
            TokenKind::Word => match text {
                "true" | "True" | "TRUE" => Literal::Bool(true),
                "false" | "False" | "FALSE" => Literal::Bool(false),
                "dynamic" => return self.dynamic(),
                "typeof" => return self.type_or_row_type(),
                _ => return Err(self.expected("a literal")),
            },
            _ => return Err(self.expected("a literal")),
        };
        self.advance();
        Ok(literal)
    }

    /// A literal as an expression, with a sign where it is a number or a timespan.
    pub(super) fn signed_literal(&mut self) -> Result<Expr> {
        let start = self.token().span;
        let operator = match self.token().kind {
            TokenKind::Minus => Some(UnaryOperator::Minus),
            TokenKind::Plus => Some(UnaryOperator::Plus),
            _ => None,
        };
        let Some(operator) = operator else {
            let kind = ExprKind::Literal(self.literal()?);
            return Ok(Expr { kind, span: self.since(start) });
        };
        self.advance();
        let number = self.token().span;
        if !matches!(self.token().kind, TokenKind::Long | TokenKind::Real | TokenKind::Timespan) {
            return Err(self.expected("a number"));
        }
        if let Some(kind) = self.smallest_long(operator) {
            return Ok(Expr { kind, span: self.since(start) });
        }
        let literal = ExprKind::Literal(self.literal()?);
        let operand = Box::new(Expr { kind: literal, span: self.since(number) });
        Ok(Expr { kind: ExprKind::Unary { operator, operand }, span: self.since(start) })
    }

    /// A number or timespan with its sign, as one literal.
    pub(super) fn signed_number(&mut self) -> Result<Literal> {
        let expr = self.signed_literal()?;
        let literal = match expr.kind {
            ExprKind::Unary { operator, operand } => match (operator, operand.kind) {
                (UnaryOperator::Minus, ExprKind::Literal(literal)) => negated(literal),
                (UnaryOperator::Plus, ExprKind::Literal(literal)) => Some(literal),
                _ => None,
            },
            ExprKind::Literal(literal) => Some(literal),
            _ => None,
        };
        literal.ok_or_else(|| self.expected("a number"))
    }

    /// The one `long` whose digits do not fit without its sign.
    fn smallest_long(&mut self, operator: UnaryOperator) -> Option<ExprKind> {
        let token = self.token();
        let is_smallest = operator == UnaryOperator::Minus
            && token.kind == TokenKind::Long
            && token.span.slice(self.text).parse::<u64>() == Ok(i64::MIN.unsigned_abs());
        is_smallest.then(|| {
            self.advance();
            ExprKind::Literal(Literal::Long(i64::MIN))
        })
    }

    /// A string; adjacent string literals are joined.
    pub(super) fn string(&mut self) -> Result<String> {
        if !self.at_kind(TokenKind::String) {
            return Err(self.expected("a string"));
        }
        let mut text = String::new();
        while self.at_kind(TokenKind::String) {
            let part = self.advance().span;
            text.push_str(&decode(part.slice(self.text)));
        }
        Ok(text)
    }

    /// The name of a type.
    pub(super) fn scalar_type(&mut self) -> Result<ScalarType> {
        let word = self.word();
        match ScalarType::from_name(&word.to_ascii_lowercase()) {
            Some(scalar_type) => {
                self.advance();
                Ok(scalar_type)
            }
            None if word.is_empty() => Err(self.expected("a type")),
            None => {
                let message = format!("unknown type `{word}`");
                let span = self.token().span;
                Err(self.unknown_type(message, span))
            }
        }
    }

    /// `typeof(long)`.
    pub(super) fn type_literal(&mut self) -> Result<ScalarType> {
        self.expect_word("typeof")?;
        self.expect(TokenKind::OpenParen, "`(`")?;
        let scalar_type = self.scalar_type()?;
        self.expect(TokenKind::CloseParen, "`)`")?;
        Ok(scalar_type)
    }

    /// `typeof(long)`, `typeof(*, a:long)`.
    fn type_or_row_type(&mut self) -> Result<Literal> {
        if self.peek(2).kind == TokenKind::Star || self.peek(3).kind == TokenKind::Colon {
            self.advance();
            return Ok(Literal::RowType(self.plugin_schema()?));
        }
        Ok(Literal::Type(self.type_literal()?))
    }

    fn typed_literal(&mut self) -> Result<Literal> {
        let text = self.token().span.slice(self.text);
        let (name, content) = text.split_once('(').unwrap_or((text, ""));
        let Some(scalar_type) = ScalarType::from_name(name) else { return Err(self.expected("a literal")) };
        let content = content.strip_suffix(')').unwrap_or(content).trim();
        self.advance();
        Ok(Literal::Typed { scalar_type, text: content.to_owned() })
    }

    fn unknown_type(&mut self, message: String, span: Span) -> super::Reported {
        let hint = "types are bool, datetime, decimal, dynamic, guid, int, long, real, string, timespan".to_owned();
        self.report(SyntaxErrorCode::UnknownType, message, span, Some(hint))
    }

    fn out_of_range(&mut self, what: &str) -> super::Reported {
        let span = self.token().span;
        let message = format!("{} does not fit a {what}", self.found());
        self.report(SyntaxErrorCode::NumberOutOfRange, message, span, None)
    }

    fn dynamic(&mut self) -> Result<Literal> {
        self.advance();
        self.expect(TokenKind::OpenParen, "`(`")?;
        let json = self.json()?;
        self.expect(TokenKind::CloseParen, "`)`")?;
        Ok(Literal::Dynamic(Box::new(json)))
    }

    fn json(&mut self) -> Result<Json> {
        self.nested(|parser| {
            let start = parser.token().span;
            let kind = parser.json_kind()?;
            Ok(Json { kind, span: parser.since(start) })
        })
    }

    fn json_kind(&mut self) -> Result<JsonKind> {
        match self.token().kind {
            TokenKind::OpenBrace => self.json_object(),
            TokenKind::OpenBracket => self.json_array(),
            TokenKind::Minus => {
                self.advance();
                self.json_number(-1.0)
            }
            TokenKind::Long | TokenKind::Real => self.json_number(1.0),
            TokenKind::Word if self.at_word("null") => {
                self.advance();
                Ok(JsonKind::Null)
            }
            TokenKind::Word if self.at_word("dynamic") => match self.literal()? {
                Literal::Dynamic(json) => Ok(json.kind),
                literal => Ok(JsonKind::Literal(literal)),
            },
            TokenKind::Word if !matches!(self.word(), "true" | "True" | "TRUE" | "false" | "False" | "FALSE") => {
                let hint = "a text wants quotes; a computed value wants `bag_pack` or `pack_array`".to_owned();
                Err(self.expected_with_hint("a JSON value", Some(hint)))
            }
            TokenKind::Word | TokenKind::String | TokenKind::Timespan | TokenKind::Typed => {
                Ok(JsonKind::Literal(self.literal()?))
            }
            _ => Err(self.expected("a JSON value")),
        }
    }

    /// A number; one too large for a long is a real, as in JSON.
    fn json_number(&mut self, sign: f64) -> Result<JsonKind> {
        let token = self.token();
        let text = token.span.slice(self.text);
        let literal = match token.kind {
            TokenKind::Long => match long_value(text).map(|value| if sign < 0.0 { -value } else { value }) {
                Some(value) => Literal::Long(value),
                None => Literal::Real(sign * text.parse::<f64>().unwrap_or(f64::NAN)),
            },
            TokenKind::Real => Literal::Real(sign * text.parse::<f64>().unwrap_or(f64::NAN)),
            _ => return Err(self.expected("a number")),
        };
        self.advance();
        Ok(JsonKind::Literal(literal))
    }

    fn json_array(&mut self) -> Result<JsonKind> {
        self.advance();
        if self.eat(TokenKind::CloseBracket) {
            return Ok(JsonKind::Array(Vec::new()));
        }
        let elements = self.separated(Self::json)?;
        self.expect(TokenKind::CloseBracket, "`,` or `]`")?;
        Ok(JsonKind::Array(elements))
    }

    fn json_object(&mut self) -> Result<JsonKind> {
        self.advance();
        if self.eat(TokenKind::CloseBrace) {
            return Ok(JsonKind::Object(Vec::new()));
        }
        let properties = self.separated(Self::json_property)?;
        self.expect(TokenKind::CloseBrace, "`,` or `}`")?;
        Ok(JsonKind::Object(properties))
    }

    fn json_property(&mut self) -> Result<JsonProperty> {
        let start = self.token().span;
        if !self.at_kind(TokenKind::String) {
            return Err(self.expected("a property's name in quotes"));
        }
        let name = decode(self.advance().span.slice(self.text));
        self.expect(TokenKind::Colon, "`:`")?;
        let value = self.json()?;
        Ok(JsonProperty { name, value, span: self.since(start) })
    }
}

fn negated(literal: Literal) -> Option<Literal> {
    match literal {
        Literal::Long(value) => Some(Literal::Long(-value)),
        Literal::Real(value) => Some(Literal::Real(-value)),
        Literal::Timespan(ticks) => Some(Literal::Timespan(-ticks)),
        _ => None,
    }
}
