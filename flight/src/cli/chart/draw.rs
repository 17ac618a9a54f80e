//! Drawing: the layout of the plot, its axes and its legend, and the marks.

use std::collections::HashMap;

use querent_agent::chart::{Channel, FieldType, MarkType, Spec};

use super::axis::{ChartAxis, labels, number_label};
use super::rows::{ChartValue, Datum};
use super::svg::{FONT_SIZE, Svg, TextStyle, cut_to, text_width};

/// Cube's colours.
const COLORS: [&str; 10] =
    ["#4E79A7", "#F28E2B", "#E15759", "#76B7B2", "#59A14F", "#EDC948", "#B07AA1", "#FF9DA7", "#9C755F", "#BAB0AC"];
const GRID: &str = "#F0F0F0";
const DOMAIN: &str = "#E0E0E0";
const PLOT_WIDTH: f64 = 560.0;
const PLOT_HEIGHT: f64 = 320.0;
const PADDING: f64 = 16.0;
/// The height of a band on y.
const BAND_HEIGHT: f64 = 24.0;
/// The most room of an axis's labels, and of a legend's.
const MAX_LABELS_WIDTH: f64 = 220.0;
const MAX_LABELS_HEIGHT: f64 = 110.0;
/// The most labels of one axis.
const MAX_LABELS: usize = 60;
/// The part of a band that is left free.
const BAND_PADDING: f64 = 0.1;
/// The widest bar over time.
const MAX_TIME_BAR: f64 = 40.0;
const POINT_RADIUS: f64 = 4.0;

/// Draws the chart of these data.
pub(super) fn svg(spec: &Spec, data: &[Datum]) -> String {
    let series = spec.encoding.color.as_ref().map_or_else(Vec::new, |color| series(color, data));
    let layers = PlotLayers::new(spec, data, &series);
    let frame = PlotArea::new(spec, &layers, &series);
    let mut out = Svg::default();
    let label =
        spec.title.clone().unwrap_or_else(|| format!("{} by {}", title(&spec.encoding.y), title(&spec.encoding.x)));
    if let Some(title) = &spec.title {
        let style = TextStyle { size: 15.0, is_bold: true, ..TextStyle::new("start") };
        out.text((PADDING, PADDING + 12.0), &cut_to(title, frame.width - 2.0 * PADDING), style);
    }
    frame.axes(&mut out, spec, &layers);
    match spec.mark.r#type {
        MarkType::Bar => bars(&mut out, spec, &layers, &frame, series.len()),
        MarkType::Line | MarkType::Area => lines(&mut out, spec, &layers, &frame),
        MarkType::Point => points(&mut out, spec, &layers, &frame),
    }
    frame.legend(&mut out, spec, &series);
    out.finish(frame.width, frame.height, &label)
}

/// Returns the labels of the colours, in order.
pub(super) fn series(color: &Channel, data: &[Datum]) -> Vec<String> {
    labels(color.sort, data.iter().filter_map(|datum| datum.color.as_ref()))
}

/// The data as marks, and their axes.
pub(super) struct PlotLayers<'a> {
    pub(super) x: ChartAxis,
    pub(super) y: ChartAxis,
    pub(super) marks: Vec<PlacedMark<'a>>,
    /// Whether values are on x.
    pub(super) lies: bool,
}

/// A mark's data.
pub(super) struct PlacedMark<'a> {
    pub(super) datum: &'a Datum,
    /// The index of its colour.
    pub(super) series: usize,
    /// Where its value begins and ends.
    pub(super) from: f64,
    pub(super) to: f64,
}

