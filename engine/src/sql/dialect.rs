//! The dialect that statements are parsed in: sqlparser's generic one, which accepts what most systems write, with DuckDB's
//! lambdas, `ORDER BY ALL` and digit separators, and with PostgreSQL's precedence of operators.
//!
//! It accepts more than is planned. [`super::accepted`] refuses the rest by name, so a syntax is not switched off here: it would
//! be read as something else, such as an alias.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SqlDialect;

/// Methods of the generic dialect that answer yes, and those that are yes here as well.
macro_rules! supported {
    ($($feature:ident),* $(,)?) => {
        $(fn $feature(&self) -> bool { true })*
    };
}

impl Dialect for SqlDialect {
    // The parser asks for the generic dialect by its type in places.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        GenericDialect.is_identifier_part(character)
    }

    /// In PostgreSQL powers bind before products, and `->>` and its kin before comparisons.
    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Caret => 45,
            Precedence::PgOther => 25,
            other => GenericDialect.prec_value(other),
        }
    }

    /// In PostgreSQL and DuckDB, sums come before all operators but those of numbers, which are of one rank and taken from
    /// the left: `'a' || 1 + 2` is `a3`, `1 + 2 << 3` is 24 and `8 | 6 & 3` is 2.
    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::StringConcat
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::Ampersand
            | Token::Pipe
            | Token::Overlap
            | Token::Spaceship
            | Token::CaretAt => Some(Ok(self.prec_value(Precedence::PgOther))),
            _ => GenericDialect.get_next_precedence(parser),
        }
    }

    /// Those before a value are of that rank too: `~1 + 2` is `~(1 + 2)`.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let op = match parser.peek_token_ref().token {
            Token::Tilde => UnaryOperator::BitwiseNot,
            Token::AtSign => UnaryOperator::PGAbs,
            Token::PGSquareRoot => UnaryOperator::PGSquareRoot,
            Token::PGCubeRoot => UnaryOperator::PGCubeRoot,
            _ => return None,
        };
        parser.advance_token();
        let operand = parser.parse_subexpr(self.prec_value(Precedence::PgOther));
        Some(operand.map(|operand| Expr::UnaryOp { op, expr: Box::new(operand) }))
    }

    /// `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`; the parser takes all that follows.
    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        let is_negated = match () {
            () if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) => false,
            () if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) => true,
            () => return None,
        };
        let left = Box::new(expr.clone());
        Some(parser.parse_subexpr(self.prec_value(Precedence::Is)).map(|right| match is_negated {
            false => Expr::IsDistinctFrom(left, Box::new(right)),
            true => Expr::IsNotDistinctFrom(left, Box::new(right)),
        }))
    }

    supported! {
        supports_lambda_functions, supports_numeric_literal_underscores, supports_order_by_all,
    }

    supported! {
        allow_extract_custom, allow_extract_single_quotes, support_map_literal_syntax, supports_array_join_syntax,
        supports_array_typedef_with_brackets, supports_asc_desc_in_column_definition, supports_bitwise_shift_operators,
        supports_comma_separated_set_assignments, supports_comma_separated_trim, supports_comment_on,
        supports_comment_optimizer_hint, supports_connect_by, supports_constraint_keyword_without_name,
        supports_create_index_with_clause, supports_create_view_comment_syntax, supports_cte_without_as,
        supports_data_type_signed_suffix, supports_detach, supports_dictionary_syntax, supports_empty_projections,
        supports_explain_with_utility_options, supports_extract_comma_syntax, supports_filter_during_aggregation,
        supports_from_first_select, supports_group_by_expr, supports_group_by_with_modifier, supports_install,
        supports_interpolate, supports_interval_options, supports_key_column_option,
        supports_left_associative_joins_without_parens, supports_limit_by, supports_limit_comma, supports_load_extension,
        supports_match_against, supports_match_recognize,
        supports_named_fn_args_with_assignment_operator, supports_nested_comments, supports_optimize_table,
        supports_parens_around_table_factor, supports_parenthesized_set_variables,
        supports_partition_by_after_order_by, supports_pipe_operator, supports_prewhere,
        supports_projection_trailing_commas, supports_quote_delimited_string, supports_select_format,
        supports_select_item_multi_column_alias, supports_select_wildcard_except, supports_select_wildcard_exclude,
        supports_select_wildcard_ilike, supports_select_wildcard_rename, supports_select_wildcard_replace,
        supports_set_names, supports_settings, supports_start_transaction_modifier, supports_string_escape_constant,
        supports_struct_literal, supports_try_convert, supports_unicode_string_literal, supports_update_order_by,
        supports_user_host_grantee, supports_values_as_table_factor, supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg, supports_with_fill, supports_xml_expressions,
    }
}
