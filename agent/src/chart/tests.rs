//! The rules as a table: columns and rows to mark and fields; and what a model may want instead.

use serde_json::json;

use super::*;

/// Returns the outline of the chart; columns are given as `name:kind`.
fn drawn(columns: &[&str], rows: Value, offered: Option<Value>) -> Option<String> {
    spec(columns, rows, offered).map(|spec| outline(&spec))
}

fn spec(columns: &[&str], rows: Value, offered: Option<Value>) -> Option<Spec> {
    let (names, kinds): (Vec<String>, Vec<ColumnKind>) = columns
        .iter()
        .map(|column| {
            let (name, kind) = column.rsplit_once(':').unwrap();
            let kind = match kind {
                "number" => ColumnKind::Number,
                "time" => ColumnKind::Time,
                "text" => ColumnKind::Text,
                "bool" => ColumnKind::Boolean,
                _ => ColumnKind::Other,
            };
            (name.to_owned(), kind)
        })
        .unzip();
    let rows: Vec<Vec<Value>> = serde_json::from_value(rows).unwrap();
    let spec = chart_of(&names, &kinds, &rows, offered.as_ref());
    if let Some(spec) = &spec {
        let written = serde_json::to_string(spec).unwrap();
        assert_eq!(&serde_json::from_str::<Spec>(&written).unwrap(), spec, "{written}");
    }
    spec
}

