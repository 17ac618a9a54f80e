//! Writing SVG: elements with numbers that are always finite and text that is always escaped.

use std::fmt::Write;

/// The style of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextStyle {
    /// `start`, `middle` or `end`.
    pub(super) anchor: &'static str,
    pub(super) size: f64,
    pub(super) is_bold: bool,
    /// Rotation in degrees, around its position.
    pub(super) turned: f64,
}

impl TextStyle {
    pub(super) const fn new(anchor: &'static str) -> Self {
        Self { anchor, size: FONT_SIZE, is_bold: false, turned: 0.0 }
    }
}

pub(super) const FONT_SIZE: f64 = 12.0;
const TEXT_COLOR: &str = "#43436B";

/// An image that elements are added to.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str) {
        let ((x1, y1), (x2, y2)) = (rounded(from), rounded(to));
        self.push(format_args!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{color}\"/>"));
    }

    /// Adds a rectangle between two opposite corners.
    pub(super) fn rect(&mut self, one: (f64, f64), other: (f64, f64), color: &str, tip: &str) {
        let (x, y) = rounded((one.0.min(other.0), one.1.min(other.1)));
        let (width, height) = rounded(((one.0 - other.0).abs(), (one.1 - other.1).abs()));
        let tip = escaped(tip);
        self.push(format_args!(
            "<rect class=\"mark\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{color}\">\
             <title>{tip}</title></rect>"
        ));
    }

    pub(super) fn circle(&mut self, at: (f64, f64), radius: f64, color: &str, tip: &str) {
        let ((x, y), tip) = (rounded(at), escaped(tip));
        self.push(format_args!(
            "<circle class=\"mark\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{color}\"><title>{tip}</title></circle>"
        ));
    }

    pub(super) fn polyline(&mut self, points: &[(f64, f64)], color: &str) {
        let points = listed(points);
        self.push(format_args!(
            "<polyline class=\"mark\" points=\"{points}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"3\" \
             stroke-linecap=\"round\" stroke-linejoin=\"round\"/>"
        ));
    }

    pub(super) fn polygon(&mut self, points: &[(f64, f64)], color: &str) {
        let points = listed(points);
        self.push(format_args!("<polygon class=\"mark\" points=\"{points}\" fill=\"{color}\" fill-opacity=\"0.7\"/>"));
    }

    pub(super) fn swatch(&mut self, at: (f64, f64), color: &str) {
        let (x, y) = rounded(at);
        self.push(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"{color}\"/>"));
    }

    pub(super) fn text(&mut self, at: (f64, f64), text: &str, style: TextStyle) {
        let ((x, y), text) = (rounded(at), escaped(text));
        let TextStyle { anchor, size, is_bold, turned } = style;
        let weight = if is_bold { " font-weight=\"bold\"" } else { "" };
        let turned = if turned == 0.0 { String::new() } else { format!(" transform=\"rotate({turned} {x} {y})\"") };
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\"{weight}{turned}>{text}</text>"
        ));
    }

    /// Returns the whole image.
    pub(super) fn finish(self, width: f64, height: f64, label: &str) -> String {
        let ((width, height), label, body) = (rounded((width, height)), escaped(label), self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\" \
             font-family=\"Inter, sans-serif\" fill=\"{TEXT_COLOR}\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }
}

/// Returns about how wide the text is drawn.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(|c| if c.is_ascii() { 7.0 } else { 11.0 }).sum()
}

/// Returns the beginning of a text that fits.
pub(super) fn cut_to(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut room = width - text_width("…");
    let kept = text.chars().take_while(|c| {
        room -= text_width(c.encode_utf8(&mut [0; 4]));
        room >= 0.0
    });
    kept.chain(['…']).collect()
}

fn listed(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|point| rounded(*point)).map(|(x, y)| format!("{x},{y}")).collect();
    points.join(" ")
}

/// Formats a coordinate to a tenth; one that is not finite is 0.
fn rounded((x, y): (f64, f64)) -> (f64, f64) {
    const FARTHEST: f64 = 1e6;
    let one = |number: f64| {
        let number = if number.is_nan() { 0.0 } else { number.clamp(-FARTHEST, FARTHEST) };
        // Not a minus zero.
        (number * 10.0).round() / 10.0 + 0.0
    };
    (one(x), one(y))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\r' | '\t' => escaped.push(' '),
            // Characters that XML does not allow.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
