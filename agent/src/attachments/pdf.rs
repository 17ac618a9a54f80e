//! The text of a PDF, in the order in which it is written, with lines and gaps where the page has them; of a scan its pages'
//! pictures ([`pictures`]).
//!
//! A PDF comes from anybody. So its streams are counted and unpacked within bounds, as its pages and operations are, and it
//! is read on a blocking thread within a time; a panic of the library is an unreadable file. Of `lopdf` the objects,
//! streams and encodings are taken; which text stands where is found here.

mod objects;
mod pictures;

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Encoding, LoadOptions, Object, ObjectId};
use tokio::sync::Semaphore;

use self::objects::{most_objects, within_objects};
use self::pictures::page_pictures;

/// The largest file that is read.
const MAX_BYTES: usize = 16 << 20;
/// The pages that are read.
const MAX_PAGES: usize = 100;
/// What one stream may unpack to.
const MAX_STREAM_BYTES: usize = 8 << 20;
/// The text that is kept: more than is shown of a file.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Streams of objects, each of which holds a hundred or so.
const MAX_OBJECT_STREAMS: usize = 1_000;
const MAX_OBJECTS: usize = 200_000;
/// What a file may hold, with the objects within objects: its bytes are counted, of pictures too.
const MAX_FILE_OBJECTS: usize = 2_000_000;
/// What its streams of objects may hold together.
const MAX_UNPACKED_OBJECTS: usize = 500_000;
/// The operations and their operands that are read of a page, or of a form.
const MAX_CONTENT_OBJECTS: usize = 500_000;
/// Widths of a font's letters.
const MAX_WIDTHS: usize = 1 << 17;
/// What is read of one string.
const MAX_STRING_BYTES: usize = 4 << 10;
const MAX_OPERATIONS: usize = 1_000_000;
/// How deep forms may lie in forms.
const MAX_FORMS: usize = 8;
const MAX_TIME: Duration = Duration::from_secs(10);
/// How many files are read at once: what bounds the threads that damaged ones hold.
static READERS: Semaphore = Semaphore::const_new(2);

const DAMAGED: &str = "it is a damaged PDF, or one beyond the bounds of what is read";
const ENCRYPTED: &[u8] = b"/Encrypt";

/// A gap of so much of the letters' size is a space.
const SPACE: f32 = 0.18;
/// A step of so much of the letters' size is another line.
const LINE: f32 = 0.4;
/// The width of a letter, in thousandths of its size, where the font does not say.
const USUAL_WIDTH: f32 = 500.0;

thread_local! {
    /// How many objects, streams of objects, and objects within these the file that this thread reads may still have.
    static LEFT: Cell<(usize, usize, usize)> = const { Cell::new((0, 0, 0)) };
    static LEFT_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// What was read of a file.
#[derive(Debug, PartialEq)]
pub(super) struct PdfText {
    /// Its text, one page after the other.
    pub(super) text: String,
    /// How many pages were read.
    pub(super) read_pages: usize,
    /// How many it has.
    pub(super) pages: usize,
    /// The pictures that its pages are, where it has no text: JPEGs.
    pub(super) pictures: Vec<Vec<u8>>,
}

/// Reads a file. Errors: why it cannot be read.
pub(super) async fn read(data: Vec<u8>) -> Result<PdfText, String> {
    if data.len() > MAX_BYTES {
        return Err(format!("it is a PDF of {} bytes, and at most {MAX_BYTES} are read", data.len()));
    }
    let late = || format!("it is a PDF that is not read within {} s", MAX_TIME.as_secs());
    let deadline = Instant::now() + MAX_TIME;
    let reading = async {
        let permit = READERS.acquire().await.map_err(|error| error.to_string())?;
        // The thread has the place until it ends, which may be after its time.
        let thread = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read_until(&data, deadline)
        });
        // A panic ends the task, not the process.
        thread.await.unwrap_or_else(|_| Err(DAMAGED.to_owned()))
    };
    tokio::time::timeout(MAX_TIME, reading).await.unwrap_or_else(|_| Err(late()))
}

