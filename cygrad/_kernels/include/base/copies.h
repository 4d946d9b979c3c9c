/* Copies from strided memory to strided memory, of elements of 4 or 8 bytes, and of other sizes where they are
   contiguous.

   Dimension 0 has the smallest stride of the result. If the smallest stride of the source belongs to another dimension,
   that becomes dimension 1 and the copy is `turned`: done in squares of 16 by 16 elements. A square is read row by row
   into a buffer and written column by column, so each cache line is fetched once, and few are in use at a time: rows a
   power of two apart share cache sets. */

#ifndef CYGRAD_COPIES_H
#define CYGRAD_COPIES_H

#include <Python.h>
#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"

#define SQUARE 16
#define TALL 64          /* rows turned at once where cache lines evict each other: columns are written as four lines */
#define FEW 8            /* elements of a row that takes longer to start than to copy */
#define ALONG 512
#define NEAREST_BYTES 2048  /* that stay in the L1 cache */
#define STRIP 64         /* columns of squares that are read together */
#define MANY (1 << 21)   /* elements that do not all stay in a cache */

typedef struct {
    const char *from;
    char *to;
    Py_ssize_t size;                                /* of an element */
    int turned, ndim, ahead;                        /* `ahead`: prefetch rows of the next squares */
    Py_ssize_t chunk[2];                            /* a work unit covers so much of dimensions 0 and 1 */
    Py_ssize_t *dims, *from_steps, *to_steps;
} copy_plan;

#if defined(__GNUC__)                               /* complex64 numbers may be aligned like floats */
typedef uint64_t copied_8 __attribute__((aligned(4)));
typedef uint32_t four __attribute__((vector_size(16), aligned(4)));
typedef uint64_t two __attribute__((vector_size(16), aligned(4)));
#define CYGRAD_PREFETCH(place, nearness) __builtin_prefetch(place, 0, nearness)
#else
typedef uint64_t copied_8;
#define CYGRAD_PREFETCH(place, nearness) ((void)(place))
#endif

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define CYGRAD_SHUFFLES
#endif

CYGRAD_BEGIN_LOOPS

#define DEFINE_COPIES(NAME, TYPE)                                                                               \
    static void row_##NAME(const char *from, Py_ssize_t step, char *to, Py_ssize_t to_step, Py_ssize_t n)       \
    {                                                                                                           \
        TYPE *out = (TYPE *)to;                                                                                 \
        const TYPE *in = (const TYPE *)from;                                                                    \
        if (to_step == (Py_ssize_t)sizeof(TYPE) && step == 0) {                                                 \
            const TYPE one = *in;                                                                               \
            if (one == 0) memset(out, 0, n * sizeof one);                                                       \
            else                                                                                                \
                for (Py_ssize_t i = 0; i < n; i++) out[i] = one;                                                \
        } else if (to_step == (Py_ssize_t)sizeof(TYPE) && step == -to_step) {                                   \
            CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = in[-i];                              \
        } else if (to_step == (Py_ssize_t)sizeof(TYPE) && step == 2 * to_step) {                                \
            CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = in[2 * i];                           \
        } else                                                                                                  \
            for (; n > 0; n--, from += step, to += to_step) *(TYPE *)to = *(const TYPE *)from;                  \
    }                                                                                                           \
                                                                                                                \
    static void square_##NAME(const char *from, const Py_ssize_t *step, char *to, const Py_ssize_t *to_step,    \
                              Py_ssize_t m, Py_ssize_t n)                                                       \
    {                                                                                                           \
        TYPE buffer[SQUARE][SQUARE];                                                                            \
        for (Py_ssize_t i = 0; i < m; i++)                                                                      \
            for (Py_ssize_t j = 0; j < n; j++) buffer[i][j] = *(const TYPE *)(from + i * step[0] + j * step[1]); \
        for (Py_ssize_t j = 0; j < n; j++)                                                                      \
            for (Py_ssize_t i = 0; i < m; i++) *(TYPE *)(to + i * to_step[0] + j * to_step[1]) = buffer[i][j];  \
    }