impl<'a> PlotLayers<'a> {
    pub(super) fn new(spec: &Spec, data: &'a [Datum], series: &[String]) -> Self {
        let encoding = &spec.encoding;
        let lies = encoding.x.r#type == FieldType::Quantitative && encoding.y.r#type != FieldType::Quantitative;
        let is_grouped = encoding.x_offset.is_some() || encoding.y_offset.is_some();
        let stacks = match spec.mark.r#type {
            MarkType::Bar => !is_grouped && encoding.color.is_some(),
            MarkType::Area => encoding.color.is_some(),
            MarkType::Line | MarkType::Point => false,
        };
        // The sums so far at each position, upwards and downwards.
        let mut sums: HashMap<(String, bool), f64> = HashMap::new();
        let mut marks = Vec::with_capacity(data.len());
        for datum in data {
            let (base, value) = if lies { (&datum.y, &datum.x) } else { (&datum.x, &datum.y) };
            let Some(value) = value.number() else { continue };
            let series = datum.color.as_ref().and_then(|color| series.iter().position(|known| *known == color.label()));
            let from = if stacks {
                let sum = sums.entry((base.label(), value < 0.0)).or_insert(0.0);
                let from = *sum;
                *sum += value;
                from
            } else {
                0.0
            };
            marks.push(PlacedMark { datum, series: series.unwrap_or(0), from, to: from + value });
        }
        let from_zero = matches!(spec.mark.r#type, MarkType::Bar | MarkType::Area);
        let mut ends: Vec<f64> = marks.iter().map(|mark| mark.to).collect();
        ends.extend(from_zero.then_some(0.0));
        // Stacked values end at their sums.
        let (of_x, of_y): (Vec<&ChartValue>, Vec<&ChartValue>) = data.iter().map(|datum| (&datum.x, &datum.y)).unzip();
        let (x, y) = if lies {
            (ChartAxis::new(&encoding.x, [].into_iter(), &ends), ChartAxis::new(&encoding.y, of_y.into_iter(), &[]))
        } else {
            (ChartAxis::new(&encoding.x, of_x.into_iter(), &[]), ChartAxis::new(&encoding.y, [].into_iter(), &ends))
        };
        Self { x, y, marks, lies }
    }
}

/// The layout of the image.
struct PlotArea {
    width: f64,
    height: f64,
    left: f64,
    top: f64,
    plot_width: f64,
    plot_height: f64,
    /// Whether the labels of x are turned, and how wide they may be.
    turned: bool,
    labels_width: f64,
}

