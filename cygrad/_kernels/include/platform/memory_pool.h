/* A freelist for the memory of large arrays.

   Programs soon request the sizes that they free again: one training step is like the last. Fresh pages from the system
   take longer to arrive than the work on them, so we keep freed blocks, by size.

   A block has a header before its memory. Sizes are rounded up to one of four classes per power of two, so at most a
   quarter is wasted. Free blocks of a class form a stack, because the last one freed is still in the processor's cache.
   Blocks in use form a list, which shows who holds memory when it runs out. Blocks smaller than POOLED, which NumPy
   requests for temporary buffers while it works on large arrays, come from malloc and are not counted.

   Kept blocks never raise the total above 5/4 of the peak usage plus SLACK; otherwise a program whose sizes vary would
   hold every size it ever used. */

#ifndef CYGRAD_POOL_H
#define CYGRAD_POOL_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "platform/lock.h"
#include "platform/sanitized.h"
#include "platform/tape.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define CYGRAD_MAPS
#endif

#define POOLED ((size_t)1 << 15)
#if CYGRAD_SANITIZED
#define MAPPED ((size_t)PTRDIFF_MAX)    /* never: accesses outside of mapped blocks go undetected */
#define HEADER 256                      /* reads before the memory must not hit another block's memory */
#else
#define MAPPED ((size_t)1 << 20)  /* larger blocks are mapped one by one, so freeing returns them to the system */
#define HEADER 64                       /* keeps the memory after it aligned for the widest vectors */
#endif
#define HUGE_PAGE ((size_t)1 << 21)
#define SLACK ((size_t)1 << 24)
#define CLASSES 256

typedef struct { uint64_t current, peak, allocated, freed; } pool_counter;

typedef struct pool_block {
    struct pool_block *next, *previous;
    size_t capacity, requested;
    PyObject *code;                     /* the Python line that requested it: code object (owned) and instruction */
    int offset, size_class;             /* the class is -1 for a block that is not pooled */
} pool_block;

typedef struct { PyObject *code; int offset; size_t size; } pool_holder;

enum { REQUESTED, ALLOCATED, ALLOCATIONS, RESERVED, SEGMENTS, COUNTERS };

static struct {
    cygrad_lock lock;
    pool_block *free[CLASSES];
    pool_block in_use;                  /* head of a ring */
    pool_counter counters[COUNTERS];
    uint64_t retries, failures;
    size_t limit;                       /* 0: none */
    size_t most;                        /* peak bytes in use since the cache was last emptied */
} pool = {CYGRAD_LOCK_INIT};

/* ------------------------------------------------------------------------------------------------ the system */

static void *map_block(size_t size)
{
#ifdef CYGRAD_MAPS
    size_t ahead = size >= HUGE_PAGE ? HUGE_PAGE : 0;       /* so that it contains a huge-page boundary */
    char *start = mmap(NULL, size + ahead, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == (char *)MAP_FAILED) return NULL;
    if (ahead) {
        size_t before = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
        if (before) munmap(start, before);
        if (ahead > before) munmap(start + before + size, ahead - before);
        start += before;
#ifdef MADV_HUGEPAGE
        madvise(start, size, MADV_HUGEPAGE);
#endif
    }
    return start;
#else
    return _aligned_malloc(size, HEADER);
#endif
}

static size_t mapped_size(size_t capacity) { return (capacity + HEADER + 0xffff) & ~(size_t)0xffff; }

static pool_block *from_system(size_t capacity)
{
    void *start = NULL;
    if (capacity > PTRDIFF_MAX / 2) return NULL;
#ifdef CYGRAD_MAPS
    if (capacity >= MAPPED) start = map_block(mapped_size(capacity));
    else if (posix_memalign(&start, HEADER, capacity + HEADER)) start = NULL;
#else
    start = _aligned_malloc(capacity + HEADER, HEADER);
#endif
    return start;
}

static void to_system(pool_block *block)
{
    ASAN_UNPOISON_MEMORY_REGION(block, HEADER + block->capacity);
#ifdef CYGRAD_MAPS
    if (block->capacity >= MAPPED) munmap(block, mapped_size(block->capacity));
    else free(block);
#else
    _aligned_free(block);
#endif
}

/* ------------------------------------------------------------------------------------------------ under the lock */

