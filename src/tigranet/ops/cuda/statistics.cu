// Mean and variance over the nodes of |T_k(L - I) z| for each map and each order k = 0 .. ORDER, and their gradient.
//
// A map stays in registers. A lane holds COLUMNS columns of ROWS rows. The lanes next to one another form a band of
// ROWS rows, a warp holds BANDS bands, and a map takes WARPS warps (register_layout.py chooses these numbers). Values
// of neighbouring lanes come from shuffles, those of neighbouring warps from shared memory. The map is read once, and
// 2 (ORDER + 1) numbers are written.
//
// The recurrence runs on p_k = s t_k with s = D^{-1/2}, where a step is one sum and two multiply-adds. With equal edge
// weights the sum over the neighbours is the sum of three row sums minus the node itself.
//
// The backward kernel runs the Chebyshev recurrence in reverse, t_{k-2} = 2 (L - I) t_{k-1} - t_k, next to its adjoint.
// It stores only two bits per node and order: the sign of t_k, and whether |t_k| exceeds rounding noise. These bits
// come from a forward recurrence that rounds as the reference does; otherwise they would differ from the reference.
//
// Lanes and rows without a node hold zeros and have weight 0. Once a map contains a NaN, they may contain one too.
//
// MAPS is the number of maps per block, BLOCKS the number of blocks per multiprocessor for which the compiler has to
// leave registers.
#include "common.cu"

#define LANES_PER_ROW ((W + COLUMNS - 1) / COLUMNS)
#define ALL_BANDS (BANDS * WARPS)
#define LAST_ROW (H - 1 - (ALL_BANDS - 1) * ROWS)   // last row of the last band
#define LAST_COLUMN ((W - 1) % COLUMNS)             // last column of the last lane in a row
#define NO_FREE_LANE (LANES_PER_ROW * BANDS == 32)  // otherwise lane 31 holds the zeros outside the free border

// Where a lane is on the map, and the constants of its nodes in the first and last row (edge) and in the other rows.
struct Position {
  int lane, warp, halo_half, left, right, up, down;
  int first_node;  // 0 for lanes without nodes
  bool in_first_band, in_last_band, in_last_lane;
  bool inside[COLUMNS];
  REAL root_edge[COLUMNS], root_middle[COLUMNS];        // s = D^{-1/2}
  REAL factor_edge[COLUMNS], factor_middle[COLUMNS];    // -2 s^2
  REAL self_edge[COLUMNS], self_middle[COLUMNS];        // weight of a node in its own step
  REAL inverse_edge[COLUMNS], inverse_middle[COLUMNS];  // 1 / s
};

// The rounding error of -2 s^2 grows with the square of the order: 144 times in order 12 of a smooth map. On a smooth
// map the neighbours add up to 1 / s^2 times the node, so a small weight of the node itself corrects the error. Where
// the sum includes the node, this weight also subtracts it again.
__device__ __forceinline__ REAL self_weight(REAL s, REAL factor) {
  REAL rest = FMA(-2 * s, s, -factor) / (s * s);
  return EIGHT && UNIFORM ? rest - factor : rest;
}

