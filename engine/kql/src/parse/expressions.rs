//! Parses expressions: a Pratt parser over operators and their operands. From loosest to tightest: `or`, `and`,
//! equality and lists, order, `+ -`, `* / %`, strings (`has`, `=~`, ...), sign, then calls and paths. Equality, order
//! and string operators do not chain.

use super::{Parser, Result};
use crate::ast::{
    BinaryOperator, Expr, ExprKind, FunctionCall, ListOperator, LogicalOperator, Name, NamedExpr, Names,
    SubqueryFunction, TextMatch, TextMatchKind, UnaryOperator,
};
use crate::keywords::{self, NameUse};
use crate::lexer::TokenKind;
use crate::span::Span;

/// How tightly an operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Or,
    And,
    Equality,
    Order,
    Sum,
    Product,
    Text,
    Operand,
}

impl Precedence {
    fn tighter(self) -> Self {
        match self {
            Precedence::Or => Precedence::And,
            Precedence::And => Precedence::Equality,
            Precedence::Equality => Precedence::Order,
            Precedence::Order => Precedence::Sum,
            Precedence::Sum => Precedence::Product,
            Precedence::Product => Precedence::Text,
            Precedence::Text | Precedence::Operand => Precedence::Operand,
        }
    }

    fn chains(self) -> bool {
        matches!(self, Precedence::Or | Precedence::And | Precedence::Sum | Precedence::Product)
    }
}

/// An operator after an operand.
#[derive(Debug, Clone, Copy)]
enum Infix {
    Binary(BinaryOperator),
    Logical(LogicalOperator),
    List(ListOperator),
    Between { negated: bool },
}

impl Infix {
    fn binding(self) -> Precedence {
        match self {
            Infix::Logical(LogicalOperator::Or) => Precedence::Or,
            Infix::Logical(LogicalOperator::And) => Precedence::And,
            Infix::List(_) | Infix::Between { .. } => Precedence::Equality,
            Infix::Binary(operator) => match operator {
                BinaryOperator::Equal | BinaryOperator::NotEqual => Precedence::Equality,
                BinaryOperator::Less
                | BinaryOperator::LessOrEqual
                | BinaryOperator::Greater
                | BinaryOperator::GreaterOrEqual => Precedence::Order,
                BinaryOperator::Add | BinaryOperator::Subtract => Precedence::Sum,
                BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => Precedence::Product,
                BinaryOperator::EqualIgnoreCase
                | BinaryOperator::NotEqualIgnoreCase
                | BinaryOperator::Text(_)
                | BinaryOperator::MatchesRegex
                | BinaryOperator::SearchTerm => Precedence::Text,
            },
        }
    }
}

