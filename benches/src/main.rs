//! One harness, one process a measurement, peers interleaved; figures as JSON and a table.
fn main() {}
