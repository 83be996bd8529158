"""Standardising maps on NVIDIA GPUs: moments of a part of a map over the batch a block, merged, then a pass over the
maps, with what is made of them; back alike."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.ops import nvrtc

THREADS = 256
ITEMS = 4
"""Packs of numbers that a thread reads at once, before it waits for any."""

SOURCE = r"""
// WIDE nodes beside one another, read and written in one go
struct alignas(WIDE == 1 ? sizeof(REAL) : 16) Pack { REAL at[WIDE]; };
#define PACKS (NODES / WIDE)
#define PART (THREADS * ITEMS)

// The packs of a map in all images are numbered in one row, of which a block has a part. Every second pass begins with
// what the first one ended with: that is in the cache.
struct Part { int map, first, packs; };
__device__ __forceinline__ Part part_of(int block, int batch, int maps) {
  return {block % maps, block / maps * PART + (int)threadIdx.x, batch * PACKS};
}
#define EACH _Pragma("unroll") for (int k = 0, i = part.first; k < ITEMS; k++, i += THREADS) if (i < part.packs)
#define ACROSS _Pragma("unroll") for (int w = 0; w < WIDE; w++)

template <typename T> __device__ __forceinline__ T& pack(T* z, int map, int i, int maps) {
  return z[(i / PACKS * (long long)maps + map) * PACKS + i % PACKS];
}

__device__ __forceinline__ float over_root(float x) { return rsqrtf(x); }
__device__ __forceinline__ double over_root(double x) { return rsqrt(x); }

// the sums of a and b over the block, in every thread
struct Two { double a, b; };
__device__ __forceinline__ Two block_sum(REAL a, REAL b) {
  __shared__ Two scratch[THREADS / 32];
  a = warp_sum(a);
  b = warp_sum(b);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = {a, b};
  __syncthreads();
  Two sum = {0, 0};
  for (int w = 0; w < THREADS / 32; w++) { sum.a += scratch[w].a; sum.b += scratch[w].b; }
  return sum;
}

// what is made of x, a standardised value, and its derivative
__device__ __forceinline__ REAL then(REAL x, REAL bias) {
  #if LARGE
  return x * over_root(1 + magnitude(x) * ((REAL)1 / LARGE));
  #elif BIASED
  x += bias;
  return x < 0 ? 0 : x;  // a NaN stays one
  #else
  return x;
  #endif
}

