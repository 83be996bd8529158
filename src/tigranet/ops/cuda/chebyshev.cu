// Chebyshev polynomials of a map, T_0(L - I) y .. T_DEGREE(L - I) y, or with SUM their adjoint, the sum over m of
// T_m(L - I) u_m. One block per map: the map is in shared memory and its terms are in registers.
#include "common.cu"

// Shared memory has one column and one row of zeros after the map: the neighbours outside a free border.
#define ROW_STRIDE (W + 1)
#define BEFORE(size) size
#define AFTER(size) size
#define PREFETCH ((20 + ROWS - 1) / ROWS)  // orders that are loaded in advance, about 20 numbers per thread

#include "strips.cu"

__device__ __forceinline__ REAL neighbours(const Window& p) {
  REAL total = (p.above.middle + p.below.middle) + (p.here.left + p.here.right);
  #if EIGHT
  REAL corners = (p.above.left + p.below.right) + (p.above.right + p.below.left);
  total += UNIFORM ? corners : (REAL)(DIAGONAL) * corners;
  #endif
  return total;
}

// In place: before = factor * (L - I) t - before.
__device__ __forceinline__ void recurrence_step(REAL* p, const Position& at, const REAL* s, const REAL* t, REAL factor,
                                                REAL* before) {
  REAL scaled[ROWS];
  FOR_EACH_ROW p[(at.first + i) * ROW_STRIDE + at.column] = scaled[i] = s[i] * t[i];
  __syncthreads();
  Window around(p, at);
  around.below.middle = scaled[0];  // in a register already
  FOR_EACH_ROW {
    around.down(at, i);
    if (i < ROWS - 1) around.below.middle = scaled[i + 1];
    before[i] = FMA(-factor * s[i], neighbours(around), -before[i]);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
chebyshev(const REAL* __restrict__ input, const REAL* __restrict__ root, REAL* __restrict__ output, int maps) {
  extern __shared__ char memory[];
  const int size = (H + 1) * ROW_STRIDE;
  REAL* p[2] = {(REAL*)memory, (REAL*)memory + size};  // they alternate, so that one barrier per step is enough
  long long image = blockIdx.x / maps, map = blockIdx.x % maps;
  const long long order_stride = (long long)maps * N;
  const Position at = position();
  REAL a[ROWS], b[ROWS], s[ROWS];
  input += (image * (SUM ? DEGREE + 1 : 1) * maps + map) * N;
  output += (image * (SUM ? 1 : DEGREE + 1) * maps + map) * N;
  FOR_EACH_ROW { a[i] = input[(SUM ? DEGREE : 0) * order_stride + n]; b[i] = 0; s[i] = root[n]; }
  #if SUM
  REAL prefetched[PREFETCH][ROWS];
  #pragma unroll
  for (int m = DEGREE - 1; m >= 0 && m >= DEGREE - PREFETCH; m--)
    FOR_EACH_ROW prefetched[m % PREFETCH][i] = input[m * order_stride + n];
  #endif
  for (int n = threadIdx.y * blockDim.x + threadIdx.x; n < 2 * size; n += THREADS) p[0][n] = 0;
  __syncthreads();
  #if SUM  // Clenshaw's recurrence: a is b_{m+1}, b is b_{m+2}
  #pragma unroll
  for (int m = DEGREE - 1; m >= 0; m--) {
    recurrence_step(p[m % 2], at, s, a, m ? 2 : 1, b);
    FOR_EACH_ROW { REAL now = b[i] + prefetched[m % PREFETCH][i]; b[i] = a[i]; a[i] = now; }
    if (m >= PREFETCH) FOR_EACH_ROW prefetched[m % PREFETCH][i] = input[(m - PREFETCH) * order_stride + n];
  }
  FOR_EACH_ROW output[n] = a[i];
  #else
  FOR_EACH_ROW output[n] = a[i];
  #pragma unroll
  for (int m = 1; m <= DEGREE; m++) {
    recurrence_step(p[m % 2], at, s, a, m > 1 ? 2 : 1, b);
    FOR_EACH_ROW { REAL now = b[i]; b[i] = a[i]; a[i] = now; output[m * order_stride + n] = now; }
  }
  #endif
}
