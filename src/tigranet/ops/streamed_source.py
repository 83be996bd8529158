"""The statistics and the convolution in CUDA C++ for grids of any size: maps stay in global memory.

One launch is one step of a recurrence over all maps. Height and width are arguments, so what is compiled serves every
size. A thread goes down ``BAND`` rows of one column, a block covers 32 columns and ``TALL * BAND`` rows. All values
are the plain version's, to the bit: without fused multiply-adds and in its order of additions. Sums over the nodes are
taken a block at a time and go on in float64.
"""

BAND, TALL = 8, 8
"""Rows a thread, threads above one another."""
THREADS = 256
"""Threads a block, where a block has no rows and columns, but nodes."""

STREAMED = r"""
struct At {
  int height, width, row, column;
  int beside[3];            // the columns to the left, here, to the right; where there is none, one that there is
  bool exists[3];
  REAL edge[3], middle[3];  // s = D^{-1/2} there, in the first and last row, and in the others
};

__device__ __forceinline__ At place(const REAL* root, int height, int width) {
  At at;
  at.height = height;
  at.width = width;
  at.row = (blockIdx.y * TALL + threadIdx.y) * BAND;
  at.column = blockIdx.x * 32 + threadIdx.x;
  #pragma unroll
  for (int i = 0; i < 3; i++) {
    int c = at.column + i - 1;
    if (WRAP_COLUMNS) c = c < 0 ? width - 1 : c == width ? 0 : c;
    at.exists[i] = at.column < width && c >= 0 && c < width;
    at.beside[i] = at.exists[i] ? c : 0;
    at.edge[i] = root[at.beside[i]];
    at.middle[i] = root[(height > 2 ? width : 0) + at.beside[i]];
  }
  return at;
}

__device__ __forceinline__ bool edge(const At& at, int r) { return r == 0 || r == at.height - 1; }

// Row ``i`` of the thread's own, of which one before and one after are read too: its number, and whether it exists.
__device__ __forceinline__ int row(const At& at, int i, bool* exists) {
  int r = at.row + i;
  if (WRAP_ROWS) r = r < 0 ? at.height - 1 : r == at.height ? 0 : r;
  *exists = r >= 0 && r < at.height;
  return *exists ? r : 0;
}

// The numbers of the thread's BAND nodes. All are read at once, and something even where there is no node: a branch
// would wait for each number by itself.
__device__ __forceinline__ void read(const At& at, const REAL* v, REAL* values) {
  bool exists;
  #pragma unroll
  for (int i = 0; i < BAND; i++) values[i] = v[(long long)row(at, i, &exists) * at.width + at.beside[1]];
}

// -s (sum over the neighbours of s v), at the BAND nodes of this thread
__device__ __forceinline__ void shifted(const At& at, const REAL* v, REAL* answer) {
  REAL p[BAND + 2][3];
  bool exists;
  #pragma unroll
  for (int i = 0; i < BAND + 2; i++)
    #pragma unroll
    for (int c = 0; c < 3; c++) p[i][c] = v[(long long)row(at, i - 1, &exists) * at.width + at.beside[c]];
  #pragma unroll
  for (int i = 0; i < BAND + 2; i++) {
    int r = row(at, i - 1, &exists);
    #pragma unroll
    for (int c = 0; c < 3; c++) {
      REAL value = (edge(at, r) ? at.edge[c] : at.middle[c]) * p[i][c];
      p[i][c] = exists && at.exists[c] ? value : 0;
    }
  }
  #pragma unroll
  for (int i = 0; i < BAND; i++) {
    REAL total = (p[i][1] + p[i + 2][1]) + (p[i + 1][0] + p[i + 1][2]);
    #if EIGHT
    REAL corners = (p[i][0] + p[i + 2][2]) + (p[i][2] + p[i + 2][0]);
    total = total + (UNIFORM ? corners : (REAL)(DIAGONAL) * corners);
    #endif
    answer[i] = -(edge(at, at.row + i) ? at.edge[1] : at.middle[1]) * total;
  }
}

#define EACH _Pragma("unroll") for (int i = 0; i < BAND; i++) if (at.exists[1] && at.row + i < at.height)
#define NODE ((long long)(at.row + i) * at.width + at.column)

__device__ __forceinline__ REAL block_sum(REAL x, REAL* sums) {
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x == 0) sums[threadIdx.y] = x;
  __syncthreads();
  REAL total = 0;
  #pragma unroll
  for (int w = 0; w < TALL; w++) total += sums[w];
  return total;
}

// fresh = factor * shifted(v) + sign * before, where ``fresh`` may be ``before``; if ``measured``, of every block the
// mean of the magnitudes and the sum of squares about it. With factor 0 ``before`` is measured, and nothing written.
extern "C" __global__ void __launch_bounds__(32 * TALL, sizeof(REAL) == 4 ? 2 : 1)
streamed_step(const REAL* v, const REAL* before, REAL* fresh, const REAL* __restrict__ root, double* parts, int height,
              int width, int items, int factor, int sign, int measured) {
  __shared__ REAL sums[TALL];
  At at = place(root, height, width);
  long long nodes = (long long)height * width;
  int rows = height - blockIdx.y * (TALL * BAND), columns = width - blockIdx.x * 32;
  int count = (rows < TALL * BAND ? rows : TALL * BAND) * (columns < 32 ? columns : 32);
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    REAL was[BAND], value[BAND], mean = 0, squares = 0;
    read(at, before + item * nodes, was);
    if (factor) {
      shifted(at, v + item * nodes, value);
      #pragma unroll
      for (int i = 0; i < BAND; i++) value[i] = FMA((REAL)factor, value[i], sign ? sign * was[i] : 0);
      EACH fresh[item * nodes + NODE] = value[i];
    } else {
      #pragma unroll
      for (int i = 0; i < BAND; i++) value[i] = was[i];
    }
    if (!measured) continue;
    EACH mean += magnitude(value[i]) * ((REAL)1 / count);  // a sum would overflow earlier
    mean = block_sum(mean, sums);
    EACH {
      REAL d = magnitude(value[i]) - mean;
      squares += d * d;
    }
    squares = block_sum(squares, sums);
    if (threadIdx.x == 0 && threadIdx.y == 0) {
      double* part = parts + ((item * (long long)gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * 2;
      part[0] = mean;
      part[1] = squares;
    }
  }
}

// The adjoint step, older = factor * shifted(b) - older + the gradient of mean and variance of order k at t.
extern "C" __global__ void __launch_bounds__(32 * TALL, sizeof(REAL) == 4 ? 2 : 1)
streamed_pull(const REAL* b, REAL* older, const REAL* __restrict__ t, const REAL* __restrict__ noise,
              const REAL* __restrict__ phi, const REAL* __restrict__ g, const REAL* __restrict__ root, int height,
              int width, int items, int factor, int k, int order) {
  At at = place(root, height, width);
  long long nodes = (long long)height * width;
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    long long statistic = (item * (long long)(order + 1) + k) * 2;
    REAL mean = phi[statistic], by_mean = g[statistic] / (REAL)nodes;
    REAL by_variance = (g[statistic + 1] + g[statistic + 1]) / (REAL)nodes, least = noise[item];
    REAL here[BAND], was[BAND], value[BAND];
    read(at, t + item * nodes, here);
    read(at, older + item * nodes, was);
    shifted(at, b + item * nodes, value);
    EACH {
      REAL size = magnitude(here[i]), local = by_mean + by_variance * (size - mean);
      local = here[i] < 0 ? -local : local;
      older[item * nodes + NODE] = FMA((REAL)factor, value[i], -was[i]) + (size > least ? local : 0);
    }
  }
}

// Sums of SIGNALS signals, each by its weights, added in this order; times a mask if there is one. Signal j of item is
// the (item * signal_item + j * signal_j)-th, and so is an answer.
extern "C" __global__ void __launch_bounds__(THREADS)
streamed_combine(const REAL* __restrict__ signals, const REAL* __restrict__ weights,
                 const unsigned char* __restrict__ mask, REAL* __restrict__ answers, int nodes, int items, int outputs,
                 int signal_item, int signal_j, int answer_item, int answer_j, int masked) {
  long long n = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (n >= nodes) return;
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    const REAL* from = signals + (long long)item * signal_item * nodes + n;
    REAL* to = answers + (long long)item * answer_item * nodes + n;
    #if HELD
    REAL held[SIGNALS];
    #pragma unroll
    for (int j = 0; j < SIGNALS; j++) held[j] = from[(long long)j * signal_j * nodes];
    #define SIGNAL(j) held[j]
    #else
    #define SIGNAL(j) from[(long long)(j) * signal_j * nodes]
    #endif
    REAL keep = masked ? (REAL)mask[(long long)item * nodes + n] : 1;
    for (int o = 0; o < outputs; o++) {
      REAL total = 0;
      #pragma unroll
      for (int j = 0; j < SIGNALS; j++) total = total + weights[o * SIGNALS + j] * SIGNAL(j);
      to[(long long)o * answer_j * nodes] = masked ? total * keep : total;
    }
  }
}

// The products of ``count`` signals with LEVELS others, summed over the nodes of a block.
extern "C" __global__ void __launch_bounds__(THREADS)
streamed_dots(const REAL* __restrict__ signals, const REAL* __restrict__ levels, double* __restrict__ parts, int nodes,
              int items, int count) {
  __shared__ REAL sums[THREADS / 32][LEVELS];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long first = (long long)blockIdx.x * THREADS * ITEMS + threadIdx.x;
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    REAL held[LEVELS][ITEMS];
    #pragma unroll
    for (int m = 0; m < LEVELS; m++)
      #pragma unroll
      for (int i = 0; i < ITEMS; i++) {
        long long n = first + i * THREADS;
        held[m][i] = n < nodes ? levels[((long long)m * items + item) * nodes + n] : 0;
      }
    for (int a = 0; a < count; a++) {
      REAL total[LEVELS];
      #pragma unroll
      for (int m = 0; m < LEVELS; m++) total[m] = 0;
      #pragma unroll
      for (int i = 0; i < ITEMS; i++) {
        long long n = first + i * THREADS;
        REAL value = n < nodes ? signals[((long long)item * count + a) * nodes + n] : 0;
        #pragma unroll
        for (int m = 0; m < LEVELS; m++) total[m] = FMA(value, held[m][i], total[m]);
      }
      __syncthreads();
      #pragma unroll
      for (int m = 0; m < LEVELS; m++) {
        REAL sum = warp_sum(total[m]);
        if (lane == 0) sums[warp][m] = sum;
      }
      __syncthreads();
      for (int m = threadIdx.x; m < LEVELS; m += THREADS) {
        double sum = 0;
        for (int w = 0; w < THREADS / 32; w++) sum += sums[w][m];
        parts[(((long long)item * gridDim.x + blockIdx.x) * count + a) * LEVELS + m] = sum;
      }
    }
  }
}
"""
