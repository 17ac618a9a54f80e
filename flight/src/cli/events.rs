//! Prints a run's events for people as they arrive: tool calls, SQL, rows, the answer, its chart.
//!
//! On a terminal the answer's Markdown is rendered line by line, and a spinner says what is happening and for how long;
//! elsewhere the text is printed as it comes.

use std::io::{self, Write};

use querent_agent::protocols::{TICKET, VEGA_SPEC};
use serde_json::Value;

use super::chart::{Chart, draw_text};
use super::error::CliError;
use super::footnotes::{confidence_line, footnotes};
use super::markdown::MarkdownLines;
use super::output::cut;
use super::output::grid::{Grid, GridCell, GridFit, visible, visible_lines};
use super::output::terminal::{Terminal, TextTone};
use super::progress::Waiting;

/// The most rows of a tool's result that are shown.
const SHOWN_ROWS: usize = 10;
/// The most characters of a value, and of a result that has no rows.
const VALUE_CHARS: usize = 60;
const RESULT_CHARS: usize = 600;

/// How events are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventDisplay {
    /// Every event, for people.
    All,
    /// The answer only.
    Answer,
    /// Every event as one JSON object a line.
    Json,
}

/// Prints events and remembers how the run ended.
pub(super) struct EventPrinter {
    shown: EventDisplay,
    /// The answer's text so far, then as a whole.
    answer: String,
    /// The chart of the last result that has one.
    chart: Option<Chart>,
    /// The ticket of the rows on which the answer rests.
    ticket: Option<String>,
    /// The failure that `run_error` reported.
    failure: Option<ReportedFailure>,
    finished: bool,
    /// Whether the cursor is inside a line of streamed text.
    inside: Inside,
    terminal: Terminal,
    markdown: MarkdownLines,
    /// A line of thinking that has not ended.
    thought: String,
    /// Says on standard error what is happening, until the run's end.
    waiting: Option<Waiting>,
}

/// The result of a run that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answered {
    /// The answer.
    pub(super) text: String,
    /// The chart of the last result that has one.
    pub(super) chart: Option<Chart>,
    /// The ticket of the rows on which it rests.
    pub(super) ticket: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReportedFailure {
    code: String,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Thinking,
    Answer,
}

impl EventPrinter {
    pub(super) fn new(shown: EventDisplay) -> Self {
        let terminal = Terminal::stdout();
        Self {
            terminal,
            markdown: MarkdownLines::new(terminal),
            thought: String::new(),
            waiting: (shown != EventDisplay::Json).then(|| Waiting::new("waiting for the agent", true)),
            shown,
            answer: String::new(),
            chart: None,
            ticket: None,
            failure: None,
            finished: false,
            inside: Inside::Nothing,
        }
    }

