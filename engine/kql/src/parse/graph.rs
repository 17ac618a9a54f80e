//! Parses graph operators. Arrows of patterns are written without blanks, so they are recognised by adjacent tokens.

use super::{Parser, Result};
use crate::ast::{
    EdgeDirection, GraphElements, GraphMatch, GraphNodes, GraphOutput, GraphPart, GraphTraverse, HopRange, MakeGraph,
    Name, NodeTable, OperatorKind, TraverseDirection,
};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn make_graph(&mut self) -> Result<OperatorKind> {
        let source = self.name("a column")?;
        let direction = match self.arrow() {
            Some(direction @ (EdgeDirection::Forward | EdgeDirection::Either)) => direction,
            _ => return Err(self.expected("`-->` or `--`")),
        };
        let target = self.name("a column")?;
        let nodes = if self.eat_word("with_node_id") {
            self.expect(TokenKind::Assign, "`=`")?;
            GraphNodes::NodeId(self.name("a name")?)
        } else if self.eat_word("with") {
            GraphNodes::Tables(self.separated(Self::node_table)?)
        } else {
            GraphNodes::Edges
        };
        let partitioned_by =
            if self.eat_word("partitioned-by") { Some((self.column_path()?, self.piped_body()?)) } else { None };
        let graph = MakeGraph { source, direction, target, nodes, partitioned_by };
        Ok(OperatorKind::MakeGraph(Box::new(graph)))
    }

    fn node_table(&mut self) -> Result<NodeTable> {
        let table = self.path()?;
        self.expect_word("on")?;
        Ok(NodeTable { table, key: self.name("a column")? })
    }

    /// `-->`, `<--`, `--`.
    fn arrow(&mut self) -> Option<EdgeDirection> {
        use TokenKind::{Greater, Less, Minus};
        if self.eat_touching(&[Less, Minus, Minus]) {
            Some(EdgeDirection::Backward)
        } else if self.eat_touching(&[Minus, Minus, Greater]) {
            Some(EdgeDirection::Forward)
        } else if self.eat_touching(&[Minus, Minus]) {
            Some(EdgeDirection::Either)
        } else {
            None
        }
    }

    fn eat_touching(&mut self, kinds: &[TokenKind]) -> bool {
        let found = kinds.iter().enumerate().all(|(ahead, kind)| {
            let token = self.peek(ahead);
            token.kind == *kind && (ahead == 0 || self.peek(ahead - 1).span.touches(token.span))
        });
        if found {
            for _ in kinds {
                self.advance();
            }
        }
        found
    }

    pub(super) fn graph_match(&mut self) -> Result<GraphMatch> {
        let patterns = self.graph_patterns()?;
        let predicate = if self.eat_word("where") { Some(self.expression()?) } else { None };
        let project = if self.eat_word("project") { self.named_expressions()? } else { Vec::new() };
        Ok(GraphMatch { patterns, predicate, project })
    }

    pub(super) fn graph_patterns(&mut self) -> Result<Vec<Vec<GraphPart>>> {
        self.separated(Self::graph_pattern)
    }

    fn graph_pattern(&mut self) -> Result<Vec<GraphPart>> {
        let mut parts = vec![self.graph_node()?];
        while let Some(edge) = self.graph_edge()? {
            parts.push(edge);
            parts.push(self.graph_node()?);
        }
        Ok(parts)
    }

    fn graph_node(&mut self) -> Result<GraphPart> {
        let start = self.expect(TokenKind::OpenParen, "`(` and a node")?;
        let name = if self.at_kind(TokenKind::CloseParen) { None } else { Some(self.name("a name")?) };
        self.expect(TokenKind::CloseParen, "`)`")?;
        Ok(GraphPart::Node { name, span: self.since(start) })
    }

    fn graph_edge(&mut self) -> Result<Option<GraphPart>> {
        use TokenKind::{CloseBracket, Greater, Less, Minus, OpenBracket};
        let start = self.token().span;
        if let Some(direction) = self.arrow() {
            return Ok(Some(GraphPart::Edge { name: None, direction, hops: None, span: self.since(start) }));
        }
        let backward = self.eat_touching(&[Less, Minus, OpenBracket]);
        if !backward && !self.eat_touching(&[Minus, OpenBracket]) {
            return Ok(None);
        }
        let (name, hops) = self.edge_inside()?;
        let direction = if backward && self.eat_touching(&[CloseBracket, Minus]) {
            EdgeDirection::Backward
        } else if !backward && self.eat_touching(&[CloseBracket, Minus, Greater]) {
            EdgeDirection::Forward
        } else if !backward && self.eat_touching(&[CloseBracket, Minus]) {
            EdgeDirection::Either
        } else {
            return Err(self.expected(if backward { "`]-`" } else { "`]->` or `]-`" }));
        };
        Ok(Some(GraphPart::Edge { name, direction, hops, span: self.since(start) }))
    }

    fn edge_inside(&mut self) -> Result<(Option<Name>, Option<HopRange>)> {
        let is_unnamed = matches!(self.token().kind, TokenKind::CloseBracket | TokenKind::Star);
        let name = if is_unnamed { None } else { Some(self.name("an edge's name")?) };
        let hops = if self.eat(TokenKind::Star) {
            let low = self.path()?;
            self.expect(TokenKind::DotDot, "`..`")?;
            Some(HopRange { low, high: self.path()? })
        } else {
            None
        };
        Ok((name, hops))
    }

    pub(super) fn graph_to_table(&mut self) -> Result<OperatorKind> {
        Ok(OperatorKind::GraphToTable(self.separated(Self::graph_output)?))
    }

    fn graph_output(&mut self) -> Result<GraphOutput> {
        let elements = if self.eat_word("nodes") {
            GraphElements::Nodes
        } else if self.eat_word("edges") {
            GraphElements::Edges
        } else {
            return Err(self.expected("`nodes` or `edges`"));
        };
        let mut name = if self.eat_word("as") { Some(self.name("a name")?) } else { None };
        let parameters = self.any_parameters()?;
        if name.is_none() && self.eat_word("as") {
            name = Some(self.name("a name")?);
        }
        Ok(GraphOutput { elements, name, parameters })
    }

    pub(super) fn graph_traverse(&mut self) -> Result<OperatorKind> {
        self.expect_word("source")?;
        let sources = self.one_or_list()?;
        self.expect_word("from")?;
        let from = self.name("a column")?;
        self.expect_word("to")?;
        let to = self.name("a column")?;
        if !self.eat_hyphenated("max", "hops") {
            return Err(self.expected("`max-hops`"));
        }
        let max_hops = self.path()?;
        let direction = if self.eat_word("direction") { Some(self.traverse_direction()?) } else { None };
        let edge_types = if self.eat_hyphenated("edge", "type") { self.one_or_list()? } else { Vec::new() };
        let traverse = GraphTraverse { sources, from, to, max_hops, direction, edge_types };
        Ok(OperatorKind::GraphTraverse(Box::new(traverse)))
    }

    /// `a` or `(a, b)`.
    fn one_or_list(&mut self) -> Result<Vec<crate::ast::Expr>> {
        if !self.eat(TokenKind::OpenParen) {
            return Ok(vec![self.operand()?]);
        }
        let list = self.separated(|parser| Ok(parser.pipeline_expression()))?;
        self.expect(TokenKind::CloseParen, "`,` or `)`")?;
        Ok(list)
    }

    fn traverse_direction(&mut self) -> Result<TraverseDirection> {
        let direction = match self.word() {
            "forward" => TraverseDirection::Forward,
            "backward" => TraverseDirection::Backward,
            "both" => TraverseDirection::Both,
            _ => return Err(self.expected("`forward`, `backward` or `both`")),
        };
        self.advance();
        Ok(direction)
    }
}
