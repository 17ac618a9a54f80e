//! The chart that a model asks for, read leniently: a Vega-Lite specification, or only `mark`, `x`, `y`, `color` and
//! `title`. Parts that do not fit the result are dropped; nothing here is an error.

use serde_json::{Map, Value};

use super::column_roles::{ChartColumn, ColumnRole};
use super::fields::field_name;
use super::plan::ChartPlan;
use super::spec::MarkType;

/// The understood parts of the chart that a model asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChartOffer {
    mark: Option<MarkType>,
    x: Option<usize>,
    /// Several are measures in one chart.
    y: Vec<usize>,
    color: Option<usize>,
    is_grouped: bool,
    pub(super) title: Option<String>,
    /// Titles of columns.
    pub(super) titles: Vec<(usize, String)>,
}

impl ChartOffer {
    /// Reads an object, or the text of one.
    pub(super) fn read(offered: &Value, columns: &[ChartColumn<'_>]) -> Self {
        let parsed: Option<Value> = offered.as_str().and_then(|text| serde_json::from_str(text).ok());
        let Some(object) = parsed.as_ref().unwrap_or(offered).as_object() else { return Self::default() };
        let mut offer = Self { mark: mark(object), ..Self::default() };
        let title = object.get("title");
        offer.title = title.and_then(|title| title.as_str().or(title["text"].as_str())).map(super::fields::title);
        let nothing = Map::new();
        let encoding = object.get("encoding").and_then(Value::as_object).unwrap_or(&nothing);
        let mut channel = |names: &[&str]| -> Vec<usize> {
            let given = names.iter().find_map(|name| encoding.get(*name).or_else(|| object.get(*name)));
            let each =
                given.map_or(&[][..], |given| given.as_array().map_or(std::slice::from_ref(given), Vec::as_slice));
            each.iter()
                .filter_map(|field| {
                    let name = field.as_str().or_else(|| field["field"].as_str())?;
                    let index = find(name, columns)?;
                    if let Some(title) = field["title"].as_str() {
                        offer.titles.push((index, super::fields::title(title)));
                    }
                    Some(index)
                })
                .collect()
        };
        let (x, y) = (channel(&["x"]), channel(&["y"]));
        let color = channel(&["color", "colour", "series", "group", "detail"]);
        let offset = channel(&["xOffset", "yOffset", "x_offset"]);
        (offer.x, offer.y) = match x.as_slice() {
            // Several columns on x are the measures of horizontal bars.
            [_, _, ..] => (y.first().copied(), x),
            _ => (x.first().copied(), y),
        };
        offer.color = color.first().or(offset.first()).copied();
        offer.is_grouped = !offset.is_empty();
        offer
    }

    /// Returns the charts that the offer may mean, the closest first; the chart of the rules fills in what is missing.
    pub(super) fn plans(&self, ruled: Option<&ChartPlan>, columns: &[ChartColumn<'_>]) -> Vec<ChartPlan> {
        let mut plans = Vec::new();
        let marks = self.mark.into_iter().chain(ruled.map(|ruled| ruled.mark)).chain([MarkType::Bar]);
        for mark in marks {
            let Some(placed) = self.placed(mark, ruled, columns) else { continue };
            // A colour of the axis's own column distinguishes nothing.
            let color = self.color.filter(|color| *color != placed.base);
            let own =
                color.map(|color| ChartPlan { color: Some(color), is_grouped: self.is_grouped, ..placed.clone() });
            let rules = ruled.and_then(|ruled| ruled.color).map(|color| placed.clone().colored(color));
            plans.extend(own.into_iter().chain([placed]).chain(rules));
        }
        if let (Some(mark), Some(ruled)) = (self.mark, ruled) {
            plans.push(ChartPlan { mark, ..ruled.clone() });
        }
        plans
    }

    /// Places the columns on the axes.
    fn placed(&self, mark: MarkType, ruled: Option<&ChartPlan>, columns: &[ChartColumn<'_>]) -> Option<ChartPlan> {
        let is_measure = |index: usize| columns.get(index).is_some_and(|column| column.role == ColumnRole::Measure);
        match (self.x, self.y.as_slice()) {
            // Values on x over a column on y; lines and areas stay vertical.
            (Some(x), [y]) if is_measure(x) && !is_measure(*y) => {
                let is_horizontal = matches!(mark, MarkType::Bar | MarkType::Point);
                Some(ChartPlan { is_horizontal, ..ChartPlan::new(mark, *y, [x]) })
            }
            (Some(x), [_, ..]) => Some(ChartPlan::new(mark, x, self.y.clone())),
            (Some(x), []) => {
                let ruled = ruled?;
                let values = if is_measure(x) { vec![x] } else { ruled.measures.clone() };
                Some(ChartPlan::new(mark, if is_measure(x) { ruled.base } else { x }, values))
            }
            (None, [y, ..]) => {
                let ruled = ruled?;
                let is_value = is_measure(*y);
                let values = if is_value { self.y.clone() } else { ruled.measures.clone() };
                Some(ChartPlan::new(mark, if is_value { ruled.base } else { *y }, values))
            }
            (None, []) => ruled.map(|ruled| ChartPlan { mark, ..ruled.clone() }),
        }
    }
}

fn mark(object: &Map<String, Value>) -> Option<MarkType> {
    let given = ["mark", "type", "chart", "chart_type"].iter().find_map(|name| object.get(*name))?;
    let name = given.as_str().or_else(|| given["type"].as_str())?.to_lowercase();
    Some(match name.as_str() {
        "bar" | "barchart" | "column" | "columnchart" | "histogram" | "pie" | "arc" | "piechart" => MarkType::Bar,
        "line" | "linechart" | "trail" | "timechart" | "anomalychart" => MarkType::Line,
        "area" | "areachart" | "stackedareachart" => MarkType::Area,
        "point" | "circle" | "square" | "scatter" | "scatterplot" | "scatterchart" | "tick" => MarkType::Point,
        _ => return None,
    })
}

/// Finds the column of that name, given as a field path or as it is, without regard to case.
fn find(name: &str, columns: &[ChartColumn<'_>]) -> Option<usize> {
    let plain = field_name(name);
    let position = |wanted: &str| columns.iter().position(|column| column.name == wanted);
    position(name)
        .or_else(|| position(&plain))
        .or_else(|| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name.trim())))
}