__device__ __forceinline__ REAL slope(REAL x, REAL bias) {
  #if LARGE
  REAL half = magnitude(x) * ((REAL)1 / (2 * LARGE)), root = over_root(1 + 2 * half);
  return (1 + half) * (root * root * root);
  #elif BIASED
  return x + bias > 0 ? 1 : 0;
  #else
  return 1;
  #endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
moments(const Pack* __restrict__ z, Two* __restrict__ parts, int batch, int maps) {
  const Part part = part_of(blockIdx.x, batch, maps);
  Pack held[ITEMS];
  EACH held[k] = pack(z, part.map, i, maps);
  REAL sum = 0, squares = 0;
  EACH ACROSS sum += held[k].at[w];
  double count = WIDE * (double)min(PART, part.packs - part.first + (int)threadIdx.x);
  REAL mean = (REAL)block_sum(sum, 0).a / (REAL)count;
  sum = 0;
  EACH ACROSS {
    REAL d = held[k].at[w] - mean;
    sum += d;
    squares += d * d;
  }
  Two rest = block_sum(sum, squares);
  if (threadIdx.x == 0) parts[blockIdx.x] = {mean + rest.a / count, rest.b - rest.a * rest.a / count};
}

// a warp has a map; of the mean of means, and of squares about it, none is lost that double precision holds
extern "C" __global__ void merge(const Two* __restrict__ parts, REAL* __restrict__ mean, REAL* __restrict__ variance,
                                 int batch, int maps) {
  int map = blockIdx.x, packs = batch * PACKS;
  #define CHUNKS for (int chunk = threadIdx.x; chunk * PART < packs; chunk += 32)
  #define COUNT min(PART, packs - chunk * PART)
  double centre = 0, squares = 0;
  CHUNKS centre += COUNT * parts[chunk * maps + map].a;
  centre = warp_sum(centre) / packs;
  CHUNKS {
    Two part = parts[chunk * maps + map];
    squares += part.b + WIDE * COUNT * (part.a - centre) * (part.a - centre);
  }
  squares = warp_sum(squares);
  if (threadIdx.x == 0) {
    mean[map] = (REAL)centre;
    variance[map] = (REAL)(squares / packs / WIDE);
  }
}

// behind the maps y, of which there are ``before``
extern "C" __global__ void __launch_bounds__(THREADS)
transform(const Pack* __restrict__ z, const REAL* __restrict__ mean, const REAL* __restrict__ variance,
          const REAL* __restrict__ bias, const Pack* __restrict__ y, Pack* __restrict__ out, double eps, int before,
          int batch, int maps) {
  const Part part = part_of(gridDim.x - 1 - blockIdx.x, batch, before + maps);
  Pack held[ITEMS];
  int map = part.map - before;
  if (map < 0) {
    EACH held[k] = pack(y, part.map, i, before);
  } else {
    REAL centre = mean[map], scale = over_root(variance[map] + (REAL)eps), b = BIASED ? bias[map] : 0;
    EACH held[k] = pack(z, map, i, maps);
    EACH ACROSS held[k].at[w] = then((held[k].at[w] - centre) * scale, b);
  }
  EACH pack(out, part.map, i, before + maps) = held[k];
}

extern "C" __global__ void __launch_bounds__(THREADS)
pulls(const Pack* __restrict__ g, const Pack* __restrict__ z, const REAL* __restrict__ mean,
      const REAL* __restrict__ variance, const REAL* __restrict__ bias, Two* __restrict__ parts, double eps, int apart,
      int batch, int maps) {
  const Part part = part_of(blockIdx.x, batch, maps);
  REAL centre = mean[part.map], scale = over_root(variance[part.map] + (REAL)eps), b = BIASED ? bias[part.map] : 0;
  REAL sum = 0, products = 0;
  Pack held[ITEMS], pulling[ITEMS];
  EACH { held[k] = pack(z, part.map, i, maps); pulling[k] = pack(g, part.map, i, apart); }
  EACH ACROSS {
    REAL x = (held[k].at[w] - centre) * scale, up = pulling[k].at[w] * slope(x, b);
    sum += up;
    products += up * x;
  }
  Two total = block_sum(sum, products);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// a warp has a map
extern "C" __global__ void total(const Two* __restrict__ parts, REAL* __restrict__ sums, REAL* __restrict__ by_bias,
                                 int batch, int maps) {
  int map = blockIdx.x, packs = batch * PACKS;
  double sum = 0, along = 0;
  CHUNKS {
    sum += parts[chunk * maps + map].a;
    along += parts[chunk * maps + map].b;
  }
  sum = warp_sum(sum);
  along = warp_sum(along);
  if (threadIdx.x == 0) {
    by_bias[map] = (REAL)sum;
    sums[map * 2] = (REAL)(sum / packs / WIDE);
    sums[map * 2 + 1] = (REAL)(along / packs / WIDE);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
pulled(const Pack* __restrict__ g, const Pack* __restrict__ z, const REAL* __restrict__ mean,
       const REAL* __restrict__ variance, const REAL* __restrict__ bias, const REAL* __restrict__ sums,
       Pack* __restrict__ out, double eps, int apart, int batch, int maps) {
  const Part part = part_of(gridDim.x - 1 - blockIdx.x, batch, maps);
  REAL centre = mean[part.map], scale = over_root(variance[part.map] + (REAL)eps), b = BIASED ? bias[part.map] : 0;
  REAL sum = sums[part.map * 2], along = sums[part.map * 2 + 1];
  Pack held[ITEMS], pulling[ITEMS];
  EACH { held[k] = pack(z, part.map, i, maps); pulling[k] = pack(g, part.map, i, apart); }
  EACH {
    ACROSS {
      REAL x = (held[k].at[w] - centre) * scale;
      held[k].at[w] = scale * (pulling[k].at[w] * slope(x, b) - sum - x * along);
    }
    pack(out, part.map, i, maps) = held[k];
  }
}
"""


@lru_cache(maxsize=64)
def _compiled(
    name: str, nodes: int, wide: int, biased: bool, large: int, dtype: torch.dtype, device: torch.device
) -> Any:
    real = "float" if dtype == torch.float32 else "double"
    sizes = {"H": 1, "W": nodes, "NODES": nodes, "WIDE": wide, "ITEMS": ITEMS, "THREADS": THREADS}
    chosen = {"BIASED": int(biased), "LARGE": large}
    return nvrtc.kernel(name, SOURCE, (("REAL", real), *sizes.items(), *chosen.items()), 0, False, device)


def pack_size(*tensors: Tensor) -> int:
    """How many nodes are read in one go: four, where maps begin at whole packs."""
    return 4 if all(tensor.shape[2] % 4 == 0 and tensor.data_ptr() % 16 == 0 for tensor in tensors) else 1


def _runner(wide: int, z: Tensor, bias: Tensor | None, large: int) -> Callable[..., None]:
    def run(name: str, blocks: int, *args: Any, threads: int = THREADS) -> None:
        kernel = _compiled(name, z.shape[2], wide, bias is not None, large, z.dtype, z.device)
        nvrtc.launch(kernel, (blocks, 1, 1), (threads, 1, 1), [*args, *z.shape[:2]], z.device)

    return run


def _parts(wide: int, z: Tensor) -> Tensor:
    """Two sums of each part of each map."""
    batch, maps, nodes = z.shape
    return torch.empty(-(-batch * nodes // (wide * THREADS * ITEMS)), maps, 2, dtype=torch.float64, device=z.device)


def forward(
    z: Tensor, bias: Tensor | None, behind: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor, Tensor]:
    z, y = z.contiguous(), z[:, :0] if behind is None else behind.contiguous()
    maps, wide = z.shape[1], pack_size(z, y)
    run, b = _runner(wide, z, bias, large), z if bias is None else bias.contiguous()
    out = z.new_empty(len(z), y.shape[1] + maps, z.shape[2])
    mean, variance, parts = z.new_empty(maps), z.new_empty(maps), _parts(wide, z)
    run("moments", len(parts) * maps, z, parts)
    run("merge", maps, parts, mean, variance, threads=32)
    run("transform", len(parts) * out.shape[1], z, mean, variance, b, y, out, eps, y.shape[1])
    return out, mean, variance


def backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    z, g = z.contiguous(), g if g.stride()[1:] == (z.shape[2], 1) and g.stride(0) % z.shape[2] == 0 else g.contiguous()
    maps, wide, apart = z.shape[1], pack_size(g, z), g.stride(0) // z.shape[2]
    run, b = _runner(wide, z, bias, large), z if bias is None else bias.contiguous()
    g_z, g_bias, sums, parts = torch.empty_like(z), z.new_empty(maps, 1), z.new_empty(maps, 2), _parts(wide, z)
    blocks = len(parts) * maps
    run("pulls", blocks, g, z, mean, variance, b, parts, eps, apart)
    run("total", maps, parts, sums, g_bias, threads=32)
    run("pulled", blocks, g, z, mean, variance, b, sums, g_z, eps, apart)
    return g_z, g_bias
