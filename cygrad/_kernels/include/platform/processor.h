/* The widest vectors that the processor and the operating system support, on x86.

   The answers of __builtin_cpu_supports come from a library of the compiler, which MSVC lacks and which says no to
   everything where it is Zig's, so we ask the processor. The instruction for that takes microseconds on virtual machines;
   _compiled.c runs it once, before any other module is loaded. */

#ifndef CYGRAD_PROCESSOR_H
#define CYGRAD_PROCESSOR_H

#if defined(__x86_64__) || defined(__i386__) || ((defined(_M_X64) || defined(_M_IX86)) && !defined(_M_ARM64EC))
#define CYGRAD_X86

#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
extern int cygrad_vector_bits;

#ifdef CYGRAD_DEFINES_PROCESSOR

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define GET_FEATURES(leaf, registers) __cpuidex((int *)(registers), leaf, 0)
#define GET_SAVED_STATE() (unsigned)_xgetbv(0)
#else
#include <cpuid.h>
#define GET_FEATURES(leaf, r) __cpuid_count(leaf, 0, (r)[0], (r)[1], (r)[2], (r)[3])
static unsigned saved_state(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
#define GET_SAVED_STATE() saved_state()
#endif

int cygrad_vector_bits;

/* 512 with AVX-512 F, DQ and VL, 256 with AVX2, FMA and F16C, else 128. */
static int widest_vectors(void)
{
    enum { EBX = 1, ECX = 2 };
    const unsigned fma = 1u << 12, osxsave = 1u << 27, f16c = 1u << 29, avx2 = 1u << 5;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 31, saves_256 = 6, saves_512 = 0xe6;
    unsigned first[4], second[4], saved;
    GET_FEATURES(0, first);
    if (first[0] < 7) return 128;
    GET_FEATURES(1, first);
    GET_FEATURES(7, second);
    if (~first[ECX] & (fma | osxsave | f16c) || !(second[EBX] & avx2)) return 128;
    saved = GET_SAVED_STATE();
    if ((saved & saves_256) != saves_256) return 128;
#ifdef __APPLE__                /* which saves wider vectors from their first use on */
    saved |= saves_512;
#endif
    return (saved & saves_512) == saves_512 && !(~second[EBX] & avx512) ? 512 : 256;
}
#endif
#endif
#endif
