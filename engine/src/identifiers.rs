//! Names in SQL: how they compare and how they are quoted.

/// The column of a row's file, by its id in the catalog.
pub(crate) const FILE_COLUMN: &str = "__querent_file";
/// The column of a row's position in its file.
pub(crate) const POSITION_COLUMN: &str = "__querent_position";

/// Words of SQL that are no names without quotes. One too many is harmless.
const RESERVED: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "cast",
    "create",
    "cross",
    "desc",
    "distinct",
    "else",
    "end",
    "except",
    "exists",
    "false",
    "fetch",
    "for",
    "from",
    "full",
    "group",
    "having",
    "in",
    "inner",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "left",
    "like",
    "limit",
    "natural",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "qualify",
    "right",
    "select",
    "table",
    "then",
    "true",
    "union",
    "using",
    "when",
    "where",
    "window",
    "with",
];

/// Returns whether a word is quoted where it is a name, in any case.
pub fn is_reserved_word(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// Returns whether two names are the same without regard to case.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    // Names are compared with each other in lists of thousands.
    if left.is_ascii() && right.is_ascii() {
        return left.eq_ignore_ascii_case(right);
    }
    left == right || left.to_lowercase() == right.to_lowercase()
}

/// Returns the name in double quotes, as SQL has it.
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
