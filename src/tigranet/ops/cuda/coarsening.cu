// Halve the height and width of images with a low-pass filter, and the adjoint of that. The tables say which pixels a
// pixel is computed from: four rows and four columns forward, two and two backward.
#include "pixel_packs.cu"
#define AT_ONCE 1

struct alignas(16) Taps { int at[4]; };
struct alignas(8) TwoTaps { int at[2]; };
struct alignas(2 * sizeof(REAL)) TwoWeights { REAL at[2]; };

// Row and column of a pixel in its image, and the number of the image.
struct Place {
  int image, row, column;
  __device__ __forceinline__ Place(int pixel, int height, int width) {
    row = pixel / width;
    column = pixel - row * width;
    image = row / height;
    row -= image * height;
  }
};

// The sum of the maps at the four crossings of two rows and two columns. Opposite corners are added first, so that
// the sum has the same bits when the image is reflected or rotated by a quarter turn.
__device__ __forceinline__ void sum_of_crossings(const Pack* __restrict__ y, const Share& share, int first_row,
                                                 int second_row, int first_column, int second_column,
                                                 REAL (&sum)[PACK_SIZE]) {
  const Pack a = y[share.index(first_row + first_column)], b = y[share.index(second_row + second_column)];
  const Pack c = y[share.index(first_row + second_column)], d = y[share.index(second_row + first_column)];
  FOR_EACH_MAP sum[m] = (to_real(a.at[m]) + to_real(b.at[m])) + (to_real(c.at[m]) + to_real(d.at[m]));
}

// ``pixels`` counts those of the coarse images. ``outer`` is the weight of the first and the last tap, ``inner`` that
// of the two between them.
extern "C" __global__ void __launch_bounds__(THREADS)
coarsen(const Pack* __restrict__ y, const Taps* __restrict__ row_taps, const Taps* __restrict__ column_taps,
        Pack* __restrict__ out, double row_outer, double row_inner, double column_outer, double column_inner,
        int pixels, int pixels_per_block, int maps, int height, int width, int coarse_height, int coarse_width) {
  const Share share(blockIdx.x, pixels, pixels_per_block, maps);
  const REAL both_outer = (REAL)(row_outer * column_outer), both_inner = (REAL)(row_inner * column_inner);
  const REAL outer_rows = (REAL)(row_outer * column_inner), outer_columns = (REAL)(row_inner * column_outer);
  FOR_EACH_PIXEL_GROUP(share) FOR_EACH_PIXEL(share) {
    const Place place(pixel, coarse_height, coarse_width);
    Taps rows = row_taps[place.row];
    const Taps columns = column_taps[place.column];
    #pragma unroll
    for (int i = 0; i < 4; i++) rows.at[i] = (place.image * height + rows.at[i]) * width;
    REAL corners[PACK_SIZE], centre[PACK_SIZE], above_and_below[PACK_SIZE], beside[PACK_SIZE];
    sum_of_crossings(y, share, rows.at[0], rows.at[3], columns.at[0], columns.at[3], corners);
    sum_of_crossings(y, share, rows.at[1], rows.at[2], columns.at[1], columns.at[2], centre);
    sum_of_crossings(y, share, rows.at[0], rows.at[3], columns.at[1], columns.at[2], above_and_below);
    sum_of_crossings(y, share, rows.at[1], rows.at[2], columns.at[0], columns.at[3], beside);
    Pack result;
    FOR_EACH_MAP store(result.at[m], (both_outer * corners[m] + both_inner * centre[m]) +
                                     (outer_rows * above_and_below[m] + outer_columns * beside[m]));
    out[share.index(pixel)] = result;
  }
}

// ``g`` is the gradient by the coarse images, ``pixels`` counts those of the fine images.
extern "C" __global__ void __launch_bounds__(THREADS)
coarsen_backward(const Pack* __restrict__ g, const TwoTaps* __restrict__ row_taps,
                 const TwoTaps* __restrict__ column_taps, const TwoWeights* __restrict__ row_weights,
                 const TwoWeights* __restrict__ column_weights, Pack* __restrict__ out, int pixels,
                 int pixels_per_block, int maps, int height, int width, int coarse_height, int coarse_width) {
  const Share share(blockIdx.x, pixels, pixels_per_block, maps);
  FOR_EACH_PIXEL_GROUP(share) FOR_EACH_PIXEL(share) {
    const Place place(pixel, height, width);
    const TwoTaps rows = row_taps[place.row], columns = column_taps[place.column];
    const TwoWeights by_row = row_weights[place.row], by_column = column_weights[place.column];
    const int image = place.image * coarse_height;
    const int first = (image + rows.at[0]) * coarse_width, second = (image + rows.at[1]) * coarse_width;
    const Pack a = g[share.index(first + columns.at[0])], b = g[share.index(second + columns.at[1])];
    const Pack c = g[share.index(first + columns.at[1])], d = g[share.index(second + columns.at[0])];
    const REAL of_a = by_row.at[0] * by_column.at[0], of_b = by_row.at[1] * by_column.at[1];
    const REAL of_c = by_row.at[0] * by_column.at[1], of_d = by_row.at[1] * by_column.at[0];
    Pack result;
    FOR_EACH_MAP store(result.at[m], (of_a * to_real(a.at[m]) + of_b * to_real(b.at[m])) +
                                     (of_c * to_real(c.at[m]) + of_d * to_real(d.at[m])));
    out[share.index(pixel)] = result;
  }
}
