//! `funnel_sequence_completion`: how many ids came how far in a sequence of states, within periods of different lengths. It
//! is a template over the ids (`__id`), the timeline (`__ts`) and the states (`__state`) of its input.

use std::fmt::Write as _;

use datafusion::logical_expr::lit;

use crate::ast::{FunctionCall, NamedExpr};
use crate::bind::{Binder, Environment, ExpressionScope, Result, Typed, constant_of, invalid, text_of};
use crate::plan::Relation;
use crate::plan::template::TemplateNames;
use crate::types::KqlType;
use crate::values;

/// The most states of a sequence: each is a join.
const MAX_STATES: usize = 20;

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
        let (id, ts, state) =
            (self.column_of(&input, id)?, self.column_of(&input, ts)?, self.column_of(&input, state)?);
        let outputs = [("__id", &id), ("__ts", &ts), ("__state", &state)];
        let outputs = outputs.into_iter().map(|(name, column)| (name.to_owned(), column.typed())).collect();
        let rows = self.projected(input, outputs)?;
        let states = self.constant_array(sequence, environment)?;
        if states.is_empty() || states.len() > MAX_STATES {
            return invalid(sequence.span, format!("a sequence has 1 to {MAX_STATES} states"));
        }
        let mut names = TemplateNames::default().table("__T", rows);
        let constants =
            [("__start", start), ("__end", end), ("__bin", bin), ("__sequence", sequence), ("__periods", periods)];
        for (name, argument) in constants {
            let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
            let Some(value) = constant_of(&typed.expr)? else {
                return invalid(argument.span, "this must be a constant");
            };
            names = names.value(name, Typed::new(lit(value), typed.kql_type));
        }
        let period_type = if ts.kql_type == KqlType::DateTime { KqlType::TimeSpan } else { ts.kql_type };
        let made = self.templated(template(&states, period_type), names, span)?;
        let labels = [("__at", &ts.name), ("__state", &state.name)];
        let labels = labels.into_iter().map(|(from, to)| (from.to_owned(), to.clone()));
        let counted = [("__period", "Period"), ("__ids", "dcount")];
        let counted = counted.into_iter().map(|(from, to)| (from.to_owned(), to.to_owned()));
        self.relabelled(made, &labels.chain(counted).collect::<Vec<_>>(), span)
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
