//! `funnel_sequence_completion`: how many ids came how far in a sequence of states, within periods of different
//! lengths; `funnel_sequence`: how many took a sequence, and which states were before and after it. Both are templates
//! over the ids (`__id`), the timeline (`__ts`) and the states (`__state`) of their input.

use std::fmt::Write as _;

use datafusion::logical_expr::lit;

use crate::ast::{FunctionCall, NamedExpr};
use crate::bind::{Binder, Environment, ExpressionScope, Result, Typed, constant_of, invalid, text_of};
use crate::plan::template::TemplateNames;
use crate::plan::{Column, Relation};
use crate::types::KqlType;
use crate::values;

/// The most states of a sequence: each is a join.
const MAX_STATES: usize = 20;
/// The most ids that a row of `funnel_sequence` names.
const MAX_SAMPLES: usize = 128;
/// The states beside the sequence that each table of `funnel_sequence` has.
const NEIGHBOURS: [&[&str]; 3] = [&["prev", "next"], &["prev"], &["next"]];

impl<'a> Binder<'a> {
    /// `funnel_sequence_completion(id, timeline, start, end, bin, state, sequence, periods)`.
    pub(super) fn funnel_completion(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let span = call.function.span;
        let [id, ts, start, end, bin, state, sequence, periods] = call.arguments.as_slice() else {
            let takes = "`funnel_sequence_completion` takes columns of ids and of times, a start, an end, the size of a bin, \
                         a column of states, a sequence of them and periods";
            return invalid(span, takes);
        };
        let [id, ts, state] = self.funnel_columns(&input, [id, ts, state])?;
        let rows = self.funnel_rows(input, [&id, &ts, &state])?;
        let states = self.states(sequence, environment)?;
        let constants =
            [("__start", start), ("__end", end), ("__bin", bin), ("__sequence", sequence), ("__periods", periods)];
        let names = self.with_constants(TemplateNames::default().table("__T", rows), &constants, environment)?;
        let period_type = if ts.kql_type == KqlType::DateTime { KqlType::TimeSpan } else { ts.kql_type };
        let made = self.templated(template(&states, period_type), names, span)?;
        let labels = [("__at", &ts.name), ("__state", &state.name)];
        let labels = labels.into_iter().map(|(from, to)| (from.to_owned(), to.clone()));
        let counted = [("__period", "Period"), ("__ids", "dcount")];
        let counted = counted.into_iter().map(|(from, to)| (from.to_owned(), to.to_owned()));
        self.relabelled(made, &labels.chain(counted).collect::<Vec<_>>(), span)
    }

    /// `funnel_sequence(id, timeline, start, end, window, step, state, sequence)`: three tables, of the states before
    /// and after the sequence, of those before it, and of those after it.
    pub(crate) fn funnel_sequence(
        &mut self,
        input: &Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Vec<Relation>> {
        let span = call.function.span;
        let [id, ts, start, end, window, step, state, sequence] = call.arguments.as_slice() else {
            let takes = "`funnel_sequence` takes columns of ids and of times, a start, an end, the longest time between two \
                         steps, the size of a bin, a column of states and a sequence of them";
            return invalid(span, takes);
        };
        let [id, ts, state] = self.funnel_columns(input, [id, ts, state])?;
        let states = self.states(sequence, environment)?;
        let constants =
            [("__start", start), ("__end", end), ("__window", window), ("__bin", step), ("__sequence", sequence)];
        let mut tables = Vec::with_capacity(NEIGHBOURS.len());
        for neighbours in NEIGHBOURS {
            let rows = self.funnel_rows(input.clone(), [&id, &ts, &state])?;
            let names = self.with_constants(TemplateNames::default().table("__T", rows), &constants, environment)?;
            let made = self.templated(neighbour_template(&states, neighbours), names, span)?;
            let mut labels = vec![("__at".to_owned(), ts.name.clone())];
            labels.extend(neighbours.iter().map(|name| (format!("__{name}"), (*name).to_owned())));
            labels.extend([("__ids".to_owned(), "dcount".to_owned()), ("__samples".to_owned(), "samples".to_owned())]);
            tables.push(self.relabelled(made, &labels, span)?);
        }
        Ok(tables)
    }

    fn funnel_columns(&self, input: &Relation, arguments: [&NamedExpr; 3]) -> Result<[Column; 3]> {
        let [id, ts, state] = arguments;
        Ok([self.column_of(input, id)?, self.column_of(input, ts)?, self.column_of(input, state)?])
    }

    fn funnel_rows(&mut self, input: Relation, [id, ts, state]: [&Column; 3]) -> Result<Relation> {
        let outputs = [("__id", id), ("__ts", ts), ("__state", state)];
        let outputs = outputs.into_iter().map(|(name, column)| (name.to_owned(), column.typed())).collect();
        self.projected(input, outputs)
    }

    fn states(&mut self, sequence: &'a NamedExpr, environment: &Environment<'a>) -> Result<Vec<serde_json::Value>> {
        let states = self.constant_array(sequence, environment)?;
        if states.is_empty() || states.len() > MAX_STATES {
            return invalid(sequence.span, format!("a sequence has 1 to {MAX_STATES} states"));
        }
        Ok(states)
    }

    fn with_constants(
        &mut self,
        mut names: TemplateNames<'a>,
        constants: &[(&'static str, &'a NamedExpr)],
        environment: &Environment<'a>,
    ) -> Result<TemplateNames<'a>> {
        for &(name, argument) in constants {
            let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
            let Some(value) = constant_of(&typed.expr)? else {
                return invalid(argument.span, "this must be a constant");
            };
            names = names.value(name, Typed::new(lit(value), typed.kql_type));
        }
        Ok(names)
    }

