// Support code to run CUDA C++ on a CPU: the language's keywords, types and functions, and the threads of a block.
#pragma once
#ifdef __APPLE__
#define _XOPEN_SOURCE 700  // for ucontext
#define _DARWIN_C_SOURCE
#endif
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>
#include <setjmp.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static thread_local
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __restrict__
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define CUDA_ON_CPU 1

namespace cuda_on_cpu {

// --- Threads -------------------------------------------------------------------------------------

struct Index {
  unsigned x, y, z;
};

enum Wait { RUNNING, AT_BARRIER, IN_WARP, DONE };

struct Copy {  // of 16 bytes, or of zeros, that the thread has not waited for
  void* to;
  const void* from;
  unsigned group;
};

struct Thread {
  ucontext_t context;  // entry point; later switches use longjmp, which needs no system call
  jmp_buf place;
  bool is_begun;
  std::vector<char> stack;
  Index index;
  int wait;
  unsigned mask;        // of the warp operation it waits in
  uint64_t given;       // value passed to the other lanes
  uint64_t seen[32];    // values passed by the lanes
  unsigned present;     // lanes that passed one
  int predicate;
  std::vector<Copy> copies;
  unsigned groups;      // of copies that have ended
};

struct Failure {
  std::string text;
};

inline thread_local Index thread_index, block_index;
inline thread_local Index block_dim, grid_dim;
inline thread_local Thread* current = nullptr;
inline thread_local jmp_buf scheduler;
inline thread_local unsigned char* shared_memory = nullptr;
inline thread_local int barrier_predicate[3];  // count, and, or
inline thread_local std::string failure;
inline thread_local void (*body)(void*) = nullptr;
inline thread_local void* body_argument = nullptr;

inline unsigned linear(const Index& i) { return i.x + block_dim.x * (i.y + block_dim.y * i.z); }

inline void fail(const std::string& text) { throw Failure{text}; }

__attribute__((noinline)) inline void leave() {
  if (!_setjmp(current->place)) _longjmp(scheduler, 1);
}

__attribute__((noinline)) inline void resume(Thread& t) {
  current = &t;
  thread_index = t.index;
  if (!_setjmp(scheduler)) {
    if (t.is_begun) _longjmp(t.place, 1);
    t.is_begun = true;
    setcontext(&t.context);
  }
  current = nullptr;
}

inline void yield(int why) {
  if (!current) fail("a barrier in a kernel whose text has none: the stand-in has not made fibers");
  current->wait = why;
  leave();
}

// A fiber is reused as a thread of one block after another.
inline void enter() {
  for (;;) {
    try {
      body(body_argument);
    } catch (const Failure& f) {
      failure = f.text;
    }
    if (failure.empty() && !current->copies.empty()) failure = "a thread ends before what it copies has arrived";
    current->wait = DONE;
    leave();
  }
}

inline void release_barrier(std::vector<Thread*>& threads) {
  int count = 0, all = 1, any = 0;
  for (auto t : threads)
    if (t->wait == AT_BARRIER) count += !!t->predicate, all &= !!t->predicate, any |= !!t->predicate;
  barrier_predicate[0] = count, barrier_predicate[1] = all, barrier_predicate[2] = any;
  for (auto t : threads)
    if (t->wait == AT_BARRIER) t->wait = RUNNING;
}

// Resumes the lanes of a warp operation once every lane in its mask that is still alive has reached it.
inline bool release_warp(Thread** lanes, unsigned count) {
  bool released = false;
  for (unsigned i = 0; i < count; i++) {
    if (lanes[i]->wait != IN_WARP) continue;
    unsigned mask = lanes[i]->mask, present = 0;
    bool complete = true;
    for (unsigned j = 0; j < count; j++) {
      if (!(mask >> j & 1) || lanes[j]->wait == DONE) continue;
      if (lanes[j]->wait == IN_WARP && lanes[j]->mask == mask) present |= 1u << j;
      else complete = false;
    }
    if (!complete) continue;
    if (!(mask >> i & 1)) {
      failure = "a thread calls a warp function with a mask that leaves it out";
      return false;
    }
    for (unsigned j = 0; j < count; j++) {
      if (!(present >> j & 1)) continue;
      for (unsigned k = 0; k < count; k++) lanes[j]->seen[k] = lanes[k]->given;
      lanes[j]->present = present;
    }
    for (unsigned j = 0; j < count; j++)
      if (present >> j & 1) lanes[j]->wait = RUNNING;
    released = true;
  }
  return released;
}

inline thread_local std::vector<std::unique_ptr<Thread>> pool;

inline void run_fibers(unsigned count, bool backwards) {
  const size_t stack = 64 * 1024;
  while (pool.size() < count) {
    pool.emplace_back(new Thread);
    Thread& t = *pool.back();
    t.stack.resize(stack);
    t.is_begun = false;
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.data();
    t.context.uc_stack.ss_size = stack;
    t.context.uc_link = nullptr;
    makecontext(&t.context, enter, 0);
  }
  std::vector<Thread*> threads(count);
  for (unsigned i = 0; i < count; i++) {
    threads[i] = pool[i].get();
    threads[i]->index = {i % block_dim.x, i / block_dim.x % block_dim.y, i / block_dim.x / block_dim.y};
    threads[i]->wait = RUNNING;
    threads[i]->copies.clear();
    threads[i]->groups = 0;
  }
  for (;;) {
    bool ran = false, alive = false, all_at_barrier = true;
    for (unsigned i = 0; i < count; i++) {
      Thread& t = *threads[backwards ? count - 1 - i : i];
      if (t.wait == RUNNING) {
        resume(t);
        ran = true;
        if (!failure.empty()) return;
      }
      if (t.wait != DONE) alive = true;
      if (t.wait != DONE && t.wait != AT_BARRIER) all_at_barrier = false;
    }
    if (!alive) return;
    if (all_at_barrier) {
      release_barrier(threads);
      continue;
    }
    bool released = false;
    for (unsigned first = 0; first < count; first += 32)
      released |= release_warp(&threads[first], count - first < 32 ? count - first : 32);
    if (!failure.empty()) return;
    if (!ran && !released) {
      failure = "the threads of a block wait for each other: some are at __syncthreads(), some in a warp function";
      return;
    }
  }
}

inline thread_local unsigned launches = 0;

// Runs `call` for every thread of the grid, on fibers if threads meet. Block order changes from launch to launch, thread
// order from block to block and every second launch, so that results that depend on them are not taken for
// deterministic ones.
inline const char* run(void (*call)(void*), void* argument, const unsigned* sizes, size_t shared, bool meets) {
  grid_dim = {sizes[0], sizes[1], sizes[2]};
  block_dim = {sizes[3], sizes[4], sizes[5]};
  body = call, body_argument = argument;
  failure.clear();
  std::vector<unsigned char> room(shared + 64);
  shared_memory = room.data() + (64 - (uintptr_t)room.data() % 64) % 64;
  const unsigned count = block_dim.x * block_dim.y * block_dim.z;
  const uint64_t blocks = (uint64_t)grid_dim.x * grid_dim.y * grid_dim.z;
  const bool last_first = launches % 2, turned = launches / 2 % 2;
  launches++;
  for (uint64_t k = 0; k < blocks; k++) {
    const uint64_t b = last_first ? blocks - 1 - k : k;
    block_index = {(unsigned)(b % grid_dim.x), (unsigned)(b / grid_dim.x % grid_dim.y),
                   (unsigned)(b / grid_dim.x / grid_dim.y)};
    memset(shared_memory, 0xFF, shared);
    const bool backwards = b % 2 != turned;
    if (meets) {
      run_fibers(count, backwards);
    } else {
      try {
        for (unsigned j = 0; j < count; j++) {
          unsigned i = backwards ? count - 1 - j : j;
          thread_index = {i % block_dim.x, i / block_dim.x % block_dim.y, i / block_dim.x / block_dim.y};
          call(argument);
        }
      } catch (const Failure& f) {
        failure = f.text;
      }
    }
    if (!failure.empty()) {
      pool.clear();  // the other threads are suspended inside the kernel
      return failure.c_str();
    }
  }
  return nullptr;
}

// --- Arguments of a RawKernel --------------------------------------------------------------------

struct Argument {
  const void* value;
  int64_t size;
  int32_t kind;  // 'p' a pointer, 'i' an integer, 'f' a float, 'b' a bool, 'c' a complex, 's' something else
};

template <typename P>
constexpr int kind_of() {
  using T = std::remove_cv_t<P>;
  if (std::is_pointer<T>::value) return 'p';
  if (std::is_same<T, bool>::value) return 'b';
  if (std::is_floating_point<T>::value) return 'f';
  if (std::is_integral<T>::value || std::is_enum<T>::value) return 'i';
  return 's';
}

template <typename P>
void check_one(const char* name, int i, const Argument& given) {
  int kind = kind_of<P>();  // addresses may be passed as integers
  bool same_kind = kind == 's' || given.kind == 's' || kind == given.kind || (kind == 'p' && given.kind == 'i');
  if (sizeof(P) != (size_t)given.size || !same_kind)
    fail(std::string(name) + ": argument " + std::to_string(i) + " is of kind '" + (char)given.kind + "' with " +
         std::to_string(given.size) + " bytes; the parameter is of kind '" + (char)kind_of<P>() + "' with " +
         std::to_string(sizeof(P)));
}

template <typename... P>
struct Kernel {
  void (*function)(P...);
  const Argument* arguments;
  template <size_t... I>
  void call(std::index_sequence<I...>) {
    function(*(std::remove_cv_t<P>*)arguments[I].value...);
  }
  static void each(void* self) { ((Kernel*)self)->call(std::index_sequence_for<P...>()); }
  template <size_t... I>
  void check(const char* name, std::index_sequence<I...>) {
    int unused[] = {0, (check_one<P>(name, I, arguments[I]), 0)...};
    (void)unused;
  }
};

template <typename... P>
const char* launch(const char* name, void (*function)(P...), const Argument* arguments, int count,
                   const unsigned* sizes, size_t shared, bool meets) {
  Kernel<P...> kernel{function, arguments};
  try {
    if (count != (int)sizeof...(P))
      fail(std::string(name) + " takes " + std::to_string(sizeof...(P)) + " arguments, not " + std::to_string(count));
    kernel.check(name, std::index_sequence_for<P...>());
  } catch (const Failure& f) {
    failure = f.text;
    return failure.c_str();
  }
  return run(&Kernel<P...>::each, &kernel, sizes, shared, meets);
}

}  // namespace cuda_on_cpu

