/* Time for the profiler: ticks of the CPU's time stamp counter, which take a third of the time of a system call, and
 * nanoseconds of the system clock, to calibrate the ticks. */
#ifndef CYGRAD_CLOCK_H
#define CYGRAD_CLOCK_H

#if defined(_WIN32)
#include <windows.h>

static inline long long cygrad_nanoseconds(void)
{
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    return (long long)((double)count.QuadPart * 1e9 / (double)frequency.QuadPart);
}
#else
#include <time.h>

static inline long long cygrad_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

static inline long long cygrad_ticks(void)
{
#if defined(__GNUC__) && defined(__x86_64__)
    return (long long)__builtin_ia32_rdtsc();
#elif defined(__GNUC__) && defined(__aarch64__)
    long long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return cygrad_nanoseconds();
#endif
}
#endif
