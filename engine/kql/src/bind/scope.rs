//! What names stand for in an expression: the columns of the row and the variables of `let`. Columns win.

use std::cell::RefCell;
use std::rc::Rc;

use datafusion::logical_expr::{Expr as PlanExpr, SortExpr};

use super::access::{TableAccess, is_value};
use super::{GraphScope, Typed};
use crate::ast;
use crate::plan::{Column, Relation, field_column};

/// The variables and functions in scope, the newest first. Cheap to clone: a `let` adds one in front.
#[derive(Clone, Default)]
pub(crate) struct Environment<'a> {
    names: Option<Rc<EnvironmentNode<'a>>>,
    /// What each `restrict access` before leaves of the tables.
    restrictions: Vec<Rc<TableAccess>>,
}

struct EnvironmentNode<'a> {
    name: &'a str,
    binding: Binding<'a>,
    outer: Environment<'a>,
}

/// What a `let` or a parameter names.
#[derive(Clone)]
pub(crate) enum Binding<'a> {
    /// A value, substituted where it is named, and its number of nodes.
    Scalar(Typed, usize),
    /// A table, bound again where it is named.
    Table(&'a ast::Expr, Environment<'a>),
    /// A table that is bound already.
    Bound(Rc<Relation>),
    /// A function with the environment of its definition.
    Function(&'a ast::Function, Environment<'a>),
    /// A pattern with the environment of its definition.
    Pattern(&'a ast::Pattern, Environment<'a>),
    /// A database, which `macro-expand` names so.
    Database(Rc<str>),
}

impl<'a> Environment<'a> {
    /// Returns this environment with one more name in front.
    pub(crate) fn with(&self, name: &'a str, binding: Binding<'a>) -> Self {
        let names = Some(Rc::new(EnvironmentNode { name, binding, outer: self.clone() }));
        Self { names, restrictions: self.restrictions.clone() }
    }

    /// Returns this environment with the values, and with what else is left of its names and of the tables.
    pub(super) fn restricted_to(&self, access: Rc<TableAccess>) -> Self {
        let mut kept = Vec::new();
        let mut next = self.names.as_deref();
        while let Some(node) = next {
            if is_value(&node.binding) || access.keeps_name(node.name) {
                kept.push((node.name, node.binding.clone()));
            }
            next = node.outer.names.as_deref();
        }
        let mut restrictions = self.restrictions.clone();
        restrictions.push(access);
        let bare = Self { names: None, restrictions };
        kept.into_iter().rev().fold(bare, |environment, (name, binding)| environment.with(name, binding))
    }

    /// Returns what each `restrict access` before leaves of the tables.
    pub(super) fn restrictions(&self) -> &[Rc<TableAccess>] {
        &self.restrictions
    }

    /// Whether both are one environment, by identity and not by content. Both must be alive.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        match (&self.names, &other.names) {
            (Some(own), Some(other)) => Rc::ptr_eq(own, other),
            (None, None) => self.restrictions.len() == other.restrictions.len(),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Returns the newest binding of a name.
    pub(crate) fn find(&self, name: &str) -> Option<&Binding<'a>> {
        let mut next = self.names.as_deref();
        while let Some(node) = next {
            if node.name == name {
                return Some(&node.binding);
            }
            next = node.outer.names.as_deref();
        }
        None
    }

    /// Returns the names of tables, for `union T*`, the oldest first.
    pub(crate) fn tables(&self) -> Vec<(&'a str, Binding<'a>)> {
        let mut found: Vec<(&'a str, Binding<'a>)> = Vec::new();
        let mut next = self.names.as_deref();
        while let Some(node) = next {
            let is_table = match &node.binding {
                Binding::Table(..) | Binding::Bound(_) => true,
                Binding::Function(function, _) => function.is_view && function.parameters.is_empty(),
                Binding::Scalar(..) | Binding::Pattern(..) | Binding::Database(_) => false,
            };
            if is_table && !found.iter().any(|(name, _)| *name == node.name) {
                found.push((node.name, node.binding.clone()));
            }
            next = node.outer.names.as_deref();
        }
        found.reverse();
        found
    }
}

/// The columns and variables that an expression may name, and what it may call.
pub(crate) struct ExpressionScope<'s, 'a> {
    pub(crate) environment: &'s Environment<'a>,
    pub(crate) columns: &'s [Column],
    /// The right side of a join.
    pub(crate) right: Option<&'s [Column]>,
    /// Collects the expression's aggregates; `None` where they are not allowed.
    pub(crate) aggregates: Option<&'s RefCell<Vec<PlanExpr>>>,
    /// The order of the rows, for aggregates that depend on it.
    pub(crate) order: &'s [SortExpr],
    /// The columns that are grouping keys.
    pub(crate) keys: &'s [String],
    /// Collects the expression's window functions; `None` where they are not allowed.
    pub(crate) windows: Option<&'s Windows>,
    /// The steps of a `scan`, whose columns are named `step.column`.
    pub(crate) steps: &'s [String],
    /// The variables of a graph's pattern.
    pub(crate) graph: Option<&'s GraphScope>,
}

/// Window functions, each in a step of its own, since one may use another's result.
pub(crate) struct Windows {
    pub(crate) steps: RefCell<Vec<PlanExpr>>,
    pub(crate) order: Vec<SortExpr>,
    pub(crate) partition: Vec<PlanExpr>,
    pub(crate) is_serialized: bool,
    /// The field with the number of each row in `order`, once a function that restarts needs it.
    pub(crate) numbers: RefCell<Option<String>>,
}

impl Windows {
    /// The window functions of a clause over rows of this relation.
    pub(crate) fn over(input: &Relation) -> Self {
        Self {
            steps: RefCell::default(),
            order: input.order.clone(),
            partition: input.groups.as_ref().map(|groups| groups.keys.clone()).unwrap_or_default(),
            is_serialized: input.is_serialized,
            numbers: RefCell::default(),
        }
    }

    /// The order of the rows: by their numbers, once they have some.
    pub(crate) fn row_order(&self) -> Vec<SortExpr> {
        match self.numbers.borrow().as_deref() {
            Some(field) => vec![field_column(field).sort(true, false)],
            None => self.order.clone(),
        }
    }
}

impl<'s, 'a> ExpressionScope<'s, 'a> {
    /// The scope of an expression over rows of these columns.
    pub(crate) fn over_columns(environment: &'s Environment<'a>, columns: &'s [Column]) -> Self {
        Self {
            environment,
            columns,
            right: None,
            aggregates: None,
            order: &[],
            keys: &[],
            windows: None,
            steps: &[],
            graph: None,
        }
    }

    /// The scope of a constant: variables only.
    pub(crate) fn constant(environment: &'s Environment<'a>) -> Self {
        Self::over_columns(environment, &[])
    }

    /// The scope inside an aggregate, where aggregates and window functions are not allowed.
    pub(crate) fn inside_aggregate(&self) -> ExpressionScope<'s, 'a> {
        ExpressionScope { aggregates: None, windows: None, ..*self }
    }

    pub(crate) fn column(&self, name: &str) -> Option<&'s Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
