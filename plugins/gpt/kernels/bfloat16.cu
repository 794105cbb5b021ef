// The kernels where products of matrices are made of bfloat16, the upper half of a float32.
struct Number {
    unsigned short bits;
};

static __device__ __forceinline__ float widened(Number number) { return __uint_as_float((unsigned)number.bits << 16); }

// To the nearest, ties to even. Rounding could carry a NaN into an infinity.
static __device__ __forceinline__ Number rounded(float value) {
    unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return Number{(unsigned short)(bits >> 16 | 0x40)};
    return Number{(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

#include "gpt.cuh"