__device__ __forceinline__ Position position(const REAL* root) {
  Position pos;
  pos.lane = threadIdx.x;
  pos.halo_half = 0;
  pos.warp = WARPS == 1 ? 0 : threadIdx.y;
  int band = pos.lane / LANES_PER_ROW, x = pos.lane % LANES_PER_ROW;
  bool used = band < BANDS;
  pos.in_first_band = pos.warp == 0 && band == 0;
  pos.in_last_band = pos.warp == WARPS - 1 && band == BANDS - 1;
  pos.in_last_lane = x == LANES_PER_ROW - 1;
  pos.first_node = used ? (pos.warp * BANDS + band) * ROWS * W + x * COLUMNS : 0;
  pos.left = x ? pos.lane - 1 : WRAP_COLUMNS ? pos.lane + LANES_PER_ROW - 1 : 31;
  pos.right = !pos.in_last_lane ? pos.lane + 1 : WRAP_COLUMNS ? pos.lane - (LANES_PER_ROW - 1) : 31;
  pos.up = !used ? pos.lane : band ? pos.lane - LANES_PER_ROW : pos.lane + (BANDS - 1) * LANES_PER_ROW;
  pos.down = !used ? pos.lane : band < BANDS - 1 ? pos.lane + LANES_PER_ROW : pos.lane - (BANDS - 1) * LANES_PER_ROW;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    int column = x * COLUMNS + c;
    pos.inside[c] = used && column < W;
    pos.root_edge[c] = pos.inside[c] ? root[column] : 0;
    pos.root_middle[c] = pos.inside[c] ? root[(H > 2 ? W : 0) + column] : 0;
    pos.factor_edge[c] = -2 * pos.root_edge[c] * pos.root_edge[c];
    pos.factor_middle[c] = -2 * pos.root_middle[c] * pos.root_middle[c];
    pos.self_edge[c] = pos.inside[c] ? self_weight(pos.root_edge[c], pos.factor_edge[c]) : 0;
    pos.self_middle[c] = pos.inside[c] ? self_weight(pos.root_middle[c], pos.factor_middle[c]) : 0;
    pos.inverse_edge[c] = pos.inside[c] ? 1 / pos.root_edge[c] : 0;
    pos.inverse_middle[c] = pos.inside[c] ? 1 / pos.root_middle[c] : 0;
  }
  return pos;
}

__device__ __forceinline__ bool on_edge(const Position& pos, int r) {
  return (r == 0 && pos.in_first_band) || (r == LAST_ROW && pos.in_last_band);
}
__device__ __forceinline__ bool row_exists(const Position& pos, int r) { return r <= LAST_ROW || !pos.in_last_band; }
__device__ __forceinline__ REAL root_at(const Position& pos, int r, int c) {
  return on_edge(pos, r) ? pos.root_edge[c] : row_exists(pos, r) ? pos.root_middle[c] : 0;
}
// The left and right neighbours of a row.
__device__ __forceinline__ void neighbours_in_row(const Position& pos, const REAL* row, REAL* left, REAL* right) {
  REAL l = __shfl_sync(FULL_WARP, row[COLUMNS - 1], pos.left), r = __shfl_sync(FULL_WARP, row[0], pos.right);
  #if WRAP_COLUMNS
  if (LAST_COLUMN != COLUMNS - 1) {
    REAL last = __shfl_sync(FULL_WARP, row[LAST_COLUMN], pos.left);
    if (pos.lane % LANES_PER_ROW == 0) l = last;
  }
  #else
  if (NO_FREE_LANE) {
    if (pos.lane % LANES_PER_ROW == 0) l = 0;
    if (pos.in_last_lane) r = 0;
  }
  #endif
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    left[c] = c ? row[c - 1] : l;
    right[c] = c < COLUMNS - 1 ? row[c + 1] : r;
    #if WRAP_COLUMNS
    if (LAST_COLUMN != COLUMNS - 1 && c == LAST_COLUMN && pos.in_last_lane) right[c] = r;
    #endif
  }
}

// The row above ``first``, the first row of this band, and the row below ``last``, its last row.
__device__ __forceinline__ void rows_beyond_band(Position& pos, const REAL* first, const REAL* last, REAL* halo,
                                                 REAL* above, REAL* below) {
  #if WARPS > 1
  bool upper = pos.lane < LANES_PER_ROW, lower = pos.lane / LANES_PER_ROW == BANDS - 1;
  int x = BANDS == 1 ? pos.lane : pos.lane % LANES_PER_ROW;
  pos.halo_half ^= 1;  // the two halves alternate, so that one barrier per step is enough
  halo += pos.halo_half * WARPS * 2 * COLUMNS * 32;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    if (BANDS == 1 || upper) halo[((pos.warp * 2) * COLUMNS + c) * 32 + x] = first[c];
    if (BANDS == 1 || lower) halo[((pos.warp * 2 + 1) * COLUMNS + c) * 32 + x] = last[c];
  }
  __syncthreads();
  int before = pos.warp ? pos.warp - 1 : WARPS - 1, after = pos.warp < WARPS - 1 ? pos.warp + 1 : 0;
  #endif
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    above[c] = BANDS > 1 ? __shfl_sync(FULL_WARP, last[c], pos.up) : last[c];
    below[c] = BANDS > 1 ? __shfl_sync(FULL_WARP, first[c], pos.down) : first[c];
    #if WARPS > 1
    REAL from_before = halo[((before * 2 + 1) * COLUMNS + c) * 32 + x];
    REAL from_after = halo[(after * 2 * COLUMNS + c) * 32 + x];
    above[c] = BANDS == 1 || upper ? from_before : above[c];
    below[c] = BANDS == 1 || lower ? from_after : below[c];
    #endif
    above[c] = !WRAP_ROWS && pos.in_first_band ? 0 : above[c];
    below[c] = !WRAP_ROWS && pos.in_last_band ? 0 : below[c];
  }
}

