//! Forms of TRIM that the parser does not know: `trim(BOTH FROM text)` trims spaces, and in `trim(BOTH FROM text, 'xyz')` the
//! characters are behind the text, as PostgreSQL has it.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::brackets::{Item, token};

/// Rewrites what is in the brackets of `function`.
pub(super) fn trimmed(mut items: Vec<Item>, function: Option<&str>) -> Vec<Item> {
    let is_side = |item: &Item| item.is_any(&["both", "leading", "trailing"]);
    if function != Some("trim") || items.len() < 3 || !is_side(&items[0]) || !items[1].is("from") {
        return items;
    }
    let span = items[0].span();
    let characters = match items.iter().position(|item| item.is_token(&Token::Comma)) {
        Some(comma) => {
            let characters = items.split_off(comma + 1);
            items.truncate(comma);
            characters
        }
        None => vec![token(Token::SingleQuotedString(" ".to_owned()), span)],
    };
    items.splice(1..1, characters);
    items
}
