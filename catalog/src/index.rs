//! The Lance schema index, derived from the catalog: it can be deleted at any time and is rebuilt.

pub mod embed;
pub(crate) mod pending;
pub mod text;
