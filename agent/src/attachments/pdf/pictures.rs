//! The pictures that the pages of a scan are: JPEGs, as they lie in the file, which models that see read. Nothing is drawn, so
//! that a page of another kind of picture is not shown.

use lopdf::{Document, Object, ObjectId};

/// The pages whose pictures are shown.
const MAX_PICTURES: usize = 20;
/// What the pictures may have together.
const MAX_PICTURE_BYTES: usize = 8 << 20;
const JPEG_MAGIC: &[u8] = &[0xff, 0xd8, 0xff];

/// Returns the picture of each page that is one, in order, within the bounds.
pub(super) fn page_pictures(document: &Document) -> Vec<Vec<u8>> {
    let mut pictures: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    for page in document.page_iter().take(MAX_PICTURES) {
        let Some(picture) = picture_of(document, page) else { continue };
        bytes += picture.len();
        if bytes > MAX_PICTURE_BYTES {
            break;
        }
        pictures.push(picture.to_vec());
    }
    pictures
}

/// Returns the largest picture of a page: a scan has one, and others beside it are marks.
fn picture_of(document: &Document, page: ObjectId) -> Option<&[u8]> {
    let (direct, others) = document.get_page_resources(page).ok()?;
    let others = others.into_iter().filter_map(|id| document.get_dictionary(id).ok());
    let mut largest: Option<&[u8]> = None;
    for resources in direct.into_iter().chain(others) {
        let Ok(named) = document.get_dict_in_dict(resources, b"XObject") else { continue };
        for (_, object) in named.iter() {
            let Ok((_, object)) = document.dereference(object) else { continue };
            let picture = jpeg(object).filter(|picture| largest.is_none_or(|largest| picture.len() > largest.len()));
            largest = picture.or(largest);
        }
    }
    largest
}

/// Returns the bytes of a picture that is a JPEG and nothing around it.
fn jpeg(object: &Object) -> Option<&[u8]> {
    let stream = object.as_stream().ok()?;
    let is_named = |object: &Object, name: &[u8]| object.as_name().is_ok_and(|found| found == name);
    let is_picture = is_named(stream.dict.get(b"Subtype").ok()?, b"Image");
    let is_jpeg = match stream.dict.get(b"Filter").ok()? {
        Object::Array(filters) => matches!(filters.as_slice(), [only] if is_named(only, b"DCTDecode")),
        filter => is_named(filter, b"DCTDecode"),
    };
    Some(stream.content.as_slice()).filter(|content| is_picture && is_jpeg && content.starts_with(JPEG_MAGIC))
}