impl PlotArea {
    fn new(spec: &Spec, layers: &PlotLayers<'_>, series: &[String]) -> Self {
        let widest = |axis: &ChartAxis| axis.ticks().iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max);
        let bands = layers.y.is_band().then(|| layers.y.ticks().len());
        let grouped = if spec.encoding.y_offset.is_some() { series.len().max(1) as f64 } else { 1.0 };
        let plot_height = bands
            .map_or(PLOT_HEIGHT, |bands| (bands as f64 * BAND_HEIGHT * grouped.max(1.0).sqrt()).clamp(80.0, 4_000.0));
        let left = PADDING + FONT_SIZE + 12.0 + widest(&layers.y).min(MAX_LABELS_WIDTH) + 8.0;
        let step = PLOT_WIDTH / layers.x.ticks().len().max(1) as f64;
        let turned = layers.x.is_band() && widest(&layers.x) > step - 4.0;
        let labels_height = if turned { (widest(&layers.x) * 0.75).min(MAX_LABELS_HEIGHT) } else { FONT_SIZE };
        let top = PADDING + if spec.title.is_some() { 28.0 } else { 0.0 } + 6.0;
        let legend = if series.is_empty() {
            0.0
        } else {
            let names = series.iter().map(|name| text_width(name)).fold(0.0, f64::max);
            let title = spec.encoding.color.as_ref().map_or(0.0, |color| text_width(title(color)));
            24.0 + (names + 18.0).max(title).min(MAX_LABELS_WIDTH)
        };
        let below = 8.0 + labels_height + 12.0 + FONT_SIZE + PADDING;
        let legend_height = top + 20.0 + series.len() as f64 * 18.0 + PADDING;
        Self {
            width: left + PLOT_WIDTH + legend + PADDING,
            height: (top + plot_height + below).max(legend_height),
            left,
            top,
            plot_width: PLOT_WIDTH,
            plot_height,
            turned,
            labels_width: if turned { MAX_LABELS_HEIGHT / 0.75 } else { step.max(60.0) },
        }
    }

    /// Returns the pixel of a position on the two axes, each from 0 to 1.
    fn pixel(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * self.plot_width, self.top + (1.0 - y) * self.plot_height)
    }

    /// A band axis on y reads downwards.
    fn place_y(axis: &ChartAxis, place: f64) -> f64 {
        if axis.is_band() { 1.0 - place } else { place }
    }

    fn axes(&self, out: &mut Svg, spec: &Spec, layers: &PlotLayers<'_>) {
        for (place, label) in readable(layers.y.ticks()) {
            let place = Self::place_y(&layers.y, place);
            let (x, y) = self.pixel(0.0, place);
            if !layers.y.is_band() {
                out.line((x, y), self.pixel(1.0, place), GRID);
            }
            out.text((x - 8.0, y + 4.0), &cut_to(label, MAX_LABELS_WIDTH), TextStyle::new("end"));
        }
        for (place, label) in readable(layers.x.ticks()) {
            let (x, y) = self.pixel(place, 0.0);
            if !layers.x.is_band() {
                out.line((x, y), self.pixel(place, 1.0), GRID);
            }
            let label = cut_to(label, self.labels_width);
            if self.turned {
                out.text((x + 4.0, y + 14.0), &label, TextStyle { turned: -45.0, ..TextStyle::new("end") });
            } else {
                out.text((x, y + 18.0), &label, TextStyle::new("middle"));
            }
        }
        out.line(self.pixel(0.0, 0.0), self.pixel(1.0, 0.0), DOMAIN);
        out.line(self.pixel(0.0, 0.0), self.pixel(0.0, 1.0), DOMAIN);
        let (middle, _) = self.pixel(0.5, 0.0);
        let bottom =
            self.top + self.plot_height + 8.0 + if self.turned { self.turned_height(layers) } else { FONT_SIZE };
        let bold = |turned| TextStyle { is_bold: true, turned, ..TextStyle::new("middle") };
        out.text(
            (middle, bottom + 12.0 + FONT_SIZE / 2.0),
            &cut_to(title(&spec.encoding.x), self.plot_width),
            bold(0.0),
        );
        let (_, middle) = self.pixel(0.0, 0.5);
        let place = (PADDING + FONT_SIZE / 2.0, middle);
        out.text(place, &cut_to(title(&spec.encoding.y), self.plot_height), bold(-90.0));
    }

    fn turned_height(&self, layers: &PlotLayers<'_>) -> f64 {
        let widest = layers.x.ticks().iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max);
        (widest * 0.75).min(MAX_LABELS_HEIGHT)
    }

    fn legend(&self, out: &mut Svg, spec: &Spec, series: &[String]) {
        let Some(color) = &spec.encoding.color else { return };
        let (x, mut y) = (self.left + self.plot_width + 24.0, self.top + 10.0);
        let style = TextStyle { is_bold: true, ..TextStyle::new("start") };
        out.text((x, y), &cut_to(title(color), MAX_LABELS_WIDTH), style);
        for (index, name) in series.iter().enumerate() {
            y += 18.0;
            out.swatch((x, y - 9.0), color_of(index));
            out.text((x + 16.0, y), &cut_to(name, MAX_LABELS_WIDTH - 18.0), TextStyle::new("start"));
        }
    }
}

fn bars(out: &mut Svg, spec: &Spec, layers: &PlotLayers<'_>, frame: &PlotArea, series: usize) {
    let is_grouped = spec.encoding.x_offset.is_some() || spec.encoding.y_offset.is_some();
    let (base, values) = if layers.lies { (&layers.y, &layers.x) } else { (&layers.x, &layers.y) };
    let length = if layers.lies { frame.plot_height } else { frame.plot_width };
    // The width of a bar as a fraction of its axis.
    let width = if base.is_band() {
        (1.0 - BAND_PADDING) / base.ticks().len().max(1) as f64
    } else {
        let widest = (0.8 * length / (layers.marks.len() as f64 + 1.0)).clamp(1.0, MAX_TIME_BAR);
        widest / length
    };
    let slots = if is_grouped { series.max(1) as f64 } else { 1.0 };
    for mark in &layers.marks {
        let of_base = if layers.lies { &mark.datum.y } else { &mark.datum.x };
        let Some(middle) = base.place(of_base) else { continue };
        let slot = if is_grouped { mark.series as f64 } else { 0.0 };
        let start = middle - width / 2.0 + width * slot / slots;
        let end = start + width / slots;
        let (from, to) = (values.place_number(mark.from), values.place_number(mark.to));
        let (one, other) = if layers.lies {
            let (start, end) = (PlotArea::place_y(base, start), PlotArea::place_y(base, end));
            (frame.pixel(from, start), frame.pixel(to, end))
        } else {
            (frame.pixel(start, from), frame.pixel(end, to))
        };
        out.rect(one, other, color_of(mark.series), &tip(spec, mark.datum));
    }
}

