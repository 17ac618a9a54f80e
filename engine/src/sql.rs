//! SQL: from a statement's text to an analysed plan. Bottom up: `syntax` and `parse`; `graph_traverse` and
//! `relation_folding`, which rewrite a syntax tree before its names are resolved; `column_scopes` and `column_folding`, which
//! plan it without regard to case; `resolved_names`, the tables that a statement names; `parameters`, their types and
//! values; `sql_types`, `time_comparisons`, `unique_keys`, `foreign_keys`, `series` and `show`;
//! `statement`, which plans every kind of statement, those that write as [`write_statement`]s.

pub(crate) mod catalog_table;
mod column_folding;
mod column_scopes;
mod foreign_keys;
mod graph_traverse;
pub(crate) mod parameters;
pub(crate) mod parse;
mod qualify;
mod relation_folding;
mod resolved_names;
mod series;
mod show;
mod sql_types;
pub(crate) mod statement;
mod syntax;
pub(crate) mod time_comparisons;
mod unique_keys;
pub(crate) mod write_statement;

pub use qualify::qualify_tables;
pub(crate) use resolved_names::{PlanningScope, ResolvedNames, tables_named_in};
