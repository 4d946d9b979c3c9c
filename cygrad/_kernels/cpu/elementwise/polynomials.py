"""Orthogonal polynomials and their derivatives, by their recurrence relations.

A family is `(first, steps)`: P_0 = 1, P_1 = first[0] + first[1] * x, and P_{m+1} = (a + b * x) * P_m - c * P_{m-1}.
`steps` is (a0, a1, b0, b1, c0, c1, divides): a = a0 + a1 * m, and the same for b and c, all divided by m + 1 if
`divides`. Differentiating the recurrence k times gives the k-th derivatives.
"""

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.device.dispatch import dispatching


def chebyshev(start, slope):
    return (start, slope), (0, 0, 2, 0, 1, 0, False)


def shifted_chebyshev(start, slope):
    """With 2 x - 1 in place of x."""
    return (start - slope, 2 * slope), (-2, 0, 4, 0, 1, 0, False)


CHEBYSHEV_T = chebyshev(0, 1)
CHEBYSHEV_U = chebyshev(0, 2)
CHEBYSHEV_V = chebyshev(-1, 2)
CHEBYSHEV_W = chebyshev(1, 2)
SHIFTED_T = shifted_chebyshev(0, 1)
SHIFTED_U = shifted_chebyshev(0, 2)
SHIFTED_V = shifted_chebyshev(-1, 2)
SHIFTED_W = shifted_chebyshev(1, 2)
HERMITE_H = (0, 2), (0, 0, 2, 0, 0, 2, False)
HERMITE_HE = (0, 1), (0, 0, 1, 0, 0, 1, False)
LAGUERRE = (1, -1), (1, 2, -1, 0, 0, 1, True)
LEGENDRE = (0, 1), (0, 0, 1, 2, 0, 1, True)


MANY = 1000  # recurrences of more steps are replaced by a formula, where there is one, or run in C
RECURRENCE = LOOPS.RECURRENCE
AT_ONCE = 1 << 24  # the most steps, times elements, between which an interrupt is noticed
PIECE = 64  # elements per chunk


def polynomial(x, degree, family, order=0):
    """The derivative of that order of the polynomials of these degrees; 0 for negative degrees."""
    with np.errstate(all="ignore"):
        degree = np.asarray(degree).astype(np.int64)
        lowest, highest = (degree.min(), degree.max()) if degree.size else (0, -1)
        x, degree = np.broadcast_arrays(x, degree)
        if highest > MANY and order == 0 and family in CLOSED_FORMS:
            return np.where(
                degree > MANY,
                _chebyshev_of_many(x, degree, *CLOSED_FORMS[family]).astype(x.dtype),
                polynomial(x, np.minimum(degree, MANY), family),
            )
        if highest > MANY and family not in OVERFLOWING:
            return _of_many_steps(x, degree, family, order)
        result = np.asarray(_of_few_steps(x, degree, family, order, lowest, highest))
        missing = np.isnan(result)
        if missing.any() and family not in OVERFLOWING:
            _note_overflow(result, missing, x, degree, family, order)
    return result


def _of_few_steps(x, degree, family, order, lowest, highest):
    """`polynomial` in the precision of x."""
    result = np.zeros(x.shape, x.dtype)
    for m, value in enumerate(_derivatives(x, family, order, highest)):
        if m == lowest == highest:
            return value
        if m >= lowest:
            np.copyto(result, value, where=degree == m)
        if m % 64 == 0 and highest > MANY and not np.isfinite(value).any():  # nor will any later one be finite
            np.copyto(result, np.nan, where=degree > m)
            break
    return result


def _note_overflow(result, missing, x, degree, family, order):
    """Put infinities in place of NaNs where the polynomials grow with their degree: outside of their interval."""
    if family == LAGUERRE:
        grows, is_negative = x < 0, order % 2 == 1
    else:
        place = 2 * x - 1 if family in IN_UNIT_INTERVAL else x
        grows, is_negative = np.abs(place) > 1, (place < 0) & ((degree - order) % 2 == 1)
    np.copyto(result, np.where(is_negative, -np.inf, np.inf), where=missing & grows, casting="same_kind")


# {family: (shift, sign, whether x is shifted to [0, 1])}. P_n(cos t) is the quotient of the cosines (sign 1) or sines
# (sign -1) of (n + shift) * t and shift * t.
CLOSED_FORMS = {
    CHEBYSHEV_T: (0.0, 1, False),
    CHEBYSHEV_U: (1.0, -1, False),
    CHEBYSHEV_V: (0.5, 1, False),
    CHEBYSHEV_W: (0.5, -1, False),
    SHIFTED_T: (0.0, 1, True),
    SHIFTED_U: (1.0, -1, True),
    SHIFTED_V: (0.5, 1, True),
    SHIFTED_W: (0.5, -1, True),
}
IN_UNIT_INTERVAL = SHIFTED_T, SHIFTED_U, SHIFTED_V, SHIFTED_W
OVERFLOWING = HERMITE_H, HERMITE_HE  # before their degree is high, for every x