// In place: before = factor * (-s * (sum over the neighbours of s v)) - before, rounded as the reference rounds.
__device__ __forceinline__ void reference_step(Position& pos, REAL (*v)[COLUMNS], REAL (*before)[COLUMNS],
                                               REAL factor, REAL* halo) {
  #define P(r, c) (root_at(pos, r, c) * v[r][c])
  REAL above[COLUMNS], here[COLUMNS], below_band[COLUMNS], last[COLUMNS];
  REAL above_left[COLUMNS], above_right[COLUMNS], left[COLUMNS], right[COLUMNS];
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    here[c] = P(0, c);
    last[c] = LAST_ROW == ROWS - 1 || !pos.in_last_band ? P(ROWS - 1, c) : P(LAST_ROW, c);
  }
  rows_beyond_band(pos, here, last, halo, above, below_band);
  neighbours_in_row(pos, above, above_left, above_right);
  neighbours_in_row(pos, here, left, right);
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    REAL below[COLUMNS], below_left[COLUMNS], below_right[COLUMNS];
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      below[c] = r == ROWS - 1 ? below_band[c] : P(r + 1 < ROWS ? r + 1 : r, c);
      if (WRAP_ROWS && r == LAST_ROW && r < ROWS - 1 && pos.in_last_band) below[c] = below_band[c];
    }
    neighbours_in_row(pos, below, below_left, below_right);
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL total = (above[c] + below[c]) + (left[c] + right[c]);
      #if EIGHT
      REAL corners = (above_left[c] + below_right[c]) + (above_right[c] + below_left[c]);
      total = total + (UNIFORM ? corners : (REAL)(DIAGONAL) * corners);
      #endif
      before[r][c] = FMA(factor, -root_at(pos, r, c) * total, -before[r][c]);
      above[c] = here[c]; above_left[c] = left[c]; above_right[c] = right[c];
      here[c] = below[c]; left[c] = below_left[c]; right[c] = below_right[c];
    }
  }
  #undef P
}

// For each node of a row: what the row adds to its own sum (``middle``) and to the sums above and below (``outer``).
// With equal edge weights both are the sum over the node and its two neighbours in the row.
__device__ __forceinline__ void row_sums(const Position& pos, const REAL* row, REAL* middle, REAL* outer) {
  REAL left[COLUMNS], right[COLUMNS];
  neighbours_in_row(pos, row, left, right);
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    #if EIGHT && UNIFORM
    bool paired = !WRAP_COLUMNS || LAST_COLUMN == COLUMNS - 1;
    if (!paired) middle[c] = (left[c] + row[c]) + right[c];
    else if (c % 2) middle[c] = (row[c - 1] + row[c]) + right[c];
    else middle[c] = c < COLUMNS - 1 ? left[c] + (row[c] + row[c + 1]) : (left[c] + row[c]) + right[c];
    outer[c] = middle[c];
    #else
    middle[c] = left[c] + right[c];
    outer[c] = EIGHT ? FMA((REAL)(DIAGONAL), middle[c], row[c]) : row[c];
    #endif
  }
}

