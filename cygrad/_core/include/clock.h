/* Time for the profiler: ticks of the CPU's time stamp counter, which take a third of the time of a system call, and
 * nanoseconds of the system clock, to calibrate the ticks. */
#ifndef CYGRAD_CLOCK_H
#define CYGRAD_CLOCK_H

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>

static inline long long cygrad_nanoseconds(void)
{
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    /* Whole seconds apart: the product of the count and a thousand million would overflow within a day. */
    return count.QuadPart / frequency.QuadPart * 1000000000
         + count.QuadPart % frequency.QuadPart * 1000000000 / frequency.QuadPart;
}
#elif defined(__APPLE__)
#include <time.h>

/* CLOCK_MONOTONIC has microseconds there. */
static inline long long cygrad_nanoseconds(void) { return (long long)clock_gettime_nsec_np(CLOCK_UPTIME_RAW); }
#else
#include <time.h>

static inline long long cygrad_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

static inline long long cygrad_ticks(void)
{
#if defined(__GNUC__) && defined(__x86_64__)
    return (long long)__builtin_ia32_rdtsc();
#elif defined(_MSC_VER) && defined(_M_X64)
    return (long long)__rdtsc();
#elif defined(__GNUC__) && defined(__aarch64__)
    long long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return cygrad_nanoseconds();
#endif
}
#endif
