//! The forms of `TABLESAMPLE` and `USING SAMPLE` as one.

use datafusion::sql::sqlparser::tokenizer::{Span, Token};

use super::brackets::{Item, call, joined, parenthesized, token, word};
use super::wrong;
use crate::error::Result;
use crate::sql::marks;

/// Gives the samples of a level one form.
pub(super) fn samples(mut items: Vec<Item>) -> Result<Vec<Item>> {
    let mut done = Vec::with_capacity(items.len());
    let mut index = 0;
    while index < items.len() {
        let follows = |word: &str| items.get(index + 1).is_some_and(|next| next.is(word));
        if items[index].is("tablesample") && index > 0 {
            let (sample, used) = SampleClause::read(&items[index + 1..])?;
            done.extend(sample.clause(items[index].span()));
            index += 1 + used;
        } else if items[index].is("using") && follows("sample") {
            let (sample, used) = SampleClause::read(&items[index + 2..])?;
            done = sample.around_from(done, items[index].span())?;
            index += 2 + used;
        } else {
            let read = token(Token::EOF, Span::empty());
            done.push(std::mem::replace(&mut items[index], read));
            index += 1;
        }
    }
    Ok(done)
}

struct SampleClause {
    amount: Item,
    unit: &'static str,
    seed: Option<Item>,
}

impl SampleClause {
    const USAGE: &'static str = "a sample is written `10 PERCENT`, `10%`, `10 ROWS`, `BERNOULLI (10)` or `RESERVOIR (10 ROWS)`, \
                                 and may end with REPEATABLE (seed)";

    /// Reads what follows `TABLESAMPLE` or `USING SAMPLE`, and returns how many items it has.
    fn read(items: &[Item]) -> Result<(Self, usize)> {
        const METHODS: [&str; 3] = ["bernoulli", "system", "reservoir"];
        let method = items.first().and_then(Item::word).map(str::to_lowercase);
        if let Some(method) = &method
            && !METHODS.contains(&method.as_str())
        {
            return Err(wrong(Self::USAGE));
        }
        let mut used = usize::from(method.is_some());
        let inner = items.get(used).and_then(Item::parentheses);
        let amount_at = if let Some(group) = inner {
            used += 1;
            &group.items[..]
        } else {
            &items[used..]
        };
        let Some(amount) = amount_at
            .first()
            .filter(|item| matches!(item, Item::Token(token) if matches!(token.token, Token::Number(..))))
        else {
            return Err(wrong(Self::USAGE));
        };
        let unit_at = amount_at.get(1);
        let (unit, has_unit) = match unit_at {
            Some(unit) if unit.is_token(&Token::Mod) || unit.is("percent") => ("PERCENT", true),
            Some(unit) if unit.is("rows") => ("ROWS", true),
            // As in PostgreSQL and the standard.
            _ if matches!(method.as_deref(), Some("bernoulli" | "system")) => ("PERCENT", false),
            _ => ("ROWS", false),
        };
        let mut seed = None;
        if inner.is_none() {
            used += 1 + usize::from(has_unit);
            // `10% (bernoulli, 42)`
            if let Some(group) = items.get(used).and_then(Item::parentheses) {
                used += 1;
                seed = group.items.get(2).cloned();
            }
        }
        if items.get(used).is_some_and(|item| item.is_any(&["repeatable", "seed"])) {
            let Some(group) = items.get(used + 1).and_then(Item::parentheses) else { return Err(wrong(Self::USAGE)) };
            seed = group.items.first().cloned();
            used += 2;
        }
        Ok((Self { amount: amount.clone(), unit, seed }, used))
    }

    fn clause(self, span: Span) -> Vec<Item> {
        let amount = parenthesized(vec![self.amount, word(self.unit, span)], span);
        let seed = self.seed.map(|seed| vec![word("REPEATABLE", span), parenthesized(vec![seed], span)]);
        joined([vec![word("TABLESAMPLE", span), amount], seed.unwrap_or_default()])
    }

    /// Puts the sample around the last FROM clause: it is drawn from what FROM makes, before WHERE. Errors: `sql_plan_error` where it
    /// has one already.
    fn around_from(self, mut items: Vec<Item>, span: Span) -> Result<Vec<Item>> {
        const AFTER: [&str; 5] = ["where", "group", "having", "window", "qualify"];
        let Some(from) = items.iter().rposition(|item| item.is("from")) else { return Err(wrong(Self::USAGE)) };
        let mut relations = items.split_off(from + 1);
        let end = relations.iter().position(|item| item.is_any(&AFTER)).unwrap_or(relations.len());
        let after = relations.split_off(end);
        let has_sample = matches!(
            relations.as_slice(),
            [name, arguments] if name.is(marks::SAMPLE) && arguments.parentheses().is_some()
        );
        if has_sample {
            return Err(wrong("a query has one sample; draw another from a query in brackets"));
        }
        let query = joined([vec![word("SELECT", span), token(Token::Mul, span), word("FROM", span)], relations]);
        let unit = vec![token(Token::SingleQuotedString(self.unit.to_lowercase()), span)];
        let mut arguments = vec![vec![parenthesized(query, span)], vec![self.amount], unit];
        arguments.extend(self.seed.map(|seed| vec![seed]));
        items.extend(call(marks::SAMPLE, arguments, span));
        items.extend(after);
        Ok(items)
    }
}
