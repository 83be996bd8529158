"""Standardising maps on NVIDIA GPUs: moments of a few images a block, merged, then a pass over the maps, with what is
made of them; back alike."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.kernels import nvrtc

THREADS = 256
NODES = 8192
"""Of a map, in some images, that a block sums up."""

SOURCE = r"""
// images first .. last of one map; a block has blockIdx.x % maps and blockIdx.x / maps
#define RANGE \
  __shared__ double scratch[2][THREADS / 32]; \
  int map = blockIdx.x % maps, chunk = blockIdx.x / maps; \
  int first = chunk * EACH, last = min(first + EACH, batch); \
  long long n = (long long)(last - first) * NODES;
#define AT(i) ((first + (i) / NODES) * (long long)maps + map) * NODES + (i) % NODES

// the sums of a and b over the block, in every thread
__device__ __forceinline__ void block_sum(double& a, double& b, double (*scratch)[THREADS / 32]) {
  a = warp_sum(a); b = warp_sum(b);
  __syncthreads();
  if (threadIdx.x % 32 == 0) { scratch[0][threadIdx.x / 32] = a; scratch[1][threadIdx.x / 32] = b; }
  __syncthreads();
  a = b = 0;
  for (int w = 0; w < THREADS / 32; w++) { a += scratch[0][w]; b += scratch[1][w]; }
}

// what is made of x, a standardised value, and its derivative
__device__ __forceinline__ REAL then(REAL x, REAL bias) {
  #if LARGE
  return x / sqrt(1 + magnitude(x) / LARGE);
  #elif BIASED
  x += bias;
  return x < 0 ? 0 : x;  // a NaN stays one
  #else
  return x;
  #endif
}