fn lines(out: &mut Svg, spec: &Spec, layers: &PlotLayers<'_>, frame: &PlotArea) {
    let mut by_series: HashMap<usize, Vec<(f64, &PlacedMark<'_>)>> = HashMap::new();
    for mark in &layers.marks {
        if let Some(x) = layers.x.place(&mark.datum.x) {
            by_series.entry(mark.series).or_default().push((x, mark));
        }
    }
    let mut all: Vec<(usize, Vec<(f64, &PlacedMark<'_>)>)> = by_series.into_iter().collect();
    all.sort_by_key(|(series, _)| *series);
    for (series, mut marks) in all {
        marks.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let along = |end: fn(&PlacedMark<'_>) -> f64| -> Vec<(f64, f64)> {
            marks.iter().map(|(x, mark)| frame.pixel(*x, layers.y.place_number(end(mark)))).collect()
        };
        let tops = along(|mark| mark.to);
        if spec.mark.r#type == MarkType::Area {
            let mut outline = tops.clone();
            outline.extend(along(|mark| mark.from).into_iter().rev());
            out.polygon(&outline, color_of(series));
            continue;
        }
        out.polyline(&tops, color_of(series));
        for (at, (_, mark)) in tops.iter().zip(&marks) {
            out.circle(*at, POINT_RADIUS - 1.0, color_of(series), &tip(spec, mark.datum));
        }
    }
}

fn points(out: &mut Svg, spec: &Spec, layers: &PlotLayers<'_>, frame: &PlotArea) {
    for mark in &layers.marks {
        let places = (layers.x.place(&mark.datum.x), layers.y.place(&mark.datum.y));
        let (Some(x), Some(y)) = places else { continue };
        let at = frame.pixel(x, PlotArea::place_y(&layers.y, y));
        out.circle(at, POINT_RADIUS, color_of(mark.series), &tip(spec, mark.datum));
    }
}

/// Keeps every n-th tick if there is no room for all.
fn readable(ticks: Vec<(f64, &str)>) -> impl Iterator<Item = (f64, &str)> {
    let every = ticks.len().div_ceil(MAX_LABELS).max(1);
    ticks.into_iter().step_by(every)
}

/// Returns a value of a channel in words.
pub(super) fn value_label(channel: &Channel, cell: &ChartValue) -> String {
    match (channel.r#type, cell) {
        (FieldType::Temporal, ChartValue::Number(at)) => {
            let at = chrono::DateTime::from_timestamp_millis(*at as i64);
            at.map_or_else(String::new, |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
        }
        (FieldType::Quantitative, ChartValue::Number(number)) if number.abs() >= 1e15 => number_label(*number, 1.0),
        _ => cell.label(),
    }
}

/// Returns the tooltip of a mark.
fn tip(spec: &Spec, datum: &Datum) -> String {
    let encoding = &spec.encoding;
    let mut parts = vec![
        format!("{}: {}", title(&encoding.x), value_label(&encoding.x, &datum.x)),
        format!("{}: {}", title(&encoding.y), value_label(&encoding.y, &datum.y)),
    ];
    if let (Some(channel), Some(color)) = (&encoding.color, &datum.color) {
        parts.push(format!("{}: {}", title(channel), color.label()));
    }
    parts.join("; ")
}

pub(super) fn title(channel: &Channel) -> &str {
    channel.title.as_deref().unwrap_or(&channel.field)
}

fn color_of(series: usize) -> &'static str {
    COLORS.get(series % COLORS.len()).copied().unwrap_or("#4E79A7")
}
