/* Runs several elementwise loops block by block, so that what only they use of each other stays in the nearest cache.

   Each loop has a part function that runs it for some of its items, from a context with addresses (Note [The tape] in
   tape/tape.pyx). Addresses of arrays that no one else reads are *registers*: pieces of scratch memory for one block, set
   anew for each. Contexts are shared by all threads, so each call works on a copy of its own. */

#ifndef CYGRAD_FUSED_BLOCKS_H
#define CYGRAD_FUSED_BLOCKS_H

#include <Python.h>
#include <string.h>

typedef void (*block_part)(void *context, Py_ssize_t first, Py_ssize_t n);

typedef struct { Py_ssize_t at, step; int number; } block_register;     /* an address in the contexts, bytes per item */
typedef struct { block_part part; Py_ssize_t context; void (*finish)(void *context); } block_loop;
                                        /* the context: an offset in the contexts; `finish` follows when all items are done */
typedef struct { Py_ssize_t at, step; int writes; } block_stream;       /* an address of an array, bytes per item */

typedef struct {
    char *contexts;                     /* of all loops, one after the other */
    Py_ssize_t size, items, room;       /* bytes of the contexts; items; bytes of a register */
    block_loop *loops;
    block_register *registers;
    block_stream *streams;              /* large arrays, each once */
    Py_ssize_t *inner;                  /* addresses in the contexts that point into them */
    Py_ssize_t n_loops, n_registers, n_inner, n_streams;
    Py_ssize_t block, piece;            /* items of a block, at most BLOCK_ITEMS, and of what one thread does at a time */
} block_program;

enum {
    BLOCK_ITEMS = 1024,
    BLOCK_APART = 320,                  /* bytes between registers: not a power of 2, or they would evict each other */
    BLOCK_CONTEXTS = 1 << 15,
    BLOCK_ROOM = 1 << 17,
};

#if defined(_MSC_VER)
#define BLOCK_ALIGNED __declspec(align(64))
#define BLOCK_PREFETCH(place, to_write) ((void)(place))
#else
#define BLOCK_ALIGNED __attribute__((aligned(64)))
#define BLOCK_PREFETCH(place, to_write) __builtin_prefetch(place, to_write, 2)
#endif

/* Asking for the lines of the next block early, because the processor sees no stream: blocks of other arrays are in between.
   Each loop is preceded by its share of the lines, as only some two dozen can be on the way at a time. A line that will be
   written is wanted for that at once, or it would be fetched and then claimed. */
typedef struct { Py_ssize_t stream, at; } block_cursor;

static void fetch_some(const block_program *p, char *contexts, Py_ssize_t first, Py_ssize_t n, Py_ssize_t lines,
                       block_cursor *cursor)
{
    while (lines > 0 && cursor->stream < p->n_streams) {
        const block_stream *s = &p->streams[cursor->stream];
        const char *next = *(char **)(contexts + s->at) + first * s->step;
        Py_ssize_t at = cursor->at, end = n * s->step;
        if (end - at > lines * 64) end = at + lines * 64;
        lines -= (end - at + 63) / 64;
        if (s->writes)
            for (; at < end; at += 64) BLOCK_PREFETCH(next + at, 1);
        else
            for (; at < end; at += 64) BLOCK_PREFETCH(next + at, 0);
        cursor->at = at;
        if (at >= n * s->step) cursor->stream++, cursor->at = 0;
    }
}

static void run_blocks_of(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const block_program *p = context;
    Py_ssize_t width = 0;               /* bytes of an item in all streams */
    BLOCK_ALIGNED char contexts[BLOCK_CONTEXTS];
    BLOCK_ALIGNED char room[BLOCK_ROOM];
    memcpy(contexts, p->contexts, p->size);
    for (Py_ssize_t i = 0; i < p->n_inner; i++) {
        char **address = (char **)(contexts + p->inner[i]);
        *address = contexts + (*address - p->contexts);
    }
    for (Py_ssize_t i = 0; i < p->n_streams; i++) width += p->streams[i].step;
    for (Py_ssize_t end = first + count, n = 0; first < end; first += n) {
        block_cursor cursor = {0, 0};
        n = end - first < p->block ? end - first : p->block;
        const Py_ssize_t next = end - first - n < p->block ? end - first - n : p->block;
        const Py_ssize_t lines = (next * width / 64 + p->n_streams) / p->n_loops + 1;
        for (Py_ssize_t i = 0; i < p->n_registers; i++) {
            const block_register *r = &p->registers[i];
            *(char **)(contexts + r->at) = room + r->number * p->room - first * r->step;
        }
        for (Py_ssize_t i = 0; i < p->n_loops; i++) {
            fetch_some(p, contexts, first + n, next, lines, &cursor);
            p->loops[i].part(contexts + p->loops[i].context, first, n);
        }
    }
}

#endif
