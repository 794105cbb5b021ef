// architecture: compute_80
// Products of matrices by mma.sync, C = A B: tiles of 32 × 32 for a block of four warps, each of which makes 16 × 16. What of a tile lies outside is 0.
// A has rows of `depth`, B of `columns` elements; both are multiples of 8 (tf32: of 4).
#include <cuda_fp16.h>
#include <cuda_bf16.h>

#define TILE 32
#define DEPTH 16

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void copy16(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0));
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, __half) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, __nv_bfloat16) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void put(float* c, const float (&d)[4], int row, int column, int rows, int columns) {
  int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; i++) {
    int r = row + lane / 4 + (i >= 2 ? 8 : 0), k = column + lane % 4 * 2 + (i & 1);
    if (r < rows && k < columns) c[r * columns + k] = d[i];
  }
}

// Two tiles of each factor: one is copied while the other is multiplied.
template <typename T>
__device__ void halves(const T* a, const T* b, float* c, int rows, int columns, int depth) {
  __shared__ __align__(16) T left[2][TILE][DEPTH], right[2][DEPTH][TILE];
  int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  int row = blockIdx.y * TILE, column = blockIdx.x * TILE, steps = (depth + DEPTH - 1) / DEPTH;
  float d[2][4] = {};
  auto fetch = [&](int step) {
    int k = step * DEPTH;
    if (thread < 64) {
      int r = thread / 2, part = thread % 2 * 8;
      bool there = row + r < rows && k + part < depth;
      copy16(&left[step % 2][r][part], there ? a + (row + r) * depth + k + part : a, there);
    } else {
      int r = (thread - 64) / 4, part = thread % 4 * 8;
      bool there = k + r < depth && column + part < columns;
      copy16(&right[step % 2][r][part], there ? b + (k + r) * columns + column + part : b, there);
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(0);
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    if (step + 1 < steps) {
      fetch(step + 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    unsigned x[4], y[4];
    unsigned from = shared_address(&left[step % 2][warp / 2 * 16 + lane % 16][lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from));
    from = shared_address(&right[step % 2][lane % 16][warp % 2 * 16 + lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]) : "r"(from));
    multiply(d[0], x, y[0], y[1], T());
    multiply(d[1], x, y[2], y[3], T());
    __syncthreads();
  }
  for (int i = 0; i < 2; i++) put(c, d[i], row + warp / 2 * 16, column + warp % 2 * 16 + 8 * i, rows, columns);
}

extern "C" __global__ void tensor_f16(const __half* a, const __half* b, float* c, int rows, int columns, int depth) {
  halves(a, b, c, rows, columns, depth);
}

extern "C" __global__ void tensor_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int rows, int columns, int depth) {
  halves(a, b, c, rows, columns, depth);
}

// Singles, rounded to tf32 on the way. A barrier in shared memory says when all copies of a tile are there.
extern "C" __global__ void tensor_tf32(const float* a, const float* b, float* c, int rows, int columns, int depth) {
  __shared__ __align__(16) float left[TILE][8], right[8][TILE];
  __shared__ unsigned long long barrier;
  int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
  unsigned at = shared_address(&barrier);
  if (thread == 0) asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(at));
  __syncthreads();
  float d[2][4] = {};
#pragma unroll 1
  for (int k = 0, phase = 0; k < depth; k += 8, phase ^= 1) {
    if (thread < 64) {
      int r = thread / 2, part = thread % 2 * 4;
      bool there = row + r < rows && k + part < depth;
      copy16(&left[r][part], there ? a + (row + r) * depth + k + part : a, there);
    } else {
      int r = (thread - 64) / 8, part = thread % 8 * 4;
      bool there = k + r < depth && column + part < columns;
      copy16(&right[r][part], there ? b + (k + r) * columns + column + part : b, there);
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at));
    unsigned complete;
    do
      asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(complete) : "r"(at), "r"(phase) : "memory");
    while (!complete);
    unsigned x[4], y[2][2];
    auto rounded = [](float value) { unsigned bits; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value)); return bits; };
    for (int i = 0; i < 4; i++) x[i] = rounded(left[warp / 2 * 16 + lane / 4 + i % 2 * 8][lane % 4 + i / 2 * 4]);
    for (int n = 0; n < 2; n++)
      for (int i = 0; i < 2; i++) y[n][i] = rounded(right[lane % 4 + 4 * i][warp % 2 * 16 + n * 8 + lane / 4]);
    for (int n = 0; n < 2; n++)
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[n][0]), "r"(y[n][1]));
    __syncthreads();
  }
  for (int n = 0; n < 2; n++) put(c, d[n], row + warp / 2 * 16, column + warp % 2 * 16 + 8 * n, rows, columns);
}

// The sum of each warp, how many lanes have the same value as this one, and the lanes that have it.
extern "C" __global__ void warps(const int* x, int* sum, int* same, unsigned* who) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = __reduce_add_sync(0xffffffff, x[i]);
  who[i] = __match_any_sync(0xffffffff, x[i]);
  same[i] = __popc(who[i]) + (int)__reduce_max_sync(0xffffffff, (unsigned)x[i] & 7u);
}
