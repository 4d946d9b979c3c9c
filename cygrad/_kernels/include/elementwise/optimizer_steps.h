/* Optimizer steps for float and double: one pass over each parameter, no temporaries. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_OPTIM_H
#define CYGRAD_OPTIM_H

#include <math.h>
#include "platform/target_clones.h"

/* Values shared by all elements, in double until they are used: in float, 1 - beta would lose half its digits. */
typedef struct {
    double lr, momentum, taken, weight_decay, sign;     /* taken: 1 - dampening; sign: -1 to maximize */
    int nesterov;
} sgd_settings;

typedef struct {
    double gain1, beta2, gain2, eps, weight_decay, shrink, sign;        /* gains: 1 - beta; shrink: AdamW's decay */
    double step_size, root_of_correction;
} adam_settings;

CYGRAD_BEGIN_PLAIN_LOOPS

#define REAL float
#define SQRT sqrtf
#define NAME(name) name##_f32
#include "elementwise/optimizer_steps.h"
#undef REAL
#undef SQRT
#undef NAME

#define REAL double
#define SQRT sqrt
#define NAME(name) name##_f64
#include "elementwise/optimizer_steps.h"
#undef REAL
#undef SQRT
#undef NAME

CYGRAD_END_LOOPS

/* Called with untyped pointers and a flag for the type. */
#define sgd(is_double, ...) ((is_double) ? sgd_f64(__VA_ARGS__) : sgd_f32(__VA_ARGS__))
#define adam(is_double, ...) ((is_double) ? adam_f64(__VA_ARGS__) : adam_f32(__VA_ARGS__))

#endif
#else

/* `buffer` is NULL without momentum. */
static CYGRAD_CLONES void NAME(sgd)(REAL *p, const REAL *g, REAL *buffer, Py_ssize_t n, const sgd_settings *s)
{
    REAL lr = (REAL)s->lr, momentum = (REAL)s->momentum, taken = (REAL)s->taken;
    REAL weight_decay = (REAL)s->weight_decay, sign = (REAL)s->sign;
    if (buffer == NULL)
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) p[i] -= lr * (sign * g[i] + weight_decay * p[i]);
    else if (s->nesterov)
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
            REAL w = p[i], d = sign * g[i] + weight_decay * w, b = momentum * buffer[i] + taken * d;
            buffer[i] = b;
            p[i] = w - lr * (d + momentum * b);
        }
    else
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
            REAL w = p[i], b = momentum * buffer[i] + taken * (sign * g[i] + weight_decay * w);
            buffer[i] = b;
            p[i] = w - lr * b;
        }
}

/* `largest` is NULL without amsgrad. */
static CYGRAD_WIDE_CLONES void NAME(adam)(REAL *p, const REAL *g, REAL *m, REAL *v, REAL *largest, Py_ssize_t n,
                                     const adam_settings *s)
{
    REAL gain1 = (REAL)s->gain1, beta2 = (REAL)s->beta2, gain2 = (REAL)s->gain2, eps = (REAL)s->eps;
    REAL weight_decay = (REAL)s->weight_decay, shrink = (REAL)s->shrink, sign = (REAL)s->sign;
    REAL step_size = (REAL)s->step_size, root_of_correction = (REAL)s->root_of_correction;
    if (largest == NULL)
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
            REAL w = p[i] * shrink, d = sign * g[i] + weight_decay * w;
            REAL first = m[i] + (d - m[i]) * gain1, second = v[i] * beta2 + gain2 * d * d;
            m[i] = first;
            v[i] = second;
            p[i] = w - step_size * (first / (SQRT(second) / root_of_correction + eps));
        }
    else
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
            REAL w = p[i] * shrink, d = sign * g[i] + weight_decay * w;
            REAL first = m[i] + (d - m[i]) * gain1, second = v[i] * beta2 + gain2 * d * d;
            m[i] = first;
            v[i] = second;
            second = largest[i] > second || largest[i] != largest[i] ? largest[i] : second;     /* NaN stays */
            largest[i] = second;
            p[i] = w - step_size * (first / (SQRT(second) / root_of_correction + eps));
        }
}

#endif
