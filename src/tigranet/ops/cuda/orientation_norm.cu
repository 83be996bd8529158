// Normalise features with orientations, apply ReLU and add a border of pixels. The maps of a pixel are ordered
// (orientation, feature). Three kernels forward (sums of each part of the pixels, moments, rectified images) and three
// backward (sums of each part, their total, the gradient). With known moments, forward is the last kernel alone.
#include "pixel_packs.cu"
#include "block_sum.cu"
#define AT_ONCE 4

__device__ __forceinline__ int thread_of_block() { return threadIdx.y * blockDim.x + threadIdx.x; }
#define FOR_EACH_FEATURE_OF_THREAD \
  for (int c = thread_of_block(); c < features; c += (int)(blockDim.x * blockDim.y))

// The maps of a block: how many there are, and which of them is the first one with feature c.
struct BlockMaps {
  int first, count;
  __device__ __forceinline__ BlockMaps(int maps) {
    int width = blockDim.x * PACK_SIZE;
    first = blockIdx.y * width;
    count = min(width, maps - first);
  }
  __device__ __forceinline__ int start(int c, int features) const {
    int start = (c - first) % features;
    return start < 0 ? start + features : start;
  }
};

// Adds up the numbers of all threads for each feature, in double precision and always in the same order.
__device__ __forceinline__ void sum_by_feature(const REAL (&numbers)[PACK_SIZE], int maps, int features, double* out) {
  __shared__ REAL scratch[THREADS * PACK_SIZE];
  __shared__ double totals[THREADS * PACK_SIZE];
  const BlockMaps block(maps);
  int thread = thread_of_block(), threads = blockDim.x * blockDim.y, width = blockDim.x * PACK_SIZE;
  __syncthreads();
  FOR_EACH_MAP scratch[thread * PACK_SIZE + m] = numbers[m];
  __syncthreads();
  for (int i = thread; i < width; i += threads) {
    double total = 0;
    for (int j = i; j < threads * PACK_SIZE; j += width) total += scratch[j];
    totals[i] = total;
  }
  __syncthreads();
  FOR_EACH_FEATURE_OF_THREAD {
    double total = 0;
    for (int i = block.start(c, features); i < block.count; i += features) total += totals[i];
    out[c] = total;
  }
}

// The results of one part, of ``numbers`` rows with one number per feature.
__device__ __forceinline__ double* results_of_part(double* parts, int numbers, int features) {
  return parts + ((long long)blockIdx.y * gridDim.x + blockIdx.x) * numbers * features;
}

// Mean, sum of squared deviations and count of each feature in each part. The sums are about the first value of the
// feature in the part, so that a mean far from zero costs no digits.
extern "C" __global__ void __launch_bounds__(THREADS)
moments(const Pack* __restrict__ y, double* __restrict__ parts, int pixels, int pixels_per_block, int maps,
        int features) {
  const Share share(blockIdx.x, pixels, pixels_per_block, maps);
  const STORED* shifts = (const STORED*)y + (long long)share.first * maps;
  REAL shift[PACK_SIZE], sum[PACK_SIZE], squares[PACK_SIZE];
  FOR_EACH_MAP {
    shift[m] = to_real(shifts[(share.pack * PACK_SIZE + m) % features]);
    sum[m] = squares[m] = 0;
  }
  FOR_EACH_PIXEL_GROUP(share) {
    Pack values[AT_ONCE];
    FOR_EACH_PIXEL(share) values[k] = y[share.index(pixel)];
    FOR_EACH_PIXEL(share) FOR_EACH_MAP {
      REAL d = to_real(values[k].at[m]) - shift[m];
      sum[m] += d;
      squares[m] = FMA(d, d, squares[m]);
    }
  }
  double* part = results_of_part(parts, 3, features);
  sum_by_feature(sum, maps, features, part);
  sum_by_feature(squares, maps, features, part + features);
  const BlockMaps block(maps);
  FOR_EACH_FEATURE_OF_THREAD {
    int start = block.start(c, features);
    int per_pixel = start < block.count ? (block.count - 1 - start) / features + 1 : 0;
    double count = (double)per_pixel * (min(share.first + pixels_per_block, pixels) - share.first);
    double total = part[c], mean = count > 0 ? total / count : 0;
    part[c] = to_real(shifts[c]) + mean;
    part[features + c] -= total * mean;
    part[2 * features + c] = count;
  }
}

#define FOR_EACH_PART(numbers) \
  for (const double* part = parts + (long long)threadIdx.x * numbers * features + blockIdx.x, \
       *end = parts + (long long)num_parts * numbers * features; part < end; part += THREADS * numbers * features)

