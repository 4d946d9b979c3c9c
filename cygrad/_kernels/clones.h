/* How the loops beside this file are compiled.

   CYGRAD_CLONES before a function compiles it for several instruction sets; the loader picks one. The wheel is built
   for the oldest processors, and a loop so marked still uses the wider vectors of others. Vectors of 512 bits are a
   third of the code again and seldom faster: CYGRAD_WIDE_CLONES is for loops that they speed up. Where compiler,
   processor or C library do not know how, there is one plain version. CYGRAD_INLINE marks what must become part of
   such a function, not be called by it.

   CYGRAD_WIDEST is the widest vector, in bits, that a build uses: 128, 256 or 512 (the default). The narrower builds test
   the loops of other processors on one machine. CYGRAD_SUPPORTS(WIDTH, FEATURE) is the check at run time.

   CYGRAD_INDEPENDENT before a loop promises that no turn reads what another writes: pointers are equal or far apart.
   The compiler then need not test them at run time, nor have a second loop ready.

   CYGRAD_BEGIN_LOOPS and CYGRAD_END_LOOPS stand around loops, which are compiled for speed in modules that are
   compiled for size. Those that stand after CYGRAD_BEGIN_PLAIN_LOOPS hold no others of few turns, which would have to be
   written out, and take two thirds of the room as fast. Those after CYGRAD_BEGIN_CHOOSING_LOOPS choose between results,
   which compilers compute both, as vectors have to, only if they need not care which operations raise flags; without
   "thread-jumps", GCC does not tear apart what several choices have in common. The first kind may choose, too. */

#ifndef CYGRAD_CLONES_H
#define CYGRAD_CLONES_H

#include <Python.h>

#ifndef CYGRAD_WIDEST
#define CYGRAD_WIDEST 512
#endif
#if defined(__GNUC__) && defined(__x86_64__)
#define CYGRAD_SUPPORTS(WIDTH, FEATURE) (CYGRAD_WIDEST >= (WIDTH) && __builtin_cpu_supports(FEATURE))
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && CYGRAD_WIDEST >= 256
#if __GNUC__ >= 12          /* AVX2, with products and sums in one instruction */
#define CYGRAD_AVX2 "arch=x86-64-v3"
#else
#define CYGRAD_AVX2 "avx2"
#endif
#define CYGRAD_CLONES __attribute__((target_clones(CYGRAD_AVX2, "default")))
#if CYGRAD_WIDEST >= 512
#define CYGRAD_WIDE_CLONES __attribute__((target_clones("avx512f", CYGRAD_AVX2, "default")))
#else
#define CYGRAD_WIDE_CLONES CYGRAD_CLONES
#endif
#else
#define CYGRAD_CLONES
#define CYGRAD_WIDE_CLONES
#endif

#if defined(__GNUC__)
#define CYGRAD_INLINE static inline __attribute__((always_inline))
#else
#define CYGRAD_INLINE static inline
#endif

#if defined(__clang__)
#define CYGRAD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CYGRAD_INDEPENDENT _Pragma("GCC ivdep")
#elif defined(_MSC_VER)
#define CYGRAD_INDEPENDENT __pragma(loop(ivdep))
#else
#define CYGRAD_INDEPENDENT
#endif

/* Loops of few instructions take twice as long where they begin at the end of a line of the cache. */
#if defined(__GNUC__) && !defined(__clang__)    /* what else -O3 does takes room and no time off */
#define CYGRAD_OPTIMIZE(...) \
    _Pragma("GCC push_options") CYGRAD_PRAGMA(GCC optimize( \
        "O2", "expensive-optimizations", "move-loop-invariants", "tree-vectorize", "vect-cost-model=dynamic", __VA_ARGS__))
#define CYGRAD_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define CYGRAD_BEGIN_LOOPS CYGRAD_OPTIMIZE("align-loops=32", "peel-loops", "no-trapping-math", "no-thread-jumps")
#define CYGRAD_BEGIN_PLAIN_LOOPS CYGRAD_OPTIMIZE("align-loops=32")
#define CYGRAD_BEGIN_CHOOSING_LOOPS CYGRAD_OPTIMIZE("align-loops=32", "no-trapping-math", "no-thread-jumps")
#define CYGRAD_END_LOOPS _Pragma("GCC pop_options")
#else
#define CYGRAD_BEGIN_LOOPS
#define CYGRAD_BEGIN_PLAIN_LOOPS
#define CYGRAD_BEGIN_CHOOSING_LOOPS
#define CYGRAD_END_LOOPS
#endif

#endif
