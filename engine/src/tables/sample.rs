//! Uniform random samples of a table's rows.
