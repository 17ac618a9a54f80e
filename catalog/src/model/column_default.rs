//! What a column is in a new row of which a statement does not say it.

/// The default value of a column, as DuckDB keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnDefault {
    /// A value's text, to be read as the column's type.
    Literal(String),
    /// An expression of SQL, to be evaluated for each row.
    Expression(String),
}

impl ColumnDefault {
    /// Returns it as SQL says it.
    pub fn to_sql(&self) -> String {
        match self {
            ColumnDefault::Expression(sql) => sql.clone(),
            ColumnDefault::Literal(text) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok();
                match is_number || matches!(text.as_str(), "true" | "false") {
                    true => text.clone(),
                    false => format!("'{}'", text.replace('\'', "''")),
                }
            }
        }
    }

    /// How DuckLake calls the kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            ColumnDefault::Literal(_) => "literal",
            ColumnDefault::Expression(_) => "expression",
        }
    }

    /// What DuckLake keeps of it.
    pub(crate) fn text(&self) -> &str {
        match self {
            ColumnDefault::Literal(text) | ColumnDefault::Expression(text) => text,
        }
    }

    /// The default of a stored text; `None` for no default, of which DuckDB says that it is null.
    pub(crate) fn stored(text: Option<String>, kind: Option<&str>) -> Option<Self> {
        let text = text.filter(|text| !text.eq_ignore_ascii_case("null"))?;
        Some(match kind {
            Some("expression") => ColumnDefault::Expression(text),
            _ => ColumnDefault::Literal(text),
        })
    }
}
