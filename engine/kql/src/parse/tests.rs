//! What is parsed to what, and what is said of what is wrong.

use std::time::{Duration, Instant};

use crate::ast::{
    BinaryOperator, Expr, ExprKind, GraphPart, JoinCondition, JsonKind, ListOperator, Literal, LogicalOperator, Names,
    OperatorKind, ParameterKind, ParsePart, Pipeline, Query, ScalarType, SeriesRange, SortDirection, StatementKind,
    TraverseDirection,
};
use crate::{SyntaxErrorCode, parse};

#[test]
fn operators_bind_as_in_kusto() {
    assert_eq!(shape("a or b and c == d"), "(a or (b and (c == d)))");
    assert_eq!(shape("a + b * c < d"), "((a + (b * c)) < d)");
    assert_eq!(shape("a - b - c"), "((a - b) - c)");
    assert_eq!(shape("a == b has c"), "(a == (b has c))");
    assert_eq!(shape("a + b has c"), "(a + (b has c))");
    assert_eq!(shape("-a * -b"), "((-a) * (-b))");
    assert_eq!(shape("a and b and c or d"), "((a and b and c) or d)");
    assert_eq!(shape("(a or b) and c"), "((a or b) and c)");
}

#[test]
fn paths_and_calls() {
    assert_eq!(shape("a.b['c'][-1]"), "a.b[\"c\"][(-1)]");
    assert_eq!(shape("database('d').f(x, y = z).c"), "database(\"d\").f(x, y = z).c");
    assert_eq!(shape("['a b'].c"), "a b.c");
    assert_eq!(shape("count"), "count");
    assert_eq!(shape("arg_max(t, *)"), "arg_max(t, *)");
}

#[test]
fn comparisons_do_not_chain() {
    let [error] = errors("T | where a == b == c");
    assert_eq!(error.0, "expected `|`, `;` or the end of the query, found `==`");
    assert_eq!(error.1.as_deref(), Some("comparisons do not chain; combine them with `and`"));
}

#[test]
fn literals_keep_what_is_written() {
    assert_eq!(literal("'a' \"b\" @'c\\'"), Literal::String("abc\\".to_owned()));
    assert_eq!(literal("1.5h"), Literal::Timespan(54_000_000_000));
    assert_eq!(literal("typeof(long)"), Literal::Type(ScalarType::Long));
    let typed = Literal::Typed { scalar_type: ScalarType::DateTime, text: "2020-01-01 10:00".to_owned() };
    assert_eq!(literal("datetime( 2020-01-01 10:00 )"), typed);
    let Literal::Dynamic(json) = literal("dynamic({\"a\": [1, -2.5, null, 1d], 'b': {}})") else { panic!() };
    let JsonKind::Object(properties) = json.kind else { panic!() };
    assert_eq!(properties.len(), 2);
    let JsonKind::Array(elements) = &properties[0].value.kind else { panic!() };
    assert_eq!(elements[1].kind, JsonKind::Literal(Literal::Real(-2.5)));
}

#[test]
fn keywords_are_names_where_they_can_be() {
    accepts("T | where count > 1 and kind == 2 | summarize range = max(step) by table");
    accepts("print where = 1, ['first'] = 2");
    accepts("let let = 1; print let");
    let [error] = errors("print first = 1");
    assert_eq!(error.0, "the keyword `first` needs brackets to be a name");
    assert_eq!(error.1.as_deref(), Some("write ['first']"));
}

#[test]
fn hyphens_subtract_between_names() {
    assert_eq!(shape("max-hops"), "(max - hops)");
    let OperatorKind::ProjectAway(patterns) = only_operator("T | project-away a*, *_b, c") else { panic!() };
    let patterns: Vec<_> = patterns.iter().map(|pattern| (pattern.text.as_str(), pattern.wildcard)).collect();
    assert_eq!(patterns, [("a*", true), ("*_b", true), ("c", false)]);
}