#define threadIdx cuda_on_cpu::thread_index
#define blockIdx cuda_on_cpu::block_index
#define blockDim cuda_on_cpu::block_dim
#define gridDim cuda_on_cpu::grid_dim
static const int warpSize = 32;

// --- Barriers and warps ----------------------------------------------------------------------------

inline void __syncthreads() { cuda_on_cpu::yield(cuda_on_cpu::AT_BARRIER); }
inline int cuda_on_cpu_vote(int predicate, int which) {
  cuda_on_cpu::current->predicate = predicate;
  cuda_on_cpu::yield(cuda_on_cpu::AT_BARRIER);
  return cuda_on_cpu::barrier_predicate[which];
}
inline int __syncthreads_count(int predicate) { return cuda_on_cpu_vote(predicate, 0); }
inline int __syncthreads_and(int predicate) { return cuda_on_cpu_vote(predicate, 1); }
inline int __syncthreads_or(int predicate) { return cuda_on_cpu_vote(predicate, 2); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

namespace cuda_on_cpu {
inline unsigned lane() { return linear(thread_index) & 31; }
inline Thread& meet(unsigned mask, uint64_t given) {
  if (!current) fail("a warp function in a kernel whose text has none");
  current->mask = mask;
  current->given = given;
  yield(IN_WARP);
  return *current;
}
template <typename T>
T shuffle(unsigned mask, T value, int source, bool inside) {
  static_assert(sizeof(T) <= 8, "shuffles take at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  Thread& t = meet(mask, bits);
  if (!inside || source < 0 || source > 31) return value;
  T result;
  memcpy((void*)&result, &t.seen[source], sizeof(T));
  return result;
}
}  // namespace cuda_on_cpu

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  int lane = cuda_on_cpu::lane();
  return cuda_on_cpu::shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), true);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = cuda_on_cpu::lane(), source = lane + (int)delta;
  return cuda_on_cpu::shuffle(mask, value, source, (lane & (width - 1)) + (int)delta < width);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = cuda_on_cpu::lane();
  return cuda_on_cpu::shuffle(mask, value, lane - (int)delta, (lane & (width - 1)) >= (int)delta);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  int lane = cuda_on_cpu::lane(), source = lane ^ lane_mask;
  return cuda_on_cpu::shuffle(mask, value, source, (source & ~(width - 1)) <= (lane & ~(width - 1)));
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { cuda_on_cpu::meet(mask, 0); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  auto& t = cuda_on_cpu::meet(mask, predicate != 0);
  unsigned result = 0;
  for (int i = 0; i < 32; i++)
    if (t.present >> i & 1 && t.seen[i]) result |= 1u << i;
  return result;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return !__ballot_sync(mask, !predicate); }
