"""Functions of float32 by tables of polynomials, built on first use from the function's own values.

Note [Tables]
-------------
Each sign and exponent has its own rows of coefficients: 1, 2, 4, ... up to 256, as many as it takes until the
polynomials of degree 7 through 8 points are accurate between these to a relative error of 1e-9 or, near a zero of the
function, to the effect of an error of 3e-15 in the argument. They are evaluated in float64, so that only the rounding
to float32 remains: the result is within 0.52 ulp of the function's values. A row's first point is exact: lgamma(1) is
0. Where more rows would be needed (near poles, and where a function oscillates quickly), and for infinities and NaN,
the function itself is called. A table contains only exponents that have occurred. It is never modified but replaced by
a larger one, so that threads need no lock.
"""

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.loop_table import LOOPS

TABLED = LOOPS.TABLED
PIECE = 1 << 13  # elements per chunk
BLOCK = 1 << 14  # elements per call of the function
DEGREE = 7
MOST = 8  # an exponent has at most 2 to this many rows
HOPEFUL = 5  # always halve at least this many times
UNKNOWN, NONE = -1, 0  # in place of a first row

_PLACES = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2  # Chebyshev points from 0 to 1
_BETWEEN = (_PLACES[1:] + _PLACES[:-1]) / 2
_POWERS = np.arange(DEGREE + 1)


class Tabled:
    """A function of float64 arrays, tabulated for arrays of float32.

    `negative`: whether the table covers negative numbers; otherwise the function itself is called for them.
    """

    def __init__(self, function, negative=True):
        self.function, self.negative = function, negative
        self.table = np.full(512, UNKNOWN), np.zeros((512, 2), np.int32), np.full((1, DEGREE + 1), np.nan)
        self.table[1][:, 1] = 23

    def __call__(self, x):
        """The function's values, or None if there is no loop for the array."""
        if type(x) is not np.ndarray or x.dtype != np.float32 or not loop_table.has_loops(x):
            return None
        if x.flags.c_contiguous or not all(x.strides):
            return self._in_order(x)
        order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])  # kept by the result
        return self._in_order(x.transpose(order)).transpose(np.argsort(order))

    def _in_order(self, x):
        """The values for an array, as a dense array in C order."""
        x = dense(x)
        out = new_array(x.shape, x.dtype.num)
        used = self.table
        if self._run(used, x, out):
            x, values = x.reshape(-1), out.reshape(-1)
            for start in range(0, x.size, BLOCK):
                self._ask(used, x[start : start + BLOCK], values[start : start + BLOCK])
        return out

    def _ask(self, used, x, values):
        """Fill in the values that were missing in the table `used`."""
        rest = np.flatnonzero(values != values)
        if not len(rest):
            return
        kinds = x[rest].view(np.uint32) >> 23
        table = self.table
        if np.any(table[0][kinds] == UNKNOWN):
            self.table = table = self._with(table, kinds)
        if table is not used:  # what it has by now must come from it, so that the first call gives the bits of the next
            self._run(table, x, values)
            rest = rest[values[rest] != values[rest]]
        with np.errstate(all="ignore"):
            values[rest] = self.function(x[rest].astype(np.float64))

    def _run(self, table, x, out):
        return loop_table.run(TABLED, (x, out, table[1], table[2]), (), 0, x.size, PIECE)

    def _with(self, table, kinds):
        """A table that also covers these kinds (sign and exponent) of numbers."""
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
        """The coefficients of each row of each kind, and whether they are accurate enough."""
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
            fit |= same | (high <= 1e-48) & (low >= -1e-48)  # 0 in float32
            factors[same, 1:] = 0
            factors *= 2.0 ** ((halvings - 23) * _POWERS)
        return factors, fit

    def _values(self, kinds, mantissas):
        exponents = (kinds % 256)[:, None, None]
        sizes = np.ldexp(mantissas + (exponents > 0), np.maximum(exponents, 1) - 127)
        with np.errstate(all="ignore"):
            return self.function(np.where(kinds[:, None, None] > 255, -sizes, sizes))