#[test]
fn pipelines_start_with_a_table_or_an_operator() {
    let pipeline = pipeline("union withsource=x T*, (U | take 1) | count");
    assert!(pipeline.source.is_none());
    assert_eq!(pipeline.operators.len(), 2);
    assert_eq!(pipeline.operators[0].parameters[0].name.text, "withsource");
    let OperatorKind::Union(tables) = &pipeline.operators[0].kind else { panic!() };
    assert!(matches!(&tables[0].kind, ExprKind::Wildcard { pattern, .. } if pattern == "T*"));
    assert!(matches!(&tables[1].kind, ExprKind::Pipeline(_)));
    assert!(matches!(statement("T"), StatementKind::Expression(Expr { kind: ExprKind::Name(_), .. })));
}

#[test]
fn joins_have_parameters_and_conditions() {
    let pipeline = pipeline("T | join kind=inner hint.strategy=shuffle (U) on a, $left.b == $right.c");
    assert!(pipeline.operators[0].parameter("hint.strategy").is_some());
    let OperatorKind::Join { condition: Some(JoinCondition::On(on)), .. } = &pipeline.operators[0].kind else {
        panic!()
    };
    assert_eq!(on.len(), 2);
}

#[test]
fn lists_take_scalars_or_a_table() {
    let expr = expression("a !in~ (T | project b)");
    let ExprKind::List { operator, list, .. } = expr.kind else { panic!() };
    assert_eq!(operator, ListOperator::In { negated: true, ignore_case: true });
    assert!(matches!(list[..], [Expr { kind: ExprKind::Pipeline(_), .. }]));
}

#[test]
fn columns_and_tuples_are_named() {
    let OperatorKind::Extend(columns) = only_operator("T | extend a = b, (c, ['d e']) = f(x), g(y)") else { panic!() };
    assert!(matches!(&columns[0].names, Names::One(name) if name.text == "a"));
    assert!(matches!(&columns[1].names, Names::Several(names) if names.len() == 2 && names[1].text == "d e"));
    assert_eq!(columns[2].names, Names::Unnamed);
}

#[test]
fn functions_have_scalar_and_tabular_parameters() {
    let text = "let f = (T:(a:long, b:string), n:long = -1) { let x = n; T | take x }; f(U)";
    let query = accepts(text);
    let StatementKind::LetFunction { function, .. } = &query.statements[0].kind else { panic!() };
    assert!(matches!(&function.parameters[0].kind, ParameterKind::Tabular(columns) if columns.len() == 2));
    assert!(matches!(&function.parameters[1].kind, ParameterKind::Scalar { default: Some(_), .. }));
    assert_eq!(function.body.len(), 2);
    accepts("let x = (a); let y = (a:'b'); let z = view () { T }; let e = () { }; print 1");
    let [error] = errors("let f = () { T; U }; print 1");
    assert_eq!(error.0, "only the last statement of a function is its result");
}

#[test]
fn statements_of_all_kinds() {
    accepts("set x; set y = true; set z = -1; declare query_parameters (a:long = 1); T");
    accepts("alias database d = cluster('c').database('e'); restrict access to (T, d.*); T");
    accepts("declare pattern P = (a:string)[b:string] { ('x').['y'] = { T }; }; P('x').['y']");
    assert_eq!(statement(".show tables"), StatementKind::Command);
    assert_eq!(accepts("// nothing\n").statements, []);
}

#[test]
fn patterns_of_parse() {
    let OperatorKind::Parse(parse) = only_operator("T | parse kind=regex a with * 'x' b:long 'y' c *") else {
        panic!()
    };
    let is_text = |part: &ParsePart| matches!(part, ParsePart::Text { .. });
    assert_eq!(parse.pattern.iter().map(is_text).collect::<Vec<_>>(), [false, true, false, true, false, false]);
}

