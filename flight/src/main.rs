//! The binary `querent`.
fn main() {}
