//! SQL: from a statement's text to an analysed plan. Bottom up: `dialect`, `tokens` and `parse`, `syntax`; `accepted`,
//! which refuses what is parsed and not planned; `shorthand`, `collations`, `unary_minus` and `function_forms`, which write out what
//! is short for something else, and `predicate_subqueries`, `percent_limits`, `unnamed_subqueries`, `unnest_joins` and `ordinality`; `file_requests`, the files that stand for tables, and
//! `pivot_requests`, pivots whose values are to be found; `graph_functions`, `graph_match` and `graph_joins`, `hybrid_search`,
//! `table_functions`, `json_records`, `json_tables` and `relation_folding`, which rewrite a syntax tree before its names are
//! resolved; `expansion`, which writes out what stands for columns; `relations`, which plans samples, pivots and the
//! like; `column_names`, what columns without an alias are called; `column_scopes` and `column_folding`, which plan without regard to case; `resolved_names`, the tables that a
//! statement names; `parameters`, their types and values; `embedded_texts`, the vectors of `embed`; `sql_types`,
//! `computed_groups`, `date_arithmetic`, `date_coercions`, `integer_overflow`, `value_casts`, `time_comparisons`, `exact_times`, `range_frames`, `nested_order`, `unique_keys`, `foreign_keys`, `sort_orders`, `series`, `show` and `show_functions`; `session_settings`,
//! `outer_aggregates`, aggregates that belong to the query around theirs; `set_comparisons`, comparisons with ANY and ALL of a query; `session_variables` and `session_statement`, what statements set for those that follow; `session_functions`, what they ask of their session; `field_access`, `outer_rows`, `lateral_joins`, `lifted_subqueries`, `subquery_places`, `in_subqueries`, `unordered_subqueries`,
//! `filter_conditions`, `list_casts`, `text_casts`, `operator_forms`, `row_values` and `expression_forms`, which plan and write out expressions; `vector_search`, which has indexes find the
//! nearest rows, and `vector_index_statement`, which makes these; `statement`, which plans
//! every kind of statement, those that write as [`write_statement`]s, with `row_statements` (DELETE and UPDATE), `merge`,
//! `drop_statement` and `alter_table`; `repeated_changes`, whether they can be planned for several rows of values at once; `plan_notes`, what planning depended on, and `kept_plans`, whether a plan may be kept and how values get into it.

mod accepted;
mod alter_table;
mod analyze;
mod carried_columns;
mod cast_aggregates;
pub(crate) mod catalog_table;
mod collations;
pub(crate) mod column_defaults;
mod column_folding;
mod column_names;
mod column_scopes;
mod computed_groups;
mod conflict_clauses;
mod copied_characters;
mod date_arithmetic;
pub(crate) mod date_coercions;
mod dialect;
mod domain_checks;
mod drop_statement;
mod elapsed_times;
pub(crate) mod embedded_texts;
mod exact_averages;
mod exact_text;
mod exact_times;
mod expansion;
mod expression_forms;
mod fetch_ties;
mod field_access;
pub(crate) mod file_requests;
mod filter_conditions;
mod first_of_groups;
mod float_order;
mod foreign_keys;
mod function_forms;
mod graph_functions;
mod graph_joins;
mod graph_match;
mod grouping_sets;
mod hybrid_search;
mod in_subqueries;
mod inserted_bytes;
mod inserted_values;
mod integer_overflow;
mod interruptible_planning;
mod interval_keys;
pub(crate) mod json_columns;
mod json_operators;
mod json_records;
mod json_tables;
pub(crate) mod kept_plans;
mod lambda_fields;
mod lateral_joins;
mod lifted_subqueries;
mod list_casts;
mod marks;
mod merge;
mod near_references;
mod nested_calls;
mod nested_order;
mod number_types;
mod operator_forms;
mod optimize;
mod ordinality;
mod outer_aggregates;
mod outer_rows;
mod overlapping_periods;
mod own_names;
pub(crate) mod parameters;
pub(crate) mod parse;
mod percent_limits;
pub(crate) mod pivot_requests;
mod plan_nodes;
pub(crate) mod plan_notes;
mod policy_columns;
pub(crate) mod policy_statement;
mod predicate_subqueries;
mod qualify;
mod range_frames;
mod recursive_types;
mod relation_folding;
mod relations;
pub(crate) mod repeated_changes;
mod resolved_names;
pub(crate) mod restrictions;
pub(crate) mod returning;
mod rounded_times;
mod row_statements;
mod row_values;
mod same_table_names;
mod series;
mod series_of_columns;
mod session_functions;
pub(crate) mod session_settings;
mod session_statement;
pub(crate) mod session_variables;
mod set_comparisons;
mod shift_defaults;
mod shorthand;
mod show;
pub(crate) mod show_functions;
pub(crate) mod sort_orders;
mod sql_types;
pub(crate) mod statement;
mod struct_types;
mod subquery_places;
mod subquery_values;
mod symmetric_ranges;
mod syntax;
mod table_calls;
mod table_functions;
mod table_shorthand;
mod text_casts;
mod text_replacements;
pub(crate) mod time_comparisons;
mod tokens;
mod unary_minus;
mod unique_keys;
mod unnamed_subqueries;
mod unnest_joins;
mod unordered_subqueries;
mod untyped_texts;
mod uuid_comparisons;
mod value_casts;
mod vector_index_statement;
mod vector_search;
mod volatile_filters;
mod volatile_queries;
mod wide_queries;
mod windowed_extremes;
mod with_weight;
pub(crate) mod write_statement;

pub use function_forms::aggregates_rows;
pub(crate) use policy_columns::with_renamed_columns;
pub use qualify::qualify_tables;
pub(crate) use relations::MAX_PIVOT_COLUMNS;
pub(crate) use resolved_names::{FileSources, PlanningScope, ResolvedNames, tables_named_in};
pub use session_variables::SessionVariables;
pub(crate) use shorthand::{query_from_table, query_of_items};
pub(crate) use vector_search::{UseVectorIndexes, with_indexed_searches};
