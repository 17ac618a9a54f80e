//! Statements about policies: GRANT, REVOKE, CREATE and DROP of ROW POLICY and MASK, and SHOW of them. They are not SQL that
//! DataFusion parses, so they are read from the tokens here.
//!
//! ```sql
//! GRANT SELECT (id, amount), INSERT ON sales.orders TO ROLE analyst, GROUP emea;
//! REVOKE ALL ON DATABASE hr FROM PUBLIC;
//! CREATE ROW POLICY own_region ON sales.orders USING (region = attribute('region')) TO ROLE analyst;
//! CREATE MASK hidden_mail ON crm.people(email) USING ('***') TO PUBLIC EXCEPT ROLE support;
//! ```

use std::collections::BTreeSet;

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use querent_catalog::TableName;
use querent_catalog::policy::{GrantTarget, Grantee, Mask, PolicyEdit, Privilege, RowPolicy};

use super::copied_characters::BYTE_ORDER_MARK;
use super::dialect::SqlDialect;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// What a statement about policies does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PolicyStatement {
    /// It changes the policy.
    Change(PolicyEdit),
    /// It lists a part of it: this query does.
    Show(&'static str),
}

/// A privilege, and the only columns that it is for.
type ColumnRight = (Privilege, Option<BTreeSet<String>>);

/// The longest statement after a comment that is looked at.
const MAX_COMMENTED_BYTES: usize = 1 << 20;
const SHOW_GRANTS: &str = "SELECT privilege, target, columns, grantee FROM system.policies WHERE kind = 'grant' ORDER BY target, grantee, privilege";
const SHOW_ROW_POLICIES: &str = "SELECT name, target, expression, grantee, excluded FROM system.policies
     WHERE kind = 'row policy' ORDER BY target, name";
const SHOW_MASKS: &str = "SELECT name, target, columns, expression, grantee, excluded FROM system.policies
     WHERE kind = 'mask' ORDER BY target, name";
const SHOW_POLICIES: &str = "SELECT * FROM system.policies";

/// Reads a statement about policies, of which bare names of tables are in `database`; `None` where it is another statement.
pub(crate) fn parse_policy_statement(text: &str, database: &str) -> Result<Option<PolicyStatement>> {
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    // Most statements are told by their first words, without their other tokens.
    let mut first = text.split_ascii_whitespace().take(4).map(str::to_ascii_lowercase);
    let words: [String; 4] = std::array::from_fn(|_| first.next().unwrap_or_default());
    let may_be = match words.each_ref().map(String::as_str) {
        ["grant" | "revoke", ..] => true,
        ["create", "or", "replace", what] | ["create" | "drop", what, ..] => ["row", "mask"].contains(&what),
        ["show", what, ..] => ["grants", "row", "masks", "policies"].iter().any(|word| what.starts_with(word)),
        // A comment may stand before it.
        [start, ..] => (start.starts_with("--") || start.starts_with("/*")) && text.len() < MAX_COMMENTED_BYTES,
    };
    if !may_be {
        return Ok(None);
    }
    let Ok(tokens) = Tokenizer::new(&SqlDialect, text).tokenize() else { return Ok(None) };
    let mut words = PolicyTokens { tokens, at: 0, database };
    words.statement()
}

/// Reads statements about policies that stand one after another, each ended by `;`. Errors: another statement among them.
pub(crate) fn parse_policy_file(text: &str, database: &str) -> Result<Vec<(String, PolicyEdit)>> {
    let tokens = Tokenizer::new(&SqlDialect, text.trim_start_matches(BYTE_ORDER_MARK))
        .tokenize()
        .map_err(|error| DataFusionError::from(ParserError::from(error)))?;
    let mut edits = Vec::new();
    for tokens in tokens.split(|token| *token == Token::SemiColon) {
        if tokens.iter().all(|token| matches!(token, Token::Whitespace(_))) {
            continue;
        }
        let text = written(tokens);
        let mut words = PolicyTokens { tokens: tokens.to_vec(), at: 0, database };
        match words.statement()? {
            Some(PolicyStatement::Change(edit)) => edits.push((text, edit)),
            Some(PolicyStatement::Show(_)) | None => {
                let start: String = text.chars().take(60).collect();
                let message = format!("`{start}` is no GRANT, REVOKE, CREATE ROW POLICY or CREATE MASK");
                return Err(EngineError::Plan { message });
            }
        }
    }
    Ok(edits)
}

