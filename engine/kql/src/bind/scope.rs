//! What names mean at a place: the columns of the row, and around them the variables of `let`. Columns win.

use std::cell::RefCell;
use std::rc::Rc;

use datafusion::logical_expr::{Expr as PlanExpr, SortExpr};

use super::Typed;
use crate::ast;
use crate::plan::{Column, Relation};

/// The variables and functions in sight, the newest first. Cheap to clone: a `let` adds one in front.
#[derive(Clone, Default)]
pub(crate) struct Environment<'a>(Option<Rc<Node<'a>>>);

struct Node<'a> {
    name: &'a str,
    binding: Binding<'a>,
    outer: Environment<'a>,
}

/// What a `let` or a parameter names.
#[derive(Clone)]
pub(crate) enum Binding<'a> {
    /// A value, substituted where it is named, and how many nodes it is.
    Scalar(Typed, usize),
    /// A table, bound again where it is named.
    Table(&'a ast::Expr, Environment<'a>),
    /// A table that is bound already.
    Bound(Rc<Relation>),
    /// A function, which sees what was in sight where it stands.
    Function(&'a ast::Function, Environment<'a>),
    /// A pattern, likewise.
    Pattern(&'a ast::Pattern, Environment<'a>),
}

impl<'a> Environment<'a> {
    pub(crate) fn with(&self, name: &'a str, binding: Binding<'a>) -> Self {
        Self(Some(Rc::new(Node { name, binding, outer: self.clone() })))
    }

    /// Whether it is that very one, as long as both are there.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => Rc::ptr_eq(own, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Binding<'a>> {
        let mut next = self.0.as_deref();
        while let Some(node) = next {
            if node.name == name {
                return Some(&node.binding);
            }
            next = node.outer.0.as_deref();
        }
        None
    }

    /// The names of tables, for `union T*`; the oldest first.
    pub(crate) fn tables(&self) -> Vec<(&'a str, Binding<'a>)> {
        let mut found: Vec<(&'a str, Binding<'a>)> = Vec::new();
        let mut next = self.0.as_deref();
        while let Some(node) = next {
            let is_table = match &node.binding {
                Binding::Table(..) | Binding::Bound(_) => true,
                Binding::Function(function, _) => function.is_view && function.parameters.is_empty(),
                Binding::Scalar(..) | Binding::Pattern(..) => false,
            };
            if is_table && !found.iter().any(|(name, _)| *name == node.name) {
                found.push((node.name, node.binding.clone()));
            }
            next = node.outer.0.as_deref();
        }
        found.reverse();
        found
    }
}

/// What an expression sees.
pub(crate) struct Scope<'s, 'a> {
    pub(crate) environment: &'s Environment<'a>,
    pub(crate) columns: &'s [Column],
    /// The right side of a join.
    pub(crate) right: Option<&'s [Column]>,
    /// Where aggregates may stand: they are gathered here.
    pub(crate) aggregates: Option<&'s RefCell<Vec<PlanExpr>>>,
    /// What the rows are ordered by, for aggregates that tell.
    pub(crate) order: &'s [SortExpr],
    /// The columns that are keys of groups.
    pub(crate) keys: &'s [String],
    /// Where functions over the order of rows may stand.
    pub(crate) windows: Option<&'s Windows>,
    /// The steps of a `scan`, whose columns are named `step.column`.
    pub(crate) steps: &'s [String],
}

/// Functions over the order of rows, each in a step of its own, since one may use another.
pub(crate) struct Windows {
    pub(crate) steps: RefCell<Vec<PlanExpr>>,
    pub(crate) order: Vec<SortExpr>,
    pub(crate) partition: Vec<PlanExpr>,
    pub(crate) is_serialized: bool,
}

impl<'s, 'a> Scope<'s, 'a> {
    /// Rows of these columns.
    pub(crate) fn of(environment: &'s Environment<'a>, columns: &'s [Column]) -> Self {
        Self { environment, columns, right: None, aggregates: None, order: &[], keys: &[], windows: None, steps: &[] }
    }

    /// No rows: variables only.
    pub(crate) fn constant(environment: &'s Environment<'a>) -> Self {
        Self::of(environment, &[])
    }

    /// The same where aggregates may not stand: inside one.
    pub(crate) fn inside_aggregate(&self) -> Scope<'s, 'a> {
        Scope { aggregates: None, windows: None, ..*self }
    }

    pub(crate) fn column(&self, name: &str) -> Option<&'s Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
