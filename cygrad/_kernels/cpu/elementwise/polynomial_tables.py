"""Functions of one float32 as tables of polynomials, which are made when first used from the function's own values.

Note [Tables]
-------------
Numbers of one sign and exponent have their own rows of factors: 1, 2, 4, ... up to 256, as many as it takes until the
polynomials of degree 7 through 8 places are right between these to 1e-9 of the value, or, where the function has a
zero, as if its argument were right to 3e-15. They are computed in float64, so that rounding to float32 is all that is
left: the result is within 0.52 ulp of the values. A row's first place is met exactly: lgamma(1) is 0. Where that takes
more rows (beside poles, and where a function oscillates quickly), for infinities and nan, elements are given to the
function. A table has only the exponents that occurred. It is never changed, but replaced by a larger one, so that
threads need no lock.
"""

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense, new_array

TABLED = 36  # as in native.h
PIECE = 1 << 13  # elements that one thread works on
BLOCK = 1 << 14  # elements that are given to the function at once
DEGREE = 7
MOST = 8  # 2 to this are the rows of an exponent
HOPEFUL = 5  # as many halvings are done at least
UNKNOWN, NONE = -1, 0  # in place of a first row

_PLACES = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2  # of Chebyshev, from 0 to 1
_BETWEEN = (_PLACES[1:] + _PLACES[:-1]) / 2
_POWERS = np.arange(DEGREE + 1)


class Tabled:
    """A function from arrays of float64 to such, for arrays of float32.

    `negative` tells whether numbers below 0 are in the table, too, or are always given to the function.
    """

    def __init__(self, function, negative=True):
        self.function, self.negative = function, negative
        self.table = np.full(512, UNKNOWN), np.zeros((512, 2), np.int32), np.full((1, DEGREE + 1), np.nan)
        self.table[1][:, 1] = 23

    def __call__(self, x):
        """Its values, or None if there is no loop for such an array."""
        if type(x) is not np.ndarray or x.dtype != np.float32 or not loop_table.has_loops(x):
            return None
        if x.flags.c_contiguous or not all(x.strides):
            return self._in_order(x)
        order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])  # which the result keeps
        return self._in_order(x.transpose(order)).transpose(np.argsort(order))

    def _in_order(self, x):
        """The values, with the axes one after the other in memory."""
        x = dense(x)
        out = new_array(x.shape, x.dtype.num)
        if self._run(self.table, x, out):
            x, values = x.reshape(-1), out.reshape(-1)
            for start in range(0, x.size, BLOCK):
                self._ask(x[start : start + BLOCK], values[start : start + BLOCK])
        return out

    def _ask(self, x, values):
        """Put in what the table did not have."""
        rest = np.flatnonzero(values != values)
        if not len(rest):
            return
        kinds = x[rest].view(np.uint32) >> 23
        if np.any(self.table[0][kinds] == UNKNOWN):
            self.table = table = self._with(self.table, kinds)
            self._run(table, x, values)
            rest = rest[values[rest] != values[rest]]
        with np.errstate(all="ignore"):
            values[rest] = self.function(x[rest].astype(np.float64))

    def _run(self, table, x, out):
        return loop_table.run(TABLED, (x, out, table[1], table[2]), (), 0, x.size, PIECE)

    def _with(self, table, kinds):
        """A table that has these kinds of numbers, too."""
        first, places, rows = table[0].copy(), table[1].copy(), [table[2]]
        count = len(table[2])
        left = np.flatnonzero(np.bincount(kinds, minlength=512)[:512] * (first == UNKNOWN))
        first[left] = NONE
        left = left[(left % 256 < 255) & (self.negative | (left < 256))]
        for halvings in range(MOST + 1):
            factors, fit = self._factors(left, halvings)
            done = left[fit.all(1)]
            rows.append(factors[fit.all(1)].reshape(-1, DEGREE + 1))
            first[done] = places[done, 0] = count + np.arange(len(done)) * 2**halvings
            places[done, 1] = 23 - halvings
            count += len(rows[-1])
            left = left[~fit.all(1) & (fit.any(1) | (halvings < HOPEFUL))]
        return first, places, np.concatenate(rows)

    def _factors(self, kinds, halvings):
        """Of each row of each kind, and whether they are as exact as wanted."""
        parts = 2**halvings
        at = np.arange(parts)[:, None]
        values, between = (self._values(kinds, (at + offsets) / parts) for offsets in (_PLACES, _BETWEEN))
        factors = np.zeros_like(values)
        factors[..., 0] = values[..., 0]
        with np.errstate(all="ignore"):
            slopes = (values[..., 1:] - values[..., :1]) / _PLACES[1:]
            powers = _PLACES[1:, None] ** _POWERS[:-1]
            factors[..., 1:] = np.linalg.solve(powers, slopes[..., None])[..., 0]
            error = abs(factors @ (_BETWEEN[:, None] ** _POWERS).T - between).max(-1)
            both = np.concatenate((values, between), -1)
            high, low = both.max(-1), both.min(-1)
            same = (high == low) | np.isnan(both).all(-1)
            least = np.where(high * low > 0, np.minimum(abs(high), abs(low)), 1e-39)
            fit = error <= np.maximum(1e-9 * least, 3e-15 * parts * (high - low))
            fit |= same | (high <= 1e-48) & (low >= -1e-48)  # in float32 these are 0
            factors[same, 1:] = 0
            factors *= 2.0 ** ((halvings - 23) * _POWERS)
        return factors, fit

    def _values(self, kinds, mantissas):
        exponents = (kinds % 256)[:, None, None]
        sizes = np.ldexp(mantissas + (exponents > 0), np.maximum(exponents, 1) - 127)
        with np.errstate(all="ignore"):
            return self.function(np.where(kinds[:, None, None] > 255, -sizes, sizes))
