/* A small thread pool that splits the work on one array.

   Work is divided into chunks whose number and limits depend on the work alone, so results are bitwise identical for
   any number of threads. Each thread has its own range of chunks, because what it wrote in the last operation is still
   in its cache for the next; when done, it takes chunks of the others, so nobody waits for a late thread.

   Only one operation runs at a time. A caller that finds the threads taken (a second thread of the program, or a chunk
   that itself splits work) does its work alone.

   `door` has the OPEN bit set while there is work; its lower bits count the threads inside. Nobody enters a closed
   door, and it opens again only when all threads have left, so the description of the work cannot change under its
   readers. Idle threads spin on the door for some microseconds, then yield the processor between checks, and sleep
   after two milliseconds: a wake-up takes as long as a small operation (20 us in a virtual machine), and the next
   operation of a training step arrives sooner than that.

   Before the process forks, the threads exit, so no thread is copied in the middle of something and Python has no
   reason to warn. Both processes start new ones when there is work. */

#ifndef CYGRAD_THREADS_H
#define CYGRAD_THREADS_H

#include "platform/lock.h"

typedef void (*cygrad_part)(void *context, Py_ssize_t first, Py_ssize_t n);

#ifndef CYGRAD_FORKS                    /* no POSIX threads: the caller does everything */

static void cygrad_share(cygrad_part part, void *context, Py_ssize_t n, Py_ssize_t piece, int threads)
{
    (void)threads;
    for (Py_ssize_t i = 0; i < n; i += piece) part(context, i, n - i < piece ? n - i : piece);
}

static void cygrad_threads_begin(void) {}
static int cygrad_find_blas(const char *library) { return (void)library, 0; }
static int cygrad_blas_has_short_vectors(void) { return 0; }

#else

#include <sched.h>
#include <signal.h>
#include <time.h>
#include "platform/blas_threads.h"

#define MOST_THREADS 64
#define LOOKS 2000                      /* spins on the door before yielding */
#define AWAKE 2000000                   /* nanoseconds before going to sleep */
#define OPEN (1 << 16)

#if defined(__x86_64__) || defined(__i386__)
#define CYGRAD_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define CYGRAD_PAUSE() __asm__ volatile("yield")
#else
#define CYGRAD_PAUSE() ((void)0)
#endif

typedef struct {
    Py_ssize_t next, end;
    char apart[64 - 2 * sizeof(Py_ssize_t)];        /* each range has its own cache line */
} piece_range;

static struct {
    piece_range ranges[MOST_THREADS];
    int door;
    char apart[60];
    unsigned work;                      /* sequence number of the work, never 0 */
    int sleepers, started, threads;     /* sleeping; in existence; assigned to this work, including the caller */
    int leaving;                        /* all threads must exit */
    pthread_t members[MOST_THREADS];
    cygrad_part part;
    void *context;
    Py_ssize_t n, piece;
    pthread_mutex_t taken, bed;
    pthread_cond_t bell;
} crew = {.taken = PTHREAD_MUTEX_INITIALIZER, .bed = PTHREAD_MUTEX_INITIALIZER, .bell = PTHREAD_COND_INITIALIZER};

static void do_piece(Py_ssize_t i)
{
    Py_ssize_t first = i * crew.piece, rest = crew.n - first;
    crew.part(crew.context, first, rest < crew.piece ? rest : crew.piece);
}

/* Process the chunks of range `own`, then what remains of the other ranges. */
static void work_off(int own)
{
    for (int k = 0; k < crew.threads; k++) {
        piece_range *range = &crew.ranges[(own + k) % crew.threads];
        while (__atomic_load_n(&range->next, __ATOMIC_RELAXED) < range->end) {
            Py_ssize_t piece = __atomic_fetch_add(&range->next, 1, __ATOMIC_RELAXED);
            if (piece < range->end) do_piece(piece);
        }
    }
}

/* Whether there is work other than number `done`. */
static int is_open(unsigned done)
{
    return __atomic_load_n(&crew.door, __ATOMIC_SEQ_CST) & OPEN && __atomic_load_n(&crew.work, __ATOMIC_RELAXED) != done;
}

