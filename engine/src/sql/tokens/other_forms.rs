//! Forms of PostgreSQL and DuckDB that are no expressions of the parser: those that say nothing are left out, the others are
//! refused with what to write instead, where the parser would name a token.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::typed_texts::{nulls_behind_calls, typed_texts};
use super::{is_word, leave_out};
use crate::error::{EngineError, OWN_FUNCTION, Result};
use crate::sql::file_requests::is_path;
use crate::sql::marks;

/// A form: how it begins, what it is, and what stands for it.
struct RefusedForm {
    begins: &'static [&'static str],
    what: &'static str,
    instead: &'static str,
}

const REFUSALS: &[RefusedForm] = &[
    RefusedForm {
        begins: &["is", "json"],
        what: "IS JSON",
        instead: "write json_valid(text), and json_type(text) = 'OBJECT'",
    },
    RefusedForm { begins: &["is", "not", "json"], what: "IS NOT JSON", instead: "write NOT json_valid(text)" },
    RefusedForm { begins: &["in", "map", "{"], what: "IN of a map", instead: "write map_contains(map, key)" },
    RefusedForm {
        begins: &["using", "key", "("],
        what: "USING KEY in a recursive query",
        instead: "keep the latest of each key with QUALIFY row_number() OVER (PARTITION BY key ORDER BY step DESC) = 1",
    },
    RefusedForm { begins: &["at", "local"], what: "AT LOCAL", instead: "write AT TIME ZONE 'UTC'" },
    RefusedForm {
        begins: &["rows", "from", "("],
        what: "ROWS FROM",
        instead: "write unnest(list, list), or join the functions by their ordinality",
    },
    RefusedForm {
        begins: &["search", "depth", "first"],
        what: "SEARCH DEPTH FIRST",
        instead: "carry the path as a list and write ORDER BY path",
    },
    RefusedForm {
        begins: &["search", "breadth", "first"],
        what: "SEARCH BREADTH FIRST",
        instead: "carry the depth as a number and write ORDER BY depth",
    },
    RefusedForm {
        begins: &["then", "error"],
        what: "ERROR in MERGE",
        instead: "ask before with a SELECT of such rows",
    },
    RefusedForm {
        begins: &["with", "no", "data"],
        what: "WITH NO DATA",
        instead: "write LIMIT 0 at the end of the query",
    },
    RefusedForm {
        begins: &["set", "variable"],
        what: "SET VARIABLE",
        instead: "send the value as a parameter: WHERE id = $1",
    },
    RefusedForm {
        begins: &["export", "database"],
        what: "EXPORT DATABASE",
        instead: "write COPY table TO 'file' for each table, or copy the data folder with `querent backup`",
    },
    RefusedForm { begins: &["like", "all"], what: "LIKE ALL", instead: "write the patterns with AND" },
    RefusedForm { begins: &["ilike", "all"], what: "ILIKE ALL", instead: "write the patterns with AND" },
    RefusedForm {
        begins: &["checkpoint"],
        what: "CHECKPOINT",
        instead: "leave it out: a statement is written when it ends; OPTIMIZE t merges small files",
    },
    RefusedForm {
        begins: &["vacuum", "analyze"],
        what: "VACUUM ANALYZE",
        instead: "write ANALYZE t, which counts distinct values, and OPTIMIZE t, which merges small files",
    },
    RefusedForm {
        begins: &["create", "recursive", "view"],
        what: "CREATE RECURSIVE VIEW",
        instead: "write CREATE VIEW name AS WITH RECURSIVE name(columns) AS (...) SELECT * FROM name",
    },
    RefusedForm {
        begins: &["alter", "view"],
        what: "ALTER VIEW",
        instead: "write CREATE OR REPLACE VIEW name AS query, or ALTER VIEW name RENAME TO name",
    },
    RefusedForm { begins: &["create", "sequence"], what: "CREATE SEQUENCE", instead: SEQUENCE },
    RefusedForm { begins: &["alter", "sequence"], what: "ALTER SEQUENCE", instead: SEQUENCE },
    RefusedForm { begins: &["drop", "sequence"], what: "DROP SEQUENCE", instead: NOTHING_THERE },
    RefusedForm { begins: &["drop", "type"], what: "DROP TYPE", instead: NOTHING_THERE },
    RefusedForm { begins: &["drop", "domain"], what: "DROP DOMAIN", instead: NOTHING_THERE },
    RefusedForm { begins: &["drop", "trigger"], what: "DROP TRIGGER", instead: NOTHING_THERE },
    RefusedForm { begins: &["alter", "type"], what: "ALTER TYPE", instead: NOTHING_THERE },
    RefusedForm { begins: &["alter", "domain"], what: "ALTER DOMAIN", instead: NOTHING_THERE },
    RefusedForm { begins: &["alter", "function"], what: "ALTER FUNCTION", instead: NOTHING_THERE },
    RefusedForm { begins: &["alter", "index"], what: "ALTER INDEX", instead: NOTHING_THERE },
    RefusedForm {
        begins: &["alter", "default", "privileges"],
        what: "ALTER DEFAULT PRIVILEGES",
        instead: "leave it out, and write GRANT SELECT ON DATABASE name TO GROUP name, which holds for its new tables too",
    },
    RefusedForm { begins: &["create", "rule"], what: "CREATE RULE", instead: "leave it out: write what it would do" },
    RefusedForm { begins: &["create", "statistics"], what: "CREATE STATISTICS", instead: "write ANALYZE table" },
    RefusedForm { begins: &["create", "publication"], what: "CREATE PUBLICATION", instead: NOTHING_THERE },
    RefusedForm { begins: &["create", "subscription"], what: "CREATE SUBSCRIPTION", instead: NOTHING_THERE },
    RefusedForm { begins: &["create", "aggregate"], what: "CREATE AGGREGATE", instead: OWN_FUNCTION },
    RefusedForm { begins: &["create", "cast"], what: "CREATE CAST", instead: OWN_FUNCTION },
    RefusedForm { begins: &["create", "operator"], what: "CREATE OPERATOR", instead: OWN_FUNCTION },
    RefusedForm {
        begins: &["create", "event", "trigger"],
        what: "CREATE EVENT TRIGGER",
        instead: "leave it out: there are no triggers",
    },
    RefusedForm {
        begins: &["create", "unlogged", "table"],
        what: "CREATE UNLOGGED TABLE",
        instead: "write CREATE TABLE",
    },
    RefusedForm { begins: &["create", "function"], what: "CREATE FUNCTION", instead: OWN_FUNCTION },
    RefusedForm { begins: &["create", "or", "replace", "function"], what: "CREATE FUNCTION", instead: OWN_FUNCTION },
    RefusedForm {
        begins: &["create", "domain"],
        what: "CREATE DOMAIN",
        instead: "write its type where it is used, and look for values beside it with a WHERE",
    },
    RefusedForm {
        begins: &["refresh", "materialized"],
        what: "REFRESH MATERIALIZED VIEW",
        instead: "leave it out: a view reads its tables each time; to keep its rows, CREATE OR REPLACE TABLE t AS query",
    },
    RefusedForm {
        begins: &["from", "(", "show"],
        what: "SHOW in FROM",
        instead: "write FROM information_schema.tables, or FROM (DESCRIBE t)",
    },
    RefusedForm { begins: &["including", "all"], what: "INCLUDING ALL of a table LIKE another", instead: LIKE_TABLE },
    RefusedForm { begins: &["including", "defaults"], what: "INCLUDING DEFAULTS", instead: LIKE_TABLE },
    RefusedForm {
        begins: &["exclude", "using"],
        what: "EXCLUDE USING of a table",
        instead: "leave it out: keys are recorded and not enforced, and rows are compared by a query",
    },
    RefusedForm { begins: &["*", "columns", "("], what: "*COLUMNS in a call", instead: "list the columns" },
    RefusedForm {
        begins: &["group", "by", "distinct"],
        what: "GROUP BY DISTINCT",
        instead: "write each set once: GROUP BY GROUPING SETS ((a, b), (a), ())",
    },
];