/// Returns an outline such as `bar x=carrier:nominal y=n:quantitative`.
fn outline(spec: &Spec) -> String {
    let channel = |name: &str, channel: &Channel| {
        format!(" {name}={}:{}", channel.field, json!(channel.r#type).as_str().unwrap())
    };
    let encoding = &spec.encoding;
    let mut text = json!(spec.mark.r#type).as_str().unwrap().to_owned();
    text += &channel("x", &encoding.x);
    text += &channel("y", &encoding.y);
    for (name, given) in [("xOffset", &encoding.x_offset), ("yOffset", &encoding.y_offset), ("color", &encoding.color)]
    {
        text += &given.as_ref().map(|given| channel(name, given)).unwrap_or_default();
    }
    text
}

#[test]
fn results_become_the_chart_that_suits_them() {
    let months = json!([["2013-01-01", 3, 4], ["2013-02-01", 5, 6], ["2013-03-01", 4, 1]]);
    let carriers = json!([["UA", 58665], ["B6", 54635], ["EV", 54173]]);
    for (columns, rows, expected) in [
        (
            vec!["month:time", "n:number"],
            json!([["2013-01-01", 3], ["2013-02-01", 5]]),
            "line x=month:temporal y=n:quantitative",
        ),
        (
            vec!["month:time", "a:number", "b:number"],
            months,
            "line x=month:temporal y=value:quantitative color=measure:nominal",
        ),
        (
            vec!["month:time", "flights:number", "share:number"],
            json!([["2013-01-01", 3000, 0.5], ["2013-02-01", 5000, 0.6]]),
            "line x=month:temporal y=flights:quantitative",
        ),
        (
            vec!["at:time", "n:number"],
            json!([["2013-01-01", 3], ["2013-01-01", 5], ["2013-01-02", 1]]),
            "point x=at:temporal y=n:quantitative",
        ),
        (vec!["month:number", "n:number"], json!([[1, 3], [2, 5]]), "line x=month:ordinal y=n:quantitative"),
        (
            vec!["month:text", "n:number"],
            json!([["2013-01", 3], ["2013-02", 5]]),
            "line x=month:temporal y=n:quantitative",
        ),
        (
            vec!["year:number", "month:number", "n:number"],
            json!([[2012, 1, 3], [2012, 2, 5], [2013, 1, 4], [2013, 2, 4]]),
            "line x=month:ordinal y=n:quantitative color=year:ordinal",
        ),
        (
            vec!["year:number", "month:number", "n:number"],
            json!([[2013, 1, 3], [2013, 2, 5]]),
            "line x=month:ordinal y=n:quantitative",
        ),
        (
            vec!["day:time", "origin:text", "n:number"],
            json!([
                ["2013-01-01", "JFK", 1],
                ["2013-01-01", "LGA", 2],
                ["2013-01-02", "JFK", 3],
                ["2013-01-02", "LGA", 4]
            ]),
            "line x=day:temporal y=n:quantitative color=origin:nominal",
        ),
        (vec!["carrier:text", "n:number"], carriers.clone(), "bar x=carrier:nominal y=n:quantitative"),
        (
            vec!["airline:text", "n:number"],
            json!([["United Air Lines Inc.", 58665], ["JetBlue", 54635]]),
            "bar x=n:quantitative y=airline:nominal",
        ),
        (
            vec!["customer_id:number", "revenue:number"],
            json!([[17, "10.5"], [4, "9.25"]]),
            "bar x=customer_id:nominal y=revenue:quantitative",
        ),
        (
            vec!["carrier:text", "name:text", "n:number"],
            json!([["UA", "United", 3], ["B6", "JetBlue", 2]]),
            "bar x=name:nominal y=n:quantitative",
        ),
        (
            vec!["name:text", "id:number", "n:number"],
            json!([["United", 1, 3], ["JetBlue", 2, 2]]),
            "bar x=name:nominal y=n:quantitative",
        ),
        (vec!["late:bool", "n:number"], json!([[true, 3], [false, 2]]), "bar x=late:nominal y=n:quantitative"),
        (
            vec!["origin:text", "dep:number", "arr:number"],
            json!([["JFK", 12, 5], ["LGA", 10, 6]]),
            "bar x=origin:nominal y=value:quantitative xOffset=measure:nominal color=measure:nominal",
        ),
        (
            vec!["origin:text", "carrier:text", "n:number"],
            json!([["JFK", "UA", 1], ["JFK", "B6", 2], ["JFK", "EV", 9], ["LGA", "UA", 3], ["LGA", "B6", 4]]),
            "bar x=carrier:nominal y=n:quantitative xOffset=origin:nominal color=origin:nominal",
        ),
        (
            vec!["distance:number", "delay:number"],
            json!([[100, 3], [200, 5], [300, 4]]),
            "point x=distance:quantitative y=delay:quantitative",
        ),
        (
            vec!["carrier:text", "delay:number"],
            json!([["UA", 3], ["UA", 5], ["B6", 4]]),
            "point x=delay:quantitative y=carrier:nominal",
        ),
        (
            vec!["a.b[0]:text", "v.x:number"],
            json!([["p", 1], ["q", 2]]),
            "bar x=a\\.b\\[0\\]:nominal y=v\\.x:quantitative",
        ),
        (
            vec!["carrier:text", "tags:other", "n:number"],
            json!([["UA", [], 1], ["B6", [], 2]]),
            "bar x=carrier:nominal y=n:quantitative",
        ),
    ] {
        assert_eq!(drawn(&columns, rows, None).as_deref(), Some(expected), "{columns:?}");
    }
}

#[test]
fn results_not_worth_a_chart_have_none() {
    let many: Vec<Value> = (0..60).map(|n| json!([format!("c{n}"), n])).collect();
    let series: Vec<Value> =
        (0..144).map(|n| json!([format!("2013-01-{}", n % 12 + 10), format!("c{}", n / 12), n])).collect();
    for (columns, rows) in [
        (vec!["n:number"], json!([[42]])),
        (vec!["carrier:text", "n:number"], json!([["UA", 1]])),
        (vec!["carrier:text", "n:number"], json!([])),
        (vec!["a:text", "b:text"], json!([["x", "y"], ["z", "w"]])),
        (vec!["n:number"], json!([[1], [2]])),
        (vec!["id:number", "customer_id:number"], json!([[1, 2], [3, 4]])),
        (vec!["carrier:text", "n:number"], json!(many)),
        (vec!["day:time", "carrier:text", "n:number"], json!(series)),
        (vec!["carrier:text", "n:number"], json!([["UA", null], ["B6", null]])),
        (
            vec!["a:text", "b:text", "c:text", "n:number"],
            json!([["a", "b", "c", 1], ["a", "c", "d", 2], ["b", "b", "d", 2], ["b", "c", "c", 2]]),
        ),
        (vec!["carrier:text", "__proto__:number"], json!([["UA", 1], ["B6", 2]])),
    ] {
        assert_eq!(drawn(&columns, rows, None), None, "{columns:?}");
    }
}

#[test]
fn a_model_refines_the_chart_as_far_as_it_fits() {
    let columns = ["carrier:text", "origin:text", "n:number", "delay:number"];
    let rows = json!([
        ["UA", "JFK", 1, 7],
        ["UA", "LGA", 2, 8],
        ["B6", "JFK", 3, 9],
        ["B6", "LGA", 4, 1],
        ["EV", "LGA", 4, 1]
    ]);
    let ruled = "bar x=carrier:nominal y=n:quantitative xOffset=origin:nominal color=origin:nominal";
    let measured = "bar x=carrier:nominal y=delay:quantitative xOffset=origin:nominal color=origin:nominal";
    for (offered, expected) in [
        (json!({}), ruled),
        (json!("nonsense"), ruled),
        (json!([1, 2]), ruled),
        (json!({"mark": "sparkles", "encoding": {"x": {"field": "nowhere"}}}), ruled),
        (json!({"mark": "line", "x": "carrier", "y": "n"}), ruled),
        (json!({"y": "delay"}), measured),
        (
            json!({"y": "carrier", "x": "delay", "color": "origin"}),
            "bar x=delay:quantitative y=carrier:nominal color=origin:nominal",
        ),
        (
            json!({"mark": {"type": "bar"}, "encoding": {"x": {"field": "origin"}, "y": {"field": "N", "aggregate": "sum"}, "color": {"field": "carrier"}}}),
            "bar x=origin:nominal y=n:quantitative color=carrier:nominal",
        ),
        (
            json!("{\"mark\": \"scatter\", \"x\": \"n\", \"y\": \"delay\", \"color\": \"origin\"}"),
            "point x=n:quantitative y=delay:quantitative color=origin:nominal",
        ),
    ] {
        assert_eq!(drawn(&columns, rows.clone(), Some(offered.clone())).as_deref(), Some(expected), "{offered}");
    }
    let offered = json!({"title": "Flights\nby carrier", "encoding": {"y": {"field": "n", "title": "flights"}}});
    let titled = spec(&columns, rows, Some(offered)).unwrap();
    assert_eq!(titled.title.as_deref(), Some("Flights by carrier"));
    assert_eq!(titled.encoding.y.title.as_deref(), Some("flights"));
}

#[test]
fn a_model_may_ask_for_what_the_rules_would_not_draw() {
    let columns = ["year:number", "rank:number"];
    let rows = json!([[2011, 1], [2012, 2], [2013, 3]]);
    for (offered, expected) in [
        (json!({"mark": "bar"}), "bar x=year:ordinal y=rank:quantitative"),
        (json!({"mark": "area"}), "area x=year:ordinal y=rank:quantitative"),
        (json!({"mark": "point", "x": "rank", "y": "year"}), "point x=rank:quantitative y=year:ordinal"),
        (json!({"x": "rank"}), "line x=year:ordinal y=rank:quantitative"),
        (json!({"mark": "line", "x": "rank", "y": "year"}), "line x=year:ordinal y=rank:quantitative"),
    ] {
        assert_eq!(drawn(&columns, rows.clone(), Some(offered.clone())).as_deref(), Some(expected), "{offered}");
    }
}

#[test]
fn every_part_of_a_specification() {
    let spec = spec(
        &["mo'nth:time", "a.b:number", "value:number"],
        json!([["2013-01-01", 1, 2], ["2013-02-01", "2", 3]]),
        None,
    );
    let path = "https://vega.github.io/schema/vega-lite/v5.json";
    assert_eq!(
        json!(spec),
        json!({
            "$schema": path,
            "data": {"name": "table"},
            "transform": [
                {"calculate": "toDate(datum[\"mo'nth\"])", "as": "mo_nth"},
                {"calculate": "toNumber(datum[\"a.b\"])", "as": "a.b"},
                {"calculate": "toNumber(datum[\"value\"])", "as": "value"},
                {"fold": ["a\\.b", "value"], "as": ["measure", "value_"]},
            ],
            "mark": {"type": "line", "tooltip": true, "point": true},
            "encoding": {
                "x": {"field": "mo_nth", "type": "temporal", "title": "mo'nth", "scale": {"type": "utc"}},
                "y": {"field": "value_", "type": "quantitative", "title": "a.b, value"},
                "color": {"field": "measure", "type": "nominal", "title": "measure", "sort": null},
            },
        })
    );
}
