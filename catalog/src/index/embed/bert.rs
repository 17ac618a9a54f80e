//! Sentence models of BERT's shape, such as all-MiniLM-L6-v2, computed in Rust: nothing has to be installed beside the
//! binary. Weights are read from `model.safetensors`; one text is one matrix, so nothing is padded.
//!
//! Vectors agree with those of the same weights in ONNX Runtime to rounding: means of the last layer's tokens, at unit
//! length.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use safetensors::SafeTensors;
use serde::Deserialize;
use tokenizers::{Tokenizer, TruncationParams};

use super::tensors::floats;
use super::{embedder_error, normalise};
use crate::error::Result;

/// The files of a model's folder.
pub(super) const FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

/// A loaded model. Shared by all threads.
pub(super) struct BertModel {
    id: String,
    tokenizer: Tokenizer,
    heads: usize,
    norm_epsilon: f32,
    words: Array2<f32>,
    positions: Array2<f32>,
    /// The row of the first segment: a text has no other.
    segment: Array1<f32>,
    embedding_norm: Norm,
    layers: Vec<EncoderLayer>,
}

/// `config.json`, as far as it decides the computation.
#[derive(Deserialize)]
struct BertConfig {
    model_type: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    layer_norm_eps: f32,
    hidden_act: String,
}

struct EncoderLayer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    intermediate: Linear,
    output: Linear,
    output_norm: Norm,
}

struct Linear {
    /// One row an output.
    weight: Array2<f32>,
    bias: Array1<f32>,
}

struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
}

impl BertModel {
    /// Reads a model from the contents of its [`FILES`]. Texts are cut to `max_tokens` tokens.
    pub(super) fn from_bytes(id: &str, files: [&[u8]; 3], max_tokens: usize) -> Result<Self> {
        let odd = |detail: String| embedder_error(id, detail, &format!("restore the model's {}", FILES.join(", ")));
        let [config, tokenizer, tensors] = files;
        let config: BertConfig =
            serde_json::from_slice(config).map_err(|error| odd(format!("config.json: {error}")))?;
        if config.model_type != "bert" || config.hidden_act != "gelu" {
            return Err(odd(format!("a model of type {} is not one of BERT's shape", config.model_type)));
        }
        if config.num_attention_heads == 0 || !config.hidden_size.is_multiple_of(config.num_attention_heads) {
            return Err(odd(format!("{} attention heads do not fit", config.num_attention_heads)));
        }
        let tokenizer = Tokenizer::from_bytes(tokenizer).and_then(|mut tokenizer| {
            tokenizer.with_padding(None);
            tokenizer
                .with_truncation(Some(TruncationParams { max_length: max_tokens, ..TruncationParams::default() }))?;
            Ok(tokenizer)
        });
        let tokenizer = tokenizer.map_err(|error| odd(format!("tokenizer.json: {error}")))?;
        let tensors = SafeTensors::deserialize(tensors).map_err(|error| odd(format!("model.safetensors: {error}")))?;
        let weights = Weights { id, tensors };
        let segments = weights.matrix("embeddings.token_type_embeddings.weight")?;
        if segments.nrows() == 0 {
            return Err(odd("it has no segments".into()));
        }
        let model = Self {
            id: id.to_owned(),
            tokenizer,
            heads: config.num_attention_heads,
            norm_epsilon: config.layer_norm_eps,
            words: weights.matrix("embeddings.word_embeddings.weight")?,
            positions: weights.matrix("embeddings.position_embeddings.weight")?,
            segment: segments.row(0).to_owned(),
            embedding_norm: weights.norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers).map(|layer| weights.layer(layer)).collect::<Result<_>>()?,
        };
        match model.has_dimension(config.hidden_size) {
            true => Ok(model),
            false => Err(odd(format!("its tensors are not of the {} numbers of config.json", config.hidden_size))),
        }
    }

    /// One unit-length vector a text.
    pub(super) fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        texts.iter().map(|text| self.embed_one(text)).collect()
    }

    fn embed_one(&self, text: &str) -> Result<Vec<f32>> {
        let failed = |detail: String| embedder_error(&self.id, detail, "check the model's tokenizer.json");
        let encoded = self.tokenizer.encode_fast(text, true).map_err(|error| failed(error.to_string()))?;
        let tokens: Vec<usize> = encoded.get_ids().iter().map(|token| *token as usize).collect();
        if tokens.len() > self.positions.nrows() || tokens.iter().any(|token| *token >= self.words.nrows()) {
            return Err(failed("it has tokens that the model has not".into()));
        }
        let mut hidden = self.words.select(Axis(0), &tokens);
        hidden += &self.positions.slice(s![..tokens.len(), ..]);
        hidden += &self.segment;
        self.embedding_norm.apply(&mut hidden, self.norm_epsilon);
        for layer in &self.layers {
            hidden = layer.forward(&hidden, self.heads, self.norm_epsilon);
        }
        let mut vector = hidden.mean_axis(Axis(0)).map(|mean| mean.to_vec()).unwrap_or_default();
        normalise(&mut vector);
        Ok(vector)
    }

    /// Whether all tensors fit each other, so that no product of matrices can fail.
    fn has_dimension(&self, dimension: usize) -> bool {
        let embeddings = [self.words.ncols(), self.positions.ncols(), self.segment.len()];
        embeddings.iter().all(|columns| *columns == dimension)
            && self.embedding_norm.has_dimension(dimension)
            && self.layers.iter().all(|layer| layer.has_dimension(dimension))
    }
}