impl Parser<'_> {
    /// A scalar or a table, without `|`.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(|parser| parser.operation(Precedence::Or))
    }

    /// `expr`, `name = expr`, `(a, b) = expr`.
    pub(super) fn named_expression(&mut self) -> Result<NamedExpr> {
        self.named(Self::expression)
    }

    pub(super) fn named_expressions(&mut self) -> Result<Vec<NamedExpr>> {
        self.separated(Self::named_expression)
    }

    /// Parses what `named_expression` parses, and `*`.
    pub(super) fn named_expression_or_star(&mut self) -> Result<NamedExpr> {
        self.named(|parser| match parser.star() {
            Some(star) => Ok(star),
            None => parser.expression(),
        })
    }

    fn named(&mut self, expr: impl FnOnce(&mut Self) -> Result<Expr>) -> Result<NamedExpr> {
        let start = self.token().span;
        let names = if let Some(name) = self.assigned_name() {
            Names::One(name)
        } else if let Some(names) = self.assigned_names() {
            // One name in parentheses is a name.
            match <[Name; 1]>::try_from(names) {
                Ok([name]) => Names::One(name),
                Err(names) => Names::Several(names),
            }
        } else {
            Names::Unnamed
        };
        let expr = expr(self)?;
        Ok(NamedExpr { names, expr, span: self.since(start) })
    }

    /// `*`, unless an operator follows it.
    pub(super) fn star(&mut self) -> Option<Expr> {
        if !self.at_kind(TokenKind::Star) || self.infix_at(1).is_some() {
            return None;
        }
        let span = self.advance().span;
        Some(Expr { kind: ExprKind::Star, span })
    }

    fn operation(&mut self, loosest: Precedence) -> Result<Expr> {
        let start = self.token().span;
        let mut left = self.first_operand()?;
        let mut tightest = Precedence::Operand;
        while let Some((infix, length)) = self.infix_at(0) {
            let binding = infix.binding();
            if binding < loosest || binding > tightest {
                break;
            }
            tightest = match binding {
                _ if binding.chains() => binding,
                Precedence::Text => Precedence::Product,
                Precedence::Order => Precedence::Equality,
                _ => Precedence::And,
            };
            let operator_start = self.token().span;
            for _ in 0..length {
                self.advance();
            }
            let operator_span = self.since(operator_start);
            let kind = self.infix_expression(infix, operator_span, left)?;
            left = Expr { kind, span: self.since(start) };
        }
        Ok(left)
    }

    fn infix_expression(&mut self, infix: Infix, operator_span: Span, left: Expr) -> Result<ExprKind> {
        let binding = infix.binding();
        let left_height = std::mem::take(&mut self.height);
        match infix {
            Infix::Logical(operator) => {
                let right = self.operation(binding.tighter())?;
                // A chain is one node: only its operands make it higher.
                self.grow(left_height.saturating_sub(1))?;
                Ok(chained(operator, left, right))
            }
            Infix::Binary(operator) => {
                let right = self.operation(binding.tighter())?;
                self.grow(left_height)?;
                Ok(ExprKind::Binary { operator, operator_span, left: Box::new(left), right: Box::new(right) })
            }
            Infix::List(operator) => {
                self.expect(TokenKind::OpenParen, "`(` and a list")?;
                let list = self.separated(|parser| Ok(parser.pipeline_expression()))?;
                self.expect(TokenKind::CloseParen, "`,` or `)`")?;
                self.grow(left_height)?;
                Ok(ExprKind::List { operator, operator_span, value: Box::new(left), list })
            }
            Infix::Between { negated } => {
                self.expect(TokenKind::OpenParen, "`(low .. high)`")?;
                let low = self.expression()?;
                self.expect(TokenKind::DotDot, "`..`")?;
                let high = self.expression()?;
                self.expect(TokenKind::CloseParen, "`)`")?;
                self.grow(left_height)?;
                Ok(ExprKind::Between { negated, value: Box::new(left), low: Box::new(low), high: Box::new(high) })
            }
        }
    }

    /// Returns the operator `ahead` of the next token, and its number of tokens.
    fn infix_at(&self, ahead: usize) -> Option<(Infix, usize)> {
        let token = self.peek(ahead);
        let operator = match token.kind {
            TokenKind::Plus => BinaryOperator::Add,
            TokenKind::Minus => BinaryOperator::Subtract,
            TokenKind::Star => BinaryOperator::Multiply,
            TokenKind::Slash => BinaryOperator::Divide,
            TokenKind::Percent => BinaryOperator::Modulo,
            TokenKind::Equal => BinaryOperator::Equal,
            TokenKind::NotEqual | TokenKind::LessGreater => BinaryOperator::NotEqual,
            TokenKind::Less => BinaryOperator::Less,
            TokenKind::LessEqual => BinaryOperator::LessOrEqual,
            TokenKind::Greater => BinaryOperator::Greater,
            TokenKind::GreaterEqual => BinaryOperator::GreaterOrEqual,
            TokenKind::EqualTilde => BinaryOperator::EqualIgnoreCase,
            TokenKind::NotTilde => BinaryOperator::NotEqualIgnoreCase,
            TokenKind::Colon => BinaryOperator::SearchTerm,
            // `make-series ... on t in range(...)`
            TokenKind::Word if self.word_at(ahead) == "in" && self.word_at(ahead + 1) == "range" => return None,
            TokenKind::Word if self.word_at(ahead) == "matches" && self.word_at(ahead + 1) == "regex" => {
                return Some((Infix::Binary(BinaryOperator::MatchesRegex), 2));
            }
            TokenKind::Word | TokenKind::NegatedWord => {
                return word_operator(token.span.slice(self.text)).map(|infix| (infix, 1));
            }
            _ => return None,
        };
        Some((Infix::Binary(operator), 1))
    }

    /// An operand, or the `*` of `* has "x"`.
    fn first_operand(&mut self) -> Result<Expr> {
        if self.at_kind(TokenKind::Star)
            && self
                .infix_at(1)
                .is_some_and(|(infix, _)| matches!(infix.binding(), Precedence::Text | Precedence::Equality))
        {
            let span = self.advance().span;
            return Ok(Expr { kind: ExprKind::Star, span });
        }
        self.operand()
    }

    /// A path with a sign, if it has one.
    pub(super) fn operand(&mut self) -> Result<Expr> {
        let token = self.token();
        let operator = match token.kind {
            TokenKind::Minus => UnaryOperator::Minus,
            TokenKind::Plus => UnaryOperator::Plus,
            _ => return self.path(),
        };
        self.advance();
        let operand = self.path()?;
        self.grow(0)?;
        let kind = ExprKind::Unary { operator, operand: Box::new(operand) };
        Ok(Expr { kind, span: self.since(token.span) })
    }

    /// `a`, `a.b`, `a[0]`, `f(x).b`, `database('d').T*`.
    pub(super) fn path(&mut self) -> Result<Expr> {
        let start = self.token().span;
        let mut base = self.primary()?;
        loop {
            let kind = match self.token().kind {
                TokenKind::Dot => {
                    self.advance();
                    self.grow(0)?;
                    self.after_dot(base)?
                }
                TokenKind::OpenBracket => {
                    self.grow(0)?;
                    self.element(base)?
                }
                _ => return Ok(base),
            };
            base = Expr { kind, span: self.since(start) };
        }
    }

    pub(super) fn after_dot(&mut self, base: Expr) -> Result<ExprKind> {
        if self.at_kind(TokenKind::OpenBracket) && !self.at_bracketed_name(0) {
            return self.element(base);
        }
        let name = self.any_word("a name after `.`")?;
        if !self.at_kind(TokenKind::OpenParen) {
            return Ok(ExprKind::Member { base: Box::new(base), name });
        }
        let arguments = self.arguments()?;
        Ok(ExprKind::Call(Box::new(FunctionCall { target: Some(base), function: name, arguments })))
    }

    fn element(&mut self, base: Expr) -> Result<ExprKind> {
        self.expect(TokenKind::OpenBracket, "`[`")?;
        let index = self.expression()?;
        self.expect(TokenKind::CloseBracket, "`]`")?;
        Ok(ExprKind::Element { base: Box::new(base), index: Box::new(index) })
    }

    pub(super) fn primary(&mut self) -> Result<Expr> {
        let start = self.token().span;
        let kind = match self.token().kind {
            TokenKind::Long | TokenKind::Real | TokenKind::Timespan | TokenKind::String | TokenKind::Typed => {
                ExprKind::Literal(self.literal()?)
            }
            TokenKind::OpenParen => self.parenthesized()?.kind,
            TokenKind::OpenBracket if self.at_bracketed_name(0) => {
                let name = self.bracketed_name();
                self.name_or_call(name)?
            }
            TokenKind::Word => self.word_expression()?,
            _ => return Err(self.expected("an expression")),
        };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// `(expr)`, `(T | where a)`.
    pub(super) fn parenthesized(&mut self) -> Result<Expr> {
        let start = self.expect(TokenKind::OpenParen, "`(`")?;
        let inner = self.pipeline_expression();
        self.expect(TokenKind::CloseParen, "`)`")?;
        Ok(Expr { kind: inner.kind, span: self.since(start) })
    }

    fn word_expression(&mut self) -> Result<ExprKind> {
        match self.word() {
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return Ok(ExprKind::Literal(self.literal()?)),
            "dynamic" | "typeof" if self.peek(1).kind == TokenKind::OpenParen => {
                return Ok(ExprKind::Literal(self.literal()?));
            }
            "datatable" => return self.datatable(),
            "externaldata" | "external_data" => return self.externaldata(),
            "inline_external_table"
                if self.peek(1).kind == TokenKind::OpenParen
                    || (self.word_at(1) == "kind" && self.peek(2).kind == TokenKind::Assign) =>
            {
                return self.inline_external_table();
            }
            "entity_group" if self.peek(1).kind == TokenKind::OpenBracket => return self.entity_group(),
            "toscalar" => return self.subquery(SubqueryFunction::ToScalar),
            "totable" => return self.subquery(SubqueryFunction::ToTable),
            "materialize" => return self.subquery(SubqueryFunction::Materialize),
            word if keywords::name_use(word) != NameUse::Anywhere => {
                let hint = self.bracket_hint();
                return Err(self.expected_with_hint("an expression", hint));
            }
            "not" if self.peek(1).kind != TokenKind::OpenParen && self.starts_operand(1) => {
                let hint = "`not` is a function: write `not(...)`".to_owned();
                self.advance();
                return Err(self.expected_with_hint("`(`", Some(hint)));
            }
            _ => {}
        }
        let name = self.plain_name();
        self.name_or_call(name)
    }

    /// Whether the token `ahead` can only be an operand.
    fn starts_operand(&self, ahead: usize) -> bool {
        let token = self.peek(ahead);
        match token.kind {
            TokenKind::Word => {
                self.infix_at(ahead).is_none() && keywords::name_use(self.word_at(ahead)) == NameUse::Anywhere
            }
            TokenKind::Long | TokenKind::Real | TokenKind::Timespan | TokenKind::String | TokenKind::Typed => true,
            _ => false,
        }
    }

    pub(super) fn name_or_call(&mut self, name: Name) -> Result<ExprKind> {
        if self.at_kind(TokenKind::OpenParen) {
            let arguments = self.arguments()?;
            return Ok(ExprKind::Call(Box::new(FunctionCall { target: None, function: name, arguments })));
        }
        // Selects one of Kusto's caches.
        if self.at_word("datascope") && self.peek(1).kind == TokenKind::Assign {
            self.advance();
            self.advance();
            self.any_word("`all` or `hotcache`")?;
        }
        Ok(ExprKind::Name(name))
    }

    /// `(a, b = c, *)`.
    pub(super) fn arguments(&mut self) -> Result<Vec<NamedExpr>> {
        self.expect(TokenKind::OpenParen, "`(`")?;
        if self.eat(TokenKind::CloseParen) {
            return Ok(Vec::new());
        }
        let arguments = self.separated(Self::named_expression_or_star)?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        Ok(arguments)
    }

    fn subquery(&mut self, function: SubqueryFunction) -> Result<ExprKind> {
        self.advance();
        // `kind=nooptimization` is for Kusto's planner.
        if self.at_word("kind") {
            self.operator_parameters()?;
        }
        let body = self.parenthesized()?;
        Ok(ExprKind::Subquery { function, body: Box::new(body) })
    }

    fn entity_group(&mut self) -> Result<ExprKind> {
        self.advance();
        self.expect(TokenKind::OpenBracket, "`[`")?;
        let members = self.separated(Self::expression)?;
        self.expect(TokenKind::CloseBracket, "`,` or `]`")?;
        Ok(ExprKind::EntityGroup(members))
    }

    /// `a`, `a.b`, `a[0]` where a `(` after it is not a call.
    pub(super) fn column_path(&mut self) -> Result<Expr> {
        let start = self.token().span;
        let name = self.name("a column")?;
        let mut base = Expr { kind: ExprKind::Name(name), span: self.since(start) };
        loop {
            let kind = match self.token().kind {
                TokenKind::Dot => {
                    self.advance();
                    self.grow(0)?;
                    if self.at_kind(TokenKind::OpenBracket) {
                        self.element(base)?
                    } else {
                        let name = self.name("a name after `.`")?;
                        ExprKind::Member { base: Box::new(base), name }
                    }
                }
                TokenKind::OpenBracket => {
                    self.grow(0)?;
                    self.element(base)?
                }
                _ => return Ok(base),
            };
            base = Expr { kind, span: self.since(start) };
        }
    }
}

