// Products of the image gradients, of first and second order, of two maps f and g. With gradients as complex numbers,
// p = f_x + i f_y and q = g_x + i g_y, the products are the real part of p times the conjugate of q and, if KINDS is 4,
// its imaginary part; and the same for the second order, the complex gradient of the gradient. One block per pair of
// maps, with all fields in shared memory: six forward and eight backward. With COMPACT there are only four. Each step
// then overwrites the fields of the step before it, with its results in registers and one more barrier in between.
#include "common.cu"

// Outside a free border, the nearest pixel counts again.
#define ROW_STRIDE W
#define BEFORE(size) 0
#define AFTER(size) size - 1

#include "strips.cu"

// Scharr weights of the straight and the diagonal differences.
#define A (REAL)(10.0 / 32)
#define B (REAL)(3.0 / 32)

struct Vector { REAL x, y; };

struct Field {
  Window x, y;
  __device__ __forceinline__ Field(const REAL* x, const REAL* y, const Position& at) : x(x, at), y(y, at) {}
  __device__ __forceinline__ void down(const Position& at, int i) { x.down(at, i); y.down(at, i); }
  __device__ __forceinline__ Vector here() const { return {x.here.middle, y.here.middle}; }
};

__device__ __forceinline__ Vector gradient(const Window& f) {
  REAL falling_diagonal = f.below.right - f.above.left, rising_diagonal = f.above.right - f.below.left;
  return {A * (f.here.right - f.here.left) + B * (falling_diagonal + rising_diagonal),
          A * (f.below.middle - f.above.middle) + B * (falling_diagonal - rising_diagonal)};
}

__device__ __forceinline__ Vector second_order(const Field& f) {
  Vector x = gradient(f.x), y = gradient(f.y);
  return {x.x - y.y, x.y + y.x};
}

#if COMPACT
#define LOAD_GRADIENTS \
  extern __shared__ char memory[]; \
  REAL *f = (REAL*)memory, *g = f + N, *f_x = f, *f_y = g, *g_x = g + N, *g_y = g_x + N; \
  long long image = blockIdx.x / pairs, pair = blockIdx.x % pairs; \
  const long long kind_stride = (long long)pairs * N; \
  const Position at = position(); \
  mixtures += (image * 2 * pairs + pair) * N; \
  FOR_EACH_ROW { f[n] = mixtures[n]; g[n] = mixtures[kind_stride + n]; } \
  __syncthreads(); \
  { \
    Window u(f, at), v(g, at); \
    Vector d[ROWS], e[ROWS]; \
    FOR_EACH_ROW { \
      u.down(at, i); v.down(at, i); \
      d[i] = gradient(u); e[i] = gradient(v); \
    } \
    __syncthreads(); \
    FOR_EACH_ROW { f_x[n] = d[i].x; f_y[n] = d[i].y; g_x[n] = e[i].x; g_y[n] = e[i].y; } \
  } \
  __syncthreads(); \
  Field df(f_x, f_y, at), dg(g_x, g_y, at);
#else
#define LOAD_GRADIENTS \
  extern __shared__ char memory[]; \
  REAL *f = (REAL*)memory, *g = f + N, *f_x = g + N, *f_y = f_x + N, *g_x = f_y + N, *g_y = g_x + N; \
  long long image = blockIdx.x / pairs, pair = blockIdx.x % pairs; \
  const long long kind_stride = (long long)pairs * N; \
  const Position at = position(); \
  mixtures += (image * 2 * pairs + pair) * N; \
  FOR_EACH_ROW { f[n] = mixtures[n]; g[n] = mixtures[kind_stride + n]; } \
  __syncthreads(); \
  { \
    Window u(f, at), v(g, at); \
    FOR_EACH_ROW { \
      u.down(at, i); v.down(at, i); \
      Vector d = gradient(u), e = gradient(v); \
      f_x[n] = d.x; f_y[n] = d.y; g_x[n] = e.x; g_y[n] = e.y; \
    } \
  } \
  __syncthreads(); \
  Field df(f_x, f_y, at), dg(g_x, g_y, at);
#endif

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(THREADS)
oriented_products(const REAL* __restrict__ mixtures, REAL* __restrict__ out, int pairs) {
  LOAD_GRADIENTS
  out += (image * KINDS * pairs + pair) * N;
  FOR_EACH_ROW {
    df.down(at, i); dg.down(at, i);
    Vector p = df.here(), q = dg.here(), d = second_order(df), e = second_order(dg);
    out[n] = p.x * q.x + p.y * q.y;
    out[KINDS / 2 * kind_stride + n] = d.x * e.x + d.y * e.y;
    #if KINDS == 4
    out[kind_stride + n] = p.y * q.x - p.x * q.y;
    out[3 * kind_stride + n] = d.y * e.x - d.x * e.y;
    #endif
  }
}