const SEQUENCE: &str =
    "leave it out: number rows with row_number() OVER () + (SELECT max(id) FROM t), or give the column DEFAULT uuid()";
const LIKE_TABLE: &str = "write CREATE TABLE new (LIKE old), which takes NOT NULL and defaults along, and no keys";
const LEAVE_OUT: &str = "leave it out: it changes no answer";
const NOTHING_THERE: &str = "leave it out: there are databases, tables, views and vector indexes";

/// The ends of window frames, behind which EXCLUDE may stand.
const FRAME_ENDS: [&str; 3] = ["row", "preceding", "following"];

/// Returns the tokens without what changes no answer. Errors: `unsupported`.
pub(super) fn other_forms(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let tokens = lasting_rows(renamed_view(plain_texts(tokens)));
    let tokens = symmetric_ranges(without_rows(by_all(described_table(tokens))))?;
    let is_merge = tokens.iter().any(|token| is_word(&token.token, "merge"));
    refuse_alterations(&tokens)?;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before)).map(|before| &before.token);
        if token.token == Token::ExclamationMark && before.is_some_and(ends_number) {
            return Err(unsupported("a factorial behind its number", "write factorial(n)"));
        }
        if token.token == Token::Sharp {
            return Err(unsupported("`#`", "write xor(a, b)"));
        }
        if matches!(token.token, Token::Placeholder(_)) && is_key_operator(&tokens, at) {
            return Err(unsupported("the operator `?` of JSON", "write jsonb_exists(json, 'key')"));
        }
        let Token::Word(word) = &token.token else {
            if token.token == Token::Mul && !before.is_some_and(|before| matches!(before, Token::LParen | Token::Comma))
            {
                continue;
            }
            refuse_at(&tokens, at, is_merge)?;
            continue;
        };
        if word.quote_style.is_some() {
            continue;
        }
        refuse_at(&tokens, at, is_merge)?;
        if is_word(&token.token, "similar")
            && let Some(next) = tokens.get(at + 1)
            && !is_word(&next.token, "to")
            && matches!(next.token, Token::SingleQuotedString(_))
        {
            return Err(unsupported("substring(... SIMILAR ...)", "write substring(text FROM 'regular expression')"));
        }
    }
    without_default_exclusion(nulls_behind_calls(typed_texts(joined_texts(percent_limits(tokens))?)))
}