fn read_until(data: &[u8], deadline: Instant) -> Result<PdfText, String> {
    // Encrypted streams are not counted by `count_object`.
    if data.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED) {
        return Err("it is an encrypted PDF; send it without a password".to_owned());
    }
    if most_objects(data) > MAX_FILE_OBJECTS {
        return Err(DAMAGED.to_owned());
    }
    LEFT.set((MAX_OBJECTS, MAX_OBJECT_STREAMS, MAX_UNPACKED_OBJECTS));
    LEFT_UNTIL.set(Some(deadline));
    let bounds = LoadOptions::with_max_decompressed_size(MAX_STREAM_BYTES);
    let options = LoadOptions { filter: Some(count_object), ..bounds };
    let document = Document::load_mem_with_options(data, options).map_err(|_| DAMAGED.to_owned())?;
    let pages = document.page_iter().count();
    if pages == 0 {
        return Err(DAMAGED.to_owned());
    }
    let mut reader = PageReader { document: &document, deadline, operations: 0, text: String::new(), end: None };
    let mut read_pages = 0;
    for page in document.page_iter().take(MAX_PAGES) {
        if reader.is_over() {
            break;
        }
        if !reader.text.is_empty() {
            reader.text.push_str("\n\n");
        }
        reader.end = None;
        reader.page(page);
        read_pages += 1;
    }
    let text = reader.text.trim().to_owned();
    let pictures = if text.is_empty() { page_pictures(&document) } else { Vec::new() };
    if text.is_empty() && pictures.is_empty() {
        let length = if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
        return Err(format!("it is a PDF of {length} without text, such as a scanned one; send its pages as images"));
    }
    Ok(PdfText { text, read_pages, pages, pictures })
}

/// Leaves objects out beyond the bounds.
fn count_object(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    let (objects, mut streams, mut unpacked) = LEFT.get();
    let is_late = LEFT_UNTIL.get().is_some_and(|until| Instant::now() > until);
    if is_late || objects == 0 {
        return None;
    }
    if let Some(stream) = object.as_stream().ok().filter(|stream| stream.dict.has_type(b"ObjStm")) {
        // It is unpacked twice, so that nothing is made of one that holds too much.
        let content = stream.get_plain_content_with_limit(MAX_STREAM_BYTES).ok()?;
        streams = streams.checked_sub(1)?;
        unpacked = unpacked.checked_sub(most_objects(&content))?;
    }
    LEFT.set((objects - 1, streams, unpacked));
    Some((id, object.clone()))
}

/// A transformation of the plane, as PDF writes it: `x' = ax + cy + e`, `y' = bx + dy + f`.
#[derive(Debug, Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// Returns the transformation by this one and then by `then`.
    fn then(self, then: Self) -> Self {
        let ([a, b, c, d, e, f], [p, q, r, s, t, u]) = (self.0, then.0);
        Self([a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u])
    }

    fn translation(x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    fn origin(self) -> (f32, f32) {
        let [.., e, f] = self.0;
        (e, f)
    }

    /// Returns how large an upright length of one becomes.
    fn height(self) -> f32 {
        let [_, _, c, d, ..] = self.0;
        c.hypot(d)
    }

    fn of(operands: &[Object]) -> Option<Self> {
        let numbers: Vec<f32> = operands.iter().filter_map(number).collect();
        numbers.try_into().ok().map(Self)
    }
}

/// A font, as far as it says what its codes mean and how wide they are.
struct Font<'a> {
    encoding: Option<Encoding<'a>>,
    widths: HashMap<u32, f32>,
    default_width: f32,
    /// Codes have two bytes.
    is_composite: bool,
}

impl Font<'_> {
    /// Returns the width of a string of letters of the size one.
    fn width(&self, bytes: &[u8]) -> f32 {
        let width = |code: u32| self.widths.get(&code).copied().unwrap_or(self.default_width);
        let widths: f32 = if self.is_composite {
            bytes.chunks(2).map(|code| width(code.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)))).sum()
        } else {
            bytes.iter().map(|code| width(u32::from(*code))).sum()
        };
        widths / 1_000.0
    }
}

