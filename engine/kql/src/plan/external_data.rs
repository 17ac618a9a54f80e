//! `externaldata` and `inline_external_table`: files read as the columns that the query declares, fields by position,
//! records and Parquet by name, unless a mapping says where they are. A string that is no value of its column's type is
//! null. The host decides who may read which location.

mod mapping;

use datafusion::logical_expr::lit;

use self::mapping::{IngestionMapping, MappingSource, PathStep};
use super::{Column, Relation};
use crate::ast::{Expr, ExprKind, ExternalData, Literal, OperatorParameter, ParameterValue, Property};
use crate::bind::{
    BindStop, Binder, Environment, ExpressionScope, Need, Result, Typed, constant_of, invalid, not_supported, null_of,
    text_of,
};
use crate::functions::ScalarOperator;
use crate::host::{ExternalLayout, ExternalLocation};
use crate::span::Span;
use crate::types::KqlType;

/// The endings of compressed files.
const COMPRESSED: &[&str] = &["gz", "zst", "bz2", "xz"];

/// A format: how the files are written, and whether their strings are JSON records.
struct ExternalFormat {
    layout: ExternalLayout,
    is_json: bool,
}

impl ExternalFormat {
    fn from_name(name: &str) -> Option<Self> {
        let (layout, is_json) = match name {
            "csv" => (ExternalLayout::Separated(','), false),
            "tsv" => (ExternalLayout::Separated('\t'), false),
            "psv" => (ExternalLayout::Separated('|'), false),
            "scsv" => (ExternalLayout::Separated(';'), false),
            "txt" => (ExternalLayout::Lines, false),
            "json" => (ExternalLayout::Lines, true),
            "multijson" | "singlejson" => (ExternalLayout::Records, true),
            "parquet" => (ExternalLayout::Parquet, false),
            _ => return None,
        };
        Some(Self { layout, is_json })
    }

    /// Returns the format that a location's ending says, by default CSV.
    fn from_location(location: &str) -> Self {
        let path = location.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let name = path.rsplit('/').next().unwrap_or_default();
        let mut endings = name.rsplit('.');
        let mut ending = endings.next().unwrap_or_default();
        if COMPRESSED.contains(&ending) {
            ending = endings.next().unwrap_or_default();
        }
        let ending = match ending {
            "jsonl" | "ndjson" => "json",
            other => other,
        };
        Self::from_name(ending).unwrap_or(Self { layout: ExternalLayout::Separated(','), is_json: false })
    }
}

