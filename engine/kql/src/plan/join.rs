//! `join` and `lookup`. Null keys are equal to each other; a column of the right side whose name the left side has,
//! too, gets a number; the strings of a side without a match are empty.

use datafusion::common::{Column as PlanColumn, JoinType, NullEquality};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, lit};
use datafusion::prelude::coalesce;

use super::relation::refuse_in_groups;
use super::unique_side::UniqueSide;
use super::{Column, Relation, field_column, field_of, plain_key};
use crate::ast::{BinaryOperator, Expr, ExprKind, JoinCondition, Name, Operator, ParameterValue};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, fail, invalid, null_of, unique_name,
};
use crate::types::KqlType;

/// The kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JoinKind {
    InnerUnique,
    Inner,
    LeftOuter,
    RightOuter,
    FullOuter,
    LeftSemi,
    RightSemi,
    LeftAnti,
    RightAnti,
}

impl JoinKind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "innerunique" => JoinKind::InnerUnique,
            "inner" => JoinKind::Inner,
            "leftouter" => JoinKind::LeftOuter,
            "rightouter" => JoinKind::RightOuter,
            "fullouter" | "outer" => JoinKind::FullOuter,
            "leftsemi" => JoinKind::LeftSemi,
            "rightsemi" => JoinKind::RightSemi,
            "leftanti" | "anti" | "leftantisemi" => JoinKind::LeftAnti,
            "rightanti" | "rightantisemi" => JoinKind::RightAnti,
            _ => return None,
        })
    }

    fn join_type(self) -> JoinType {
        match self {
            JoinKind::InnerUnique | JoinKind::Inner => JoinType::Inner,
            JoinKind::LeftOuter => JoinType::Left,
            JoinKind::RightOuter => JoinType::Right,
            JoinKind::FullOuter => JoinType::Full,
            JoinKind::LeftSemi => JoinType::LeftSemi,
            JoinKind::RightSemi => JoinType::RightSemi,
            JoinKind::LeftAnti => JoinType::LeftAnti,
            JoinKind::RightAnti => JoinType::RightAnti,
        }
    }

    fn pads_left(self) -> bool {
        matches!(self, JoinKind::RightOuter | JoinKind::FullOuter)
    }

    /// Whether there are rows of the right side alone.
    fn keeps_right(self) -> bool {
        self.pads_left() || matches!(self, JoinKind::RightSemi | JoinKind::RightAnti)
    }

    fn pads_right(self) -> bool {
        matches!(self, JoinKind::LeftOuter | JoinKind::FullOuter)
    }
}

/// Returns both sides with the fields that are compared.
struct Sides {
    left: Relation,
    right: Relation,
    left_keys: Vec<String>,
    right_keys: Vec<String>,
    /// The right columns that are keys, or from which one is computed.
    right_columns: Vec<String>,
}

impl Sides {
    fn without_keys(left: Relation, right: Relation) -> Self {
        Self { left, right, left_keys: Vec::new(), right_keys: Vec::new(), right_columns: Vec::new() }
    }
}

impl<'a> Binder<'a> {
    pub(super) fn join(
        &mut self,
        input: Relation,
        table: &'a Expr,
        condition: Option<&'a JoinCondition>,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let kind = self.join_kind(operator, JoinKind::InnerUnique)?;
        let right = self.table(table, environment)?;
        if kind.keeps_right() {
            refuse_in_groups(&input, operator.span)?;
        }
        match condition {
            Some(JoinCondition::On(on)) => {
                let sides = self.sides(input, right, on, environment)?;
                self.joined(sides, kind, None, false)
            }
            Some(JoinCondition::Where(predicate)) => {
                let scope = ExpressionScope {
                    right: Some(&right.columns),
                    ..ExpressionScope::over_columns(environment, &input.columns)
                };
                let filter = self.condition(predicate, &scope)?;
                let kind = if kind == JoinKind::InnerUnique { JoinKind::Inner } else { kind };
                let sides = Sides::without_keys(input, right);
                self.joined(sides, kind, Some(filter), false)
            }
            None => {
                let sides = Sides::without_keys(input, right);
                self.joined(sides, JoinKind::Inner, Some(lit(true)), false)
            }
        }
    }

