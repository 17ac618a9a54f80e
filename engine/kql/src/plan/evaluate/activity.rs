//! Plugins that count active users: sessions, distinct users in windows, returning and lost users. Each is a template
//! over the ids (`__id`), the timeline (`__ts`) and the dimensions (`__d0`, ...) of its input.

use crate::ast::{ExprKind, FunctionCall, NamedExpr};
use crate::bind::{Binder, Environment, ExpressionScope, Result, Typed, constant_of, invalid, not_supported};
use crate::plan::template::TemplateNames;
use crate::plan::{Column, Relation};
use crate::types::KqlType;

/// A plugin: its constants in their order, and its template. In it, `{, dims}` stands for the dimensions after a
/// column, `{dims changed}` for whether one differs from the row before, `{type}` for the timeline's type.
struct Plugin {
    name: &'static str,
    constants: &'static [&'static str],
    /// Whether the first two constants, the bounds of the time, may be left out.
    bounds_optional: bool,
    text: &'static str,
    /// The columns after the time and the dimensions: in the template, and in the result.
    results: &'static [(&'static str, &'static str)],
}

const PLUGINS: &[Plugin] = &[
    Plugin {
        name: "session_count",
        constants: &["__start", "__end", "__bin", "__lookback"],
        bounds_optional: false,
        text: "__T | where __ts between ((__start - __lookback) .. __end) \
               | sort by __id asc{, dims}, __ts asc \
               | extend __is_new = isnull(prev(__ts)) or prev(__id) != __id{dims changed} or __ts - prev(__ts) >= __lookback \
               | where __is_new and __ts >= __start \
               | summarize __sessions = count() by __ts = bin(__ts, __bin){, dims}",
        results: &[("__sessions", "count_sessions")],
    },
    Plugin {
        name: "sliding_window_counts",
        constants: &["__start", "__end", "__lookback", "__bin"],
        bounds_optional: false,
        text: "__T | where __ts between ((__start - __lookback) .. __end) \
               | summarize __rows = count() by __id, __from = bin_at(__ts, __bin, __start){, dims} \
               | extend __to = __from + __lookback - __bin \
               | extend __to = iff(__to < __from, __from, __to) \
               | extend __from = max_of(__from, __start), __to = min_of(__to, __end) \
               | mv-expand __at = range(__from, __to, __bin) to typeof({type}) \
               | where __at between (__start .. __end) \
               | summarize __rows = sum(__rows), __ids = dcount(__id) by __ts = __at{, dims}",
        results: &[("__rows", "Count"), ("__ids", "Dcount")],
    },
    Plugin {
        name: "activity_counts_metrics",
        constants: &["__start", "__end", "__bin"],
        bounds_optional: false,
        text: "let __E = materialize(__T | where __ts between (__start .. __end) \
               | summarize __rows = count() by __id, __ts = bin_at(__ts, __bin, __start){, dims}); \
               let __N = __E | summarize __ts = min(__ts) by __id{, dims} | summarize __new = count() by __ts{, dims}; \
               __E | summarize __rows = sum(__rows), __ids = dcount(__id) by __ts{, dims} \
               | join kind=leftouter (__N) on __ts{, dims} \
               | extend __new = coalesce(__new, 0) | extend __one = 1 \
               | sort by __one asc{, dims}, __ts asc \
               | extend __all = row_cumsum(__new, false{dims changed})",
        results: &[("__rows", "count"), ("__ids", "dcount"), ("__new", "new_dcount"), ("__all", "aggregated_dcount")],
    },
    Plugin {
        name: "active_users_count",
        constants: &["__start", "__end", "__lookback", "__period", "__least", "__bin"],
        bounds_optional: false,
        text: "let __E = materialize(__T | where __ts between ((__start - __lookback) .. __end) | distinct __id, __ts{, dims}); \
               __E | where __ts >= __start \
               | join kind=inner (__E | extend __past = __ts | project-away __ts) on __id{, dims} \
               | where __past <= __ts and __past > __ts - __lookback \
               | summarize __periods = dcount(bin_at(__past, __period, __start)) by __id, __ts{, dims} \
               | where __periods >= __least \
               | summarize __ids = dcount(__id) by __ts = bin_at(__ts, __bin, __start){, dims}",
        results: &[("__ids", "dcount")],
    },
    Plugin {
        name: "activity_engagement",
        constants: &["__start", "__end", "__inner", "__outer"],
        bounds_optional: true,
        text: "let __E = materialize(__T | where __ts between ((__start - __outer) .. __end) \
               | extend __ts = bin_at(__ts, __inner, __start) | distinct __id, __ts{, dims}); \
               let __W = __E | extend __to = __ts + __outer - __inner \
               | extend __to = iff(__to < __ts, __ts, __to) \
               | mv-expand __at = range(__ts, __to, __inner) to typeof({type}) \
               | summarize __wide = dcount(__id) by __ts = __at{, dims}; \
               __E | where __ts between (__start .. __end) | summarize __narrow = dcount(__id) by __ts{, dims} \
               | join kind=inner (__W) on __ts{, dims} \
               | extend __ratio = todouble(__narrow) / todouble(__wide)",
        results: &[
            ("__narrow", "dcount_activities_inner"),
            ("__wide", "dcount_activities_outer"),
            ("__ratio", "activity_ratio"),
        ],
    },
    Plugin {
        name: "activity_metrics",
        constants: &["__start", "__end", "__bin"],
        bounds_optional: true,
        text: "let __E = materialize(__T | where __ts between (__start .. __end) \
               | extend __ts = bin_at(__ts, __bin, __start) | distinct __id, __ts{, dims}); \
               let __P = __E | extend __ts = __ts + __bin, __was = 1; \
               __E | join kind=leftouter (__P) on __id, __ts{, dims} \
               | summarize __ids = count(), __kept = sum(__was) by __ts{, dims} \
               | join kind=leftouter (__P | summarize __before = count() by __ts{, dims}) on __ts{, dims} \
               | extend __new = __ids - __kept, __retained = todouble(__kept) / todouble(coalesce(__before, 0)) \
               | extend __lost = 1.0 - __retained",
        results: &[
            ("__ids", "dcount_values"),
            ("__new", "dcount_newvalues"),
            ("__retained", "retention_rate"),
            ("__lost", "churn_rate"),
        ],
    },
];