#[test]
fn series_with_either_range() {
    for (text, is_old) in [("from a to b step 1h", false), ("in range(a, b, 1h)", true)] {
        let kind = only_operator(&format!("T | make-series n = count() default=0 on t {text} by c"));
        let OperatorKind::MakeSeries(series) = kind else { panic!() };
        assert_eq!(matches!(series.range, SeriesRange::InRange(_)), is_old);
        assert_eq!(series.by.len(), 1);
    }
}

#[test]
fn sort_keys_say_only_what_is_written() {
    let OperatorKind::Sort(keys) = only_operator("T | sort by a, b desc nulls first") else { panic!() };
    assert_eq!((keys[0].direction, keys[0].nulls), (None, None));
    assert_eq!(keys[1].direction, Some(SortDirection::Descending));
    assert!(keys[1].nulls.is_some());
}

#[test]
fn graphs() {
    let text = "T | make-graph a --> b with N on id \
        | graph-match (x)-[e*1..3]->(y)<--(z), (x)--(w) where x.v project x.v";
    let pipeline = pipeline(text);
    let OperatorKind::GraphMatch(matched) = &pipeline.operators[1].kind else { panic!() };
    assert_eq!(matched.patterns[0].len(), 5);
    assert!(matches!(matched.patterns[0][1], GraphPart::Edge { hops: Some(_), .. }));
    let text = "E | graph-traverse source (1, 2) from a to b max-hops 3 direction both edge-type 'x'";
    let OperatorKind::GraphTraverse(traverse) = only_operator(text) else { panic!() };
    assert_eq!(traverse.sources.len(), 2);
    assert_eq!(traverse.direction, Some(TraverseDirection::Both));
    assert_eq!(traverse.edge_types.len(), 1);
}

#[test]
fn bodies_take_their_rows_from_outside() {
    let text = "T | mv-apply a to typeof(long) on (where a > 1 | summarize sum(a))";
    let OperatorKind::MvApply(apply) = only_operator(text) else { panic!() };
    assert!(apply.body.source.is_none());
    assert_eq!(apply.body.operators.len(), 2);
    accepts("T | fork a=(count) (take 1) | partition by b { U | take 1 } | facet by c with (take 1)");
}

#[test]
fn spans_cover_what_was_parsed() {
    let text = "T | where  a == f(1) ";
    let OperatorKind::Where(predicate) = only_operator(text) else { panic!() };
    assert_eq!(predicate.span.slice(text), "a == f(1)");
    let pipeline = pipeline(text);
    assert_eq!(pipeline.operators[0].span.slice(text), "where  a == f(1)");
}

#[test]
fn each_operator_and_statement_shows_its_error() {
    let text = "let a = ;\nT | where b == | extend c = (d | take 1;\nU | wher e | project f g";
    let messages: Vec<_> = parse(text).errors.into_iter().map(|error| (error.message, error.hint)).collect();
    let expected = [
        ("expected an expression, found `;`", None),
        ("expected an expression, found `|`", None),
        ("expected `)`, found `;`", None),
        ("expected an operator, found `wher`", Some("did you mean `where`?")),
        ("expected `|`, `;` or the end of the query, found `g`", None),
    ];
    let expected: Vec<_> = expected.map(|(message, hint)| (message.to_owned(), hint.map(str::to_owned))).into();
    assert_eq!(messages, expected);
}

#[test]
fn an_error_leaves_the_rest_of_the_tree() {
    let parsed = parse("T | where | take 5");
    let StatementKind::Expression(Expr { kind: ExprKind::Pipeline(pipeline), .. }) = &parsed.query.statements[0].kind
    else {
        panic!()
    };
    assert_eq!(pipeline.operators[0].kind, OperatorKind::Invalid);
    assert!(matches!(pipeline.operators[1].kind, OperatorKind::Take(_)));
}

