//! Oracle's `MAX(x) KEEP (DENSE_RANK LAST ORDER BY y)`, which no parser here reads: the value of the row with the
//! greatest key, and of several such rows the greatest value.

use super::parse::MAX_TEXT_BYTES;

/// What stands between the call and the order.
const KEEP: &str = "KEEP";
/// Clauses of one query at most.
const MOST: usize = 20;

/// Returns a query with `arg_max` and `arg_min` in the place of each clause; `None` where it has none that is
/// understood.
pub(super) fn without_keep(sql: &str) -> Option<String> {
    let mut text = sql.to_owned();
    for _ in 0..MOST {
        // The argument is written twice: clauses within clauses would grow without end.
        let Some(next) = without_first(&text).filter(|next| next.len() <= MAX_TEXT_BYTES) else { break };
        text = next;
    }
    (text != sql).then_some(text)
}

fn without_first(sql: &str) -> Option<String> {
    let upper = sql.to_ascii_uppercase();
    let at = upper.match_indices(KEEP).map(|(at, _)| at).find(|at| {
        let before = upper.get(..*at).unwrap_or_default().trim_end();
        let behind = upper.get(at + KEEP.len()..).unwrap_or_default().trim_start();
        before.ends_with(')') && behind.starts_with('(')
    })?;
    // The call before it.
    let call_end = sql.get(..at)?.trim_end().len();
    let open = matching_open(sql.get(..call_end)?)?;
    let argument = sql.get(open + 1..call_end.checked_sub(1)?)?.trim();
    let head = sql.get(..open)?.trim_end();
    let name_start = head.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let is_max = match head.get(name_start..)?.to_ascii_lowercase().as_str() {
        "max" => true,
        "min" => false,
        _ => return None,
    };
    // The order behind it.
    let clause_start = at + KEEP.len() + sql.get(at + KEEP.len()..)?.find('(')?;
    let clause_end = clause_start + matching_close(sql.get(clause_start..)?)?;
    let inside = sql.get(clause_start + 1..clause_end)?.trim();
    let words: Vec<&str> = inside.split_whitespace().collect();
    let [rank, side, order, by, key @ ..] = words.as_slice() else { return None };
    let is_last = side.eq_ignore_ascii_case("LAST");
    let is_understood = rank.eq_ignore_ascii_case("DENSE_RANK")
        && (is_last || side.eq_ignore_ascii_case("FIRST"))
        && order.eq_ignore_ascii_case("ORDER")
        && by.eq_ignore_ascii_case("BY");
    let (key, is_descending) = match key {
        [key @ .., word] if word.eq_ignore_ascii_case("DESC") => (key, true),
        [key @ .., word] if word.eq_ignore_ascii_case("ASC") => (key, false),
        key => (key, false),
    };
    let key = key.join(" ");
    // Several keys, and nulls that are told where to go, are left.
    if !is_understood || key.is_empty() || key.contains(',') || key.to_ascii_uppercase().contains("NULLS") {
        return None;
    }
    let is_greatest = is_last != is_descending;
    let function = if is_greatest { "arg_max" } else { "arg_min" };
    // Of rows with the same key the greatest value, or the least; the other one of them cannot be said so.
    let by = if is_greatest == is_max { format!("row({key}, {argument})") } else { key };
    Some(format!("{}{function}({argument}, {by}){}", head.get(..name_start)?, sql.get(clause_end + 1..)?))
}

/// Returns where the parenthesis opens that a text ends with.
fn matching_open(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 1 => return Some(at),
            '(' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Returns where the parenthesis closes that a text begins with.
fn matching_close(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_row_is_that_of_the_greatest_key() {
        for (sql, expected) in [
            (
                "SELECT a, MAX(b) KEEP (DENSE_RANK LAST ORDER BY c) AS x FROM t GROUP BY a",
                "SELECT a, arg_max(b, row(c, b)) AS x FROM t GROUP BY a",
            ),
            (
                "SELECT max(f(b)) keep (dense_rank first order by c desc) FROM t",
                "SELECT arg_max(f(b), row(c, f(b))) FROM t",
            ),
            ("SELECT MIN(b) KEEP (DENSE_RANK FIRST ORDER BY c) FROM t", "SELECT arg_min(b, row(c, b)) FROM t"),
        ] {
            assert_eq!(without_keep(sql).as_deref(), Some(expected));
        }
        for sql in ["SELECT keep FROM t", "SELECT SUM(b) KEEP (DENSE_RANK LAST ORDER BY c) FROM t", "SELECT f(x) KEEP"]
        {
            assert_eq!(without_keep(sql), None, "{sql}");
        }
    }
}
