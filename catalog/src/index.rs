//! The Lance schema index, derived from the catalog.
pub mod embed;
