/* The Mersenne Twister mt19937 (M. Matsumoto, T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
   uniform pseudorandom number generator", 1998), PyTorch's generator on the CPU.

   A block of 624 words is made at once, in vectors, from the block before it. `next` counts the words of the block that
   have been drawn; a new seed gives a block of which none may be drawn. */

#ifndef CYGRAD_TWISTER_H
#define CYGRAD_TWISTER_H

#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"

enum { TWISTER_WORDS = 624, TWISTER_AHEAD = 397 };

typedef struct {
    uint32_t block[TWISTER_WORDS];
    uint32_t next, is_fresh;        /* is_fresh: the block is a seed's; it yields no word */
    uint64_t seed;
    double spare;                   /* the second of a pair of normal numbers, if has_spare */
    int32_t has_spare;
    int32_t has_spare_float;        /* PyTorch's states have such a number, which nothing on the CPU draws */
    float spare_float;
} twister;

static void twister_seed(twister *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->seed = seed;
    t->is_fresh = 1;
    t->block[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < TWISTER_WORDS; i++)
        t->block[i] = 1812433253u * (t->block[i - 1] ^ (t->block[i - 1] >> 30)) + i;
}

CYGRAD_BEGIN_PLAIN_LOOPS

/* The highest bit of one word and the others of the next one, times the generator's matrix. */
CYGRAD_INLINE uint32_t twisted(uint32_t word, uint32_t following)
{
    return (((word & 0x80000000u) | (following & 0x7FFFFFFFu)) >> 1) ^ (-(following & 1u) & 0x9908B0DFu);
}

static CYGRAD_WIDE_CLONES void twister_refill(uint32_t *block)
{
    enum { WITH_OLD = TWISTER_WORDS - TWISTER_AHEAD };
    for (int i = 0; i < WITH_OLD; i++) block[i] = block[i + TWISTER_AHEAD] ^ twisted(block[i], block[i + 1]);
    for (int i = WITH_OLD; i < TWISTER_WORDS - 1; i++) block[i] = block[i - WITH_OLD] ^ twisted(block[i], block[i + 1]);
    block[TWISTER_WORDS - 1] = block[TWISTER_AHEAD - 1] ^ twisted(block[TWISTER_WORDS - 1], block[0]);
}

CYGRAD_INLINE uint32_t tempered(uint32_t word)
{
    word ^= word >> 11;
    word ^= (word << 7) & 0x9D2C5680u;
    word ^= (word << 15) & 0xEFC60000u;
    return word ^ (word >> 18);
}

static CYGRAD_WIDE_CLONES void temper(const uint32_t *block, uint32_t *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = tempered(block[i]);
}

CYGRAD_END_LOOPS

static void twister_ready(twister *t)
{
    if (!t->is_fresh && t->next < TWISTER_WORDS) return;
    twister_refill(t->block);
    t->next = t->is_fresh = 0;
}

static inline uint32_t next_word(twister *t)
{
    twister_ready(t);
    return tempered(t->block[t->next++]);
}

/* The first word is the upper half. */
static inline uint64_t next_words(twister *t)
{
    const uint64_t high = next_word(t);
    return high << 32 | next_word(t);
}

static inline double next_unit(twister *t)
{
    return (double)(int64_t)(next_words(t) & (((uint64_t)1 << 53) - 1)) * 1.1102230246251565e-16;      /* 2^-53 */
}

static void take_words(twister *t, uint32_t *out, Py_ssize_t n)
{
    while (n > 0) {
        twister_ready(t);
        const Py_ssize_t left = TWISTER_WORDS - (Py_ssize_t)t->next, k = n < left ? n : left;
        if (k < 8) for (Py_ssize_t i = 0; i < k; i++) out[i] = tempered(t->block[t->next + i]);
        else temper(t->block + t->next, out, k);
        t->next += (uint32_t)k, out += k, n -= k;
    }
}

/* -- PyTorch's states, of 5056 bytes -- */

enum {
    STATE_BYTES = 5056,
    AT_LEFT = 8, AT_SEEDED = 12, AT_NEXT = 16, AT_BLOCK = 24,
    AT_SPARE = 5024, AT_HAS_SPARE = 5040, AT_SPARE_FLOAT = 5048, AT_HAS_SPARE_FLOAT = 5052
};

static void twister_write(const twister *t, char *bytes)
{
    const uint64_t next = t->is_fresh ? 0 : t->next;
    const int32_t left = t->is_fresh ? 1 : TWISTER_WORDS + 1 - (int32_t)t->next, seeded = 1;
    memset(bytes, 0, STATE_BYTES);
    memcpy(bytes, &t->seed, 8);
    memcpy(bytes + AT_LEFT, &left, 4);
    memcpy(bytes + AT_SEEDED, &seeded, 4);
    memcpy(bytes + AT_NEXT, &next, 8);
    for (int i = 0; i < TWISTER_WORDS; i++) memcpy(bytes + AT_BLOCK + 8 * i, t->block + i, 4);
    if (t->has_spare) memcpy(bytes + AT_SPARE, &t->spare, 8);
    memcpy(bytes + AT_HAS_SPARE, &t->has_spare, 4);
    if (t->has_spare_float) memcpy(bytes + AT_SPARE_FLOAT, &t->spare_float, 4);
    bytes[AT_HAS_SPARE_FLOAT] = (char)(t->has_spare_float != 0);
}

/* Returns whether the state is valid; an invalid one changes nothing. A block is exhausted where either of PyTorch's
   two counters says so. */
static int twister_read(twister *t, const char *bytes)
{
    int32_t left, seeded;
    uint64_t next;
    memcpy(&left, bytes + AT_LEFT, 4);
    memcpy(&seeded, bytes + AT_SEEDED, 4);
    memcpy(&next, bytes + AT_NEXT, 8);
    next = (uint32_t)next;
    if (seeded == 0 || left <= 0 || left > TWISTER_WORDS || next > TWISTER_WORDS) return 0;
    memcpy(&t->seed, bytes, 8);
    for (int i = 0; i < TWISTER_WORDS; i++) memcpy(t->block + i, bytes + AT_BLOCK + 8 * i, 4);
    t->is_fresh = left == 1 && next == 0;
    t->next = left == 1 ? TWISTER_WORDS : (uint32_t)next;
    memcpy(&t->spare, bytes + AT_SPARE, 8);
    memcpy(&t->has_spare, bytes + AT_HAS_SPARE, 4);
    t->has_spare = t->has_spare != 0;
    memcpy(&t->spare_float, bytes + AT_SPARE_FLOAT, 4);
    t->has_spare_float = bytes[AT_HAS_SPARE_FLOAT] != 0;
    return 1;
}

#endif
