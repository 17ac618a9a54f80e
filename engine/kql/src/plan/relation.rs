//! A plan with KQL's names and types of its columns. A field of the plan may belong to no column: sort keys, and what
//! `mv-apply` carries along, stay in the plan when the query drops their columns.

use std::rc::Rc;

use datafusion::common::Column as PlanColumn;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder, SortExpr};

use super::graph::QueryGraph;
use super::unique_side::UniqueSide;
use crate::bind::{BindError, BindErrorCode, Binder, Result, Typed};
use crate::span::Span;
use crate::types::KqlType;

/// A column: KQL's name, which may change, and the field of the plan, which no other column has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) field: String,
    pub(crate) kql_type: KqlType,
}

impl Column {
    pub(crate) fn expr(&self) -> PlanExpr {
        field_column(&self.field)
    }

    pub(crate) fn typed(&self) -> Typed {
        Typed::new(self.expr(), self.kql_type)
    }

    /// Returns the column as a typed expression over the plan.
    pub(crate) fn output(&self) -> (String, Typed) {
        (self.name.clone(), self.typed())
    }
}

/// Returns a field of a plan as an expression, whatever characters its name has.
pub(crate) fn field_column(field: &str) -> PlanExpr {
    PlanExpr::Column(PlanColumn::new_unqualified(field))
}

/// Returns the name of the field that an expression is, if it is one.
pub(crate) fn field_of(expr: &PlanExpr) -> Option<&str> {
    match expr {
        PlanExpr::Column(column) => Some(&column.name),
        _ => None,
    }
}

/// The groups that operators inside `mv-apply` and `partition` keep apart.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// The fields that identify a group.
    pub(crate) keys: Vec<PlanExpr>,
    /// Fields that are constant within a group, and that an aggregation keeps.
    pub(crate) carried: Vec<String>,
}

/// Refuses rows of another table beside those of groups: each group would have them.
pub(super) fn refuse_in_groups(input: &Relation, span: Span) -> Result<()> {
    if input.groups.is_none() {
        return Ok(());
    }
    let message = "rows of another table among those of each element are known to Kusto, but not supported here";
    let hint = "combine the tables before `mv-apply`, or `mv-expand` the values and combine them then";
    Err(BindError::new(BindErrorCode::NotSupported, span, message).with_hint(hint).into())
}

/// A table while its query is planned.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) plan: LogicalPlan,
    pub(crate) columns: Vec<Column>,
    /// The order of the rows.
    pub(crate) order: Vec<SortExpr>,
    /// Whether the rows are serialized, so that window functions are allowed.
    pub(crate) is_serialized: bool,
    pub(crate) groups: Option<Groups>,
    /// The table's name, where it is one table.
    pub(crate) name: Option<String>,
    /// Whether `name` is a variable's.
    pub(crate) is_variable: bool,
    /// What it is instead of a table.
    pub(crate) graph: Option<Rc<QueryGraph>>,
    /// The side of the join that the plan is, if one of its sides has one row a key.
    pub(crate) unique_side: Option<UniqueSide>,
}

impl Relation {
    /// Returns a table without a known order.
    pub(crate) fn new(plan: LogicalPlan, columns: Vec<Column>) -> Self {
        Self {
            plan,
            columns,
            order: Vec::new(),
            is_serialized: false,
            groups: None,
            name: None,
            is_variable: false,
            graph: None,
            unique_side: None,
        }
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Returns the plan with its rows in the relation's order, which operators between a `sort` and here need not keep.
    pub(crate) fn plan_in_order(&self) -> Result<LogicalPlan> {
        let is_sorted = matches!(&self.plan, LogicalPlan::Sort(sort) if sort.expr == self.order);
        if self.order.is_empty() || is_sorted {
            return Ok(self.plan.clone());
        }
        Ok(LogicalPlanBuilder::from(self.plan.clone()).sort(self.order.clone())?.build()?)
    }

    /// Returns a plan of the first value of one column.
    pub(crate) fn only(&self, column: &Column) -> Result<LogicalPlan> {
        let plan = LogicalPlanBuilder::from(self.plan_in_order()?).project(vec![column.expr()])?.limit(0, Some(1))?;
        Ok(plan.build()?)
    }

    /// Returns a plan of the distinct values of one column.
    pub(crate) fn distinct_values(&self, column: &Column) -> Result<LogicalPlan> {
        Ok(LogicalPlanBuilder::from(self.plan.clone()).project(vec![column.expr()])?.distinct()?.build()?)
    }

    /// Replaces the plan with another one that has the same fields.
    pub(crate) fn over(self, plan: LogicalPlan) -> Self {
        Self { plan, ..self }
    }

    /// Returns the fields that must stay in the plan beside the columns.
    pub(crate) fn hidden_fields(&self) -> Vec<String> {
        let mut fields: Vec<String> = Vec::new();
        let mut add = |expr: &PlanExpr| {
            if let Some(field) = field_of(expr)
                && !fields.iter().any(|known| known == field)
            {
                fields.push(field.to_owned());
            }
        };
        self.order.iter().for_each(|sort| add(&sort.expr));
        if let Some(groups) = &self.groups {
            groups.keys.iter().for_each(&mut add);
            groups.carried.iter().for_each(|field| add(&field_column(field)));
        }
        fields
    }
}

impl Binder<'_> {
    /// Returns the relation with these columns, computed in one step from its fields.
    pub(crate) fn projected(&mut self, input: Relation, outputs: Vec<(String, Typed)>) -> Result<Relation> {
        let mut exprs: Vec<PlanExpr> = Vec::with_capacity(outputs.len());
        let mut columns: Vec<Column> = Vec::with_capacity(outputs.len());
        for (name, Typed { expr, kql_type }) in outputs {
            let kept = field_of(&expr).filter(|field| !columns.iter().any(|column| column.field == *field));
            let field = match kept {
                Some(field) => {
                    let field = field.to_owned();
                    exprs.push(expr);
                    field
                }
                None => {
                    let field = self.field(&name);
                    exprs.push(expr.alias(field.clone()));
                    field
                }
            };
            columns.push(Column { name, field, kql_type });
        }
        for field in input.hidden_fields() {
            if !columns.iter().any(|column| column.field == field) {
                exprs.push(field_column(&field));
            }
        }
        let plan = LogicalPlanBuilder::from(input.plan.clone()).project(exprs)?.build()?;
        Ok(Relation { columns, ..input }.over(plan))
    }

    /// Returns the table with new fields, so that it can be joined with itself.
    pub(crate) fn renamed(&mut self, relation: &Relation) -> Result<Relation> {
        let mut exprs = Vec::with_capacity(relation.columns.len());
        let mut columns = Vec::with_capacity(relation.columns.len());
        for column in &relation.columns {
            let field = self.field(&column.name);
            exprs.push(column.expr().alias(field.clone()));
            columns.push(Column { name: column.name.clone(), field, kql_type: column.kql_type });
        }
        let plan = LogicalPlanBuilder::from(relation.plan.clone()).project(exprs)?.build()?;
        let renamed = Relation::new(plan, columns);
        Ok(Relation { name: relation.name.clone(), is_variable: relation.is_variable, ..renamed })
    }
}