DEFINE_COPIES(4, uint32_t)
DEFINE_COPIES(8, copied_8)
#undef DEFINE_COPIES

#ifdef CYGRAD_SHUFFLES
/* The same for 4-byte elements that are contiguous, four by four, and m rows that fit into the buffer. */
CYGRAD_INLINE void turn_fours(uint32_t (*buffer)[SQUARE], const char *from, Py_ssize_t step, char *to, Py_ssize_t to_step,
                              Py_ssize_t m)
{
    for (Py_ssize_t i = 0; i < m; i++) memcpy(buffer[i], from + i * step, sizeof buffer[i]);
    for (int j = 0; j < SQUARE; j += 4, to += 4 * to_step)
        for (Py_ssize_t i = 0; i < m; i += 4) {
            const four a = *(four *)&buffer[i][j], b = *(four *)&buffer[i + 1][j];
            const four c = *(four *)&buffer[i + 2][j], d = *(four *)&buffer[i + 3][j];
            const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const four ba = __builtin_shufflevector(a, b, 2, 6, 3, 7), dc = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            char *at = to + 4 * i;
            *(four *)at = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
            *(four *)(at + to_step) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
            *(four *)(at + 2 * to_step) = __builtin_shufflevector(ba, dc, 0, 1, 4, 5);
            *(four *)(at + 3 * to_step) = __builtin_shufflevector(ba, dc, 2, 3, 6, 7);
        }
}

static void fours_of_square(const char *from, Py_ssize_t step, char *to, Py_ssize_t to_step, Py_ssize_t m)
{
    uint32_t buffer[SQUARE][SQUARE];    /* loops known to be so short are unrolled, which halves the time */
    turn_fours(buffer, from, step, to, to_step, m);
}

/* For rows so far apart that their lines evict each other from the L1 cache. */
static void fours_of_rows(const char *from, Py_ssize_t step, char *to, Py_ssize_t to_step, Py_ssize_t m, Py_ssize_t n)
{
    uint32_t buffer[TALL][SQUARE];
    for (Py_ssize_t j = 0; j < n; j += SQUARE, from += sizeof buffer[0], to += SQUARE * to_step)
        for (Py_ssize_t i = 0; i < m; i += TALL)
            turn_fours(buffer, from + i * step, step, to + 4 * i, to_step, m - i < TALL ? m - i : TALL);
}

/* The same for 8-byte elements, two by two. */
static void twos_of_square(const char *from, Py_ssize_t step, char *to, Py_ssize_t to_step, Py_ssize_t m)
{
    uint64_t buffer[SQUARE][SQUARE];
    for (Py_ssize_t i = 0; i < m; i++) memcpy(buffer[i], from + i * step, sizeof buffer[i]);
    for (int j = 0; j < SQUARE; j += 2, to += 2 * to_step)
        for (Py_ssize_t i = 0; i < m; i += 2) {
            const two a = *(two *)&buffer[i][j], b = *(two *)&buffer[i + 1][j];
            *(two *)(to + 8 * i) = __builtin_shufflevector(a, b, 0, 2);
            *(two *)(to + to_step + 8 * i) = __builtin_shufflevector(a, b, 1, 3);
        }
}
#endif

/* Fills contiguous memory with an element by copying what is already filled: memcpy uses the widest vectors of the
   processor. */
static void fill_near(const char *from, Py_ssize_t size, char *to, Py_ssize_t bytes)
{
    memcpy(to, from, size < bytes ? size : bytes);
    for (Py_ssize_t done = size, some; done < bytes; done += some) {
        some = done < NEAREST_BYTES ? done : NEAREST_BYTES;
        some = some < bytes - done ? some : bytes - done;
        memcpy(to + done, to, some);
    }
}