static void count(int counter, size_t n)
{
    pool_counter *c = &pool.counters[counter];
    c->current += n;
    c->allocated += n;
    if (c->current > c->peak) c->peak = c->current;
}

static void discount(int counter, size_t n)
{
    pool.counters[counter].current -= n;
    pool.counters[counter].freed += n;
}

/* The class of a size, and the capacity of its blocks: 5, 6, 7 or 8 times a power of two. */
static int class_of(size_t size, size_t *capacity)
{
    int shift = 0;
    size_t quarters = size - 1;
    while (quarters >= 8) quarters >>= 1, shift++;
    quarters++;                         /* 5 to 8 */
    *capacity = quarters << shift;
    return 4 * shift + (int)quarters - 5;
}

static void give_back(pool_block *block)
{
    discount(RESERVED, block->capacity);
    discount(SEGMENTS, 1);
    to_system(block);
}

/* Free kept blocks, largest first, until at most `allowed` bytes are reserved. */
static void shrink_to(size_t allowed)
{
    for (int k = CLASSES - 1; k >= 0; k--)
        while (pool.free[k] && pool.counters[RESERVED].current > allowed) {
            pool_block *block = pool.free[k];
            pool.free[k] = block->next;
            give_back(block);
        }
}

static pool_block *new_block(size_t capacity)
{
    size_t in_use = pool.counters[ALLOCATED].current + capacity;
    size_t most = in_use > pool.most ? in_use : pool.most, allowed = most + most / 4 + SLACK;
    pool_block *block;
    if (capacity > PTRDIFF_MAX / 2) return NULL;
    if (pool.limit && allowed > pool.limit) allowed = pool.limit;
    shrink_to(allowed > capacity ? allowed - capacity : 0);
    if (pool.limit && pool.counters[RESERVED].current + capacity > pool.limit) return NULL;
    block = from_system(capacity);
    if (block == NULL && pool.counters[RESERVED].current > pool.counters[ALLOCATED].current) {
        pool.retries++;
        shrink_to(0);
        block = from_system(capacity);
    }
    if (block == NULL) return NULL;
    block->capacity = capacity;
    count(RESERVED, capacity);
    count(SEGMENTS, 1);
    return block;
}

/* ------------------------------------------------------------------------------------------------ blocks */

static pool_block *block_of(void *memory) { return (pool_block *)((char *)memory - HEADER); }

/* The memory of a block, of which `requested` bytes are usable (Note [Sanitized builds]). */
static void *memory_of(pool_block *block)
{
    char *memory = (char *)block + HEADER;
    ASAN_POISON_MEMORY_REGION(block + 1, HEADER - sizeof *block);
    ASAN_POISON_MEMORY_REGION(memory + block->requested, block->capacity - block->requested);
    return memory;
}

static void *allocate_plain(size_t size)
{
    pool_block *block = from_system(size);
    if (block == NULL) return NULL;
    block->capacity = block->requested = size;
    block->code = NULL;
    block->size_class = -1;
    return memory_of(block);
}

/* Memory for `size` bytes, aligned to 64; NULL if there is none. `is_zero` is set if it is known to be zero. */
static void *pool_allocate(size_t size, int *is_zero)
{
    size_t capacity;
    int size_class;
    pool_block *block;
    *is_zero = 0;
    if (size < POOLED) return allocate_plain(size);
    if (size > PTRDIFF_MAX / 2) return NULL;
    size_class = class_of(size, &capacity);
    cygrad_acquire(&pool.lock);
    block = pool.free[size_class];
    if (block)
        pool.free[size_class] = block->next;
    else {
        block = new_block(capacity);
#ifdef CYGRAD_MAPS
        *is_zero = capacity >= MAPPED;
#endif
    }
    if (block) {
        block->requested = size;
        block->size_class = size_class;
        block->code = NULL;
        block->next = &pool.in_use;
        block->previous = pool.in_use.previous;
        block->previous->next = pool.in_use.previous = block;
        count(REQUESTED, size);
        count(ALLOCATED, capacity);
        count(ALLOCATIONS, 1);
        if (pool.counters[ALLOCATED].current > pool.most) pool.most = pool.counters[ALLOCATED].current;
    } else
        pool.failures++;
    cygrad_release_lock(&pool.lock);
    return block ? memory_of(block) : NULL;
}

