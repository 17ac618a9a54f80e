//! `ipv4_lookup` and `ipv6_lookup`: rows joined with the rows of a table of networks that contain their addresses. The
//! networks have few prefix lengths, so an address is cut to each of them and joined by equality.

use datafusion::scalar::ScalarValue;

use crate::ast::{ExprKind, FunctionCall, NamedExpr};
use crate::bind::{Binder, Environment, ExpressionScope, Result, Typed, constant_of, given_name, invalid, unique_name};
use crate::plan::template::TemplateNames;
use crate::plan::{Column, Relation};
use crate::types::KqlType;

/// The functions of the template: the prefix length of an address or network `__k`, its value, and its first `__bits`
/// bits.
struct Family {
    bits: &'static str,
    network: &'static str,
    cut: &'static str,
}

const IPV4: Family =
    Family { bits: "ipv4_netmask_suffix(__k)", network: "parse_ipv4(__k)", cut: "parse_ipv4_mask(__k, toint(__bits))" };
const IPV6: Family = Family {
    bits: "iff(isempty(parse_ipv6(__k)), long(null), \
           iff(__k contains '/', tolong(split(__k, '/')[1]) + iff(__k contains '.', 96, 0), 128))",
    network: "parse_ipv6_mask(__k, 128)",
    cut: "parse_ipv6_mask(__k, toint(__bits))",
};

const MATCHED: &str = "let __N = materialize(__L | extend __bits = {bits}, __net = {network} | where isnotnull(__bits) | project-away __k); \
    let __R = __S | extend __one = 1 \
    | join kind=inner (__N | distinct __bits | extend __one = 1) on __one \
    | where {bits} >= __bits | extend __net = {cut} \
    | join kind=inner (__N) on __bits, __net{keys}; ";
const ONLY_MATCHED: &str = "let __S = __T; {matched}__R";
const WITH_UNMATCHED: &str = "let __S = materialize(__T | serialize __row = row_number()); {matched}\
    let __M = materialize(__R); union (__M), (__S | join kind=leftanti (__M | distinct __row) on __row)";

/// The plugins of this file.
pub(super) fn is_one(name: &str) -> bool {
    matches!(name, "ipv4_lookup" | "ipv6_lookup")
}

impl<'a> Binder<'a> {
    pub(super) fn network_lookup(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let span = call.function.span;
        let is_ipv4 = call.function.text == "ipv4_lookup";
        let [table, key, network, rest @ ..] = call.arguments.as_slice() else {
            return invalid(span, "this plugin takes a table of networks, a column of addresses and one of networks");
        };
        let (extra, keeps_unmatched) = match rest {
            [extra @ .., last] if is_flag(last) => (extra, self.flag(last, environment)?),
            all => (all, false),
        };
        let networks = self.table(&table.expr, environment)?;
        let key = self.column_of(&input, key)?;
        let network = self.column_of(&networks, network)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for argument in extra {
            ours.push(self.column_of(&input, argument)?);
            theirs.push(self.column_of(&networks, argument)?);
        }
        let left = self.looked_up(&input, "__t", &key, &ours, call)?;
        let right = self.looked_up(&networks, "__l", &network, &theirs, call)?;

        let family = if is_ipv4 { &IPV4 } else { &IPV6 };
        let keys: String = (0..ours.len()).map(|index| format!(", __x{index}")).collect();
        let text = if keeps_unmatched { WITH_UNMATCHED } else { ONLY_MATCHED }.replace("{matched}", MATCHED);
        let text = text.replace("{bits}", family.bits).replace("{network}", family.network);
        let text = text.replace("{cut}", family.cut).replace("{keys}", &keys);
        let made = self.templated(text, TemplateNames::default().table("__T", left).table("__L", right), span)?;

        let own: Vec<(String, String)> = labels("__t", &input, &[]);
        let mut found: Vec<(String, String)> = labels("__l", &networks, &theirs);
        let mut taken: Vec<String> = own.iter().map(|(_, name)| name.clone()).collect();
        for (_, name) in &mut found {
            *name = unique_name(name, |name| taken.iter().any(|known| known == name));
            taken.push(name.clone());
        }
        // Kusto puts the networks' columns first where it returns only matches of IPv6 addresses.
        let all = match is_ipv4 || keeps_unmatched {
            true => [own, found].concat(),
            false => [found, own].concat(),
        };
        self.relabelled(made, &all, span)
    }

    /// Returns the columns under names made of their index, the key as `__k`, further keys as `__x0`, ...
    fn looked_up(
        &mut self,
        table: &Relation,
        prefix: &str,
        key: &Column,
        extra: &[Column],
        call: &'a FunctionCall,
    ) -> Result<Relation> {
        let span = call.function.span;
        let mut outputs: Vec<(String, Typed)> = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            outputs.push((format!("{prefix}{index}"), column.typed()));
        }
        outputs.push(("__k".to_owned(), self.convert(key.typed(), KqlType::String, span)?));
        for (index, column) in extra.iter().enumerate() {
            outputs.push((format!("__x{index}"), column.typed()));
        }
        self.projected(table.clone(), outputs)
    }

    fn flag(&mut self, argument: &'a NamedExpr, environment: &Environment<'a>) -> Result<bool> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        match constant_of(&typed.expr)? {
            Some(ScalarValue::Boolean(Some(value))) => Ok(value),
            _ => invalid(argument.span, "expected true or false"),
        }
    }
}

fn is_flag(argument: &NamedExpr) -> bool {
    given_name(&argument.names) == Some("return_unmatched") || !matches!(argument.expr.kind, ExprKind::Name(_))
}

pub(super) fn labels(prefix: &str, table: &Relation, without: &[Column]) -> Vec<(String, String)> {
    let columns = table.columns.iter().enumerate();
    let columns = columns.filter(|(_, column)| !without.iter().any(|other| other.field == column.field));
    columns.map(|(index, column)| (format!("{prefix}{index}"), column.name.clone())).collect()
}