static void copy_row(Py_ssize_t size, const char *from, Py_ssize_t step, char *to, Py_ssize_t to_step, Py_ssize_t n)
{
    if (step == size && to_step == size) memcpy(to, from, n * size);
    else if (size == 4) row_4(from, step, to, to_step, n);
    else row_8(from, step, to, to_step, n);
}

static void copy_square(Py_ssize_t size, const char *from, const Py_ssize_t *step, char *to, const Py_ssize_t *to_step,
                        Py_ssize_t m, Py_ssize_t n)
{
#ifdef CYGRAD_SHUFFLES
    if (m % 4 == 0 && n == SQUARE && step[1] == size && to_step[0] == size) {
        if (size == 4) fours_of_square(from, step[0], to, to_step[1], m);
        else twos_of_square(from, step[0], to, to_step[1], m);
    } else
#endif
    if (size == 4) square_4(from, step, to, to_step, m, n);
    else square_8(from, step, to, to_step, m, n);
}

/* Completes a plan, possibly reordering its dimensions. Returns the number of work units, of about `most` elements
   each, and sets how many units are processed together. */
static Py_ssize_t plan_copy(copy_plan *plan, Py_ssize_t most, Py_ssize_t *piece)
{
    Py_ssize_t *const lists[3] = {plan->dims, plan->from_steps, plan->to_steps};
    Py_ssize_t units = 1;
    int near = 0;                       /* dimension along which the source's stride is smallest */
    for (int d = 1; d < plan->ndim; d++)
        if (plan->from_steps[d] && Py_ABS(plan->from_steps[d]) < Py_ABS(plan->from_steps[near])) near = d;
    plan->turned = near > 0 && plan->dims[near] >= 4 && plan->dims[0] >= 4;
    for (int k = 0; plan->turned && k < 3; k++) {
        const Py_ssize_t kept = lists[k][1];
        lists[k][1] = lists[k][near];
        lists[k][near] = kept;
    }
    /* prefetched lines so far apart evict each other from the L1 cache, which is slower if all fits into the last
       cache */
    plan->ahead = plan->turned && (plan->from_steps[0] % 2048 || plan->dims[0] * plan->dims[1] > MANY);
    plan->chunk[0] = plan->ahead ? most / STRIP : plan->turned ? most / SQUARE : most;
    if (plan->chunk[0] > plan->dims[0]) plan->chunk[0] = plan->dims[0];
    plan->chunk[1] = most / plan->chunk[0];
    if (plan->turned) plan->chunk[1] -= plan->chunk[1] % SQUARE;
    *piece = plan->chunk[0];
    for (int d = 0; d < plan->ndim; d++) {
        units *= d < 2 ? (plan->dims[d] + plan->chunk[d] - 1) / plan->chunk[d] : plan->dims[d];
        if (d == 1) *piece *= plan->chunk[1] < plan->dims[1] ? plan->chunk[1] : plan->dims[1];
    }
    *piece = *piece < most ? most / *piece : 1;
    return units;
}

