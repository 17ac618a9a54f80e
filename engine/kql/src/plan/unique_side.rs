//! The side of an `innerunique` join that has one row a key. Which of several rows that is is open; a filter behind the
//! join on columns of that side is asked of the rows before one of them is chosen, as Kusto pushes it there.

use std::sync::Arc;

use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr as PlanExpr, Join, LogicalPlan, LogicalPlanBuilder, Projection};

use super::Relation;
use crate::bind::Result;

/// The left side of a join, of which there is one row a key.
#[derive(Debug, Clone)]
pub(crate) struct UniqueSide {
    /// The join below the relation's projection.
    joined: Arc<LogicalPlan>,
    /// The fields of the side.
    fields: Vec<String>,
}

impl UniqueSide {
    /// Returns the side of these fields of a join's relation.
    pub(super) fn of_join(relation: &Relation, fields: Vec<String>) -> Option<Self> {
        let LogicalPlan::Projection(projection) = &relation.plan else { return None };
        Some(Self { joined: Arc::clone(&projection.input), fields })
    }

    fn has_all_of(&self, condition: &PlanExpr) -> bool {
        let columns = condition.column_refs();
        !columns.is_empty()
            && !condition.is_volatile()
            && columns.iter().all(|column| self.fields.contains(&column.name))
    }

    /// Returns the join over those rows of the side for which a condition holds.
    fn filtered(&self, condition: PlanExpr) -> Result<Option<LogicalPlan>> {
        let LogicalPlan::Join(join) = self.joined.as_ref() else { return Ok(None) };
        let LogicalPlan::Aggregate(chosen) = join.left.as_ref() else { return Ok(None) };
        let rows = LogicalPlanBuilder::from(chosen.input.as_ref().clone()).filter(condition)?.build()?;
        let chosen = Aggregate::try_new(Arc::new(rows), chosen.group_expr.clone(), chosen.aggr_expr.clone())?;
        Ok(Some(LogicalPlan::Join(Join { left: Arc::new(LogicalPlan::Aggregate(chosen)), ..join.clone() })))
    }
}

impl Relation {
    /// Returns the relation with what a predicate asks of its unique side asked there, and the rest of the predicate.
    pub(super) fn narrowed(self, predicate: PlanExpr) -> Result<(Relation, Option<PlanExpr>)> {
        let (Some(side), LogicalPlan::Projection(projection)) = (&self.unique_side, &self.plan) else {
            return Ok((self, Some(predicate)));
        };
        // Any operator in between makes another plan.
        if !Arc::ptr_eq(&side.joined, &projection.input) {
            return Ok((self, Some(predicate)));
        }
        let conditions = split_conjunction_owned(predicate.clone());
        let (of_side, others): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|one| side.has_all_of(one));
        let Some(condition) = conjunction(of_side) else { return Ok((self, Some(predicate))) };
        let Some(joined) = side.filtered(condition)? else { return Ok((self, Some(predicate))) };
        let joined = Arc::new(joined);
        let plan = Projection::try_new(projection.expr.clone(), Arc::clone(&joined))?;
        let unique_side = Some(UniqueSide { joined, fields: side.fields.clone() });
        let narrowed = Relation { unique_side, ..self }.over(LogicalPlan::Projection(plan));
        Ok((narrowed, conjunction(others)))
    }
}
