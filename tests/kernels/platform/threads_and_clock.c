/* The thread pool, its lock, the clock and the search for functions of loaded libraries, without Python: a program for
   systems on which the tests do not run. It says what fails, and ends with 1 if anything does. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef ptrdiff_t Py_ssize_t;

#include "platform/thread_pool.h"

enum { LONGEST = 5000, MANY = 4 };

static int failures;

static void check(int holds, const char *what)
{
    if (holds) return;
    printf("FAILED: %s\n", what);
    failures++;
}

/* -- each item once ---------------------------------------------------------------------------------------- */

static int touched[LONGEST];

static void touch(void *context, Py_ssize_t first, Py_ssize_t n)
{
    (void)context;
    for (Py_ssize_t i = first; i < first + n; i++) touched[i]++;
}

static void check_items(void)
{
    int once = 1;
    for (int round = 0; round < 3000; round++) {
        const Py_ssize_t n = 1 + (round * 7919) % LONGEST, piece = 1 + round % 13;
        memset(touched, 0, sizeof touched);
        cygrad_share(touch, NULL, n, piece, 1 + round % MANY);
        for (Py_ssize_t i = 0; i < LONGEST; i++) once &= touched[i] == (i < n);
    }
    check(once, "each item is processed once");
}

/* -- at the same time -------------------------------------------------------------------------------------- */

static int begun;

/* Ends once another thread has begun, or after two seconds. */
static void meet(void *context, Py_ssize_t first, Py_ssize_t n)
{
    const long long end = cygrad_nanoseconds() + 2000000000;
    (void)first, (void)n;
    cygrad_add(&begun, 1);
    while (cygrad_load(&begun) < 2 && cygrad_nanoseconds() < end) cygrad_yield();
    if (cygrad_load(&begun) < 2) *(int *)context = 0;
}

static void check_company(void)
{
    int met = 1;
    begun = 0;
    cygrad_share(meet, &met, 2, 1, 2);
    check(met, "two threads work at the same time");
}

/* Threads sleep after two milliseconds without work; a bell that nobody hears leaves the caller alone. */
static void check_sleep(void)
{
    for (int round = 0; round < 20; round++) {
        const long long end = cygrad_nanoseconds() + 5000000;
        while (cygrad_nanoseconds() < end) cygrad_yield();
        check_company();
    }
}

/* -- locks ------------------------------------------------------------------------------------------------- */

static cygrad_lock lock = CYGRAD_LOCK_INIT;
static long long counted;

static void count_up(void *context, Py_ssize_t first, Py_ssize_t n)
{
    (void)context, (void)first;
    for (Py_ssize_t i = 0; i < n; i++) {
        cygrad_acquire(&lock);
        counted++;
        cygrad_release_lock(&lock);
    }
}

static void check_locks(void)
{
    cygrad_lock made;
    cygrad_share(count_up, NULL, 200000, 100, MANY);
    check(counted == 200000, "a lock admits one thread at a time");
    cygrad_make_lock(&made);
    check(cygrad_acquire_if_free(&made), "a lock is free at first");
    cygrad_release_lock(&made);
    check(cygrad_acquire_if_free(&made), "a lock can be had again");
    cygrad_release_lock(&made);
}

/* -- work within work, and within a fork ------------------------------------------------------------------- */

static void share_again(void *context, Py_ssize_t first, Py_ssize_t n)
{
    (void)context;
    for (Py_ssize_t i = first; i < first + n; i++) cygrad_share(touch, NULL, 100, 10, MANY);
}

static void check_nesting(void)
{
    memset(touched, 0, sizeof touched);
    cygrad_share(share_again, NULL, 1, 1, 1);
    check(touched[0] == 1 && touched[99] == 1 && touched[100] == 0, "a chunk may share its work");
}

#ifdef CYGRAD_FORKS
#include <sys/wait.h>
#include <unistd.h>

static void check_forks(void)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        failures = 0;
        check_company();
        _exit(failures);
    }
    waitpid(child, &status, 0);
    check(status == 0, "a forked process has threads of its own");
    check_company();
}
#else
static void check_forks(void) {}
#endif

/* -- the clock --------------------------------------------------------------------------------------------- */

static void check_clock(void)
{
    long long last = cygrad_nanoseconds(), now = last, steps = 0;
    const long long begin = last, tick = cygrad_ticks();
    while (now - begin < 20000000) {
        now = cygrad_nanoseconds();
        check(now >= last, "the clock does not go back");
        steps += now > last;
        last = now;
    }
    check(steps > 1000, "the clock has steps of less than 20 microseconds");
    check(cygrad_ticks() > tick, "ticks rise");
}

/* -- libraries --------------------------------------------------------------------------------------------- */

static void check_libraries(void)
{
#if defined(_WIN32)
    const char *here = "kernel32.dll", *name = "GetTickCount";
#elif defined(__APPLE__)
    const char *here = "/usr/lib/libSystem.B.dylib", *name = "strlen";
#else
    const char *here = "libc.so.6", *name = "strlen";
#endif
    const cygrad_library found = cygrad_loaded(here);
    check(found != NULL, "a loaded library is found");
    check(found && cygrad_function_of(found, name) != NULL, "its function is found");
    check(found && cygrad_function_of(found, "cygrad_no_such_function") == NULL, "no other one is");
    check(cygrad_loaded("cygrad-no-such-library") == NULL, "no other library is");
    check(!cygrad_find_blas("cygrad-no-such-library"), "nor BLAS in one");
#if defined(_WIN32)
    const cygrad_library own = GetModuleHandleA(NULL);
    check(cygrad_function_of(own, "GetTickCount64") != NULL || cygrad_function_of(own, "SwitchToThread") != NULL,
          "a function of a library that it imports is found");
#endif
}

int main(void)
{
    cygrad_threads_begin();
    check_items();
    check_company();
    check_sleep();
    check_locks();
    check_nesting();
    check_forks();
    check_clock();
    check_libraries();
    printf("%d failed\n", failures);
    return failures != 0;
}
