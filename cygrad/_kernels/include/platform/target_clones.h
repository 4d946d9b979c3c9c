/* Compiler settings for the loops in this directory.

   CYGRAD_CLONES before a function compiles it for several instruction sets, of which the loader picks one. Wheels are
   built for the oldest processors, and such a loop still uses wider vectors where available. Clones with 512-bit
   vectors add a third to the code size and are seldom faster; CYGRAD_WIDE_CLONES is for loops that benefit. CYGRAD_INLINE
   marks functions that must be inlined into such a loop instead of being called by it.

   The loader needs indirect functions, which glibc has and musl, macOS and Windows do not, and other files cannot call
   clones that Clang made. CYGRAD_CLONED tells that there are clones. Otherwise setup.py compiles modules with loops twice
   for x86, once with AVX2 and FMA, and defines CYGRAD_PROCESSORS as avx2 or plain; plain modules have no wider vectors.
   Fused multiply-adds are then allowed between CYGRAD_BEGIN_LOOPS and CYGRAD_END_LOOPS alone.

   CYGRAD_WIDEST is the widest vector, in bits, that a build uses: 128, 256 or 512 (the default). Narrower builds test the
   loops of other processors on one machine. CYGRAD_SUPPORTS(WIDTH) is the check at run time.

   CYGRAD_INDEPENDENT before a loop promises that no iteration reads what another one writes: pointers are equal or far
   apart. The compiler then needs neither a run-time check nor a fallback loop.

   CYGRAD_BEGIN_LOOPS and CYGRAD_END_LOOPS enclose loops that need more optimization than the rest of their module.
   Loops after CYGRAD_BEGIN_PLAIN_LOOPS contain no inner loops of few iterations that would need unrolling; they compile
   to two thirds of the size at the same speed. Loops after CYGRAD_BEGIN_CHOOSING_LOOPS select between results.
   Compilers compute both sides, as vector code must, only if they may ignore which operations raise floating-point
   flags; and without "thread-jumps", GCC does not split what several selections share. Loops of the first kind may
   select, too. */

#ifndef CYGRAD_CLONES_H
#define CYGRAD_CLONES_H

#include <Python.h>
#include "platform/processor.h"

#if defined(CYGRAD_PROCESSORS) && !defined(__AVX2__)
#undef CYGRAD_WIDEST
#define CYGRAD_WIDEST 128
#elif !defined(CYGRAD_WIDEST)
#define CYGRAD_WIDEST 512
#endif
#ifdef CYGRAD_X86
#define CYGRAD_SUPPORTS(WIDTH) (CYGRAD_WIDEST >= (WIDTH) && cygrad_vector_bits >= (WIDTH))
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(CYGRAD_PROCESSORS) && CYGRAD_WIDEST >= 256
#if __GNUC__ >= 12          /* with fused multiply-add for vectors of all lengths, so that the ends of rows round alike */
#define CYGRAD_AVX2 "arch=x86-64-v3"
#define CYGRAD_AVX512 "arch=x86-64-v4"
#else
#define CYGRAD_AVX2 "avx2"
#define CYGRAD_AVX512 "avx512f"
#endif
#define CYGRAD_CLONED
#define CYGRAD_CLONES __attribute__((target_clones(CYGRAD_AVX2, "default")))
#if CYGRAD_WIDEST >= 512
#define CYGRAD_WIDE_CLONES __attribute__((target_clones(CYGRAD_AVX512, CYGRAD_AVX2, "default")))
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
#pragma clang diagnostic ignored "-Wpass-failed"        /* loops that may be vectorized, but cannot */
#define CYGRAD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CYGRAD_INDEPENDENT _Pragma("GCC ivdep")
#elif defined(_MSC_VER)
#define CYGRAD_INDEPENDENT __pragma(loop(ivdep))
#else
#define CYGRAD_INDEPENDENT
#endif

/* Loops of few instructions take twice as long if they begin at the end of a cache line. */
#if defined(__GNUC__) && !defined(__clang__)    /* the rest of -O3 costs size and saves no time */
#define CYGRAD_OPTIMIZE(...) \
    _Pragma("GCC push_options") CYGRAD_FUSED CYGRAD_PRAGMA(GCC optimize( \
        "O2", "expensive-optimizations", "move-loop-invariants", "tree-vectorize", "vect-cost-model=dynamic", __VA_ARGS__))
#ifdef CYGRAD_PROCESSORS
#define CYGRAD_FUSED _Pragma("GCC optimize(\"fp-contract=fast\")")
#else
#define CYGRAD_FUSED
#endif
#define CYGRAD_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define CYGRAD_BEGIN_LOOPS CYGRAD_OPTIMIZE("align-loops=32", "peel-loops", "no-trapping-math", "no-thread-jumps")
#define CYGRAD_BEGIN_PLAIN_LOOPS CYGRAD_OPTIMIZE("align-loops=32")
#define CYGRAD_BEGIN_CHOOSING_LOOPS CYGRAD_OPTIMIZE("align-loops=32", "no-trapping-math", "no-thread-jumps")
#define CYGRAD_END_LOOPS _Pragma("GCC pop_options")
#elif defined(__clang__) && defined(__FMA__)    /* where the build forbids fused multiply-adds elsewhere (setup.py) */
#define CYGRAD_BEGIN_LOOPS _Pragma("float_control(push)") _Pragma("STDC FP_CONTRACT ON")
#define CYGRAD_BEGIN_PLAIN_LOOPS CYGRAD_BEGIN_LOOPS
#define CYGRAD_BEGIN_CHOOSING_LOOPS CYGRAD_BEGIN_LOOPS
#define CYGRAD_END_LOOPS _Pragma("float_control(pop)")
#elif defined(_MSC_VER)
#define CYGRAD_BEGIN_LOOPS __pragma(fp_contract(on))
#define CYGRAD_BEGIN_PLAIN_LOOPS CYGRAD_BEGIN_LOOPS
#define CYGRAD_BEGIN_CHOOSING_LOOPS CYGRAD_BEGIN_LOOPS
#define CYGRAD_END_LOOPS __pragma(fp_contract(off))
#else
#define CYGRAD_BEGIN_LOOPS
#define CYGRAD_BEGIN_PLAIN_LOOPS
#define CYGRAD_BEGIN_CHOOSING_LOOPS
#define CYGRAD_END_LOOPS
#endif

/* After the beginning of loops: products are rounded before they are added, as NumPy does. */
#if defined(__clang__)
#define CYGRAD_ROUND_PRODUCTS _Pragma("STDC FP_CONTRACT OFF")
#elif defined(__GNUC__) && (defined(CYGRAD_PROCESSORS) || defined(__aarch64__))
#define CYGRAD_ROUND_PRODUCTS _Pragma("GCC optimize(\"fp-contract=off\")")
#elif defined(_MSC_VER)
#define CYGRAD_ROUND_PRODUCTS __pragma(fp_contract(off))
#else
#define CYGRAD_ROUND_PRODUCTS
#endif

#endif
