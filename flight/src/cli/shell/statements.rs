//! What is typed into the shell, as single inputs: SQL and KQL up to their `;`, commands and questions up to the end of
//! their line.
//!
//! A `;` within quotes, a dollar-quoted text or a comment ends nothing; in KQL neither does the one after a `let`.

/// The language of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellLanguage {
    Sql,
    Kql,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellInput {
    /// A statement without its `;`.
    Statement(ShellLanguage, String),
    /// A question for the agent, without its `?`.
    Question(String),
    /// A command with its `.` or `\`.
    Command(String),
}

/// What a text begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextInput<'a> {
    /// An input, and the text after it.
    Whole(ShellInput, &'a str),
    /// A statement that has no `;` yet.
    Unfinished(ShellInput),
    /// Nothing but space, comments and `;`.
    Nothing,
}

/// The statements of other languages have this before them.
const KQL_PREFIX: &str = "kql ";
const SQL_PREFIX: &str = "sql ";
/// The words with which a KQL statement begins that is not the query itself.
const KQL_DECLARATIONS: [&str; 6] = ["let", "set", "declare", "alias", "restrict", "pattern"];

/// The words with which Kusto's management commands begin, which are statements of KQL. None is a command of the shell.
const KQL_VERBS: [&str; 14] = [
    ".add", ".alter", ".append", ".clear", ".create", ".delete", ".drop", ".execute", ".export", ".ingest", ".make",
    ".rename", ".set", ".show",
];

/// Returns the first input of `text`, which is in `language` unless it says otherwise.
pub(super) fn next_input(text: &str, language: ShellLanguage) -> NextInput<'_> {
    let text = without_comments(text, language);
    if text.is_empty() {
        return NextInput::Nothing;
    }
    if let Some((command, rest)) = bare_command(text) {
        return NextInput::Whole(ShellInput::Command(command.to_owned()), rest);
    }
    if is_line_input(text) && !(language == ShellLanguage::Kql && is_kql_command(text)) {
        let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
        let line = line.trim();
        let input = match line.strip_prefix('?') {
            Some(question) => ShellInput::Question(question.trim().to_owned()),
            None => ShellInput::Command(line.to_owned()),
        };
        return NextInput::Whole(input, rest);
    }
    let (language, text) = match (strip_word(text, KQL_PREFIX), strip_word(text, SQL_PREFIX)) {
        (Some(rest), _) => (ShellLanguage::Kql, rest),
        (_, Some(rest)) => (ShellLanguage::Sql, rest),
        (None, None) => (language, text),
    };
    let statement = |text: &str| ShellInput::Statement(language, text.trim().to_owned());
    let mut began = 0;
    for end in Semicolons::new(text, language) {
        let piece = text.get(began..end).unwrap_or_default();
        began = end + 1;
        if language == ShellLanguage::Sql || !is_declaration(piece) {
            let whole = text.get(..end).unwrap_or_default();
            return NextInput::Whole(statement(whole), text.get(end + 1..).unwrap_or_default());
        }
    }
    NextInput::Unfinished(statement(text))
}

/// Whether a statement chooses where bare names resolve: USE, and SET or RESET of the setting.
pub(super) fn chooses_database(sql: &str) -> bool {
    let words = sql.split(|char: char| char.is_whitespace() || char == '=').filter(|word| !word.is_empty());
    let mut words = words.map(str::to_lowercase).filter(|word| word != "session");
    match (words.next().as_deref(), words.next().as_deref()) {
        (Some("use"), _) => true,
        (Some("set" | "reset"), Some(name)) => {
            matches!(name.trim_end_matches(';'), "schema" | "search_path" | "database" | "current_schema" | "all")
        }
        _ => false,
    }
}

/// Returns the command that a line is without its `.`, as shells of other databases have it, and the text after the line.
fn bare_command(text: &str) -> Option<(&'static str, &str)> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let word = line.trim().trim_end_matches(';').trim_end().to_lowercase();
    let found = [("exit", ".exit"), ("quit", ".quit"), ("help", ".help")].into_iter().find(|(own, _)| *own == word);
    found.map(|(_, command)| (command, rest))
}

/// Whether the input that begins here ends with its line.
fn is_line_input(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some('?' | '\\') => true,
        Some('.') => chars.next().is_some_and(char::is_alphabetic),
        _ => false,
    }
}

/// Whether a text begins as one of Kusto's management commands: with a verb, which others may follow (`.create-or-alter`).
pub(super) fn is_kql_command(text: &str) -> bool {
    let word = text.split(|char: char| char.is_whitespace() || matches!(char, '-' | ';')).next().unwrap_or_default();
    KQL_VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(word))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let start = text.get(..word.len())?;
    start.eq_ignore_ascii_case(word).then(|| text.get(word.len()..)).flatten()
}

