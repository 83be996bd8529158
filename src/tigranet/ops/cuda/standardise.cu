// Standardise each map over the batch and its nodes, with what follows: a bias and ReLU, or a square root for large
// values. Each block reads a part of one map over the whole batch. Three kernels forward (moments of each part, merge,
// transform) and three backward (sums of each part, their total, the gradient). NODES is the number of nodes per map.
#include "common.cu"
#include "block_sum.cu"

// PACK_SIZE neighbouring nodes, which are read and written together.
struct alignas(PACK_SIZE == 1 ? sizeof(REAL) : 16) Pack { REAL at[PACK_SIZE]; };
#define PACKS (NODES / PACK_SIZE)
#define PACKS_PER_BLOCK (THREADS * PACKS_PER_THREAD)

// The packs of a map in all images are numbered consecutively, and each block has one part of them. The second pass
// runs in the opposite direction, because the cache still holds what the first pass read last.
struct Part { int map, first, packs; };
__device__ __forceinline__ Part part_of_block(int block, int batch, int maps) {
  return {block % maps, block / maps * PACKS_PER_BLOCK + (int)threadIdx.x, batch * PACKS};
}
#define FOR_EACH_PACK \
  _Pragma("unroll") for (int k = 0, i = part.first; k < PACKS_PER_THREAD; k++, i += THREADS) if (i < part.packs)
#define FOR_EACH_IN_PACK _Pragma("unroll") for (int w = 0; w < PACK_SIZE; w++)

template <typename T> __device__ __forceinline__ T& pack(T* z, int map, int i, int maps) {
  return z[(i / PACKS * (long long)maps + map) * PACKS + i % PACKS];
}

// What follows the standardised value x, and its derivative.
__device__ __forceinline__ REAL activation(REAL x, REAL bias) {
  #if ROOT_ABOVE
  return x * inverse_root(1 + magnitude(x) * ((REAL)1 / ROOT_ABOVE));
  #elif HAS_BIAS
  x += bias;
  return x < 0 ? 0 : x;  // keeps NaN
  #else
  return x;
  #endif
}

__device__ __forceinline__ REAL slope(REAL x, REAL bias) {
  #if ROOT_ABOVE
  REAL half = magnitude(x) * ((REAL)1 / (2 * ROOT_ABOVE)), root = inverse_root(1 + 2 * half);
  return (1 + half) * (root * root * root);
  #elif HAS_BIAS
  return x + bias > 0 ? 1 : 0;
  #else
  return 1;
  #endif
}

// Mean and sum of squared deviations of each part.
extern "C" __global__ void __launch_bounds__(THREADS)
moments(const Pack* __restrict__ z, Pair* __restrict__ parts, int batch, int maps) {
  const Part part = part_of_block(blockIdx.x, batch, maps);
  Pack values[PACKS_PER_THREAD];
  FOR_EACH_PACK values[k] = pack(z, part.map, i, maps);
  REAL sum = 0, squares = 0;
  FOR_EACH_PACK FOR_EACH_IN_PACK sum += values[k].at[w];
  double count = PACK_SIZE * (double)min(PACKS_PER_BLOCK, part.packs - part.first + (int)threadIdx.x);
  REAL mean = (REAL)block_sum(sum, (REAL)0).a / (REAL)count;
  sum = 0;
  FOR_EACH_PACK FOR_EACH_IN_PACK {
    REAL d = values[k].at[w] - mean;
    sum += d;
    squares += d * d;
  }
  Pair rest = block_sum(sum, squares);
  if (threadIdx.x == 0) parts[blockIdx.x] = {mean + rest.a / count, rest.b - rest.a * rest.a / count};
}

// Mean and variance of each map from those of its parts, in double precision. One warp per map.
extern "C" __global__ void merge(const Pair* __restrict__ parts, REAL* __restrict__ mean, REAL* __restrict__ variance,
                                 int batch, int maps) {
  int map = blockIdx.x, packs = batch * PACKS;
  #define FOR_EACH_PART for (int index = threadIdx.x; index * PACKS_PER_BLOCK < packs; index += 32)
  #define PACKS_IN_PART min(PACKS_PER_BLOCK, packs - index * PACKS_PER_BLOCK)
  double centre = 0, squares = 0;
  FOR_EACH_PART centre += PACKS_IN_PART * parts[index * maps + map].a;
  centre = warp_sum(centre) / packs;
  FOR_EACH_PART {
    Pair part = parts[index * maps + map];
    squares += part.b + PACK_SIZE * PACKS_IN_PART * (part.a - centre) * (part.a - centre);
  }
  squares = warp_sum(squares);
  if (threadIdx.x == 0) {
    mean[map] = (REAL)centre;
    variance[map] = (REAL)(squares / packs / PACK_SIZE);
  }
}