__device__ __forceinline__ REAL slope(REAL x, REAL bias) {
  #if LARGE
  REAL over = 1 + magnitude(x) / LARGE;
  return (1 + magnitude(x) / (2 * LARGE)) / (over * sqrt(over));
  #elif BIASED
  return x + bias > 0 ? 1 : 0;
  #else
  return 1;
  #endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
moments(const REAL* __restrict__ z, double* __restrict__ parts, int batch, int maps) {
  RANGE
  REAL sum = 0, squares = 0;
  for (long long i = threadIdx.x; i < n; i += THREADS) sum += z[AT(i)];
  double total = sum, none = 0;
  block_sum(total, none, scratch);
  REAL mean = (REAL)(total / n);
  double shift = 0, about = 0;
  sum = 0;
  for (long long i = threadIdx.x; i < n; i += THREADS) {
    REAL d = z[AT(i)] - mean;
    sum += d;
    squares += d * d;
  }
  shift = sum; about = squares;
  block_sum(shift, about, scratch);
  if (threadIdx.x == 0) {
    parts[blockIdx.x * 2] = mean + shift / n;
    parts[blockIdx.x * 2 + 1] = about - shift * shift / n;
  }
}

extern "C" __global__ void merge(const double* __restrict__ parts, REAL* __restrict__ mean, REAL* __restrict__ variance,
                                 int batch, int maps) {
  int map = blockIdx.x * blockDim.x + threadIdx.x;
  if (map >= maps) return;
  double centre = 0, squares = 0, seen = 0;
  for (int first = 0, chunk = 0; first < batch; first += EACH, chunk++) {  // Chan's merge
    double count = (double)min(EACH, batch - first) * NODES, both = seen + count;
    double step = parts[(chunk * maps + map) * 2] - centre;
    squares += parts[(chunk * maps + map) * 2 + 1] + step * step * seen * count / both;
    centre += step * count / both;
    seen = both;
  }
  mean[map] = (REAL)centre;
  variance[map] = (REAL)(squares / seen);
}

extern "C" __global__ void __launch_bounds__(THREADS)
transform(const REAL* __restrict__ z, const REAL* __restrict__ mean, const REAL* __restrict__ variance,
          const REAL* __restrict__ bias, REAL* __restrict__ out, double eps, int maps) {
  int map = blockIdx.x % maps;
  REAL centre = mean[map], scale = (REAL)1 / sqrt(variance[map] + (REAL)eps), b = BIASED ? bias[map] : 0;
  long long at = (long long)blockIdx.x * NODES;
  for (int i = threadIdx.x; i < NODES; i += THREADS) out[at + i] = then((z[at + i] - centre) * scale, b);
}

extern "C" __global__ void __launch_bounds__(THREADS)
pulls(const REAL* __restrict__ g, const REAL* __restrict__ z, const REAL* __restrict__ mean,
      const REAL* __restrict__ variance, const REAL* __restrict__ bias, double* __restrict__ parts, double eps,
      int batch, int maps) {
  RANGE
  REAL centre = mean[map], scale = (REAL)1 / sqrt(variance[map] + (REAL)eps), b = BIASED ? bias[map] : 0;
  REAL sum = 0, products = 0;
  for (long long i = threadIdx.x; i < n; i += THREADS) {
    long long at = AT(i);
    REAL x = (z[at] - centre) * scale, up = g[at] * slope(x, b);
    sum += up;
    products += up * x;
  }
  double total = sum, along = products;
  block_sum(total, along, scratch);
  if (threadIdx.x == 0) {
    parts[blockIdx.x * 2] = total;
    parts[blockIdx.x * 2 + 1] = along;
  }
}

extern "C" __global__ void total(const double* __restrict__ parts, REAL* __restrict__ sums, int batch, int maps) {
  int map = blockIdx.x * blockDim.x + threadIdx.x;
  if (map >= maps) return;
  double sum = 0, along = 0;
  for (int chunk = 0; chunk * EACH < batch; chunk++) {
    sum += parts[(chunk * maps + map) * 2];
    along += parts[(chunk * maps + map) * 2 + 1];
  }
  sums[map * 2] = (REAL)(sum / ((double)batch * NODES));
  sums[map * 2 + 1] = (REAL)(along / ((double)batch * NODES));
}

extern "C" __global__ void __launch_bounds__(THREADS)
pulled(const REAL* __restrict__ g, const REAL* __restrict__ z, const REAL* __restrict__ mean,
       const REAL* __restrict__ variance, const REAL* __restrict__ bias, const REAL* __restrict__ sums,
       REAL* __restrict__ out, double eps, int maps) {
  int map = blockIdx.x % maps;
  REAL centre = mean[map], scale = (REAL)1 / sqrt(variance[map] + (REAL)eps), b = BIASED ? bias[map] : 0;
  REAL sum = sums[map * 2], along = sums[map * 2 + 1];
  long long at = (long long)blockIdx.x * NODES;
  for (int i = threadIdx.x; i < NODES; i += THREADS) {
    REAL x = (z[at + i] - centre) * scale;
    out[at + i] = scale * (g[at + i] * slope(x, b) - sum - x * along);
  }
}
"""


@lru_cache(maxsize=64)
def _compiled(name: str, nodes: int, biased: bool, large: int, dtype: torch.dtype, device: torch.device) -> Any:
    real = "float" if dtype == torch.float32 else "double"
    sizes = {"H": 1, "W": nodes, "NODES": nodes, "EACH": _images(nodes), "THREADS": THREADS}
    chosen = {"BIASED": int(biased), "LARGE": large}
    return nvrtc.kernel(name, SOURCE, (("REAL", real), *sizes.items(), *chosen.items()), 0, False, device)


def _images(nodes: int) -> int:
    """That a block sums up a map of."""
    return max(1, NODES // nodes)


def _runner(z: Tensor, bias: Tensor | None, large: int) -> Callable[..., None]:
    def run(name: str, blocks: int, *args: Any, threads: int = THREADS) -> None:
        kernel = _compiled(name, z.shape[2], bias is not None, large, z.dtype, z.device)
        nvrtc.launch(kernel, (blocks, 1, 1), (threads, 1, 1), list(args), z.device)

    return run


def forward(z: Tensor, bias: Tensor | None, eps: float, large: int) -> tuple[Tensor, Tensor, Tensor]:
    batch, maps, nodes = z.shape
    run, b = _runner(z, bias, large), z if bias is None else bias.contiguous()
    out, mean, variance = torch.empty_like(z), z.new_empty(maps), z.new_empty(maps)
    chunks = -(-batch // _images(nodes))
    parts = torch.empty(chunks, maps, 2, dtype=torch.float64, device=z.device)
    run("moments", chunks * maps, z, parts, batch, maps)
    run("merge", -(-maps // 32), parts, mean, variance, batch, maps, threads=32)
    run("transform", batch * maps, z, mean, variance, b, out, eps, maps)
    return out, mean, variance


def backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    batch, maps, nodes = z.shape
    run, b = _runner(z, bias, large), z if bias is None else bias.contiguous()
    g_z, sums = torch.empty_like(z), z.new_empty(maps, 2)
    chunks = -(-batch // _images(nodes))
    parts = torch.empty(chunks, maps, 2, dtype=torch.float64, device=z.device)
    run("pulls", chunks * maps, g, z, mean, variance, b, parts, eps, batch, maps)
    run("total", -(-maps // 32), parts, sums, batch, maps, threads=32)
    run("pulled", batch * maps, g, z, mean, variance, b, sums, g_z, eps, maps)
    return g_z, sums[:, :1] * (batch * nodes)
