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

#include "atomics.h"
#include "clock.h"
#include "platform/blas_threads.h"
#include "platform/threads.h"

typedef void (*cygrad_part)(void *context, Py_ssize_t first, Py_ssize_t n);

#define MOST_THREADS 64
#define LOOKS 2000                      /* spins on the door before yielding */
#define AWAKE 2000000                   /* nanoseconds before going to sleep */
#define OPEN (1 << 16)

#if defined(__x86_64__) || defined(__i386__)
#define CYGRAD_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define CYGRAD_PAUSE() __asm__ volatile("yield")
#elif defined(_WIN32)
#define CYGRAD_PAUSE() YieldProcessor()
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
    cygrad_thread members[MOST_THREADS];
    cygrad_part part;
    void *context;
    Py_ssize_t n, piece;
    cygrad_lock taken, bed;
    cygrad_bell bell;
} crew = {.taken = CYGRAD_LOCK_INIT, .bed = CYGRAD_LOCK_INIT, .bell = CYGRAD_BELL_INIT};

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
        while (cygrad_peek(&range->next) < range->end) {
            Py_ssize_t piece = cygrad_add(&range->next, 1);
            if (piece < range->end) do_piece(piece);
        }
    }
}

/* Whether there is work other than number `done`. */
static int is_open(unsigned done)
{
    return cygrad_load(&crew.door) & OPEN && (unsigned)cygrad_peek(&crew.work) != done;
}

static void wait_for_work(unsigned done)
{
    long long bedtime;
    for (int i = 0; i < LOOKS; i++) {
        if (is_open(done)) return;
        CYGRAD_PAUSE();
    }
    for (bedtime = cygrad_nanoseconds() + AWAKE; cygrad_nanoseconds() < bedtime; cygrad_yield())
        if (is_open(done) || cygrad_peek(&crew.leaving)) return;
    cygrad_acquire(&crew.bed);
    cygrad_add(&crew.sleepers, 1);
    while (!is_open(done) && !crew.leaving) cygrad_await(&crew.bell, &crew.bed);
    cygrad_add(&crew.sleepers, -1);
    cygrad_release_lock(&crew.bed);
}

static void live(int own)
{
    unsigned done = 0;
    for (;;) {
        int door;
        wait_for_work(done);
        if (cygrad_load(&crew.leaving)) return;
        door = cygrad_load(&crew.door);
        if (!(door & OPEN) || !cygrad_swap_if(&crew.door, door, door + 1)) continue;
        done = crew.work;
        if (own < crew.threads) work_off(own);
        cygrad_add(&crew.door, -1);
    }
}

/* Start threads until there are `wanted`; return the total. */
static int start_threads(int wanted)
{
    while (crew.started < wanted) {
        if (!cygrad_start_thread(&crew.members[crew.started], live, crew.started + 1)) return crew.started;
        crew.started++;
    }
    return wanted;
}

static void open_door(void)
{
    unsigned number = crew.work + 1;
    cygrad_post(&crew.work, number ? number : 1);
    cygrad_store(&crew.door, OPEN);
    if (cygrad_load(&crew.sleepers)) {
        cygrad_acquire(&crew.bed);
        cygrad_ring(&crew.bell);
        cygrad_release_lock(&crew.bed);
    }
}

static void close_door(void)
{
    cygrad_add(&crew.door, -OPEN);
    for (int i = 0; cygrad_load(&crew.door); i++)
        if (i < LOOKS) CYGRAD_PAUSE();
        else cygrad_yield();
}

/* Call part(context, first, count) for all chunks of 0 to n on at most `threads` threads; on the caller alone if the
   others are taken. BLAS runs single-threaded meanwhile, which is a process-wide setting that only the holder of the
   threads changes. */
static void cygrad_share(cygrad_part part, void *context, Py_ssize_t n, Py_ssize_t piece, int threads)
{
    const Py_ssize_t pieces = (n + piece - 1) / piece;
    const int is_mine = cygrad_acquire_if_free(&crew.taken), former = is_mine ? begin_blas_alone() : 1;
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
    if (is_mine) cygrad_release_lock(&crew.taken);
}

#ifdef CYGRAD_FORKS

static void before_fork(void)
{
    cygrad_acquire(&crew.taken);
    cygrad_acquire(&crew.bed);
    cygrad_post(&crew.leaving, 1);
    cygrad_ring(&crew.bell);
    cygrad_release_lock(&crew.bed);
    for (; crew.started > 0; crew.started--) cygrad_join(crew.members[crew.started - 1]);
    crew.leaving = 0;
}

static void after_fork(void) { cygrad_release_lock(&crew.taken); }

static void cygrad_threads_begin(void) { pthread_atfork(before_fork, after_fork, after_fork); }

#else

static void cygrad_threads_begin(void) {}       /* threads end with the process, as Windows does it */

#endif
#endif