/// What `q` keeps and `Q` brings back.
#[derive(Clone)]
struct GraphicsState<'a> {
    matrix: Matrix,
    font: Option<Rc<Font<'a>>>,
    size: f32,
    leading: f32,
    letter_space: f32,
    word_space: f32,
    stretch: f32,
}

/// Where the text ended.
struct TextEnd {
    x: f32,
    y: f32,
}

struct PageReader<'a> {
    document: &'a Document,
    deadline: Instant,
    operations: usize,
    text: String,
    end: Option<TextEnd>,
}

impl<'a> PageReader<'a> {
    fn is_over(&self) -> bool {
        self.text.len() > MAX_TEXT_BYTES || self.operations > MAX_OPERATIONS || Instant::now() > self.deadline
    }

    fn page(&mut self, page: ObjectId) {
        let document = self.document;
        // What cannot be read of a page does not take the others away.
        let Ok(content) = document.get_page_content_with_limit(page, MAX_STREAM_BYTES) else { return };
        let Ok((direct, others)) = document.get_page_resources(page) else { return };
        let others = others.into_iter().filter_map(|id| document.get_dictionary(id).ok());
        let resources: Vec<&Dictionary> = direct.into_iter().chain(others).collect();
        self.content(&content, &resources, Matrix::IDENTITY, 0);
    }

