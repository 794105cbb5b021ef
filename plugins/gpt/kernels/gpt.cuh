// What training does beside products of matrices. A `Number` is what those products are made of, in and out; everything else is float32.
//
// Matrices are row-major. A row is a position in one of the texts of a batch, and `width` is how many numbers it has, unless said otherwise.
//
// A row is the work of `lanes` threads side by side: 32, a warp, or 1. A GPU reads neighbouring numbers by neighbouring threads; where threads
// take turns, one alone needs not wait for others. Sums are taken in a fixed order in both cases, but in another one.
//
// Where each number of a matrix is for itself, blocks lie along a row in y and beside one another, a row each, in x.

static __device__ __forceinline__ long long thread() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

static __device__ __forceinline__ int own_column() { return blockIdx.y * blockDim.x + threadIdx.x; }

static __device__ __forceinline__ float sum_of(float value, int lanes) {
    for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffff, value, distance);
    return value;
}

static __device__ __forceinline__ float highest_of(float value, int lanes) {
    for (int distance = lanes / 2; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, distance));
    return value;
}

// values *= factor
extern "C" __global__ void scale(float* values, float factor, long long total) {
    long long at = thread();
    if (at < total) values[at] *= factor;
}

// into = values, rounded
extern "C" __global__ void to_numbers(const float* __restrict__ values, Number* into, long long total) {
    long long at = thread();
    if (at < total) into[at] = rounded(values[at]);
}

// A row for each token: that of the token in `tokens_table`, plus that of its position in its text in `positions_table`. Texts are `length` tokens long.
extern "C" __global__ void embed(const int* __restrict__ tokens, const float* __restrict__ tokens_table,
                                 const float* __restrict__ positions_table, float* into, int length, int width) {
    int row = blockIdx.x, column = own_column();
    if (column >= width) return;
    float token = tokens_table[(long long)tokens[row] * width + column], position = positions_table[(long long)(row % length) * width + column];
    into[(long long)row * width + column] = token + position;
}

// A row for each token: 1 in the column of the token, else 0.
extern "C" __global__ void one_hot(const int* __restrict__ tokens, Number* into, int width) {
    int row = blockIdx.x, column = own_column();
    if (column < width) into[(long long)row * width + column] = rounded(column == tokens[row] ? 1.0f : 0.0f);
}

// Each row less its mean, over its standard deviation, then scaled and shifted by column. Mean and reciprocal deviation are kept for the gradient.
extern "C" __global__ void layernorm(const float* __restrict__ values, const float* __restrict__ scales, const float* __restrict__ shifts,
                                     Number* into, float* means, float* reciprocals, int rows, int width, int lanes) {
    int row = thread() / lanes, lane = thread() % lanes;
    if (row >= rows) return;
    const float* own = values + (long long)row * width;
    Number* out = into + (long long)row * width;
    float sum = 0.0f;
    for (int i = lane; i < width; i += lanes) sum += own[i];
    float mean = sum_of(sum, lanes) / width;
    float squares = 0.0f;
    for (int i = lane; i < width; i += lanes) squares += (own[i] - mean) * (own[i] - mean);
    float reciprocal = 1.0f / sqrtf(sum_of(squares, lanes) / width + 1e-5f);
    for (int i = lane; i < width; i += lanes) out[i] = rounded((own[i] - mean) * reciprocal * scales[i] + shifts[i]);
    if (lane == 0) {
        means[row] = mean;
        reciprocals[row] = reciprocal;
    }
}