/// A text between `$tag$` is one between quotes, also where the parser knows the latter alone.
fn plain_texts(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    for token in &mut tokens {
        if let Token::DollarQuotedString(text) = &mut token.token {
            token.token = Token::SingleQuotedString(std::mem::take(&mut text.value));
        }
    }
    tokens
}

/// A temporary table is LOCAL to its session, and ON COMMIT PRESERVE ROWS: each statement is a transaction.
fn lasting_rows(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const KEEPS: [&str; 4] = ["on", "commit", "preserve", "rows"];
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let is_local = is(0, "create") && is(1, "local");
    let at_name = if is_local { 2 } else { 1 };
    if !is(0, "create") || !(is(at_name, "temporary") || is(at_name, "temp")) {
        return tokens;
    }
    let keeps = (at_name..tokens.len()).find(|at| KEEPS.into_iter().zip(*at..).all(|(word, at)| is(at, word)));
    if let Some(at) = keeps {
        tokens.drain(at..at + KEEPS.len());
    }
    if is_local {
        tokens.remove(1);
    }
    tokens
}

/// `ALTER VIEW v RENAME TO w` is that of a table, as in PostgreSQL.
fn renamed_view(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let is_renamed =
        is(0, "alter") && is(1, "view") && (2..tokens.len()).any(|at| is(at, "rename") && is(at + 1, "to"));
    if let Some(view) = tokens.get_mut(1).filter(|_| is_renamed) {
        view.token = Token::make_keyword("TABLE");
    }
    tokens
}

/// `DESCRIBE TABLE t` is `DESCRIBE t`, and `DESCRIBE 'file'` is that of all of the file.
fn described_table(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let describes = |token: &TokenWithSpan| is_word(&token.token, "describe") || is_word(&token.token, "desc");
    let is_of_table = match tokens.as_slice() {
        [describe, table, name, ..] => {
            let is_name = matches!(name.token, Token::Word(_) | Token::SingleQuotedString(_));
            describes(describe) && is_word(&table.token, "table") && is_name
        }
        _ => false,
    };
    if is_of_table {
        tokens.remove(1);
    }
    let file = match tokens.as_slice() {
        [describe, TokenWithSpan { token: Token::SingleQuotedString(text), span }, ..] if describes(describe) => {
            is_path(text).then_some(*span)
        }
        _ => None,
    };
    if let Some(span) = file {
        let query = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
        tokens.splice(1..1, query.map(|token| TokenWithSpan { token, span }));
    }
    tokens
}