/// Makes one flat node of a chain of the same operator.
fn chained(operator: LogicalOperator, left: Expr, right: Expr) -> ExprKind {
    let operands = match left {
        Expr { kind: ExprKind::Logical { operator: chain, mut operands }, .. } if chain == operator => {
            operands.push(right);
            operands
        }
        left => vec![left, right],
    };
    ExprKind::Logical { operator, operands }
}

pub(super) fn is_word_operator(word: &str) -> bool {
    word_operator(word).is_some()
}

fn word_operator(word: &str) -> Option<Infix> {
    let list = match word {
        "and" => return Some(Infix::Logical(LogicalOperator::And)),
        "or" => return Some(Infix::Logical(LogicalOperator::Or)),
        "between" => return Some(Infix::Between { negated: false }),
        "!between" => return Some(Infix::Between { negated: true }),
        "in" => ListOperator::In { negated: false, ignore_case: false },
        "!in" => ListOperator::In { negated: true, ignore_case: false },
        "in~" => ListOperator::In { negated: false, ignore_case: true },
        "!in~" => ListOperator::In { negated: true, ignore_case: true },
        "has_any" => ListOperator::HasAny,
        "has_all" => ListOperator::HasAll,
        _ => return text_match(word).map(|text| Infix::Binary(BinaryOperator::Text(text))),
    };
    Some(Infix::List(list))
}

