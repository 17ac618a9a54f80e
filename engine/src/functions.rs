//! The engine's functions: DataFusion's, with a bound on those whose results can be much larger than their arguments, and
//! those of DuckDB and PostgreSQL that it lacks.

mod aggregates;
mod aligned_intervals;
mod assigned_values;
mod bounded;
mod bytes_beside_nulls;
mod checked_integers;
mod checked_sum;
mod constant_fits;
mod dates;
mod definition;
mod distinct_bits;
mod domains;
mod elapsed;
mod embed;
mod exact_percentiles;
mod extremes;
mod format;
mod group_states;
mod hex;
mod interval_texts;
mod intervals;
mod json;
mod json_changes;
mod json_paths;
mod json_rows;
mod json_shape;
mod lambda_results;
mod list_choices;
mod list_reduce;
mod lists;
mod long_replacements;
mod maps;
mod moments;
mod null_patterns;
mod null_powers;
mod number_text;
mod numbers;
mod one_nan;
mod ordered_lists;
mod parsed_times;
mod plain_results;
mod refused_casts;
mod rounding;
mod row_hash;
mod searched_lists;
mod structs;
pub(crate) mod structure_sizes;
mod text;
mod text_lists;
mod text_parts;
mod text_ranks;
mod time_buckets;
mod time_text;
mod uuids;
mod value_conversions;
mod value_text;
mod vectors;
mod wide_times;
mod wrapped_aggregates;
mod wrapped_functions;
mod years_of_nanoseconds;

use std::sync::{Arc, LazyLock};

use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF};

use querent_kql::graph;

pub(crate) use aligned_intervals::rows_with_aligned_intervals;
pub(crate) use assigned_values::{assigned, assigned_value, stored_value};
pub(crate) use bounded::{counted_call, series_rows};
pub(crate) use bytes_beside_nulls::{bytes_type, list_literal};
pub(crate) use checked_integers::{
    CHECKED_ADD, CHECKED_MULTIPLY, CHECKED_SHIFT_LEFT, CHECKED_SHIFT_RIGHT, CHECKED_SUBTRACT, CHECKED_XOR,
};
pub(crate) use checked_sum::{checked_sum, is_checked_sum};
pub(crate) use dates::NANOSECONDS;
pub(crate) use domains::{
    ANGLE_DOMAIN, COTANGENT_DOMAIN, DOMAINS, GAMMA_DOMAIN, LOGARITHM_BASE, LOGARITHM_DOMAIN, ROOT_DOMAIN, UNIT_DOMAIN,
};
pub(crate) use elapsed::{INTERVAL_EPOCH, INTERVAL_LENGTH, INTERVAL_OF, length_type};
pub(crate) use embed::{EMBED, embed};
pub(crate) use extremes::ordered_extreme;
pub(crate) use hex::{byte_of_hex, bytes_of_hex, text_of_bytes};
pub(crate) use interval_texts::with_units;
pub(crate) use intervals::DATE_PLUS_TIME;
pub(crate) use json::{JSON_MARK, TRY_JSON};
pub(crate) use json_rows::JSON_ROW_COLUMNS;
pub(crate) use lambda_results::LAMBDA_RESULT;
pub(crate) use list_choices::STEPPED_SLICE;
pub(crate) use maps::{MAP, map_type, refuse_impossible_values, refuse_long_decimals};
pub(crate) use numbers::{DECIMAL_MEAN, PLAIN_DOUBLE, QUOTIENT};
pub(crate) use one_nan::{holds_doubles, rows_with_one_nan, with_one_nan};
pub(crate) use plain_results::plain_aggregate;
pub(crate) use refused_casts::{is_bytes, refused_cast, refused_cast_of_parts, refused_date_cast};
pub(crate) use row_hash::row_hash;
pub(crate) use structs::{COMPLETE_ROW, NESTED_ORDER, SINGLE_VALUE};
pub(crate) use text_lists::{TEXT_TO_LIST, list_reader, list_reader_of, text_to_list};
pub(crate) use text_parts::{REGEXP_REPLACEMENT, written_bytes};
pub(crate) use time_text::{WITHOUT_OFFSET, without_offset};
pub(crate) use uuids::{TO_UUID, TO_UUID_LIST, TRY_TO_UUID, no_uuid, uuid_text, uuids as read_uuids};
pub(crate) use value_conversions::{
    CONVERT_VALUE, conversion_of, converted, converts_otherwise, has_colons, is_decimal_text, normal_form,
    prepared as prepared_for_cast, types_of_parts, value_conversion,
};
pub(crate) use value_text::{VALUE_TEXT, has_form_of_its_own, texts as value_texts};
pub(crate) use vectors::measures_vectors;
pub(crate) use wrapped_aggregates::{AggregateOverride, WrappedAggregate};
pub(crate) use wrapped_functions::{FunctionOverride, WrappedFunction};

