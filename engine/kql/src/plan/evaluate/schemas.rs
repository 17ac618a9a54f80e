//! `schema_merge`: one schema of several that `getschema` described. Binding reads them.

use arrow::array::AsArray;
use arrow::datatypes::Int32Type;
use datafusion::logical_expr::lit;

use crate::ast::{ExprKind, FunctionCall, Literal};
use crate::bind::{BindErrorCode, Binder, Result, fail, invalid, text_literal};
use crate::plan::Relation;
use crate::types::KqlType;

/// The most columns of all schemas.
const MAX_ROWS: usize = 100_000;

/// A column of the merged schema.
struct MergedColumn {
    name: String,
    /// Where it stands first, and where at most.
    ordinals: (i64, i64),
    types: (String, String),
    is_moved: bool,
}

impl<'a> Binder<'a> {
    /// `schema_merge(PreserveOrder)`: a column that stands at different places is an error of its row, unless order does
    /// not matter.
    pub(super) fn schema_merge(&mut self, input: Relation, call: &'a FunctionCall) -> Result<Relation> {
        let span = call.function.span;
        let preserve = match call.arguments.as_slice() {
            [] => true,
            [argument] => match &argument.expr.kind {
                ExprKind::Literal(Literal::Bool(preserve)) => *preserve,
                _ => return invalid(argument.span, "expected `true` or `false`"),
            },
            _ => return invalid(span, "`schema_merge` takes whether the order is preserved"),
        };
        let wanted = ["ColumnName", "ColumnOrdinal", "DataType", "ColumnType"];
        let found = wanted.map(|name| input.column(name).cloned());
        let [Some(name), Some(ordinal), Some(data_type), Some(column_type)] = found else {
            return invalid(span, "`schema_merge` takes what `getschema` returns");
        };
        let ordinal_value = self.convert(ordinal.typed(), KqlType::Int, span)?;
        let outputs =
            vec![name.output(), (ordinal.name.clone(), ordinal_value), data_type.output(), column_type.output()];
        let rows = self.projected(input, outputs)?;
        let batches = self.rows(rows.plan, MAX_ROWS + 1)?;
        let mut merged: Vec<MergedColumn> = Vec::new();
        let mut count = 0;
        for batch in batches {
            let texts = [0, 2, 3].map(|index| batch.column(index).as_string_view_opt());
            let ordinals = batch.column(1).as_primitive_opt::<Int32Type>();
            let ([Some(names), Some(data_types), Some(column_types)], Some(ordinals)) = (texts, ordinals) else {
                return invalid(span, "`schema_merge` takes what `getschema` returns");
            };
            count += batch.num_rows();
            for row in 0..batch.num_rows() {
                let (name, ordinal) = (names.value(row), i64::from(ordinals.value(row)));
                match merged.iter_mut().find(|column| column.name == name) {
                    Some(known) => {
                        known.is_moved |= known.ordinals.0 != ordinal;
                        known.ordinals.1 = known.ordinals.1.max(ordinal);
                    }
                    None => merged.push(MergedColumn {
                        name: name.to_owned(),
                        ordinals: (ordinal, ordinal),
                        types: (data_types.value(row).to_owned(), column_types.value(row).to_owned()),
                        is_moved: false,
                    }),
                }
            }
        }
        if count > MAX_ROWS {
            return fail(BindErrorCode::TooLarge, span, format!("the schemas have more than {MAX_ROWS} columns"));
        }
        merged.sort_by_key(|column| (preserve && column.is_moved, column.ordinals.1));
        let rows = merged.into_iter().enumerate().map(|(index, column)| {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            let MergedColumn { name, ordinals, types: (data_type, column_type), is_moved } = column;
            match (preserve, is_moved) {
                (true, true) => {
                    let error = "ERROR(columns are out of order)";
                    let data_type = format!("ERROR(unknown CSL type:{error})");
                    vec![text_literal(name), lit(-1_i64), text_literal(data_type), text_literal(error)]
                }
                (true, false) => {
                    vec![text_literal(name), lit(ordinals.0), text_literal(data_type), text_literal(column_type)]
                }
                (false, _) => vec![text_literal(name), lit(index), text_literal(data_type), text_literal(column_type)],
            }
        });
        let types = [KqlType::String, KqlType::Long, KqlType::String, KqlType::String];
        let columns = wanted.map(str::to_owned).into_iter().zip(types).collect();
        self.values(columns, rows.collect())
    }
}
