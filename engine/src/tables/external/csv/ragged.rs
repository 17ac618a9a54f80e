//! Tables whose records have such different numbers of fields that none is that of most. They are known by the names that
//! they begin with, so that a record which lacks a field is told instead of being a line of text.

use std::collections::HashSet;

use super::records::{CsvSyntax, FieldBuffer, Parsed, parse_record};
use super::sniffer::SAMPLE_RECORDS;

/// Returns how many names the first record has, where it holds nothing else and the delimiter takes most of the others apart,
/// too.
pub(super) fn names_above(syntax: &CsvSyntax, text: &[u8], is_whole: bool) -> Option<usize> {
    let mut fields = FieldBuffer::default();
    let mut names = None;
    let (mut at, mut records, mut divided) = (0, 0_usize, 0_usize);
    while records < SAMPLE_RECORDS {
        fields.clear();
        match parse_record(syntax, text.get(at..).unwrap_or_default(), is_whole, &mut fields) {
            Parsed::Record(extent) => {
                at += extent.bytes;
                match names {
                    Some(_) => {
                        records += 1;
                        divided += usize::from(fields.ends.len() > 1);
                    }
                    None if are_names(&fields) => names = Some(fields.ends.len()),
                    None => return None,
                }
            }
            Parsed::Blank(extent) | Parsed::Comment(extent) => at += extent.bytes,
            Parsed::Unclosed | Parsed::Partial | Parsed::End => break,
        }
    }
    names.filter(|_| records > 1 && divided * 2 > records)
}

/// Returns whether each of several fields is another name, as a program writes it.
fn are_names(fields: &FieldBuffer) -> bool {
    let names: Vec<&[u8]> = (0..fields.ends.len()).map(|index| fields.field(index).trim_ascii()).collect();
    let distinct: HashSet<&[u8]> = names.iter().copied().collect();
    let is_name = |name: &&[u8]| {
        name.first().is_some_and(u8::is_ascii_alphabetic)
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    names.len() > 1 && distinct.len() == names.len() && names.iter().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_text() {
        let commas = CsvSyntax {
            delimiter: b',',
            delimiter_rest: [0; 3],
            quote: Some(b'"'),
            escape: None,
            comment: None,
            comment_anywhere: false,
        };
        let names = |text: &str| names_above(&commas, text.as_bytes(), true);
        assert_eq!(names("id,name\n1,x\n2\n3,y,z\n"), Some(2));
        assert_eq!(names("a,b_1,c\n1\n2,3\n4,5,6,7\n"), Some(3));
        for text in [
            "Dear all,\nsome of you, not all,\nknow\n",
            "one thing,two\n1,x\n2,y,z\n",
            "a,a\n1,x\n2,y,z\n",
            "id\n1,x\n2,y,z\n",
            "id,name\n1,x\n2\n3\n",
            "1,2\n3\n4,5,6\n",
            "id,name\n1\n",
        ] {
            assert_eq!(names(text), None, "{text:?}");
        }
    }
}
