//! Parses pipelines: a source and operators. An operator with an error becomes `Invalid`; parsing continues at the next
//! `|`.

use super::expressions::is_word_operator;
use super::{Parser, Reported, Result};
use crate::ast::{Expr, ExprKind, NamedExpr, Operator, OperatorKind, OperatorParameter, Pipeline};
use crate::error::SyntaxErrorCode;
use crate::lexer::TokenKind;
use crate::nearest::nearest_within;
use crate::span::Span;

/// The operators that can follow `|`, for hints.
const OPERATORS: &[&str] = &[
    "as",
    "assert-schema",
    "consume",
    "count",
    "distinct",
    "evaluate",
    "extend",
    "facet",
    "filter",
    "find",
    "fork",
    "getschema",
    "graph-mark-components",
    "graph-match",
    "graph-shortest-paths",
    "graph-to-table",
    "graph-traverse",
    "graph-where-edges",
    "graph-where-nodes",
    "invoke",
    "join",
    "limit",
    "lookup",
    "make-graph",
    "make-series",
    "mv-apply",
    "mv-expand",
    "order",
    "parse",
    "parse-kv",
    "parse-where",
    "partition",
    "project",
    "project-away",
    "project-by-names",
    "project-keep",
    "project-rename",
    "project-reorder",
    "reduce",
    "render",
    "sample",
    "sample-distinct",
    "scan",
    "search",
    "serialize",
    "sort",
    "summarize",
    "take",
    "top",
    "top-hitters",
    "top-nested",
    "union",
    "where",
];

/// The least similarity of a misspelt word to the operator that a hint names.
const LIKE_ENOUGH: f64 = 0.8;
/// Longer words are not compared with operators.
const LONGEST_WORD: usize = 40;

/// An operator's kind and its parameters.
type OperatorParts = (OperatorKind, Vec<OperatorParameter>);

impl<'a> Parser<'a> {
    /// Parses an expression, scalar or tabular, with the operators after it. Parts with errors become `Invalid`.
    pub(super) fn pipeline_expression(&mut self) -> Expr {
        let start = self.token().span;
        let first = self.at;
        let source = if self.at_leading_operator() { None } else { Some(self.source(first)) };
        let mut operators = Vec::new();
        if source.is_none() {
            operators.push(self.operator(first));
        }
        self.piped_operators(first, &mut operators);
        match source {
            Some(source) if operators.is_empty() => source,
            source => {
                let kind = ExprKind::Pipeline(Box::new(Pipeline { source, operators }));
                Expr { kind, span: self.since(start) }
            }
        }
    }

    /// Parses the parentheses of `mv-apply`, `fork` and similar operators, and the operators in them.
    pub(super) fn piped_body(&mut self) -> Result<Pipeline> {
        self.expect(TokenKind::OpenParen, "`(`")?;
        let body = self.sub_pipeline();
        self.expect(TokenKind::CloseParen, "`|` or `)`")?;
        Ok(body)
    }

    fn sub_pipeline(&mut self) -> Pipeline {
        let first = self.at;
        let mut operators = vec![self.operator(first)];
        self.piped_operators(first, &mut operators);
        Pipeline { source: None, operators }
    }

    fn piped_operators(&mut self, first: usize, operators: &mut Vec<Operator>) {
        loop {
            if !self.at_end_of_pipeline() {
                self.expected_pipe();
                self.recover(first);
            }
            if !self.eat(TokenKind::Pipe) {
                return;
            }
            operators.push(self.operator(first));
        }
    }

    fn source(&mut self, first: usize) -> Expr {
        let start = self.token().span;
        match self.expression() {
            Ok(source) => source,
            Err(Reported) => {
                self.recover(first);
                Expr { kind: ExprKind::Invalid, span: self.since(start) }
            }
        }
    }

    fn at_end_of_pipeline(&self) -> bool {
        matches!(
            self.token().kind,
            TokenKind::Pipe
                | TokenKind::Semicolon
                | TokenKind::Comma
                | TokenKind::CloseParen
                | TokenKind::CloseBracket
                | TokenKind::CloseBrace
                | TokenKind::End
        )
    }

    fn expected_pipe(&mut self) {
        let hint = self.hint_after_expression();
        self.expected_with_hint("`|`, `;` or the end of the query", hint);
    }