#[test]
fn hints_say_what_to_write() {
    for (text, hint) in [
        ("T | where not a", "`not` is a function: write `not(...)`"),
        ("T | where a && b", "use `and`"),
        ("T | where a || b", "`||` is written `or`"),
        ("T where a", "write `| where` for another operator"),
        ("T | project-out a", "did you mean `project`?"),
        ("T | where a AND b", "keywords are written in lower case: `and`"),
        ("T | join U on a = b", "`==` compares; `=` names what follows it"),
        ("T | where a is not null", "use `isnull(...)` or `isnotnull(...)`"),
        ("let f = (a) { a }", "parameters of a function have types: `(a:long) { ... }`"),
        ("T | where time > 1", "where `time` is meant as a name, write ['time']"),
        ("T | take 1\nU | take 2", "separate statements with `;`"),
        ("print dynamic({'a': b})", "a text wants quotes; a computed value wants `bag_pack` or `pack_array`"),
    ] {
        let hints: Vec<_> = parse(text).errors.into_iter().filter_map(|error| error.hint).collect();
        assert!(hints.iter().any(|found| found == hint), "{text}: {hints:?}");
    }
}

#[test]
fn numbers_that_do_not_fit_are_errors() {
    let parsed = parse("print 9223372036854775808, 99999999d");
    assert_eq!(parsed.errors[0].code, SyntaxErrorCode::NumberOutOfRange);
    accepts("datatable(a:long)[-9223372036854775808]");
}

#[test]
fn nesting_is_bounded() {
    for (start, opening, closing) in [
        ("", "(", ""),
        ("", "(", ")"),
        ("", "f(", ")"),
        ("", "a[", ""),
        ("", "toscalar(", ")"),
        ("", "union (", ")"),
        ("", "T | where (", ")"),
        ("", "T | join (", ")"),
        ("", "a in (", ")"),
        ("T | ", "mv-apply a on (", ""),
        ("T | ", "fork (", ")"),
        ("print dynamic(", "[", "]"),
        ("print dynamic(", "{'a':", ""),
        ("", "let f = () {", "};"),
        ("", "macro-expand E as X (", ")"),
    ] {
        let count = if opening == "(" { 1_000_000 } else { 5_000 };
        let text = format!("{start}{}{}", opening.repeat(count), closing.repeat(count));
        let parsed = parse(&text);
        assert!(parsed.errors.iter().any(|error| error.code == SyntaxErrorCode::TooDeep), "{start}{opening}");
    }
}

#[test]
fn chains_are_bounded_where_they_deepen_the_tree() {
    for part in ["a + ", "a.", "a[0].", "-1 * ", "a has b + "] {
        assert_eq!(parse(&format!("print {}a", part.repeat(100))).errors, [], "{part}");
        let parsed = parse(&format!("print {}a", part.repeat(100_000)));
        assert_eq!(parsed.errors[0].code, SyntaxErrorCode::TooDeep, "{part}");
    }
    for part in ["a.b.c == 1 or ", "a + b > c and ", "a, ", "f(a) and g(b) or "] {
        assert_eq!(parse(&format!("T | summarize {}d", part.repeat(20_000))).errors, [], "{part}");
    }
    assert_eq!(parse(&format!("T{}", " | where a == 1".repeat(20_000))).errors, []);
}

#[test]
fn deep_queries_within_the_bound_fit_a_small_stack() {
    let text = format!("print {}1{}", "f(".repeat(190), ")".repeat(190));
    let parsed = std::thread::Builder::new().stack_size(512 << 10).spawn(move || parse(&text)).unwrap().join();
    assert_eq!(parsed.unwrap().errors, []);
}

