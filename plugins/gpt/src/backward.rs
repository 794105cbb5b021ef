//! From the slopes of the scores to the slope of every parameter.
//!
//! Layer by layer from the last to the first, `stream_slopes` has the slopes of the stream there, `rounded_slopes` the same as products take them.

use steadfast_guest::Result;
use steadfast_guest::device::{Buffer, Gemm, Matrix};

use super::forward::Extent;
use super::layout::{Dense, Norm, Part};
use super::number::Number;
use super::transformer::{LayerRoom, NormRoom, Transformer, Weights, product};

impl<T: Number> Transformer<T> {
    /// Leaves the gradient in `slopes`, for the batch that went forward; whole texts, as long as the context.
    pub(crate) fn backward(&self, weights: &Weights, extent: Extent) -> Result<()> {
        let (rows, width) = (extent.rows(), self.shape.width);
        let (scores, change) = (self.scores.matrix(rows, self.characters), self.change.matrix(rows, width));
        product(scores.t(), self.normal.values.matrix(rows, width), self.slopes_of(self.layout.tokens))?;
        product(scores, self.matrix(self.layout.tokens), change)?;
        self.stream_slopes.fill(0.0)?;
        self.norm_backward(weights, self.layout.norm, &self.last, &self.normal, rows)?;
        for index in (0..self.layers.len()).rev() {
            self.layer_backward(weights, index, extent)?;
        }
        self.tables_backward(extent)
    }

    fn layer_backward(&self, weights: &Weights, index: usize, extent: Extent) -> Result<()> {
        let (parts, room) = (&self.layout.layers[index], &self.layers[index]);
        let (rows, width) = (extent.rows(), self.shape.width);
        let (stream, change) = (self.rounded_slopes.matrix(rows, width), self.change.matrix(rows, width));

        let wide = self.wide.matrix(rows, 4 * width);
        self.dense_backward(parts.active, room.active.matrix(rows, 4 * width), stream, wide, rows)?;
        let total = u64::from(rows) * 4 * u64::from(width);
        self.launch("gelu_gradient", total).arg(&self.wide).arg(&room.hidden).arg(total).launch()?;
        self.dense_backward(parts.hidden, room.normal_2.values.matrix(rows, width), wide, change, rows)?;
        self.norm_backward(weights, parts.norm_2, &room.middle, &room.normal_2, rows)?;

        self.dense_backward(parts.attended, room.attended.matrix(rows, width), stream, change, rows)?;
        self.attention_backward(room, extent)?;
        let queries = self.wide.matrix(rows, 3 * width);
        self.dense_backward(parts.attention, room.normal_1.values.matrix(rows, width), queries, change, rows)?;
        self.norm_backward(weights, parts.norm_1, &room.stream, &room.normal_1, rows)
    }

    /// From the slopes of its results those of a dense layer's weights, biases and inputs.
    fn dense_backward(
        &self,
        dense: Dense,
        inputs: Matrix<'_, T>,
        slopes: Matrix<'_, T>,
        input_slopes: Matrix<'_, T>,
        rows: u32,
    ) -> Result<()> {
        product(inputs.t(), slopes, self.slopes_of(dense.weight))?;
        self.sum_columns(slopes, rows, dense.bias)?;
        product(slopes, self.matrix(dense.weight).t(), input_slopes)
    }

    /// Takes the slopes of a layernorm's results from `change`, and adds those of its values to the stream's.
    fn norm_backward(
        &self,
        weights: &Weights,
        norm: Norm,
        stream: &Buffer<f32>,
        room: &NormRoom<T>,
        rows: u32,
    ) -> Result<()> {
        let width = self.shape.width;
        let kernel = self.launch_rows("layernorm_gradient", rows.into()).arg(&self.change).arg(stream);
        let kernel = kernel.arg(weights.part(norm.scale)).arg(&room.means).arg(&room.reciprocals);
        let kernel = kernel.arg(&self.stream_slopes).arg(&self.rounded_slopes).arg(&self.scale_terms);
        kernel.arg(rows).arg(width).arg(self.lanes).launch()?;
        self.sum_columns(self.scale_terms.matrix(rows, width), rows, norm.scale)?;
        self.sum_columns(self.change.matrix(rows, width), rows, norm.shift)
    }

    /// Takes the slopes of what was attended from `change`, and leaves those of queries, keys and values in `wide`.
    fn attention_backward(&self, room: &LayerRoom<T>, extent: Extent) -> Result<()> {
        let heads = 0..self.shape.heads;
        for head in heads.clone() {
            let [.., values] = self.head(&room.queries, head, extent);
            let [.., value_slopes] = self.head(&self.wide, head, extent);
            let attended = self.attended(&self.change, head, extent);
            let probability_slopes = self.probabilities(&self.probability_slopes, head, extent);
            let probabilities = self.probabilities(&room.probabilities, head, extent);
            Gemm { a: attended, b: values.t(), c: probability_slopes, alpha: 1.0, beta: 0.0 }
                .run_batch(extent.texts)?;
            Gemm { a: probabilities.t(), b: attended, c: value_slopes, alpha: 1.0, beta: 0.0 }
                .run_batch(extent.texts)?;
        }
        let rows = u64::from(extent.texts) * u64::from(self.shape.heads) * u64::from(extent.length);
        let softmax =
            self.launch_rows("causal_softmax_gradient", rows).arg(&self.probability_slopes).arg(&room.probabilities);
        softmax.arg(rows).arg(extent.length).arg(self.lanes).launch()?;
        for head in heads {
            let [queries, keys, _] = self.head(&room.queries, head, extent);
            let [query_slopes, key_slopes, _] = self.head(&self.wide, head, extent);
            let (slopes, alpha) = (self.probabilities(&self.probability_slopes, head, extent), self.attention_scale());
            Gemm { a: slopes, b: keys, c: query_slopes, alpha, beta: 0.0 }.run_batch(extent.texts)?;
            Gemm { a: slopes.t(), b: queries, c: key_slopes, alpha, beta: 0.0 }.run_batch(extent.texts)?;
        }
        Ok(())
    }

    /// The table of tokens has slopes from the scores already.
    fn tables_backward(&self, extent: Extent) -> Result<()> {
        let (rows, width) = (extent.rows(), self.shape.width);
        let one_hot = self.launch_places("one_hot", rows, self.characters).arg(&self.tokens).arg(&self.scores);
        one_hot.arg(self.characters).launch()?;
        let (tokens, stream) = (self.scores.matrix(rows, self.characters), self.rounded_slopes.matrix(rows, width));
        let c = self.slopes_of(self.layout.tokens);
        Gemm { a: tokens.t(), b: stream, c, alpha: 1.0, beta: 1.0 }.run()?;

        let texts = self.rounded_slopes.matrix(extent.texts, extent.length * width);
        self.sum_columns(texts, extent.texts, Part { rows: 1, columns: extent.length * width, ..self.layout.positions })
    }

    /// The slopes of a vector that was added to every row.
    fn sum_columns(&self, slopes: Matrix<'_, T>, rows: u32, vector: Part) -> Result<()> {
        product(self.ones.matrix(1, rows), slopes, self.slopes_of(vector))
    }

    fn slopes_of(&self, part: Part) -> Matrix<'_, T> {
        self.slopes.at(part.first).matrix(part.rows, part.columns)
    }
}
