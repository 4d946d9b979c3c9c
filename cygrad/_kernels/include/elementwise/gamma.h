/* The incomplete gamma function for float32, computed in double precision to about ten correct digits. */

#ifndef CYGRAD_GAMMA_H
#define CYGRAD_GAMMA_H

#include <math.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_PLAIN_LOOPS

/* The regularized lower or upper function, or 1 minus the other. The lower one is a series, used where x is small; the
   upper one is a continued fraction. Both have the factor x^a exp(-x) / gamma(a + 1), where gamma(a + 12) comes from
   Stirling's series and is divided by a product. NaN marks results not computed here: the number of terms grows with a,
   and 1 minus a close number has no digits. */
static double incomplete_gamma(double a, double x, int is_upper)
{
    const double z = a + 12, r = 1 / (z * z);
    const int is_series = x < a + 1 || x < (a > 0.1 ? a + 4 + sqrt(a) : 1.5);
    double front, product = 1, found;
    if (!(a > 0 && a < 150 && x > 0 && x < INFINITY)) return NAN;
    front = 1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188))));
    front = exp(a * log(x) - x - ((z - 0.5) * log(z) - z + 0.91893853320467274 + front / z));
    for (int k = 1; k < 12; k++) product *= a + k;
    front *= product;
    if (is_series) {
        const double least = !is_upper ? 1e-10 : a < 1 ? 1e-13 * a : 1e-13;  /* keeps digits in 1 minus the sum */
        double term = 1, sum = 1;
        for (double n = a + 1; term > least * sum; n++) sum += term *= x / n;
        found = front * sum;
    }
    else {
        double rest = 0;
        for (double k = floor(4 + 32 / x + 1.4 * sqrt(a)); k > 0; k--) rest = k * (k - a) / (x + 2 * k + 1 - a - rest);
        found = front * a / (x + 1 - a - rest);
    }
    if (is_upper != is_series) return found;
    return found > 1 - 1e-5 ? NAN : 1 - found;
}

CYGRAD_END_LOOPS

#endif
