//! What an error without a hint of its own hints at: how the function or the operator around its place is written. It is looked
//! for in the query's tokens, so that it is there for errors of any kind.

use crate::bind_error::BindErrorCode;
use crate::error::SyntaxErrorCode;
use crate::functions;
use crate::lexer::{Token, TokenKind, lex};
use crate::query_error::{KqlError, KqlErrorCode};
use crate::span::Span;

/// Operators, each in a query that parses.
const OPERATORS: &[(&str, &str)] = &[
    ("as", "T | where a > 1 | as U"),
    ("assert-schema", "T | assert-schema (a:long, b:string)"),
    ("count", "T | where a > 1 | count"),
    ("distinct", "T | distinct a, b"),
    ("evaluate", "T | evaluate bag_unpack(d)"),
    ("extend", "T | extend c = a + 1"),
    ("facet", "T | facet by a, b"),
    ("filter", "T | where a > 1 and b == \"x\""),
    ("find", "find in (T, U) where a == 1"),
    ("fork", "T | fork (count) (take 5)"),
    ("getschema", "T | getschema"),
    ("graph-mark-components", "G | graph-mark-components"),
    ("graph-match", "G | graph-match (x)-[e]->(y) where x.a == 1 project x.a, y.a"),
    ("graph-shortest-paths", "G | graph-shortest-paths (x)-[e*1..5]->(y) where x.a == 1 project x.a, y.a"),
    ("graph-to-table", "G | graph-to-table nodes"),
    ("graph-where-edges", "G | graph-where-edges a > 1"),
    ("graph-where-nodes", "G | graph-where-nodes a > 1"),
    ("invoke", "T | invoke f(1)"),
    ("join", "T | join kind=inner (U) on k"),
    ("let", "let x = 1; T | where a > x"),
    ("limit", "T | take 10"),
    ("lookup", "T | lookup kind=leftouter (U) on k"),
    ("make-graph", "E | make-graph a --> b with N on id"),
    (
        "make-series",
        "T | make-series n = count() default=0 on t from datetime(2024-01-01) to datetime(2024-02-01) step 1d by k",
    ),
    ("mv-apply", "T | mv-apply x = d to typeof(long) on (summarize n = sum(x))"),
    ("mv-expand", "T | mv-expand x = d to typeof(long)"),
    ("order", "T | order by a desc, b asc"),
    ("parse", "T | parse s with \"id=\" id:long \" \" rest"),
    ("parse-kv", "T | parse-kv s as (a:long, b:string) with (pair_delimiter=\",\", kv_delimiter=\"=\")"),
    ("parse-where", "T | parse-where s with \"id=\" id:long \" \" rest"),
    ("partition", "T | partition by k (top 1 by a)"),
    ("print", "print a = 1, b = \"x\""),
    ("project", "T | project a, c = b + 1"),
    ("project-away", "T | project-away a, b*"),
    ("project-keep", "T | project-keep a, b*"),
    ("project-rename", "T | project-rename c = a"),
    ("project-reorder", "T | project-reorder b, a* asc"),
    ("range", "range x from 1 to 10 step 1"),
    ("reduce", "T | reduce by s"),
    ("render", "T | summarize count() by bin(t, 1h) | render timechart"),
    ("sample", "T | sample 10"),
    ("sample-distinct", "T | sample-distinct 10 of a"),
    ("scan", "T | sort by t asc | scan declare (n:long = 0) with (step s: true => n = s.n + 1;)"),
    ("search", "search in (T, U) \"word\""),
    ("serialize", "T | sort by t asc | serialize n = row_number()"),
    ("set", "set query_take_max_records = 10; T"),
    ("sort", "T | sort by a desc, b asc"),
    ("summarize", "T | summarize n = count(), avg(a) by k"),
    ("take", "T | take 10"),
    ("top", "T | top 10 by a desc"),
    ("top-hitters", "T | top-hitters 10 of k by a"),
    ("top-nested", "T | top-nested 3 of k by sum(a), top-nested 2 of b by count()"),
    ("union", "union T, U"),
    ("where", "T | where a > 1 and b == \"x\""),
];

/// Operators and statements that begin without a `|`.
const BEGINNINGS: &[&str] = &["find", "let", "print", "range", "search", "set", "union"];