/// `ORDER BY *` and `GROUP BY *` are by ALL.
fn by_all(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    for at in 2..tokens.len() {
        let is_by = is_word(&tokens[at - 1].token, "by")
            && (is_word(&tokens[at - 2].token, "order") || is_word(&tokens[at - 2].token, "group"));
        if is_by && tokens[at].token == Token::Mul {
            tokens[at].token = Token::make_keyword("ALL");
        }
    }
    tokens
}

/// `CREATE TABLE t AS query WITH NO DATA` keeps the columns of a query and none of its rows.
fn without_rows(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let end = tokens.len() - usize::from(tokens.last().is_some_and(|last| last.token == Token::SemiColon));
    let is_word_at = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let is_created = is_word_at(0, "create") && (1..5).any(|at| is_word_at(at, "table"));
    let is_without =
        end >= 3 && ["with", "no", "data"].into_iter().zip(end - 3..).all(|(word, at)| is_word_at(at, word));
    if !is_created || !is_without {
        return tokens;
    }
    let mut depth = 0;
    let start = tokens.iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && is_word(&token.token, "as")
    });
    let Some(start) = start else { return tokens };
    let Some(span) = tokens.get(start).map(|token| token.span) else { return tokens };
    let with = |token: Token| TokenWithSpan { token, span };
    let word = |text: &str| with(Token::make_word(text, None));
    let query = tokens.get(start + 1..end - 3).unwrap_or_default();
    let mut written = tokens.get(..=start).unwrap_or_default().to_vec();
    written.extend([word("SELECT"), with(Token::Mul), word("FROM"), with(Token::LParen)]);
    written.extend_from_slice(query);
    written.extend([with(Token::RParen), word("LIMIT"), with(Token::Number("0".to_owned(), false))]);
    written
}

/// Marks the first end of each BETWEEN SYMMETRIC ([`crate::sql::symmetric_ranges`]); ASYMMETRIC is what BETWEEN is anyway.
/// Errors: `unsupported` for too many, since each is written out twice.
fn symmetric_ranges(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    const MOST: usize = 3;
    let follows = |at: usize, word: &str| {
        is_word(&tokens[at].token, word)
            && at
                .checked_sub(1)
                .and_then(|before| tokens.get(before))
                .is_some_and(|before| is_word(&before.token, "between"))
    };
    let of_word = |word: &str| (0..tokens.len()).filter(|at| follows(*at, word)).collect::<Vec<_>>();
    let (marked, left_out) = (of_word("symmetric"), of_word("asymmetric"));
    if marked.len() > MOST {
        return Err(unsupported(
            "BETWEEN SYMMETRIC more than three times in a statement",
            "write x BETWEEN least(a, b) AND greatest(a, b)",
        ));
    }
    if marked.is_empty() && left_out.is_empty() {
        return Ok(tokens);
    }
    let mut written = Vec::with_capacity(tokens.len() + marked.len());
    let mut left_out = left_out.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        if marked.contains(&at) {
            written.push(TokenWithSpan { token: Token::make_word(marks::SYMMETRIC, None), span });
            written.push(TokenWithSpan { token: Token::StringConcat, span });
        } else if left_out.next_if_eq(&at).is_none() {
            written.push(token);
        }
    }
    Ok(written)
}

/// `LIMIT 10%` and `LIMIT 10 PERCENT` are a call that no function is.
fn percent_limits(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_percent = |at: usize| {
        let [limit, number, percent, rest @ ..] = &tokens[at..] else { return false };
        is_word(&limit.token, "limit")
            && matches!(number.token, Token::Number(..))
            && (percent.token == Token::Mod || is_word(&percent.token, "percent"))
            && rest.first().is_none_or(|next| !begins_value(&next.token))
    };
    let found: Vec<usize> = (0..tokens.len()).filter(|at| is_percent(*at)).collect();
    if found.is_empty() {
        return tokens;
    }
    let mut written = Vec::with_capacity(tokens.len() + 2 * found.len());
    let mut found = found.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        let with = |token: Token| TokenWithSpan { token, span };
        match found.peek().and_then(|limit| at.checked_sub(*limit)) {
            Some(1) => written.extend([with(Token::make_word(marks::LIMIT_PERCENT, None)), with(Token::LParen), token]),
            Some(2) => {
                written.push(with(Token::RParen));
                found.next();
            }
            _ => written.push(token),
        }
    }
    written
}