// From the slopes of layernorm's results: `stream_slopes` += those of its values, and the sum also into `rounded_slopes`; the terms of the scales' own
// slopes, which are their sums by column, into `scale_terms`.
extern "C" __global__ void layernorm_gradient(const Number* __restrict__ slopes, const float* __restrict__ values,
                                              const float* __restrict__ scales, const float* __restrict__ means,
                                              const float* __restrict__ reciprocals, float* stream_slopes, Number* rounded_slopes,
                                              Number* scale_terms, int rows, int width, int lanes) {
    int row = thread() / lanes, lane = thread() % lanes;
    if (row >= rows) return;
    long long first = (long long)row * width;
    float mean = means[row], reciprocal = reciprocals[row];
    float sum = 0.0f, product = 0.0f;
    for (int i = lane; i < width; i += lanes) {
        float slope = widened(slopes[first + i]), normal = (values[first + i] - mean) * reciprocal;
        scale_terms[first + i] = rounded(slope * normal);
        sum += slope * scales[i];
        product += slope * scales[i] * normal;
    }
    sum = sum_of(sum, lanes) / width;
    product = sum_of(product, lanes) / width;
    for (int i = lane; i < width; i += lanes) {
        float slope = widened(slopes[first + i]) * scales[i], normal = (values[first + i] - mean) * reciprocal;
        float total = stream_slopes[first + i] + reciprocal * (slope - sum - normal * product);
        stream_slopes[first + i] = total;
        rounded_slopes[first + i] = rounded(total);
    }
}

// values += bias of the column
extern "C" __global__ void add_bias(Number* values, const float* __restrict__ biases, int width) {
    int column = own_column();
    if (column >= width) return;
    Number* own = values + (long long)blockIdx.x * width + column;
    *own = rounded(widened(*own) + biases[column]);
}

// into = stream + change + bias of the column
extern "C" __global__ void add_to_stream(const float* __restrict__ stream, const Number* __restrict__ change,
                                         const float* __restrict__ biases, float* into, int width) {
    int column = own_column();
    long long at = (long long)blockIdx.x * width + column;
    if (column < width) into[at] = stream[at] + (widened(change[at]) + biases[column]);
}

// GELU as GPT-2 has it is x times a soft step from 0 to 1: (1 + tanh u) / 2, where u is √(2/π) (x + 0.044715 x³). That is 1 / (1 + exp(-2u)).
#define GELU_OUTER (2.0f * 0.7978845608f)
#define GELU_INNER 0.044715f

static __device__ __forceinline__ float soft_step(float x) { return 1.0f / (1.0f + __expf(-GELU_OUTER * (x + GELU_INNER * x * x * x))); }

// values += bias of the column; into = GELU of that
extern "C" __global__ void bias_gelu(Number* values, const float* __restrict__ biases, Number* into, int width) {
    int column = own_column();
    if (column >= width) return;
    long long at = (long long)blockIdx.x * width + column;
    Number sum = rounded(widened(values[at]) + biases[column]);
    values[at] = sum;
    into[at] = rounded(widened(sum) * soft_step(widened(sum)));
}

// slopes *= the slope of GELU at `values`
extern "C" __global__ void gelu_gradient(Number* slopes, const Number* __restrict__ values, long long total) {
    long long at = thread();
    if (at >= total) return;
    float x = widened(values[at]), step = soft_step(x);
    float steepness = step * (1.0f - step) * GELU_OUTER * (1.0f + 3.0f * GELU_INNER * x * x);
    slopes[at] = rounded(widened(slopes[at]) * (step + x * steepness));
}

// Each row of scores into probabilities. A row is a position in a text of `length`, and it has probabilities for that position and those before it.
extern "C" __global__ void causal_softmax(Number* scores, long long rows, int length, int lanes) {
    long long row = thread() / lanes;
    int lane = thread() % lanes;
    if (row >= rows) return;
    Number* own = scores + row * length;
    int seen = row % length + 1;
    float highest = widened(own[0]);
    for (int i = lane; i < seen; i += lanes) highest = fmaxf(highest, widened(own[i]));
    highest = highest_of(highest, lanes);
    float sum = 0.0f;
    for (int i = lane; i < seen; i += lanes) {
        float probability = __expf(widened(own[i]) - highest);
        own[i] = rounded(probability);
        sum += probability;
    }
    float part = 1.0f / sum_of(sum, lanes);
    for (int i = lane; i < length; i += lanes) own[i] = rounded(i < seen ? widened(own[i]) * part : 0.0f);
}

