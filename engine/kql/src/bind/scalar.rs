//! Binds scalar expressions: each becomes a typed expression over the fields of the row, or an error with its position.

use datafusion::logical_expr::{Expr as PlanExpr, lit};
use datafusion::scalar::ScalarValue;

use super::instead::function_in_another_place;
use super::native_operators::{native_comparison, native_in};
use super::several::refuse_several;
use super::user_functions::needs_no_arguments;
use super::{
    BindError, BindErrorCode, Binder, Binding, ExpressionScope, HIDDEN, Result, Typed, constant_of, fail, invalid,
    not_supported, text_of, unsupported_name,
};
use crate::aggregates;
use crate::ast::{
    BinaryOperator, Expr, ExprKind, FunctionCall, ListOperator, Literal, LogicalOperator, Name, SubqueryFunction,
    UnaryOperator,
};
use crate::functions::{self, BoundFunction, FunctionError, ScalarOperator};
use crate::nearest_name;
use crate::plan::Column;
use crate::span::Span;
use crate::types::KqlType;

impl<'a> Binder<'a> {
    /// Binds an expression that must be a value.
    pub(crate) fn scalar(&mut self, expr: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        self.spend(1, expr.span)?;
        self.nested(expr.span, |binder| binder.scalar_unchecked(expr, scope))
    }

