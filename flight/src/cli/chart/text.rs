//! Drawing in a terminal: bars as blocks, lines, areas and points as dots of Braille, with the axes' first and last ticks.

use std::collections::HashMap;

use querent_agent::chart::{MarkType, Spec};
use unicode_width::UnicodeWidthStr;

use super::axis::ChartAxis;
use super::draw::{PlacedMark, PlotLayers, series, title, value_label};
use super::rows::Datum;
use crate::cli::output::grid::{cut_to_width, visible};
use crate::cli::output::terminal::{Terminal, TextTone};

/// Bars at most.
const MOST_BARS: usize = 30;
/// The most cells of a bar's label, and of a bar.
const LABEL_WIDTH: usize = 28;
const BAR_WIDTH: usize = 60;
/// The least cells of either.
const LEAST_WIDTH: usize = 10;
/// The cells of a plot.
const PLOT_WIDTH: usize = 72;
const PLOT_HEIGHT: usize = 14;
/// Dots of a cell of Braille.
const DOTS: (usize, usize) = (2, 4);
/// The last part of a bar, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// The tones of the series, in turn.
const TONES: [TextTone; 4] = [TextTone::Cyan, TextTone::Green, TextTone::Red, TextTone::Plain];

/// Draws the chart of these data, as wide as the terminal allows.
pub(super) fn text(spec: &Spec, data: &[Datum], terminal: &Terminal) -> String {
    let series = spec.encoding.color.as_ref().map_or_else(Vec::new, |color| series(color, data));
    let layers = PlotLayers::new(spec, data, &series);
    let encoding = &spec.encoding;
    let heading = spec.title.clone().unwrap_or_else(|| match layers.lies {
        true => format!("{} by {}", title(&encoding.x), title(&encoding.y)),
        false => format!("{} by {}", title(&encoding.y), title(&encoding.x)),
    });
    let mut lines = vec![terminal.tone(TextTone::Bold, &visible(&heading))];
    match spec.mark.r#type {
        MarkType::Bar => lines.extend(bars(spec, &layers, &series, terminal)),
        MarkType::Line | MarkType::Area | MarkType::Point => lines.extend(plot(spec, &layers, &series, terminal)),
    }
    lines.join("\n")
}

/// A line for each bar: its label, its length, its value. Where there are values below zero, their bars go to the left.
fn bars(spec: &Spec, layers: &PlotLayers<'_>, series: &[String], terminal: &Terminal) -> Vec<String> {
    let (base, value) = match layers.lies {
        true => (&spec.encoding.y, &spec.encoding.x),
        false => (&spec.encoding.x, &spec.encoding.y),
    };
    let label_of = |mark: &PlacedMark<'_>| {
        let datum = mark.datum;
        let label = value_label(base, if layers.lies { &datum.y } else { &datum.x });
        let label = label.strip_suffix(" 00:00:00").map(str::to_owned).unwrap_or(label);
        match series.get(mark.series) {
            Some(name) => visible(&format!("{label}, {name}")).into_owned(),
            None => visible(&label).into_owned(),
        }
    };
    let value_of = |mark: &PlacedMark<'_>| value_label(value, if layers.lies { &mark.datum.x } else { &mark.datum.y });
    let shown = layers.marks.iter().take(MOST_BARS);
    let labels: Vec<String> = shown.clone().map(label_of).collect();
    let values: Vec<String> = shown.clone().map(value_of).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| text.width()).max().unwrap_or(0);
    let label_width = widest(&labels).min(LABEL_WIDTH);
    let room = terminal.width.unwrap_or(usize::MAX).saturating_sub(label_width + widest(&values) + 4);
    let room = room.clamp(LEAST_WIDTH, BAR_WIDTH);
    let sides = BarSides::new(shown.clone().map(|mark| mark.to - mark.from), room);
    let mut lines = Vec::new();
    for ((mark, label), value) in shown.zip(&labels).zip(&values) {
        let (left, right) = sides.parts_of(mark.to - mark.from);
        let tone = tone_of(mark.series);
        let label = cut_to_width(label, label_width);
        let space = " ".repeat(label_width - label.width());
        let before = " ".repeat(sides.left - left.width());
        let (left, right) = (terminal.tone(tone, &left), terminal.tone(tone, &right));
        lines.push(format!("{space}{label} {before}{left}│{right} {}", visible(value)));
    }
    if layers.marks.len() > MOST_BARS {
        lines.push(format!("… and {} more", layers.marks.len() - MOST_BARS));
    }
    lines
}

/// The room of bars on both sides of zero.
struct BarSides {
    /// The cells on the left, for values below zero.
    left: usize,
    /// The largest size of a value, and its cells.
    most: f64,
    cells: f64,
}

impl BarSides {
    fn new(values: impl Iterator<Item = f64>, room: usize) -> Self {
        let (mut below, mut above) = (0.0_f64, 0.0_f64);
        for value in values {
            below = below.max(-value);
            above = above.max(value);
        }
        let most = below.max(above);
        if most <= 0.0 {
            return Self { left: 0, most, cells: 0.0 };
        }
        // Their sum may be beyond the largest number.
        let cells = room as f64 / (below / most + above / most);
        let left = (below / most * cells).round() as usize;
        Self { left: left.max(usize::from(below > 0.0)), most, cells }
    }