/// Writes tokens as text again, without comments, which would hide what is written after them.
fn written(tokens: &[Token]) -> String {
    let words = tokens.iter().map(|token| match token {
        Token::Whitespace(_) => " ".to_owned(),
        // The tokenizer has read doubled quotes as one, and what stands for other characters as those.
        Token::SingleQuotedString(text)
        | Token::NationalStringLiteral(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => format!("'{}'", text.replace('\'', "''")),
        Token::Word(word) if word.quote_style.is_some() => format!("\"{}\"", word.value.replace('"', "\"\"")),
        other => other.to_string(),
    });
    words.collect::<String>().trim().to_owned()
}

/// The tokens of one statement.
struct PolicyTokens<'a> {
    tokens: Vec<Token>,
    at: usize,
    database: &'a str,
}

impl PolicyTokens<'_> {
    fn statement(&mut self) -> Result<Option<PolicyStatement>> {
        let edit = if self.eats("GRANT") {
            let (privileges, on) = self.rights("GRANT")?;
            self.expects("TO")?;
            PolicyEdit::Grant { privileges, on, to: self.grantees()? }
        } else if self.eats("REVOKE") {
            let (privileges, on) = self.rights("REVOKE")?;
            self.expects("FROM")?;
            PolicyEdit::Revoke { privileges, on, from: self.grantees()? }
        } else if self.eats("CREATE") {
            let or_replace = self.eats("OR") && self.eats("REPLACE");
            if self.eats("ROW") {
                self.expects("POLICY")?;
                self.row_policy(or_replace)?
            } else if self.eats("MASK") {
                self.mask(or_replace)?
            } else {
                return Ok(None);
            }
        } else if self.eats("DROP") {
            if self.eats("ROW") {
                self.expects("POLICY")?;
                let (name, table, if_exists) = self.dropped()?;
                PolicyEdit::DropRowPolicy { name, table, if_exists }
            } else if self.eats("MASK") {
                let (name, table, if_exists) = self.dropped()?;
                PolicyEdit::DropMask { name, table, if_exists }
            } else {
                return Ok(None);
            }
        } else if self.eats("SHOW") {
            let shown = match self.eats("GRANTS") {
                true => SHOW_GRANTS,
                false if self.eats("MASKS") => SHOW_MASKS,
                false if self.eats("POLICIES") => SHOW_POLICIES,
                false if self.eats("ROW") && self.eats("POLICIES") => SHOW_ROW_POLICIES,
                false => return Ok(None),
            };
            self.ends()?;
            return Ok(Some(PolicyStatement::Show(shown)));
        } else {
            return Ok(None);
        };
        self.ends()?;
        Ok(Some(PolicyStatement::Change(edit)))
    }

    /// `SELECT (a, b), INSERT ON target`.
    fn rights(&mut self, statement: &str) -> Result<(Vec<ColumnRight>, GrantTarget)> {
        let mut privileges = Vec::new();
        loop {
            if self.eats("ALL") {
                self.eats("PRIVILEGES");
                let all = [Privilege::Select, Privilege::Insert, Privilege::Modify];
                privileges.extend(all.map(|privilege| (privilege, None)));
            } else if let Some(privilege) = [Privilege::Select, Privilege::Insert, Privilege::Modify]
                .into_iter()
                .find(|one| self.eats(one.as_str()))
            {
                let columns = if self.peeks(&Token::LParen) { Some(self.columns()?) } else { None };
                privileges.push((privilege, columns));
            } else {
                return Err(self.wrong(&format!("{statement} names SELECT, INSERT, MODIFY or ALL")));
            }
            if !self.takes(&Token::Comma) {
                break;
            }
        }
        self.expects("ON")?;
        Ok((privileges, self.target()?))
    }

    fn target(&mut self) -> Result<GrantTarget> {
        if self.eats("ALL") {
            if self.eats("DATABASES") || self.eats("SCHEMAS") {
                return Ok(GrantTarget::AllDatabases);
            }
            self.expects("TABLES")?;
            self.expects("IN")?;
            if !self.eats("DATABASE") {
                self.expects("SCHEMA")?;
            }
            return Ok(GrantTarget::Database(self.database_name()?));
        }
        if self.eats("DATABASE") || self.eats("SCHEMA") {
            return Ok(GrantTarget::Database(self.database_name()?));
        }
        if !self.eats("TABLE") {
            self.eats("VIEW");
        }
        Ok(GrantTarget::Table(self.table()?))
    }

    fn row_policy(&mut self, or_replace: bool) -> Result<PolicyEdit> {
        let name = self.name()?;
        self.expects("ON")?;
        let table = self.table()?;
        let condition = self.using()?;
        let (to, except) = self.audience()?;
        Ok(PolicyEdit::CreateRowPolicy { policy: RowPolicy { name, table, condition, to, except }, or_replace })
    }

    fn mask(&mut self, or_replace: bool) -> Result<PolicyEdit> {
        let name = self.name()?;
        self.expects("ON")?;
        let table = self.table()?;
        let columns = self.columns()?;
        let mut columns = columns.into_iter();
        let (Some(column), None) = (columns.next(), columns.next()) else {
            return Err(self.wrong("a mask is on one column: ON table(column)"));
        };
        let expression = self.using()?;
        let (to, except) = self.audience()?;
        Ok(PolicyEdit::CreateMask { mask: Mask { name, table, column, expression, to, except }, or_replace })
    }

    fn dropped(&mut self) -> Result<(String, TableName, bool)> {
        let if_exists = self.eats("IF");
        if if_exists {
            self.expects("EXISTS")?;
        }
        let name = self.name()?;
        self.expects("ON")?;
        Ok((name, self.table()?, if_exists))
    }

    /// `TO grantees [EXCEPT grantees]`.
    fn audience(&mut self) -> Result<(BTreeSet<Grantee>, BTreeSet<Grantee>)> {
        self.expects("TO")?;
        let to = self.grantees()?.into_iter().collect();
        let except = if self.eats("EXCEPT") { self.grantees()?.into_iter().collect() } else { BTreeSet::new() };
        Ok((to, except))
    }

    fn grantees(&mut self) -> Result<Vec<Grantee>> {
        let mut grantees = Vec::new();
        loop {
            grantees.push(if self.eats("PUBLIC") {
                Grantee::Public
            } else if self.eats("ROLE") {
                Grantee::Role(self.name()?)
            } else if self.eats("GROUP") {
                Grantee::Group(self.name()?)
            } else if self.eats("SUBJECT") || self.eats("USER") {
                Grantee::Subject(self.name()?)
            } else {
                return Err(self.wrong("write PUBLIC, ROLE name, GROUP name or SUBJECT name"));
            });
            if !self.takes(&Token::Comma) {
                return Ok(grantees);
            }
        }
    }

    /// `(a, b)`, in lower case.
    fn columns(&mut self) -> Result<BTreeSet<String>> {
        self.token(&Token::LParen)?;
        let mut columns = BTreeSet::new();
        loop {
            columns.insert(self.name()?.to_lowercase());
            if !self.takes(&Token::Comma) {
                break;
            }
        }
        self.token(&Token::RParen)?;
        Ok(columns)
    }

    /// `USING (expression)`: the text between the brackets.
    fn using(&mut self) -> Result<String> {
        self.expects("USING")?;
        self.token(&Token::LParen)?;
        let start = self.at;
        let mut depth = 1;
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                // Comments would end, or hide, what is written around the expression later.
                let text = written(&self.tokens[start..self.at - 1]);
                return if text.is_empty() { Err(self.wrong("USING needs an expression")) } else { Ok(text) };
            }
        }
        Err(self.wrong("a bracket of USING (...) is not closed"))
    }

    /// The full name of a table, in lower case.
    fn table(&mut self) -> Result<TableName> {
        let mut parts = vec![self.name()?];
        while self.takes(&Token::Period) {
            parts.push(self.name()?);
        }
        let name = match parts.as_slice() {
            [table] => TableName::new(self.database, table),
            [database, table] => TableName::new(database, table),
            [catalog, database, table] if same_name(catalog, querent_catalog::CATALOG_NAME) => {
                TableName::new(database, table)
            }
            _ => return Err(self.wrong("a table is `table` or `database.table`")),
        };
        Ok(TableName { database: name.database.to_lowercase(), table: name.table.to_lowercase() })
    }

    fn database_name(&mut self) -> Result<String> {
        let mut name = self.name()?;
        if same_name(&name, querent_catalog::CATALOG_NAME) && self.takes(&Token::Period) {
            name = self.name()?;
        }
        Ok(name.to_lowercase())
    }

    /// A name as written, quoted or not; a text is taken for one too.
    fn name(&mut self) -> Result<String> {
        let found = match self.peek() {
            Some(Token::Word(word)) => Some(word.value.clone()),
            Some(Token::SingleQuotedString(text)) => Some(text.clone()),
            _ => None,
        };
        let name = found.ok_or_else(|| self.wrong("a name is missing"))?;
        self.at += 1;
        Ok(name)
    }

    /// The next token that is no white space; moves there.
    fn peek(&mut self) -> Option<&Token> {
        while matches!(self.tokens.get(self.at), Some(Token::Whitespace(_))) {
            self.at += 1;
        }
        self.tokens.get(self.at)
    }

    fn peeks(&mut self, token: &Token) -> bool {
        self.peek() == Some(token)
    }

    fn takes(&mut self, token: &Token) -> bool {
        let found = self.peeks(token);
        self.at += usize::from(found);
        found
    }

    fn eats(&mut self, word: &str) -> bool {
        let is_word = |token: &Token| match token {
            Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
            _ => false,
        };
        let found = self.peek().is_some_and(is_word);
        self.at += usize::from(found);
        found
    }

    fn token(&mut self, token: &Token) -> Result<()> {
        if self.takes(token) { Ok(()) } else { Err(self.wrong(&format!("`{token}` is missing"))) }
    }

    fn expects(&mut self, word: &str) -> Result<()> {
        if self.eats(word) { Ok(()) } else { Err(self.wrong(&format!("{word} is missing"))) }
    }

    fn ends(&mut self) -> Result<()> {
        self.takes(&Token::SemiColon);
        if self.peek().is_some() { Err(self.wrong("the statement ends before this")) } else { Ok(()) }
    }

    fn wrong(&mut self, what: &str) -> EngineError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |token| format!("`{token}`"));
        EngineError::Plan { message: format!("{what}; found {found}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str) -> PolicyEdit {
        match parse_policy_statement(text, "Main").unwrap() {
            Some(PolicyStatement::Change(edit)) => edit,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn rights_are_read() {
        let PolicyEdit::Grant { privileges, on, to } =
            edit("grant SELECT (Id, \"A b\"), insert on Sales.Orders to role analyst, SUBJECT 'a@b.org', public;")
        else {
            panic!()
        };
        let columns = BTreeSet::from(["id".to_owned(), "a b".to_owned()]);
        assert_eq!(privileges, [(Privilege::Select, Some(columns)), (Privilege::Insert, None)]);
        assert_eq!(on, GrantTarget::Table(TableName::new("sales", "orders")));
        let who = [Grantee::Role("analyst".into()), Grantee::Subject("a@b.org".into()), Grantee::Public];
        assert_eq!(to, who);
        let PolicyEdit::Revoke { privileges, on, .. } = edit("REVOKE ALL ON DATABASE hr FROM PUBLIC") else { panic!() };
        assert_eq!((privileges.len(), on), (3, GrantTarget::Database("hr".into())));
    }

    #[test]
    fn expressions_are_kept_without_their_comments() {
        let PolicyEdit::CreateRowPolicy { policy, or_replace } =
            edit("CREATE OR REPLACE ROW POLICY p ON t USING (a = ')' -- b)\n OR (b > 1)) TO PUBLIC EXCEPT GROUP g")
        else {
            panic!()
        };
        assert!(or_replace);
        assert_eq!(policy.table, TableName::new("main", "t"));
        assert_eq!(policy.condition.split_whitespace().collect::<Vec<_>>(), ["a", "=", "')'", "OR", "(b", ">", "1)"]);
        assert_eq!(
            parse_policy_file("CREATE MASK m ON t(c) USING ('it''s; -- ' || \"a\"\"b\") TO PUBLIC;", "d").unwrap()[0].0,
            "CREATE MASK m ON t(c) USING ('it''s; -- ' || \"a\"\"b\") TO PUBLIC"
        );
        assert_eq!(policy.except, BTreeSet::from([Grantee::Group("g".into())]));
        // A text is the same text, however it was written.
        let text = r"CREATE MASK m ON t(c) USING (E'C:\\new\'' || N'it''s') TO PUBLIC";
        let PolicyEdit::CreateMask { mask, .. } = edit(text) else { panic!() };
        assert_eq!(mask.expression, r"'C:\new''' || 'it''s'");
    }

    #[test]
    fn other_statements_are_left_alone() {
        for text in [
            "SELECT 1",
            "CREATE TABLE row (a INT)",
            "DROP TABLE mask",
            "SHOW TABLES",
            "CREATE OR REPLACE VIEW v AS SELECT 1",
        ] {
            assert_eq!(parse_policy_statement(text, "d").unwrap(), None, "{text}");
        }
        for text in
            ["GRANT SELECT ON t", "CREATE MASK m ON t USING (1) TO PUBLIC", "GRANT SELECT ON t TO bob", "SHOW GRANTS x"]
        {
            assert!(parse_policy_statement(text, "d").is_err(), "{text}");
        }
    }
}
