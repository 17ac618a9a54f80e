//! The order in which a table's rows are written.

use super::quote_identifier;

/// One key of the order, the most significant first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedByKey {
    /// SQL, as DuckLake keeps it: a column or, where DuckDB made the order, an expression over columns.
    pub expression: String,
    /// From the greatest value to the least.
    pub is_descending: bool,
    /// Nulls before all values.
    pub nulls_first: bool,
}

impl SortedByKey {
    /// Returns the key of a column.
    pub fn of_column(column: &str, is_descending: bool, nulls_first: bool) -> Self {
        Self { expression: quote_identifier(column), is_descending, nulls_first }
    }

    /// Returns the name of the column; `None` where the key is another expression.
    pub fn column(&self) -> Option<String> {
        let text = self.expression.trim();
        if let Some(inside) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            let name = inside.replace("\"\"", "\u{0}");
            return (!name.is_empty() && !name.contains('"')).then(|| name.replace('\u{0}', "\""));
        }
        let is_part = |character: char| character.is_alphanumeric() || character == '_' || character == '$';
        let is_name = text.chars().all(is_part) && text.chars().next().is_some_and(|first| !first.is_numeric());
        is_name.then(|| text.to_owned())
    }

    /// Returns whether the key needs a column of this name.
    pub(crate) fn names(&self, column: &str) -> bool {
        let wanted = column.to_lowercase();
        match self.column() {
            Some(name) => name.to_lowercase() == wanted,
            // Whatever else the name is a part of: rather once too often.
            None => self.expression.to_lowercase().contains(&wanted),
        }
    }

    /// As DuckLake writes the direction.
    pub fn direction(&self) -> &'static str {
        if self.is_descending { "DESC" } else { "ASC" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_column_is_told_from_an_expression() {
        let key = |expression: &str| SortedByKey {
            expression: expression.to_owned(),
            is_descending: false,
            nulls_first: false,
        };
        for (expression, column) in [
            ("a", Some("a")),
            ("\"B c\"", Some("B c")),
            ("\"a\"\"b\"", Some("a\"b")),
            ("1", None),
            ("lower(\"B c\")", None),
            ("\"a\" || \"b\"", None),
            ("date_trunc('hour', d)", None),
            ("\"\"", None),
        ] {
            assert_eq!(key(expression).column().as_deref(), column, "{expression}");
        }
        for name in ["a", "B c", "say \"x\"", "select"] {
            assert_eq!(SortedByKey::of_column(name, true, false).column().as_deref(), Some(name));
        }
        assert!(key("\"B c\"").names("b C") && key("lower(\"B c\")").names("b c"));
        assert!(!key("ab").names("a"));
    }
}
