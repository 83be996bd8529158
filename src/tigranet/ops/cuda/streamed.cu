// The statistics and the convolution on grids of any size: maps stay in global memory, and one launch is one step of a
// recurrence over all maps. Height and width are arguments, so one compiled kernel serves every size. A thread computes
// ROWS rows of one column, a block 32 columns and WARPS * ROWS rows. All values equal those of the reference to the
// bit: the kernels are compiled without fused multiply-adds and add in the same order. Sums over the nodes are computed
// per block and continue in double precision.
#include "common.cu"

struct Position {
  int height, width, row, column;
  int columns[3];           // to the left, of the node, to the right; 0 where there is no such column
  bool exists[3];
  REAL edge[3], middle[3];  // s = D^{-1/2} of these columns, in the first and last row and in the other rows
};

__device__ __forceinline__ Position position(const REAL* root, int height, int width) {
  Position at;
  at.height = height;
  at.width = width;
  at.row = (blockIdx.y * WARPS + threadIdx.y) * ROWS;
  at.column = blockIdx.x * 32 + threadIdx.x;
  #pragma unroll
  for (int i = 0; i < 3; i++) {
    int c = at.column + i - 1;
    if (WRAP_COLUMNS) c = c < 0 ? width - 1 : c == width ? 0 : c;
    at.exists[i] = at.column < width && c >= 0 && c < width;
    at.columns[i] = at.exists[i] ? c : 0;
    at.edge[i] = root[at.columns[i]];
    at.middle[i] = root[(height > 2 ? width : 0) + at.columns[i]];
  }
  return at;
}

__device__ __forceinline__ bool on_edge(const Position& at, int r) { return r == 0 || r == at.height - 1; }

// The number of row i of the thread, where -1 is the row above and ROWS the row below, and whether it exists.
__device__ __forceinline__ int row_number(const Position& at, int i, bool* exists) {
  int r = at.row + i;
  if (WRAP_ROWS) r = r < 0 ? at.height - 1 : r == at.height ? 0 : r;
  *exists = r >= 0 && r < at.height;
  return *exists ? r : 0;
}

// The values of the thread's nodes. Where there is no node another value is read: with a branch, every load would wait
// for the one before it.
__device__ __forceinline__ void read(const Position& at, const REAL* v, REAL* values) {
  bool exists;
  #pragma unroll
  for (int i = 0; i < ROWS; i++) values[i] = v[(long long)row_number(at, i, &exists) * at.width + at.columns[1]];
}

// (L - I) v = -s (sum over the neighbours of s v) at the thread's nodes.
__device__ __forceinline__ void shifted_laplacian(const Position& at, const REAL* v, REAL* result) {
  REAL p[ROWS + 2][3];
  bool exists;
  #pragma unroll
  for (int i = 0; i < ROWS + 2; i++)
    #pragma unroll
    for (int c = 0; c < 3; c++) p[i][c] = v[(long long)row_number(at, i - 1, &exists) * at.width + at.columns[c]];
  #pragma unroll
  for (int i = 0; i < ROWS + 2; i++) {
    int r = row_number(at, i - 1, &exists);
    #pragma unroll
    for (int c = 0; c < 3; c++) {
      REAL value = (on_edge(at, r) ? at.edge[c] : at.middle[c]) * p[i][c];
      p[i][c] = exists && at.exists[c] ? value : 0;
    }
  }
  #pragma unroll
  for (int i = 0; i < ROWS; i++) {
    REAL total = (p[i][1] + p[i + 2][1]) + (p[i + 1][0] + p[i + 1][2]);
    #if EIGHT
    REAL corners = (p[i][0] + p[i + 2][2]) + (p[i][2] + p[i + 2][0]);
    total = total + (UNIFORM ? corners : (REAL)(DIAGONAL) * corners);
    #endif
    result[i] = -(on_edge(at, at.row + i) ? at.edge[1] : at.middle[1]) * total;
  }
}

#define FOR_EACH_NODE \
  _Pragma("unroll") for (int i = 0; i < ROWS; i++) if (at.exists[1] && at.row + i < at.height)
#define NODE_INDEX ((long long)(at.row + i) * at.width + at.column)

__device__ __forceinline__ REAL block_sum(REAL x, REAL* sums) {
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x == 0) sums[threadIdx.y] = x;
  __syncthreads();
  REAL total = 0;
  #pragma unroll
  for (int w = 0; w < WARPS; w++) total += sums[w];
  return total;
}

