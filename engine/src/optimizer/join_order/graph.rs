//! Inner joins as a graph: tables, and columns that are equal in all rows that the joins leave.

use std::sync::Arc;

use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

use super::MAX_TABLES;
use super::estimates::LeafEstimate;

/// A column of one of the joined tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeafColumn {
    leaf: usize,
    column: usize,
}

/// A way to join tables.
#[derive(Debug, Clone)]
pub(super) enum JoinTree {
    /// A table.
    Leaf(usize),
    /// Two parts.
    Join(Box<(JoinTree, JoinTree)>),
}

impl JoinTree {
    pub(super) fn join(left: Self, right: Self) -> Self {
        Self::Join(Box::new((left, right)))
    }

    fn set(&self) -> usize {
        match self {
            Self::Leaf(leaf) => 1 << leaf,
            Self::Join(parts) => parts.0.set() | parts.1.set(),
        }
    }
}

/// Tables that are joined by equal columns, three or more.
pub(super) struct JoinGraph {
    leaves: Vec<Arc<dyn ExecutionPlan>>,
    estimates: Vec<LeafEstimate>,
    /// Columns that are equal to each other, a list each.
    classes: Vec<Vec<LeafColumn>>,
    written: JoinTree,
    output: Vec<LeafColumn>,
}