/// Texts on lines below each other are one, as in the standard; beside each other the parser would read a name. Options of
/// statements are pairs of texts.
fn joined_texts(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let is_text = |token: &TokenWithSpan| matches!(token.token, Token::SingleQuotedString(_));
    let has_pair = tokens.windows(2).any(|pair| pair.iter().all(is_text));
    if !has_pair || tokens.iter().any(|token| is_word(&token.token, "options")) {
        return Ok(tokens);
    }
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        match (kept.last_mut(), &token.token) {
            (
                Some(TokenWithSpan { token: Token::SingleQuotedString(before), span }),
                Token::SingleQuotedString(text),
            ) => {
                if span.end.line == token.span.start.line {
                    return Err(unsupported("a text beside a text", "join them: 'a' || 'b'"));
                }
                before.push_str(text);
                span.end = token.span.end;
            }
            _ => kept.push(token),
        }
    }
    Ok(kept)
}

/// `EXCLUDE NO OTHERS` is what a frame does anyway. Errors: `unsupported` for what else a frame may exclude.
fn without_default_exclusion(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let mut left_out: Vec<usize> = Vec::new();
    let (mut at, mut last_kept) = (0, None);
    while at < tokens.len() {
        if is(at, "exclude") && last_kept.is_some_and(|last| FRAME_ENDS.iter().any(|end| is(last, end))) {
            if !is(at + 1, "no") || !is(at + 2, "others") {
                return Err(excluded_rows(&tokens, at));
            }
            left_out.extend(at..at + 3);
            at += 3;
        } else {
            last_kept = Some(at);
            at += 1;
        }
    }
    leave_out(&mut tokens, left_out);
    Ok(tokens)
}

/// Returns the error of the EXCLUDE of a frame at a token.
fn excluded_rows(tokens: &[TokenWithSpan], at: usize) -> EngineError {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let (what, instead) = if is(at + 1, "group") {
        (
            "EXCLUDE GROUP in a window frame",
            "take off what the peers of the row have: sum(x) OVER w - coalesce(sum(x) OVER (w with RANGE BETWEEN \
             CURRENT ROW AND CURRENT ROW), 0), and of counts alike",
        )
    } else if is(at + 1, "ties") {
        (
            "EXCLUDE TIES in a window frame",
            "take off what the other peers of the row have: sum(x) OVER w - coalesce(sum(x) OVER (w with RANGE \
             BETWEEN CURRENT ROW AND CURRENT ROW) - x, 0), and of counts alike",
        )
    } else {
        (
            "EXCLUDE CURRENT ROW in a window frame",
            "take the row off: sum(x) OVER w - coalesce(x, 0), count(*) OVER w - 1, or of other functions two frames, \
             before and behind the row: greatest(max(x) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), max(x) \
             OVER (ORDER BY k ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))",
        )
    };
    unsupported(what, instead)
}

/// Refuses the form that begins at a token. Actions of MERGE are told from the results of CASE, and SET from that of UPDATE.
fn refuse_at(tokens: &[TokenWithSpan], at: usize, is_merge: bool) -> Result<()> {
    let is_here = |refusal: &&RefusedForm| match refusal.begins.first() {
        Some(&"then") => is_merge,
        // One that the parser knows is judged by the caller's rights first.
        Some(&"create") if refusal.begins.contains(&"function") => {
            at == 0 && !tokens.iter().any(|token| is_word(&token.token, "returns"))
        }
        Some(&"set" | &"export" | &"checkpoint" | &"create" | &"alter" | &"drop" | &"vacuum") => at == 0,
        _ => true,
    };
    let tokens = &tokens[at..];
    let begins = |refusal: &&RefusedForm| {
        refusal.begins.len() <= tokens.len()
            && refusal.begins.iter().zip(tokens).all(|(part, token)| match *part {
                "(" => token.token == Token::LParen,
                "{" => token.token == Token::LBrace,
                "*" => token.token == Token::Mul,
                word => is_word(&token.token, word),
            })
    };
    match REFUSALS.iter().filter(begins).find(is_here) {
        Some(refusal) => Err(unsupported(refusal.what, refusal.instead)),
        None => Ok(()),
    }
}