impl EncoderLayer {
    fn forward(&self, hidden: &Array2<f32>, heads: usize, epsilon: f32) -> Array2<f32> {
        let (query, key, value) = (self.query.apply(hidden), self.key.apply(hidden), self.value.apply(hidden));
        let width = query.ncols() / heads;
        let scale = 1.0 / (width as f32).sqrt();
        let mut context = Array2::zeros(query.raw_dim());
        for head in 0..heads {
            let columns = s![.., head * width..(head + 1) * width];
            let mut scores = query.slice(columns).dot(&key.slice(columns).t());
            scores *= scale;
            softmax_rows(&mut scores);
            context.slice_mut(columns).assign(&scores.dot(&value.slice(columns)));
        }
        let mut attended = self.attention_output.apply(&context);
        attended += hidden;
        self.attention_norm.apply(&mut attended, epsilon);
        let mut inner = self.intermediate.apply(&attended);
        inner.mapv_inplace(gelu);
        let mut output = self.output.apply(&inner);
        output += &attended;
        self.output_norm.apply(&mut output, epsilon);
        output
    }

    fn has_dimension(&self, dimension: usize) -> bool {
        let inner = self.intermediate.bias.len();
        [&self.query, &self.key, &self.value, &self.attention_output]
            .iter()
            .all(|linear| linear.has_shape(dimension, dimension))
            && self.intermediate.has_shape(inner, dimension)
            && self.output.has_shape(dimension, inner)
            && self.attention_norm.has_dimension(dimension)
            && self.output_norm.has_dimension(dimension)
    }
}

impl Linear {
    fn apply(&self, input: &Array2<f32>) -> Array2<f32> {
        let mut output = input.dot(&self.weight.t());
        output += &self.bias;
        output
    }

    fn has_shape(&self, outputs: usize, inputs: usize) -> bool {
        self.weight.dim() == (outputs, inputs) && self.bias.len() == outputs
    }
}

impl Norm {
    fn apply(&self, rows: &mut Array2<f32>, epsilon: f32) {
        for mut row in rows.rows_mut() {
            let count = row.len() as f32;
            let mean = row.sum() / count;
            let variance = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
            let scale = 1.0 / (variance + epsilon).sqrt();
            for ((value, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *value = (*value - mean) * scale * weight + bias;
            }
        }
    }

    fn has_dimension(&self, dimension: usize) -> bool {
        self.weight.len() == dimension && self.bias.len() == dimension
    }
}

fn softmax_rows(scores: &mut Array2<f32>) {
    for mut row in scores.rows_mut() {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.mapv_inplace(|score| (score - most).exp());
        let sum = row.sum();
        row.mapv_inplace(|score| score / sum);
    }
}

/// The exact form, with the error function, as BERT's.
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The tensors of a file, by their names.
struct Weights<'a> {
    id: &'a str,
    tensors: SafeTensors<'a>,
}

impl Weights<'_> {
    fn layer(&self, index: usize) -> Result<EncoderLayer> {
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        Ok(EncoderLayer {
            query: self.linear(&name("attention.self.query"))?,
            key: self.linear(&name("attention.self.key"))?,
            value: self.linear(&name("attention.self.value"))?,
            attention_output: self.linear(&name("attention.output.dense"))?,
            attention_norm: self.norm(&name("attention.output.LayerNorm"))?,
            intermediate: self.linear(&name("intermediate.dense"))?,
            output: self.linear(&name("output.dense"))?,
            output_norm: self.norm(&name("output.LayerNorm"))?,
        })
    }

    fn linear(&self, name: &str) -> Result<Linear> {
        let (weight, bias) = (self.matrix(&format!("{name}.weight"))?, self.vector(&format!("{name}.bias"))?);
        Ok(Linear { weight, bias })
    }

    fn norm(&self, name: &str) -> Result<Norm> {
        let (weight, bias) = (self.vector(&format!("{name}.weight"))?, self.vector(&format!("{name}.bias"))?);
        Ok(Norm { weight, bias })
    }

    fn matrix(&self, name: &str) -> Result<Array2<f32>> {
        let (shape, numbers) = self.numbers(name)?;
        match shape[..] {
            [rows, columns] => {
                let matrix = ArrayView2::from_shape((rows, columns), &numbers);
                Ok(matrix.map_err(|error| self.odd(name, &error.to_string()))?.to_owned())
            }
            _ => Err(self.odd(name, "is not a matrix")),
        }
    }

    fn vector(&self, name: &str) -> Result<Array1<f32>> {
        Ok(Array1::from_vec(self.numbers(name)?.1))
    }

    /// The tensor of that name; files of a model within another have the prefix `bert.`.
    fn numbers(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>)> {
        let prefixed = format!("bert.{name}");
        let tensor = self.tensors.tensor(name).or_else(|_| self.tensors.tensor(&prefixed));
        let tensor = tensor.map_err(|error| self.odd(name, &error.to_string()))?;
        let numbers = floats(&tensor).ok_or_else(|| self.odd(name, "is not of floating-point numbers"))?;
        Ok((tensor.shape().to_vec(), numbers))
    }

    fn odd(&self, name: &str, detail: &str) -> crate::error::CatalogError {
        embedder_error(self.id, format!("model.safetensors: {name}: {detail}"), "restore the model's files")
    }
}