#else
// The adjoint of the gradient, applied to (x, sign * y). The gradient reads a pixel at a free border again for the one
// outside it. For the adjoint this means that outside the border x continues with the opposite sign to the left and
// right, and y above and below.
__device__ __forceinline__ REAL adjoint(const Window& x, const Window& y, REAL sign, const Position& at, int i) {
  REAL left = !WRAP_COLUMNS && at.column == 0 ? -1 : 1, right = !WRAP_COLUMNS && at.column == W - 1 ? -1 : 1;
  REAL up = !WRAP_ROWS && i == 0 && at.first == 0 ? -sign : sign;
  REAL down = !WRAP_ROWS && i == ROWS - 1 && at.first == H - ROWS ? -sign : sign;
  REAL straight = (left * x.here.left - right * x.here.right) + (up * y.above.middle - down * y.below.middle);
  REAL falling_diagonal = (left * x.above.left + up * y.above.left) - (right * x.below.right + down * y.below.right);
  REAL rising_diagonal = (left * x.below.left - down * y.below.left) - (right * x.above.right - up * y.above.right);
  return A * straight + B * (falling_diagonal + rising_diagonal);
}

// The gradient by a, from the gradients by the real and the imaginary part of a times the conjugate of b.
__device__ __forceinline__ Vector gradient_of_product(REAL real, REAL imaginary, Vector b) {
  return {real * b.x - imaginary * b.y, real * b.y + imaginary * b.x};
}

extern "C" __global__ void __launch_bounds__(THREADS)
oriented_products_backward(const REAL* __restrict__ upstream, const REAL* __restrict__ mixtures,
                           REAL* __restrict__ out, int pairs) {
  LOAD_GRADIENTS
  #if COMPACT
  REAL *a = f_x, *b = f_y, *c = g_x, *d = g_y;  // gradients by the second order of f and of g
  Vector by_f_rows[ROWS], by_g_rows[ROWS];
  #else
  REAL *a = f, *b = g, *c = g_y + N, *d = c + N;  // gradients by the second order of f and of g
  #endif
  upstream += (image * KINDS * pairs + pair) * N;
  out += (image * 2 * pairs + pair) * N;
  Vector of_f[ROWS], of_g[ROWS];
  FOR_EACH_ROW {
    df.down(at, i); dg.down(at, i);
    Vector p = df.here(), q = dg.here(), second = second_order(df), other = second_order(dg);
    REAL real = upstream[n], imaginary = KINDS == 4 ? upstream[kind_stride + n] : 0;
    of_f[i] = gradient_of_product(real, imaginary, q);
    of_g[i] = gradient_of_product(real, -imaginary, p);
    real = upstream[KINDS / 2 * kind_stride + n];
    imaginary = KINDS == 4 ? upstream[3 * kind_stride + n] : 0;
    Vector by_f = gradient_of_product(real, imaginary, other), by_g = gradient_of_product(real, -imaginary, second);
    #if COMPACT
    by_f_rows[i] = by_f; by_g_rows[i] = by_g;
    #else
    a[n] = by_f.x; b[n] = by_f.y; c[n] = by_g.x; d[n] = by_g.y;
    #endif
  }
  #if COMPACT
  __syncthreads();
  FOR_EACH_ROW { a[n] = by_f_rows[i].x; b[n] = by_f_rows[i].y; c[n] = by_g_rows[i].x; d[n] = by_g_rows[i].y; }
  #endif
  __syncthreads();
  Field by_f(a, b, at), by_g(c, d, at);
  FOR_EACH_ROW {
    by_f.down(at, i); by_g.down(at, i);
    #if COMPACT
    of_f[i].x += adjoint(by_f.x, by_f.y, 1, at, i);
    of_f[i].y += adjoint(by_f.y, by_f.x, -1, at, i);
    of_g[i].x += adjoint(by_g.x, by_g.y, 1, at, i);
    of_g[i].y += adjoint(by_g.y, by_g.x, -1, at, i);
    #else
    f_x[n] = of_f[i].x + adjoint(by_f.x, by_f.y, 1, at, i);
    f_y[n] = of_f[i].y + adjoint(by_f.y, by_f.x, -1, at, i);
    g_x[n] = of_g[i].x + adjoint(by_g.x, by_g.y, 1, at, i);
    g_y[n] = of_g[i].y + adjoint(by_g.y, by_g.x, -1, at, i);
    #endif
  }
  #if COMPACT
  __syncthreads();
  FOR_EACH_ROW { f_x[n] = of_f[i].x; f_y[n] = of_f[i].y; g_x[n] = of_g[i].x; g_y[n] = of_g[i].y; }
  #endif
  __syncthreads();
  Field all_f(f_x, f_y, at), all_g(g_x, g_y, at);
  FOR_EACH_ROW {
    all_f.down(at, i); all_g.down(at, i);
    out[n] = adjoint(all_f.x, all_f.y, 1, at, i);
    out[kind_stride + n] = adjoint(all_g.x, all_g.y, 1, at, i);
  }
}
#endif