    pub(super) fn lookup(
        &mut self,
        input: Relation,
        table: &'a Expr,
        on: &'a [Expr],
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let kind = self.join_kind(operator, JoinKind::LeftOuter)?;
        if !matches!(kind, JoinKind::LeftOuter | JoinKind::Inner) {
            return invalid(operator.span, "`lookup` is leftouter or inner");
        }
        let right = self.table(table, environment)?;
        let sides = self.sides(input, right, on, environment)?;
        self.joined(sides, kind, None, true)
    }

    fn join_kind(&mut self, operator: &'a Operator, default: JoinKind) -> Result<JoinKind> {
        let Some(parameter) = operator.parameter("kind") else { return Ok(default) };
        match &parameter.value {
            ParameterValue::Name(name) => match JoinKind::named(&name.text) {
                Some(kind) => Ok(kind),
                None => invalid(parameter.span, format!("there is no join of kind `{}`", name.text)),
            },
            ParameterValue::Literal(_) => invalid(parameter.span, "expected the kind of join"),
        }
    }

    fn sides(
        &mut self,
        left: Relation,
        right: Relation,
        on: &'a [Expr],
        environment: &Environment<'a>,
    ) -> Result<Sides> {
        let mut sides = Sides::without_keys(left, right);
        for condition in on {
            self.add_keys(&mut sides, condition, environment)?;
        }
        Ok(sides)
    }

    fn add_keys(&mut self, sides: &mut Sides, condition: &'a Expr, environment: &Environment<'a>) -> Result<()> {
        let (left, right) = match &condition.kind {
            ExprKind::Name(name) => {
                (self.key_column(name, &sides.left.columns)?, self.key_column(name, &sides.right.columns)?)
            }
            ExprKind::Logical { operator: crate::ast::LogicalOperator::And, operands } => {
                for operand in operands {
                    self.add_keys(sides, operand, environment)?;
                }
                return Ok(());
            }
            ExprKind::Binary { operator: BinaryOperator::Equal, left, right, .. } => {
                let scope = ExpressionScope {
                    right: Some(&sides.right.columns),
                    ..ExpressionScope::over_columns(environment, &sides.left.columns)
                };
                let (first, second) = (self.scalar(left, &scope)?, self.scalar(right, &scope)?);
                let is_of = |typed: &Typed, columns: &[Column]| {
                    field_of(&typed.expr).is_some_and(|field| columns.iter().any(|column| column.field == field))
                };
                if is_of(&first, &sides.left.columns) && is_of(&second, &sides.right.columns) {
                    (first, second)
                } else if is_of(&second, &sides.left.columns) && is_of(&first, &sides.right.columns) {
                    (second, first)
                } else {
                    return invalid(condition.span, "expected `$left.a == $right.b`");
                }
            }
            _ => return invalid(condition.span, "expected a column or `$left.a == $right.b`"),
        };
        let Some(common) = common_key_type(left.kql_type, right.kql_type) else {
            let message = format!("a {} cannot be equal to a {}", left.kql_type.name(), right.kql_type.name());
            return fail(BindErrorCode::TypeMismatch, condition.span, message);
        };
        sides.right_columns.extend(field_of(&right.expr).map(str::to_owned));
        let left = plain_key(self.convert(left, common, condition.span)?)?;
        let right = plain_key(self.convert(right, common, condition.span)?)?;
        let left_key = self.key_field(&mut sides.left, left)?;
        let right_key = self.key_field(&mut sides.right, right)?;
        sides.left_keys.push(left_key);
        sides.right_keys.push(right_key);
        Ok(())
    }

    fn key_column(&self, name: &Name, columns: &[Column]) -> Result<Typed> {
        match columns.iter().find(|column| column.name == name.text) {
            Some(column) => Ok(column.typed()),
            None => Err(self.unknown_column(name, columns).into()),
        }
    }

    /// Returns the field of a key, which is computed first where it is more than a column.
    fn key_field(&mut self, side: &mut Relation, key: Typed) -> Result<String> {
        if let Some(field) = field_of(&key.expr) {
            return Ok(field.to_owned());
        }
        let (extended, field) = self.with_field(side.clone(), "key", key.expr)?;
        *side = extended;
        Ok(field)
    }