impl JoinGraph {
    /// Returns the graph of the joins at the top of a plan; `None` where there are too few or too many, or nothing is known of
    /// a table.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        if joined(plan).is_none() {
            return Ok(None);
        }
        let mut found = FoundJoins::default();
        let (written, output) = found.add(plan);
        if !(3..=MAX_TABLES).contains(&found.leaves.len()) {
            return Ok(None);
        }
        let mut estimates = Vec::with_capacity(found.leaves.len());
        for leaf in &found.leaves {
            let Some(estimate) = LeafEstimate::of(leaf)? else { return Ok(None) };
            estimates.push(estimate);
        }
        Ok(Some(Self { leaves: found.leaves, estimates, classes: found.classes, written, output }))
    }

    /// Returns how many tables there are.
    pub(super) fn leaves(&self) -> usize {
        self.leaves.len()
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = Arc<dyn ExecutionPlan>> + '_ {
        self.leaves.iter().map(Arc::clone)
    }

    /// Returns the order of the statement.
    pub(super) fn written(&self) -> &JoinTree {
        &self.written
    }

    /// Returns the columns that the joins give.
    pub(super) fn output(&self) -> &[LeafColumn] {
        &self.output
    }

    /// Returns how many rows the tables of a set have once they are joined.
    pub(super) fn rows(&self, set: usize) -> f64 {
        let is_in = |column: &&LeafColumn| set & (1 << column.leaf) != 0;
        let in_set = (0..self.leaves.len()).filter(|leaf| set & (1 << leaf) != 0);
        let mut rows: f64 = in_set.map(|leaf| self.estimates[leaf].rows()).product();
        for class in &self.classes {
            let distinct = class.iter().filter(is_in).map(|column| self.estimates[column.leaf].distinct(column.column));
            let mut distinct: Vec<f64> = distinct.collect();
            distinct.sort_by(f64::total_cmp);
            // Every value of the column with the fewest is thought to be in the others.
            rows /= distinct.iter().skip(1).product::<f64>();
        }
        (rows * self.keys_of_several_columns(set)).max(1.0)
    }

    /// Returns by how much more rows a set has than its columns tell one by one. Two tables that are joined by several columns have
    /// no more values of them together than the smaller one has rows: the other one's are thought to be among these, as those of
    /// a foreign key are.
    fn keys_of_several_columns(&self, set: usize) -> f64 {
        let leaves: Vec<usize> = (0..self.leaves.len()).filter(|leaf| set & (1 << leaf) != 0).collect();
        // Tables whose values are said to be among each other's already, by a number of theirs.
        let mut group: Vec<usize> = (0..self.leaves.len()).collect();
        let mut more = 1.0;
        for (place, &one) in leaves.iter().enumerate() {
            for &other in &leaves[..place] {
                if group[one] == group[other] {
                    continue;
                }
                let (mut columns, mut apart, mut most) = (0, 1.0, 1.0_f64);
                for class in &self.classes {
                    let of = |leaf: usize| class.iter().find(|column| column.leaf == leaf).copied();
                    if let (Some(left), Some(right)) = (of(one), of(other)) {
                        let distinct = |column: LeafColumn| self.estimates[column.leaf].distinct(column.column);
                        let values = distinct(left).max(distinct(right));
                        columns += 1;
                        apart *= values;
                        most = most.max(values);
                    }
                }
                let rows = |leaf: usize| self.estimates[leaf].rows_before_filters();
                let together = rows(one).min(rows(other)).max(most);
                if columns > 1 && apart > together {
                    more *= apart / together;
                    let (kept, joined) = (group[one], group[other]);
                    group.iter_mut().filter(|group| **group == joined).for_each(|group| *group = kept);
                }
            }
        }
        more
    }

    /// Returns whether two sets have equal columns.
    pub(super) fn is_connected(&self, one: usize, other: usize) -> bool {
        let has = |class: &[LeafColumn], set: usize| class.iter().any(|column| set & (1 << column.leaf) != 0);
        self.classes.iter().any(|class| has(class, one) && has(class, other))
    }

    /// Adds the rows that a tree makes on the way.
    pub(super) fn add_cost(&self, tree: &JoinTree, cost: &mut f64) {
        if let JoinTree::Join(parts) = tree {
            self.add_cost(&parts.0, cost);
            self.add_cost(&parts.1, cost);
            *cost += self.rows(tree.set());
        }
    }

    /// Returns the plan in the order of the statement with each table as `change` makes it.
    pub(super) fn with_leaves(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        change: &mut dyn FnMut(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.leaves.iter().any(|leaf| Arc::ptr_eq(leaf, &plan)) {
            return change(plan);
        }
        let children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
        let changed = children.into_iter().map(|child| self.with_leaves(child, change)).collect::<Result<Vec<_>>>()?;
        plan.with_new_children(changed)
    }

    /// Returns the plan of a tree over `leaves`, and its columns: those that are needed above it.
    pub(super) fn build(
        &self,
        tree: &JoinTree,
        leaves: &[Arc<dyn ExecutionPlan>],
    ) -> Result<(Arc<dyn ExecutionPlan>, Vec<LeafColumn>)> {
        let parts = match tree {
            JoinTree::Leaf(leaf) => {
                let columns =
                    (0..leaves[*leaf].schema().fields().len()).map(|column| LeafColumn { leaf: *leaf, column });
                return Ok((Arc::clone(&leaves[*leaf]), columns.collect()));
            }
            JoinTree::Join(parts) => parts,
        };
        let (left, left_columns) = self.build(&parts.0, leaves)?;
        let (right, right_columns) = self.build(&parts.1, leaves)?;
        let key = |plan: &Arc<dyn ExecutionPlan>, place: usize| {
            Arc::new(Column::new(plan.schema().field(place).name(), place)) as PhysicalExprRef
        };
        let mut on = Vec::new();
        for class in &self.classes {
            let (left_places, right_places) = (key_places(&left_columns, class), key_places(&right_columns, class));
            let (Some(&first_left), Some(&first_right)) = (left_places.first(), right_places.first()) else { continue };
            on.extend(left_places.iter().map(|place| (key(&left, *place), key(&right, first_right))));
            on.extend(right_places.iter().skip(1).map(|place| (key(&left, first_left), key(&right, *place))));
        }
        let all: Vec<LeafColumn> = left_columns.into_iter().chain(right_columns).collect();
        let set = tree.set();
        let kept: Vec<usize> = (0..all.len()).filter(|place| self.is_needed_above(all[*place], set)).collect();
        let columns = kept.iter().map(|place| all[*place]).collect();
        let projection = (kept.len() < all.len()).then_some(kept);
        let join = HashJoinExecBuilder::new(left, right, on, JoinType::Inner).with_projection(projection).build()?;
        Ok((Arc::new(join), columns))
    }

    /// Returns whether a column is in the result, or is equal to one of a table outside the set.
    fn is_needed_above(&self, column: LeafColumn, set: usize) -> bool {
        self.output.contains(&column)
            || self
                .classes
                .iter()
                .any(|class| class.contains(&column) && class.iter().any(|other| set & (1 << other.leaf) == 0))
    }
}