    fn scalar_unchecked(&mut self, expr: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal, expr.span),
            ExprKind::Name(name) => self.name(name, scope),
            ExprKind::Member { base, name } => self.member(base, name, expr.span, scope),
            ExprKind::Element { base, index } => self.element(base, index, expr.span, scope),
            ExprKind::Call(call) => self.call(call, expr.span, scope),
            ExprKind::Unary { operator: UnaryOperator::Plus, operand } => self.scalar(operand, scope),
            ExprKind::Unary { operator: UnaryOperator::Minus, operand } => {
                let operand = self.scalar(operand, scope)?;
                if operand.kql_type == KqlType::Int
                    && let Some(ScalarValue::Int32(Some(value))) = constant_of(&operand.expr)?
                    && let Some(negated) = value.checked_neg()
                {
                    // Only a constant stays an int.
                    return Ok(Typed::new(lit(negated), KqlType::Int));
                }
                self.apply_operator(ScalarOperator::Negate, vec![operand], expr.span)
            }
            ExprKind::Binary { operator, left, right, operator_span } => {
                if *operator == BinaryOperator::SearchTerm {
                    return not_supported(*operator_span, "`:` outside `search`");
                }
                if left.kind == ExprKind::Star {
                    return self.any_column(*operator, right, expr.span, scope);
                }
                let left = self.scalar(left, scope)?;
                let right = self.scalar(right, scope)?;
                self.apply_operator(ScalarOperator::Binary(*operator), vec![left, right], expr.span)
            }
            ExprKind::Logical { operator, operands } => {
                let operands =
                    operands.iter().map(|operand| self.condition(operand, scope)).collect::<Result<Vec<_>>>()?;
                Ok(Typed::new(joined_conditions(*operator, operands), KqlType::Bool))
            }
            ExprKind::List { operator, value, list, operator_span } => {
                let value = self.scalar(value, scope)?;
                self.list(*operator, value, list, *operator_span, scope)
            }
            ExprKind::Between { negated, value, low, high } => {
                let value = self.scalar(value, scope)?;
                let low = self.scalar(low, scope)?;
                let high = self.scalar(high, scope)?;
                self.apply_operator(ScalarOperator::Between { negated: *negated }, vec![value, low, high], expr.span)
            }
            ExprKind::Subquery { function: SubqueryFunction::ToScalar, body } => self.first_value(body, scope),
            ExprKind::Subquery { .. } | ExprKind::Pipeline(_) | ExprKind::DataTable(_) => {
                let hint = "take its first value with toscalar(...)";
                let error = BindError::new(BindErrorCode::TypeMismatch, expr.span, "expected a value, found a table");
                Err(error.with_hint(hint).into())
            }
            ExprKind::Star | ExprKind::Wildcard { .. } => invalid(expr.span, "`*` cannot stand here"),
            ExprKind::ExternalData(_) | ExprKind::EntityGroup(_) => not_supported(expr.span, "this"),
            ExprKind::Invalid => invalid(expr.span, "this could not be read"),
        }
    }

    /// Binds an expression that must be true or false.
    pub(crate) fn condition(&mut self, expr: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<PlanExpr> {
        let typed = self.scalar(expr, scope)?;
        self.as_condition(typed, expr.span)
    }

    pub(super) fn as_condition(&mut self, typed: Typed, span: Span) -> Result<PlanExpr> {
        match typed.kql_type {
            KqlType::Bool => Ok(typed.expr),
            KqlType::Dynamic => Ok(self.convert(typed, KqlType::Bool, span)?.expr),
            other => {
                let message = format!("expected a condition, found a {}", other.name());
                let error = BindError::new(BindErrorCode::TypeMismatch, span, message);
                match other.is_numeric() {
                    true => Err(error.with_hint("compare the number with one, as `x != 0` does").into()),
                    false => Err(error.into()),
                }
            }
        }
    }

    /// Binds the condition of a `where`, in which null counts as false. There, comparisons of two values of one type
    /// are DataFusion's own operators, which its optimizer can push into scans.
    pub(crate) fn predicate(&mut self, expr: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<PlanExpr> {
        match &expr.kind {
            ExprKind::Logical { operator, operands } => {
                self.spend(1, expr.span)?;
                let operands = self.nested(expr.span, |binder| {
                    operands.iter().map(|operand| binder.predicate(operand, scope)).collect::<Result<Vec<_>>>()
                })?;
                Ok(joined_conditions(*operator, operands))
            }
            ExprKind::Binary { operator, left, right, .. } if left.kind != ExprKind::Star => {
                let left = self.scalar(left, scope)?;
                let right = self.scalar(right, scope)?;
                if let Some(native) = native_comparison(*operator, &left, &right) {
                    return Ok(native);
                }
                let typed = self.apply_operator(ScalarOperator::Binary(*operator), vec![left, right], expr.span)?;
                self.as_condition(typed, expr.span)
            }
            ExprKind::Between { negated: false, value, low, high } => {
                let value = self.scalar(value, scope)?;
                let low = self.scalar(low, scope)?;
                let mut high = self.scalar(high, scope)?;
                if value.kql_type == KqlType::DateTime && high.kql_type == KqlType::TimeSpan {
                    let plus = ScalarOperator::Binary(BinaryOperator::Add);
                    high = self.apply_operator(plus, vec![low.clone(), high], expr.span)?;
                }
                let lower = native_comparison(BinaryOperator::GreaterOrEqual, &value, &low);
                let upper = native_comparison(BinaryOperator::LessOrEqual, &value, &high);
                match lower.zip(upper) {
                    // Two comparisons would each have their own value of rand().
                    Some((lower, upper)) if !lower.is_volatile() => Ok(lower.and(upper)),
                    _ => {
                        let between = ScalarOperator::Between { negated: false };
                        Ok(self.apply_operator(between, vec![value, low, high], expr.span)?.expr)
                    }
                }
            }
            _ => self.condition(expr, scope),
        }
    }

    /// `* has "x"`: whether the comparison holds for one of the columns of a comparable type.
    fn any_column(
        &mut self,
        operator: BinaryOperator,
        right: &'a Expr,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        let wanted = self.scalar(right, scope)?;
        let mut each = Vec::with_capacity(scope.columns.len());
        for column in scope.columns {
            if column.kql_type == wanted.kql_type || column.kql_type == KqlType::Dynamic {
                let operands = vec![column.typed(), wanted.clone()];
                each.push(self.apply_operator(ScalarOperator::Binary(operator), operands, span)?.expr);
            }
        }
        let any = if each.is_empty() { lit(false) } else { joined_conditions(LogicalOperator::Or, each) };
        Ok(Typed::new(any, KqlType::Bool))
    }

    fn name(&mut self, name: &'a Name, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        if let Some(graph) = scope.graph
            && let Some((_, variable)) = graph.variables.iter().find(|(known, _)| *known == name.text)
        {
            return self.graph_element(*variable, name.span, graph);
        }
        if let Some(column) = scope.column(&name.text) {
            return Ok(column.typed());
        }
        match scope.environment.find(&name.text) {
            Some(Binding::Scalar(typed, nodes)) => {
                self.spend(*nodes, name.span)?;
                Ok(typed.clone())
            }
            Some(Binding::Table(..) | Binding::Bound(_)) => {
                let message = format!("expected a value, found the table `{}`", name.text);
                Err(BindError::new(BindErrorCode::TypeMismatch, name.span, message)
                    .with_hint("take its first value with toscalar(...)")
                    .into())
            }
            Some(Binding::Function(function, environment)) if needs_no_arguments(function) => {
                let (function, environment) = (*function, environment.clone());
                self.without_arguments(function, &environment, name.span)
            }
            Some(Binding::Database(_)) => invalid(name.span, format!("`{0}` is a database; name `{0}.T`", name.text)),
            Some(Binding::Function(..) | Binding::Pattern(..)) => {
                invalid(name.span, format!("`{}` is a function; call it with parentheses", name.text))
            }
            None => Err(self.unknown_column(name, scope.columns).into()),
        }
    }

    /// Returns the error for a name that is no column here.
    pub(crate) fn unknown_column(&self, name: &Name, columns: &[Column]) -> BindError {
        let message = format!("unknown column `{}`", name.text);
        let error = BindError::new(BindErrorCode::UnknownColumn, name.span, message);
        match nearest_name(&name.text, columns.iter().map(|column| column.name.as_str())) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => match names_of(columns) {
                Some(names) => error.with_hint(names),
                None => error,
            },
        }
    }

    fn member(&mut self, base: &'a Expr, name: &'a Name, span: Span, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        if let Some(graph) = scope.graph
            && let Some(variable) = graph.find(base)
        {
            return self.graph_property(variable, &name.text, name.span, graph);
        }
        if let ExprKind::Name(side) = &base.kind {
            if scope.steps.contains(&side.text) {
                return match scope.column(&format!("{}.{}", side.text, name.text)) {
                    Some(column) => Ok(column.typed()),
                    None => Err(self.unknown_column(name, scope.columns).into()),
                };
            }
            let columns = match side.text.as_str() {
                "$left" if scope.right.is_some() => Some(scope.columns),
                "$right" => scope.right,
                _ => None,
            };
            if let Some(columns) = columns {
                return match columns.iter().find(|column| column.name == name.text) {
                    Some(column) => Ok(column.typed()),
                    None => Err(self.unknown_column(name, columns).into()),
                };
            }
        }
        let base = self.scalar(base, scope)?;
        let key = Typed::text(&name.text);
        self.dynamic_access(ScalarOperator::DynamicMember, base, key, span)
    }

    fn element(
        &mut self,
        base: &'a Expr,
        index: &'a Expr,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        if let (Some(graph), ExprKind::Literal(Literal::String(name))) = (scope.graph, &index.kind)
            && let Some(variable) = graph.find(base)
        {
            return self.graph_property(variable, name, index.span, graph);
        }
        if let Some([text, delimiter, index]) = part_of_split(base, index, scope) {
            let arguments = [text, delimiter, index].map(|argument| self.scalar(argument, scope));
            let [text, delimiter, index] = arguments;
            let (text, delimiter) = (text?, delimiter?);
            if [&text, &delimiter].iter().all(|typed| typed.kql_type == KqlType::String) {
                return self.apply_operator(ScalarOperator::SplitElement, vec![text, delimiter, index?], span);
            }
        }
        let base = self.scalar(base, scope)?;
        let index = self.scalar(index, scope)?;
        match index.kql_type {
            KqlType::String => self.dynamic_access(ScalarOperator::DynamicMember, base, index, span),
            KqlType::Long | KqlType::Dynamic => self.dynamic_access(ScalarOperator::DynamicElement, base, index, span),
            KqlType::Int => {
                let index = self.convert(index, KqlType::Long, span)?;
                self.dynamic_access(ScalarOperator::DynamicElement, base, index, span)
            }
            other => fail(
                BindErrorCode::TypeMismatch,
                span,
                format!("an index is a string or a whole number, not a {}", other.name()),
            ),
        }
    }

    fn dynamic_access(&mut self, operator: ScalarOperator, base: Typed, key: Typed, span: Span) -> Result<Typed> {
        if base.kql_type != KqlType::Dynamic {
            let message = format!("only dynamic values have members, this is a {}", base.kql_type.name());
            return Err(BindError::new(BindErrorCode::TypeMismatch, span, message)
                .with_hint("parse a text with parse_json(...)")
                .into());
        }
        self.apply_operator(operator, vec![base, key], span)
    }

    fn call(&mut self, call: &'a FunctionCall, span: Span, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        if call.target.is_some() {
            return not_supported(span, "calling a function of another database");
        }
        let name = call.function.text.as_str();
        if let Some(Binding::Function(function, environment)) = scope.environment.find(name) {
            let (function, environment) = (*function, environment.clone());
            return self.user_scalar(call, function, &environment, scope);
        }
        if let Some(graph) = scope.graph
            && let Some(typed) = self.graph_function(call, span, scope, graph)?
        {
            return Ok(typed);
        }
        if call.arguments.is_empty()
            && let Some(column) = scope.column(&format!("{HIDDEN}{name}"))
        {
            return Ok(column.typed());
        }
        if aggregates::is_aggregate(name) && !(is_also_scalar(name) && scope.aggregates.is_none()) {
            let Some(collected) = scope.aggregates else {
                let message = format!("`{name}` is an aggregate; it can only stand in summarize and its like");
                return invalid(span, message);
            };
            let outputs = self.aggregate(call, span, scope, collected)?;
            return match outputs.into_iter().next() {
                Some(first) => Ok(first.typed),
                None => invalid(span, format!("`{name}` needs an argument")),
            };
        }
        if let Some(typed) = self.window_function(call, span, scope)? {
            return Ok(typed);
        }
        if let Some(typed) = self.special_function(call, span, scope)? {
            return Ok(typed);
        }
        match name {
            "now" | "ago" => return self.moment(call, span, scope),
            "pack_all" => return self.pack_all(call, span, scope),
            "bag_pack_columns" => return self.pack_columns(call, span, scope),
            "column_ifexists" | "columnifexists" => return self.column_if_exists(call, span, scope),
            "pack" | "bag_pack" | "pack_dictionary"
                if call.arguments.iter().any(|argument| argument.expr.kind == ExprKind::Star) =>
            {
                return self.pack_all(call, span, scope);
            }
            "pack_array" if matches!(call.arguments.as_slice(), [only] if only.expr.kind == ExprKind::Star) => {
                return self.pack_all_values(span, scope);
            }
            _ => {}
        }
        refuse_several(name, span)?;
        let arguments = self.arguments(call, scope)?;
        if name == "not"
            && let [condition] = arguments.as_slice()
        {
            // `not` alone takes whole numbers, as Kusto's engine does: of them only zero does not hold.
            let condition = match condition.kql_type {
                KqlType::Int | KqlType::Long => self.convert(condition.clone(), KqlType::Bool, span)?.expr,
                _ => self.as_condition(condition.clone(), span)?,
            };
            return Ok(Typed::new(PlanExpr::Not(Box::new(condition)), KqlType::Bool));
        }
        match (name, arguments.as_slice()) {
            ("assert", [condition, message]) => return self.asserted(condition, message, span),
            ("format_datetime" | "format_timespan", [_, format]) => self.check_format(name, format, span)?,
            ("datetime_part" | "datepart" | "datetime_add", [part, ..]) => self.check_part(name, part, span)?,
            ("extract_all" | "extractall", [pattern, ..]) => self.check_groups(name, pattern, span)?,
            ("countof", [_, _, kind]) => self.check_word(kind, &["normal", "regex"], span)?,
            // Of all parts Kusto counts only weeks as a real number.
            ("datetime_diff", [part, ..]) => {
                self.check_part(name, part, span)?;
                let part = constant_of(&part.expr)?;
                let weeks = self.apply_at(name, arguments, call.function.span, span)?;
                let is_week = text_of(part.as_ref()).is_some_and(|part| part.eq_ignore_ascii_case("week"));
                return if is_week { self.convert(weeks, KqlType::Real, span) } else { Ok(weeks) };
            }
            _ => {}
        }
        self.apply_at(name, arguments, call.function.span, span)
    }

    /// Binds the arguments of a call of a built-in function.
    pub(crate) fn arguments(&mut self, call: &'a FunctionCall, scope: &ExpressionScope<'_, 'a>) -> Result<Vec<Typed>> {
        call.arguments.iter().map(|argument| self.scalar(&argument.expr, scope)).collect()
    }

    fn moment(&mut self, call: &'a FunctionCall, span: Span, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        let now = Typed::new(lit(self.now_ticks), KqlType::DateTime);
        let mut arguments = self.arguments(call, scope)?;
        let operator = if call.function.text == "now" { BinaryOperator::Add } else { BinaryOperator::Subtract };
        match (arguments.pop(), arguments.pop()) {
            (None, _) if operator == BinaryOperator::Add => Ok(now),
            (Some(offset), None) if offset.kql_type == KqlType::TimeSpan => {
                self.apply_operator(ScalarOperator::Binary(operator), vec![now, offset], span)
            }
            _ => fail(BindErrorCode::TypeMismatch, span, format!("`{}` takes a timespan", call.function.text)),
        }
    }

    fn column_if_exists(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        let [name, default] = call.arguments.as_slice() else {
            return invalid(span, "`column_ifexists` takes a column's name and a default");
        };
        let name = self.scalar(&name.expr, scope)?;
        let name = constant_of(&name.expr)?;
        let Some(name) = text_of(name.as_ref()) else {
            return invalid(span, "the column's name must be a constant string");
        };
        match scope.column(name) {
            Some(column) => Ok(column.typed()),
            None => self.scalar(&default.expr, scope),
        }
    }

    fn list(
        &mut self,
        operator: ListOperator,
        value: Typed,
        list: &'a [Expr],
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        let items = match list {
            [table] if self.is_tabular(table, scope.environment) && !is_column(table, scope) => {
                self.first_column(table, scope)?
            }
            _ => list.iter().map(|item| self.scalar(item, scope)).collect::<Result<Vec<_>>>()?,
        };
        if let ListOperator::In { negated, ignore_case: false } = operator
            && let Some(native) = native_in(&value, &items, negated)
        {
            return Ok(native);
        }
        let mut arguments = vec![value];
        arguments.extend(items);
        self.apply_operator(ScalarOperator::List(operator), arguments, span)
    }

    /// Applies an operator, which is a function under a name of its own.
    pub(crate) fn apply_operator(&mut self, operator: ScalarOperator, values: Vec<Typed>, span: Span) -> Result<Typed> {
        let types: Vec<KqlType> = values.iter().map(|value| value.kql_type).collect();
        match functions::operator(operator, &types) {
            Ok(bound) => Ok(called(bound, values)),
            Err(FunctionError::WrongArguments { message }) => fail(BindErrorCode::TypeMismatch, span, message),
            Err(FunctionError::Unknown { .. } | FunctionError::KnownToKusto) => {
                not_supported(span, format_args!("the operator `{}`", operator.name()))
            }
        }
    }

    /// Returns an element of a dynamic array.
    pub(crate) fn element_of(&mut self, array: Typed, index: usize, span: Span) -> Result<Typed> {
        let index = Typed::new(lit(i64::try_from(index).unwrap_or(i64::MAX)), KqlType::Long);
        self.apply_operator(ScalarOperator::DynamicElement, vec![array, index], span)
    }

    /// Applies a built-in function.
    pub(crate) fn apply(&mut self, name: &str, arguments: Vec<Typed>, span: Span) -> Result<Typed> {
        self.apply_at(name, arguments, span, span)
    }

    fn apply_at(&mut self, name: &str, arguments: Vec<Typed>, name_span: Span, span: Span) -> Result<Typed> {
        let types: Vec<KqlType> = arguments.iter().map(|argument| argument.kql_type).collect();
        match functions::bind(name, &types, self.functions()) {
            Ok(bound) => Ok(called(bound, arguments)),
            Err(FunctionError::WrongArguments { message }) => fail(BindErrorCode::TypeMismatch, span, message),
            Err(FunctionError::KnownToKusto) => match function_in_another_place(name, name_span) {
                Some(error) => Err(error.into()),
                None => unsupported_name(name_span, "function", name),
            },
            Err(FunctionError::Unknown { nearest }) => {
                let error =
                    BindError::new(BindErrorCode::UnknownFunction, name_span, format!("unknown function `{name}`"));
                match aggregates::nearest_with(nearest.as_deref(), name) {
                    Some(near) => Err(error.with_hint(format!("did you mean `{near}`?")).into()),
                    None => Err(error.into()),
                }
            }
        }
    }

    /// Converts a value to a type with the function that KQL has for it.
    pub(crate) fn convert(&mut self, typed: Typed, to: KqlType, span: Span) -> Result<Typed> {
        if typed.kql_type == to {
            return Ok(typed);
        }
        let converter = match to {
            KqlType::Bool => "tobool",
            KqlType::Int => "toint",
            KqlType::Long => "tolong",
            KqlType::Real => "toreal",
            KqlType::Decimal => "todecimal",
            KqlType::String => "tostring",
            KqlType::DateTime => "todatetime",
            KqlType::TimeSpan => "totimespan",
            KqlType::Guid => "toguid",
            KqlType::Dynamic => return self.as_element(typed, span),
        };
        self.apply(converter, vec![typed], span)
    }

    /// Converts a value to an element of a dynamic; a string stays a string and is not parsed.
    pub(super) fn as_element(&mut self, typed: Typed, span: Span) -> Result<Typed> {
        let array = self.apply("pack_array", vec![typed], span)?;
        self.element_of(array, 0, span)
    }
}

