"""The layers of the oriented network on NVIDIA GPUs: a block has one map, or one pair of maps, in shared memory."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.kernels import nvrtc
from tigranet.kernels.chebyshev import chebyshev, chebyshev_sum
from tigranet.kernels.cuda_source import IN_SHARED
from tigranet.kernels.layout import Grid
from tigranet.kernels.products import products, products_backward

POLYNOMIALS = (
    IN_SHARED
    + r"""
// new = factor * (L - I) t - before, in place of ``before``
__device__ __forceinline__ void recur(REAL* p, const REAL* s, const REAL* t, REAL factor, REAL* before) {
  __syncthreads();
  EACH put(p, n, s[i] * t[i]);
  __syncthreads();
  EACH before[i] = FMA(-factor * s[i], neighbours(p, n), -before[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
polynomials(const REAL* __restrict__ from, const REAL* __restrict__ root, REAL* __restrict__ to, int maps) {
  extern __shared__ char memory[];
  REAL* p = (REAL*)memory;
  long long image = blockIdx.x / maps, map = blockIdx.x % maps;
  const long long apart = (long long)maps * N;  // from one order to the next
  REAL a[ITEMS], b[ITEMS], s[ITEMS];
  #pragma unroll
  for (int i = 0; i < ITEMS; i++) a[i] = b[i] = s[i] = 0;
  for (int n = threadIdx.x; n < (H + 2) * STRIDE; n += THREADS) p[n] = 0;
  EACH s[i] = root[n];
  #if SUM  // Clenshaw: a is b_{m+1}, b is b_{m+2}
  from += (image * (DEGREE + 1) * maps + map) * N;
  to += (image * maps + map) * N;
  EACH a[i] = from[DEGREE * apart + n];
  #pragma unroll
  for (int m = DEGREE - 1; m >= 0; m--) {
    recur(p, s, a, m ? 2 : 1, b);
    EACH { REAL now = b[i] + from[m * apart + n]; b[i] = a[i]; a[i] = now; }
  }
  EACH to[n] = a[i];
  #else
  from += (image * maps + map) * N;
  to += (image * (DEGREE + 1) * maps + map) * N;
  EACH { a[i] = from[n]; to[n] = a[i]; }
  #pragma unroll
  for (int m = 1; m <= DEGREE; m++) {
    recur(p, s, a, m > 1 ? 2 : 1, b);
    EACH { REAL now = b[i]; b[i] = a[i]; a[i] = now; to[m * apart + n] = now; }
  }
  #endif
}
"""
)

PRODUCTS = r"""
#define EACH _Pragma("unroll") for (int i = 0, n = threadIdx.x; i < ITEMS; i++, n += THREADS) if (n < N)
#define A (REAL)(10.0 / 32)
#define B (REAL)(3.0 / 32)

struct Vector { REAL x, y; };

__device__ __forceinline__ int before(int at, int size, bool wraps) { return at ? at - 1 : wraps ? size - 1 : 0; }
__device__ __forceinline__ int after(int at, int size, bool wraps) {
  return at < size - 1 ? at + 1 : wraps ? 0 : size - 1;
}

__device__ __forceinline__ Vector gradient(const REAL* f, int n) {
  int r = n / W, c = n % W;
  const REAL *above = f + before(r, H, WRAP_ROWS) * W, *here = f + r * W, *below = f + after(r, H, WRAP_ROWS) * W;
  int left = before(c, W, WRAP_COLUMNS), right = after(c, W, WRAP_COLUMNS);
  REAL falling = below[right] - above[left], rising = above[right] - below[left];
  Vector d;
  d.x = A * (here[right] - here[left]) + B * (falling + rising);
  d.y = A * (below[c] - above[c]) + B * (falling - rising);
  return d;
}

__device__ __forceinline__ Vector twist(const REAL* f_x, const REAL* f_y, int n) {
  Vector x = gradient(f_x, n), y = gradient(f_y, n), d;
  d.x = x.x - y.y;
  d.y = x.y + y.x;
  return d;
}

// the adjoint of the stencil alone, of (x, sign y), at a pixel that may lie one beyond the border
__device__ __forceinline__ REAL unframed(const REAL* x, const REAL* y, REAL sign, int r, int c) {
  #define X(i, j) ((i) < 0 || (i) >= H || (j) < 0 || (j) >= W ? (REAL)0 : x[(i) * W + (j)])
  #define Y(i, j) ((i) < 0 || (i) >= H || (j) < 0 || (j) >= W ? (REAL)0 : sign * y[(i) * W + (j)])
  REAL straight = (X(r, c - 1) - X(r, c + 1)) + (Y(r - 1, c) - Y(r + 1, c));
  REAL falling = (X(r - 1, c - 1) + Y(r - 1, c - 1)) - (X(r + 1, c + 1) + Y(r + 1, c + 1));
  REAL rising = (X(r + 1, c - 1) - Y(r + 1, c - 1)) - (X(r - 1, c + 1) - Y(r - 1, c + 1));
  return A * straight + B * (falling + rising);
}

// the adjoint of framing and stencil: a pixel at the border is read for those beyond it too
__device__ __forceinline__ REAL adjoint(const REAL* x, const REAL* y, REAL sign, int n) {
  int r = n / W, c = n % W;
  bool up = r == (WRAP_ROWS ? H - 1 : 0), down = r == (WRAP_ROWS ? 0 : H - 1);
  bool left = c == (WRAP_COLUMNS ? W - 1 : 0), right = c == (WRAP_COLUMNS ? 0 : W - 1);
  REAL total = unframed(x, y, sign, r, c);
  if (up || down || left || right) {
    if (left) total += unframed(x, y, sign, r, -1);
    if (right) total += unframed(x, y, sign, r, W);
    if (up) {
      total += unframed(x, y, sign, -1, c);
      if (left) total += unframed(x, y, sign, -1, -1);
      if (right) total += unframed(x, y, sign, -1, W);
    }
    if (down) {
      total += unframed(x, y, sign, H, c);
      if (left) total += unframed(x, y, sign, H, -1);
      if (right) total += unframed(x, y, sign, H, W);
    }
  }
  return total;
}

#define LOAD \
  extern __shared__ char memory[]; \
  REAL *f = (REAL*)memory, *g = f + N, *f_x = g + N, *f_y = f_x + N, *g_x = f_y + N, *g_y = g_x + N; \
  long long image = blockIdx.x / pairs, pair = blockIdx.x % pairs; \
  const long long apart = (long long)pairs * N; \
  mixtures += (image * 2 * pairs + pair) * N; \
  EACH { f[n] = mixtures[n]; g[n] = mixtures[apart + n]; } \
  __syncthreads(); \
  EACH { \
    Vector d = gradient(f, n), e = gradient(g, n); \
    f_x[n] = d.x; f_y[n] = d.y; g_x[n] = e.x; g_y[n] = e.y; \
  } \
  __syncthreads();

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(THREADS)
products(const REAL* __restrict__ mixtures, REAL* __restrict__ out, int pairs) {
  LOAD
  out += (image * KINDS * pairs + pair) * N;
  EACH {
    Vector d = twist(f_x, f_y, n), e = twist(g_x, g_y, n);
    out[n] = f_x[n] * g_x[n] + f_y[n] * g_y[n];
    out[KINDS / 2 * apart + n] = d.x * e.x + d.y * e.y;
    #if KINDS == 4
    out[apart + n] = f_y[n] * g_x[n] - f_x[n] * g_y[n];
    out[3 * apart + n] = d.y * e.x - d.x * e.y;
    #endif
  }
}

#else
// the gradient by a, given those by the real and imaginary part of a times the conjugate of b
__device__ __forceinline__ Vector by_first(REAL real, REAL imaginary, Vector b) {
  Vector d;
  d.x = real * b.x - imaginary * b.y;
  d.y = real * b.y + imaginary * b.x;
  return d;
}

extern "C" __global__ void __launch_bounds__(THREADS)
products_backward(const REAL* __restrict__ up, const REAL* __restrict__ mixtures, REAL* __restrict__ out, int pairs) {
  LOAD
  REAL *a = f, *b = g, *c = g_y + N, *d = c + N;  // by the second order of f, and of g
  up += (image * KINDS * pairs + pair) * N;
  out += (image * 2 * pairs + pair) * N;
  Vector of_f[ITEMS], of_g[ITEMS];
  EACH {
    Vector p = {f_x[n], f_y[n]}, q = {g_x[n], g_y[n]};
    Vector second = twist(f_x, f_y, n), other = twist(g_x, g_y, n);
    REAL real = up[n], imaginary = KINDS == 4 ? up[apart + n] : 0;
    of_f[i] = by_first(real, imaginary, q);
    of_g[i] = by_first(real, -imaginary, p);
    real = up[KINDS / 2 * apart + n];
    imaginary = KINDS == 4 ? up[3 * apart + n] : 0;
    Vector by_f = by_first(real, imaginary, other), by_g = by_first(real, -imaginary, second);
    a[n] = by_f.x; b[n] = by_f.y; c[n] = by_g.x; d[n] = by_g.y;
  }
  __syncthreads();
  EACH {
    f_x[n] = of_f[i].x + adjoint(a, b, 1, n);
    f_y[n] = of_f[i].y + adjoint(b, a, -1, n);
    g_x[n] = of_g[i].x + adjoint(c, d, 1, n);
    g_y[n] = of_g[i].y + adjoint(d, c, -1, n);
  }
  __syncthreads();
  EACH {
    out[n] = adjoint(f_x, f_y, 1, n);
    out[apart + n] = adjoint(g_x, g_y, 1, n);
  }
}
#endif
"""


@lru_cache(maxsize=256)
def _compiled(
    name: str,
    source: str,
    shared: int,
    chosen: tuple[tuple[str, int], ...],
    grid: Grid,
    dtype: torch.dtype,
    device: Any,
) -> tuple[Any, int]:
    """The kernel, and the threads of a block."""
    nodes = grid[0] * grid[1]
    threads = min(1024, max(128, 32 * -(-nodes // 128)))
    macros = {"H": grid[0], "W": grid[1], "THREADS": threads, "ITEMS": -(-nodes // threads)}
    macros |= nvrtc.grid_macros(grid, dtype) | dict(chosen)
    return nvrtc.kernel(name, source, tuple(macros.items()), shared, False, device), threads


def _polynomials(x: Tensor, to: Tensor, degree: int, summing: bool, grid: Grid) -> Tensor:
    maps = min(x.shape[1], to.shape[1])
    shared = (grid[0] + 2) * (grid[1] + 2) * x.itemsize
    chosen = (("DEGREE", degree), ("SUM", int(summing)))
    kernel, threads = _compiled("polynomials", POLYNOMIALS, shared, chosen, grid, x.dtype, x.device)
    args = [x.contiguous(), nvrtc.root(grid, x.dtype, x.device), to, maps]
    nvrtc.launch(kernel, (len(x) * maps, 1, 1), (threads, 1, 1), args, x.device, shared)
    return to


@chebyshev.register_kernel("cuda")
def cuda_chebyshev(y: Tensor, degree: int, *description: Any) -> Tensor:
    grid: Any = description
    t = y.new_empty(y.shape[0], (degree + 1) * y.shape[1], y.shape[2])
    return _polynomials(y, t, degree, False, grid)


@chebyshev_sum.register_kernel("cuda")
def cuda_chebyshev_sum(u: Tensor, degree: int, *description: Any) -> Tensor:
    grid: Any = description
    z = u.new_empty(u.shape[0], u.shape[1] // (degree + 1), u.shape[2])
    return _polynomials(u, z, degree, True, grid)


def _products(name: str, tensors: list[Tensor], to: Tensor, kinds: int, grid: Grid) -> Tensor:
    nodes, pairs, backward = grid[0] * grid[1], tensors[-1].shape[1] // 2, name.endswith("backward")
    shared = (8 if backward else 6) * nodes * to.itemsize
    chosen = (("KINDS", kinds), ("BACKWARD", int(backward)))
    kernel, threads = _compiled(name, PRODUCTS, shared, chosen, grid, to.dtype, to.device)
    args = [*(tensor.contiguous() for tensor in tensors), to, pairs]
    nvrtc.launch(kernel, (len(to) * pairs, 1, 1), (threads, 1, 1), args, to.device, shared)
    return to


@products.register_kernel("cuda")
def cuda_products(mixtures: Tensor, kinds: int, *description: Any) -> Tensor:
    grid: Any = description
    out = mixtures.new_empty(mixtures.shape[0], kinds * mixtures.shape[1] // 2, mixtures.shape[2])
    return _products("products", [mixtures], out, kinds, grid)


@products_backward.register_kernel("cuda")
def cuda_products_backward(g: Tensor, mixtures: Tensor, kinds: int, *description: Any) -> Tensor:
    grid: Any = description
    g_mixtures = torch.empty_like(mixtures, memory_format=torch.contiguous_format)
    return _products("products_backward", [g, mixtures], g_mixtures, kinds, grid)
