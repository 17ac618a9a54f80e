//! Writes a plan as a specification.

use std::borrow::Cow;

use super::column_roles::{ChartColumn, ColumnRole};
use super::fields::{Expression, ReadAs, expressible, field_path, title};
use super::offer::ChartOffer;
use super::plan::ChartPlan;
use super::spec::{
    Channel, Encoding, FieldType, Mark, MarkType, NamedData, SCHEMA, Scale, ScaleType, Sort, Spec, TABLE, Transform,
};

/// Characters of an axis's title that names several measures.
const MAX_TITLE_CHARS: usize = 60;

/// Returns the specification of a plan that fits these columns.
pub(super) fn spec(plan: &ChartPlan, offer: &ChartOffer, columns: &[ChartColumn<'_>]) -> Spec {
    let over_time = columns.get(plan.base).is_some_and(|base| base.role == ColumnRole::Time);
    let mut fields = Fields { columns, offer, over_time, transform: Vec::new(), names: Vec::new() };
    let mut base = fields.channel(plan.base, plan.mark, false);
    let (mut values, color) = match plan.measures.as_slice() {
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
    // With its title too: Vega-Lite would write the path, with its escapes, into an expression.
    let offset = color.clone().filter(|_| is_grouped);
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

/// Collects the transforms that the fields need.
struct Fields<'a> {
    columns: &'a [ChartColumn<'a>],
    offer: &'a ChartOffer,
    over_time: bool,
    transform: Vec<Transform>,
    /// Names that are taken.
    names: Vec<String>,
}

impl Fields<'_> {
    /// Creates the channel of an axis.
    fn channel(&mut self, index: usize, mark: MarkType, is_value: bool) -> Channel {
        let role = self.columns.get(index).map_or(ColumnRole::Category, |column| column.role);
        let (r#type, read_as) = match role {
            _ if is_value => (FieldType::Quantitative, ReadAs::Number),
            ColumnRole::Measure if mark == MarkType::Bar => (FieldType::Ordinal, ReadAs::Number),
            ColumnRole::Measure => (FieldType::Quantitative, ReadAs::Number),
            ColumnRole::Time => (FieldType::Temporal, ReadAs::Date),
            ColumnRole::Calendar => (FieldType::Ordinal, ReadAs::Number),
            ColumnRole::Category | ColumnRole::Ignored => (FieldType::Nominal, ReadAs::Plain),
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
        let role = self.columns.get(index).map_or(ColumnRole::Category, |column| column.role);
        if matches!(role, ColumnRole::Calendar | ColumnRole::Measure) {
            return self.field(index, FieldType::Ordinal, ReadAs::Number);
        }
        Channel { sort: Sort::AsRows, ..self.field(index, FieldType::Nominal, ReadAs::Plain) }
    }

    /// Creates the channels of the values and the colours of several measures.
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
        let mut shown = expressible(name, self.over_time);
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

    /// Returns the name, or a similar one that no column has.
    fn unused(&mut self, name: &str) -> String {
        let mut unused = name.to_owned();
        while self.columns.iter().any(|column| column.name == unused) || self.names.contains(&unused) {
            unused.push('_');
        }
        self.names.push(unused.clone());
        unused
    }
}