fn is_declaration(piece: &str) -> bool {
    let mut lines = piece.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let first = lines.next().unwrap_or_default();
    let word = first.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    KQL_DECLARATIONS.contains(&word)
}

/// The text from its first word on: past space, comments and `;`.
fn without_comments(text: &str, language: ShellLanguage) -> &str {
    let mut rest = text;
    loop {
        // Editors begin files with a byte order mark.
        rest = rest.trim_start_matches(|char: char| char.is_whitespace() || matches!(char, ';' | '\u{feff}'));
        let line = match language {
            ShellLanguage::Sql => rest.strip_prefix("--"),
            ShellLanguage::Kql => rest.strip_prefix("//"),
        };
        let block = rest.starts_with("/*") && language == ShellLanguage::Sql;
        rest = match line {
            Some(comment) => comment.split_once('\n').map_or("", |(_, after)| after),
            None if block => {
                let mut comment = Semicolons::new(rest, language);
                comment.skip_block_comment();
                comment.rest()
            }
            None => return rest,
        };
    }
}

/// The places of the `;` that end statements.
struct Semicolons<'a> {
    text: &'a str,
    at: usize,
    language: ShellLanguage,
}

impl<'a> Semicolons<'a> {
    fn new(text: &'a str, language: ShellLanguage) -> Self {
        Self { text, at: 0, language }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes past `end`, or to the end of the text.
    fn skip_past(&mut self, from: usize, end: &str) {
        let after = self.text.get(from..).unwrap_or_default();
        self.at = after.find(end).map_or(self.text.len(), |found| from + found + end.len());
    }

    /// Goes past a quoted text. In SQL a quote is doubled, which is two texts side by side; in KQL a backslash stands
    /// before it, except in a verbatim text.
    fn skip_quoted(&mut self, quote: char, has_escapes: bool) {
        let rest = self.rest();
        // In `E'...'` of SQL a doubled quote is a part of the text, whose escapes go on.
        let may_double = has_escapes && self.language == ShellLanguage::Sql;
        let mut chars = rest.char_indices().skip(1);
        while let Some((index, char)) = chars.next() {
            let is_doubled = || may_double && rest.get(index + 1..).is_some_and(|after| after.starts_with(quote));
            if (has_escapes && char == '\\') || (char == quote && is_doubled()) {
                chars.next();
            } else if char == quote {
                self.at += index + 1;
                return;
            }
        }
        self.at = self.text.len();
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.text.len() {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
    }
}

impl Iterator for Semicolons<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let is_kql = self.language == ShellLanguage::Kql;
        loop {
            let rest = self.rest();
            let char = rest.chars().next()?;
            match char {
                ';' => {
                    self.at += 1;
                    return Some(self.at - 1);
                }
                '`' if is_kql && rest.starts_with("```") => self.skip_past(self.at + 3, "```"),
                '\'' | '"' => {
                    let before = self.text.get(..self.at).unwrap_or_default();
                    let has_escapes = match is_kql {
                        true => !before.ends_with('@'),
                        false => char == '\'' && ends_with_escape_prefix(before),
                    };
                    self.skip_quoted(char, has_escapes);
                }
                '-' if !is_kql && rest.starts_with("--") => self.skip_past(self.at, "\n"),
                '/' if is_kql && rest.starts_with("//") => self.skip_past(self.at, "\n"),
                '/' if !is_kql && rest.starts_with("/*") => self.skip_block_comment(),
                '$' if !is_kql => match dollar_tag(rest) {
                    Some(tag) => self.skip_past(self.at + tag.len(), tag),
                    None => self.at += 1,
                },
                char => self.at += char.len_utf8(),
            }
        }
    }
}

/// Whether the text ends with the `E` of `E'...'`, in which a backslash stands before a quote.
fn ends_with_escape_prefix(text: &str) -> bool {
    let before = text.strip_suffix(['e', 'E']);
    before.is_some_and(|text| !text.ends_with(|char: char| char.is_alphanumeric() || matches!(char, '_' | '$')))
}

