// Strips of a map in shared memory. Thread (x, y) of a block computes column x of strip y, which has ROWS rows. The
// last strip ends at the last row and may overlap the one above it; threads right of the last column compute the last
// column again. Some values are therefore written twice, always the same ones, and no thread has to test whether its
// node exists.
//
// ROW_STRIDE is the distance from row to row in shared memory. BEFORE(size) and AFTER(size) are the indices of the row
// or column that stands for the one outside a free border.
struct Position { int above, first, below, left, column, right; };
// A node and its neighbours to the left and right.
struct Triple { REAL left, middle, right; };

__device__ __forceinline__ Position position() {
  int r = min((int)threadIdx.y * ROWS, H - ROWS), c = min((int)threadIdx.x, W - 1);
  return {r ? r - 1 : WRAP_ROWS ? H - 1 : BEFORE(H), r, r < H - ROWS ? r + ROWS : WRAP_ROWS ? 0 : AFTER(H),
          c ? c - 1 : WRAP_COLUMNS ? W - 1 : BEFORE(W), c, c < W - 1 ? c + 1 : WRAP_COLUMNS ? 0 : AFTER(W)};
}

// Row i of the strip; -1 is the row above it, ROWS the row below.
__device__ __forceinline__ Triple read(const REAL* field, const Position& at, int i) {
  const REAL* row = field + (i < 0 ? at.above : i < ROWS ? at.first + i : at.below) * ROW_STRIDE;
  return {row[at.left], row[at.column], row[at.right]};
}

// A node and its eight neighbours. The window moves down a strip and reads each row once.
struct Window {
  const REAL* field;
  Triple above, here, below;
  __device__ __forceinline__ Window(const REAL* field, const Position& at)
      : field(field), here(read(field, at, -1)), below(read(field, at, 0)) {}
  __device__ __forceinline__ void down(const Position& at, int i) {
    above = here;
    here = below;
    below = read(field, at, i + 1);
  }
};

#define FOR_EACH_ROW _Pragma("unroll") for (int i = 0, n = at.first * W + at.column; i < ROWS; i++, n += W)
