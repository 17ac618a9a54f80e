//! `embed('text')`: the vector of a text by the configured model. It is planned as a function and never called: the planner
//! puts the vector in its place (`sql::embedded_texts`), since a model may take long or be behind a network.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::definition::unfit;

/// The function's name.
pub(crate) const EMBED: &str = "embed";

/// Returns the function for a model of so many dimensions; `None` where no model is configured.
pub(crate) fn embed(dimension: Option<usize>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Embed {
        dimension: dimension.and_then(|dimension| i32::try_from(dimension).ok()),
        signature: Signature::exact(vec![DataType::Utf8], Volatility::Stable),
    }))
}

#[derive(Debug)]
struct Embed {
    dimension: Option<i32>,
    signature: Signature,
}

impl PartialEq for Embed {
    fn eq(&self, other: &Self) -> bool {
        self.dimension == other.dimension
    }
}

impl Eq for Embed {}

impl Hash for Embed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dimension.hash(state);
    }
}

impl ScalarUDFImpl for Embed {
    fn name(&self) -> &str {
        EMBED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        match self.dimension {
            Some(dimension) => {
                Ok(DataType::FixedSizeList(Arc::new(Field::new_list_field(DataType::Float32, true)), dimension))
            }
            None => Err(unfit("embed() needs a model, and none is configured; set embed.provider".to_owned())),
        }
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(unfit("embed() takes a constant text".to_owned()))
    }
}
