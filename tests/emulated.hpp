// Runs a CUDA block on the CPU: every thread is a fiber that runs until it has to wait for the others.
// Every kernel is compiled with this file, so it uses no containers of the standard library: they would take half of the time.
#include <setjmp.h>
#include <ucontext.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

template <typename T> T min(T a, T b) { return b < a ? b : a; }
struct Three { int x, y, z; };
static Three threadIdx, blockIdx, blockDim, gridDim;
static char* memory;

namespace fibers {
const int max_threads = 1024, stack_size = 256 * 1024;
struct Fiber {
  char* stack;         // not initialised, so that only the used pages take memory
  ucontext_t context;  // only to start, because switching between contexts is a system call
  jmp_buf point;       // where it waits
  Three index;
  bool done;
  long warp_steps;
};
static Fiber all[max_threads];  // they stay for the next block, which may have fewer threads
static long warp_arrived[max_threads / 32];  // number of arrivals of the lanes of each warp at its meetings
static long arrived, live, meetings;
static int current, threads;
static jmp_buf scheduler;
static char slots[2][16 * max_threads];
static void (*body)();

static void yield() {
  if (!_setjmp(all[current].point)) _longjmp(scheduler, 1);
}
static void start() {
  while (true) {
    body();
    all[current].done = true;
    live--;
    yield();
  }
}
static void resume(Fiber& fiber) {
  if (_setjmp(scheduler)) return;
  if (fiber.stack) _longjmp(fiber.point, 1);
  fiber.stack = (char*)malloc(stack_size);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = stack_size;
  fiber.context.uc_link = nullptr;  // the function does not return
  makecontext(&fiber.context, start, 0);
  setcontext(&fiber.context);
}
static int lanes(int warp) {
  int left = threads - 32 * warp;
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
  char* slot = slots[all[current].warp_steps & 1];  // two slots alternate, because no lane is two meetings ahead
  memcpy(&slot[16 * current], &value, sizeof(T));
  meet_warp();
  memcpy(&value, &slot[16 * (current / 32 * 32 + lane)], sizeof(T));
  return value;
}
static void run_block() {
  threads = blockDim.x * blockDim.y * blockDim.z;
  if (threads > max_threads) abort();
  memset(warp_arrived, 0, sizeof warp_arrived);
  memset(slots, 0, sizeof slots);
  arrived = meetings = 0;
  live = threads;
  for (int i = 0; i < threads; i++) {
    Fiber& fiber = all[i];
    fiber.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    fiber.done = false;
    fiber.warp_steps = 0;
  }
  while (live)
    for (current = 0; current < threads; current++)
      if (!all[current].done) {
        threadIdx = all[current].index;
        resume(all[current]);
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
typedef short Halves __attribute__((vector_size(16)));  // <immintrin.h> is large, and not every compiler has _Float16
typedef float Floats __attribute__((vector_size(16)));
inline float half_to_float(unsigned short bits) { return __builtin_ia32_vcvtph2ps(Halves{(short)bits})[0]; }
inline unsigned short float_to_half(float x) { return __builtin_ia32_vcvtps2ph(Floats{x}, 0)[0]; }
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
    memory = (char*)calloc(shared + 8, 1); \
    for (int z = 0; z < grid[2]; z++) \
      for (int y = 0; y < grid[1]; y++) \
        for (int x = 0; x < grid[0]; x++) { \
          blockIdx = {x, y, z}; \
          fibers::run_block(); \
        } \
    free(memory); \
  }
