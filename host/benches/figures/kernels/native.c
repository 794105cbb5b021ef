/* The maths of the measured kernels as plain C: the baseline. `native KERNEL` reads a number of rounds from each line of its input, runs them and
   answers the seconds that they took; to 0 it answers with the bytes of its four arrays. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 22, ROWS = 1024, COLUMNS = 1024, ODD_COLUMNS = 1000, EDGE = 128, MATRIX = 512 };

static void saxpy(int n, float a, const float *restrict x, float *restrict y) {
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

static void adamw(float *restrict p, const float *restrict g, float *restrict m, float *restrict v, long n, float rate, float keep_mean,
                  float keep_square, float unbias_mean, float unbias_square, float epsilon, float decay) {
    for (long i = 0; i < n; i++) {
        float slope = g[i], mean = m[i], square = v[i];
        mean = keep_mean * mean + (slope - keep_mean * slope);
        square = keep_square * square + (slope * slope - keep_square * (slope * slope));
        m[i] = mean;
        v[i] = square;
        p[i] -= rate * (mean / unbias_mean / (sqrtf(square / unbias_square) + epsilon) + decay * p[i]);
    }
}

static void gelu(float *restrict out, const float *restrict in, int n) {
    for (int i = 0; i < n; i++) {
        float x = in[i];
        out[i] = .5f * x * (1 + tanhf(.7978845608f * (x + .044715f * x * x * x)));
    }
}

static void softmax(float *restrict out, const float *restrict in, int rows, int columns) {
    for (int r = 0; r < rows; r++) {
        const float *x = in + (size_t)r * columns;
        float *y = out + (size_t)r * columns;
        float highest = -INFINITY, sum = 0;
        for (int i = 0; i < columns; i++) highest = x[i] > highest ? x[i] : highest;
        for (int i = 0; i < columns; i++) y[i] = expf(x[i] - highest);
        for (int i = 0; i < columns; i++) sum += y[i];
        for (int i = 0; i < columns; i++) y[i] = y[i] / sum;
    }
}

static void layernorm(float *restrict out, float *restrict mean, float *restrict rstd, const float *restrict in, const float *restrict w,
                      const float *restrict b, int rows, int columns) {
    for (int r = 0; r < rows; r++) {
        const float *x = in + (size_t)r * columns;
        float *y = out + (size_t)r * columns;
        float sum = 0;
        for (int i = 0; i < columns; i++) sum += x[i];
        float middle = sum / columns;
        sum = 0;
        for (int i = 0; i < columns; i++) sum += (x[i] - middle) * (x[i] - middle);
        float scale = 1 / sqrtf(sum / columns + 1e-5f);
        mean[r] = middle;
        rstd[r] = scale;
        for (int i = 0; i < columns; i++) y[i] = scale * (x[i] - middle) * w[i] + b[i];
    }
}

static void heat(const float *restrict u, float *restrict o, int nx, int ny, int nz, float rate) {
    long plane = (long)nx * ny;
    memcpy(o, u, plane * nz * sizeof(float));
    for (int z = 1; z < nz - 1; z++)
        for (int y = 1; y < ny - 1; y++) {
            const float *a = u + z * plane + (long)y * nx;
            float *b = o + z * plane + (long)y * nx;
            for (int x = 1; x < nx - 1; x++)
                b[x] = a[x] + rate * (a[x - 1] + a[x + 1] + a[x - nx] + a[x + nx] + a[x - plane] + a[x + plane] - 6.f * a[x]);
        }
}

static float sum(const float *restrict x, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i];
    return s;
}

/* So many rows of `b` stay in the cache while all rows of `a` and `c` pass by. */
enum { STRIP = 64 };

static void matmul(const float *restrict a, const float *restrict b, float *restrict c, int m, int n, int depth) {
    memset(c, 0, (size_t)m * n * sizeof *c);
    for (int strip = 0; strip < depth; strip += STRIP)
        for (int i = 0; i < m; i++)
            for (int k = strip; k < strip + STRIP && k < depth; k++)
                for (int j = 0; j < n; j++) c[(size_t)i * n + j] += a[(size_t)i * depth + k] * b[(size_t)k * n + j];
}

static float *filled(size_t n) {
    float *values = malloc(n * sizeof *values);
    if (!values) exit(1);
    for (size_t i = 0; i < n; i++) values[i] = (float)(i % 977) / 977;
    return values;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    const char *kernel = arguments[1];
    float *a = filled(N), *b = filled(N), *c = filled(N), *d = filled(N);
    int rounds;
    while (scanf("%d", &rounds) == 1) {
        if (rounds == 0) {
            float *all[] = {a, b, c, d};
            for (int i = 0; i < 4; i++) fwrite(all[i], sizeof *a, N, stdout);
            fflush(stdout);
            continue;
        }
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < rounds; i++) {
            if (!strcmp(kernel, "saxpy")) saxpy(N, 1.0001f, a, b);
            else if (!strcmp(kernel, "adamw")) adamw(a, b, c, d, N, 1e-3f, .9f, .999f, .1f, .001f, 1e-8f, .01f);
            else if (!strcmp(kernel, "gelu")) gelu(b, a, N);
            else if (!strcmp(kernel, "softmax")) softmax(b, a, ROWS, COLUMNS);
            else if (!strcmp(kernel, "layernorm")) layernorm(b, c, c + ROWS, a, d, d + COLUMNS, ROWS, COLUMNS);
            else if (!strcmp(kernel, "layernorm_odd")) layernorm(b, c, c + ROWS, a, d, d + ODD_COLUMNS, ROWS, ODD_COLUMNS);
            else if (!strcmp(kernel, "diffuse")) heat(a, b, EDGE, EDGE, EDGE, .1f);
            else if (!strcmp(kernel, "sum")) *b += sum(a, N);
            else if (!strcmp(kernel, "matmul")) matmul(a, b, c, MATRIX, MATRIX, MATRIX);
            else return 2;
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        printf("%.9f\n", (double)(to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9);
        fflush(stdout);
    }
    return 0;
}
