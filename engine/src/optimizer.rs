//! Rules beside DataFusion's. Some make plans cheaper; some mend what a rule of DataFusion 54 gets wrong, which each says with the
//! query that shows it. `governor/rules.rs` puts them among DataFusion's, in their order.
//!
//! | module | rule |
//! |---|---|
//! | `aggregate_clauses` | filters of aggregates that may be null, and keys that stand twice in their orders |
//! | `computed_sort_keys` | keys of sorting that are computed with, or that an outer join fills with nulls, as columns below |
//! | `distinct_limits` | early ends of aggregations that later optimisation made unfit |
//! | `distinct_semi_keys` | keys that come often on the side of a semi-join that only filters |
//! | `early_semi_joins` | semi-joins below joins that make more rows |
//! | `grand_totals` | rules that count rows and those that move filters see that totals are there over no rows |
//! | `grouping_set_keys` | keys of grouping sets of which nothing is known from the rows that are aggregated |
//! | `join_order` | the order of inner joins |
//! | `misled_filters` | filters of joins and sorts that would come to another column of the same name |
//! | `null_aware_joins` | joins in which NULLs count see every NULL |
//! | `one_sided_joins` | projections above joins that give the columns of one side |
//! | `projected_keys` | which columns are keys of a query's rows |
//! | `repeated_aggregates` | aggregates of grouping sets that are the same |
//! | `repeated_projections` | projections of one text on one another, of which DataFusion would drop one |
//! | `separate_lists` | lists of `IN` that AND and OR join stay apart |
//! | `wrapped_rules` | what rules around DataFusion's have in common |

pub(crate) mod aggregate_clauses;
pub(crate) mod computed_sort_keys;
pub(crate) mod distinct_limits;
pub(crate) mod distinct_semi_keys;
pub(crate) mod early_semi_joins;
pub(crate) mod grand_totals;
pub(crate) mod grouping_set_keys;
pub(crate) mod join_order;
pub(crate) mod misled_filters;
pub(crate) mod null_aware_joins;
pub(crate) mod one_sided_joins;
pub(crate) mod projected_keys;
pub(crate) mod repeated_aggregates;
pub(crate) mod repeated_projections;
pub(crate) mod separate_lists;
pub(crate) mod wrapped_rules;