// In place: before = -2 s^2 (sum over the neighbours of v) - before, for v = s t.
__device__ __forceinline__ void step(Position& pos, REAL (*v)[COLUMNS], REAL (*before)[COLUMNS], REAL* halo) {
  REAL row_above_band[COLUMNS], row_below_band[COLUMNS], last[COLUMNS];
  REAL middle[3][COLUMNS], outer[3][COLUMNS];  // of rows r - 1, r, r + 1, at index (row + 1) % 3
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    last[c] = LAST_ROW == ROWS - 1 || !pos.in_last_band ? v[ROWS - 1][c] : v[LAST_ROW][c];
  }
  rows_beyond_band(pos, v[0], last, halo, row_above_band, row_below_band);
  row_sums(pos, row_above_band, middle[0], outer[0]);
  row_sums(pos, v[0], middle[1], outer[1]);
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    REAL below[COLUMNS];
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      below[c] = r == ROWS - 1 ? row_below_band[c] : v[r + 1 < ROWS ? r + 1 : r][c];
      if (WRAP_ROWS && r == LAST_ROW && r < ROWS - 1 && pos.in_last_band) below[c] = row_below_band[c];
    }
    row_sums(pos, below, middle[(r + 2) % 3], outer[(r + 2) % 3]);
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL upper = outer[r % 3][c], own = middle[(r + 1) % 3][c], lower = outer[(r + 2) % 3][c];
      REAL total = r % 2 ? (upper + own) + lower : upper + (own + lower);  // the compiler adds each pair of rows once
      REAL factor = on_edge(pos, r) ? pos.factor_edge[c] : row_exists(pos, r) ? pos.factor_middle[c] : 0;
      REAL self = on_edge(pos, r) ? pos.self_edge[c] : pos.self_middle[c];
      before[r][c] = FMA(factor, total, FMA(self, v[r][c], -before[r][c]));
    }
  }
}

// The sum over the map, in every lane.
__device__ __forceinline__ REAL map_sum(const Position& pos, REAL x, REAL* scratch) {
  x = warp_sum(x);
  #if WARPS > 1
  __syncthreads();
  if (pos.lane == 0) scratch[pos.warp] = x;
  __syncthreads();
  x = pos.lane < WARPS ? scratch[pos.lane] : 0;
  x = warp_sum(x);
  #endif
  return x;
}

// Reads a map times its mask. Lanes without a node read another node: with a branch, every load would wait for the one
// before it.
template <typename T>
__device__ __forceinline__ T read(const Position& pos, const T* map, int r, int c) {
  const T* from = r <= LAST_ROW || !pos.in_last_band ? map + pos.first_node : map;
  return from[r * W + (c > LAST_COLUMN && pos.in_last_lane ? LAST_COLUMN : c)];
}
__device__ __forceinline__ void load(const Position& pos, const REAL* z, const unsigned char* active, long long item,
                                     REAL (*t)[COLUMNS]) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] = read(pos, z + item * N, r, c);
  #if MASKED
  unsigned char mask[ROWS][COLUMNS];
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) mask[r][c] = read(pos, active + item * N, r, c);
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] *= (REAL)mask[r][c];
  #endif
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] = pos.inside[c] && row_exists(pos, r) ? t[r][c] : 0;
}

__device__ __forceinline__ void multiply_by_root(const Position& pos, REAL (*t)[COLUMNS]) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] *= root_at(pos, r, c);
}

__device__ __forceinline__ void multiply(REAL (*t)[COLUMNS], REAL factor) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] *= factor;
}

__device__ __forceinline__ void clear(REAL (*t)[COLUMNS]) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] = 0;
}

#define DECLARE_SHARED \
  __shared__ REAL shared_halo[WARPS > 1 ? WARPS * 4 * COLUMNS * 32 : 1], shared_sums[32]; \
  REAL *halo = shared_halo, *sums = shared_sums; \
  long long item = (long long)blockIdx.x * MAPS + (WARPS == 1 ? threadIdx.y : 0); \
  if (item >= items) return;  // with WARPS > 1 there is one map per block, so that whole blocks return

