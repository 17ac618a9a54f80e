//! Operators that are functions, parts of values, and chained calls: `value.f(x)`.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, SetExpr, Subscript, TableAlias, TableAliasColumnDef, TableFactor, UnaryOperator, Value,
};

use super::expression_forms::write_out_form;
use super::function_forms::{self, ANY_TEXT, has_wildcard, is_any_text};
use super::marks;
use super::shorthand::{call, number, plain, query_of, select_star, taken, text};
use crate::error::{EngineError, Result};
use crate::functions::TRY_JSON;

/// What a query is called that is compared with.
pub(super) const COMPARED: &str = "__compared";

/// Writes out an operator that is a function; others stay as they are. Errors: `sql_plan_error`.
pub(super) fn operators(expr: &mut Expr) -> Result<()> {
    let nothing = || Expr::Value(Value::Null.into());
    match expr {
        // The planner takes a column of the query for the outer one where both have one name.
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
            if let Expr::Subquery(query) = right.as_mut() {
                let factor = TableFactor::Derived {
                    lateral: false,
                    subquery: query.clone(),
                    alias: Some(TableAlias {
                        explicit: true,
                        name: Ident::new(COMPARED),
                        columns: vec![TableAliasColumnDef { name: Ident::new("__value"), data_type: None }],
                        at: None,
                    }),
                    sample: None,
                };
                **query = query_of(SetExpr::Select(Box::new(select_star(vec![plain(factor)]))));
            }
        }
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right }
            if (is_null(left) && !matches!(**right, Expr::Value(_)))
                || (is_null(right) && !matches!(**left, Expr::Value(_))) =>
        {
            let other = if is_null(left) { taken(right) } else { taken(left) };
            *expr = null_beside(other);
        }
        Expr::BinaryOp {
            op:
                BinaryOperator::PGRegexMatch
                | BinaryOperator::PGRegexIMatch
                | BinaryOperator::PGRegexNotMatch
                | BinaryOperator::PGRegexNotIMatch,
            right,
            ..
        } if is_any_text(right) => **right = text(ANY_TEXT),
        Expr::BinaryOp { left, op, right } => {
            let function = match op {
                // In PostgreSQL and DuckDB `^` is a power; `xor` and `#` are PostgreSQL's exclusive or.
                BinaryOperator::BitwiseXor | BinaryOperator::PGExp => "power",
                BinaryOperator::Custom(name) if name == marks::JSON_ARROW => "json_extract",
                BinaryOperator::Custom(name) if name == marks::DISTANCE => "l2_distance",
                BinaryOperator::Arrow => "json_extract",
                BinaryOperator::LongArrow => "json_extract_string",
                BinaryOperator::HashArrow => "json_extract_path",
                BinaryOperator::HashLongArrow => "json_extract_path_text",
                BinaryOperator::PGStartsWith => "starts_with",
                BinaryOperator::PGOverlap => "array_has_any",
                // The planner would take it for `IS NOT DISTINCT FROM`, as MySQL has it.
                BinaryOperator::Spaceship => "cosine_distance",
                BinaryOperator::MyIntegerDivide => "div",
                // Of integers `/` is whole here; DuckDB's `//` of other numbers has a fraction.
                BinaryOperator::DuckIntegerDivide => {
                    *op = BinaryOperator::Divide;
                    return Ok(());
                }
                _ => return Ok(()),
            };
            let function = match function {
                "json_extract" if has_wildcard(right) => "json_extract_all",
                "json_extract_string" if has_wildcard(right) => "json_extract_string_all",
                other => other,
            };
            let arguments =
                vec![std::mem::replace(left.as_mut(), nothing()), std::mem::replace(right.as_mut(), nothing())];
            *expr = call(function, arguments);
        }
        Expr::UnaryOp { op, expr: operand } => {
            let operand = || Expr::Nested(operand.clone());
            *expr = match op {
                UnaryOperator::PGAbs => call("abs", vec![operand()]),
                UnaryOperator::PGSquareRoot => call("sqrt", vec![operand()]),
                UnaryOperator::PGCubeRoot => call("cbrt", vec![operand()]),
                UnaryOperator::PGPostfixFactorial | UnaryOperator::PGPrefixFactorial => {
                    call("factorial", vec![operand()])
                }
                UnaryOperator::BitwiseNot => {
                    let negative = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(operand()) };
                    Expr::Nested(Box::new(Expr::BinaryOp {
                        left: Box::new(negative),
                        op: BinaryOperator::Minus,
                        right: Box::new(number("1")),
                    }))
                }
                _ => return Ok(()),
            };
        }
        Expr::CompoundFieldAccess { root, access_chain }
            if access_chain.iter().any(|access| matches!(access, AccessExpr::Dot(Expr::Function(_)))) =>
        {
            *expr = chained_calls(taken(root), std::mem::take(access_chain))?;
        }
        // Parts of JSON, where it is told by the call that makes it: an array's are counted from 0.
        Expr::CompoundFieldAccess { root, access_chain }
            if is_json(root) && access_chain.iter().all(is_part_of_json) =>
        {
            let parts = std::mem::take(access_chain).into_iter().map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(field)) => text(&field.value),
                AccessExpr::Subscript(Subscript::Index { index }) => index,
                // Not let through above.
                AccessExpr::Dot(other) => other,
                AccessExpr::Subscript(Subscript::Slice { .. }) => nothing(),
            });
            *expr = parts.fold(taken(root), |json, part| call("json_extract", vec![json, part]));
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            name_root(root, access_chain);
            let mut is_named = matches!(root.as_ref(), Expr::Identifier(_));
            for access in access_chain.iter_mut() {
                match access {
                    // `(value).field`; behind a name the field may be a column of a table.
                    AccessExpr::Dot(Expr::Identifier(field)) if !is_named => {
                        *access = AccessExpr::Subscript(Subscript::Index { index: text(&field.value) });
                    }
                    AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
                        is_named = false;
                        lower_bound.get_or_insert_with(|| number("1"));
                        upper_bound.get_or_insert_with(|| number("-1"));
                    }
                    // What is behind a subscript is a field.
                    AccessExpr::Subscript(Subscript::Index { .. }) => is_named = false,
                    AccessExpr::Dot(_) => {}
                }
            }
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            let arguments = vec![
                std::mem::replace(time_zone.as_mut(), nothing()),
                std::mem::replace(timestamp.as_mut(), nothing()),
            ];
            *expr = call("timezone", arguments);
        }
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr: operand,
            data_type: DataType::JSON | DataType::JSONB,
            ..
        } => {
            *expr = call("json", vec![std::mem::replace(operand.as_mut(), nothing())]);
        }
        Expr::Cast {
            kind: CastKind::TryCast | CastKind::SafeCast,
            expr: operand,
            data_type: DataType::JSON | DataType::JSONB,
            ..
        } => {
            *expr = call(TRY_JSON, vec![std::mem::replace(operand.as_mut(), nothing())]);
        }
        Expr::Value(value) => {
            if let Value::UnicodeStringLiteral(text) | Value::NationalStringLiteral(text) = &value.value {
                value.value = Value::SingleQuotedString(text.clone());
            }
        }
        _ => {}
    }
    Ok(())
}

