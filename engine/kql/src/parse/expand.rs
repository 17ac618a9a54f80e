//! `mv-expand` and `mv-apply`.

use super::{Parser, Result};
use crate::ast::{Expansion, Expr, ExprKind, Literal, MvApply, MvExpand, OperatorKind};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn mv_expand(&mut self) -> Result<OperatorKind> {
        let columns = self.separated(Self::expansion)?;
        let limit = self.expansion_limit()?;
        Ok(OperatorKind::MvExpand(MvExpand { columns, limit }))
    }

    /// The old name of `mv-expand` makes 128 rows of one where no limit says otherwise.
    pub(super) fn old_mv_expand(&mut self) -> Result<OperatorKind> {
        const OLD_LIMIT: i64 = 128;
        let columns = self.separated(Self::expansion)?;
        let end = self.token().span;
        let old_limit = Expr { kind: ExprKind::Literal(Literal::Long(OLD_LIMIT)), span: end };
        let limit = self.expansion_limit()?.unwrap_or(old_limit);
        Ok(OperatorKind::MvExpand(MvExpand { columns, limit: Some(limit) }))
    }

    pub(super) fn mv_apply(&mut self) -> Result<OperatorKind> {
        let columns = self.separated(Self::expansion)?;
        let limit = self.expansion_limit()?;
        // Kusto's own tools write this mark.
        if self.at_word("id") && self.peek(1).kind == TokenKind::Typed {
            self.advance();
            self.advance();
        }
        self.expect_word("on")?;
        let body = self.piped_body()?;
        Ok(OperatorKind::MvApply(Box::new(MvApply { columns, limit, body })))
    }

    fn expansion(&mut self) -> Result<Expansion> {
        let expr = self.named_expression()?;
        let to = if self.eat_word("to") { Some(self.type_literal()?) } else { None };
        Ok(Expansion { expr, to })
    }

    fn expansion_limit(&mut self) -> Result<Option<Expr>> {
        if !self.eat_word("limit") {
            return Ok(None);
        }
        Ok(Some(self.expression()?))
    }
}