/// Calls of what stands in no table of functions of one row.
const CALLS: &[(&str, &str)] = &[
    ("arg_max", "arg_max(a, *)"),
    ("arg_min", "arg_min(a, *)"),
    ("avg", "avg(a)"),
    ("avgif", "avgif(a, b > 1)"),
    ("column_ifexists", "column_ifexists(\"a\", \"\")"),
    ("count", "count()"),
    ("countif", "countif(a > 1)"),
    ("datatable", "datatable(a:long, b:string) [1, \"x\", 2, \"y\"]"),
    ("dcount", "dcount(a)"),
    ("dcountif", "dcountif(a, b > 1)"),
    ("externaldata", "externaldata(a:long, b:string) [\"https://host/file.csv\"] with (format=\"csv\")"),
    ("make_bag", "make_bag(d)"),
    ("make_list", "make_list(a, 100)"),
    ("make_list_if", "make_list_if(a, b > 1)"),
    ("make_set", "make_set(a, 100)"),
    ("make_set_if", "make_set_if(a, b > 1)"),
    ("max", "max(a)"),
    ("maxif", "maxif(a, b > 1)"),
    ("min", "min(a)"),
    ("minif", "minif(a, b > 1)"),
    ("next", "next(a, 1)"),
    ("percentile", "percentile(a, 95)"),
    ("percentiles", "percentiles(a, 5, 50, 95)"),
    ("prev", "prev(a, 1)"),
    ("row_cumsum", "row_cumsum(a, k != prev(k))"),
    ("row_number", "row_number()"),
    ("stdev", "stdev(a)"),
    ("sum", "sum(a)"),
    ("sumif", "sumif(a, b > 1)"),
    ("take_any", "take_any(a)"),
    ("toscalar", "toscalar(T | summarize max(a))"),
    ("variance", "variance(a)"),
];

const CONVERSIONS: &str =
    "convert one of them: tolong(a), todouble(a), tostring(a), tobool(a), todatetime(a), totimespan(a)";
const TABLES: &str = "SHOW TABLES in SQL lists the tables, and `.show tables` over Kusto's REST interface";
const DEFINITION: &str = "a function of the query's own stands before it: `let f = (x:long) { x + 1 };`";
const OPERATOR: &str = "behind `|` stands an operator, as in `T | where a > 1 | summarize n = count() by k`";
const CHARACTERS: &str =
    "a text stands in quotes, and a name with other characters than letters, digits and `_` in ['...']";
const NUMBERS: &str = "a long is at most 9223372036854775807; real(...) and decimal(...) hold greater numbers";
const ENDS: &str = "what begins with a quote or a bracket ends with it, in the same line";

/// Returns the error, and where it has no hint, with what its place hints at.
pub(crate) fn with_form(error: KqlError, text: &str, place: Span) -> KqlError {
    if error.hint.is_some() {
        return error;
    }
    let written = || form_at(text, place).map(|form| format!("it is written as in `{form}`"));
    let hint = match error.code {
        KqlErrorCode::Syntax(SyntaxErrorCode::UnexpectedCharacter) => Some(CHARACTERS.to_owned()),
        KqlErrorCode::Syntax(SyntaxErrorCode::Unterminated) => Some(ENDS.to_owned()),
        KqlErrorCode::Syntax(SyntaxErrorCode::NumberOutOfRange) => Some(NUMBERS.to_owned()),
        KqlErrorCode::Syntax(SyntaxErrorCode::UnknownOperator) => Some(OPERATOR.to_owned()),
        // A host's message may name the table that was perhaps meant.
        KqlErrorCode::Bind(BindErrorCode::UnknownTable) if error.message.contains("did you mean") => None,
        KqlErrorCode::Bind(BindErrorCode::UnknownTable) => Some(TABLES.to_owned()),
        KqlErrorCode::Bind(BindErrorCode::UnknownFunction) => Some(DEFINITION.to_owned()),
        KqlErrorCode::Bind(BindErrorCode::TypeMismatch) => {
            let call = call_at(text, place).map(|form| format!("it is written as in `{form}`"));
            call.or_else(|| Some(CONVERSIONS.to_owned()))
        }
        KqlErrorCode::Bind(BindErrorCode::TooLarge | BindErrorCode::NotSupported) => None,
        KqlErrorCode::Syntax(_) | KqlErrorCode::Bind(BindErrorCode::Invalid | BindErrorCode::UnknownColumn) => {
            written()
        }
    };
    KqlError { hint, ..error }
}

/// What stands around a place: an opened parenthesis, with the function before it, and the operator within it.
#[derive(Default)]
struct Surroundings<'t> {
    call: Option<&'t str>,
    operator: Option<&'t str>,
}

/// Returns how the call is written that a span is.
fn call_at(text: &str, span: Span) -> Option<String> {
    let (tokens, _) = lex(span.slice(text));
    let (Some(name), Some(opening)) = (tokens.first(), tokens.get(1)) else { return None };
    if name.kind != TokenKind::Word || opening.kind != TokenKind::OpenParen {
        return None;
    }
    let mut open = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::OpenParen => open += 1,
            TokenKind::CloseParen => open = open.saturating_sub(1),
            _ => continue,
        }
        // What goes on behind its end is no call, but has one on its left.
        if open == 0 && tokens.get(index + 1).is_none_or(|next| next.kind == TokenKind::End) {
            return call_form(name.span.slice(span.slice(text)));
        }
        if open == 0 {
            return None;
        }
    }
    None
}

