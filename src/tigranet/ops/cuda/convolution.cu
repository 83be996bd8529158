// The spectral convolution: mix the input maps by beta, apply powers of L, combine them by alpha, keep the nodes of
// omega. One block per image: the powers are in registers, and one power at a time is in shared memory. A block has
// THREADS threads with ITEMS nodes each. The forward kernel is compiled without fused multiply-adds and adds in the
// order of the reference, so that pooling gets identical bits.
#include "common.cu"

#define STRIDE (W + 2)

// Writes a value into shared memory, where the map has a border of one node. On a torus, the border repeats the nodes
// of the opposite side.
__device__ __forceinline__ void write_with_border(REAL* p, int n, REAL value) {
  int r = n / W, c = n % W;
  int mirror_r = WRAP_ROWS ? (r == 0 ? H : r == H - 1 ? -1 : r) : r;
  int mirror_c = WRAP_COLUMNS ? (c == 0 ? W : c == W - 1 ? -1 : c) : c;
  p[(r + 1) * STRIDE + c + 1] = value;
  if (mirror_r != r) p[(mirror_r + 1) * STRIDE + c + 1] = value;
  if (mirror_c != c) p[(r + 1) * STRIDE + mirror_c + 1] = value;
  if (mirror_r != r && mirror_c != c) p[(mirror_r + 1) * STRIDE + mirror_c + 1] = value;
}

__device__ __forceinline__ REAL neighbours(const REAL* p, int n) {
  const REAL* at = p + (n / W + 1) * STRIDE + n % W + 1;
  REAL total = (at[-STRIDE] + at[STRIDE]) + (at[-1] + at[1]);
  #if EIGHT
  REAL corners = (at[-STRIDE - 1] + at[STRIDE + 1]) + (at[-STRIDE + 1] + at[STRIDE - 1]);
  total += UNIFORM ? corners : (REAL)(DIAGONAL) * corners;
  #endif
  return total;
}

#define FOR_EACH_NODE _Pragma("unroll") for (int i = 0, n = threadIdx.x; i < ITEMS; i++, n += THREADS) if (n < N)

// In place: t = L t.
__device__ __forceinline__ void apply_laplacian(REAL* p, const REAL* s, REAL* t) {
  __syncthreads();
  FOR_EACH_NODE write_with_border(p, n, s[i] * t[i]);
  __syncthreads();
  FOR_EACH_NODE t[i] = t[i] + -s[i] * neighbours(p, n);
}

__device__ __forceinline__ void compute_powers(const REAL* y, const REAL* beta, const REAL* root, REAL* p, REAL* s,
                                          REAL (*powers)[ITEMS]) {
  for (int n = threadIdx.x; n < (H + 2) * STRIDE; n += THREADS) p[n] = 0;
  FOR_EACH_NODE {
    REAL mixed = 0;
    #pragma unroll 4
    for (int k = 0; k < INPUTS; k++) mixed = mixed + beta[k] * y[(long long)k * N + n];
    powers[0][i] = mixed;
    s[i] = root[n];
  }
  #pragma unroll
  for (int m = 1; m <= DEGREE; m++) {
    #pragma unroll
    for (int i = 0; i < ITEMS; i++) powers[m][i] = powers[m - 1][i];
    apply_laplacian(p, s, powers[m]);
  }
}

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(THREADS)
convolution(const REAL* __restrict__ y, const REAL* __restrict__ alpha, const REAL* __restrict__ beta,
            const unsigned char* __restrict__ omega, const REAL* __restrict__ root, REAL* __restrict__ z) {
  extern __shared__ char memory[];
  REAL* p = (REAL*)memory;
  long long item = blockIdx.x;
  REAL powers[DEGREE + 1][ITEMS], s[ITEMS], mask[ITEMS];
  compute_powers(y + item * INPUTS * N, beta, root, p, s, powers);
  z += item * OUTPUTS * N;
  #if MASKED
  FOR_EACH_NODE mask[i] = (REAL)omega[item * N + n];
  #endif
  #pragma unroll 2
  for (int o = 0; o < OUTPUTS; o++) {
    REAL a[DEGREE + 1];
    #pragma unroll
    for (int m = 0; m <= DEGREE; m++) a[m] = alpha[o * (DEGREE + 1) + m];
    FOR_EACH_NODE {
      REAL total = 0;
      #pragma unroll
      for (int m = 0; m <= DEGREE; m++) total = total + a[m] * powers[m][i];
      #if MASKED
      total = total * mask[i];
      #endif
      z[(long long)o * N + n] = total;
    }
  }
}

