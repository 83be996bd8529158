"""The three operations in CUDA C++, compiled when first used for the size of the grid: every loop bound is a constant.

The statistics hold a map in registers: a lane has ``COLUMNS`` columns of ``ROWS`` rows, the lanes beside one another
make a band of rows, and a map is ``GROUPS`` bands of each of ``WARPS`` warps. What a lane needs of its neighbours comes
by shuffles, of the warps above and below through shared memory. The map is read once and 2 (order + 1) numbers are
written. The recursion runs in :math:`p_k = D^{-1/2} t_k`, in which a step is one sum and two multiply-adds. With equal
weights the sum is that of three sums of three, less the node itself. Going back, the Chebyshev recursion is run in
reverse, :math:`t_{k-2} = 2 \\tilde L t_{k-1} - t_k`, beside its adjoint, so that nothing is stored but two bits a node
and order: whether t is more than rounding, and its sign. These are taken on the way there, rounded as the plain version
rounds, or they would differ. Lanes and rows without a node hold zeros and weigh nothing; once a map has a NaN they may
have one too.

The convolution has a block an image, its powers in registers, one power at a time in shared memory. It is compiled
without fused multiply-adds and adds in the order of the plain version: the pooling sees the same bits.

The pooling has one or more warps a map and finds the J-th value bit by bit.

``MAPS`` is how many a block has, ``BLOCKS`` how many of these a multiprocessor, so that registers are not spent on
fewer; ``THREADS`` and ``ITEMS`` (nodes a thread) are the convolution's. ``streamed_source.py`` has what fits in neither
registers nor shared memory.
"""

COMMON = r"""
#define N (H * W)
#define ALL 0xffffffffu

__device__ __forceinline__ float FMA(float x, float y, float z) { return __fmaf_rn(x, y, z); }
__device__ __forceinline__ double FMA(double x, double y, double z) { return __fma_rn(x, y, z); }
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }

template <typename T> __device__ __forceinline__ T warp_sum(T x) {
  #pragma unroll
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(ALL, x, d);
  return x;
}
"""