// Mean and variance of each feature from those of the parts. One block per feature.
extern "C" __global__ void __launch_bounds__(THREADS)
merge(const double* __restrict__ parts, REAL* __restrict__ mean, REAL* __restrict__ variance, int num_parts,
      int features) {
  double sum = 0, count = 0, squares = 0;
  FOR_EACH_PART(3) { sum += part[0] * part[2 * features]; count += part[2 * features]; }
  Pair sums = block_sum(sum, count);
  double centre = sums.a / sums.b;
  FOR_EACH_PART(3) squares += part[features] + part[2 * features] * (part[0] - centre) * (part[0] - centre);
  squares = block_sum(squares, 0.0).a;
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = (REAL)centre;
    variance[blockIdx.x] = (REAL)(squares < 0 ? 0 : squares / sums.b);  // keeps NaN
  }
}

// Normalisation of the maps of a pack as a factor and a term. ``feature`` is that of each map.
struct Affine {
  REAL gain[PACK_SIZE], offset[PACK_SIZE];
  int feature[PACK_SIZE];
  __device__ __forceinline__ Affine(const REAL* mean, const REAL* variance, const REAL* scale, const REAL* bias,
                                    REAL eps, int pack, int features) {
    int c = pack * PACK_SIZE % features;
    FOR_EACH_MAP {
      feature[m] = c;
      gain[m] = scale[c] * inverse_root(variance[c] + eps);
      offset[m] = bias[c] - mean[c] * gain[m];
      c = c + 1 == features ? 0 : c + 1;
    }
  }
};

// The position inside an axis of ``size`` pixels that a position of the padded axis is a copy of.
__device__ __forceinline__ int source_position(int position, int size, int border, int wraps) {
  int inside = position - border;
  if (inside >= 0 && inside < size) return inside;
  if (!wraps) return inside < 0 ? 0 : size - 1;
  inside %= size;
  return inside < 0 ? inside + size : inside;
}

// ReLU(gain * y + offset) on padded images. ``pixels`` counts those of the padded images.
extern "C" __global__ void __launch_bounds__(THREADS)
rectify(const Pack* __restrict__ y, const REAL* __restrict__ mean, const REAL* __restrict__ variance,
        const REAL* __restrict__ scale, const REAL* __restrict__ bias, Pack* __restrict__ out, double eps, int pixels,
        int pixels_per_block, int maps, int features, int height, int width, int border, int wrap_rows,
        int wrap_columns) {
  // The last pixels first, because the cache still holds what the first pass read last.
  const Share share(gridDim.x - 1 - blockIdx.x, pixels, pixels_per_block, maps);
  const Affine affine(mean, variance, scale, bias, (REAL)eps, share.pack, features);
  const int padded_height = height + 2 * border, padded_width = width + 2 * border;
  FOR_EACH_PIXEL_GROUP(share) {
    Pack values[AT_ONCE];
    FOR_EACH_PIXEL(share) {
      int row = pixel / padded_width, image = row / padded_height;
      int source_column = source_position(pixel - row * padded_width, width, border, wrap_columns);
      int source_row = image * height + source_position(row - image * padded_height, height, border, wrap_rows);
      values[k] = y[share.index(source_row * width + source_column)];
    }
    FOR_EACH_PIXEL(share) {
      FOR_EACH_MAP {
        REAL x = FMA(to_real(values[k].at[m]), affine.gain[m], affine.offset[m]);
        store(values[k].at[m], x < 0 ? 0 : x);  // keeps NaN
      }
      out[share.index(pixel)] = values[k];
    }
  }
}

// The positions of a padded axis that are copies of one position inside, which is one of them.
struct Copies {
  int first, last, step;
  __device__ __forceinline__ Copies(int position, int size, int border, int wraps) {
    int own = position + border, end = size + 2 * border - 1;
    first = wraps ? own % size : position == 0 ? 0 : own;
    last = wraps || position == size - 1 ? end : own;
    step = wraps ? size : 1;
  }
  __device__ __forceinline__ bool is_single() const { return first + step > last; }
};

// Calls ``use(pixel, y, h)`` for every pixel of a thread, where h is the gradient before ReLU: the sum over all copies
// of the pixel, where the rectified value is positive. ``g`` is the gradient by the padded images.
template <typename Use> __device__ __forceinline__ void for_each_gradient(
    const Pack* __restrict__ g, const Pack* __restrict__ y, const Share& share, const Affine& affine, int height,
    int width, int border, int wrap_rows, int wrap_columns, Use use) {
  const int padded_height = height + 2 * border, padded_width = width + 2 * border;
  FOR_EACH_PIXEL_GROUP(share) {
    Pack values[AT_ONCE], upstream[AT_ONCE];
    FOR_EACH_PIXEL(share) {
      int row = pixel / width, column = pixel - row * width, image = row / height;
      int padded_row = image * padded_height + row - image * height + border;
      values[k] = y[share.index(pixel)];
      upstream[k] = g[share.index(padded_row * padded_width + column + border)];
    }
    FOR_EACH_PIXEL(share) {
      REAL h[PACK_SIZE];
      FOR_EACH_MAP h[m] = to_real(upstream[k].at[m]);
      if (border > 0) {
        int row = pixel / width, column = pixel - row * width, image = row / height;
        row -= image * height;
        const Copies rows(row, height, border, wrap_rows), columns(column, width, border, wrap_columns);
        if (!rows.is_single() || !columns.is_single())
          for (int r = rows.first; r <= rows.last; r += rows.step)
            for (int c = columns.first; c <= columns.last; c += columns.step)
              if (r != row + border || c != column + border) {
                const Pack copy = g[share.index((image * padded_height + r) * padded_width + c)];
                FOR_EACH_MAP h[m] += to_real(copy.at[m]);
              }
      }
      REAL values_of_pixel[PACK_SIZE];
      FOR_EACH_MAP {
        values_of_pixel[m] = to_real(values[k].at[m]);
        if (FMA(values_of_pixel[m], affine.gain[m], affine.offset[m]) <= 0) h[m] = 0;
      }
      use(pixel, values_of_pixel, h);
    }
  }
}

