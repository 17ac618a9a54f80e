//! Events of the XML in workbooks, by the names of elements without their prefixes.

use std::borrow::Cow;
use std::io::{BufRead, Error, ErrorKind, Result as IoResult};

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::QName;

/// A reader of one part.
pub(super) struct PartXml<R> {
    reader: Reader<R>,
    buffer: Vec<u8>,
}

/// What stands next.
pub(super) enum XmlEvent<'e> {
    Start(XmlTag<'e>),
    /// An element without content, or the end of one: its name.
    End(Vec<u8>),
    Text(Cow<'e, str>),
    Other,
    Eof,
}

/// The start of an element.
pub(super) struct XmlTag<'e> {
    tag: BytesStart<'e>,
    /// Whether it has no content; no end follows.
    pub is_empty: bool,
}

impl XmlTag<'_> {
    /// Returns the name without its prefix.
    pub(super) fn name(&self) -> &[u8] {
        self.tag.local_name().into_inner()
    }

    /// Returns the value of an attribute, by its name without the prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        self.value_where(|key| key.local_name().as_ref() == name.as_bytes())
    }

    /// Returns the value of an attribute, by its name with the usual prefix.
    pub(super) fn prefixed(&self, name: &str) -> Option<String> {
        self.value_where(|key| key.as_ref() == name.as_bytes())
    }

    fn value_where(&self, is_wanted: impl Fn(QName<'_>) -> bool) -> Option<String> {
        let found = self.tag.attributes().flatten().find(|attribute| is_wanted(attribute.key))?;
        let text = std::str::from_utf8(&found.value).ok()?;
        let unescaped = quick_xml::escape::unescape(text).ok()?;
        Some(unescaped.into_owned())
    }
}

impl<R: BufRead> PartXml<R> {
    pub(super) fn new(source: R) -> Self {
        Self { reader: Reader::from_reader(source), buffer: Vec::new() }
    }

    /// Returns the next event. Blocks.
    pub(super) fn next(&mut self) -> IoResult<XmlEvent<'_>> {
        self.buffer.clear();
        Ok(match self.reader.read_event_into(&mut self.buffer).map_err(of_xml)? {
            Event::Start(tag) => XmlEvent::Start(XmlTag { tag, is_empty: false }),
            Event::Empty(tag) => XmlEvent::Start(XmlTag { tag, is_empty: true }),
            Event::End(tag) => XmlEvent::End(tag.local_name().into_inner().to_vec()),
            Event::Text(text) => XmlEvent::Text(text.decode().map_err(Error::other)?.into_owned().into()),
            Event::CData(text) => XmlEvent::Text(text.decode().map_err(Error::other)?.into_owned().into()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(of_xml)? {
                Some(char) => XmlEvent::Text(char.to_string().into()),
                None => {
                    let name = reference.decode().map_err(Error::other)?;
                    XmlEvent::Text(resolve_predefined_entity(&name).unwrap_or_default().into())
                }
            },
            Event::Eof => XmlEvent::Eof,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => XmlEvent::Other,
        })
    }
}

fn of_xml(error: quick_xml::Error) -> Error {
    match error {
        // What the archive's reader said.
        quick_xml::Error::Io(error) => Error::new(error.kind(), error.to_string()),
        other => Error::new(ErrorKind::InvalidData, other.to_string()),
    }
}