STATISTICS = r"""
#define ACROSS ((W + COLUMNS - 1) / COLUMNS)  // lanes beside one another
#define BANDS (GROUPS * WARPS)
#define LAST_ROW (H - 1 - (BANDS - 1) * ROWS)  // of the last band
#define LAST_COLUMN ((W - 1) % COLUMNS)        // of the last lane
#define FULL (ACROSS * GROUPS == 32)           // else lane 31 holds no nodes, but zeros: what is beyond the free border

struct Place {
  int lane, warp, turn, left, right, up, down;
  int start;              // its first node; of lanes that have none, that of the map
  bool top, bottom, far;  // in the first band, in the last one, in the last lane across
  bool inside[COLUMNS];
  REAL edge[COLUMNS], middle[COLUMNS];              // s = D^{-1/2} in the first and last row, and in the others
  REAL by_edge[COLUMNS], by_middle[COLUMNS];        // -2 s^2
  REAL own_edge[COLUMNS], own_middle[COLUMNS];      // what a node weighs in its own step
  REAL over_edge[COLUMNS], over_middle[COLUMNS];    // 1 / s
};

// -2 s^2 has a rounding error, which a smooth map would show 144 times in its twelfth order. There the neighbours add
// up to 1 / s^2 times the node, so that the node itself can make up for it. Where the sum is over the node too, it is
// also taken out again.
__device__ __forceinline__ REAL own(REAL s, REAL by) {
  REAL rest = FMA(-2 * s, s, -by) / (s * s);
  return EIGHT && UNIFORM ? rest - by : rest;
}

__device__ __forceinline__ Place place(const REAL* root) {
  Place at;
  at.lane = threadIdx.x;
  at.turn = 0;
  at.warp = WARPS == 1 ? 0 : threadIdx.y;
  int group = at.lane / ACROSS, x = at.lane % ACROSS;
  bool used = group < GROUPS;
  at.top = at.warp == 0 && group == 0;
  at.bottom = at.warp == WARPS - 1 && group == GROUPS - 1;
  at.far = x == ACROSS - 1;
  at.start = used ? (at.warp * GROUPS + group) * ROWS * W + x * COLUMNS : 0;
  at.left = x ? at.lane - 1 : WRAP_COLUMNS ? at.lane + ACROSS - 1 : 31;
  at.right = !at.far ? at.lane + 1 : WRAP_COLUMNS ? at.lane - (ACROSS - 1) : 31;
  at.up = !used ? at.lane : group ? at.lane - ACROSS : at.lane + (GROUPS - 1) * ACROSS;
  at.down = !used ? at.lane : group < GROUPS - 1 ? at.lane + ACROSS : at.lane - (GROUPS - 1) * ACROSS;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    int column = x * COLUMNS + c;
    at.inside[c] = used && column < W;
    at.edge[c] = at.inside[c] ? root[column] : 0;
    at.middle[c] = at.inside[c] ? root[(H > 2 ? W : 0) + column] : 0;
    at.by_edge[c] = -2 * at.edge[c] * at.edge[c];
    at.by_middle[c] = -2 * at.middle[c] * at.middle[c];
    at.own_edge[c] = at.inside[c] ? own(at.edge[c], at.by_edge[c]) : 0;
    at.own_middle[c] = at.inside[c] ? own(at.middle[c], at.by_middle[c]) : 0;
    at.over_edge[c] = at.inside[c] ? 1 / at.edge[c] : 0;
    at.over_middle[c] = at.inside[c] ? 1 / at.middle[c] : 0;
  }
  return at;
}

__device__ __forceinline__ bool edge(const Place& at, int r) {
  return (r == 0 && at.top) || (r == LAST_ROW && at.bottom);
}
__device__ __forceinline__ bool within(const Place& at, int r) { return r <= LAST_ROW || !at.bottom; }
__device__ __forceinline__ REAL root_at(const Place& at, int r, int c) {
  return edge(at, r) ? at.edge[c] : within(at, r) ? at.middle[c] : 0;
}
// the neighbours of a row to the left and right
__device__ __forceinline__ void beside(const Place& at, const REAL* row, REAL* left, REAL* right) {
  REAL l = __shfl_sync(ALL, row[COLUMNS - 1], at.left), r = __shfl_sync(ALL, row[0], at.right);
  #if WRAP_COLUMNS
  if (LAST_COLUMN != COLUMNS - 1) {
    REAL last = __shfl_sync(ALL, row[LAST_COLUMN], at.left);
    if (at.lane % ACROSS == 0) l = last;
  }
  #else
  if (FULL) {
    if (at.lane % ACROSS == 0) l = 0;
    if (at.far) r = 0;
  }
  #endif
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    left[c] = c ? row[c - 1] : l;
    right[c] = c < COLUMNS - 1 ? row[c + 1] : r;
    #if WRAP_COLUMNS
    if (LAST_COLUMN != COLUMNS - 1 && c == LAST_COLUMN && at.far) right[c] = r;
    #endif
  }
}

// the rows above the first and below the last one of this band, of which ``first`` and ``last`` are those
__device__ __forceinline__ void beyond(Place& at, const REAL* first, const REAL* last, REAL* halo, REAL* above,
                                       REAL* below) {
  #if WARPS > 1
  bool upper = at.lane < ACROSS, lower = at.lane / ACROSS == GROUPS - 1;
  int x = GROUPS == 1 ? at.lane : at.lane % ACROSS;
  at.turn ^= 1;  // two halves in turn, so that one barrier a step is enough
  halo += at.turn * WARPS * 2 * COLUMNS * 32;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    if (GROUPS == 1 || upper) halo[((at.warp * 2) * COLUMNS + c) * 32 + x] = first[c];
    if (GROUPS == 1 || lower) halo[((at.warp * 2 + 1) * COLUMNS + c) * 32 + x] = last[c];
  }
  __syncthreads();
  int before = at.warp ? at.warp - 1 : WARPS - 1, after = at.warp < WARPS - 1 ? at.warp + 1 : 0;
  #endif
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    above[c] = GROUPS > 1 ? __shfl_sync(ALL, last[c], at.up) : last[c];
    below[c] = GROUPS > 1 ? __shfl_sync(ALL, first[c], at.down) : first[c];
    #if WARPS > 1
    REAL from_before = halo[((before * 2 + 1) * COLUMNS + c) * 32 + x];
    REAL from_after = halo[(after * 2 * COLUMNS + c) * 32 + x];
    above[c] = GROUPS == 1 || upper ? from_before : above[c];
    below[c] = GROUPS == 1 || lower ? from_after : below[c];
    #endif
    above[c] = !WRAP_ROWS && at.top ? 0 : above[c];
    below[c] = !WRAP_ROWS && at.bottom ? 0 : below[c];
  }
}

// In place: before = factor * (-s * (sum over the neighbours of s v)) - before, rounded as the plain version rounds.
__device__ __forceinline__ void step_as_plain(Place& at, REAL (*v)[COLUMNS], REAL (*before)[COLUMNS], REAL factor,
                                              REAL* halo) {
  #define P(r, c) (root_at(at, r, c) * v[r][c])
  REAL above[COLUMNS], here[COLUMNS], bottom[COLUMNS], last[COLUMNS];
  REAL above_left[COLUMNS], above_right[COLUMNS], left[COLUMNS], right[COLUMNS];
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    here[c] = P(0, c);
    last[c] = LAST_ROW == ROWS - 1 || !at.bottom ? P(ROWS - 1, c) : P(LAST_ROW, c);
  }
  beyond(at, here, last, halo, above, bottom);
  beside(at, above, above_left, above_right);
  beside(at, here, left, right);
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    REAL below[COLUMNS], below_left[COLUMNS], below_right[COLUMNS];
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      below[c] = r == ROWS - 1 ? bottom[c] : P(r + 1 < ROWS ? r + 1 : r, c);
      if (WRAP_ROWS && r == LAST_ROW && r < ROWS - 1 && at.bottom) below[c] = bottom[c];
    }
    beside(at, below, below_left, below_right);
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL total = (above[c] + below[c]) + (left[c] + right[c]);
      #if EIGHT
      REAL corners = (above_left[c] + below_right[c]) + (above_right[c] + below_left[c]);
      total = total + (UNIFORM ? corners : (REAL)(DIAGONAL) * corners);
      #endif
      before[r][c] = FMA(factor, -root_at(at, r, c) * total, -before[r][c]);
      above[c] = here[c]; above_left[c] = left[c]; above_right[c] = right[c];
      here[c] = below[c]; left[c] = below_left[c]; right[c] = below_right[c];
    }
  }
  #undef P
}

// Of each node of a row, the sum over it and what is beside it (``middle``); or, where the diagonals weigh differently,
// what a node adds to those above and below it (``outer``) and to its own row (``middle``).
__device__ __forceinline__ void across(const Place& at, const REAL* row, REAL* middle, REAL* outer) {
  REAL left[COLUMNS], right[COLUMNS];
  beside(at, row, left, right);
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
__device__ __forceinline__ void step(Place& at, REAL (*v)[COLUMNS], REAL (*before)[COLUMNS], REAL* halo) {
  REAL beyond_first[COLUMNS], beyond_last[COLUMNS], last[COLUMNS];
  REAL middle[3][COLUMNS], outer[3][COLUMNS];  // of the rows r - 1, r, r + 1, at their numbers + 1 modulo 3
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    last[c] = LAST_ROW == ROWS - 1 || !at.bottom ? v[ROWS - 1][c] : v[LAST_ROW][c];
  }
  beyond(at, v[0], last, halo, beyond_first, beyond_last);
  across(at, beyond_first, middle[0], outer[0]);
  across(at, v[0], middle[1], outer[1]);
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    REAL below[COLUMNS];
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      below[c] = r == ROWS - 1 ? beyond_last[c] : v[r + 1 < ROWS ? r + 1 : r][c];
      if (WRAP_ROWS && r == LAST_ROW && r < ROWS - 1 && at.bottom) below[c] = beyond_last[c];
    }
    across(at, below, middle[(r + 2) % 3], outer[(r + 2) % 3]);
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL one = outer[r % 3][c], two = middle[(r + 1) % 3][c], three = outer[(r + 2) % 3][c];
      REAL total = r % 2 ? (one + two) + three : one + (two + three);  // each pair of rows is added once
      REAL by = edge(at, r) ? at.by_edge[c] : within(at, r) ? at.by_middle[c] : 0;
      REAL own = edge(at, r) ? at.own_edge[c] : at.own_middle[c];
      before[r][c] = FMA(by, total, FMA(own, v[r][c], -before[r][c]));
    }
  }
}

// a sum over the map, in every lane
__device__ __forceinline__ REAL map_sum(const Place& at, REAL x, REAL* scratch) {
  x = warp_sum(x);
  #if WARPS > 1
  __syncthreads();
  if (at.lane == 0) scratch[at.warp] = x;
  __syncthreads();
  x = at.lane < WARPS ? scratch[at.lane] : 0;
  x = warp_sum(x);
  #endif
  return x;
}

// A map times its mask. Where there is no node another one is read: a branch would wait for every number by itself.
template <typename T>
__device__ __forceinline__ T read(const Place& at, const T* map, int r, int c) {
  const T* from = r <= LAST_ROW || !at.bottom ? map + at.start : map;
  return from[r * W + (c > LAST_COLUMN && at.far ? LAST_COLUMN : c)];
}
__device__ __forceinline__ void load(const Place& at, const REAL* z, const unsigned char* active, long long item,
                                     REAL (*t)[COLUMNS]) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] = read(at, z + item * N, r, c);
  #if MASKED
  unsigned char kept[ROWS][COLUMNS];
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) kept[r][c] = read(at, active + item * N, r, c);
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] *= (REAL)kept[r][c];
  #endif
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] = at.inside[c] && within(at, r) ? t[r][c] : 0;
}

__device__ __forceinline__ void scale(const Place& at, REAL (*t)[COLUMNS]) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) t[r][c] *= root_at(at, r, c);
}

__device__ __forceinline__ void times(REAL (*t)[COLUMNS], REAL factor) {
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

#define SHARED \
  __shared__ REAL shared_halo[WARPS > 1 ? WARPS * 4 * COLUMNS * 32 : 1], shared_sums[32]; \
  REAL *halo = shared_halo, *sums = shared_sums; \
  long long item = (long long)blockIdx.x * MAPS + (WARPS == 1 ? threadIdx.y : 0); \
  if (item >= items) return;  // with WARPS > 1 there is one map a block, so that whole blocks return

#if !BACKWARD
// Of the magnitudes of t = p / s in this lane, the sum and that of the squares, both over the ``count`` of a warp.
__device__ __forceinline__ void lane_moments(const Place& at, REAL (*p)[COLUMNS], bool scaled, REAL by_count,
                                             REAL* total, REAL* squares) {
  *total = *squares = 0;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    REAL by_edge = scaled ? at.over_edge[c] : (REAL)1, by_middle = scaled ? at.over_middle[c] : (REAL)1;
    REAL sum = 0, square = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; r++)
      if (r != 0 && r != LAST_ROW) {
        sum += magnitude(p[r][c]);
        square = FMA(p[r][c], p[r][c], square);
      }
    sum *= by_middle;
    square *= by_middle * by_middle;
    REAL t = magnitude(p[0][c]) * (edge(at, 0) ? by_edge : by_middle);
    sum += t;
    square = FMA(t, t, square);
    if (LAST_ROW != 0) {
      t = magnitude(p[LAST_ROW][c]) * (edge(at, LAST_ROW) ? by_edge : by_middle);
      sum += t;
      square = FMA(t, t, square);
    }
    *total = FMA(sum, by_count, *total);
    *squares = FMA(square, by_count, *squares);
  }
}

// the sum of squares about the mean, over the ``count`` of a warp
__device__ __forceinline__ REAL about(const Place& at, REAL (*p)[COLUMNS], bool scaled, REAL by_count, REAL mean) {
  REAL squares = 0;
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    REAL by_edge = scaled ? at.over_edge[c] : (REAL)1, by_middle = scaled ? at.over_middle[c] : (REAL)1;
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
      REAL d = FMA(magnitude(p[r][c]), edge(at, r) ? by_edge : by_middle, -mean);
      d = at.inside[c] && within(at, r) ? d : 0;
      squares = FMA(d, d, squares);
    }
  }
  return warp_sum(squares) * by_count;
}

// Mean and variance of the magnitudes of t = p / s for two orders at once, k and (if there is a ``next``) k + 1; with
// several warps, each one's own, to be merged at the end. The mean of the squares minus the square of the mean, unless
// most of it cancels.
__device__ __forceinline__ void moments(const Place& at, REAL (*p)[COLUMNS], REAL (*q)[COLUMNS], bool scaled, int k,
                                        bool next, REAL* parts, REAL* phi) {
  REAL by_count = (REAL)1 / (W * (WARPS == 1 ? H : at.warp == WARPS - 1 ? H - (WARPS - 1) * GROUPS * ROWS
                                                                        : GROUPS * ROWS));
  REAL sums[4];
  lane_moments(at, p, scaled, by_count, &sums[0], &sums[1]);
  if (next) lane_moments(at, q, scaled, by_count, &sums[2], &sums[3]);
  else sums[2] = sums[3] = 0;
  // four sums by six shuffles: lanes 0 to 7 get the first, 8 to 15 the second, ...
  bool upper = at.lane & 16, odd = at.lane & 8;
  REAL one = upper ? sums[2] : sums[0], two = upper ? sums[3] : sums[1];
  one += __shfl_xor_sync(ALL, upper ? sums[0] : sums[2], 16);
  two += __shfl_xor_sync(ALL, upper ? sums[1] : sums[3], 16);
  REAL x = odd ? two : one;
  x += __shfl_xor_sync(ALL, odd ? one : two, 8);
  #pragma unroll
  for (int d = 4; d; d >>= 1) x += __shfl_xor_sync(ALL, x, d);
  REAL mean = __shfl_xor_sync(ALL, x, 8);
  REAL variance = FMA(-mean, mean, x);
  unsigned unsure = __ballot_sync(ALL, odd && !(variance * 8 >= x));
  if (unsure & 0x0000ff00u) {
    REAL squares = about(at, p, scaled, by_count, __shfl_sync(ALL, x, 0));
    if (!upper) variance = squares;
  }
  if (next && unsure & 0xff000000u) {
    REAL squares = about(at, q, scaled, by_count, __shfl_sync(ALL, x, 16));
    if (upper) variance = squares;
  }
  if (at.lane % 8 == 0 && (next || !upper)) {
    int order = k + upper;
    REAL value = odd ? variance : x;
    if (WARPS == 1) phi[2 * order + odd] = value;
    else parts[(order * WARPS + at.warp) * 2 + odd] = value;
  }
}

// Chan's formula over the warps, a thread an order
__device__ __forceinline__ void merge(const REAL* parts, REAL* phi) {
  __syncthreads();
  for (int k = threadIdx.y * 32 + threadIdx.x; k <= ORDER; k += 32 * WARPS) {
    REAL mean = 0, variance = 0;
    for (int w = 0; w < WARPS; w++) {
      int seen = w * GROUPS * ROWS, count = w == WARPS - 1 ? H - seen : GROUPS * ROWS;
      REAL step = parts[(k * WARPS + w) * 2] - mean, share = (REAL)count / (seen + count);
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
  SHARED
  __shared__ REAL parts[WARPS > 1 ? (ORDER + 1) * WARPS * 2 : 1];
  Place at = place(root);
  REAL a[ROWS][COLUMNS], b[ROWS][COLUMNS];
  load(at, z, active, item, a);
  phi += item * 2 * (ORDER + 1);
  moments(at, a, a, false, 0, false, parts, phi);
  scale(at, a);
  clear(b);
  #pragma unroll 1
  for (int k = 1; k <= ORDER; k += 2) {
    step(at, a, b, halo);
    if (k == 1) times(b, (REAL)0.5);  // p_1 = -s^2 (sum)
    if (k < ORDER) step(at, b, a, halo);
    moments(at, b, a, true, k, k < ORDER, parts, phi);
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
__device__ __forceinline__ float flipped(float x, unsigned sign) { return __uint_as_float(__float_as_uint(x) ^ sign); }
__device__ __forceinline__ double flipped(double x, unsigned sign) {
  return __hiloint2double(__double2hiint(x) ^ (int)sign, __double2loint(x));
}

// two bits an order and node, the last order lowest: the sign of t, and whether t is more than rounding
__device__ __forceinline__ void note(REAL (*t)[COLUMNS], REAL noise, Gates (*gates)[COLUMNS]) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      unsigned sign = top_bits(t[r][c]), above = top_bits(noise - magnitude(t[r][c]));  // a NaN's sign is positive
      #if ORDER <= 15
      gates[r][c] = __funnelshift_l(above, __funnelshift_l(sign, gates[r][c], 1), 1);
      #else
      gates[r][c] = gates[r][c] << 2 | sign >> 31 << 1 | above >> 31;
      #endif
    }
}

// q = q + s * (gradient by t of its mean and variance), where t = p / s
__device__ __forceinline__ void pull(const Place& at, REAL (*p)[COLUMNS], bool scaled, int k, Gates (*gates)[COLUMNS],
                                     const REAL* phi, const REAL* g, REAL (*q)[COLUMNS]) {
  REAL mean = phi[2 * k], a = g[2 * k] * (REAL)(1.0 / N), b = g[2 * k + 1] * (REAL)(2.0 / N);
  REAL by_edge[COLUMNS], by_middle[COLUMNS];
  #pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    by_edge[c] = scaled ? at.over_edge[c] : (REAL)1;
    by_middle[c] = scaled ? at.over_middle[c] : (REAL)1;
  }
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL above = FMA(magnitude(p[r][c]), edge(at, r) ? by_edge[c] : by_middle[c], -mean);
      unsigned gate = (unsigned)gates[r][c];
      gates[r][c] >>= 2;
      REAL local = flipped(FMA(b, above, a), gate << 30 & 0x80000000u);
      if (gate & 1) q[r][c] = FMA(local, root_at(at, r, c), q[r][c]);
    }
}

// Level k of the way back: q_k into ``before``, then p_{k-2} into ``p``.
__device__ __forceinline__ void level(Place& at, int k, REAL (*p)[COLUMNS], REAL (*lower)[COLUMNS],
                                      REAL (*q)[COLUMNS], REAL (*before)[COLUMNS], Gates (*gates)[COLUMNS],
                                      const REAL* phi, const REAL* g, REAL* halo) {
  if (k < ORDER) step(at, q, before, halo);
  pull(at, p, true, k, gates, phi, g, before);
  if (k > 2) step(at, lower, p, halo);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS * MAPS, BLOCKS)
statistics_backward(const REAL* __restrict__ z, const unsigned char* __restrict__ active,
                    const REAL* __restrict__ root, const REAL* __restrict__ phi, const REAL* __restrict__ g,
                    REAL* __restrict__ g_z, double rounding, int items) {
  SHARED
  Place at = place(root);
  phi += item * 2 * (ORDER + 1);
  g += item * 2 * (ORDER + 1);
  REAL a[ROWS][COLUMNS], b[ROWS][COLUMNS], q[ROWS][COLUMNS], o[ROWS][COLUMNS];
  load(at, z, active, item, a);
  REAL largest = 0, poison = 0;
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      REAL size = magnitude(a[r][c]);
      largest = size > largest ? size : largest;
      poison += a[r][c] * 0;
    }
  #pragma unroll
  for (int d = 16; d; d >>= 1) {
    REAL other = __shfl_xor_sync(ALL, largest, d);
    largest = other > largest ? other : largest;
  }
  #if WARPS > 1
  if (at.lane == 0) sums[at.warp] = largest;
  __syncthreads();
  #pragma unroll
  for (int w = 0; w < WARPS; w++) largest = sums[w] > largest ? sums[w] : largest;
  #endif
  poison = map_sum(at, poison, sums);
  REAL noise = (REAL)rounding * largest + poison;  // a NaN: then nothing is above the noise
  Gates gates[ROWS][COLUMNS];
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++) gates[r][c] = 0;
  note(a, noise, gates);
  clear(b);
  // up to t_ORDER, in a if ORDER is even, else in b
  #pragma unroll 1
  for (int k = 1; k <= ORDER; k += 2) {
    step_as_plain(at, a, b, k == 1 ? 1 : 2, halo);
    note(b, noise, gates);
    if (k < ORDER) {
      step_as_plain(at, b, a, 2, halo);
      note(a, noise, gates);
    }
  }
  scale(at, a);
  scale(at, b);
  clear(q);
  clear(o);
  // back: q_{k+1} is in q and q_{k+2} in o for odd k
  #pragma unroll 1
  for (int k = ORDER; k >= 1; k--) {
    if (k % 2) level(at, k, b, a, q, o, gates, phi, g, halo);
    else level(at, k, a, b, o, q, gates, phi, g, halo);
  }
  // q_0 = s c_0 + (-s^2 A q_1) - q_2; q_1 is in o
  times(o, (REAL)0.5);
  step(at, o, q, halo);
  load(at, z, active, item, a);  // t_0 as it is
  pull(at, a, false, 0, gates, phi, g, q);
  #pragma unroll
  for (int r = 0; r < ROWS; r++)
    #pragma unroll
    for (int c = 0; c < COLUMNS; c++)
      if (at.inside[c] && within(at, r)) {
        long long n = item * N + at.start + r * W + c;
        REAL value = q[r][c] / root_at(at, r, c);
        #if MASKED
        value *= (REAL)active[n];
        #endif
        g_z[n] = value;
      }
}
#endif
"""

