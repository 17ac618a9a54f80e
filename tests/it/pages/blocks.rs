//! The code blocks of a page's text: between fences where the text is Markdown, else by how code looks, since a page
//! saved as text has lost its fences.

use std::collections::BTreeMap;

use serde_json::Value;

/// One block.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Of the fence, or `bash`, `json`, `javascript`, `yaml`, `flow`.
    pub(super) language: String,
    pub(super) text: String,
    taken: bool,
}

/// A page's blocks, in order.
pub(super) struct ReferencePage {
    blocks: Vec<Block>,
}

impl ReferencePage {
    pub(super) fn from_markdown(text: &str) -> Self {
        Self { blocks: fenced(text) }
    }

    pub(super) fn from_plain_text(text: &str) -> Self {
        Self { blocks: unfenced(text) }
    }

    /// Takes the next block of a language.
    pub(super) fn next(&mut self, language: &str) -> String {
        let block = self.blocks.iter_mut().find(|block| !block.taken && block.language == language);
        let block = block.unwrap_or_else(|| panic!("no further {language} block"));
        block.taken = true;
        block.text.clone()
    }

    /// Takes the next block of JSON; what it leaves out is empty.
    pub(super) fn next_json(&mut self) -> Value {
        let text = self.next("json").replace("[...]", "[]").replace("{...}", "{}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// Takes the next block of a language, which is not run for the reason given.
    pub(super) fn pass_over(&mut self, language: &str, why: &str) {
        let text = self.next(language);
        println!("not run: {language}, {why}: {}", text.lines().next().unwrap_or_default());
    }

    /// Fails unless every block has been taken, and each language has as many blocks as it should.
    pub(super) fn finish(self, expected: &[(&str, usize)]) {
        let left: Vec<&Block> = self.blocks.iter().filter(|block| !block.taken).collect();
        assert!(left.is_empty(), "blocks that no test takes: {left:#?}");
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for block in &self.blocks {
            *counts.entry(block.language.as_str()).or_default() += 1;
        }
        assert_eq!(counts, expected.iter().copied().collect(), "blocks by language");
    }
}

fn fenced(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let language = info.split_whitespace().next().unwrap_or_default().to_owned();
        let body = lines.by_ref().take_while(|line| line.trim() != "```");
        let text: Vec<&str> = body.map(|line| line.get(indent..).unwrap_or_default()).collect();
        blocks.push(Block { language, text: text.join("\n"), taken: false });
    }
    blocks
}

/// Starts of JavaScript statements at the beginning of a line.
const JAVASCRIPT: [&str; 5] = ["const ", "import ", "function ", "async function ", "case \""];

fn unfenced(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = &lines[at..];
        let to_blank = rest.iter().take_while(|line| !line.trim().is_empty()).count();
        let (language, length) = match *line {
            line if line.starts_with("curl ") => ("bash", to_blank),
            line if line.starts_with("# ") && rest[..to_blank].iter().any(|line| line.starts_with("curl ")) => {
                ("bash", to_blank)
            }
            line if line.starts_with("# ") => ("yaml", to_blank),
            "{" => ("json", rest.iter().position(|line| *line == "}").expect("an end") + 1),
            line if JAVASCRIPT.iter().any(|start| line.starts_with(start)) => ("javascript", balanced(rest)),
            line if is_flow_start(line) => ("flow", to_blank),
            line => {
                assert!(!looks_like_code(line), "a line of code outside of a block that is known: {line}");
                at += 1;
                continue;
            }
        };
        blocks.push(Block { language: language.to_owned(), text: rest[..length].join("\n"), taken: false });
        at += length;
    }
    blocks
}

/// Lines up to the blank one at which every bracket is closed.
fn balanced(lines: &[&str]) -> usize {
    let mut open = 0_i64;
    for (index, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '{' | '(' | '[' => open += 1,
                '}' | ')' | ']' => open -= 1,
                _ => {}
            }
        }
        if open == 0 && lines.get(index + 1).is_none_or(|line| line.trim().is_empty()) {
            return index + 1;
        }
    }
    lines.len()
}

/// `1. event_name`: the first step of a list of events.
fn is_flow_start(line: &str) -> bool {
    line.strip_prefix("1. ").is_some_and(|rest| rest.split_whitespace().next().is_some_and(|name| name.contains('_')))
}

fn looks_like_code(line: &str) -> bool {
    let trimmed = line.trim_start();
    let is_listed = trimmed.starts_with('•') || trimmed.starts_with(|c: char| c.is_ascii_digit());
    let is_indented = trimmed.len() < line.len() && !is_listed && !trimmed.is_empty();
    is_indented || trimmed.starts_with(['{', '}', '[', ']', '"']) || line.ends_with([';', '{', '}', '\\'])
}

#[test]
fn blocks_are_found_in_both_kinds_of_text() {
    let markdown = "Words.\n  ```python title=x\n  if a:\n\n      b()\n  ```\n```json\n{}\n```\n";
    let mut page = ReferencePage::from_markdown(markdown);
    assert_eq!((page.next("json"), page.next("python")), ("{}".to_owned(), "if a:\n\n    b()".to_owned()));
    page.finish(&[("json", 1), ("python", 1)]);

    let plain = "Words:\n\n# now\ncurl x \\\n  -d '{\n  }'\n\n  • a list\n\n{\n  \"a\": [...]\n}\n\nfunction f() {\n\n  g();\n}\n\nEnd.";
    let mut page = ReferencePage::from_plain_text(plain);
    assert_eq!(page.next("bash").lines().count(), 4);
    assert_eq!(page.next_json(), serde_json::json!({ "a": [] }));
    assert_eq!(page.next("javascript").lines().count(), 4);
    page.finish(&[("bash", 1), ("javascript", 1), ("json", 1)]);
}

#[test]
#[should_panic(expected = "blocks that no test takes")]
fn a_block_that_is_left_fails() {
    ReferencePage::from_markdown("```json\n{}\n```").finish(&[("json", 1)]);
}

#[test]
#[should_panic(expected = "code outside of a block")]
fn code_that_is_not_known_fails() {
    ReferencePage::from_plain_text("Words:\n\n    let x = 1;\n");
}