impl<'a> Binder<'a> {
    pub(crate) fn external_data(
        &mut self,
        external: &'a ExternalData,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        for (index, column) in external.columns.iter().enumerate() {
            if external.columns.iter().take(index).any(|other| other.name.text == column.name.text) {
                return invalid(column.span, format!("the column `{}` is there twice", column.name.text));
            }
        }
        let mut format_name = None;
        let mut skips_first = false;
        let mut mapping = None;
        for parameter in &external.parameters {
            match (parameter.name.text.to_ascii_lowercase().as_str(), parameter_text(parameter)) {
                ("kind", Some("storage")) => {}
                ("kind", Some(kind)) => {
                    return not_supported(parameter.span, format_args!("`kind={kind}` of inline_external_table"));
                }
                ("dataformat", Some(name)) => format_name = Some((name.to_owned(), parameter.span)),
                _ => {}
            }
        }
        // Only after the kind, of which some need none.
        if external.columns.is_empty() {
            return invalid(span, "externaldata needs columns");
        }
        for property in &external.properties {
            match property.name.text.to_ascii_lowercase().as_str() {
                "format" => format_name = Some((property_text(property)?, property.span)),
                "ingestionmapping" => mapping = Some(IngestionMapping::parse(&property_text(property)?, property)?),
                "ignorefirstrecord" => skips_first = property_flag(property)?,
                "includeheaders" => {
                    skips_first = match property_text(property)?.to_ascii_lowercase().as_str() {
                        "all" => true,
                        "none" => false,
                        other => return not_supported(property.span, format_args!("`includeHeaders={other}`")),
                    }
                }
                "encoding" if property_text(property)?.to_ascii_lowercase().starts_with("utf8") => {}
                name => return not_supported(property.span, format_args!("`{name}` of externaldata")),
            }
        }
        let mut inputs = Vec::with_capacity(external.locations.len());
        for location in &external.locations {
            let text = self.location(location, environment)?;
            let format = match &format_name {
                None => ExternalFormat::from_location(&text),
                Some((name, span)) => match ExternalFormat::from_name(&name.to_ascii_lowercase()) {
                    Some(format) => format,
                    None => return not_supported(*span, format_args!("the format `{name}`")),
                },
            };
            // Records have no header, whatever the query says.
            let skips_first = skips_first && !format.is_json && format.layout != ExternalLayout::Parquet;
            let key = ExternalLocation { location: text, layout: format.layout, skips_first };
            let Some(source) = self.answers.locations.get(&key) else {
                return Err(BindStop::Needs(Need::Location(key)));
            };
            let read = self.scan("externaldata", std::sync::Arc::clone(source), &[], &[])?;
            inputs.push(self.declared_columns(read, external, mapping.as_ref(), &format, span)?);
        }
        let united = self.united(inputs, &[])?;
        Ok(Relation { name: None, ..united })
    }

    fn location(&mut self, location: &'a Expr, environment: &Environment<'a>) -> Result<String> {
        let typed = self.scalar(location, &ExpressionScope::constant(environment))?;
        match text_of(constant_of(&typed.expr)?.as_ref()) {
            Some(text) if typed.kql_type == KqlType::String => Ok(text.to_owned()),
            _ => invalid(location.span, "expected a location, which is a constant string"),
        }
    }

    fn declared_columns(
        &mut self,
        read: Relation,
        external: &'a ExternalData,
        mapping: Option<&IngestionMapping>,
        format: &ExternalFormat,
        span: Span,
    ) -> Result<Relation> {
        let record = match read.columns.first() {
            Some(text) if format.is_json => Some(self.apply("parse_json", vec![text.typed()], span)?),
            _ => None,
        };
        let mut outputs = Vec::with_capacity(external.columns.len());
        for (index, declared) in external.columns.iter().enumerate() {
            let kql_type = KqlType::from(declared.scalar_type);
            let name = &declared.name.text;
            let by_name = format.is_json || format.layout == ExternalLayout::Parquet;
            let default = if by_name {
                MappingSource::Path(vec![PathStep::Member(name.clone())])
            } else {
                MappingSource::Ordinal(index)
            };
            let value = match mapping.map_or(Some(&default), |mapping| mapping.source_of(name)) {
                Some(MappingSource::Path(_)) if !by_name => {
                    return invalid(declared.span, "lines have no paths; a mapping has the `Ordinal` of their fields");
                }
                Some(MappingSource::Ordinal(_)) if by_name => {
                    return invalid(
                        declared.span,
                        "records have no ordinals; a mapping has the `Path` of their values",
                    );
                }
                Some(source) => self.value_at(&read, record.as_ref(), source, declared.span)?,
                None => None,
            };
            let value = match value {
                // The string is JSON and not a string value.
                Some(text) if text.kql_type == KqlType::String && kql_type == KqlType::Dynamic => {
                    self.apply("parse_json", vec![text], declared.span)?
                }
                Some(value) => self.convert(value, kql_type, declared.span)?,
                None => Typed::new(lit(null_of(kql_type)), kql_type),
            };
            outputs.push((name.clone(), value));
        }
        self.projected(read, outputs)
    }

    /// Returns the value of a column in what was read; `None`: it is not there.
    fn value_at(
        &mut self,
        read: &Relation,
        record: Option<&Typed>,
        source: &MappingSource,
        span: Span,
    ) -> Result<Option<Typed>> {
        let (mut value, steps) = match (source, record) {
            (MappingSource::Constant(text), _) => return Ok(Some(Typed::text(text))),
            (MappingSource::Ordinal(index), _) => return Ok(read.columns.get(*index).map(Column::typed)),
            (MappingSource::Path(steps), Some(record)) => (record.clone(), steps.as_slice()),
            (MappingSource::Path(steps), None) => match steps.split_first() {
                Some((PathStep::Member(name), rest)) => match read.column(name) {
                    Some(column) => (column.typed(), rest),
                    None => return Ok(None),
                },
                _ => return Ok(None),
            },
        };
        for step in steps {
            value = match step {
                PathStep::Member(name) => {
                    self.apply_operator(ScalarOperator::DynamicMember, vec![value, Typed::text(name)], span)?
                }
                PathStep::Element(index) => self.element_of(value, *index, span)?,
            };
        }
        Ok(Some(value))
    }
}

fn parameter_text(parameter: &OperatorParameter) -> Option<&str> {
    match &parameter.value {
        ParameterValue::Name(name) => Some(&name.text),
        _ => None,
    }
}

fn property_text(property: &Property) -> Result<String> {
    match property.values.first().map(|value| &value.kind) {
        Some(ExprKind::Literal(Literal::String(text))) => Ok(text.clone()),
        Some(ExprKind::Name(name)) => Ok(name.text.clone()),
        _ => invalid(property.span, "expected a string"),
    }
}

fn property_flag(property: &Property) -> Result<bool> {
    match property.values.first().map(|value| &value.kind) {
        Some(ExprKind::Literal(Literal::Bool(value))) => Ok(*value),
        Some(ExprKind::Literal(Literal::String(text))) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(ExprKind::Literal(Literal::String(text))) if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => invalid(property.span, "expected true or false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_the_format() {
        for (location, layout, is_json) in [
            ("/a/b.csv", ExternalLayout::Separated(','), false),
            ("https://host/a/b.TSV.gz?x=1.json", ExternalLayout::Separated('\t'), false),
            ("s3://bucket/b.json", ExternalLayout::Lines, true),
            ("/a/b.jsonl.zst", ExternalLayout::Lines, true),
            ("/a.parquet/b", ExternalLayout::Separated(','), false),
            ("/a/b.parquet", ExternalLayout::Parquet, false),
            ("", ExternalLayout::Separated(','), false),
        ] {
            let format = ExternalFormat::from_location(location);
            assert_eq!((format.layout, format.is_json), (layout, is_json), "{location}");
        }
    }
}
