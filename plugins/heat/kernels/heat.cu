// One explicit step of the heat equation on a box of nx × ny × nz cells, x fastest: each cell moves towards the mean of its six neighbours. `rate` is
// the diffusivity times the time step over the square of the cell's width, at most 1/6. Cells on the surface keep their temperature.
extern "C" __global__ void diffuse(const float* __restrict__ now, float* __restrict__ next, int nx, int ny, int nz, float rate) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz) return;
    long long plane = (long long)nx * ny;
    long long cell = z * plane + (long long)y * nx + x;
    float here = now[cell];
    if (x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1) {
        float around = now[cell - 1] + now[cell + 1] + now[cell - nx] + now[cell + nx] + now[cell - plane] + now[cell + plane];
        here += rate * (around - 6.0f * here);
    }
    next[cell] = here;
}