#[test]
fn strange_texts_are_parsed_in_linear_time() {
    const BYTES: usize = 20_000;
    for part in [
        "datetime(",
        "'",
        "\"a",
        "@\"",
        "~~~",
        "h",
        "!",
        "!in",
        "`",
        "é",
        "\\",
        "/",
        "//",
        "..",
        "1.",
        "1e",
        "[",
        "]",
        ")",
        "(a,",
        "(a, (b, ",
        "['a'] ",
        "a*",
        "* ",
        "|",
        ";",
        "| where (",
        "; let",
        "let f = (",
        "project-",
        "a b ",
        "{",
        "}",
        ")(",
        "T | where a in (b; ",
        "fork (",
        "step",
        "hint.",
        "hint.a=b ",
        "-->",
        "\u{feff}",
        "a.b*",
        "by ",
        "=",
    ] {
        for start in ["", "T | where ", "T | union "] {
            let text = format!("{start}{}", part.repeat(BYTES / part.len()));
            let started = Instant::now();
            for error in parse(&text).errors {
                assert!(error.render(&text).len() < 1_000);
            }
            // Unoptimised it takes a tenth of this; what is not linear takes far more.
            assert!(started.elapsed() < Duration::from_secs(1), "{start}{part}: {:?}", started.elapsed());
        }
    }
}

fn accepts(text: &str) -> Query {
    parse(text).into_result().unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

fn errors<const COUNT: usize>(text: &str) -> [(String, Option<String>); COUNT] {
    let errors: Vec<_> = parse(text).errors.into_iter().map(|error| (error.message, error.hint)).collect();
    errors.try_into().unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

fn statement(text: &str) -> StatementKind {
    let mut statements = accepts(text).statements;
    assert_eq!(statements.len(), 1);
    statements.remove(0).kind
}

fn expression(text: &str) -> Expr {
    let OperatorKind::Where(predicate) = only_operator(&format!("T | where {text}")) else { panic!("{text}") };
    predicate.expr
}

fn literal(text: &str) -> Literal {
    let ExprKind::Literal(literal) = expression(text).kind else { panic!("{text}") };
    literal
}

fn pipeline(text: &str) -> Pipeline {
    let StatementKind::Expression(Expr { kind: ExprKind::Pipeline(pipeline), .. }) = statement(text) else {
        panic!("{text}")
    };
    *pipeline
}

fn only_operator(text: &str) -> OperatorKind {
    let mut operators = pipeline(text).operators;
    assert_eq!(operators.len(), 1, "{text}");
    operators.remove(0).kind
}

fn shape(text: &str) -> String {
    let text = format!("T | where {text}");
    let OperatorKind::Where(predicate) = only_operator(&text) else { panic!("{text}") };
    shape_of(&text, &predicate.expr)
}

/// An expression with all its parentheses.
fn shape_of(text: &str, expr: &Expr) -> String {
    let inner = |expr: &Expr| shape_of(text, expr);
    match &expr.kind {
        ExprKind::Literal(Literal::String(value)) => format!("\"{value}\""),
        ExprKind::Name(name) => name.text.clone(),
        ExprKind::Member { base, name } => format!("{}.{}", inner(base), name.text),
        ExprKind::Element { base, index } => format!("{}[{}]", inner(base), inner(index)),
        ExprKind::Unary { operand, .. } => format!("(-{})", inner(operand)),
        ExprKind::Binary { operator_span, left, right, operator } => {
            assert_ne!(*operator, BinaryOperator::SearchTerm);
            format!("({} {} {})", inner(left), operator_span.slice(text), inner(right))
        }
        ExprKind::Logical { operator, operands } => {
            let word = if *operator == LogicalOperator::And { " and " } else { " or " };
            format!("({})", operands.iter().map(inner).collect::<Vec<_>>().join(word))
        }
        ExprKind::Call(call) => {
            let target = call.target.as_ref().map(|target| format!("{}.", inner(target))).unwrap_or_default();
            let arguments: Vec<_> = call
                .arguments
                .iter()
                .map(|argument| match &argument.names {
                    Names::One(name) => format!("{} = {}", name.text, inner(&argument.expr)),
                    _ => inner(&argument.expr),
                })
                .collect();
            format!("{target}{}({})", call.function.text, arguments.join(", "))
        }
        _ => expr.span.slice(text).to_owned(),
    }
}
