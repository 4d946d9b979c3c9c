/* Threads of C, and a bell for which they wait while they sleep: POSIX's or those of Windows. */

#ifndef CYGRAD_SYSTEM_THREADS_H
#define CYGRAD_SYSTEM_THREADS_H

#include "platform/lock.h"

typedef void (*cygrad_life)(int number);        /* what a thread does; `number` is its own */

#ifdef _WIN32

#include <process.h>

typedef HANDLE cygrad_thread;
typedef CONDITION_VARIABLE cygrad_bell;
#define CYGRAD_BELL_INIT CONDITION_VARIABLE_INIT
#define cygrad_await(bell, lock) SleepConditionVariableSRW(bell, lock, INFINITE, 0)
#define cygrad_ring(bell) WakeAllConditionVariable(bell)
#define cygrad_yield() SwitchToThread()

static cygrad_life life_of_threads;     /* the same for all, so one word is enough to start one */

static unsigned __stdcall live_until_done(void *number)
{
    life_of_threads((int)(intptr_t)number);
    return 0;
}

static int cygrad_start_thread(cygrad_thread *thread, cygrad_life life, int number)
{
    life_of_threads = life;
    *thread = (HANDLE)_beginthreadex(NULL, 0, live_until_done, (void *)(intptr_t)number, 0, NULL);
    return *thread != NULL;
}

#else

#include <sched.h>
#include <signal.h>
#include <stdint.h>

typedef pthread_t cygrad_thread;
typedef pthread_cond_t cygrad_bell;
#define CYGRAD_BELL_INIT PTHREAD_COND_INITIALIZER
#define cygrad_await(bell, lock) pthread_cond_wait(bell, lock)
#define cygrad_ring(bell) pthread_cond_broadcast(bell)
#define cygrad_yield() sched_yield()

static cygrad_life life_of_threads;     /* the same for all, so one word is enough to start one */

static void *live_until_done(void *number)
{
    life_of_threads((int)(intptr_t)number);
    return NULL;
}

/* The thread blocks all signals: those are for the program's threads. */
static int cygrad_start_thread(cygrad_thread *thread, cygrad_life life, int number)
{
    sigset_t all, former;
    int refused;
    life_of_threads = life;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    refused = pthread_create(thread, NULL, live_until_done, (void *)(intptr_t)number);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return !refused;
}

static void cygrad_join(cygrad_thread thread) { pthread_join(thread, NULL); }

#endif
#endif