// result = factor * (L - I) v + sign * previous, where ``result`` may be ``previous``. With ``with_moments``, also the
// mean of the magnitudes in each block and the sum of the squared deviations from it. With factor 0, only the moments
// of ``previous`` are computed.
extern "C" __global__ void __launch_bounds__(32 * WARPS, sizeof(REAL) == 4 ? 2 : 1)
streamed_step(const REAL* v, const REAL* previous, REAL* result, const REAL* __restrict__ root, double* parts,
              int height, int width, int items, int factor, int sign, int with_moments) {
  __shared__ REAL sums[WARPS];
  Position at = position(root, height, width);
  long long nodes = (long long)height * width;
  int rows_left = height - blockIdx.y * (WARPS * ROWS), columns_left = width - blockIdx.x * 32;
  int count = (rows_left < WARPS * ROWS ? rows_left : WARPS * ROWS) * (columns_left < 32 ? columns_left : 32);
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    REAL previous_values[ROWS], value[ROWS], mean = 0, squares = 0;
    read(at, previous + item * nodes, previous_values);
    if (factor) {
      shifted_laplacian(at, v + item * nodes, value);
      #pragma unroll
      for (int i = 0; i < ROWS; i++) value[i] = FMA((REAL)factor, value[i], sign ? sign * previous_values[i] : 0);
      FOR_EACH_NODE result[item * nodes + NODE_INDEX] = value[i];
    } else {
      #pragma unroll
      for (int i = 0; i < ROWS; i++) value[i] = previous_values[i];
    }
    if (!with_moments) continue;
    FOR_EACH_NODE mean += magnitude(value[i]) * ((REAL)1 / count);  // the plain sum could overflow
    mean = block_sum(mean, sums);
    FOR_EACH_NODE {
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

// In place: adjoint = factor * (L - I) b - adjoint + the gradient of mean and variance of order k at t.
extern "C" __global__ void __launch_bounds__(32 * WARPS, sizeof(REAL) == 4 ? 2 : 1)
streamed_adjoint_step(const REAL* b, REAL* adjoint, const REAL* __restrict__ t, const REAL* __restrict__ noise,
                      const REAL* __restrict__ phi, const REAL* __restrict__ g, const REAL* __restrict__ root,
                      int height, int width, int items, int factor, int k, int order) {
  Position at = position(root, height, width);
  long long nodes = (long long)height * width;
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    long long statistic = (item * (long long)(order + 1) + k) * 2;
    REAL mean = phi[statistic], by_mean = g[statistic] / (REAL)nodes;
    REAL by_variance = (g[statistic + 1] + g[statistic + 1]) / (REAL)nodes, threshold = noise[item];
    REAL values[ROWS], previous_values[ROWS], value[ROWS];
    read(at, t + item * nodes, values);
    read(at, adjoint + item * nodes, previous_values);
    shifted_laplacian(at, b + item * nodes, value);
    FOR_EACH_NODE {
      REAL size = magnitude(values[i]), local = by_mean + by_variance * (size - mean);
      local = values[i] < 0 ? -local : local;
      adjoint[item * nodes + NODE_INDEX] = FMA((REAL)factor, value[i], -previous_values[i])
                                         + (size > threshold ? local : 0);
    }
  }
}

// Weighted sums of SIGNALS signals, added in this order, times a mask if there is one. Signal j of an item has the
// index item * signal_item + j * signal_j in memory; results are indexed in the same way.
extern "C" __global__ void __launch_bounds__(THREADS)
streamed_combine(const REAL* __restrict__ signals, const REAL* __restrict__ weights,
                 const unsigned char* __restrict__ mask, REAL* __restrict__ results, int nodes, int items, int outputs,
                 int signal_item, int signal_j, int result_item, int result_j, int masked) {
  long long n = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (n >= nodes) return;
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    const REAL* first_signal = signals + (long long)item * signal_item * nodes + n;
    REAL* first_result = results + (long long)item * result_item * nodes + n;
    #if SIGNALS_IN_REGISTERS
    REAL signal[SIGNALS];
    #pragma unroll
    for (int j = 0; j < SIGNALS; j++) signal[j] = first_signal[(long long)j * signal_j * nodes];
    #define SIGNAL(j) signal[j]
    #else
    #define SIGNAL(j) first_signal[(long long)(j) * signal_j * nodes]
    #endif
    REAL factor = masked ? (REAL)mask[(long long)item * nodes + n] : 1;
    for (int o = 0; o < outputs; o++) {
      REAL total = 0;
      #pragma unroll
      for (int j = 0; j < SIGNALS; j++) total = total + weights[o * SIGNALS + j] * SIGNAL(j);
      first_result[(long long)o * result_j * nodes] = masked ? total * factor : total;
    }
  }
}

// The scalar products of ``count`` signals with LEVELS others, over the nodes of a block.
extern "C" __global__ void __launch_bounds__(THREADS)
streamed_dots(const REAL* __restrict__ signals, const REAL* __restrict__ levels, double* __restrict__ parts, int nodes,
              int items, int count) {
  __shared__ REAL sums[THREADS / 32][LEVELS];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long first = (long long)blockIdx.x * THREADS * ITEMS + threadIdx.x;
  for (int item = blockIdx.z; item < items; item += gridDim.z) {
    REAL level[LEVELS][ITEMS];
    #pragma unroll
    for (int m = 0; m < LEVELS; m++)
      #pragma unroll
      for (int i = 0; i < ITEMS; i++) {
        long long n = first + i * THREADS;
        level[m][i] = n < nodes ? levels[((long long)m * items + item) * nodes + n] : 0;
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
        for (int m = 0; m < LEVELS; m++) total[m] = FMA(value, level[m][i], total[m]);
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
