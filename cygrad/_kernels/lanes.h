/* Reductions to one number: so many accumulators side by side, which become vectors. */

#ifndef CYGRAD_LANES_H
#define CYGRAD_LANES_H

#define LANES 32

/* Adds the upper half of `lanes` to the lower one, of `width`. */
#define FOLD(width) for (int j = 0; j < width; j++) lanes[j] += lanes[j + width]

#endif