    /// Prints one event.
    pub(super) fn event(&mut self, name: &str, data: &str) -> Result<(), CliError> {
        let data: Value = serde_json::from_str(data)
            .map_err(|error| CliError::failed(format!("event {name} is not JSON: {error}")))?;
        let already_streamed = !self.answer.is_empty();
        self.note(name, &data);
        let mut out = Vec::new();
        match self.shown {
            EventDisplay::Json => {
                writeln!(out, "{}", serde_json::json!({ "event": name, "data": data }))?;
            }
            EventDisplay::Answer if name == "answer_final" => self.show_answer(&mut out)?,
            EventDisplay::Answer => {}
            EventDisplay::All if self.terminal.width.is_some() => {
                self.show_at_terminal(&mut out, name, &data, already_streamed)?;
            }
            EventDisplay::All => self.show(&mut out, name, &data, already_streamed)?,
        }
        if matches!(name, "run_finished" | "run_error") {
            self.waiting = None;
        }
        let print = || -> io::Result<()> {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&out)?;
            stdout.flush()
        };
        match &self.waiting {
            Some(waiting) => {
                if !out.is_empty() {
                    waiting.suspend(print)?;
                }
                if let Some(what) = what_follows(name, &data) {
                    waiting.say(&what);
                }
                Ok(())
            }
            None => Ok(print()?),
        }
    }

    /// The answer alone: rendered on a terminal, else as it is.
    fn show_answer(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.terminal.width.is_none() {
            return writeln!(out, "{}", self.answer);
        }
        let text = format!("{}{}", self.markdown.push(&self.answer), self.markdown.finish());
        out.write_all(text.as_bytes())
    }

    /// Shows an event in whole lines, so that the spinner can stand below them.
    fn show_at_terminal(
        &mut self,
        out: &mut impl Write,
        name: &str,
        data: &Value,
        already_streamed: bool,
    ) -> io::Result<()> {
        let terminal = self.terminal;
        let dim = |text: &str| terminal.tone(TextTone::Dim, text);
        if name == "thinking_delta" {
            self.thought.push_str(text(data, "text"));
            while let Some(end) = self.thought.find('\n') {
                let rest = self.thought.split_off(end + 1);
                let line = std::mem::replace(&mut self.thought, rest);
                writeln!(out, "{}", dim(&format!("  {}", visible(line.trim_end()))))?;
            }
            return Ok(());
        }
        let thought = std::mem::take(&mut self.thought);
        if !thought.trim().is_empty() {
            writeln!(out, "{}", dim(&format!("  {}", visible(thought.trim_end()))))?;
        }
        match name {
            "run_started" => {
                writeln!(out, "{}", dim(&format!("run {} · {}", text(data, "run_id"), text(data, "model"))))
            }
            "answer_delta" => out.write_all(self.markdown.push(text(data, "text")).as_bytes()),
            "answer_final" => {
                let rest = if already_streamed { String::new() } else { self.markdown.push(text(data, "text")) };
                write!(out, "{rest}{}", self.markdown.finish())?;
                for (index, note) in footnotes(&data["proof"]).iter().enumerate() {
                    writeln!(out, "{}", dim(&format!("  [{}] {}", index + 1, visible(note))))?;
                }
                if let Some(confidence) = confidence_line(&data["confidence"]) {
                    writeln!(out, "{}", dim(&visible(&confidence)))?;
                }
                match self.chart.as_ref().and_then(|chart| draw_text(chart, &terminal)) {
                    Some(chart) => writeln!(out, "\n{chart}"),
                    None => Ok(()),
                }
            }
            "tool_call" => {
                // What was said before the call is no answer.
                out.write_all(self.markdown.finish().as_bytes())?;
                let mut call = Vec::new();
                show_call(&mut call, data)?;
                let call = String::from_utf8_lossy(&call).into_owned();
                let (first, rest) = call.split_once('\n').unwrap_or((&call, ""));
                writeln!(out, "{}", terminal.tone(TextTone::Cyan, first))?;
                out.write_all(rest.as_bytes())
            }
            "tool_result" => show_result(out, &data["result"]),
            "run_error" => {
                out.write_all(self.markdown.finish().as_bytes())?;
                // Why is said by the command's error.
                writeln!(out, "{}", terminal.tone(TextTone::Red, &format!("run failed ({})", text(data, "code"))))
            }
            "run_finished" => {
                let mut usage = Vec::new();
                show_usage(&mut usage, data)?;
                writeln!(out, "{}", dim(String::from_utf8_lossy(&usage).trim_end()))
            }
            // Unknown events are those of later protocols.
            _ => Ok(()),
        }
    }

    /// Returns the answer of a run that succeeded, after its last event.
    pub(super) fn outcome(self) -> Result<Answered, CliError> {
        match (self.failure, self.finished) {
            (Some(failure), _) => Err(CliError::Failed { code: Some(failure.code), message: failure.message }),
            (None, true) => Ok(Answered { text: self.answer, chart: self.chart, ticket: self.ticket }),
            (None, false) => Err(CliError::failed("the connection ended before the run did")),
        }
    }

    fn note(&mut self, name: &str, data: &Value) {
        match name {
            "answer_delta" => self.answer.push_str(text(data, "text")),
            "answer_final" => {
                text(data, "text").clone_into(&mut self.answer);
                self.ticket = data[TICKET].as_str().map(str::to_owned);
            }
            "tool_result" => self.note_chart(data),
            "run_finished" => self.finished = true,
            "run_error" => {
                let code = data["detail_code"].as_str().unwrap_or(text(data, "code")).to_owned();
                self.failure = Some(ReportedFailure { code, message: text(data, "message").to_owned() });
            }
            _ => {}
        }
    }

    fn note_chart(&mut self, data: &Value) {
        if let (Some(spec), Some(rows)) = (data.get(VEGA_SPEC), data["result"]["rows"].as_array()) {
            self.chart = Some(Chart { spec: spec.clone(), rows: rows.clone() });
        }
    }

    fn show(&mut self, out: &mut impl Write, name: &str, data: &Value, already_streamed: bool) -> io::Result<()> {
        let now_inside = match name {
            "thinking_delta" => Inside::Thinking,
            "answer_delta" => Inside::Answer,
            _ => Inside::Nothing,
        };
        if self.inside != now_inside && self.inside != Inside::Nothing {
            writeln!(out)?;
        }
        let began = self.inside != now_inside;
        self.inside = now_inside;
        match name {
            "run_started" => writeln!(out, "run {} · {}", text(data, "run_id"), text(data, "model")),
            "thinking_delta" if began => write!(out, "  thinking: {}", text(data, "text")),
            "answer_delta" if began => write!(out, "answer: {}", text(data, "text")),
            "thinking_delta" | "answer_delta" => write!(out, "{}", text(data, "text")),
            "tool_call" => show_call(out, data),
            "tool_result" => show_result(out, &data["result"]),
            "answer_final" => {
                if !already_streamed {
                    writeln!(out, "answer: {}", text(data, "text"))?;
                }
                for (index, note) in footnotes(&data["proof"]).iter().enumerate() {
                    writeln!(out, "  [{}] {note}", index + 1)?;
                }
                match confidence_line(&data["confidence"]) {
                    Some(confidence) => writeln!(out, "{confidence}"),
                    None => Ok(()),
                }
            }
            "run_error" => writeln!(out, "run failed ({})", text(data, "code")),
            "run_finished" => show_usage(out, data),
            // Unknown events are those of later protocols.
            _ => Ok(()),
        }
    }
}