/// Returns the places of the columns of a class by which a side of a join is joined: one of them, since they are equal already,
/// unless all are of one table. Nothing in it has made these equal.
fn key_places(columns: &[LeafColumn], class: &[LeafColumn]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..columns.len()).filter(|place| class.contains(&columns[*place])).collect();
    let leaf = places.first().map(|place| columns[*place].leaf);
    if places.iter().any(|place| Some(columns[*place].leaf) != leaf) {
        places.truncate(1);
    }
    places
}

/// Joins as they are found, from the top down.
#[derive(Default)]
struct FoundJoins {
    leaves: Vec<Arc<dyn ExecutionPlan>>,
    classes: Vec<Vec<LeafColumn>>,
}

impl FoundJoins {
    /// Adds a plan; returns the tree that it is and its columns.
    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) -> (JoinTree, Vec<LeafColumn>) {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>()
            && joined(projection.input()).is_some()
            && let Some(places) = places(projection.expr().iter().map(|expr| &expr.expr))
        {
            let (tree, columns) = self.add(projection.input());
            return (tree, places.into_iter().map(|place| columns[place]).collect());
        }
        if let Some(join) = ordered_join(plan)
            && let (Some(left_keys), Some(right_keys)) =
                (places(join.on().iter().map(|(left, _)| left)), places(join.on().iter().map(|(_, right)| right)))
        {
            let (left, mut columns) = self.add(join.left());
            let (right, right_columns) = self.add(join.right());
            for (one, other) in left_keys.into_iter().zip(right_keys) {
                self.equate(columns[one], right_columns[other]);
            }
            columns.extend(right_columns);
            return (JoinTree::join(left, right), columns);
        }
        let leaf = self.leaves.len();
        self.leaves.push(Arc::clone(plan));
        let columns = (0..plan.schema().fields().len()).map(|column| LeafColumn { leaf, column }).collect();
        (JoinTree::Leaf(leaf), columns)
    }

    fn equate(&mut self, one: LeafColumn, other: LeafColumn) {
        let mut merged = vec![one, other];
        self.classes.retain(|class| {
            let is_same = class.contains(&one) || class.contains(&other);
            if is_same {
                merged.extend(class.iter().filter(|column| **column != one && **column != other));
            }
            !is_same
        });
        self.classes.push(merged);
    }
}

/// Returns the join that a plan is, projections of columns aside.
fn joined(plan: &Arc<dyn ExecutionPlan>) -> Option<&HashJoinExec> {
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => {
            places(projection.expr().iter().map(|expr| &expr.expr))?;
            joined(projection.input())
        }
        None => ordered_join(plan)
            .filter(|join| join.on().iter().all(|(left, right)| place(left).is_some() && place(right).is_some())),
    }
}

/// Returns an inner join of equal columns and nothing else.
fn ordered_join(plan: &Arc<dyn ExecutionPlan>) -> Option<&HashJoinExec> {
    plan.downcast_ref::<HashJoinExec>().filter(|join| {
        *join.join_type() == JoinType::Inner
            && join.filter().is_none()
            && join.projection.is_none()
            && join.null_equality() == NullEquality::NullEqualsNothing
    })
}

fn places<'a>(exprs: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>) -> Option<Vec<usize>> {
    exprs.map(place).collect()
}

fn place(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