/// Returns how the innermost call or operator around a place is written, where it is known.
fn form_at(text: &str, place: Span) -> Option<String> {
    if let Some(form) = call_at(text, place) {
        return Some(form);
    }
    let (tokens, _) = lex(text);
    let word = |token: Option<&Token>| match token {
        Some(token) if token.kind == TokenKind::Word => Some(token.span.slice(text)),
        _ => None,
    };
    let mut around = vec![Surroundings::default()];
    for (index, token) in tokens.iter().enumerate() {
        let is_before =
            token.span.start < place.start || (token.span.start == place.start && token.kind == TokenKind::Word);
        if !is_before || token.kind == TokenKind::End {
            break;
        }
        let before = index.checked_sub(1).and_then(|before| tokens.get(before));
        match token.kind {
            TokenKind::OpenParen => around.push(Surroundings { call: word(before), operator: None }),
            TokenKind::OpenBracket | TokenKind::OpenBrace => around.push(Surroundings::default()),
            TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace if around.len() > 1 => {
                around.pop();
            }
            TokenKind::Pipe | TokenKind::Semicolon => {
                if let Some(innermost) = around.last_mut() {
                    innermost.operator = if token.kind == TokenKind::Pipe { word(tokens.get(index + 1)) } else { None };
                }
            }
            TokenKind::Word => {
                let begins = before.is_none_or(|before| {
                    matches!(before.kind, TokenKind::Semicolon | TokenKind::OpenParen | TokenKind::OpenBrace)
                });
                let name = token.span.slice(text);
                if begins
                    && BEGINNINGS.contains(&name)
                    && let Some(innermost) = around.last_mut()
                {
                    innermost.operator = Some(name);
                }
            }
            _ => {}
        }
    }
    for Surroundings { call, operator } in around.into_iter().rev() {
        if let Some(operator) = operator {
            let known = OPERATORS.iter().find(|(name, _)| *name == operator);
            return known.map(|(_, form)| (*form).to_owned());
        }
        if let Some(form) = call.and_then(call_form) {
            return Some(form);
        }
    }
    None
}

/// Returns how a function is called: as in an example, or by the types of its arguments.
fn call_form(name: &str) -> Option<String> {
    if let Some((_, form)) = CALLS.iter().find(|(known, _)| *known == name) {
        return Some((*form).to_owned());
    }
    functions::call_form(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_parses() {
        for (name, form) in OPERATORS {
            assert_eq!(crate::parse(form).errors, [], "{name}");
        }
        for (name, form) in CALLS {
            let query = match *name {
                "datatable" | "externaldata" => (*form).to_owned(),
                _ => format!("T | summarize {form}"),
            };
            assert_eq!(crate::parse(&query).errors, [], "{name}");
        }
    }

    /// Returns the form at the first `~` of a text, which is left out.
    fn form(marked: &str) -> Option<String> {
        let at = marked.find('~').unwrap();
        let text = marked.replacen('~', "", 1);
        form_at(&text, Span::new(at, at + 1))
    }

    #[test]
    fn the_innermost_call_or_operator_is_named() {
        assert_eq!(form("T | take ~| count").as_deref(), Some("T | take 10"));
        assert_eq!(form("T | where a == ~| take 5").as_deref(), Some("T | where a > 1 and b == \"x\""));
        assert_eq!(form("T | summarize n = countif(~) by k").as_deref(), Some("countif(a > 1)"));
        assert_eq!(
            form("T | summarize n = countif(a > 1) ~k").as_deref(),
            Some("T | summarize n = count(), avg(a) by k")
        );
        assert_eq!(form("T | join (U | take ~x) on k").as_deref(), Some("T | take 10"));
        assert_eq!(form("T | extend b = iff(a > 1, ~)").as_deref(), Some("iff(bool, value, value)"));
        assert_eq!(form("range x from 1 ~step 1").as_deref(), Some("range x from 1 to 10 step 1"));
        assert_eq!(form("T | nothing ~a"), None);
        assert_eq!(form("~T"), None);
    }

    #[test]
    fn a_call_is_what_a_span_is_as_a_whole() {
        let text = "T | where countif(a) < sum(b)";
        assert_eq!(call_at(text, Span::new(10, 20)).as_deref(), Some("countif(a > 1)"));
        assert_eq!(call_at(text, Span::new(10, text.len())), None);
        assert_eq!(call_at(text, Span::new(4, 9)), None);
    }
}