    /// Returns a hint for a token that ends a query too early.
    fn hint_after_expression(&self) -> Option<String> {
        let token = self.token();
        let between = Span::new(self.last_end().end as usize, token.span.start as usize).slice(self.text);
        let hint = match token.kind {
            TokenKind::Equal | TokenKind::NotEqual | TokenKind::Less | TokenKind::Greater | TokenKind::EqualTilde => {
                "comparisons do not chain; combine them with `and`".to_owned()
            }
            TokenKind::Assign => "`==` compares; `=` names what follows it".to_owned(),
            TokenKind::OpenBrace => "parameters of a function have types: `(a:long) { ... }`".to_owned(),
            TokenKind::Word if OPERATORS.contains(&self.word()) => {
                format!("write `| {}` for another operator", self.word())
            }
            TokenKind::Word if self.at_word("is") => "use `isnull(...)` or `isnotnull(...)`".to_owned(),
            TokenKind::Word if is_word_operator(&self.word().to_lowercase()) => {
                format!("keywords are written in lower case: `{}`", self.word().to_lowercase())
            }
            _ if between.contains('\n') => "separate statements with `;`".to_owned(),
            _ => return None,
        };
        Some(hint)
    }

    /// Whether the next token is an operator that needs no source.
    fn at_leading_operator(&self) -> bool {
        match self.word() {
            "find" | "print" | "search" | "union" | "macro-expand" => true,
            // These are also ordinary names.
            "evaluate" => !self.word_at(1).is_empty(),
            "range" => self.word_at(2) == "from" || (self.at_bracketed_name(1) && self.word_at(4) == "from"),
            "invoke" => !self.word_at(1).is_empty() && self.peek(2).kind == TokenKind::OpenParen,
            _ => false,
        }
    }

    /// Parses the next operator. `first` is the token that the pipeline starts with.
    pub(super) fn operator(&mut self, first: usize) -> Operator {
        let start = self.token().span;
        match self.nested(Self::operator_parts) {
            Ok((kind, parameters)) => Operator { kind, parameters, span: self.since(start) },
            Err(Reported) => {
                self.recover(first);
                Operator { kind: OperatorKind::Invalid, parameters: Vec::new(), span: self.since(start) }
            }
        }
    }

    fn operator_parts(&mut self) -> Result<OperatorParts> {
        let word = self.word();
        if let Some(word) = self.unknown_hyphenated() {
            return Err(self.unknown_operator(word));
        }
        if word.is_empty() {
            let hint = (self.at_kind(TokenKind::Pipe)).then(|| "`||` is written `or`".to_owned());
            return Err(self.expected_with_hint("an operator", hint));
        }
        // The keyword is taken first: every function below starts after it.
        self.advance();
        match word {
            "as" => self.after_parameters(|parser| Ok(OperatorKind::As(parser.name("a name")?))),
            "assert-schema" => self.bare(|parser| Ok(OperatorKind::AssertSchema(parser.row_schema()?))),
            "consume" => self.after_parameters(|_| Ok(OperatorKind::Consume)),
            "count" => self.after_parameters(Self::count),
            "distinct" => self.with_parameters(Self::distinct),
            "evaluate" => self.after_parameters(Self::evaluate),
            "extend" => self.named_list(OperatorKind::Extend),
            "facet" => self.bare(Self::facet),
            "filter" | "where" => self.with_parameters(|parser| Ok(OperatorKind::Where(parser.named_expression()?))),
            "find" => self.after_parameters(Self::find),
            "fork" => self.bare(Self::fork),
            "getschema" => self.after_parameters(|_| Ok(OperatorKind::GetSchema)),
            "graph-mark-components" => self.after_parameters(|_| Ok(OperatorKind::GraphMarkComponents)),
            "graph-match" => {
                self.after_parameters(|parser| Ok(OperatorKind::GraphMatch(Box::new(parser.graph_match()?))))
            }
            "graph-shortest-paths" => {
                self.after_parameters(|parser| Ok(OperatorKind::GraphShortestPaths(Box::new(parser.graph_match()?))))
            }
            "graph-to-table" => self.bare(Self::graph_to_table),
            "graph-traverse" => self.bare(Self::graph_traverse),
            "graph-where-edges" => {
                self.after_parameters(|parser| Ok(OperatorKind::GraphWhereEdges(parser.expression()?)))
            }
            "graph-where-nodes" => {
                self.after_parameters(|parser| Ok(OperatorKind::GraphWhereNodes(parser.expression()?)))
            }
            "invoke" => self.bare(|parser| Ok(OperatorKind::Invoke(parser.call("a function call")?))),
            "join" => self.after_parameters(Self::join),
            "limit" | "take" => self.with_parameters(|parser| Ok(OperatorKind::Take(parser.named_expression()?))),
            "lookup" => self.after_parameters(Self::lookup),
            "macro-expand" => self.after_parameters(Self::macro_expand),
            "make-graph" => self.after_parameters(Self::make_graph),
            "make-series" => self.with_parameters(Self::make_series),
            "mv-apply" | "mvapply" => self.with_parameters(Self::mv_apply),
            "mv-expand" => self.with_parameters(Self::mv_expand),
            "mvexpand" => self.with_parameters(Self::old_mv_expand),
            "order" | "sort" => self.after_parameters(Self::sort),
            "parse" => self.after_parameters(|parser| parser.parse_operator(false)),
            "parse-kv" => self.bare(Self::parse_kv),
            "parse-where" => self.after_parameters(|parser| parser.parse_operator(true)),
            "partition" => self.after_parameters(Self::partition),
            "__partitionby" => self.after_parameters(Self::partition_body),
            "print" => self.named_list(OperatorKind::Print),
            "project" => self.optional_named_list(OperatorKind::Project),
            "project-away" => self.bare(|parser| Ok(OperatorKind::ProjectAway(parser.name_patterns()?))),
            "project-by-names" => self.bare(Self::project_by_names),
            "project-keep" => self.bare(|parser| Ok(OperatorKind::ProjectKeep(parser.name_patterns()?))),
            "project-rename" => self.optional_named_list(OperatorKind::ProjectRename),
            "project-reorder" => self.bare(Self::project_reorder),
            "range" => self.bare(Self::range),
            "reduce" => self.after_parameters(Self::reduce),
            "render" => self.bare(Self::render),
            "sample" => self.with_parameters(|parser| Ok(OperatorKind::Sample(parser.named_expression()?))),
            "sample-distinct" => self.with_parameters(Self::sample_distinct),
            "scan" => self.after_parameters(Self::scan),
            "search" => self.after_parameters(Self::search),
            "serialize" => {
                let parameters = self.operator_parameters()?;
                let (kind, _) = self.optional_named_list(OperatorKind::Serialize)?;
                Ok((kind, parameters))
            }
            "summarize" => self.with_parameters(Self::summarize),
            "top" => self.with_parameters(Self::top),
            "top-hitters" => self.with_parameters(Self::top_hitters),
            "top-nested" => self.bare(Self::top_nested),
            "union" => self.after_parameters(Self::union),
            _ => {
                self.at = self.at.saturating_sub(1);
                Err(self.unknown_operator(word))
            }
        }
    }