#if !BACKWARD
// The sum and the sum of squares of |t| = |p| / s in this lane, both divided by the number of nodes of the warp.
__device__ __forceinline__ void lane_moments(const Position& pos, REAL (*p)[COLUMNS], bool scaled, REAL by_count,
                                             REAL* total, REAL* squares) {
  *total = *squares = 0;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    REAL by_edge = scaled ? pos.inverse_edge[c] : (REAL)1, by_middle = scaled ? pos.inverse_middle[c] : (REAL)1;
    REAL sum = 0, square = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; r++)
      if (r != 0 && r != LAST_ROW) {
        sum += magnitude(p[r][c]);
        square = FMA(p[r][c], p[r][c], square);
      }
    sum *= by_middle;
    square *= by_middle * by_middle;
    REAL t = magnitude(p[0][c]) * (on_edge(pos, 0) ? by_edge : by_middle);
    sum += t;
    square = FMA(t, t, square);
    if (LAST_ROW != 0) {
      t = magnitude(p[LAST_ROW][c]) * (on_edge(pos, LAST_ROW) ? by_edge : by_middle);
      sum += t;
      square = FMA(t, t, square);
    }
    *total = FMA(sum, by_count, *total);
    *squares = FMA(square, by_count, *squares);
  }
}

// The sum of the squared deviations of |t| from the mean, divided by the number of nodes of the warp.
__device__ __forceinline__ REAL squared_deviations(const Position& pos, REAL (*p)[COLUMNS], bool scaled,
                                                   REAL by_count, REAL mean) {
  REAL squares = 0;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    REAL by_edge = scaled ? pos.inverse_edge[c] : (REAL)1, by_middle = scaled ? pos.inverse_middle[c] : (REAL)1;
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
      REAL d = FMA(magnitude(p[r][c]), on_edge(pos, r) ? by_edge : by_middle, -mean);
      d = pos.inside[c] && row_exists(pos, r) ? d : 0;
      squares = FMA(d, d, squares);
    }
  }
  return warp_sum(squares) * by_count;
}

// Mean and variance of |t| = |p| / s for order k and, with ``next``, for order k + 1 at the same time. With several
// warps, each warp stores its own moments, and merge() combines them at the end. The variance is the mean of the
// squares minus the square of the mean, except where most of that difference cancels.
__device__ __forceinline__ void moments(const Position& pos, REAL (*p)[COLUMNS], REAL (*q)[COLUMNS], bool scaled, int k,
                                        bool next, REAL* parts, REAL* phi) {
  REAL by_count = (REAL)1 / (W * (WARPS == 1 ? H : pos.warp == WARPS - 1 ? H - (WARPS - 1) * BANDS * ROWS
                                                                        : BANDS * ROWS));
  REAL sums[4];
  lane_moments(pos, p, scaled, by_count, &sums[0], &sums[1]);
  if (next) lane_moments(pos, q, scaled, by_count, &sums[2], &sums[3]);
  else sums[2] = sums[3] = 0;
  // four sums by six shuffles: lanes 0 to 7 get the first sum, 8 to 15 the second, ...
  bool upper = pos.lane & 16, odd = pos.lane & 8;
  REAL one = upper ? sums[2] : sums[0], two = upper ? sums[3] : sums[1];
  one += __shfl_xor_sync(FULL_WARP, upper ? sums[0] : sums[2], 16);
  two += __shfl_xor_sync(FULL_WARP, upper ? sums[1] : sums[3], 16);
  REAL x = odd ? two : one;
  x += __shfl_xor_sync(FULL_WARP, odd ? one : two, 8);
  #pragma unroll
  for (int d = 4; d; d >>= 1) x += __shfl_xor_sync(FULL_WARP, x, d);
  REAL mean = __shfl_xor_sync(FULL_WARP, x, 8);
  REAL variance = FMA(-mean, mean, x);
  unsigned cancelled = __ballot_sync(FULL_WARP, odd && !(variance * 8 >= x));
  if (cancelled & 0x0000ff00u) {
    REAL squares = squared_deviations(pos, p, scaled, by_count, __shfl_sync(FULL_WARP, x, 0));
    if (!upper) variance = squares;
  }
  if (next && cancelled & 0xff000000u) {
    REAL squares = squared_deviations(pos, q, scaled, by_count, __shfl_sync(FULL_WARP, x, 16));
    if (upper) variance = squares;
  }
  if (pos.lane % 8 == 0 && (next || !upper)) {
    int order = k + upper;
    REAL value = odd ? variance : x;
    if (WARPS == 1) phi[2 * order + odd] = value;
    else parts[(order * WARPS + pos.warp) * 2 + odd] = value;
  }
}

