// What training does beside matrix products. Matrices are row-major with one row a sample, unless said otherwise.

// The rows of `pixels`, `width` wide, that `order` names, one after the other; and their labels.
extern "C" __global__ void gather(const float* __restrict__ pixels, const int* __restrict__ labels, const int* __restrict__ order,
                                  float* __restrict__ rows, int* __restrict__ row_labels, int count, int width) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count * width) return;
    int row = at / width, column = at % width, source = order[row];
    rows[at] = pixels[source * width + column];
    if (column == 0) row_labels[row] = labels[source];
}

// values = max(0, values + bias of the column)
extern "C" __global__ void bias_relu(float* values, const float* __restrict__ biases, int count, int width) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count * width) return;
    values[at] = fmaxf(values[at] + biases[at % width], 0.0f);
}

// Of each row of scores, biases not yet added: the cross-entropy with its label, in `losses`, and the place of the highest score, in `guesses`. The
// scores become the gradient of the mean loss.
extern "C" __global__ void cross_entropy(float* scores, const float* __restrict__ biases, const int* __restrict__ labels, float* losses,
                                         int* guesses, int count, int classes) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    float* own = scores + row * classes;
    int guess = 0;
    for (int i = 0; i < classes; i++) {
        own[i] += biases[i];
        if (own[i] > own[guess]) guess = i;
    }
    float highest = own[guess], sum = 0.0f;
    for (int i = 0; i < classes; i++) {
        own[i] = expf(own[i] - highest);
        sum += own[i];
    }
    int label = labels[row];
    losses[row] = -logf(fmaxf(own[label] / sum, 1.17549435e-38f));
    guesses[row] = guess;
    for (int i = 0; i < classes; i++) own[i] = (own[i] / sum - (i == label ? 1.0f : 0.0f)) / count;
}

// errors = 0 where the unit above was not active
extern "C" __global__ void relu_gradient(float* errors, const float* __restrict__ active, int total) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < total && !(active[at] > 0.0f)) errors[at] = 0.0f;
}

// sums[column] = the sum of the column, always in the same order
extern "C" __global__ void column_sums(const float* __restrict__ values, float* sums, int count, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    float sum = 0.0f;
    for (int row = 0; row < count; row++) sum += values[row * width + column];
    sums[column] = sum;
}

// Adam, as Kingma and Ba wrote it down. `unbias_mean` and `unbias_square` are 1 minus what the moments keep to the power of the updates.
extern "C" __global__ void adam(float* weights, const float* __restrict__ slopes, float* means, float* squares, int total, float rate,
                                float keep_mean, float keep_square, float unbias_mean, float unbias_square) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= total) return;
    float slope = slopes[at];
    float mean = keep_mean * means[at] + (1.0f - keep_mean) * slope;
    float square = keep_square * squares[at] + (1.0f - keep_square) * slope * slope;
    means[at] = mean;
    squares[at] = square;
    weights[at] -= rate * (mean / unbias_mean) / (sqrtf(square / unbias_square) + 1e-8f);
}