// The maps ``y``, of which there are ``maps_before``, are copied in front of the standardised ones.
extern "C" __global__ void __launch_bounds__(THREADS)
transform(const Pack* __restrict__ z, const REAL* __restrict__ mean, const REAL* __restrict__ variance,
          const REAL* __restrict__ bias, const Pack* __restrict__ y, Pack* __restrict__ out, double eps,
          int maps_before, int batch, int maps) {
  const Part part = part_of_block(gridDim.x - 1 - blockIdx.x, batch, maps_before + maps);
  Pack values[PACKS_PER_THREAD];
  int map = part.map - maps_before;
  if (map < 0) {
    FOR_EACH_PACK values[k] = pack(y, part.map, i, maps_before);
  } else {
    REAL centre = mean[map], scale = inverse_root(variance[map] + (REAL)eps), b = HAS_BIAS ? bias[map] : 0;
    FOR_EACH_PACK values[k] = pack(z, map, i, maps);
    FOR_EACH_PACK FOR_EACH_IN_PACK values[k].at[w] = activation((values[k].at[w] - centre) * scale, b);
  }
  FOR_EACH_PACK pack(out, part.map, i, maps_before + maps) = values[k];
}

// The sums over each part of the gradient by x, and of its product with x, where x is the standardised value. The maps
// of g may be a part of more maps, of which there are ``g_maps`` per image.
extern "C" __global__ void __launch_bounds__(THREADS)
backward_sums(const Pack* __restrict__ g, const Pack* __restrict__ z, const REAL* __restrict__ mean,
              const REAL* __restrict__ variance, const REAL* __restrict__ bias, Pair* __restrict__ parts, double eps,
              int g_maps, int batch, int maps) {
  const Part part = part_of_block(blockIdx.x, batch, maps);
  REAL centre = mean[part.map], scale = inverse_root(variance[part.map] + (REAL)eps), b = HAS_BIAS ? bias[part.map] : 0;
  REAL sum = 0, products = 0;
  Pack values[PACKS_PER_THREAD], upstream[PACKS_PER_THREAD];
  FOR_EACH_PACK { values[k] = pack(z, part.map, i, maps); upstream[k] = pack(g, part.map, i, g_maps); }
  FOR_EACH_PACK FOR_EACH_IN_PACK {
    REAL x = (values[k].at[w] - centre) * scale, local = upstream[k].at[w] * slope(x, b);
    sum += local;
    products += local * x;
  }
  Pair sums = block_sum(sum, products);
  if (threadIdx.x == 0) parts[blockIdx.x] = sums;
}

// The total of the sums of each map, and the gradient by the bias. One warp per map.
extern "C" __global__ void backward_total(const Pair* __restrict__ parts, REAL* __restrict__ sums,
                                          REAL* __restrict__ g_bias, int batch, int maps) {
  int map = blockIdx.x, packs = batch * PACKS;
  double sum = 0, along = 0;
  FOR_EACH_PART {
    sum += parts[index * maps + map].a;
    along += parts[index * maps + map].b;
  }
  sum = warp_sum(sum);
  along = warp_sum(along);
  if (threadIdx.x == 0) {
    g_bias[map] = (REAL)sum;
    sums[map * 2] = (REAL)(sum / packs / PACK_SIZE);
    sums[map * 2 + 1] = (REAL)(along / packs / PACK_SIZE);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
backward_apply(const Pack* __restrict__ g, const Pack* __restrict__ z, const REAL* __restrict__ mean,
               const REAL* __restrict__ variance, const REAL* __restrict__ bias, const REAL* __restrict__ sums,
               Pack* __restrict__ out, double eps, int g_maps, int batch, int maps) {
  const Part part = part_of_block(gridDim.x - 1 - blockIdx.x, batch, maps);
  REAL centre = mean[part.map], scale = inverse_root(variance[part.map] + (REAL)eps), b = HAS_BIAS ? bias[part.map] : 0;
  REAL sum = sums[part.map * 2], along = sums[part.map * 2 + 1];
  Pack values[PACKS_PER_THREAD], upstream[PACKS_PER_THREAD];
  FOR_EACH_PACK { values[k] = pack(z, part.map, i, maps); upstream[k] = pack(g, part.map, i, g_maps); }
  FOR_EACH_PACK {
    FOR_EACH_IN_PACK {
      REAL x = (values[k].at[w] - centre) * scale;
      values[k].at[w] = scale * (upstream[k].at[w] * slope(x, b) - sum - x * along);
    }
    pack(out, part.map, i, maps) = values[k];
  }
}
