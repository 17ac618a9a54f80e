//! The parts of the first prompt that can be left out or written otherwise, to measure what each is worth. The default is
//! what every run sends; nothing but an evaluation changes it.

use std::fmt;
use std::str::FromStr;

/// How the tables join, in the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JoinForm {
    /// `Joins: a.x = b.y`.
    #[default]
    Lines,
    /// `a JOIN b ON a.x = b.y`.
    Clauses,
    /// Not at all.
    Off,
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptForm {
    /// Whether columns have their types.
    pub types: bool,
    /// Whether text columns have a few of their values.
    pub values: bool,
    /// Whether the table that the search ranks best comes first; otherwise they are in the order of their names.
    pub ranked: bool,
    /// Verified queries at most; `None` for as many as fit.
    pub examples: Option<usize>,
    /// How the tables join.
    pub joins: JoinForm,
    /// Whether the dialect is named.
    pub dialect: bool,
}

impl PromptForm {
    /// What every run sends.
    pub const DEFAULT: Self =
        Self { types: true, values: true, ranked: true, examples: None, joins: JoinForm::Lines, dialect: true };
}

impl Default for PromptForm {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl FromStr for PromptForm {
    type Err = String;

    /// Reads `types=off,values=off,order=name,examples=1,joins=clauses,dialect=off`; what is not named is as always.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut form = Self::DEFAULT;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || {
                format!(
                    "`{part}` is no part of a prompt's form; write types=off, values=off, order=name, examples=N, \
                     joins=clauses, joins=off or dialect=off"
                )
            };
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            match (name, value) {
                ("types", "on" | "off") => form.types = value == "on",
                ("values", "on" | "off") => form.values = value == "on",
                ("dialect", "on" | "off") => form.dialect = value == "on",
                ("order", "rank" | "name") => form.ranked = value == "rank",
                ("examples", number) => form.examples = Some(number.parse().map_err(|_| wrong())?),
                ("joins", "lines") => form.joins = JoinForm::Lines,
                ("joins", "clauses") => form.joins = JoinForm::Clauses,
                ("joins", "off") => form.joins = JoinForm::Off,
                _ => return Err(wrong()),
            }
        }
        Ok(form)
    }
}

impl fmt::Display for PromptForm {
    /// Writes what differs from [`PromptForm::DEFAULT`]; nothing where nothing does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut off = |is_on: bool, name: &str| {
            if !is_on {
                parts.push(format!("{name}=off"));
            }
        };
        off(self.types, "types");
        off(self.values, "values");
        off(self.dialect, "dialect");
        if !self.ranked {
            parts.push("order=name".to_owned());
        }
        parts.extend(self.examples.map(|count| format!("examples={count}")));
        match self.joins {
            JoinForm::Lines => {}
            JoinForm::Clauses => parts.push("joins=clauses".to_owned()),
            JoinForm::Off => parts.push("joins=off".to_owned()),
        }
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_reads_back_as_it_is_written() {
        for text in ["", "types=off", "values=off,dialect=off,order=name,examples=0,joins=clauses", "joins=off"] {
            assert_eq!(text.parse::<PromptForm>().unwrap().to_string(), text);
        }
        assert_eq!("".parse(), Ok(PromptForm::DEFAULT));
        for wrong in ["types", "types=maybe", "colour=off", "examples=many"] {
            assert!(wrong.parse::<PromptForm>().unwrap_err().contains("types=off"), "{wrong}");
        }
    }
}