    fn joined(
        &mut self,
        sides: Sides,
        kind: JoinKind,
        filter: Option<PlanExpr>,
        drops_right_keys: bool,
    ) -> Result<Relation> {
        let Sides { mut left, right, left_keys, right_keys, right_columns } = sides;
        if kind == JoinKind::InnerUnique {
            left = self.unique_by(left, &left_keys)?;
        }
        let columns = |fields: &[String]| fields.iter().map(PlanColumn::new_unqualified).collect::<Vec<_>>();
        let builder = LogicalPlanBuilder::from(left.plan.clone());
        let plan = if filter.as_ref() == Some(&lit(true)) {
            builder.cross_join(right.plan.clone())?
        } else {
            builder.join_detailed(
                right.plan.clone(),
                kind.join_type(),
                (columns(&left_keys), columns(&right_keys)),
                filter,
                NullEquality::NullEqualsNull,
            )?
        };
        let plan = plan.build()?;
        let groups = left.groups.clone();
        match kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti => {
                return Ok(Relation { groups, ..Relation::new(plan, left.columns) });
            }
            JoinKind::RightSemi | JoinKind::RightAnti => return Ok(Relation::new(plan, right.columns)),
            _ => {}
        }
        let mut outputs: Vec<(String, Typed)> = Vec::with_capacity(left.columns.len() + right.columns.len());
        for column in &left.columns {
            outputs.push((column.name.clone(), padded(column, kind.pads_left())));
        }
        let is_kept = |column: &&Column| !(drops_right_keys && right_columns.contains(&column.field));
        let added: Vec<&Column> = right.columns.iter().filter(is_kept).collect();
        for column in &added {
            let is_output = |name: &str| outputs.iter().any(|(known, _)| known == name);
            // No number makes a name that another column has anyway: `k`, and `k`, `k1` are `k`, `k2`, `k1`.
            let is_taken = |name: &str| is_output(name) || added.iter().any(|other| other.name == name);
            let name = if is_output(&column.name) { unique_name(&column.name, is_taken) } else { column.name.clone() };
            outputs.push((name, padded(column, kind.pads_right())));
        }
        let joined = self.projected(Relation { groups, ..Relation::new(plan, Vec::new()) }, outputs)?;
        let unique_side = match kind {
            JoinKind::InnerUnique if joined.groups.is_none() => {
                let fields = left.columns.iter().map(|column| column.field.clone());
                UniqueSide::of_join(&joined, fields.collect())
            }
            _ => None,
        };
        Ok(Relation { unique_side, ..joined })
    }

    /// Returns one of the rows with the same keys, in each group.
    fn unique_by(&mut self, input: Relation, keys: &[String]) -> Result<Relation> {
        let mut group: Vec<PlanExpr> = keys.iter().map(|key| field_column(key)).collect();
        let mut others: Vec<String> = input.columns.iter().map(|column| column.field.clone()).collect();
        if let Some(groups) = &input.groups {
            let of_group: Vec<PlanExpr> = groups.keys.iter().filter(|key| !group.contains(key)).cloned().collect();
            group.extend(of_group);
            let hidden: Vec<String> =
                input.hidden_fields().into_iter().filter(|field| !others.contains(field)).collect();
            others.extend(hidden);
        }
        others.retain(|field| !group.contains(&field_column(field)));
        // All values come from one row, since each aggregate sees the same rows in the same order.
        let firsts: Vec<PlanExpr> = others
            .into_iter()
            .map(|field| {
                let value = vec![field_column(&field)];
                let first = AggregateFunction::new_udf(first_value_udaf(), value, false, None, Vec::new(), None);
                PlanExpr::AggregateFunction(first).alias(field)
            })
            .collect();
        let plan = LogicalPlanBuilder::from(input.plan).aggregate(group, firsts)?.build()?;
        Ok(Relation { groups: input.groups, ..Relation::new(plan, input.columns) })
    }
}

fn padded(column: &Column, may_be_missing: bool) -> Typed {
    if may_be_missing && column.kql_type == KqlType::String {
        let empty = lit(null_of(KqlType::String));
        return Typed::new(coalesce(vec![column.expr(), empty]), KqlType::String);
    }
    column.typed()
}

/// Returns the type in which keys of two types are compared.
fn common_key_type(left: KqlType, right: KqlType) -> Option<KqlType> {
    match (left, right) {
        (KqlType::Dynamic, _) | (_, KqlType::Dynamic) => None,
        (left, right) if left == right => Some(left),
        (KqlType::Int, KqlType::Long) | (KqlType::Long, KqlType::Int) => Some(KqlType::Long),
        (left, right) if left.is_numeric() && right.is_numeric() => {
            Some(if [left, right].contains(&KqlType::Decimal) { KqlType::Decimal } else { KqlType::Real })
        }
        _ => None,
    }
}