POOLING = r"""
#define PER (32 * WARPS)
typedef BITS Bits;
#define TOP ((Bits)1 << (8 * sizeof(Bits) - 1))
#define INFINITE (sizeof(Bits) == 4 ? (Bits)0x7f800000ull : (Bits)0x7ff0000000000000ull)

// in the order of the values: NaN above all, 0 outside omega
__device__ __forceinline__ Bits key_of(Bits bits, bool inside) {
  if (!inside) return 0;
  if ((bits & ~TOP) > INFINITE) return ~(Bits)0;
  return bits & TOP ? ~bits : bits | TOP;
}

__device__ __forceinline__ int count_sum(int x, int* scratch, int lane, int warp) {
  x = warp_sum(x);
  #if WARPS > 1
  __syncthreads();
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  x = warp_sum(lane < WARPS ? scratch[lane] : 0);
  #endif
  return x;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS * MAPS)
pooling(const Bits* __restrict__ z, const unsigned char* __restrict__ omega, unsigned char* __restrict__ active,
        int maps, int wanted, double tolerance, int items) {
  __shared__ int sums[32];
  __shared__ Bits largest[32];
  int lane = threadIdx.x, warp = WARPS == 1 ? 0 : threadIdx.y;
  long long item = (long long)blockIdx.x * MAPS + (WARPS == 1 ? threadIdx.y : 0);
  if (item >= items) return;
  z += item * N;
  active += item * N;
  #if MASKED
  omega += item / maps * N;
  #endif
  int first = warp * 32 + lane, j = wanted < N ? wanted : N;
  #if MASKED
  #define INSIDE(n) (omega[n] != 0)
  #else
  #define INSIDE(n) true
  #endif
  #if HELD
  Bits keys[ITEMS];
  #pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    int n = first + i * PER;
    keys[i] = n < N ? key_of(z[n], INSIDE(n)) : 0;
  }
  #define KEY(i, n) keys[i]
  #else
  #define KEY(i, n) ((n) < N ? key_of(z[n], INSIDE(n)) : 0)
  #endif
  #if HELD
  #define EACH _Pragma("unroll") for (int i = 0, n = first; i < ITEMS; i++, n += PER)
  #else
  #define EACH _Pragma("unroll 4") for (int i = 0, n = first; i < ITEMS; i++, n += PER)
  #endif
  // the largest key with at least j not below it; 0 if fewer than j are inside
  Bits jth = 0;
  #pragma unroll 1
  for (Bits bit = TOP; bit; bit >>= 1) {
    Bits candidate = jth | bit;
    int count = 0;
    EACH count += KEY(i, n) >= candidate;
    count = count_sum(count, sums, lane, warp);
    if (count >= j) jth = candidate;
  }
  #if STRICT
  int spare = 0;
  EACH spare += KEY(i, n) > jth;
  spare = j - count_sum(spare, sums, lane, warp);
  int low = 0, high = N;  // the first nodes among the tied: fewer than ``spare`` before low, no fewer before high
  #pragma unroll 1
  while (low < high) {
    int middle = (low + high) / 2, count = 0;
    EACH count += n <= middle && n < N && KEY(i, n) == jth;
    if (count_sum(count, sums, lane, warp) >= spare) high = middle; else low = middle + 1;
  }
  EACH if (n < N) active[n] = INSIDE(n) && (KEY(i, n) > jth || (KEY(i, n) == jth && spare > 0 && n <= low));
  #else
  Bits most = 0;
  EACH if (n < N) {
    Bits size = z[n] & ~TOP;
    if (!INSIDE(n)) size = size >= INFINITE ? ~TOP : 0;
    most = size > most ? size : most;
  }
  #pragma unroll
  for (int d = 16; d; d >>= 1) {
    Bits other = __shfl_xor_sync(ALL, most, d);
    most = other > most ? other : most;
  }
  #if WARPS > 1
  if (lane == 0) largest[warp] = most;
  __syncthreads();
  for (int w = 0; w < WARPS; w++) most = largest[w] > most ? largest[w] : most;
  #endif
  Bits bits = jth ? (jth & TOP ? jth & ~TOP : ~jth) : INFINITE | TOP;
  REAL threshold = *(REAL*)&bits - (REAL)tolerance * *(REAL*)&most;
  EACH if (n < N) {
    Bits value = z[n];
    active[n] = *(REAL*)&value >= threshold && INSIDE(n);
  }
  #endif
}
"""

