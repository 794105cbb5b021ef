// What the CUDA device runs of its own: random fills, to the bit those of `device/random.rs`, and products that need no factors.
//
// Every operation on doubles is one that IEEE 754 rounds in one way only, written so that the compiler fuses none of them.

#include <cuda_fp16.h>

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ u64 first_item() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

static __device__ u64 all_items() { return (u64)gridDim.x * blockDim.x; }

static __device__ uint4 philox(u64 block, u64 seed) {
    uint4 c = make_uint4((u32)block, (u32)(block >> 32), 0, 0);
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        u32 high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
        u32 high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
        c = make_uint4(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

static __device__ float uniform(u32 word) { return (float)((word >> 8) + 1) * (1.0f / (1 << 24)); }

// The logarithm of n / 2^32.
static __device__ double ln_of_fraction(u64 n) {
    int exponent = 63 - __clzll(n);
    double m = __ddiv_rn((double)n, (double)(1ull << exponent));
    if (m > 1.41421356237309504880) {
        m = __ddiv_rn(m, 2.0);
        exponent++;
    }
    double s = __ddiv_rn(__dsub_rn(m, 1.0), __dadd_rn(m, 1.0));
    double z = __dmul_rn(s, s);
    double series = 0.0;
    for (int k = 10; k >= 0; k--) {
        series = __dadd_rn(__dmul_rn(series, z), __ddiv_rn(1.0, (double)(2 * k + 1)));
    }
    double whole = __dmul_rn(__dsub_rn((double)exponent, 32.0), 0.693147180559945309417);
    return __dadd_rn(whole, __dmul_rn(__dmul_rn(2.0, s), series));
}

// Sine and cosine of turn / 2^32 turns.
static __device__ double2 sin_cos_of_turn(u32 turn) {
    u32 quarter = (turn + (1u << 29)) >> 30;
    int rest = (int)(turn - (quarter << 30));
    double x = __dmul_rn((double)rest, 6.28318530717958647692 / 4294967296.0);
    double z = __dmul_rn(x, x);
    double sine = 1.0, cosine = 1.0;
    for (int k = 9; k >= 1; k--) {
        double odd = __ddiv_rn(1.0, (double)(2 * k * (2 * k + 1)));
        double even = __ddiv_rn(1.0, (double)(2 * k * (2 * k - 1)));
        sine = __dsub_rn(1.0, __dmul_rn(__dmul_rn(z, odd), sine));
        cosine = __dsub_rn(1.0, __dmul_rn(__dmul_rn(z, even), cosine));
    }
    sine = __dmul_rn(x, sine);
    switch (quarter & 3) {
    case 0: return make_double2(sine, cosine);
    case 1: return make_double2(cosine, -sine);
    case 2: return make_double2(-sine, -cosine);
    default: return make_double2(-cosine, sine);
    }
}

static __device__ float2 normals(u32 a, u32 b) {
    double radius = __dsqrt_rn(__dmul_rn(-2.0, ln_of_fraction((u64)a + 1)));
    double2 turn = sin_cos_of_turn(b);
    return make_float2(__double2float_rn(__dmul_rn(radius, turn.y)), __double2float_rn(__dmul_rn(radius, turn.x)));
}

static __device__ void put(float *to, u64 position, u64 count, u64 number, float value) {
    // Of the first and the last four some belong to no element.
    if (number >= position && number - position < count) {
        to[number - position] = value;
    }
}

extern "C" __global__ void fill_uniform(float *to, u64 seed, u64 position, u64 count) {
    u64 first = position / 4, blocks = (position + count - 1) / 4 - first + 1;
    for (u64 item = first_item(); item < blocks; item += all_items()) {
        u64 number = (first + item) * 4;
        uint4 words = philox(first + item, seed);
        put(to, position, count, number, uniform(words.x));
        put(to, position, count, number + 1, uniform(words.y));
        put(to, position, count, number + 2, uniform(words.z));
        put(to, position, count, number + 3, uniform(words.w));
    }
}

extern "C" __global__ void fill_normal(float *to, u64 seed, u64 position, u64 count) {
    u64 first = position / 4, blocks = (position + count - 1) / 4 - first + 1;
    for (u64 item = first_item(); item < blocks; item += all_items()) {
        u64 number = (first + item) * 4;
        uint4 words = philox(first + item, seed);
        float2 one = normals(words.x, words.y), other = normals(words.z, words.w);
        put(to, position, count, number, one.x);
        put(to, position, count, number + 1, one.y);
        put(to, position, count, number + 2, other.x);
        put(to, position, count, number + 3, other.y);
    }
}

struct Float16 {
    static __device__ u16 scaled(u16 bits, double beta) {
        return __half_as_ushort(__float2half_rn((float)beta * __half2float(__ushort_as_half(bits))));
    }
};

struct Bfloat16 {
    static __device__ u16 scaled(u16 bits, double beta) {
        u32 wide = __float_as_uint((float)beta * __uint_as_float((u32)bits << 16));
        if ((wide & 0x7fffffffu) > 0x7f800000u) {
            return (u16)(wide >> 16 | 0x40);
        }
        return (u16)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
};

struct Float32 {
    static __device__ float scaled(float number, double beta) { return (float)beta * number; }
};

struct Float64 {
    static __device__ double scaled(double number, double beta) { return beta * number; }
};

// c = beta * c, in every matrix of a batch. Where beta is 0, what was there does not matter.
template <typename Kind, typename Number>
static __device__ void scale(Number *c, u64 rows, u64 columns, u64 leading, u64 stride, u64 batch, double beta) {
    for (u64 item = first_item(); item < rows * columns * batch; item += all_items()) {
        u64 at = item / (rows * columns) * stride + item / rows % columns * leading + item % rows;
        c[at] = beta == 0.0 ? (Number)0 : Kind::scaled(c[at], beta);
    }
}

extern "C" __global__ void scale_float16(u16 *c, u64 rows, u64 columns, u64 leading, u64 stride, u64 batch, double beta) {
    scale<Float16>(c, rows, columns, leading, stride, batch, beta);
}

extern "C" __global__ void scale_bfloat16(u16 *c, u64 rows, u64 columns, u64 leading, u64 stride, u64 batch, double beta) {
    scale<Bfloat16>(c, rows, columns, leading, stride, batch, beta);
}

extern "C" __global__ void scale_float32(float *c, u64 rows, u64 columns, u64 leading, u64 stride, u64 batch, double beta) {
    scale<Float32>(c, rows, columns, leading, stride, batch, beta);
}

extern "C" __global__ void scale_float64(double *c, u64 rows, u64 columns, u64 leading, u64 stride, u64 batch, double beta) {
    scale<Float64>(c, rows, columns, leading, stride, batch, beta);
}
