//! A plan as a specification.

use std::borrow::Cow;

use super::columns::{Column, Role};
use super::fields::{Expression, ReadAs, field_path, sayable, title};
use super::offer::Offer;
use super::plan::Plan;
use super::spec::{
    Channel, Encoding, FieldType, Mark, MarkType, NamedData, SCHEMA, Scale, ScaleType, Sort, Spec, TABLE, Transform,
};

/// Characters of an axis's title that names several measures.
const MAX_TITLE_CHARS: usize = 60;

/// The specification of a plan that fits these columns.
pub(super) fn spec(plan: &Plan, offer: &Offer, columns: &[Column<'_>]) -> Spec {
    let mut fields = Fields { columns, offer, transform: Vec::new(), names: Vec::new() };
    let mut base = fields.channel(plan.base, plan.mark, false);
    let (mut values, mut color) = match plan.measures.as_slice() {
        [measure] => {
            let values = fields.channel(*measure, plan.mark, true);
            (values, plan.color.map(|color| fields.color(color)))
        }
        measures => {
            let (values, color) = fields.folded(measures);
            (values, Some(color))
        }
    };
    if plan.mark == MarkType::Point {
        for channel in [&mut base, &mut values].into_iter().filter(|one| one.r#type == FieldType::Quantitative) {
            channel.scale = Some(Scale { zero: Some(false), ..Scale::default() });
        }
    }
    let is_grouped = plan.mark == MarkType::Bar && (plan.is_grouped || plan.measures.len() > 1);
    let mut offset = color.clone().filter(|_| is_grouped);
    if let Some(offset) = &mut offset {
        offset.title = None;
    }
    if let Some(color) = &mut color {
        color.scale = None;
    }
    let (x, y) = if plan.is_horizontal { (values, base) } else { (base, values) };
    let (x_offset, y_offset) = if plan.is_horizontal { (None, offset) } else { (offset, None) };
    Spec {
        schema: Cow::Borrowed(SCHEMA),
        title: offer.title.clone(),
        data: NamedData { name: Cow::Borrowed(TABLE) },
        transform: fields.transform,
        mark: Mark { r#type: plan.mark, tooltip: true, point: plan.mark == MarkType::Line },
        encoding: Encoding { x, y, x_offset, y_offset, color },
    }
}

/// Gathers the transforms that the fields need.
struct Fields<'a> {
    columns: &'a [Column<'a>],
    offer: &'a Offer,
    transform: Vec<Transform>,
    /// Names that were given.
    names: Vec<String>,
}

impl Fields<'_> {
    /// An axis.
    fn channel(&mut self, index: usize, mark: MarkType, is_value: bool) -> Channel {
        let role = self.columns.get(index).map_or(Role::Category, |column| column.role);
        let (r#type, read_as) = match role {
            _ if is_value => (FieldType::Quantitative, ReadAs::Number),
            Role::Measure if mark == MarkType::Bar => (FieldType::Ordinal, ReadAs::Number),
            Role::Measure => (FieldType::Quantitative, ReadAs::Number),
            Role::Time => (FieldType::Temporal, ReadAs::Date),
            Role::Calendar => (FieldType::Ordinal, ReadAs::Number),
            Role::Category | Role::Ignored => (FieldType::Nominal, ReadAs::Plain),
        };
        let mut channel = self.field(index, r#type, read_as);
        match r#type {
            FieldType::Nominal => channel.sort = Sort::AsRows,
            FieldType::Temporal => channel.scale = Some(Scale { r#type: Some(ScaleType::Utc), zero: None }),
            FieldType::Quantitative | FieldType::Ordinal => {}
        }
        channel
    }

    fn color(&mut self, index: usize) -> Channel {
        let role = self.columns.get(index).map_or(Role::Category, |column| column.role);
        if matches!(role, Role::Calendar | Role::Measure) {
            return self.field(index, FieldType::Ordinal, ReadAs::Number);
        }
        Channel { sort: Sort::AsRows, ..self.field(index, FieldType::Nominal, ReadAs::Plain) }
    }

    /// The values and the colours of several measures.
    fn folded(&mut self, measures: &[usize]) -> (Channel, Channel) {
        let fields: Vec<Channel> =
            measures.iter().map(|index| self.field(*index, FieldType::Quantitative, ReadAs::Number)).collect();
        let titles: Vec<&str> = fields.iter().filter_map(|field| field.title.as_deref()).collect();
        let mut all = titles.join(", ");
        if all.chars().count() > MAX_TITLE_CHARS {
            all = "value".to_owned();
        }
        let names = [self.unused("measure"), self.unused("value")];
        let fold = fields.into_iter().map(|field| field.field).collect();
        self.transform.push(Transform::Fold { fold, r#as: names.clone() });
        let [measure, value] = names;
        let plain = |field: String, r#type, title: &str, sort| Channel {
            field,
            r#type,
            title: Some(title.to_owned()),
            sort,
            scale: None,
        };
        let values = plain(value, FieldType::Quantitative, &all, Sort::Natural);
        (values, plain(measure, FieldType::Nominal, "measure", Sort::AsRows))
    }

    fn field(&mut self, index: usize, r#type: FieldType, read_as: ReadAs) -> Channel {
        let name = self.columns.get(index).map_or("", |column| column.name);
        let mut shown = sayable(name, r#type == FieldType::Temporal);
        if shown != name {
            shown = self.unused(&shown);
        }
        if shown != name || read_as != ReadAs::Plain {
            let calculate = Expression { column: name.to_owned(), read_as };
            self.transform.push(Transform::Calculate { calculate, r#as: shown.clone() });
        }
        let own_title = self.offer.titles.iter().find(|(column, _)| *column == index).map(|(_, title)| title.clone());
        Channel {
            field: field_path(&shown),
            r#type,
            title: Some(own_title.unwrap_or_else(|| title(name))),
            sort: Sort::Natural,
            scale: None,
        }
    }

    /// The name, or one like it that no column has.
    fn unused(&mut self, name: &str) -> String {
        let mut unused = name.to_owned();
        while self.columns.iter().any(|column| column.name == unused) || self.names.contains(&unused) {
            unused.push('_');
        }
        self.names.push(unused.clone());
        unused
    }
}