CONVOLUTION = r"""
#define STRIDE (W + 2)

// p with its border, in shared memory; a node across the border of the torus is written there too
__device__ __forceinline__ void put(REAL* p, int n, REAL value) {
  int r = n / W, c = n % W;
  int other_r = WRAP_ROWS ? (r == 0 ? H : r == H - 1 ? -1 : r) : r;
  int other_c = WRAP_COLUMNS ? (c == 0 ? W : c == W - 1 ? -1 : c) : c;
  p[(r + 1) * STRIDE + c + 1] = value;
  if (other_r != r) p[(other_r + 1) * STRIDE + c + 1] = value;
  if (other_c != c) p[(r + 1) * STRIDE + other_c + 1] = value;
  if (other_r != r && other_c != c) p[(other_r + 1) * STRIDE + other_c + 1] = value;
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

#define EACH _Pragma("unroll") for (int i = 0, n = threadIdx.x; i < ITEMS; i++, n += THREADS) if (n < N)

// t = L t
__device__ __forceinline__ void apply(REAL* p, const REAL* s, REAL* t) {
  __syncthreads();
  EACH put(p, n, s[i] * t[i]);
  __syncthreads();
  EACH t[i] = t[i] + -s[i] * neighbours(p, n);
}

__device__ __forceinline__ void powers_of(const REAL* y, const REAL* beta, const REAL* root, REAL* p, REAL* s,
                                          REAL (*powers)[ITEMS]) {
  for (int n = threadIdx.x; n < (H + 2) * STRIDE; n += THREADS) p[n] = 0;
  EACH {
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
    apply(p, s, powers[m]);
  }
}

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(THREADS)
convolution(const REAL* __restrict__ y, const REAL* __restrict__ alpha, const REAL* __restrict__ beta,
            const unsigned char* __restrict__ omega, const REAL* __restrict__ root, REAL* __restrict__ z) {
  extern __shared__ char memory[];
  REAL* p = (REAL*)memory;
  long long item = blockIdx.x;
  REAL powers[DEGREE + 1][ITEMS], s[ITEMS], keep[ITEMS];
  powers_of(y + item * INPUTS * N, beta, root, p, s, powers);
  z += item * OUTPUTS * N;
  #if MASKED
  EACH keep[i] = (REAL)omega[item * N + n];
  #endif
  #pragma unroll 2
  for (int o = 0; o < OUTPUTS; o++) {
    REAL a[DEGREE + 1];
    #pragma unroll
    for (int m = 0; m <= DEGREE; m++) a[m] = alpha[o * (DEGREE + 1) + m];
    EACH {
      REAL total = 0;
      #pragma unroll
      for (int m = 0; m <= DEGREE; m++) total = total + a[m] * powers[m][i];
      #if MASKED
      total = total * keep[i];
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
  REAL powers[DEGREE + 1][ITEMS], local[DEGREE + 1][ITEMS], s[ITEMS], keep[ITEMS];
  powers_of(y + item * INPUTS * N, beta, root, p, s, powers);
  #pragma unroll
  for (int m = 0; m <= DEGREE; m++)
    #pragma unroll
    for (int i = 0; i < ITEMS; i++) local[m][i] = 0;
  #if MASKED
  EACH keep[i] = (REAL)omega[item * N + n];
  #endif
  #pragma unroll 1
  for (int o = 0; o < OUTPUTS; o++) {
    REAL total[DEGREE + 1], a[DEGREE + 1];
    #pragma unroll
    for (int m = 0; m <= DEGREE; m++) { total[m] = 0; a[m] = alpha[o * (DEGREE + 1) + m]; }
    EACH {
      REAL value = g[(item * OUTPUTS + o) * N + n];
      #if MASKED
      value *= keep[i];
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
    apply(p, s, local[m + 1]);
    #pragma unroll
    for (int i = 0; i < ITEMS; i++) local[m][i] += local[m + 1][i];
  }
  __syncthreads();
  #pragma unroll 1
  for (int k = 0; k < INPUTS; k++) {
    REAL total = 0, b = beta[k];
    EACH {
      long long at = (item * INPUTS + k) * N + n;
      total += y[at] * local[0][i];
      #if WANTED
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
"""