inline unsigned __activemask() {
  unsigned first = cuda_on_cpu::linear(cuda_on_cpu::thread_index) & ~31u;
  unsigned count = cuda_on_cpu::block_dim.x * cuda_on_cpu::block_dim.y * cuda_on_cpu::block_dim.z - first;
  return count >= 32 ? 0xFFFFFFFFu : (1u << count) - 1;
}
template <typename T, typename F>
T cuda_on_cpu_reduce(unsigned mask, T value, F combine) {
  auto& t = cuda_on_cpu::meet(mask, (uint64_t)(typename std::make_unsigned<T>::type)value);
  T result = value;
  bool first = true;
  for (int i = 0; i < 32; i++)
    if (t.present >> i & 1) result = first ? (T)t.seen[i] : combine(result, (T)t.seen[i]), first = false;
  return result;
}
template <typename T>
T __reduce_add_sync(unsigned mask, T v) { return cuda_on_cpu_reduce(mask, v, [](T a, T b) { return (T)(a + b); }); }
template <typename T>
T __reduce_max_sync(unsigned mask, T v) { return cuda_on_cpu_reduce(mask, v, [](T a, T b) { return a > b ? a : b; }); }
template <typename T>
T __reduce_min_sync(unsigned mask, T v) { return cuda_on_cpu_reduce(mask, v, [](T a, T b) { return a < b ? a : b; }); }

#include "cuda_types.h"
#include "cuda_math.h"
#include "cuda_arrays.h"
#include "cuda_tensor_cores.h"
