/* Atomic operations on integers of four or eight bytes, by the compiler's own means: C11's <stdatomic.h> is missing in
   most versions of MSVC.

   peek: some value that the integer had.  load: its value, in one order with `store`, `add` and `swap_if`.
   post: a store before which all earlier writes are visible.  add: returns the former value.
   swap_if: store `wanted` if the value is `expected`, and tell whether it was.
   order_writes: what was written before is visible before what is written afterwards. */

#ifndef CYGRAD_ATOMICS_H
#define CYGRAD_ATOMICS_H

#if defined(__GNUC__)

#define cygrad_peek(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define cygrad_load(place) __atomic_load_n(place, __ATOMIC_SEQ_CST)
#define cygrad_post(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
#define cygrad_store(place, value) __atomic_store_n(place, value, __ATOMIC_SEQ_CST)
#define cygrad_add(place, n) __atomic_fetch_add(place, n, __ATOMIC_SEQ_CST)
#define cygrad_swap_if(place, expected, wanted) __sync_bool_compare_and_swap(place, expected, wanted)
#define cygrad_order_writes() __atomic_thread_fence(__ATOMIC_RELEASE)

#elif defined(_MSC_VER)

#include <intrin.h>
#define CYGRAD_BY_SIZE(place, function, ...)                                                    \
    (sizeof *(place) == 8 ? (long long)function##64((volatile __int64 *)(place), __VA_ARGS__)   \
                          : (long long)function((volatile long *)(place), __VA_ARGS__))
#define cygrad_peek(place) \
    (sizeof *(place) == 8 ? *(const volatile __int64 *)(place) : (long long)*(const volatile long *)(place))
#if defined(_M_X64)                     /* stores are exchanges, so a plain load is in order with them */
#define cygrad_load(place) cygrad_peek(place)
#define cygrad_order_writes() _ReadWriteBarrier()
#else
#define cygrad_load(place) cygrad_add(place, 0)
#define cygrad_order_writes() __dmb(_ARM64_BARRIER_ISH)
#endif
#define cygrad_post(place, value) cygrad_store(place, value)
#define cygrad_store(place, value) ((void)CYGRAD_BY_SIZE(place, _InterlockedExchange, value))
#define cygrad_add(place, n) CYGRAD_BY_SIZE(place, _InterlockedExchangeAdd, n)
#define cygrad_swap_if(place, expected, wanted) \
    (CYGRAD_BY_SIZE(place, _InterlockedCompareExchange, wanted, expected) == (long long)(expected))

#else
#error "cygrad needs atomic operations: compile it with GCC, Clang or MSVC"
#endif
#endif