/* Work units: chunks of dimension 0, then of dimension 1, at each index of the others. */
static void copy_units(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const copy_plan *plan = context;
    for (Py_ssize_t unit = first; unit < first + count; unit++) {
        Py_ssize_t rest = unit, n[2] = {1, 1};
        const char *from = plan->from;
        char *to = plan->to;
        for (int d = 0; d < plan->ndim; d++) {
            const Py_ssize_t chunk = d < 2 ? plan->chunk[d] : 1, chunks = (plan->dims[d] + chunk - 1) / chunk;
            const Py_ssize_t at = rest % chunks * chunk;
            rest /= chunks;
            if (d < 2) n[d] = plan->dims[d] - at < chunk ? plan->dims[d] - at : chunk;
            from += at * plan->from_steps[d];
            to += at * plan->to_steps[d];
        }
        if (!plan->turned) {
            const Py_ssize_t step = plan->ndim > 1 ? plan->from_steps[1] : 0, to_step = plan->ndim > 1 ? plan->to_steps[1] : 0;
            if (n[0] < FEW && n[1] > n[0] && (plan->size == 4 || plan->size == 8)) {
                /* along the other dimension, as far as the cache holds */
                for (Py_ssize_t j = 0; j < n[1]; j += ALONG)
                    for (Py_ssize_t i = 0; i < n[0]; i++)
                        copy_row(plan->size, from + j * step + i * plan->from_steps[0], step,
                                 to + j * to_step + i * plan->to_steps[0], to_step, n[1] - j < ALONG ? n[1] - j : ALONG);
                continue;
            }
            for (Py_ssize_t j = 0; j < n[1]; j++) {
                /* the hardware does not prefetch the next row of rows that are read backwards */
                for (Py_ssize_t k = 0; plan->from_steps[0] < 0 && j + 1 < n[1] && k < n[0] && k < 512; k += 8)
                    CYGRAD_PREFETCH(from + (j + 1) * step + k * plan->from_steps[0], 3);
                copy_row(plan->size, from + j * step, plan->from_steps[0], to + j * to_step, plan->to_steps[0], n[0]);
            }
            continue;
        }
#ifdef CYGRAD_SHUFFLES
        if (!plan->ahead && plan->size == 4 && n[0] % 4 == 0 && n[1] % SQUARE == 0 && plan->from_steps[1] == 4
            && plan->to_steps[0] == 4) {
            fours_of_rows(from, plan->from_steps[0], to, plan->to_steps[1], n[0], n[1]);
            continue;
        }
#endif
        for (Py_ssize_t i = 0; i < n[0]; i += SQUARE)
            for (Py_ssize_t j = 0; j < n[1]; j += SQUARE) {
                if (plan->ahead && i + 2 * SQUARE <= n[0])
                    for (int k = SQUARE; k < 2 * SQUARE; k++)
                        CYGRAD_PREFETCH(from + (i + k) * plan->from_steps[0] + j * plan->from_steps[1], 2);
                copy_square(plan->size, from + i * plan->from_steps[0] + j * plan->from_steps[1], plan->from_steps,
                            to + i * plan->to_steps[0] + j * plan->to_steps[1], plan->to_steps,
                            n[0] - i < SQUARE ? n[0] - i : SQUARE, n[1] - j < SQUARE ? n[1] - j : SQUARE);
            }
    }
}

CYGRAD_END_LOOPS
/* Whether elements are nonzero: whether a bit of the mask is set. */
#define DEFINE_TRUTHS(NAME, TYPE)                                                                               \
    static CYGRAD_CLONES void NAME(const TYPE *x, uint8_t *out, Py_ssize_t n, TYPE mask)                        \
    {                                                                                                           \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = (x[i] & mask) != 0;                      \
    }

CYGRAD_BEGIN_PLAIN_LOOPS
DEFINE_TRUTHS(truths_4, uint32_t)
DEFINE_TRUTHS(truths_8, uint64_t)
CYGRAD_END_LOOPS
#undef DEFINE_TRUTHS

static void byte_to_bool(const void *x, void *out, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) ((uint8_t *)out)[i] = ((const uint8_t *)x)[i] != 0;
}

static void int32_to_bool(const void *x, void *out, Py_ssize_t n) { truths_4(x, out, n, UINT32_MAX); }
static void int64_to_bool(const void *x, void *out, Py_ssize_t n) { truths_8(x, out, n, UINT64_MAX); }
static void float_to_bool(const void *x, void *out, Py_ssize_t n) { truths_4(x, out, n, UINT32_MAX >> 1); }
static void double_to_bool(const void *x, void *out, Py_ssize_t n) { truths_8(x, out, n, UINT64_MAX >> 1); }

#endif
