"""Loops of wide_arithmetic.h against NumPy's, bit for bit: which of them runs depends on where operands begin."""

import itertools

import numpy as np
import pytest

from cygrad._kernels.cpu.base.ufunc import Ufunc

SPECIAL = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -1.5
LENGTHS = 1, 2, 7, 8, 15, 16, 17, 33, 250, 4099


def numbers(n, dtype, begin, rng):
    """Random numbers, some of them special, that begin so many elements after a cache line does."""
    itemsize = np.dtype(dtype).itemsize
    room = np.empty(n * itemsize + 128, np.uint8)
    first = -room.ctypes.data % 64 + begin * itemsize
    found = room[first : first + n * itemsize].view(dtype)
    found[...] = rng.standard_normal(n)
    found[rng.random(n) < 0.3] = rng.choice(SPECIAL)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply])
def test_every_position_and_step(ufunc, dtype):
    own, rng = Ufunc(ufunc), np.random.default_rng(0)
    for n, begin in itertools.product(LENGTHS, (0, 1)):
        x, y = (numbers(n, dtype, begin, rng) for _ in range(2))
        alone = np.array(rng.standard_normal(), dtype)
        for a, b in [(x, y), (x, alone), (alone, y), (x[::-1], y), (x, numbers(n, dtype, 1 - begin, rng)), (x, x)]:
            with np.errstate(all="ignore"):
                expected = ufunc(a, b)
            for out in (numbers(n, dtype, begin, rng), None):
                same_bits(own(a, b, out=out), expected)
        with np.errstate(all="ignore"):
            expected = ufunc(x, y)
        same_bits(own(x, y, out=x), expected)


def same_bits(found, expected):
    unsigned = f"u{expected.itemsize}"
    np.testing.assert_array_equal(found.view(unsigned), expected.view(unsigned))