    /// The parts of a bar on the left and on the right.
    fn parts_of(&self, value: f64) -> (String, String) {
        // At most the room, which is small.
        let cells = if self.most > 0.0 { value.abs() / self.most * self.cells } else { 0.0 };
        if value < 0.0 {
            return ("█".repeat((cells.round() as usize).min(self.left)), String::new());
        }
        let eighths = (cells * 8.0).round() as usize;
        let last = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
        (String::new(), format!("{}{last}", "█".repeat(eighths / 8)))
    }
}

/// A plane of dots between two axes.
fn plot(spec: &Spec, layers: &PlotLayers<'_>, series: &[String], terminal: &Terminal) -> Vec<String> {
    let y_ticks = ends(&layers.y);
    let label_width = y_ticks.iter().map(|(_, label)| label.width()).max().unwrap_or(0).min(LABEL_WIDTH);
    let width = terminal.width.unwrap_or(PLOT_WIDTH + label_width + 2).saturating_sub(label_width + 2);
    let width = width.clamp(LEAST_WIDTH, PLOT_WIDTH);
    let mut canvas = Canvas::new(width, PLOT_HEIGHT);
    let mut by_series: HashMap<usize, Vec<(f64, f64)>> = HashMap::new();
    for mark in &layers.marks {
        let y = if layers.y.is_band() { layers.y.place(&mark.datum.y) } else { Some(layers.y.place_number(mark.to)) };
        if let (Some(x), Some(y)) = (layers.x.place(&mark.datum.x), y) {
            by_series.entry(mark.series).or_default().push((x, y));
        }
    }
    let mut all: Vec<(usize, Vec<(f64, f64)>)> = by_series.into_iter().collect();
    all.sort_by_key(|(series, _)| *series);
    for (series, mut places) in all {
        if spec.mark.r#type == MarkType::Point {
            places.iter().for_each(|place| canvas.dot(*place, series));
            continue;
        }
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (from, to) in places.iter().zip(places.iter().skip(1)) {
            canvas.line(*from, *to, series);
        }
        if let [only] = &places[..] {
            canvas.dot(*only, series);
        }
    }
    let mut lines = Vec::new();
    for (row, text) in canvas.rows(terminal).into_iter().enumerate() {
        let tick = y_ticks.iter().find(|(place, _)| {
            let at = (1.0 - place.clamp(0.0, 1.0)) * (PLOT_HEIGHT - 1) as f64;
            at.round() as usize == row
        });
        let label = tick.map_or("", |(_, label)| label);
        let label = cut_to_width(label, label_width);
        lines.push(format!("{}{label} │{text}", " ".repeat(label_width - label.width())));
    }
    lines.push(format!("{} └{}", " ".repeat(label_width), "─".repeat(width)));
    let x_ticks = ends(&layers.x);
    if let (Some((_, first)), Some((_, last))) = (x_ticks.first(), x_ticks.last()) {
        let space = width.saturating_sub(first.width() + last.width());
        lines.push(format!("{}{first}{}{last}", " ".repeat(label_width + 2), " ".repeat(space)));
    }
    let legend =
        series.iter().enumerate().map(|(at, name)| terminal.tone(tone_of(at), &format!("● {}", visible(name))));
    let legend: Vec<String> = legend.collect();
    if !legend.is_empty() {
        lines.push(format!("{}{}", " ".repeat(label_width + 2), legend.join("  ")));
    }
    lines
}

/// The first and the last tick of an axis that lie on it.
fn ends(axis: &ChartAxis) -> Vec<(f64, String)> {
    let ticks = axis.ticks().into_iter().filter(|(place, _)| (-0.001..=1.001).contains(place));
    let ticks: Vec<(f64, String)> = ticks.map(|(place, label)| (place, visible(label).into_owned())).collect();
    match &ticks[..] {
        [first, .., last] => vec![first.clone(), last.clone()],
        _ => ticks,
    }
}

fn tone_of(series: usize) -> TextTone {
    TONES.get(series % TONES.len()).copied().unwrap_or(TextTone::Plain)
}

/// Cells of Braille, each of 2 x 4 dots.
struct Canvas {
    width: usize,
    height: usize,
    /// The dots of each cell, and the series that came last.
    cells: Vec<(u8, usize)>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, cells: vec![(0, 0); width * height] }
    }

    /// Sets the dot at a place from 0 to 1 on each axis, y upwards.
    fn dot(&mut self, (x, y): (f64, f64), series: usize) {
        let (columns, rows) = (self.width * DOTS.0, self.height * DOTS.1);
        let column = (x.clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize;
        let row = ((1.0 - y.clamp(0.0, 1.0)) * (rows - 1) as f64).round() as usize;
        let bit = match (column % DOTS.0, row % DOTS.1) {
            (0, 3) => 6,
            (1, 3) => 7,
            (0, row) => row,
            (_, row) => row + 3,
        };
        if let Some(cell) = self.cells.get_mut(row / DOTS.1 * self.width + column / DOTS.0) {
            *cell = (cell.0 | 1 << bit, series);
        }
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), series: usize) {
        let steps = (self.width * DOTS.0).max(self.height * DOTS.1);
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            self.dot((from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part), series);
        }
    }

    fn rows(&self, terminal: &Terminal) -> Vec<String> {
        let row = |cells: &[(u8, usize)]| {
            let cell = |(dots, series): &(u8, usize)| match char::from_u32(0x2800 + u32::from(*dots)) {
                Some(char) if *dots > 0 => terminal.tone(tone_of(*series), &char.to_string()),
                _ => " ".to_owned(),
            };
            cells.iter().map(cell).collect::<String>()
        };
        self.cells.chunks(self.width).map(row).collect()
    }
}
