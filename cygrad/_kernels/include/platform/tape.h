/* The switch of the tape (Note [The tape] in tape/tape.pyx), and what the memory pool tells it.

   `cygrad_tape_open` is nonzero while a step is being noted. Each place that starts a loop tests it, and so does each that
   gives or takes memory; at all other times that test is the whole cost. */

#ifndef CYGRAD_TAPE_H
#define CYGRAD_TAPE_H

#include <stddef.h>

enum { CYGRAD_DIED, CYGRAD_BORN };

extern int cygrad_tape_open;
void cygrad_tape_memory(void *memory, size_t size, int event);

static inline void tape_born(void *memory, size_t size)
{
    if (cygrad_tape_open && memory) cygrad_tape_memory(memory, size, CYGRAD_BORN);
}

static inline void tape_died(void *memory)
{
    if (cygrad_tape_open) cygrad_tape_memory(memory, 0, CYGRAD_DIED);
}

#endif