// Combines the moments of the warps by Chan's formula, one thread per order.
__device__ __forceinline__ void merge(const REAL* parts, REAL* phi) {
  __syncthreads();
  for (int k = threadIdx.y * 32 + threadIdx.x; k <= ORDER; k += 32 * WARPS) {
    REAL mean = 0, variance = 0;
    for (int w = 0; w < WARPS; w++) {
      int rows_before = w * BANDS * ROWS, count = w == WARPS - 1 ? H - rows_before : BANDS * ROWS;
      REAL step = parts[(k * WARPS + w) * 2] - mean, share = (REAL)count / (rows_before + count);
      mean = FMA(step, share, mean);
      variance += (parts[(k * WARPS + w) * 2 + 1] - variance + step * step * (1 - share)) * share;
    }
    phi[2 * k] = mean;
    phi[2 * k + 1] = variance;
  }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS * MAPS, BLOCKS)
statistics(const REAL* __restrict__ z, const unsigned char* __restrict__ active, const REAL* __restrict__ root,
           REAL* __restrict__ phi, int items) {
  DECLARE_SHARED
  __shared__ REAL parts[WARPS > 1 ? (ORDER + 1) * WARPS * 2 : 1];
  Position pos = position(root);
  REAL a[ROWS][COLUMNS], b[ROWS][COLUMNS];
  load(pos, z, active, item, a);
  phi += item * 2 * (ORDER + 1);
  moments(pos, a, a, false, 0, false, parts, phi);
  multiply_by_root(pos, a);
  clear(b);
  #pragma unroll 1
  for (int k = 1; k <= ORDER; k += 2) {
    step(pos, a, b, halo);
    if (k == 1) multiply(b, (REAL)0.5);  // p_1 = -s^2 (sum)
    if (k < ORDER) step(pos, b, a, halo);
    moments(pos, b, a, true, k, k < ORDER, parts, phi);
  }
  #if WARPS > 1
  merge(parts, phi);
  #endif
}

#else
#if ORDER <= 15
typedef unsigned Gates;
#else
typedef unsigned long long Gates;
#endif

__device__ __forceinline__ unsigned top_bits(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned top_bits(double x) { return (unsigned)__double2hiint(x); }
__device__ __forceinline__ float flip_sign(float x, unsigned sign) {
  return __uint_as_float(__float_as_uint(x) ^ sign);
}
__device__ __forceinline__ double flip_sign(double x, unsigned sign) {
  return __hiloint2double(__double2hiint(x) ^ (int)sign, __double2loint(x));
}

// Stores two bits per order and node, the last order lowest: the sign of t, and whether |t| exceeds rounding noise.
__device__ __forceinline__ void record_gates(REAL (*t)[COLUMNS], REAL noise, Gates (*gates)[COLUMNS]) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      unsigned sign = top_bits(t[r][c]), above_noise = top_bits(noise - magnitude(t[r][c]));  // the sign of a NaN is 0
      #if ORDER <= 15
      gates[r][c] = __funnelshift_l(above_noise, __funnelshift_l(sign, gates[r][c], 1), 1);
      #else
      gates[r][c] = gates[r][c] << 2 | sign >> 31 << 1 | above_noise >> 31;
      #endif
    }
}

// q = q + s * (gradient of mean and variance by t), where t = p / s.
__device__ __forceinline__ void add_local_gradient(const Position& pos, REAL (*p)[COLUMNS], bool scaled, int k,
                                                   Gates (*gates)[COLUMNS], const REAL* phi, const REAL* g,
                                                   REAL (*q)[COLUMNS]) {
  REAL mean = phi[2 * k], a = g[2 * k] * (REAL)(1.0 / N), b = g[2 * k + 1] * (REAL)(2.0 / N);
  REAL by_edge[COLUMNS], by_middle[COLUMNS];
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    by_edge[c] = scaled ? pos.inverse_edge[c] : (REAL)1;
    by_middle[c] = scaled ? pos.inverse_middle[c] : (REAL)1;
  }
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL above = FMA(magnitude(p[r][c]), on_edge(pos, r) ? by_edge[c] : by_middle[c], -mean);
      unsigned gate = (unsigned)gates[r][c];
      gates[r][c] >>= 2;
      REAL local = flip_sign(FMA(b, above, a), gate << 30 & 0x80000000u);
      if (gate & 1) q[r][c] = FMA(local, root_at(pos, r, c), q[r][c]);
    }
}