// The slopes of probabilities into those of the scores that they came from.
extern "C" __global__ void causal_softmax_gradient(Number* slopes, const Number* __restrict__ probabilities, long long rows, int length, int lanes) {
    long long row = thread() / lanes;
    int lane = thread() % lanes;
    if (row >= rows) return;
    Number* own = slopes + row * length;
    const Number* probability = probabilities + row * length;
    int seen = row % length + 1;
    float mean = 0.0f;
    for (int i = lane; i < seen; i += lanes) mean += widened(own[i]) * widened(probability[i]);
    mean = sum_of(mean, lanes);
    for (int i = lane; i < length; i += lanes) own[i] = rounded(i < seen ? widened(probability[i]) * (widened(own[i]) - mean) : 0.0f);
}

// Of each row of scores: the cross-entropy with its target. The scores become the slopes of the mean of all rows.
extern "C" __global__ void cross_entropy(Number* scores, const int* __restrict__ targets, float* losses, int rows, int classes, int lanes) {
    int row = thread() / lanes, lane = thread() % lanes;
    if (row >= rows) return;
    Number* own = scores + (long long)row * classes;
    int target = targets[row];
    float highest = widened(own[0]);
    for (int i = lane; i < classes; i += lanes) highest = fmaxf(highest, widened(own[i]));
    highest = highest_of(highest, lanes);
    float sum = 0.0f;
    for (int i = lane; i < classes; i += lanes) sum += __expf(widened(own[i]) - highest);
    sum = sum_of(sum, lanes);
    float part = 1.0f / sum, weight = 1.0f / rows;
    for (int i = lane; i < classes; i += lanes) {
        float score = widened(own[i]) - highest;
        if (i == target) losses[row] = __logf(sum) - score;
        own[i] = rounded((__expf(score) * part - (i == target ? 1.0f : 0.0f)) * weight);
    }
}

// The squares of slopes, added up to one sum for each `length` of them that lie side by side.
extern "C" __global__ void sum_squares(const Number* __restrict__ slopes, float* sums, long long length, long long total, int lanes) {
    long long own = thread() / lanes, lane = thread() % lanes;
    if (own * length >= total) return;
    long long end = (own + 1) * length < total ? (own + 1) * length : total;
    float sum = 0.0f;
    for (long long i = own * length + lane; i < end; i += lanes) sum += widened(slopes[i]) * widened(slopes[i]);
    sum = sum_of(sum, lanes);
    if (lane == 0) sums[own] = sum;
}

// The root of the sum of `sums` into norm[0], and into norm[1] what slopes are multiplied with so that theirs is at most `most`. `lanes` threads.
extern "C" __global__ void clip(const float* __restrict__ sums, float* norm, int count, float most, int lanes) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += lanes) sum += sums[i];
    sum = sqrtf(sum_of(sum, lanes));
    if (threadIdx.x > 0) return;
    norm[0] = sum;
    norm[1] = fminf(1.0f, most / (sum + 1e-6f));
}

// Adam as Kingma and Ba wrote it down, with the decay of the first `decayed` weights beside it, as Loshchilov and Hutter. `pace` is the learning rate over
// what of the means is not zeros of the beginning any more, `scale` the root of the reciprocal of the same of the squares; `kept` is what decay leaves of
// a weight. The new weights also into `numbers`.
extern "C" __global__ void adamw(float* weights, Number* numbers, const Number* __restrict__ slopes, float* means, float* squares,
                                 const float* __restrict__ norm, long long total, long long decayed, float pace, float scale, float kept,
                                 float keep_mean, float keep_square) {
    long long at = thread();
    if (at >= total) return;
    float slope = widened(slopes[at]) * norm[1];
    float mean = keep_mean * means[at] + (1.0f - keep_mean) * slope;
    float square = keep_square * squares[at] + (1.0f - keep_square) * slope * slope;
    float weight = weights[at] * (at < decayed ? kept : 1.0f) - pace * mean / (sqrtf(square) * scale + 1e-8f);
    means[at] = mean;
    squares[at] = square;
    weights[at] = weight;
    numbers[at] = rounded(weight);
}