#else
extern "C" __global__ void __launch_bounds__(THREADS)
convolution_backward(const REAL* __restrict__ g, const REAL* __restrict__ y, const REAL* __restrict__ alpha,
                     const REAL* __restrict__ beta, const unsigned char* __restrict__ omega,
                     const REAL* __restrict__ root, REAL* __restrict__ g_y, REAL* __restrict__ g_alpha,
                     REAL* __restrict__ g_beta) {
  extern __shared__ char memory[];
  REAL* p = (REAL*)memory;
  REAL* sums = p + (H + 2) * STRIDE;  // [warps][max(OUTPUTS * (DEGREE + 1), INPUTS)]
  const int warps = THREADS / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  long long item = blockIdx.x;
  REAL powers[DEGREE + 1][ITEMS], local[DEGREE + 1][ITEMS], s[ITEMS], mask[ITEMS];
  compute_powers(y + item * INPUTS * N, beta, root, p, s, powers);
  #pragma unroll
  for (int m = 0; m <= DEGREE; m++)
    #pragma unroll
    for (int i = 0; i < ITEMS; i++) local[m][i] = 0;
  #if MASKED
  FOR_EACH_NODE mask[i] = (REAL)omega[item * N + n];
  #endif
  #pragma unroll 1
  for (int o = 0; o < OUTPUTS; o++) {
    REAL total[DEGREE + 1], a[DEGREE + 1];
    #pragma unroll
    for (int m = 0; m <= DEGREE; m++) { total[m] = 0; a[m] = alpha[o * (DEGREE + 1) + m]; }
    FOR_EACH_NODE {
      REAL value = g[(item * OUTPUTS + o) * N + n];
      #if MASKED
      value *= mask[i];
      #endif
      #pragma unroll
      for (int m = 0; m <= DEGREE; m++) {
        total[m] += value * powers[m][i];
        local[m][i] += value * a[m];
      }
    }
    #pragma unroll
    for (int m = 0; m <= DEGREE; m++) {
      REAL sum = warp_sum(total[m]);
      if (lane == 0) sums[warp * OUTPUTS * (DEGREE + 1) + o * (DEGREE + 1) + m] = sum;
    }
  }
  __syncthreads();
  for (int n = threadIdx.x; n < OUTPUTS * (DEGREE + 1); n += THREADS) {
    REAL sum = 0;
    for (int w = 0; w < warps; w++) sum += sums[w * OUTPUTS * (DEGREE + 1) + n];
    g_alpha[item * OUTPUTS * (DEGREE + 1) + n] = sum;
  }
  #pragma unroll
  for (int m = DEGREE - 1; m >= 0; m--) {
    apply_laplacian(p, s, local[m + 1]);
    #pragma unroll
    for (int i = 0; i < ITEMS; i++) local[m][i] += local[m + 1][i];
  }
  __syncthreads();
  #pragma unroll 1
  for (int k = 0; k < INPUTS; k++) {
    REAL total = 0, b = beta[k];
    FOR_EACH_NODE {
      long long at = (item * INPUTS + k) * N + n;
      total += y[at] * local[0][i];
      #if NEEDS_INPUT_GRADIENT
      g_y[at] = b * local[0][i];
      #endif
    }
    total = warp_sum(total);
    if (lane == 0) sums[warp * INPUTS + k] = total;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < INPUTS; k += THREADS) {
    REAL sum = 0;
    for (int w = 0; w < warps; w++) sum += sums[w * INPUTS + k];
    g_beta[item * INPUTS + k] = sum;
  }
}
#endif
