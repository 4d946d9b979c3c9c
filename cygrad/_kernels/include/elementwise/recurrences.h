/* Recurrence relations of orthogonal polynomials and their derivatives, from which polynomials.py takes many steps.

   The loops keep differences d = P_m - P_{m-1}, from which P_{m+1} - P_m = c * d + b * t * P_m for a small t = x - e near
   an end e of the interval. That loses no digits there, unlike the difference of two nearly equal products. */

#ifndef CYGRAD_RECURRENCES_H
#define CYGRAD_RECURRENCES_H

#include "platform/target_clones.h"

enum { RECURRENCE_LANES = 8 };

CYGRAD_BEGIN_LOOPS

/* The coefficients of step m: b = b0 + b1 * m and c = c0 + c1 * m, divided by m + 1 if the fifth number is not 0. */
#define STEP_COEFFICIENTS(numbers, m)                                 \
    const double share = (numbers)[4] ? 1 / ((m) + 1) : 1,            \
                 b = ((numbers)[0] + (numbers)[1] * (m)) * share,     \
                 c = ((numbers)[2] + (numbers)[3] * (m)) * share

/* The polynomials themselves, which stay in registers. */
static CYGRAD_WIDE_CLONES void advance_values(const double *numbers, const double *t, double *differences,
                                              double *values, double m, Py_ssize_t steps)
{
    double d[RECURRENCE_LANES], p[RECURRENCE_LANES];
    for (int j = 0; j < RECURRENCE_LANES; j++) d[j] = differences[j], p[j] = values[j];
    for (Py_ssize_t i = 0; i < steps; i++, m++) {
        STEP_COEFFICIENTS(numbers, m);
        for (int j = 0; j < RECURRENCE_LANES; j++) d[j] = c * d[j] + b * t[j] * p[j];
        for (int j = 0; j < RECURRENCE_LANES; j++) p[j] += d[j];
    }
    for (int j = 0; j < RECURRENCE_LANES; j++) differences[j] = d[j], values[j] = p[j];
}

/* One lane of derivatives of orders below `rows`, which are `apart` elements from each other. */
static CYGRAD_CLONES void advance_derivatives(const double *numbers, double t, double *differences, double *values,
                                              Py_ssize_t rows, Py_ssize_t apart, double m, Py_ssize_t steps)
{
    for (Py_ssize_t i = 0; i < steps; i++, m++) {
        STEP_COEFFICIENTS(numbers, m);
        for (Py_ssize_t k = rows; k-- > 0;) {       /* from the highest order, which needs the next lower one */
            double *d = differences + k * apart, *p = values + k * apart;
            *d = c * *d + b * t * *p + (k ? (double)k * b * p[-apart] : 0);
            *p += *d;
        }
    }
}

CYGRAD_END_LOOPS

/* data: t; of the derivatives of orders 0, 1, ..., a row of n elements each: the differences, and the values for P_m,
   which both become those `steps` later; five numbers. n: n, m, steps, rows. Items are elements. */
static void recurrence_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const double *t = (const double *)c->data[0] + first, *numbers = (const double *)c->data[3];
    double *differences = (double *)c->data[1] + first, *values = (double *)c->data[2] + first;
    const double m = (double)c->n[1];
    for (Py_ssize_t i = 0; i < count; i += RECURRENCE_LANES) {
        const Py_ssize_t lanes = count - i < RECURRENCE_LANES ? count - i : RECURRENCE_LANES;
        if (c->n[3] > 1) {
            for (Py_ssize_t j = i; j < i + lanes; j++)
                advance_derivatives(numbers, t[j], differences + j, values + j, c->n[3], c->n[0], m, c->n[2]);
            continue;
        }
        double own[3][RECURRENCE_LANES] = {{0}};
        for (Py_ssize_t j = 0; j < lanes; j++)
            own[0][j] = t[i + j], own[1][j] = differences[i + j], own[2][j] = values[i + j];
        advance_values(numbers, own[0], own[1], own[2], m, c->n[2]);
        for (Py_ssize_t j = 0; j < lanes; j++) differences[i + j] = own[1][j], values[i + j] = own[2][j];
    }
}

#endif