fn text_match(word: &str) -> Option<TextMatch> {
    // Old spellings, without the underscore and the exclamation mark.
    let (kind, negated, case_sensitive) = match word {
        "containscs" => (TextMatchKind::Contains, false, true),
        "notcontains" => (TextMatchKind::Contains, true, false),
        "notcontainscs" => (TextMatchKind::Contains, true, true),
        "like" => (TextMatchKind::Like, false, false),
        "likecs" => (TextMatchKind::Like, false, true),
        "notlike" => (TextMatchKind::Like, true, false),
        "notlikecs" => (TextMatchKind::Like, true, true),
        _ => {
            let (word, negated) = word.strip_prefix('!').map_or((word, false), |word| (word, true));
            let (word, case_sensitive) = word.strip_suffix("_cs").map_or((word, false), |word| (word, true));
            let kind = match word {
                "contains" => TextMatchKind::Contains,
                "endswith" => TextMatchKind::EndsWith,
                "has" => TextMatchKind::Has,
                "hasprefix" => TextMatchKind::HasPrefix,
                "hassuffix" => TextMatchKind::HasSuffix,
                "startswith" => TextMatchKind::StartsWith,
                _ => return None,
            };
            (kind, negated, case_sensitive)
        }
    };
    Some(TextMatch { kind, negated, case_sensitive })
}
