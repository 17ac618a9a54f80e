//! `IN` of one value in several lists. DataFusion 54 makes one list of two that AND or OR joins, by how their items are written:
//! `a IN (1, 2) AND a NOT IN (b)` became `a IN (1, 2)`, which has no item `b`. Where nothing is left it takes true or false, of
//! nulls too: `a NOT IN (1) OR a NOT IN (2)` kept the rows without a value. So while expressions are simplified, the value has another
//! name at each of such lists, and each of them stays what it is.

use std::collections::{HashMap, HashSet};

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::wrapped_rules::RuleOverride;

/// How the names begin that values have meanwhile.
const NAME: &str = "__querent_value_of_list_";

/// Keeps lists apart where the rule inside simplifies expressions.
#[derive(Debug)]
pub(crate) struct KeepListsApart;

impl RuleOverride for KeepListsApart {
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut is_found = false;
        plan.apply_expressions(|expr| {
            is_found |= !values_of_joined_lists(expr)?.is_empty();
            Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_found {
            return inner.rewrite(plan, config);
        }
        let names = NamePreserver::new(&plan);
        let apart = plan.map_expressions(|expr| {
            // These have no names.
            if matches!(expr, Expr::GroupingSet(_)) {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            Ok(with_names(expr)?.update_data(|expr| name.restore(expr)))
        })?;
        inner.rewrite(apart.data, config)?.transform_data(|plan| plan.map_expressions(without_names))
    }
}

/// Simplifies an expression as that rule does.
pub(crate) fn with_lists_apart(expr: Expr, simplify: impl FnOnce(Expr) -> Result<Expr>) -> Result<Expr> {
    let apart = with_names(expr)?;
    let simplified = simplify(apart.data)?;
    if apart.transformed { without_names(simplified).data() } else { Ok(simplified) }
}

fn with_names(expr: Expr) -> Result<Transformed<Expr>> {
    let values = values_of_joined_lists(&expr)?;
    if values.is_empty() {
        return Ok(Transformed::no(expr));
    }
    let mut count = 0;
    expr.transform_up(|part| match part {
        Expr::InList(InList { expr, list, negated }) if values.contains(&expr.schema_name().to_string()) => {
            count += 1;
            let value = (*expr).alias(format!("{NAME}{count}"));
            Ok(Transformed::yes(Expr::InList(InList::new(Box::new(value), list, negated))))
        }
        other => Ok(Transformed::no(other)),
    })
}

fn without_names(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| match part {
        Expr::Alias(alias) if alias.name.starts_with(NAME) => Ok(Transformed::yes(*alias.expr)),
        other => Ok(Transformed::no(other)),
    })
}

/// Returns the values, as they are written, of lists that would become one and say something else by it. Without recursion: such
/// conditions are long.
fn values_of_joined_lists(expr: &Expr) -> Result<HashSet<String>> {
    let mut found = HashSet::new();
    let mut pending = vec![expr];
    while let Some(part) = pending.pop() {
        let Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) = part else {
            part.apply_children(|child| {
                pending.push(child);
                Ok(TreeNodeRecursion::Continue)
            })?;
            continue;
        };
        // How many lists the operator joins, and how many by NOT IN. Behind NOT it is the other operator.
        let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
        let mut others = Vec::new();
        let mut links = vec![(part, false)];
        while let Some((link, is_negated)) = links.pop() {
            match link {
                Expr::BinaryExpr(BinaryExpr { left, op: own @ (Operator::And | Operator::Or), right })
                    if (own == op) != is_negated =>
                {
                    links.extend([(left.as_ref(), is_negated), (right.as_ref(), is_negated)]);
                }
                Expr::Not(inner) => links.push((inner.as_ref(), !is_negated)),
                Expr::InList(list) => {
                    let (all, negated) = counts.entry(list.expr.schema_name().to_string()).or_default();
                    *all += 1;
                    *negated += usize::from(list.negated != is_negated);
                }
                other => {
                    others.push((other, is_negated));
                    pending.push(other);
                }
            }
        }
        // `A = 1 OR a = 2` becomes a list meanwhile, which only one that is there may be joined with.
        if !counts.is_empty() {
            for (other, is_negated) in others {
                for value in values_of_comparisons(other, *op, is_negated) {
                    if let Some((all, negated)) = counts.get_mut(&value) {
                        *all += 1;
                        *negated += usize::from(*op == Operator::Or);
                    }
                }
            }
        }
        // All items of lists that are joined by OR, or of NOT IN by AND, say the same in one list.
        found.extend(counts.into_iter().filter_map(|(value, (all, negated))| {
            let is_other = if *op == Operator::And { all > 1 && negated < all } else { negated > 1 };
            is_other.then_some(value)
        }));
    }
    Ok(found)
}

/// Returns the values, as they are written, that a part which stands below AND compares with constants by OR and `=`, and one
/// that stands below OR by AND and `<>`.
fn values_of_comparisons(part: &Expr, above: Operator, is_negated: bool) -> HashSet<String> {
    let is_below_and = above == Operator::And;
    let mut found = HashSet::new();
    let mut links = vec![(part, is_negated)];
    while let Some((link, is_negated)) = links.pop() {
        match link {
            Expr::Not(inner) => links.push((inner.as_ref(), !is_negated)),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
                links.extend([(left.as_ref(), is_negated), (right.as_ref(), is_negated)]);
            }
            Expr::BinaryExpr(BinaryExpr { left, op: own @ (Operator::Eq | Operator::NotEq), right })
                if (*own == Operator::Eq) == (is_below_and != is_negated) =>
            {
                let value = match (left.as_ref(), right.as_ref()) {
                    (value, Expr::Literal(..)) | (Expr::Literal(..), value) => value,
                    _ => continue,
                };
                found.insert(value.schema_name().to_string());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit, not};

    use super::*;

    fn list(items: Vec<Expr>, negated: bool) -> Expr {
        col("a").in_list(items, negated)
    }

    #[test]
    fn only_lists_that_would_say_something_else_are_kept_apart() {
        let [first, second] = [false, true].map(|negated| move |item: i32| list(vec![lit(item), col("b")], negated));
        for (condition, is_kept) in [
            (first(1).and(first(2)), true),
            (first(1).and(second(2)), true),
            (second(1).or(second(2)), true),
            (col("c").and(first(1)).and(col("d").and(second(2))), true),
            (not(first(1).and(first(2))), true),
            (not(first(1)).or(not(first(2))), true),
            (not(second(1).or(col("c"))).and(second(2)), true),
            (col("a").eq(lit(1)).or(col("a").eq(lit(2))).and(second(3)), true),
            (col("a").not_eq(lit(1)).and(col("a").not_eq(lit(2))).or(second(3)), true),
            (first(1).or(first(2)), false),
            (second(1).and(second(2)), false),
            (first(1).and(col("c")).or(first(2).and(col("d"))), false),
            (first(1).and(col("b").in_list(vec![lit(1)], false)), false),
        ] {
            let apart = with_names(condition.clone()).unwrap();
            assert_eq!(apart.transformed, is_kept, "{condition}");
            assert_eq!(without_names(apart.data).unwrap().data, condition, "{condition}");
        }
    }
}
