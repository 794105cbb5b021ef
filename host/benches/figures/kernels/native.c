/* The maths of the measured kernels as plain C: the baseline. `native KERNEL` reads a number of rounds from each line of its input, runs them and
   answers the seconds that they took. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 22, ROWS = 1024, COLUMNS = 1024, EDGE = 128 };

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

static float *filled(size_t n) {
    float *values = malloc(n * sizeof *values);
    if (!values) exit(1);
    for (size_t i = 0; i < n; i++) values[i] = (float)((i * 2654435761u >> 8) & 0xffff) / 65536;
    return values;
}

static volatile float sink;

int main(int count, char **arguments) {
    if (count != 2) return 2;
    const char *kernel = arguments[1];
    float *a = filled(N), *b = filled(N), *c = filled(N), *d = filled(N);
    int rounds;
    while (scanf("%d", &rounds) == 1) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < rounds; i++) {
            if (!strcmp(kernel, "saxpy")) saxpy(N, 1.0001f, a, b);
            else if (!strcmp(kernel, "adamw")) adamw(a, b, c, d, N, 1e-3f, .9f, .999f, .1f, .001f, 1e-8f, .01f);
            else if (!strcmp(kernel, "softmax")) softmax(b, a, ROWS, COLUMNS);
            else if (!strcmp(kernel, "layernorm")) layernorm(b, c, c + ROWS, a, d, d + COLUMNS, ROWS, COLUMNS);
            else if (!strcmp(kernel, "diffuse")) heat(a, b, EDGE, EDGE, EDGE, .1f);
            else if (!strcmp(kernel, "sum")) sink = sum(a, N);
            else return 2;
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        printf("%.9f\n", (double)(to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9);
        fflush(stdout);
    }
    return 0;
}