    fn content(&mut self, content: &[u8], resources: &[&'a Dictionary], matrix: Matrix, depth: usize) {
        let mut fonts: HashMap<Vec<u8>, Option<Rc<Font<'a>>>> = HashMap::new();
        let mut state = GraphicsState {
            matrix,
            font: None,
            size: 1.0,
            leading: 0.0,
            letter_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
        };
        let mut kept = Vec::new();
        let (mut line, mut place) = (Matrix::IDENTITY, Matrix::IDENTITY);
        // What follows a fault is not read.
        let Ok(content) = Content::decode(within_objects(content, MAX_CONTENT_OBJECTS)) else { return };
        for Operation { operator, operands } in content.operations {
            self.operations += 1;
            if self.operations.is_multiple_of(256) && self.is_over() {
                return;
            }
            let operand = |index: usize| operands.get(index).and_then(number).unwrap_or_default();
            match operator.as_str() {
                "q" => kept.push(state.clone()),
                "Q" => state = kept.pop().unwrap_or(state),
                "cm" => state.matrix = Matrix::of(&operands).map_or(state.matrix, |by| by.then(state.matrix)),
                "BT" => (line, place) = (Matrix::IDENTITY, Matrix::IDENTITY),
                "Tf" => {
                    if let Some(Object::Name(name)) = operands.first() {
                        let font = || self.font(name, resources).map(Rc::new);
                        state.font = fonts.entry(name.clone()).or_insert_with(font).clone();
                    }
                    state.size = operand(1);
                }
                "TL" => state.leading = operand(0),
                "Tc" => state.letter_space = operand(0),
                "Tw" => state.word_space = operand(0),
                "Tz" => state.stretch = operand(0) / 100.0,
                "Td" | "TD" => {
                    if operator == "TD" {
                        state.leading = -operand(1);
                    }
                    line = Matrix::translation(operand(0), operand(1)).then(line);
                    place = line;
                }
                "Tm" => {
                    line = Matrix::of(&operands).unwrap_or(line);
                    place = line;
                }
                "T*" | "'" | "\"" => {
                    line = Matrix::translation(0.0, -state.leading).then(line);
                    place = line;
                    if operator == "\"" {
                        (state.word_space, state.letter_space) = (operand(0), operand(1));
                    }
                    if let Some(Object::String(bytes, _)) = operands.last() {
                        self.show(bytes, &state, &mut place);
                    }
                }
                "Tj" | "TJ" => {
                    let parts = match operands.first() {
                        Some(Object::Array(parts)) => parts.as_slice(),
                        _ => operands.as_slice(),
                    };
                    for part in parts {
                        if let Object::String(bytes, _) = part {
                            self.show(bytes, &state, &mut place);
                        } else if let Some(back) = number(part) {
                            let step = -back / 1_000.0 * state.size * state.stretch;
                            place = Matrix::translation(step, 0.0).then(place);
                        }
                    }
                }
                "Do" => {
                    if let Some(Object::Name(name)) = operands.first()
                        && depth < MAX_FORMS
                    {
                        self.form(name, resources, state.matrix, depth);
                    }
                }
                _ => {}
            }
        }
    }

    fn form(&mut self, name: &[u8], resources: &[&'a Dictionary], matrix: Matrix, depth: usize) {
        let Some(Object::Stream(form)) = self.resource(b"XObject", name, resources) else { return };
        if self.is_over() || !form.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Form") {
            return;
        }
        let Ok(content) = form.get_plain_content_with_limit(MAX_STREAM_BYTES) else { return };
        let own = self.document.get_dict_in_dict(&form.dict, b"Resources").ok();
        let placed = form.dict.get(b"Matrix").and_then(Object::as_array).ok().and_then(|numbers| Matrix::of(numbers));
        let matrix = placed.map_or(matrix, |placed| placed.then(matrix));
        let inner: Vec<&Dictionary> = own.into_iter().chain(resources.iter().copied()).collect();
        self.content(&content, &inner, matrix, depth + 1);
    }

    fn resource(&self, kind: &[u8], name: &[u8], resources: &[&'a Dictionary]) -> Option<&'a Object> {
        let document = self.document;
        let found = resources.iter().find_map(|all| document.get_dict_in_dict(all, kind).ok()?.get(name).ok())?;
        document.dereference(found).ok().map(|(_, object)| object)
    }

    fn font(&self, name: &[u8], resources: &[&'a Dictionary]) -> Option<Font<'a>> {
        if self.is_over() {
            return None;
        }
        let document = self.document;
        let font = self.resource(b"Font", name, resources)?.as_dict().ok()?;
        let is_composite = font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Type0");
        let encoding = to_unicode(font, document).or_else(|| {
            let encoding = font.get_font_encoding_with_limit(document, MAX_STREAM_BYTES).ok()?;
            // The codes of a composite font are numbers of shapes, which nothing else names.
            (!is_composite || matches!(encoding, Encoding::SimpleEncoding(_))).then_some(encoding)
        });
        let mut widths = HashMap::new();
        let mut default_width = USUAL_WIDTH;
        if is_composite {
            let descendants = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array).ok();
            let descendant = descendants.and_then(|all| document.dereference(all.first()?).ok()?.1.as_dict().ok());
            if let Some(descendant) = descendant {
                default_width = descendant.get(b"DW").ok().and_then(number).unwrap_or(1_000.0);
                if let Ok(Object::Array(listed)) = descendant.get_deref(b"W", document) {
                    widths = composite_widths(listed, document);
                }
            }
        } else if let Ok(Object::Array(listed)) = font.get_deref(b"Widths", document) {
            let first = font.get(b"FirstChar").ok().and_then(code).unwrap_or_default();
            widths = (first..).zip(listed.iter().filter_map(number)).collect();
        }
        Some(Font { encoding, widths, default_width, is_composite })
    }

    /// Writes a string down and moves `place` to its end.
    fn show(&mut self, bytes: &[u8], state: &GraphicsState<'a>, place: &mut Matrix) {
        let Some(font) = state.font.as_ref().filter(|_| self.text.len() <= MAX_TEXT_BYTES) else { return };
        let bytes = bytes.get(..MAX_STRING_BYTES).unwrap_or(bytes);
        let written = font.encoding.as_ref().and_then(|encoding| Document::decode_text(encoding, bytes).ok());
        let written: String =
            written.unwrap_or_default().chars().filter(|c| !c.is_control() && *c != '\u{fffd}').collect();
        let matrix = place.then(state.matrix);
        let size = (state.size * matrix.height()).abs();
        let (x, y) = matrix.origin();
        let codes = if font.is_composite { bytes.len() / 2 } else { bytes.len() };
        let spaces = bytes.iter().filter(|byte| !font.is_composite && **byte == b' ').count();
        let width =
            font.width(bytes) * state.size + state.letter_space * codes as f32 + state.word_space * spaces as f32;
        *place = Matrix::translation(width * state.stretch, 0.0).then(*place);
        if written.is_empty() {
            return;
        }
        if let Some(end) = &self.end {
            let is_other_line = (y - end.y).abs() > LINE * size || x < end.x - size;
            let is_apart = x > end.x + SPACE * size;
            if is_other_line {
                self.text.push('\n');
            } else if is_apart && !self.text.ends_with(char::is_whitespace) && !written.starts_with(char::is_whitespace)
            {
                self.text.push(' ');
            }
        }
        self.text.push_str(&written);
        let (x, y) = place.then(state.matrix).origin();
        self.end = Some(TextEnd { x, y });
    }
}

/// Returns what the font itself says of its codes.
fn to_unicode<'a>(font: &Dictionary, document: &Document) -> Option<Encoding<'a>> {
    let mut only = Dictionary::new();
    only.set("Type", "Font");
    only.set("ToUnicode", font.get(b"ToUnicode").ok()?.clone());
    match only.get_font_encoding_with_limit(document, MAX_STREAM_BYTES) {
        Ok(Encoding::UnicodeMapEncoding(map)) => Some(Encoding::UnicodeMapEncoding(map)),
        _ => None,
    }
}

/// Reads `W`: `first [width ...]`, or `first last width`.
fn composite_widths(listed: &[Object], document: &Document) -> HashMap<u32, f32> {
    let mut widths = HashMap::new();
    let mut rest = listed.iter().filter_map(|object| document.dereference(object).ok().map(|(_, object)| object));
    let mut read = 0;
    while let (Some(first), Some(second)) = (rest.next().and_then(code), rest.next()) {
        if let Object::Array(each) = second {
            widths.extend((first..).zip(each.iter().filter_map(number)));
            read += each.len();
        } else if let (Some(last), Some(width)) = (code(second), rest.next().and_then(number)) {
            widths.extend((first..=last).map(|code| (code, width)));
            read += (first..=last).count();
        }
        if read > MAX_WIDTHS {
            break;
        }
    }
    widths
}

fn number(object: &Object) -> Option<f32> {
    object.as_float().ok()
}

/// Returns a code of at most two bytes.
fn code(object: &Object) -> Option<u32> {
    object.as_i64().ok().map(|code| u32::from(u16::try_from(code).unwrap_or(u16::MAX)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use lopdf::{Stream, dictionary};

    use super::*;

    /// Returns a PDF with a page for each content, and a font `F` of single bytes and `G` of pairs of them.
    fn pdf(contents: Vec<Stream>) -> Vec<u8> {
        let mut document = Document::with_version("1.5");
        let pages = document.new_object_id();
        let plain =
            document.add_object(dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier" });
        let names = document.add_object(page(NAMES));
        let shapes = document.add_object(dictionary! { "Type" => "Font", "Subtype" => "CIDFontType2", "DW" => 600 });
        let composite = document.add_object(dictionary! {
            "Type" => "Font", "Subtype" => "Type0", "Encoding" => "Identity-H", "ToUnicode" => names,
            "DescendantFonts" => vec![Object::Reference(shapes)],
        });
        let form = dictionary! { "Type" => "XObject", "Subtype" => "Form" };
        let form = document.add_object(Stream::new(form, b"BT /F 10 Tf 0 20 Td (in a form) Tj ET".to_vec()));
        let resources = document.add_object(dictionary! {
            "Font" => dictionary! { "F" => plain, "G" => composite },
            "XObject" => dictionary! { "X" => form },
        });
        let each = contents.into_iter().map(|content| {
            let content = document.add_object(content);
            let page = dictionary! { "Type" => "Page", "Parent" => pages, "Contents" => content };
            Object::Reference(document.add_object(page))
        });
        let kids: Vec<Object> = each.collect();
        let count = i64::try_from(kids.len()).unwrap();
        let tree = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources };
        document.objects.insert(pages, Object::Dictionary(tree));
        let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
        document.trailer.set("Root", catalog);
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    const NAMES: &str = "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n\
        /CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n\
        /CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n\
        1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n\
        2 beginbfchar\n<0001> <00DC>\n<0002> <0062>\nendbfchar\n\
        endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n";

    fn page(content: &str) -> Stream {
        Stream::new(Dictionary::new(), content.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_and_gaps_are_those_of_the_page() {
        for (content, expected) in [
            ("BT /F 10 Tf 50 700 Td (Revenue) Tj 0 -12 Td (by month) Tj ET", "Revenue\nby month"),
            ("BT /F 10 Tf 12 TL (a) Tj T* (b) Tj (c) ' 1 0 (d) \" ET", "a\nb\nc\nd"),
            // Letters are moved together, words are moved apart.
            ("BT /F 10 Tf [(Re) 20 (venue) -300 (2024)] TJ ET", "Revenue 2024"),
            // A column to the right of another one, each with a place of its own.
            ("BT /F 10 Tf 1 0 0 1 50 700 Tm (name) Tj 1 0 0 1 200 700 Tm (sum) Tj ET", "name sum"),
            ("q 0.1 0 0 0.1 0 0 cm BT /F 100 Tf 0 0 Td (small) Tj 0 -120 Td (next) Tj ET Q", "small\nnext"),
            ("BT /G 10 Tf <00010002> Tj ET", "\u{dc}b"),
            ("BT /F 10 Tf 0 90 Td (before) Tj ET /X Do", "before\nin a form"),
        ] {
            let read = read(pdf(vec![page(content)])).await;
            assert_eq!(
                read,
                Ok(PdfText { text: expected.to_owned(), read_pages: 1, pages: 1, pictures: Vec::new() }),
                "{content}"
            );
        }
        let many = (0..120).map(|n| page(&format!("BT /F 10 Tf (page {n}) Tj ET"))).collect();
        let read = read(pdf(many)).await.unwrap();
        assert_eq!((read.read_pages, read.pages), (MAX_PAGES, 120));
        assert!(read.text.starts_with("page 0\n\npage 1\n\n") && read.text.ends_with("page 99"), "{}", read.text);
    }

    #[tokio::test]
    async fn what_is_no_text_is_refused() {
        let why = read(pdf(vec![page("0 0 10 10 re f")])).await.unwrap_err();
        assert!(why.contains("without text") && why.contains("as images"), "{why}");
        let mut encrypted = pdf(vec![page("BT /F 10 Tf (secret) Tj ET")]);
        encrypted.extend(b"% << /Encrypt 1 0 R >>");
        assert!(read(encrypted).await.unwrap_err().contains("encrypted"));
        assert!(read(vec![b' '; MAX_BYTES + 1]).await.unwrap_err().contains("at most"));
    }

    /// Damaged files and those that unpack to much more than they are end with an answer.
    #[tokio::test]
    async fn files_of_anybody_are_read_or_refused() {
        let whole = pdf(vec![page("BT /F 10 Tf (Revenue) Tj ET")]);
        for length in (0..whole.len()).step_by(29) {
            let _ = read(whole[..length].to_vec()).await;
            let mut changed = whole.clone();
            changed[length] ^= 0x15;
            let _ = read(changed).await;
        }
        let mut crowded = whole.clone();
        crowded.extend(b"0 ".repeat(MAX_FILE_OBJECTS + 1));
        assert_eq!(read(crowded).await, Err(DAMAGED.to_owned()));
        let endless = "BT /F 10 Tf (again) Tj ET ".repeat(1 << 20);
        let mut bomb = page(&endless);
        bomb.compress().unwrap();
        let file = pdf(vec![bomb]);
        assert!(file.len() < endless.len() / 50);
        assert!(read(file).await.unwrap_err().contains("without text"), "the page's content is beyond the bound");
        let read = read(pdf(vec![page("/X Do ".repeat(1_000).as_str())])).await.unwrap();
        assert_eq!(read.text.matches("in a form").count(), 1_000);
    }
}