def _chebyshev_of_many(x, degree, shift, sign, is_shifted):
    """Chebyshev polynomials of high degrees in double precision, by trigonometric or hyperbolic functions.

    Those of -x follow from the symmetry P_n(-x) = (-1)^n P_n(x), which exchanges the third and the fourth kind.
    """
    x = x.astype(np.float64)
    if is_shifted:
        x = 2 * x - 1
    size, n = np.abs(x), degree.astype(np.float64)
    is_sine = (sign < 0) != ((x < 0) & (shift == 0.5))
    flipped = np.where((x < 0) & (degree % 2 == 1), -1.0, 1.0)
    angle, growth = np.arccos(np.minimum(size, 1)), np.arccosh(np.maximum(size, 1))
    inner, outer = shift * angle, (n + shift) * angle
    cosines = np.where(size <= 1, np.cos(outer) / np.cos(inner), _quotient_of_cosh(n, shift, growth))
    sines = np.where(size <= 1, np.sin(outer) / np.sin(inner), _quotient_of_sinh(n, shift, growth))
    sines = np.where(size == 1, (n + shift) / (shift or 1), sines)
    return flipped * np.where(np.isnan(x), np.nan, np.where(is_sine, sines, cosines))


def _quotient_of_cosh(n, shift, t):
    return np.exp(n * t) * (1 + np.exp(-2 * (n + shift) * t)) / (1 + np.exp(-2 * shift * t))


def _quotient_of_sinh(n, shift, t):
    return np.exp(n * t) * np.expm1(-2 * (n + shift) * t) / np.expm1(-2 * shift * t)


def _of_many_steps(x, degree, family, order):
    """`polynomial` in double precision, by a loop from each degree that occurs to the next; see recurrences.h.

    The polynomials of -x (of 1 - x in the unit interval) are those of x with the sign of their degree, or those of the
    related family; so x is at the upper end of the interval, or at 0 for Laguerre polynomials.
    """
    left, flat = degree.reshape(-1), x.astype(np.float64).reshape(-1)
    offset, first, is_mirrored = _from_the_end(flat, family)
    is_negative = is_mirrored & ((left - order) % 2 == 1)
    result, places, m = np.zeros(flat.size), np.arange(flat.size), 1
    differences, values = np.zeros((2, order + 1, flat.size))
    differences[0], values[0] = first, 1
    result[left == 0] = values[order][left == 0]
    values[0] += first
    if order:
        differences[1] = values[1] = family[0][1]
    for target in np.unique(left[left > 0]):
        _advance(offset, differences, values, family[1], m, int(target))
        m, reached = int(target), left == target
        result[places[reached]] = values[order, reached]
        kept = left > target
        if 2 * np.count_nonzero(kept) < kept.size:
            places, left, offset = places[kept], left[kept], offset[kept]
            differences, values = (np.ascontiguousarray(rows[:, kept]) for rows in (differences, values))
    np.negative(result, out=result, where=is_negative)
    return result.reshape(x.shape).astype(x.dtype)


def _from_the_end(x, family):
    """Return the offset of x, or of its mirror image, from the end; P_1 - P_0 there; whether it is the image."""
    start, slope = family[0]
    if family == LAGUERRE:
        return x, slope * x, np.zeros(x.shape, bool)
    if family in IN_UNIT_INTERVAL:
        is_mirrored = x < 0.5
        offset, mirrored_start = np.where(is_mirrored, -x, x - 1), -(slope + start)
    else:
        is_mirrored = x < 0
        offset, mirrored_start = np.abs(x) - 1, -start
    return offset, slope * offset + (slope - 1 + np.where(is_mirrored, mirrored_start, start)), is_mirrored


def _advance(offset, differences, values, steps, m, target):
    """Take P_m to P_target in place, or stop once no value is finite, nor will be."""
    numbers = np.array(steps[2:], np.float64)
    while m < target and np.isfinite(values).any():
        count = min(m, target - m, max(AT_ONCE // max(offset.size, 1), 1))  # soon finds that nothing is finite
        if loop_table.has_loops(offset):
            arrays = offset, differences, values, numbers
            loop_table.run(RECURRENCE, arrays, (offset.size, m, count, len(values)), 0, offset.size, PIECE)
        else:
            _step_in_numpy(offset, differences, values, numbers, m, count)
        m += count


def _step_in_numpy(offset, differences, values, numbers, m, count):
    b0, b1, c0, c1, divides = numbers
    for step in range(m, m + count):
        divisor = step + 1 if divides else 1
        b, c = (b0 + b1 * step) / divisor, (c0 + c1 * step) / divisor
        for k in reversed(range(len(values))):
            differences[k] = c * differences[k] + b * offset * values[k] + (k * b * values[k - 1] if k else 0)
            values[k] += differences[k]


def _following(x, former, latest, steps, m):
    """Return the derivatives of P_{m+1} from those of P_m and P_{m-1}."""
    a0, a1, b0, b1, c0, c1, divides = steps
    divisor = m + 1 if divides else 1
    a, b, c = (a0 + a1 * m) / divisor, (b0 + b1 * m) / divisor, (c0 + c1 * m) / divisor
    line = b * x if a == 0 else b * x + a
    following = [line * latest[k] + k * b * latest[k - 1] for k in range(1, len(latest))]
    line *= latest[0]
    following.insert(0, line)
    for k in range(len(following)):  # which may hold scalars
        following[k] -= former[k] if c == 1 else c * former[k]
    return following


def _derivatives(x, family, order, highest):
    """Yield the derivatives of that order of P_0, ..., P_highest."""
    if highest < 0:
        return
    (start, slope), steps = family
    zeros = [np.zeros_like(x)] * order
    former = [np.ones_like(x), *zeros]
    yield former[order]
    line = slope * x
    line += start
    latest = [line, np.full_like(x, slope), *zeros[1:]] if order else [line]
    for m in range(1, highest + 1):
        yield latest[order]
        if m < highest:
            former, latest = latest, _following(x, former, latest, steps, m)


dispatching(globals(), "polynomial")
