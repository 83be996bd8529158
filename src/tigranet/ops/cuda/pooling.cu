// The active nodes of each map: those with the J largest values inside omega. One or more warps per map find the J-th
// value bit by bit. H is 1 and W is the number of nodes, MAPS the number of maps per block, ITEMS the number of nodes
// per thread. With STRICT, no more than J nodes are active; otherwise also those that equal the J-th value up to the
// tolerance.
#include "common.cu"

#define THREADS_PER_MAP (32 * WARPS)
typedef BITS Bits;
#define SIGN_BIT ((Bits)1 << (8 * sizeof(Bits) - 1))
#define INFINITY_BITS (sizeof(Bits) == 4 ? (Bits)0x7f800000ull : (Bits)0x7ff0000000000000ull)

// An unsigned number with the order of the values: NaN is the largest, 0 stands for nodes outside omega.
__device__ __forceinline__ Bits key_of(Bits bits, bool inside) {
  if (!inside) return 0;
  if ((bits & ~SIGN_BIT) > INFINITY_BITS) return ~(Bits)0;
  return bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
}

__device__ __forceinline__ int count_sum(int x, int* scratch, int lane, int warp) {
  x = warp_sum(x);
  #if WARPS > 1
  __syncthreads();
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  x = warp_sum(lane < WARPS ? scratch[lane] : 0);
  #endif
  return x;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS * MAPS)
pooling(const Bits* __restrict__ z, const unsigned char* __restrict__ omega, unsigned char* __restrict__ active,
        int maps, int num_active, double tolerance, int items) {
  __shared__ int sums[32];
  __shared__ Bits largest[32];
  int lane = threadIdx.x, warp = WARPS == 1 ? 0 : threadIdx.y;
  long long item = (long long)blockIdx.x * MAPS + (WARPS == 1 ? threadIdx.y : 0);
  if (item >= items) return;
  z += item * N;
  active += item * N;
  #if MASKED
  omega += item / maps * N;
  #endif
  int first = warp * 32 + lane, j = num_active < N ? num_active : N;
  #if MASKED
  #define INSIDE(n) (omega[n] != 0)
  #else
  #define INSIDE(n) true
  #endif
  #if KEYS_IN_REGISTERS
  Bits keys[ITEMS];
  #pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    int n = first + i * THREADS_PER_MAP;
    keys[i] = n < N ? key_of(z[n], INSIDE(n)) : 0;
  }
  #define KEY(i, n) keys[i]
  #else
  #define KEY(i, n) ((n) < N ? key_of(z[n], INSIDE(n)) : 0)
  #endif
  #if KEYS_IN_REGISTERS
  #define EACH _Pragma("unroll") for (int i = 0, n = first; i < ITEMS; i++, n += THREADS_PER_MAP)
  #else
  #define EACH _Pragma("unroll 4") for (int i = 0, n = first; i < ITEMS; i++, n += THREADS_PER_MAP)
  #endif
  // the largest key that at least j keys reach; 0 if fewer than j nodes are inside
  Bits jth = 0;
  #pragma unroll 1
  for (Bits bit = SIGN_BIT; bit; bit >>= 1) {
    Bits candidate = jth | bit;
    int count = 0;
    EACH count += KEY(i, n) >= candidate;
    count = count_sum(count, sums, lane, warp);
    if (count >= j) jth = candidate;
  }
  #if STRICT
  int tied_to_keep = 0;
  EACH tied_to_keep += KEY(i, n) > jth;
  tied_to_keep = j - count_sum(tied_to_keep, sums, lane, warp);
  // among tied nodes the first ones are active: bisection for the last of them
  int low = 0, high = N;
  #pragma unroll 1
  while (low < high) {
    int middle = (low + high) / 2, count = 0;
    EACH count += n <= middle && n < N && KEY(i, n) == jth;
    if (count_sum(count, sums, lane, warp) >= tied_to_keep) high = middle; else low = middle + 1;
  }
  EACH if (n < N) active[n] = INSIDE(n) && (KEY(i, n) > jth || (KEY(i, n) == jth && tied_to_keep > 0 && n <= low));
  #else
  Bits largest_size = 0;
  EACH if (n < N) {
    Bits magnitude_bits = z[n] & ~SIGN_BIT;
    if (!INSIDE(n)) magnitude_bits = magnitude_bits >= INFINITY_BITS ? ~SIGN_BIT : 0;
    largest_size = magnitude_bits > largest_size ? magnitude_bits : largest_size;
  }
  #pragma unroll
  for (int d = 16; d; d >>= 1) {
    Bits other = __shfl_xor_sync(FULL_WARP, largest_size, d);
    largest_size = other > largest_size ? other : largest_size;
  }
  #if WARPS > 1
  if (lane == 0) largest[warp] = largest_size;
  __syncthreads();
  for (int w = 0; w < WARPS; w++) largest_size = largest[w] > largest_size ? largest[w] : largest_size;
  #endif
  Bits bits = jth ? (jth & SIGN_BIT ? jth & ~SIGN_BIT : ~jth) : INFINITY_BITS | SIGN_BIT;
  REAL threshold = *(REAL*)&bits - (REAL)tolerance * *(REAL*)&largest_size;
  EACH if (n < N) {
    Bits value = z[n];
    active[n] = *(REAL*)&value >= threshold && INSIDE(n);
  }
  #endif
}
