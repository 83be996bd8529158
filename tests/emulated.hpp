// Runs a CUDA block on the CPU: every thread is a fiber that runs until it has to wait for the others.
#include <immintrin.h>
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

using std::min;
struct Three { int x, y, z; };
static Three threadIdx, blockIdx, blockDim, gridDim;
static char* memory;

namespace fibers {
struct Fiber { ucontext_t context; std::vector<char> stack; Three index; bool done; long warp_steps; };
static std::vector<Fiber> all;
static std::vector<long> warp_arrived;  // number of arrivals of the lanes of each warp at its meetings
static long arrived, live, meetings;
static int current;
static ucontext_t scheduler;
static std::vector<char> slots[2];
static void (*body)();

static void yield() { swapcontext(&all[current].context, &scheduler); }
static void start() {
  body();
  all[current].done = true;
  live--;
  swapcontext(&all[current].context, &scheduler);
}
static int lanes(int warp) {
  int left = (int)all.size() - 32 * warp;
  return left < 32 ? left : 32;
}
// All lanes of a warp must call this; no lane may have returned before.
static void meet_warp() {
  int warp = current / 32;
  long target = ++all[current].warp_steps * lanes(warp);
  warp_arrived[warp]++;
  while (warp_arrived[warp] < target) yield();
}
static void meet_block() {
  long meeting = meetings;
  if (++arrived >= live) { arrived = 0; meetings++; }
  while (meeting == meetings) yield();
}
template <typename T> static T from(T value, int lane) {
  std::vector<char>& slot = slots[all[current].warp_steps & 1];  // two slots alternate, because no lane is two meetings ahead
  memcpy(&slot[16 * current], &value, sizeof(T));
  meet_warp();
  memcpy(&value, &slot[16 * (current / 32 * 32 + lane)], sizeof(T));
  return value;
}
static void run_block() {
  int threads = blockDim.x * blockDim.y * blockDim.z;
  all.resize(threads);
  warp_arrived.assign(threads / 32 + 1, 0);
  for (auto& slot : slots) slot.assign(16 * (threads + 32), 0);
  arrived = meetings = 0;
  live = threads;
  for (int i = 0; i < threads; i++) {
    Fiber& fiber = all[i];
    fiber.stack.resize(256 * 1024);
    fiber.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    fiber.done = false;
    fiber.warp_steps = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, start, 0);
  }
  while (live)
    for (current = 0; current < threads; current++)
      if (!all[current].done) {
        threadIdx = all[current].index;
        swapcontext(&scheduler, &all[current].context);
      }
}
}  // namespace fibers

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
inline void __syncthreads() { fibers::meet_block(); }
template <typename T> T __shfl_sync(unsigned, T x, int lane) { return fibers::from(x, lane & 31); }
template <typename T> T __shfl_xor_sync(unsigned, T x, int mask) { return fibers::from(x, (fibers::current & 31) ^ mask); }
inline unsigned __ballot_sync(unsigned, bool x) {
  unsigned all = 0;
  for (int lane = 0; lane < 32; lane++) all |= (unsigned)fibers::from((int)x, lane) << lane;
  return all;
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
template <typename To, typename From> To bits_of(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
// a GPU has only one NaN, with a positive sign
inline unsigned __float_as_uint(float x) { return std::isnan(x) ? 0x7fffffffu : bits_of<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return bits_of<float>(x); }
inline float half_to_float(unsigned short bits) { return _cvtsh_ss(bits); }
inline unsigned short float_to_half(float x) { return _cvtss_sh(x, 0); }
inline int __double2hiint(double x) {
  return std::isnan(x) ? 0x7fffffff : (int)(bits_of<unsigned long long>(x) >> 32);
}
inline int __double2loint(double x) { return (int)bits_of<unsigned long long>(x); }
inline double __hiloint2double(int hi, int lo) {
  return bits_of<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, int shift) { return hi << shift | lo >> (32 - shift); }

namespace fibers {
static void** arguments;
template <typename... A, size_t... I> static void call(void (*kernel)(A...), std::index_sequence<I...>) {
  kernel(*(A*)arguments[I]...);
}
template <typename... A> static void call(void (*kernel)(A...)) { call(kernel, std::index_sequence_for<A...>()); }
}  // namespace fibers

#define EMULATED(kernel) \
  extern "C" void launch_##kernel(void** arguments, int* grid, int* block, int shared) { \
    fibers::arguments = arguments; \
    fibers::body = [] { fibers::call(kernel); }; \
    gridDim = {grid[0], grid[1], grid[2]}; \
    blockDim = {block[0], block[1], block[2]}; \
    std::vector<double> dynamic(shared / 8 + 1); \
    memory = (char*)dynamic.data(); \
    for (int z = 0; z < grid[2]; z++) \
      for (int y = 0; y < grid[1]; y++) \
        for (int x = 0; x < grid[0]; x++) { \
          blockIdx = {x, y, z}; \
          fibers::run_block(); \
        } \
  }