    fn constant_array(
        &mut self,
        argument: &'a NamedExpr,
        environment: &Environment<'a>,
    ) -> Result<Vec<serde_json::Value>> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        let constant = constant_of(&typed.expr)?;
        match text_of(constant.as_ref()).map(values::parse_json) {
            Some(serde_json::Value::Array(values)) if typed.kql_type == KqlType::Dynamic => Ok(values),
            _ => invalid(argument.span, "expected a constant dynamic array"),
        }
    }
}

/// For each time at which an id begins the sequence the earliest time at which it comes to each state; of two states that
/// differ, one may follow the other at the same time.
fn template(states: &[serde_json::Value], period_type: KqlType) -> String {
    let mut text = String::from(
        "let __E = materialize(__T | where __ts between (__start .. __end) | extend __at = bin_at(__ts, __bin, __start), \
         __name = tostring(__state)); \
         let __S0 = __E | where __name == tostring(__sequence[0]) | distinct __id, __at, __from = __ts | extend __to = __from; ",
    );
    let mut all = String::from("(__S0 | extend __step = 0)");
    for (step, pair) in states.windows(2).enumerate() {
        let (before, step) = (step, step + 1);
        let later = if pair[0] == pair[1] { ">" } else { ">=" };
        let _ = write!(
            text,
            "let __S{step} = __S{before} | join kind=inner (__E | where __name == tostring(__sequence[{step}]) \
             | project __id, __at, __ts) on __id, __at | where __ts {later} __to \
             | summarize __to = min(__ts) by __id, __at, __from; "
        );
        let _ = write!(all, ", (__S{step} | extend __step = {step})");
    }
    let _ = write!(
        text,
        "union {all} | extend __one = 1 | join kind=inner (print __one = 1, __period = __periods \
         | mv-expand __period to typeof({})) on __one \
         | summarize __ids = dcountif(__id, __to - __from <= __period) by __at, __step, __period \
         | sort by __at asc, __period asc, __step asc | extend __state = tostring(__sequence[__step])",
        period_type.name()
    );
    text
}

/// For each time at which an id begins the sequence the earliest time at which it is through; and of its rows before
/// and after that, within the window, the nearest with another state than the sequence's own there.
fn neighbour_template(states: &[serde_json::Value], neighbours: &[&str]) -> String {
    let mut text = String::from(
        "let __E = materialize(__T | where __ts between (__start .. __end) | extend __at = bin_at(__ts, __bin, __start), \
         __name = tostring(__state)); \
         let __S0 = __E | where __name == tostring(__sequence[0]) | distinct __id, __at, __from = __ts | extend __to = __from; ",
    );
    for (step, pair) in states.windows(2).enumerate() {
        let (before, step) = (step, step + 1);
        let later = if pair[0] == pair[1] { ">" } else { ">=" };
        let _ = write!(
            text,
            "let __S{step} = __S{before} | join kind=inner (__E | where __name == tostring(__sequence[{step}]) \
             | project __id, __at, __ts) on __id, __at | where __ts {later} __to and __ts - __to <= __window \
             | summarize __to = min(__ts) by __id, __at, __from; "
        );
    }
    let last = states.len().saturating_sub(1);
    let _ = write!(text, "__S{last}");
    for neighbour in neighbours {
        let (own, is_beside, nearest) = match *neighbour {
            "prev" => (0, "__ts <= __from and __from - __ts <= __window", "arg_max"),
            _ => (last, "__ts >= __to and __ts - __to <= __window", "arg_min"),
        };
        let _ = write!(
            text,
            " | join kind=leftouter (__S{last} | join kind=inner (__E | where __name != tostring(__sequence[{own}]) \
             | project __id, __at, __ts, __name) on __id, __at | where {is_beside} \
             | summarize {nearest}(__ts, __name) by __id, __at, __from | project __id, __at, __from, __{neighbour} = __name) \
             on __id, __at, __from | project-away __id1, __at1, __from1"
        );
    }
    let keys: String = neighbours.iter().map(|neighbour| format!(", __{neighbour}")).collect();
    let _ = write!(
        text,
        " | summarize __ids = dcount(__id), __samples = make_set(__id, {MAX_SAMPLES}) by __at{keys} | sort by __at asc, __ids desc"
    );
    text
}