/// Returns all aggregate functions: DataFusion's, ours and those of graphs.
pub(crate) fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    let own = own_aggregate_functions().iter().cloned();
    SessionStateDefaults::default_aggregate_functions()
        .into_iter()
        .map(ordered_lists::never_backwards)
        .map(exact_percentiles::with_whole_weights)
        .map(distinct_bits::with_distinct_bits)
        .map(constant_fits::with_constant_fits)
        .map(|function| ordered_extreme(&function).unwrap_or(function))
        .map(|function| plain_aggregate(&function).unwrap_or(function))
        .chain(own)
        .chain(graph::graph_aggregates())
        .collect()
}

/// Returns the aggregate functions that DataFusion does not have.
pub(crate) fn own_aggregate_functions() -> &'static [Arc<AggregateUDF>] {
    static OWN: LazyLock<Vec<Arc<AggregateUDF>>> = LazyLock::new(|| {
        [aggregates::functions(), moments::functions(), text_ranks::aggregates()].into_iter().flatten().collect()
    });
    &OWN
}

/// Returns all functions whose arguments may be lambdas: DataFusion's and ours.
pub(crate) fn higher_order_functions() -> Vec<Arc<HigherOrderUDF>> {
    SessionStateDefaults::default_higher_order_functions().into_iter().chain([list_reduce::list_reduce()]).collect()
}

/// Returns all scalar functions: DataFusion's and ours.
pub(crate) fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    SessionStateDefaults::default_scalar_functions()
        .into_iter()
        .map(wide_times::wide)
        .map(rounding::of_all_digits)
        .map(null_powers::computed)
        .map(years_of_nanoseconds::with_all_years)
        .map(bounded::bounded)
        .map(bytes_beside_nulls::with_bytes)
        .map(long_replacements::interruptible)
        .map(null_patterns::strict)
        .map(structure_sizes::bounded)
        .map(searched_lists::searched)
        .chain(own_scalar_functions().iter().cloned())
        .collect()
}

/// Returns the scalar functions that DataFusion does not have, and those of ours that take the place of its own.
pub(crate) fn own_scalar_functions() -> &'static [Arc<ScalarUDF>] {
    static OWN: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
        let families = [
            vec![
                hex::from_hex(),
                row_hash(),
                value_text::function(),
                time_buckets::function(),
                lambda_results::function(),
            ],
            dates::functions(),
            time_text::functions(),
            text::functions(),
            lists::functions(),
            numbers::functions(),
            checked_integers::functions(),
            json::functions(),
            json_changes::functions(),
            json_paths::functions(),
            vectors::functions(),
            intervals::functions(),
            domains::functions(),
            elapsed::functions(),
            json_rows::functions(),
            json_shape::functions(),
            list_choices::functions(),
            maps::functions(),
            structs::functions(),
            text_parts::functions(),
            text_ranks::functions(),
            uuids::functions(),
        ];
        families.into_iter().flatten().collect()
    });
    &OWN
}