// Order k of the backward pass: q_k replaces ``before``, then p_{k-2} replaces ``p``.
__device__ __forceinline__ void backward_level(Position& pos, int k, REAL (*p)[COLUMNS], REAL (*lower)[COLUMNS],
                                               REAL (*q)[COLUMNS], REAL (*before)[COLUMNS], Gates (*gates)[COLUMNS],
                                               const REAL* phi, const REAL* g, REAL* halo) {
  if (k < ORDER) step(pos, q, before, halo);
  add_local_gradient(pos, p, true, k, gates, phi, g, before);
  if (k > 2) step(pos, lower, p, halo);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS * MAPS, BLOCKS)
statistics_backward(const REAL* __restrict__ z, const unsigned char* __restrict__ active,
                    const REAL* __restrict__ root, const REAL* __restrict__ phi, const REAL* __restrict__ g,
                    REAL* __restrict__ g_z, double rounding, int items) {
  DECLARE_SHARED
  Position pos = position(root);
  phi += item * 2 * (ORDER + 1);
  g += item * 2 * (ORDER + 1);
  REAL a[ROWS][COLUMNS], b[ROWS][COLUMNS], q[ROWS][COLUMNS], q_next[ROWS][COLUMNS];
  load(pos, z, active, item, a);
  REAL largest = 0, not_finite = 0;
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL size = magnitude(a[r][c]);
      largest = size > largest ? size : largest;
      not_finite += a[r][c] * 0;
    }
  #pragma unroll
  for (int d = 16; d; d >>= 1) {
    REAL other = __shfl_xor_sync(FULL_WARP, largest, d);
    largest = other > largest ? other : largest;
  }
  #if WARPS > 1
  if (pos.lane == 0) sums[pos.warp] = largest;
  __syncthreads();
  #pragma unroll
  for (int w = 0; w < WARPS; w++) largest = sums[w] > largest ? sums[w] : largest;
  #endif
  not_finite = map_sum(pos, not_finite, sums);
  REAL noise = (REAL)rounding * largest + not_finite;  // with a NaN, nothing exceeds the noise
  Gates gates[ROWS][COLUMNS];
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) gates[r][c] = 0;
  record_gates(a, noise, gates);
  clear(b);
  // forward to t_ORDER, which is in a if ORDER is even, else in b
  #pragma unroll 1
  for (int k = 1; k <= ORDER; k += 2) {
    reference_step(pos, a, b, k == 1 ? 1 : 2, halo);
    record_gates(b, noise, gates);
    if (k < ORDER) {
      reference_step(pos, b, a, 2, halo);
      record_gates(a, noise, gates);
    }
  }
  multiply_by_root(pos, a);
  multiply_by_root(pos, b);
  clear(q);
  clear(q_next);
  // backward: for odd k, q_{k+1} is in q and q_{k+2} in q_next
  #pragma unroll 1
  for (int k = ORDER; k >= 1; k--) {
    if (k % 2) backward_level(pos, k, b, a, q, q_next, gates, phi, g, halo);
    else backward_level(pos, k, a, b, q_next, q, gates, phi, g, halo);
  }
  // q_0 = s c_0 + (-s^2 A q_1) - q_2, where c_0 is the gradient by t_0 and q_1 is in q_next
  multiply(q_next, (REAL)0.5);
  step(pos, q_next, q, halo);
  load(pos, z, active, item, a);  // t_0 itself
  add_local_gradient(pos, a, false, 0, gates, phi, g, q);
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++)
      if (pos.inside[c] && row_exists(pos, r)) {
        long long n = item * N + pos.first_node + r * W + c;
        REAL value = q[r][c] / root_at(pos, r, c);
        #if MASKED
        value *= (REAL)active[n];
        #endif
        g_z[n] = value;
      }
}
#endif
