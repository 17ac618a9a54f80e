//! Charts drawn and read back as XML: what is there, and that nothing in a result breaks the image.

use std::path::Path;

use querent_agent::chart::Spec;
use serde_json::json;

use super::*;

fn spec(mark: &str, encoding: Value) -> Value {
    json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"name": "table"},
        "mark": {"type": mark, "tooltip": true},
        "encoding": encoding,
    })
}

fn drawn(spec: &Value, rows: &Value) -> String {
    let spec: Spec = serde_json::from_value(spec.clone()).unwrap();
    draw::svg(&spec, &rows::data(&spec, rows.as_array().unwrap()))
}

fn bars() -> Value {
    let mut bars = spec(
        "bar",
        json!({
            "x": {"field": "carrier", "type": "nominal", "sort": null},
            "y": {"field": "n", "type": "quantitative", "title": "flights"},
        }),
    );
    bars["transform"] = json!([{"calculate": "toNumber(datum[\"n\"])", "as": "n"}]);
    bars
}

fn marks(svg: &str) -> usize {
    svg.matches("class=\"mark\"").count()
}

#[test]
fn bars_stand_as_high_as_their_numbers() {
    let svg =
        drawn(&bars(), &json!([{"carrier": "UA", "n": "10"}, {"carrier": "B6", "n": 5}, {"carrier": "X", "n": null}]));
    assert_eq!(marks(&svg), 2);
    let heights: Vec<f64> = svg
        .lines()
        .filter(|line| line.contains("class=\"mark\""))
        .map(|line| line.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(heights, [320.0, 160.0]);
    for shown in [">UA<", ">B6<", ">flights<", ">10<", "carrier: UA; flights: 10"] {
        assert!(svg.contains(shown), "{shown} in {svg}");
    }
}

#[test]
fn every_mark_is_drawn() {
    let rows = json!([
        {"t": "2013-01-01", "a.b": "p", "n": 3, "m": 2}, {"t": "2013-02-01", "a.b": "q", "n": -4, "m": 2},
        {"t": "2013-02-01", "a.b": "p", "n": 5, "m": 2},
    ]);
    let nominal = json!({"field": "a\\.b", "type": "nominal", "sort": null});
    let time = json!({"field": "t", "type": "temporal", "scale": {"type": "utc"}});
    let number = |field: &str| json!({"field": field, "type": "quantitative"});
    for (mark, encoding, expected) in [
        ("line", json!({"x": time, "y": number("n"), "color": nominal}), 5),
        ("area", json!({"x": time, "y": number("n"), "color": nominal}), 2),
        ("bar", json!({"x": time, "y": number("n")}), 3),
        ("bar", json!({"x": number("n"), "y": nominal}), 3),
        ("bar", json!({"x": nominal, "y": number("n"), "color": nominal, "xOffset": nominal}), 3),
        ("bar", json!({"y": nominal, "x": number("n"), "color": nominal, "yOffset": nominal}), 3),
        ("point", json!({"x": number("m"), "y": number("n"), "color": nominal}), 3),
        ("point", json!({"x": number("m"), "y": nominal}), 3),
        ("line", json!({"x": time, "y": number("value"), "color": {"field": "key", "type": "nominal"}}), 8),
    ] {
        let mut spec = spec(mark, encoding.clone());
        spec["transform"] = json!([{"calculate": "toDate(datum[\"t\"])", "as": "t"}]);
        if encoding["y"]["field"] == "value" {
            let fold = json!({"fold": ["n", "m"], "as": ["key", "value"]});
            spec["transform"].as_array_mut().unwrap().push(fold);
        }
        let svg = drawn(&spec, &rows);
        assert_eq!(marks(&svg), expected, "{mark} {encoding}: {svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn nothing_in_a_result_breaks_the_image() {
    let hostile = "</text><script>alert(1)</script>\u{0}\u{b}]]>&\"'";
    let mut titled = bars();
    titled["title"] = json!(hostile);
    titled["encoding"]["y"]["title"] = json!(hostile);
    let long = "wide ".repeat(1_000);
    let rows = json!([
        {"carrier": hostile, "n": 1e308}, {"carrier": long, "n": -1e308}, {"carrier": null, "n": 5e-324},
        {"carrier": {"a": [1]}, "n": "NaN"}, {"carrier": true, "n": "Infinity"}, {"n": {}}, 7, null,
    ]);
    let svg = drawn(&titled, &rows);
    assert!(!svg.contains("<script"), "{svg}");
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()), "{svg}");
    assert!(!svg.contains("NaN\"") && !svg.contains("inf\""), "{svg}");
    assert_eq!(marks(&svg), 3);
    assert_eq!(marks(&drawn(&bars(), &json!([]))), 0);
}

#[test]
fn only_svg_is_drawn() {
    assert_eq!(svg_path("a/b.SVG").unwrap(), Path::new("a/b.SVG"));
    assert!(svg_path("chart.png").unwrap_err().contains(".svg"));
    assert!(svg_path("chart").is_err());
}

#[test]
fn bars_below_zero_go_to_the_left_in_a_terminal() {
    let shown = |rows: Value| {
        let terminal = Terminal { width: Some(30), height: 24, has_colors: false };
        let rows = rows.as_array().unwrap().clone();
        draw_text(&Chart { spec: bars(), rows }, &terminal).unwrap()
    };
    let both = shown(json!([{"carrier": "UA", "n": 10}, {"carrier": "B6", "n": -5}]));
    let lines: Vec<&str> = both.lines().collect();
    assert!(lines[1].starts_with("UA        │██████████████▋ "), "{both}");
    assert!(lines[2].starts_with("B6 ███████│ "), "{both}");
    let above = shown(json!([{"carrier": "UA", "n": 10}, {"carrier": "B6", "n": 5}]));
    assert!(above.contains("\nUA │██████████") && above.contains("\nB6 │█████"), "{above}");
    let huge = shown(json!([{"carrier": "UA", "n": 1e308}, {"carrier": "B6", "n": -1e308}]));
    assert!(huge.contains("█│ -") && huge.contains(" │█"), "{huge}");
}
