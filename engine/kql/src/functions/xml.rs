//! `parse_xml`: an XML document as a dynamic value. An element is a property of its parent: its text, or null, or a bag
//! of its attributes (`@name`), its text (`#text`) and its elements. Several elements of one name become an array.
//! Everything else in the document is skipped, and one that is not well-formed gives null.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Map, Value};

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

/// The longest document that Kusto reads.
const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting of elements, about as deep as dynamic values nest.
const MAX_DEPTH: usize = 60;

pub(super) const FUNCTIONS: &[FunctionEntry] =
    &[entry("parse_xml", "w", Returns::Is(KqlType::Dynamic), |arguments: &FunctionArguments| -> Result<ArrayRef> {
        let strings = arguments.strings(0)?;
        arguments.make_dynamics(|row| Ok(parse(strings.get(row)).unwrap_or(Value::Null)))
    })];

/// An element that is not closed yet.
struct Element {
    name: String,
    properties: Map<String, Value>,
    /// The text since the last child element or the start tag.
    text: String,
}

impl Element {
    fn opened(tag: &BytesStart<'_>, reader: &Reader<&[u8]>) -> Option<Self> {
        let name = utf8(tag.name().as_ref())?;
        let mut element = Self { name, properties: Map::new(), text: String::new() };
        for attribute in tag.attributes() {
            let attribute = attribute.ok()?;
            let name = utf8(attribute.key.as_ref())?;
            let value = attribute.decode_and_unescape_value(reader.decoder()).ok()?;
            element.properties.insert(format!("@{name}"), Value::String(value.into_owned()));
        }
        Some(element)
    }

    /// Adds a property; several of one name become an array.
    fn add(&mut self, name: &str, value: Value) {
        match self.properties.get_mut(name) {
            Some(Value::Array(parts)) => parts.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
            None => drop(self.properties.insert(name.to_owned(), value)),
        }
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        let trimmed = text.trim();
        if !trimmed.is_empty() {
            self.add("#text", Value::String(trimmed.to_owned()));
        }
    }

    fn closed(mut self) -> (String, Value) {
        self.end_text();
        let is_text = self.properties.len() == 1;
        let value = match self.properties.remove("#text") {
            Some(text) if is_text => text,
            Some(text) => {
                self.properties.insert("#text".to_owned(), text);
                Value::Object(self.properties)
            }
            None if self.properties.is_empty() => Value::Null,
            None => Value::Object(self.properties),
        };
        (self.name, value)
    }
}

fn utf8(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn parse(text: &str) -> Option<Value> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut root: Option<(String, Value)> = None;
    loop {
        let closed = match reader.read_event().ok()? {
            Event::Start(tag) => {
                if open.len() >= MAX_DEPTH {
                    return None;
                }
                if let Some(parent) = open.last_mut() {
                    parent.end_text();
                }
                open.push(Element::opened(&tag, &reader)?);
                continue;
            }
            Event::Empty(tag) => {
                if let Some(parent) = open.last_mut() {
                    parent.end_text();
                }
                Element::opened(&tag, &reader)?.closed()
            }
            Event::End(_) => open.pop()?.closed(),
            Event::Text(part) => {
                let part = part.decode().ok()?;
                match open.last_mut() {
                    Some(element) => element.text.push_str(&part),
                    None if part.trim().is_empty() => {}
                    None => return None,
                }
                continue;
            }
            Event::GeneralRef(reference) => {
                let text = &mut open.last_mut()?.text;
                match reference.resolve_char_ref().ok()? {
                    Some(char) => text.push(char),
                    None => text.push_str(resolve_predefined_entity(&reference.decode().ok()?)?),
                }
                continue;
            }
            Event::Eof => break,
            Event::CData(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.add(&closed.0, closed.1),
            None if root.is_none() => root = Some(closed),
            None => return None,
        }
    }
    let (name, value) = root.filter(|_| open.is_empty())?;
    Some(Value::Object(Map::from_iter([(name, value)])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_become_properties() {
        for (xml, expected) in [
            ("<e/>", json!({"e": null})),
            ("<e>text</e>", json!({"e": "text"})),
            ("<e name=\"a &lt; b\" />", json!({"e": {"@name": "a < b"}})),
            ("<e name=\"value\">text</e>", json!({"e": {"@name": "value", "#text": "text"}})),
            ("<e> <a>1</a> <b>2</b> </e>", json!({"e": {"a": "1", "b": "2"}})),
            ("<e> <a>1</a> <a>2</a> <a/></e>", json!({"e": {"a": ["1", "2", null]}})),
            ("<e> text <a>1</a> </e>", json!({"e": {"#text": "text", "a": "1"}})),
            ("<?xml version=\"1.0\"?>\n<e>a &amp; &#98;<!-- no --></e>", json!({"e": "a & b"})),
        ] {
            assert_eq!(parse(xml), Some(expected), "{xml}");
        }
    }

    #[test]
    fn a_malformed_document_is_null() {
        let nested = "<e>".repeat(100_000);
        for xml in ["", "text", "<e>", "<e></f>", "<e/><f/>", "<e a=1/>", "<e>&unknown;</e>", "</e>", &nested] {
            assert_eq!(parse(xml), None);
        }
    }
}
