// Images that are stored pixel by pixel. The maps of a pixel lie side by side and are read in packs of PACK_SIZE maps.
// STORED is the type of the maps in memory, REAL that of the arithmetic. All sizes are arguments, so that one compiled
// kernel serves all images.
//
// The threads of a block are blockDim.x packs of blockDim.y pixels. A block works through consecutive pixels. Where a
// pixel has more packs than a block has threads, blockIdx.y selects a part of them.
#include "common.cu"
#define THREADS 256
#define FOR_EACH_MAP _Pragma("unroll") for (int m = 0; m < PACK_SIZE; m++)

struct bfloat16 { unsigned short bits; };
struct float16 { unsigned short bits; };

__device__ __forceinline__ float to_real(float x) { return x; }
__device__ __forceinline__ double to_real(double x) { return x; }
__device__ __forceinline__ float to_real(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ void store(float& out, float x) { out = x; }
__device__ __forceinline__ void store(double& out, double x) { out = x; }
// Rounds to the nearest bfloat16, to the even one of two. A NaN stays a NaN.
__device__ __forceinline__ void store(bfloat16& out, float x) {
  unsigned bits = __float_as_uint(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  out.bits = (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}
#ifdef __CUDACC__
__device__ __forceinline__ float half_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ __forceinline__ unsigned short float_to_half(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
#endif
__device__ __forceinline__ float to_real(float16 x) { return half_to_float(x.bits); }
__device__ __forceinline__ void store(float16& out, float x) { out.bits = float_to_half(x); }

struct alignas(PACK_SIZE == 1 ? sizeof(STORED) : 16) Pack { STORED at[PACK_SIZE]; };

// The pack of a thread and the pixels of its block. ``last`` is ``first`` if the thread has no pack.
struct Share {
  int packs, pack, first, last;
  __device__ __forceinline__ Share(int block, int pixels, int pixels_per_block, int maps) {
    packs = maps / PACK_SIZE;
    pack = blockIdx.y * blockDim.x + threadIdx.x;
    first = block * pixels_per_block;
    last = pack < packs ? min(first + pixels_per_block, pixels) : first;
  }
  __device__ __forceinline__ long long index(int pixel) const { return (long long)pixel * packs + pack; }
};
// Runs over the pixels of a thread, AT_ONCE of them together, so that several loads are under way at the same time.
#define FOR_EACH_PIXEL_GROUP(share) \
  for (int start = share.first + (int)threadIdx.y; start < share.last; start += AT_ONCE * (int)blockDim.y)
#define FOR_EACH_PIXEL(share) \
  _Pragma("unroll") for (int k = 0, pixel = start; k < AT_ONCE; k++, pixel += (int)blockDim.y) if (pixel < share.last)
