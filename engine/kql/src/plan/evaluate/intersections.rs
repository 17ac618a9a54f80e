//! `dcount_intersect`: how many values sketches of distinct values share, the first two, the first three, and so on.

use datafusion::logical_expr::lit;

use crate::ast::{BinaryOperator, FunctionCall};
use crate::bind::{Binder, Result, Typed, invalid};
use crate::functions::ScalarOperator;
use crate::plan::{Column, Relation};
use crate::span::Span;
use crate::types::KqlType;

/// The most sketches: each one more doubles the number of unions.
const MAX_SETS: usize = 6;

impl<'a> Binder<'a> {
    /// `dcount_intersect(hll_1, hll_2, ...)`.
    pub(super) fn dcount_intersect(&mut self, input: Relation, call: &'a FunctionCall) -> Result<Relation> {
        let span = call.function.span;
        let sets = call.arguments.iter().map(|set| self.column_of(&input, set)).collect::<Result<Vec<Column>>>()?;
        if !(2..=MAX_SETS).contains(&sets.len()) {
            return invalid(span, format!("`dcount_intersect` takes 2 to {MAX_SETS} columns of sketches"));
        }
        let mut outputs = Vec::with_capacity(sets.len());
        for last in 0..sets.len() {
            outputs.push((format!("s{last}"), self.shared_count(&sets[..=last], span)?));
        }
        self.projected(input, outputs)
    }

    /// Returns how many values all sets have: by inclusion and exclusion, from the sizes of their unions.
    fn shared_count(&mut self, sets: &[Column], span: Span) -> Result<Typed> {
        let mut total = Typed::new(lit(0_i64), KqlType::Long);
        for chosen in 1_usize..1 << sets.len() {
            let members = sets.iter().enumerate().filter(|(index, _)| chosen >> index & 1 == 1);
            let members: Vec<Typed> = members.map(|(_, set)| set.typed()).collect();
            let is_added = members.len() % 2 == 1;
            let union = match members.len() {
                1 => members,
                _ => vec![self.apply("hll_merge", members, span)?],
            };
            let size = self.apply("dcount_hll", union, span)?;
            let operator = if is_added { BinaryOperator::Add } else { BinaryOperator::Subtract };
            total = self.apply_operator(ScalarOperator::Binary(operator), vec![total, size], span)?;
        }
        // Sizes that are estimates may leave less than none.
        self.apply("max_of", vec![total, Typed::new(lit(0_i64), KqlType::Long)], span)
    }
}
