// The kernels where products of matrices are made of float32.
typedef float Number;

static __device__ __forceinline__ float widened(Number number) { return number; }

static __device__ __forceinline__ Number rounded(float value) { return value; }

#include "gpt.cuh"