/// `t.list[1]` begins with a name of two parts; `t` by itself would be taken for the row of a table.
fn name_root(root: &mut Expr, chain: &mut Vec<AccessExpr>) {
    let Expr::Identifier(first) = &*root else { return };
    let is_name = |access: &&AccessExpr| matches!(access, AccessExpr::Dot(Expr::Identifier(_)));
    let behind = chain.iter().take_while(is_name).count();
    if behind == 0 || behind == chain.len() {
        return;
    }
    let mut names = vec![first.clone()];
    for access in chain.drain(..behind) {
        if let AccessExpr::Dot(Expr::Identifier(name)) = access {
            names.push(name);
        }
    }
    *root = Expr::CompoundIdentifier(names);
}

fn is_json(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_json(inner),
        Expr::Function(function) => function_forms::makes_json(&function.name.to_string().to_lowercase()),
        _ => false,
    }
}

fn is_part_of_json(access: &AccessExpr) -> bool {
    matches!(access, AccessExpr::Dot(Expr::Identifier(_)) | AccessExpr::Subscript(Subscript::Index { .. }))
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_null(inner),
        Expr::Value(value) => value.value == Value::Null,
        _ => false,
    }
}

/// `NULL || value` is null, of the value's type: the planner would add a null to a list.
fn null_beside(value: Expr) -> Expr {
    let never = CaseWhen { condition: Expr::Value(Value::Boolean(false).into()), result: value };
    Expr::Nested(Box::new(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![never],
        else_result: None,
    }))
}

/// `value.f(x).g()` is `g(f(value, x))`.
fn chained_calls(root: Expr, chain: Vec<AccessExpr>) -> Result<Expr> {
    let mut value = root;
    let mut accesses = Vec::new();
    for access in chain {
        let AccessExpr::Dot(Expr::Function(mut function)) = access else {
            accesses.push(access);
            continue;
        };
        if !accesses.is_empty() {
            value = Expr::CompoundFieldAccess { root: Box::new(value), access_chain: std::mem::take(&mut accesses) };
            operators(&mut value)?;
        }
        if let FunctionArguments::None = function.args {
            let message = format!("`{}` is no call of a function; write it with brackets", function.name);
            return Err(EngineError::Plan { message });
        }
        if let FunctionArguments::List(list) = &mut function.args {
            list.args.insert(0, FunctionArg::Unnamed(FunctionArgExpr::Expr(value)));
        }
        value = Expr::Function(function);
        write_out_form(&mut value)?;
        function_forms::expand(&mut value)?;
    }
    if !accesses.is_empty() {
        value = Expr::CompoundFieldAccess { root: Box::new(value), access_chain: accesses };
        operators(&mut value)?;
    }
    Ok(value)
}
