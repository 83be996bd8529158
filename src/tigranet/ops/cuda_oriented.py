"""The layers of the oriented network on NVIDIA GPUs: a block has one map, or one pair of maps, in shared memory."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.ops import nvrtc
from tigranet.ops.chebyshev import chebyshev, chebyshev_sum
from tigranet.ops.grid_spec import MOST_THREADS, Grid
from tigranet.ops.oriented_products import products, products_backward

ROWS = 4
"""Of a strip, unless the threads of a block would be too many."""

STRIPS = r"""
// Thread (x, y) of a block has column x of a strip of ROWS rows. The last strip ends where the map does, though it lie
// partly over the one before it, and threads beyond the last column have that: they write the same numbers twice, and
// no node is ever asked whether it is on the map.
struct Place { int above, first, below, left, column, right; };
struct Row { REAL left, middle, right; };

__device__ __forceinline__ Place place() {
  int r = min((int)threadIdx.y * ROWS, H - ROWS), c = min((int)threadIdx.x, W - 1);
  return {r ? r - 1 : WRAP_ROWS ? H - 1 : BEFORE(H), r, r < H - ROWS ? r + ROWS : WRAP_ROWS ? 0 : AFTER(H),
          c ? c - 1 : WRAP_COLUMNS ? W - 1 : BEFORE(W), c, c < W - 1 ? c + 1 : WRAP_COLUMNS ? 0 : AFTER(W)};
}

// row i of the strip; -1 is above it, ROWS below
__device__ __forceinline__ Row read(const REAL* field, const Place& at, int i) {
  const REAL* row = field + (i < 0 ? at.above : i < ROWS ? at.first + i : at.below) * PITCH;
  return {row[at.left], row[at.column], row[at.right]};
}

// a node and those around it, going down a strip: each row is read once
struct Window {
  const REAL* field;
  Row above, here, below;
  __device__ __forceinline__ Window(const REAL* field, const Place& at)
      : field(field), here(read(field, at, -1)), below(read(field, at, 0)) {}
  __device__ __forceinline__ void down(const Place& at, int i) {
    above = here;
    here = below;
    below = read(field, at, i + 1);
  }
};

#define EACH _Pragma("unroll") for (int i = 0, n = at.first * W + at.column; i < ROWS; i++, n += W)
"""
"""A strip of a map for each thread, the map in shared memory. ``PITCH`` is from row to row; beyond a free border, of so
many rows or columns, lie those ``BEFORE`` and ``AFTER``."""

POLYNOMIALS = (
    r"""
#define PITCH (W + 1)  // zeros lie in the last column and in the last row
#define BEFORE(size) size
#define AFTER(size) size
#define AHEAD ((20 + ROWS - 1) / ROWS)  // orders that are on their way while others are worked on, about 20 numbers
"""
    + STRIPS
    + r"""
__device__ __forceinline__ REAL neighbours(const Window& p) {
  REAL total = (p.above.middle + p.below.middle) + (p.here.left + p.here.right);
  #if EIGHT
  REAL corners = (p.above.left + p.below.right) + (p.above.right + p.below.left);
  total += UNIFORM ? corners : (REAL)(DIAGONAL) * corners;
  #endif
  return total;
}