    /// Returns a word such as `project-out`: the beginning of a hyphenated operator with another end.
    fn unknown_hyphenated(&self) -> Option<&'a str> {
        let [word, hyphen, end] = [self.peek(0).span, self.peek(1).span, self.peek(2).span];
        let is_hyphenated = self.peek(1).kind == TokenKind::Minus
            && !self.word_at(2).is_empty()
            && word.touches(hyphen)
            && hyphen.touches(end)
            && OPERATORS.iter().any(|operator| operator.split_once('-').is_some_and(|(first, _)| first == self.word()));
        is_hyphenated.then(|| word.to(end).slice(self.text))
    }

    fn unknown_operator(&mut self, word: &str) -> Reported {
        let near = nearest_operator(word);
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        let shown: String = word.chars().take(LONGEST_WORD).collect();
        let message = format!("expected an operator, found `{shown}`");
        let start = self.token().span.start as usize;
        let span = Span::new(start, start + word.len());
        self.report(SyntaxErrorCode::UnknownOperator, message, span, hint)
    }

    /// Parses an operator that takes no parameters.
    fn bare(&mut self, operands: impl FnOnce(&mut Self) -> Result<OperatorKind>) -> Result<OperatorParts> {
        Ok((operands(self)?, Vec::new()))
    }

    /// Parses an operator whose operands may start with `name =`.
    fn with_parameters(&mut self, operands: impl FnOnce(&mut Self) -> Result<OperatorKind>) -> Result<OperatorParts> {
        let parameters = self.operator_parameters()?;
        Ok((operands(self)?, parameters))
    }

    /// Parses an operator whose operands never start with `name =`.
    fn after_parameters(&mut self, operands: impl FnOnce(&mut Self) -> Result<OperatorKind>) -> Result<OperatorParts> {
        let parameters = self.any_parameters()?;
        Ok((operands(self)?, parameters))
    }

    fn named_list(&mut self, kind: impl FnOnce(Vec<NamedExpr>) -> OperatorKind) -> Result<OperatorParts> {
        Ok((kind(self.named_expressions()?), Vec::new()))
    }

    fn optional_named_list(&mut self, kind: impl FnOnce(Vec<NamedExpr>) -> OperatorKind) -> Result<OperatorParts> {
        if self.at_end_of_pipeline() {
            return Ok((kind(Vec::new()), Vec::new()));
        }
        self.named_list(kind)
    }
}

fn nearest_operator(word: &str) -> Option<&'static str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    nearest_within(LIKE_ENOUGH, word, OPERATORS.iter().copied())
}
