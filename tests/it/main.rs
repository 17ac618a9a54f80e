//! End-to-end tests, one binary. One module an area; each starts from a public door.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test fails by panicking, prints what it saw, and sets its scene with blocking calls"
)]

mod adk;
mod adversarial;
mod agent;
mod answers;
mod approvals;
mod ask;
mod attacks;
mod audit;
mod book;
mod catalog_keys;
mod catalog_store;
mod changes;
mod charts;
mod cli;
mod clients;
mod cluster;
mod column_cache;
mod console;
mod conversation_store;
mod cost_guard;
mod crashes;
mod cube;
mod damaged_inputs;
mod deploy;
mod documented_commands;
mod duckdb;
mod duckdb_changes;
mod estimates;
mod fairness;
mod faults;
mod flight_sql;
mod formats;
mod functions_page;
mod guard;
mod holmes;
mod http;
mod imports;
mod index;
mod io_faults;
mod join_order;
mod kql;
mod ksadk;
mod lake;
mod large_files;
mod large_rows;
mod listeners;
mod maintenance;
mod many_tables;
mod mcp;
mod models;
mod object_store_faults;
mod object_store_lake;
mod object_stores;
mod oidc;
mod old_snapshots;
mod older_folders;
mod openai;
mod pages;
mod parquet_bounds;
mod plan_cache;
mod plans;
mod policies;
mod policy;
mod remote_embedders;
mod remote_models;
mod restarts;
mod result_cache;
mod result_tickets;
mod server_config;
mod sessions;
mod shared_catalog;
mod shared_runs;
mod slow_readers;
mod small_files;
mod sql;
mod sql_oracles;
mod table_layout;
mod tables;
mod tidy;
mod tokens;
mod traces;
mod trees;
mod typed_objects;
mod vector_index;
mod vectors;
mod view_rights;