/// `new_activity_metrics`: each pair of a time and a later one; `{is cohort}` and `{is new}` keep the first time that
/// is asked for and the ids that are not known from before.
const NEW_ACTIVITY: &str = "let __E = materialize(__T | where __ts between (__start .. __end) \
    | extend __ts = bin_at(__ts, __bin, __start) | distinct __id, __ts{, dims}); \
    let __F = materialize(__E{is new} | summarize __from = min(__ts) by __id{, dims}); \
    let __pairs = range __from from __start to __end step __bin{is cohort} | extend __one = 1 \
    | join kind=inner (range __to from __start to __end step __bin | extend __one = 1) on __one \
    | where __to >= __from \
    | join kind=inner (__E | extend __one = 1 | distinct __one{, dims}) on __one; \
    let __K = materialize(__F | join kind=inner (__E) on __id{, dims} \
    | summarize __kept = count() by __from, __to = __ts{, dims}); \
    let __N = __pairs | join kind=inner (__K | project __first = __from, __to, __seen = __kept{, dims}) on __to{, dims} \
    | where __first > __from or (__to == __from and __first == __from) \
    | summarize __new = sum(__seen) by __from, __to{, dims}; \
    __pairs | join kind=leftouter (__F | summarize __cohort = count() by __from{, dims}) on __from{, dims} \
    | join kind=leftouter (__K) on __from, __to{, dims} \
    | join kind=leftouter (__N) on __from, __to{, dims} \
    | extend __new = coalesce(__new, 0), __cohort = coalesce(__cohort, 0), __kept = coalesce(__kept, 0) \
    | extend __lost = __cohort - __kept, __retained = todouble(__kept) / todouble(__cohort) \
    | extend __churn = 1.0 - __retained";

const ROLLING_PERCENTILE: &str = "let __E = materialize(__T | where isnotnull(__ts) | extend __ts = bin(__ts, __bin)); \
    __E | extend __to = __ts + __bin * (__bins - 1) \
    | mv-expand __at = range(__ts, __to, __bin) to typeof({type}) \
    | summarize __percentile = percentile(__id, __share) by __ts = __at{, dims} \
    | join kind=inner (__E | distinct __ts{, dims}) on __ts{, dims}";