/// Errors: changes of ALTER TABLE that the parser would stop at.
fn refuse_alterations(tokens: &[TokenWithSpan]) -> Result<()> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    if !is(0, "alter") || !is(1, "table") {
        return Ok(());
    }
    if (2..tokens.len()).any(|at| is(at, "type")) && (2..tokens.len()).any(|at| is(at, "using")) {
        return Err(unsupported(
            "USING of ALTER COLUMN",
            "write CREATE OR REPLACE TABLE t AS SELECT * REPLACE (expression AS column) FROM t",
        ));
    }
    let changes = |words: &[&str]| (2..tokens.len()).any(|at| words.iter().zip(at..).all(|(word, at)| is(at, word)));
    const OTHERS: [(&[&str], &str, &str); 12] = [
        (&["owner", "to"], "OWNER TO", "leave it out: tables have no owners, and GRANT says who may"),
        (&["replica", "identity"], "REPLICA IDENTITY", LEAVE_OUT),
        (&["cluster", "on"], "CLUSTER ON", "write ALTER TABLE t SET SORTED BY (columns)"),
        (&["set", "without", "cluster"], "SET WITHOUT CLUSTER", "write ALTER TABLE t RESET SORTED BY"),
        (&["set", "schema"], "SET SCHEMA", "write CREATE TABLE schema.t AS SELECT * FROM t, and DROP TABLE t"),
        (&["attach", "partition"], "ATTACH PARTITION", "insert its rows: INSERT INTO t SELECT * FROM partition"),
        (&["set", "statistics"], "SET STATISTICS", LEAVE_OUT),
        (&["set", "storage"], "SET STORAGE", LEAVE_OUT),
        (&["row", "level", "security"], "ROW LEVEL SECURITY", "write CREATE ROW POLICY: see docs/security.md"),
        (&["validate", "constraint"], "VALIDATE CONSTRAINT", "leave it out: keys are recorded and not enforced"),
        (&["as", "identity"], "GENERATED AS IDENTITY", SEQUENCE),
        (&["default", "nextval"], "DEFAULT nextval", SEQUENCE),
    ];
    // A column may be called `owner`.
    let is_renamed = (2..tokens.len()).any(|at| is(at, "rename"));
    if let Some((_, what, instead)) = OTHERS.iter().find(|(words, ..)| !is_renamed && changes(words)) {
        return Err(unsupported(&format!("{what} of ALTER TABLE"), instead));
    }
    let add = (2..tokens.len()).find(|at| is(*at, "add"));
    let name = add.map(|at| if is(at + 1, "column") { at + 2 } else { at + 1 });
    if name.and_then(|at| tokens.get(at + 1)).is_some_and(|token| token.token == Token::Period) {
        return Err(unsupported(
            "ADD COLUMN of a field of a structure",
            "write CREATE OR REPLACE TABLE t AS SELECT * REPLACE (struct_insert(s, field := NULL::INTEGER) AS s) FROM t",
        ));
    }
    Ok(())
}

/// Whether what was read as a parameter is PostgreSQL's `json ? 'key'`, `?|` or `?&`: it stands between two values.
fn is_key_operator(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before)).map(|token| &token.token);
    let next = tokens.get(at + 1).map(|token| &token.token);
    let is_json = |token: &Token| is_word(token, "json") || is_word(token, "jsonb");
    let ends_value = before.is_some_and(|token| match token {
        Token::SingleQuotedString(_) | Token::RParen | Token::RBracket => true,
        // A column, behind which no parameter stands.
        Token::Word(word) if word.quote_style.is_some() || word.keyword == Keyword::NoKeyword => true,
        other => is_json(other),
    });
    let begins_key = next.is_some_and(|token| match token {
        Token::SingleQuotedString(_) | Token::Pipe | Token::Ampersand | Token::Placeholder(_) => true,
        other => is_word(other, "array"),
    });
    ends_value && begins_key
}

fn ends_number(token: &Token) -> bool {
    matches!(token, Token::Number(..) | Token::RParen)
}

/// Returns whether a value may begin with a token, so that `%` before it is an operator.
fn begins_value(token: &Token) -> bool {
    match token {
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::LParen | Token::Minus => true,
        Token::Word(_) => {
            !["offset", "fetch", "union", "except", "intersect", "for"].iter().any(|word| is_word(token, word))
        }
        _ => false,
    }
}

fn unsupported(what: &str, instead: &str) -> EngineError {
    EngineError::Unsupported { what: what.to_owned(), hint: instead.to_owned() }
}