fn called(bound: BoundFunction, arguments: Vec<Typed>) -> Typed {
    let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
    Typed::new(bound.function.call(arguments), bound.returns)
}

fn is_column(expr: &Expr, scope: &ExpressionScope<'_, '_>) -> bool {
    match &expr.kind {
        ExprKind::Name(name) => scope.column(&name.text).is_some(),
        _ => false,
    }
}

/// Says what columns there are, some of them where they are many or long.
fn names_of(columns: &[Column]) -> Option<String> {
    const MOST: usize = 12;
    const LONGEST: usize = 64;
    let short = columns.iter().filter(|column| column.name.len() <= LONGEST);
    let shown: Vec<String> = short.take(MOST).map(|column| format!("`{}`", column.name)).collect();
    let more = columns.len() - shown.len();
    match (shown.as_slice(), more) {
        ([], _) => None,
        ([only], 0) => Some(format!("the only column here is {only}")),
        (_, 0) => Some(format!("the columns here are {}", shown.join(", "))),
        _ => Some(format!("the columns here are {} and {more} more", shown.join(", "))),
    }
}

/// Names that are aggregates where aggregates are allowed, and functions elsewhere.
fn is_also_scalar(name: &str) -> bool {
    matches!(name, "make_bag" | "any" | "percentile" | "hll_merge" | "tdigest_merge" | "merge_tdigest")
}

/// Joins operands in their order, in a tree as low as can be: trees are walked recursively, and a chain may be long.
pub(crate) fn joined_conditions(operator: LogicalOperator, mut operands: Vec<PlanExpr>) -> PlanExpr {
    if operands.len() <= 1 {
        return operands.pop().unwrap_or_else(|| lit(true));
    }
    let right = operands.split_off(operands.len().div_ceil(2));
    let (left, right) = (joined_conditions(operator, operands), joined_conditions(operator, right));
    match operator {
        LogicalOperator::And => left.and(right),
        LogicalOperator::Or => left.or(right),
    }
}

/// Returns the string, the delimiter and the index of `split(string, delimiter)[index]`.
fn part_of_split<'a>(base: &'a Expr, index: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Option<[&'a Expr; 3]> {
    let ExprKind::Literal(Literal::Long(0..)) = index.kind else { return None };
    let ExprKind::Call(call) = &base.kind else { return None };
    let is_split = call.target.is_none()
        && call.function.text == "split"
        && !matches!(scope.environment.find("split"), Some(Binding::Function(..)));
    match call.arguments.as_slice() {
        [text, delimiter] if is_split => Some([&text.expr, &delimiter.expr, index]),
        _ => None,
    }
}