/// The opening of a dollar-quoted text, such as `$$` or `$body$`.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text.get(1..)?.find('$')? + 1;
    let name = text.get(1..end)?;
    let is_name = name.chars().all(|char| char.is_alphanumeric() || char == '_');
    (is_name && !name.starts_with(|char: char| char.is_ascii_digit())).then(|| text.get(..=end)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(text: &str, language: ShellLanguage) -> Vec<ShellInput> {
        let mut found = Vec::new();
        let mut rest = text;
        loop {
            match next_input(rest, language) {
                NextInput::Whole(input, after) => {
                    found.push(input);
                    rest = after;
                }
                NextInput::Unfinished(input) => {
                    found.push(input);
                    return found;
                }
                NextInput::Nothing => return found,
            }
        }
    }

    fn sql(text: &str) -> ShellInput {
        ShellInput::Statement(ShellLanguage::Sql, text.to_owned())
    }

    fn kql(text: &str) -> ShellInput {
        ShellInput::Statement(ShellLanguage::Kql, text.to_owned())
    }

    #[test]
    fn statements_end_where_they_end() {
        for (text, expected) in [
            ("select 1; select 2;", vec![sql("select 1"), sql("select 2")]),
            ("select ';' ; select \"a;b\"", vec![sql("select ';'"), sql("select \"a;b\"")]),
            ("select 'it''s;';x", vec![sql("select 'it''s;'"), sql("x")]),
            ("select 1 -- ; no\n; select 2", vec![sql("select 1 -- ; no"), sql("select 2")]),
            ("select /* ; /* ; */ ; */ 1; 2", vec![sql("select /* ; /* ; */ ; */ 1"), sql("2")]),
            ("select $$a;b$$, $x$;$$;$x$; 2", vec![sql("select $$a;b$$, $x$;$$;$x$"), sql("2")]),
            ("select $1; select $2", vec![sql("select $1"), sql("select $2")]),
            (" ;; ; -- nothing\n /* here /* or */ there; */ ", vec![]),
            ("-- first\nkql T | count; /* then */ select 1", vec![kql("T | count"), sql("select 1")]),
            ("kql T | take 1; select 1", vec![kql("T | take 1"), sql("select 1")]),
            ("select E'it\\'s;', e'\\\\'; 2", vec![sql("select E'it\\'s;', e'\\\\'"), sql("2")]),
            ("select E'it''s \\'x'; 2", vec![sql("select E'it''s \\'x'"), sql("2")]),
            ("select 'c:\\'; select name'\\'; 3", vec![sql("select 'c:\\'"), sql("select name'\\'"), sql("3")]),
            ("\u{feff}-- saved by an editor\nselect 1; 2", vec![sql("select 1"), sql("2")]),
            (".5e1;", vec![sql(".5e1")]),
            ("é; ü", vec![sql("é"), sql("ü")]),
        ] {
            assert_eq!(inputs(text, ShellLanguage::Sql), expected, "{text}");
        }
    }

    #[test]
    fn kql_has_declarations_and_texts_of_its_own() {
        for (text, expected) in [
            ("let x = 5; T | where a > x; print 1", vec![kql("let x = 5; T | where a > x"), kql("print 1")]),
            ("T | where a == 'x\\';' // ;\n; print 1", vec![kql("T | where a == 'x\\';' // ;"), kql("print 1")]),
            ("print @'c:\\'; print 2", vec![kql("print @'c:\\'"), kql("print 2")]),
            ("print ```a;b```; print 2", vec![kql("print ```a;b```"), kql("print 2")]),
            ("sql select 1; T", vec![sql("select 1"), kql("T")]),
            ("letters | take 1; T", vec![kql("letters | take 1"), kql("T")]),
        ] {
            assert_eq!(inputs(text, ShellLanguage::Kql), expected, "{text}");
        }
    }

    #[test]
    fn commands_and_questions_end_with_their_line() {
        let text = ".mode csv\nselect 1;\n\\d flights\n? how many; flights?\nselect 2";
        let expected = [
            ShellInput::Command(".mode csv".into()),
            sql("select 1"),
            ShellInput::Command("\\d flights".into()),
            ShellInput::Question("how many; flights?".into()),
            sql("select 2"),
        ];
        assert_eq!(inputs(text, ShellLanguage::Sql), expected);
        assert_eq!(next_input("select 1", ShellLanguage::Sql), NextInput::Unfinished(sql("select 1")));
        let command = |command: &str| ShellInput::Command(command.into());
        assert_eq!(
            inputs("help\nselect 1;Quit;", ShellLanguage::Sql),
            [command(".help"), sql("select 1"), command(".quit")]
        );
        assert_eq!(inputs("exit", ShellLanguage::Kql), [command(".exit")]);
        assert_eq!(inputs("help me;", ShellLanguage::Sql), [sql("help me")]);
        // Kusto's commands are statements of KQL.
        let text = ".show graph_models\n| count; .mode sql\n.create-or-alter graph_model G ```{\n;}```;\n";
        assert_eq!(
            inputs(text, ShellLanguage::Kql),
            [
                kql(".show graph_models\n| count"),
                command(".mode sql"),
                kql(".create-or-alter graph_model G ```{\n;}```")
            ]
        );
        assert_eq!(inputs("kql .show graph_models;", ShellLanguage::Sql), [kql(".show graph_models")]);
        assert_eq!(inputs(".shows x\n", ShellLanguage::Kql), [command(".shows x")]);
    }
}
