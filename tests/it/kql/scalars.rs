//! What expressions and statements of a query are, where SQL has nothing like it.

use super::{answered, cells, code_of, flights};
use crate::sql::{admin, engine, rows};

async fn all_are(session: &querent_engine::Session, cases: &[(&str, &str)]) {
    for (query, expected) in cases {
        let written: Vec<String> = cells(session, query).await.iter().map(|row| row.join(" ")).collect();
        assert_eq!(written.join("|"), *expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_kustos() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    all_are(
        &session,
        &[
            // `*` within a term is any text, and its ends are those of words.
            ("print a = 'Lab1 PC' | search 'Lab*PC' | project a", "Lab1 PC"),
            ("print a = 'Lab1 PCs' | search 'Lab*PC' | count", "0"),
            ("print a = 'a lab1 pcs', b = 'x' | search a:'Lab*PC*' | project b", "x"),
            ("print a = 'a lab1 pcs', b = 'x' | search kind=case_sensitive 'Lab*PC*' | count", "0"),
            ("print a = 'ab b' | search 'ab' | search 'b' | project a, ['$table']", "ab b search_arg0"),
            // Constants with `in` are constants.
            ("let mode = 2; print iff(mode in (1, 2), 1d, 1h)", "1.00:00:00"),
            ("range x from 1 to 9 step 1 | take iff(3 !in (1, 2), 2, 1) | count", "2"),
            ("print assert(1 in (1), 'm'), long(null) in (1), long(null) !in (1)", "True False True"),
            ("range x from 1 to 3 step 1 | sort by x asc | scan with (step a: x in (1, 3);)", "1|3"),
            // A `toscalar` of a function without parameters has one value.
            ("let y = () { toscalar(rand(1000000)) }; print y == y, y() == y()", "True True"),
            ("let y = () { toscalar(range x from 1 to 9 step 1 | project new_guid()) }; print y == y", "True"),
            // A random condition is one of the rows before it, not of those that they are made of.
            ("range x from 1 to 1000 step 1 | summarize c = count() by k = x % 4 | where rand() < 0.9 | summarize countif(c != 250)", "0"),
            ("range x from 1 to 1000 step 1 | summarize c = count(), m = max(x) | where rand() > 2 | count", "0"),
            // Both ends are compared with one number: about a fifth of them are between.
            ("range x from 1 to 20000 step 1 | where toint(rand() * 10) between (4 .. 5) | summarize n = count() | project n between (3600 .. 4400)", "True"),
            // Members may be called as keywords are, and names of types have no case.
            ("print d = dynamic({'time': 1, 'title': 2, 'by': 3, 'in': 4}) | project d.time, d.title, d.by, d.in", "1 2 3 4"),
            ("print d = dynamic({'first': {'string': 'a'}}) | project d.first.string, d.['first']['string']", "a a"),
            ("print (flags, rest) = array_sort_asc(dynamic([2, 1]), dynamic([4, 3])) | project flags", "[1,2]"),
            ("datatable(g: uuid, t: DateTime)[guid(null), datetime(2020-01-01)] | project isnull(g), t", "True 2020-01-01T00:00:00.0000000Z"),
            ("print extract('([0-9]+)', 1, 'a 12', typeof(Long))", "12"),
            ("print datetime(Jan 1 2020), todatetime('8:00') == startofday(now()) + 8h", "2020-01-01T00:00:00.0000000Z True"),
            ("print hash(true) == hash(false), hash(1.5) == hash(1.5), hash(int(1)) % 10 < 10, hash(1.5, 3) < 3", "False True True True"),
            ("print hash_many(1, 'a') == hash_combine(hash(1), hash('a')), hash_many(1, 'a') == hash_many('a', 1)", "True False"),
            // Every element of an array has one path.
            (
                r#"print treepath(parse_json('{"listProperty":[100,200,300,"abcde",{"x":"y"}]}'))"#,
                r#"["['listProperty']","['listProperty'][0]","['listProperty'][0]['x']"]"#,
            ),
            // Nothing has no schema and no sketch.
            ("print d = dynamic(1) | where d == 2 | summarize isnull(buildschema(d)), isnull(hll(d)), isnull(tdigest(tolong(d)))", "True True True"),
        ],
    )
    .await;
    let degrees = "let E = datatable(s:string, t:string)['a', 'b']; E | make-graph s --> t with_node_id=id \
                   | graph-match (x)-->(y) project node_degree_out(x), node_degree_in(y)";
    assert_eq!(answered(&session, degrees).await.unwrap().0, ["node_degree_out_x:long", "node_degree_in_y:long"]);
    let chosen =
        "let T = datatable(a:long)[1]; let f = (x:(*), c:string) { x | project column_ifexists(c, 'none') }; f(T, 'a')";
    assert_eq!(answered(&session, chosen).await.unwrap().0, ["a:long"]);
    let touching = "print geo_intersection_2polygons(\
                    dynamic({'type':'Polygon','coordinates':[[[2,45],[0,45],[1,44],[2,45]]]}), \
                    dynamic({'type':'MultiPolygon','coordinates':[[[[3,44],[2,45],[2,43],[3,44]]],\
                    [[[1.192,45.265],[1.005,44.943],[1.356,44.937],[1.192,45.265]]]]}))\
                    | project print_0.geometries[0], print_0.geometries[1].type, array_length(print_0.geometries)";
    let touched = cells(&session, touching).await;
    assert_eq!(touched[0][1..], ["Polygon", "2"]);
    assert!(touched[0][0].contains("\"Point\""), "{touched:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_tables_have_no_case() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    rows(&session, "CREATE SCHEMA other").await.unwrap();
    rows(&session, "CREATE TABLE other.flights AS SELECT 7 AS flight").await.unwrap();
    all_are(
        &session,
        &[
            ("union FLI* | count", "5"),
            ("search in (Fli*) 'AA' | count", "2"),
            ("union database('default').Fli* | count", "5"),
            ("database('default').['Flights'] | count", "5"),
            ("find in (database('*').fli*) where flight == 7 | count", "1"),
            ("union database('oth*').* | count", "1"),
            ("union database('*').flights | count", "6"),
        ],
    )
    .await;
    assert_eq!(code_of(&session, "union database('no*').flights | count").await, "kql_unknown_table");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kusto_refuses_is_refused() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let table = "let D = datatable(x:long, y:long)[1, 2];";
    for (query, code, said) in [
        ("let f = (x:int) { x + 1 }; print f('a')", "kql_type_mismatch", "the argument `x` must be int, not string"),
        ("let f = (x:datetime) { x }; print f(1)", "kql_type_mismatch", "must be datetime, not long"),
        ("let x = 5; let x = 6; print x", "kql_invalid", "`x` is there already"),
        ("let f = () { let a = 1; let a = 2; a }; print f()", "kql_invalid", "`a` is there already"),
        ("D | where x = 1", "kql_type_mismatch", "it is a long, no bool"),
        ("print x = dynamic([1]) | mv-expand a = x, a = x", "kql_invalid", "`a` is there twice"),
        ("union withsource=x D, D", "kql_invalid", "two columns would be called `x`"),
        ("D | sort by x asc | scan with_match_id=y with (step a: true;)", "kql_invalid", "`y` is there already"),
        ("print 1 | render nosuch", "kql_invalid", "there is no chart `nosuch`"),
        ("print 1 | render timechart | take 1", "kql_invalid", "`render` is the last operator"),
        ("evaluate schema_merge('a')", "kql_not_supported", "known to Kusto"),
        ("evaluate sql_request('a', 'b')", "kql_not_supported", "the plugin `sql_request`"),
        (
            "let v = (x_:long) { toscalar(D | where x == x_ | project y) }; D | extend z = v(x)",
            "kql_invalid",
            "`x` is a value of each row",
        ),
    ] {
        let error = answered(&session, &format!("{table} {query}")).await.unwrap_err();
        assert_eq!(error.code(), code, "{query}: {error}");
        assert!(error.to_string().contains(said), "{query}: {error}");
    }
    all_are(&session, &[("let f = (x:real, s:string) { strcat(s, x) }; print f(1, 'a'), f(int(2), 'b')", "a1.0 b2.0")])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_and_the_greatest_of_a_group_may_be_infinite() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let infinite = "datatable(k: long, x: real) [1, real(+inf), 1, real(+inf), 2, real(-inf), 3, 2.5] \
                    | summarize least = min(x), greatest = max(x) by k | sort by k asc \
                    | project isinf(least), isinf(greatest)";
    all_are(&session, &[(infinite, "True True|True True|False False")]).await;
}
