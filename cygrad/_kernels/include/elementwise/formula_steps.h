/* Steps of the optimizers that have a formula for each element besides SGD and Adam, for float and double. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_FORMULA_STEPS_H
#define CYGRAD_FORMULA_STEPS_H

#include <math.h>
#include "platform/target_clones.h"

/* Values shared by all elements; `c` are those of each formula, in double until they are used. */
enum { ADADELTA, ADAGRAD, ADAMAX, ASGD, NADAM, RADAM, RMSPROP, RPROP };

typedef struct {
    int kind;
    double sign, weight_decay, shrink;      /* -1 to maximize; what is added to the gradient; the decoupled decay */
    double c[7];
} formula_settings;

CYGRAD_BEGIN_CHOOSING_LOOPS

#define REAL float
#define SQRT sqrtf
#define FABS fabsf
#define NAME(name) name##_f32
#include "elementwise/formula_steps.h"
#undef REAL
#undef SQRT
#undef FABS
#undef NAME

#define REAL double
#define SQRT sqrt
#define FABS fabs
#define NAME(name) name##_f64
#include "elementwise/formula_steps.h"
#undef REAL
#undef SQRT
#undef FABS
#undef NAME

CYGRAD_END_LOOPS

/* Called with untyped pointers and a flag for the type. */
#define formula_step(is_double, ...) ((is_double) ? formula_step_f64(__VA_ARGS__) : formula_step_f32(__VA_ARGS__))

#endif
#else

/* p, g, then the state; `x` is the parameter after its decay, `d` the gradient to follow. */
#define ARGUMENTS REAL *p, const REAL *g, REAL *s0, REAL *s1, REAL *s2, Py_ssize_t n, const formula_settings *s
#define SHARED \
    const REAL sign = (REAL)s->sign, decay = (REAL)s->weight_decay, shrink = (REAL)s->shrink; \
    const REAL c0 = (REAL)s->c[0], c1 = (REAL)s->c[1], c2 = (REAL)s->c[2], c3 = (REAL)s->c[3], c4 = (REAL)s->c[4]; \
    const REAL c5 = (REAL)s->c[5], c6 = (REAL)s->c[6]; \
    (void)s0, (void)s1, (void)s2, (void)c0, (void)c1, (void)c2, (void)c3, (void)c4, (void)c5, (void)c6;
#define EACH(...) \
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) { \
        REAL x = p[i] * shrink, d = sign * g[i] + decay * x; \
        __VA_ARGS__ \
        p[i] = x; \
    }

static CYGRAD_CLONES void NAME(adadelta)(ARGUMENTS)
{
    SHARED
    EACH(REAL v = s0[i] * c0 + c1 * d * d, moved = s1[i], update = SQRT(moved + c2) / SQRT(v + c2) * d;
         s0[i] = v;
         s1[i] = moved * c0 + c1 * update * update;
         x -= c3 * update;)
}

static CYGRAD_CLONES void NAME(adagrad)(ARGUMENTS)
{
    SHARED
    EACH(REAL total = s0[i] + d * d;
         s0[i] = total;
         x -= c0 * d / (SQRT(total) + c1);)
}

static CYGRAD_CLONES void NAME(adamax)(ARGUMENTS)
{
    SHARED
    EACH(REAL m = s0[i] + (d - s0[i]) * c0, before = s1[i] * c1, now = FABS(d) + c2;
         REAL most = now > before || now != now ? now : before;         /* NaN stays */
         s0[i] = m;
         s1[i] = most;
         x -= c3 * m / most;)
}

static CYGRAD_CLONES void NAME(asgd)(ARGUMENTS)
{
    SHARED
    EACH(x = x * c0 - c1 * d;
         s0[i] += c2 * (x - s0[i]);)
}

static CYGRAD_CLONES void NAME(nadam)(ARGUMENTS)
{
    SHARED
    EACH(REAL m = s0[i] + (d - s0[i]) * c0, v = s1[i] * c1 + c2 * d * d;
         s0[i] = m;
         s1[i] = v;
         x -= (c5 * m + c6 * d) / (SQRT(v / c3) + c4);)
}

/* c4 is negative as long as the variance is not known well enough. */
static CYGRAD_CLONES void NAME(radam)(ARGUMENTS)
{
    SHARED
    if (c4 < 0)
        EACH(s0[i] += (d - s0[i]) * c0;
             s1[i] = s1[i] * c1 + c2 * d * d;
             x -= c3 * s0[i];)
    else
        EACH(REAL m = s0[i] + (d - s0[i]) * c0, v = s1[i] * c1 + c2 * d * d;
             s0[i] = m;
             s1[i] = v;
             x -= c3 * m * (c4 / (SQRT(v) + c5));)
}

/* s1: the momentum's buffer, s2: the mean of gradients; NULL for what there is not. */
static CYGRAD_CLONES void NAME(rmsprop)(ARGUMENTS)
{
    SHARED
#define MEAN s2[i] += (d - s2[i]) * c1; centered -= s2[i] * s2[i];
#define BUFFER update += s1[i] * c3; s1[i] = update;
#define RMSPROP(with_mean, with_buffer) \
    EACH(REAL v = s0[i] * c0 + c1 * d * d, centered = v, update; \
         s0[i] = v; \
         with_mean \
         update = d / (SQRT(centered) + c2); \
         with_buffer \
         x -= c4 * update;)
    if (s1 != NULL && s2 != NULL)
        RMSPROP(MEAN, BUFFER)
    else if (s1 != NULL)
        RMSPROP(, BUFFER)
    else if (s2 != NULL)
        RMSPROP(MEAN, )
    else
        RMSPROP(, )
#undef MEAN
#undef BUFFER
#undef RMSPROP
}

static CYGRAD_CLONES void NAME(rprop)(ARGUMENTS)
{
    SHARED
    EACH(REAL turn = d * s0[i], size = s1[i] * (turn > 0 ? c1 : turn < 0 ? c0 : (REAL)1);
         size = size < c2 ? c2 : size > c3 ? c3 : size;
         d = turn < 0 ? (REAL)0 : d;
         s0[i] = d;
         s1[i] = size;
         x -= (d > 0 ? (REAL)1 : d < 0 ? (REAL)-1 : d) * size;)
}

static void NAME(formula_step)(ARGUMENTS)
{
    switch (s->kind) {
    case ADADELTA: NAME(adadelta)(p, g, s0, s1, s2, n, s); break;
    case ADAGRAD: NAME(adagrad)(p, g, s0, s1, s2, n, s); break;
    case ADAMAX: NAME(adamax)(p, g, s0, s1, s2, n, s); break;
    case ASGD: NAME(asgd)(p, g, s0, s1, s2, n, s); break;
    case NADAM: NAME(nadam)(p, g, s0, s1, s2, n, s); break;
    case RADAM: NAME(radam)(p, g, s0, s1, s2, n, s); break;
    case RMSPROP: NAME(rmsprop)(p, g, s0, s1, s2, n, s); break;
    default: NAME(rprop)(p, g, s0, s1, s2, n, s);
    }
}

#undef ARGUMENTS
#undef SHARED
#undef EACH
#endif
