// The sums of a and b over a block of THREADS threads along its first axis, in every thread.
struct Pair { double a, b; };
template <typename T> __device__ __forceinline__ Pair block_sum(T a, T b) {
  __shared__ Pair scratch[THREADS / 32];
  a = warp_sum(a);
  b = warp_sum(b);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = {a, b};
  __syncthreads();
  Pair sum = {0, 0};
  for (int w = 0; w < THREADS / 32; w++) { sum.a += scratch[w].a; sum.b += scratch[w].b; }
  return sum;
}