// new = factor * (L - I) t - before, in place of ``before``
__device__ __forceinline__ void recur(REAL* p, const Place& at, const REAL* s, const REAL* t, REAL factor,
                                      REAL* before) {
  REAL own[ROWS];
  EACH p[(at.first + i) * PITCH + at.column] = own[i] = s[i] * t[i];
  __syncthreads();
  Window around(p, at);
  around.below.middle = own[0];  // need not be read
  EACH {
    around.down(at, i);
    if (i < ROWS - 1) around.below.middle = own[i + 1];
    before[i] = FMA(-factor * s[i], neighbours(around), -before[i]);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
polynomials(const REAL* __restrict__ from, const REAL* __restrict__ root, REAL* __restrict__ to, int maps) {
  extern __shared__ char memory[];
  const int size = (H + 1) * PITCH;
  REAL* p[2] = {(REAL*)memory, (REAL*)memory + size};  // in turn, so that one barrier a step is enough
  long long image = blockIdx.x / maps, map = blockIdx.x % maps;
  const long long apart = (long long)maps * N;  // from one order to the next
  const Place at = place();
  REAL a[ROWS], b[ROWS], s[ROWS];
  from += (image * (SUM ? DEGREE + 1 : 1) * maps + map) * N;
  to += (image * (SUM ? 1 : DEGREE + 1) * maps + map) * N;
  EACH { a[i] = from[(SUM ? DEGREE : 0) * apart + n]; b[i] = 0; s[i] = root[n]; }
  #if SUM
  REAL next[AHEAD][ROWS];
  #pragma unroll
  for (int m = DEGREE - 1; m >= 0 && m >= DEGREE - AHEAD; m--) EACH next[m % AHEAD][i] = from[m * apart + n];
  #endif
  for (int n = threadIdx.y * blockDim.x + threadIdx.x; n < 2 * size; n += THREADS) p[0][n] = 0;
  __syncthreads();
  #if SUM  // Clenshaw: a is b_{m+1}, b is b_{m+2}
  #pragma unroll
  for (int m = DEGREE - 1; m >= 0; m--) {
    recur(p[m % 2], at, s, a, m ? 2 : 1, b);
    EACH { REAL now = b[i] + next[m % AHEAD][i]; b[i] = a[i]; a[i] = now; }
    if (m >= AHEAD) EACH next[m % AHEAD][i] = from[(m - AHEAD) * apart + n];
  }
  EACH to[n] = a[i];
  #else
  EACH to[n] = a[i];
  #pragma unroll
  for (int m = 1; m <= DEGREE; m++) {
    recur(p[m % 2], at, s, a, m > 1 ? 2 : 1, b);
    EACH { REAL now = b[i]; b[i] = a[i]; a[i] = now; to[m * apart + n] = now; }
  }
  #endif
}
"""
)

PRODUCTS = (
    r"""
#define PITCH W
#define BEFORE(size) 0
#define AFTER(size) size - 1
"""
    + STRIPS
    + r"""
#define A (REAL)(10.0 / 32)
#define B (REAL)(3.0 / 32)

struct Vector { REAL x, y; };

struct Field {
  Window x, y;
  __device__ __forceinline__ Field(const REAL* x, const REAL* y, const Place& at) : x(x, at), y(y, at) {}
  __device__ __forceinline__ void down(const Place& at, int i) { x.down(at, i); y.down(at, i); }
  __device__ __forceinline__ Vector here() const { return {x.here.middle, y.here.middle}; }
};

__device__ __forceinline__ Vector gradient(const Window& f) {
  REAL falling = f.below.right - f.above.left, rising = f.above.right - f.below.left;
  return {A * (f.here.right - f.here.left) + B * (falling + rising),
          A * (f.below.middle - f.above.middle) + B * (falling - rising)};
}

__device__ __forceinline__ Vector twist(const Field& f) {
  Vector x = gradient(f.x), y = gradient(f.y);
  return {x.x - y.y, x.y + y.x};
}

#define LOAD \
  extern __shared__ char memory[]; \
  REAL *f = (REAL*)memory, *g = f + N, *f_x = g + N, *f_y = f_x + N, *g_x = f_y + N, *g_y = g_x + N; \
  long long image = blockIdx.x / pairs, pair = blockIdx.x % pairs; \
  const long long apart = (long long)pairs * N; \
  const Place at = place(); \
  mixtures += (image * 2 * pairs + pair) * N; \
  EACH { f[n] = mixtures[n]; g[n] = mixtures[apart + n]; } \
  __syncthreads(); \
  { \
    Window u(f, at), v(g, at); \
    EACH { \
      u.down(at, i); v.down(at, i); \
      Vector d = gradient(u), e = gradient(v); \
      f_x[n] = d.x; f_y[n] = d.y; g_x[n] = e.x; g_y[n] = e.y; \
    } \
  } \
  __syncthreads(); \
  Field df(f_x, f_y, at), dg(g_x, g_y, at);

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(THREADS)
products(const REAL* __restrict__ mixtures, REAL* __restrict__ out, int pairs) {
  LOAD
  out += (image * KINDS * pairs + pair) * N;
  EACH {
    df.down(at, i); dg.down(at, i);
    Vector p = df.here(), q = dg.here(), d = twist(df), e = twist(dg);
    out[n] = p.x * q.x + p.y * q.y;
    out[KINDS / 2 * apart + n] = d.x * e.x + d.y * e.y;
    #if KINDS == 4
    out[apart + n] = p.y * q.x - p.x * q.y;
    out[3 * apart + n] = d.y * e.x - d.x * e.y;
    #endif
  }
}

#else
// The adjoint of the gradient, of (x, sign y). A pixel at a free border is read for those beyond it too, which comes to
// this: there x goes on with its sign changed, to the left and right, and y above and below.
__device__ __forceinline__ REAL adjoint(const Window& x, const Window& y, REAL sign, const Place& at, int i) {
  REAL left = !WRAP_COLUMNS && at.column == 0 ? -1 : 1, right = !WRAP_COLUMNS && at.column == W - 1 ? -1 : 1;
  REAL up = !WRAP_ROWS && i == 0 && at.first == 0 ? -sign : sign;
  REAL down = !WRAP_ROWS && i == ROWS - 1 && at.first == H - ROWS ? -sign : sign;
  REAL straight = (left * x.here.left - right * x.here.right) + (up * y.above.middle - down * y.below.middle);
  REAL falling = (left * x.above.left + up * y.above.left) - (right * x.below.right + down * y.below.right);
  REAL rising = (left * x.below.left - down * y.below.left) - (right * x.above.right - up * y.above.right);
  return A * straight + B * (falling + rising);
}

// the gradient by a, given those by the real and imaginary part of a times the conjugate of b
__device__ __forceinline__ Vector by_first(REAL real, REAL imaginary, Vector b) {
  return {real * b.x - imaginary * b.y, real * b.y + imaginary * b.x};
}

extern "C" __global__ void __launch_bounds__(THREADS)
products_backward(const REAL* __restrict__ up, const REAL* __restrict__ mixtures, REAL* __restrict__ out, int pairs) {
  LOAD
  REAL *a = f, *b = g, *c = g_y + N, *d = c + N;  // by the second order of f, and of g
  up += (image * KINDS * pairs + pair) * N;
  out += (image * 2 * pairs + pair) * N;
  Vector of_f[ROWS], of_g[ROWS];
  EACH {
    df.down(at, i); dg.down(at, i);
    Vector p = df.here(), q = dg.here(), second = twist(df), other = twist(dg);
    REAL real = up[n], imaginary = KINDS == 4 ? up[apart + n] : 0;
    of_f[i] = by_first(real, imaginary, q);
    of_g[i] = by_first(real, -imaginary, p);
    real = up[KINDS / 2 * apart + n];
    imaginary = KINDS == 4 ? up[3 * apart + n] : 0;
    Vector by_f = by_first(real, imaginary, other), by_g = by_first(real, -imaginary, second);
    a[n] = by_f.x; b[n] = by_f.y; c[n] = by_g.x; d[n] = by_g.y;
  }
  __syncthreads();
  Field by_f(a, b, at), by_g(c, d, at);
  EACH {
    by_f.down(at, i); by_g.down(at, i);
    f_x[n] = of_f[i].x + adjoint(by_f.x, by_f.y, 1, at, i);
    f_y[n] = of_f[i].y + adjoint(by_f.y, by_f.x, -1, at, i);
    g_x[n] = of_g[i].x + adjoint(by_g.x, by_g.y, 1, at, i);
    g_y[n] = of_g[i].y + adjoint(by_g.y, by_g.x, -1, at, i);
  }
  __syncthreads();
  Field all_f(f_x, f_y, at), all_g(g_x, g_y, at);
  EACH {
    all_f.down(at, i); all_g.down(at, i);
    out[n] = adjoint(all_f.x, all_f.y, 1, at, i);
    out[apart + n] = adjoint(all_g.x, all_g.y, 1, at, i);
  }
}
#endif
"""
)


@lru_cache(maxsize=256)
def _compiled(
    name: str,
    source: str,
    shared: int,
    chosen: tuple[tuple[str, int], ...],
    grid: Grid,
    dtype: torch.dtype,
    device: Any,
) -> tuple[Any, nvrtc.Three]:
    """The kernel, and the threads of a block: a warp has a row of a strip, or a part of it."""
    height, width = grid[:2]
    across = 32 * -(-width // 32)
    rows = -(-height // min(-(-height // ROWS), MOST_THREADS // across))
    block = across, -(-height // rows), 1
    macros = {"H": height, "W": width, "ROWS": rows, "THREADS": block[0] * block[1]}
    macros |= nvrtc.grid_macros(grid, dtype) | dict(chosen)
    return nvrtc.kernel(name, source, tuple(macros.items()), shared, False, device), block


def _polynomials(x: Tensor, to: Tensor, degree: int, summing: bool, grid: Grid) -> Tensor:
    maps = min(x.shape[1], to.shape[1])
    shared = 2 * (grid[0] + 1) * (grid[1] + 1) * x.itemsize
    chosen = (("DEGREE", degree), ("SUM", int(summing)))
    kernel, block = _compiled("polynomials", POLYNOMIALS, shared, chosen, grid, x.dtype, x.device)
    args = [x.contiguous(), nvrtc.root(grid, x.dtype, x.device), to, maps]
    nvrtc.launch(kernel, (len(x) * maps, 1, 1), block, args, x.device, shared)
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
    pairs, backward = tensors[-1].shape[1] // 2, name.endswith("backward")
    shared = (8 if backward else 6) * grid[0] * grid[1] * to.itemsize
    chosen = (("KINDS", kinds), ("BACKWARD", int(backward)))
    kernel, block = _compiled(name, PRODUCTS, shared, chosen, grid, to.dtype, to.device)
    args = [*(tensor.contiguous() for tensor in tensors), to, pairs]
    nvrtc.launch(kernel, (len(to) * pairs, 1, 1), block, args, to.device, shared)
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