static int is_leaving(void) { return __atomic_load_n(&crew.leaving, __ATOMIC_ACQUIRE); }

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_for_work(unsigned done)
{
    int64_t bedtime;
    for (int i = 0; i < LOOKS; i++) {
        if (is_open(done)) return;
        CYGRAD_PAUSE();
    }
    for (bedtime = nanoseconds() + AWAKE; nanoseconds() < bedtime; sched_yield())
        if (is_open(done) || is_leaving()) return;
    pthread_mutex_lock(&crew.bed);
    __atomic_fetch_add(&crew.sleepers, 1, __ATOMIC_SEQ_CST);
    while (!is_open(done) && !is_leaving()) pthread_cond_wait(&crew.bell, &crew.bed);
    __atomic_fetch_sub(&crew.sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&crew.bed);
}

static void *live(void *number)
{
    int own = (int)(Py_ssize_t)number;
    unsigned done = 0;
    for (;;) {
        int door;
        wait_for_work(done);
        if (is_leaving()) return NULL;
        door = __atomic_load_n(&crew.door, __ATOMIC_ACQUIRE);
        if (!(door & OPEN)) continue;
        if (!__atomic_compare_exchange_n(&crew.door, &door, door + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
        done = crew.work;
        if (own < crew.threads) work_off(own);
        __atomic_fetch_sub(&crew.door, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Start threads until there are `wanted`, with signals blocked: those are for the program's threads. Return the
   total. */
static int start_threads(int wanted)
{
    sigset_t all, former;
    if (crew.started >= wanted) return wanted;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    while (crew.started < wanted) {
        if (pthread_create(&crew.members[crew.started], NULL, live, (void *)(Py_ssize_t)(crew.started + 1))) break;
        crew.started++;
    }
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return crew.started;
}

static void open_door(void)
{
    unsigned number = crew.work + 1;
    __atomic_store_n(&crew.work, number ? number : 1, __ATOMIC_RELAXED);
    __atomic_store_n(&crew.door, OPEN, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&crew.sleepers, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&crew.bed);
        pthread_cond_broadcast(&crew.bell);
        pthread_mutex_unlock(&crew.bed);
    }
}

static void close_door(void)
{
    __atomic_fetch_and(&crew.door, ~OPEN, __ATOMIC_SEQ_CST);
    for (int i = 0; __atomic_load_n(&crew.door, __ATOMIC_ACQUIRE); i++)
        if (i < LOOKS) CYGRAD_PAUSE();
        else sched_yield();
}

/* Call part(context, first, count) for all chunks of 0 to n on at most `threads` threads; on the caller alone if the
   others are taken. BLAS runs single-threaded meanwhile, which is a process-wide setting that only the holder of the
   threads changes. */
static void cygrad_share(cygrad_part part, void *context, Py_ssize_t n, Py_ssize_t piece, int threads)
{
    const Py_ssize_t pieces = (n + piece - 1) / piece;
    const int is_mine = pthread_mutex_trylock(&crew.taken) == 0, former = is_mine ? begin_blas_alone() : 1;
    if (threads > pieces) threads = (int)pieces;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (is_mine && threads > 1) {
        threads = 1 + start_threads(threads - 1);
        crew.threads = threads;
        crew.part = part;
        crew.context = context;
        crew.n = n;
        crew.piece = piece;
        for (int k = 0; k < threads; k++) {
            crew.ranges[k].next = pieces * k / threads;
            crew.ranges[k].end = pieces * (k + 1) / threads;
        }
        open_door();
        work_off(0);
        close_door();
    } else {
        for (Py_ssize_t i = 0; i < n; i += piece) part(context, i, n - i < piece ? n - i : piece);
    }
    end_blas_alone(former);
    if (is_mine) pthread_mutex_unlock(&crew.taken);
}

static void before_fork(void)
{
    pthread_mutex_lock(&crew.taken);
    pthread_mutex_lock(&crew.bed);
    __atomic_store_n(&crew.leaving, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&crew.bell);
    pthread_mutex_unlock(&crew.bed);
    for (; crew.started > 0; crew.started--) pthread_join(crew.members[crew.started - 1], NULL);
    crew.leaving = 0;
}

static void after_fork(void) { pthread_mutex_unlock(&crew.taken); }

static void cygrad_threads_begin(void) { pthread_atfork(before_fork, after_fork, after_fork); }

#endif
#endif