// The sums over each part of h, and of h * (y - mean), for each feature.
extern "C" __global__ void __launch_bounds__(THREADS)
gradient_sums(const Pack* __restrict__ g, const Pack* __restrict__ y, const REAL* __restrict__ mean,
              const REAL* __restrict__ variance, const REAL* __restrict__ scale, const REAL* __restrict__ bias,
              double* __restrict__ parts, double eps, int pixels, int pixels_per_block, int maps, int features,
              int height, int width, int border, int wrap_rows, int wrap_columns) {
  const Share share(blockIdx.x, pixels, pixels_per_block, maps);
  const Affine affine(mean, variance, scale, bias, (REAL)eps, share.pack, features);
  REAL sum[PACK_SIZE], products[PACK_SIZE], centre[PACK_SIZE];
  FOR_EACH_MAP { sum[m] = products[m] = 0; centre[m] = mean[affine.feature[m]]; }
  for_each_gradient(g, y, share, affine, height, width, border, wrap_rows, wrap_columns,
                    [&](int, const REAL* values, const REAL* h) {
    FOR_EACH_MAP {
      sum[m] += h[m];
      products[m] = FMA(h[m], values[m] - centre[m], products[m]);
    }
  });
  double* part = results_of_part(parts, 2, features);
  sum_by_feature(sum, maps, features, part);
  sum_by_feature(products, maps, features, part + features);
}

// The gradients by scale and bias, and a constant and a slope that the gradient by y needs. One block per feature.
extern "C" __global__ void __launch_bounds__(THREADS)
gradient_totals(const double* __restrict__ parts, const REAL* __restrict__ variance, const REAL* __restrict__ scale,
                REAL* __restrict__ g_scale, REAL* __restrict__ g_bias, REAL* __restrict__ coefficients, double eps,
                double count, int num_parts, int features) {
  double sum = 0, products = 0;
  FOR_EACH_PART(2) { sum += part[0]; products += part[features]; }
  Pair sums = block_sum(sum, products);
  if (threadIdx.x == 0) {
    int c = blockIdx.x;
    double inverse_deviation = inverse_root((double)variance[c] + eps), gain = scale[c] * inverse_deviation;
    g_scale[c] = (REAL)(sums.b * inverse_deviation);
    g_bias[c] = (REAL)sums.a;
    coefficients[c] = (REAL)(gain * (sums.a / count));
    coefficients[features + c] = (REAL)(gain * (sums.b / count) * inverse_deviation * inverse_deviation);
  }
}

// The gradient by y: gain * h - constant - slope * (y - mean), or gain * h where the moments do not depend on y.
extern "C" __global__ void __launch_bounds__(THREADS)
gradient(const Pack* __restrict__ g, const Pack* __restrict__ y, const REAL* __restrict__ mean,
         const REAL* __restrict__ variance, const REAL* __restrict__ scale, const REAL* __restrict__ bias,
         const REAL* __restrict__ coefficients, Pack* __restrict__ out, double eps, int known_moments, int pixels,
         int pixels_per_block, int maps, int features, int height, int width, int border, int wrap_rows,
         int wrap_columns) {
  const Share share(gridDim.x - 1 - blockIdx.x, pixels, pixels_per_block, maps);
  const Affine affine(mean, variance, scale, bias, (REAL)eps, share.pack, features);
  REAL centre[PACK_SIZE], constant[PACK_SIZE], slope[PACK_SIZE];
  FOR_EACH_MAP {
    centre[m] = mean[affine.feature[m]];
    constant[m] = coefficients[affine.feature[m]];
    slope[m] = coefficients[features + affine.feature[m]];
  }
  for_each_gradient(g, y, share, affine, height, width, border, wrap_rows, wrap_columns,
                    [&](int pixel, const REAL* values, const REAL* h) {
    Pack result;
    FOR_EACH_MAP {
      REAL own = affine.gain[m] * h[m];
      store(result.at[m], known_moments ? own : own - FMA(values[m] - centre[m], slope[m], constant[m]));
    }
    out[share.index(pixel)] = result;
  });
}