/* Record the source line that requested a block. */
static void pool_sign(void *memory, PyObject *code, int offset)
{
    pool_block *block = block_of(memory);
    cygrad_acquire(&pool.lock);
    Py_INCREF(code);
    block->code = code;
    block->offset = offset;
    cygrad_release_lock(&pool.lock);
}

static void pool_free(void *memory)
{
    pool_block *block = block_of(memory);
    PyObject *code = block->code;
    tape_died(memory);
    if (block->size_class < 0) {
        to_system(block);
        return;
    }
    cygrad_acquire(&pool.lock);
    block->next->previous = block->previous;
    block->previous->next = block->next;
    discount(REQUESTED, block->requested);
    discount(ALLOCATED, block->capacity);
    discount(ALLOCATIONS, 1);
    if (CYGRAD_SANITIZED)
        give_back(block);
    else {
        block->next = pool.free[block->size_class];
        pool.free[block->size_class] = block;
    }
    cygrad_release_lock(&pool.lock);
    Py_XDECREF(code);                   /* after releasing the lock: this may free an array */
}

/* ------------------------------------------------------------------------------------------------ NumPy's allocator */

static void *numpy_malloc(void *context, size_t size)
{
    int is_zero;
    void *memory;
    (void)context;
    memory = pool_allocate(size, &is_zero);
    tape_born(memory, size);
    return memory;
}

static void *numpy_calloc(void *context, size_t n, size_t itemsize)
{
    int is_zero;
    void *memory;
    (void)context;
    if (itemsize && n > PTRDIFF_MAX / itemsize) return NULL;
    memory = pool_allocate(n * itemsize, &is_zero);
    if (memory && !is_zero) memset(memory, 0, n * itemsize);
    tape_born(memory, n * itemsize);
    return memory;
}

static void numpy_free(void *context, void *memory, size_t size)
{
    (void)context, (void)size;
    if (memory) pool_free(memory);
}

static void *numpy_realloc(void *context, void *memory, size_t size)
{
    void *moved = numpy_malloc(context, size);
    if (memory && moved) {
        size_t present = block_of(memory)->requested;
        memcpy(moved, memory, present < size ? present : size);
        pool_free(memory);
    }
    return moved;
}

/* ------------------------------------------------------------------------------------------------ the interface */

static void pool_empty(void)
{
    cygrad_acquire(&pool.lock);
    shrink_to(pool.counters[ALLOCATED].current);
    pool.most = pool.counters[ALLOCATED].current;
    cygrad_release_lock(&pool.lock);
}

static void pool_reset_peaks(void)
{
    cygrad_acquire(&pool.lock);
    for (int k = 0; k < COUNTERS; k++) pool.counters[k].peak = pool.counters[k].current;
    cygrad_release_lock(&pool.lock);
}

static void pool_read(pool_counter *counters, uint64_t *retries, uint64_t *failures)
{
    cygrad_acquire(&pool.lock);
    memcpy(counters, pool.counters, sizeof pool.counters);
    *retries = pool.retries;
    *failures = pool.failures;
    cygrad_release_lock(&pool.lock);
}

static void pool_set_limit(size_t limit)
{
    cygrad_acquire(&pool.lock);
    pool.limit = limit;
    if (limit) shrink_to(limit);
    cygrad_release_lock(&pool.lock);
}

/* The holders of the blocks in use, with owned references to their code objects; NULL if out of memory. */
static pool_holder *pool_holders(Py_ssize_t *n)
{
    pool_holder *holders;
    *n = 0;
    cygrad_acquire(&pool.lock);
    holders = malloc((pool.counters[ALLOCATIONS].current + 1) * sizeof *holders);
    if (holders)
        for (pool_block *block = pool.in_use.next; block != &pool.in_use; block = block->next) {
            Py_XINCREF(block->code);
            holders[*n].code = block->code;
            holders[*n].offset = block->offset;
            holders[(*n)++].size = block->requested;
        }
    cygrad_release_lock(&pool.lock);
    return holders;
}

#ifdef CYGRAD_FORKS
static void pool_before_fork(void) { cygrad_acquire(&pool.lock); }
static void pool_after_fork(void) { cygrad_release_lock(&pool.lock); }
#endif

static void pool_begin(void)
{
    pool.in_use.next = pool.in_use.previous = &pool.in_use;
    let_numpy_keep_nothing();
#ifdef CYGRAD_FORKS
    pthread_atfork(pool_before_fork, pool_after_fork, pool_after_fork);
#endif
}

#endif
