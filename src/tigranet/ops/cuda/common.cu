// What every kernel uses. Sizes are macros, so that every loop bound is a constant: H and W are the height and width of
// the grid, REAL is float or double.
#define N (H * W)              // nodes of a map
#define FULL_WARP 0xffffffffu  // all 32 lanes take part in a shuffle

__device__ __forceinline__ float FMA(float x, float y, float z) { return __fmaf_rn(x, y, z); }
__device__ __forceinline__ double FMA(double x, double y, double z) { return __fma_rn(x, y, z); }
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
__device__ __forceinline__ float inverse_root(float x) { return rsqrtf(x); }
__device__ __forceinline__ double inverse_root(double x) { return rsqrt(x); }

// The sum over the lanes of a warp, in every lane.
template <typename T> __device__ __forceinline__ T warp_sum(T x) {
  #pragma unroll
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(FULL_WARP, x, d);
  return x;
}
