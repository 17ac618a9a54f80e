//! What standard output is: its size, whether it shows colours, and the pager for what is longer than it.
//!
//! Elsewhere than on a terminal nothing is coloured, cut to a width or paged.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use terminal_size::{Height, Width, terminal_size};
use tokio::signal::unix::{SignalKind, signal};

/// The size of a terminal that does not say.
const DEFAULT_WIDTH: usize = 80;
const DEFAULT_HEIGHT: usize = 24;
/// The pager where PAGER names none, and its settings: quit if all fits, keep colours, do not wrap, keep the screen.
const DEFAULT_PAGER: &str = "less";
const LESS_SETTINGS: &str = "FRSX";

/// The terminal of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Columns; `None` where standard output is not a terminal.
    pub(crate) width: Option<usize>,
    /// Lines.
    pub(crate) height: usize,
    /// Whether it shows colours.
    pub(crate) has_colors: bool,
}

/// How a piece of text is shown on a terminal with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextTone {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Cyan,
}

impl Terminal {
    /// Looks at standard output. `COLUMNS` and `LINES` come before what the terminal says.
    pub(crate) fn stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = terminal_size();
        let said = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok()).filter(|size| *size > 0);
        let width = said("COLUMNS").or(size.map(|(Width(width), _)| usize::from(width))).unwrap_or(DEFAULT_WIDTH);
        let height = said("LINES").or(size.map(|(_, Height(height))| usize::from(height))).unwrap_or(DEFAULT_HEIGHT);
        Self { width: is_terminal.then_some(width), height, has_colors: is_terminal && wants_colors() }
    }

    /// Returns `text` in that tone.
    pub(crate) fn tone(&self, tone: TextTone, text: &str) -> String {
        let code = match tone {
            _ if !self.has_colors => return text.to_owned(),
            TextTone::Plain => return text.to_owned(),
            TextTone::Bold => "1",
            TextTone::Dim => "2",
            TextTone::Red => "31",
            TextTone::Green => "32",
            TextTone::Cyan => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Prints `text` to standard output, through the pager if it is longer than the screen.
    pub(crate) fn page(&self, text: &str) -> io::Result<()> {
        let is_long = text.lines().count() + 1 > self.height;
        if self.width.is_some() && is_long && io::stdin().is_terminal() {
            let pager = std::env::var("PAGER").unwrap_or_else(|_| DEFAULT_PAGER.to_owned());
            if !matches!(pager.trim(), "" | "cat") && paged(&pager, text) {
                return Ok(());
            }
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

/// Whether colours are wanted: `NO_COLOR` (<https://no-color.org>) and a terminal without them say no.
fn wants_colors() -> bool {
    let says_no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    !says_no && !is_dumb
}

/// Shows the text in a pager. Returns whether it ran.
fn paged(pager: &str, text: &str) -> bool {
    let mut command = Command::new("sh");
    // `exec` fails at once where there is no such program.
    command.args(["-c", &format!("exec {pager}")]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS_SETTINGS);
    }
    if std::env::var_os("LESSCHARSET").is_none() {
        command.env("LESSCHARSET", "utf-8");
    }
    // Ctrl-c in a pager ends its search and not what it shows; the terminal is the pager's until it leaves.
    let _interrupts = signal(SignalKind::interrupt());
    let Ok(mut child) = command.stderr(Stdio::null()).spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // The reader may leave before the end.
        let _ = stdin.write_all(text.as_bytes());
    }
    // A shell says 127 where there is no such program.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}
