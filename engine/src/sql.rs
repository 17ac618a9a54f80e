//! SQL: parsing, name resolution, planning, and carrying out statements that change something.

pub(crate) mod apply;
pub(crate) mod catalog_table;
pub(crate) mod change;
mod fold;
mod foreign_keys;
mod graph_traverse;
mod names;
pub(crate) mod parse;
mod qualify;
mod scopes;
mod series;
mod show;
pub(crate) mod statement;

pub(crate) use names::{Names, Scope, is_system, tables_named_in};
pub use qualify::qualify_tables;