/// The plugins of this file.
pub(super) fn is_one(name: &str) -> bool {
    matches!(name, "new_activity_metrics" | "rolling_percentile") || PLUGINS.iter().any(|plugin| plugin.name == name)
}

/// Returns the input under the template's names, and the columns of the query that these are.
struct Timeline {
    rows: Relation,
    ts: Column,
    dimensions: Vec<Column>,
}

impl Timeline {
    fn text(&self, template: &str) -> String {
        let names = || (0..self.dimensions.len()).map(|index| format!("__d{index}"));
        let all: String = names().map(|name| format!(", {name}")).collect();
        let changed: String = names().map(|name| format!(" or prev({name}) != {name}")).collect();
        template
            .replace("{, dims}", &all)
            .replace("{dims changed}", &changed)
            .replace("{type}", self.ts.kql_type.name())
    }

    fn labels(&self, times: &[(&str, String)], results: &[(&str, &str)]) -> Vec<(String, String)> {
        let times = times.iter().map(|(from, to)| ((*from).to_owned(), to.clone()));
        let dimensions = self.dimensions.iter().enumerate();
        let dimensions = dimensions.map(|(index, column)| (format!("__d{index}"), column.name.clone()));
        let results = results.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
        times.chain(dimensions).chain(results).collect()
    }
}

impl<'a> Binder<'a> {
    pub(super) fn activity(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let span = call.function.span;
        match call.function.text.as_str() {
            "rolling_percentile" => return self.rolling_percentile(input, call, environment),
            "new_activity_metrics" => return self.new_activity(input, call, environment),
            _ => {}
        }
        let Some(plugin) = PLUGINS.iter().find(|plugin| plugin.name == call.function.text) else {
            return invalid(span, "there is no such plugin");
        };
        let [id, ts, rest @ ..] = call.arguments.as_slice() else {
            return invalid(span, format!("`{}` takes columns of ids and of times", plugin.name));
        };
        let given = rest.iter().take_while(|argument| self.is_constant(&input, argument)).count();
        let is_bounded = given >= plugin.constants.len();
        let constants = match plugin.constants {
            [_, _, others @ ..] if !is_bounded && plugin.bounds_optional => others,
            all => all,
        };
        let (values, dimensions) = match rest.split_at_checked(constants.len()) {
            Some((values, dimensions)) if given >= constants.len() => (values, dimensions),
            _ => {
                let names: Vec<&str> = constants.iter().map(|name| name.trim_start_matches('_')).collect();
                let message =
                    format!("`{}` takes these constants after the columns: {}", plugin.name, names.join(", "));
                return invalid(span, message);
            }
        };
        let timeline = self.timeline(input, id, ts, dimensions)?;
        let mut names = TemplateNames::default().table("__T", timeline.rows.clone());
        for (name, value) in constants.iter().zip(values) {
            let value = self.known_value(value, environment)?;
            names = names.value(name, value);
        }
        let mut text = timeline.text(plugin.text);
        if let (Some(step), true) = (constants.first(), constants.len() < plugin.constants.len()) {
            text = format!(
                "let __start = bin(toscalar(__T | summarize min(__ts)), {step}); \
                 let __end = toscalar(__T | summarize max(__ts)); {text}"
            );
        }
        let made = self.templated(text, names, span)?;
        let labels = timeline.labels(&[("__ts", timeline.ts.name.clone())], plugin.results);
        self.relabelled(made, &labels, span)
    }