/// Says what happens after an event.
fn what_follows(name: &str, data: &Value) -> Option<String> {
    Some(match name {
        "run_started" => format!("{} reads the question and the schema", text(data, "model")),
        "thinking_delta" => "thinking".to_owned(),
        "answer_delta" => "writing the answer".to_owned(),
        "tool_call" => match text(data, "tool") {
            "run_sql" => "running SQL".to_owned(),
            "run_kql" => "running KQL".to_owned(),
            tool => format!("running {}", visible(tool)),
        },
        "tool_result" => "the model reads the result".to_owned(),
        _ => return None,
    })
}

fn show_call(out: &mut impl Write, data: &Value) -> io::Result<()> {
    let (tool, args) = (text(data, "tool"), &data["args"]);
    let statement = ["sql", "query", "kql"].iter().find_map(|key| args[key].as_str());
    match statement {
        Some(statement) => {
            writeln!(out, "→ {}\n{}", visible(tool), indented(&visible_lines(statement.trim()), "    "))
        }
        None => writeln!(out, "→ {} {}", visible(tool), visible(&cut(&args.to_string(), RESULT_CHARS))),
    }
}

fn show_result(out: &mut impl Write, result: &Value) -> io::Result<()> {
    if let Some(error) = result.get("error") {
        let message = error["message"].as_str().or(error.as_str()).unwrap_or_default();
        return writeln!(out, "  ✗ {}", visible_lines(message));
    }
    let Some(rows) = result["rows"].as_array() else {
        return writeln!(out, "  {}", visible(&cut(&result.to_string(), RESULT_CHARS)));
    };
    let total = result["row_count"].as_u64().unwrap_or(rows.len() as u64);
    if !rows.is_empty() {
        writeln!(out, "{}", indented(&rows_box(&result["columns"], rows), "  "))?;
    }
    let hidden = if rows.len() > SHOWN_ROWS { format!(", first {SHOWN_ROWS} shown") } else { String::new() };
    let truncated = if result["truncated"].as_bool() == Some(true) { ", truncated" } else { "" };
    let noun = if total == 1 { "row" } else { "rows" };
    writeln!(out, "  ({total} {noun}{hidden}{truncated})")
}

fn rows_box(columns: &Value, rows: &[Value]) -> String {
    let mut names: Vec<&str> = columns
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|column| column["name"].as_str().or(column.as_str()))
        .collect();
    if names.is_empty() {
        names = rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys().map(String::as_str)).collect();
        names.dedup();
    }
    let mut grid = Grid::of_names(names.iter().copied());
    for row in rows.iter().take(SHOWN_ROWS) {
        let cells = names.iter().map(|name| match &row[*name] {
            Value::String(text) => GridCell::Text(cut(text, VALUE_CHARS)),
            Value::Null => GridCell::Null,
            value => GridCell::Text(cut(&value.to_string(), VALUE_CHARS)),
        });
        grid.push(cells.collect());
    }
    let terminal = Terminal::stdout();
    // Two columns of indentation.
    let terminal = Terminal { width: terminal.width.map(|width| width.saturating_sub(2)), ..terminal };
    grid.render(&terminal, GridFit::Terminal).text.trim_end().to_owned()
}

fn show_usage(out: &mut impl Write, data: &Value) -> io::Result<()> {
    let number = |key: &str| data["usage"][key].as_u64().or(data[key].as_u64()).unwrap_or(0);
    let (calls, seconds) = (number("tool_calls"), number("elapsed_ms") as f64 / 1_000.0);
    let (read, written) = (number("input_tokens"), number("output_tokens"));
    let noun = if calls == 1 { "tool call" } else { "tool calls" };
    writeln!(out, "({calls} {noun}, {seconds:.1} s, {read} tokens read, {written} written)")
}

fn text<'a>(data: &'a Value, key: &str) -> &'a str {
    data[key].as_str().unwrap_or_default()
}

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}