    fn new_activity(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let span = call.function.span;
        let [id, ts, start, end, bin, rest @ ..] = call.arguments.as_slice() else {
            return invalid(
                span,
                "`new_activity_metrics` takes columns of ids and of times, a start, an end and a window",
            );
        };
        let mut rest = rest;
        let mut names = TemplateNames::default();
        let (mut is_cohort, mut is_new) = ("", "");
        if let [cohort, others @ ..] = rest
            && self.is_constant(&input, cohort)
            && !self.is_tabular(&cohort.expr, environment)
        {
            names = names.value("__cohort", self.known_value(cohort, environment)?);
            is_cohort = " | where __from == bin_at(__cohort, __bin, __start)";
            rest = others;
        }
        let id_column = self.column_of(&input, id)?;
        if let [others @ .., lookback] = rest
            && self.is_constant(&input, lookback)
        {
            let known = self.table(&lookback.expr, environment)?;
            let Some(column) = known.column(&id_column.name).cloned() else {
                return invalid(lookback.span, format!("the table has no column `{}`", id_column.name));
            };
            let known = self.projected(known, vec![("__id".to_owned(), column.typed())])?;
            names = names.table("__L", known);
            is_new = " | join kind=leftanti (__L) on __id";
            rest = others;
        }
        let timeline = self.timeline(input, id, ts, rest)?;
        for (name, value) in [("__start", start), ("__end", end), ("__bin", bin)] {
            names = names.value(name, self.known_value(value, environment)?);
        }
        names = names.table("__T", timeline.rows.clone());
        let text = timeline.text(NEW_ACTIVITY).replace("{is cohort}", is_cohort).replace("{is new}", is_new);
        let made = self.templated(text, names, span)?;
        let ts = &timeline.ts.name;
        let times = [("__from", format!("from_{ts}")), ("__to", format!("to_{ts}"))];
        let results = [
            ("__new", "dcount_new_values"),
            ("__kept", "dcount_retained_values"),
            ("__lost", "dcount_churn_values"),
            ("__retained", "retention_rate"),
            ("__churn", "churn_rate"),
        ];
        self.relabelled(made, &timeline.labels(&times, &results), span)
    }

    fn rolling_percentile(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let span = call.function.span;
        let [value, share, ts, bin, bins, dimensions @ ..] = call.arguments.as_slice() else {
            let message =
                "`rolling_percentile` takes a column, a percentile, an index, the size of a bin and their number";
            return invalid(span, message);
        };
        let value_column = self.column_of(&input, value)?;
        let timeline = self.timeline(input, value, ts, dimensions)?;
        let mut names = TemplateNames::default().table("__T", timeline.rows.clone());
        let mut shown = Vec::new();
        for (name, argument) in [("__share", share), ("__bin", bin), ("__bins", bins)] {
            let known = self.known_value(argument, environment)?;
            let text = self.convert(known.clone(), KqlType::String, argument.span)?;
            shown.push(constant_of(&text.expr)?.map(|text| text.to_string()).unwrap_or_default());
            names = names.value(name, known);
        }
        let made = self.templated(timeline.text(ROLLING_PERCENTILE), names, span)?;
        let (share, bins) = (shown.first(), shown.get(2));
        let result = format!(
            "rolling_{}_percentile_{}_{}",
            bins.map_or("", String::as_str),
            value_column.name,
            share.map_or("", String::as_str)
        );
        let labels = timeline.labels(&[("__ts", timeline.ts.name.clone())], &[("__percentile", &result)]);
        self.relabelled(made, &labels, span)
    }

    fn timeline(
        &mut self,
        input: Relation,
        id: &'a NamedExpr,
        ts: &'a NamedExpr,
        dimensions: &'a [NamedExpr],
    ) -> Result<Timeline> {
        let id = self.column_of(&input, id)?;
        let ts = self.column_of(&input, ts)?;
        let mut outputs = vec![("__id".to_owned(), id.typed()), ("__ts".to_owned(), ts.typed())];
        let mut kept = Vec::with_capacity(dimensions.len());
        for (index, dimension) in dimensions.iter().enumerate() {
            let column = self.column_of(&input, dimension)?;
            outputs.push((format!("__d{index}"), column.typed()));
            kept.push(column);
        }
        let rows = self.projected(input, outputs)?;
        Ok(Timeline { rows, ts, dimensions: kept })
    }

    /// Whether an argument is no column of the input.
    fn is_constant(&self, input: &Relation, argument: &NamedExpr) -> bool {
        !matches!(&argument.expr.kind, ExprKind::Name(name) if input.column(&name.text).is_some())
    }

    fn known_value(&mut self, argument: &'a NamedExpr, environment: &Environment<'a>) -> Result<Typed> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        if typed.kql_type == KqlType::String {
            return not_supported(argument.span, "a window of weeks, months or years");
        }
        match constant_of(&typed.expr)? {
            Some(value) => Ok(Typed::new(datafusion::logical_expr::lit(value), typed.kql_type)),
            None => invalid(argument.span, "this must be a constant"),
        }
    }
}
