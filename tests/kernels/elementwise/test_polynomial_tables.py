"""Unary float32 functions by tables of polynomials, against their values in float64."""

import math

import numpy as np
import pytest
from arrays_zoo import layouts

import cygrad
from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.elementwise.polynomial_tables import Tabled
from cygrad._kernels.platform import thread_pool

special = pytest.importorskip("scipy.special")

FUNCTIONS = {
    **{
        name: getattr(special, name)
        for name in "erfcx log_ndtr gammaln digamma i0 i0e i1 i1e k0 k1e j0 y1 erfc".split()
    },
    "airy": lambda x: special.airy(x)[0],
    "sin": np.sin,
    "absolute": np.abs,
    "step": lambda x: np.floor(x),
    "constant": np.ones_like,
}
OPS = {  # the function, and its tolerance in ulps of float32
    "erfinv": (special.erfinv, 1.6),
    "special.ndtri": (special.ndtri, 0.52),
    "erfc": (special.erfc, 0.52),
    "lgamma": (special.gammaln, 0.52),
    "special.i1e": (special.i1e, 0.52),
    "special.bessel_y0": (special.y0, 0.52),
    "special.airy_ai": (lambda x: special.airy(x)[0], 0.52),
}
ULP = 0.52


def floats(count=20_000):
    """Numbers of all signs and exponents, the limits of each exponent, and ordinary ones."""
    bits = np.linspace(0, 0x7F800000, count).astype(np.uint32)
    ends = (np.arange(256, dtype=np.uint32)[:, None] << 23) + np.array([0, 1, 0x7FFFFF], np.uint32)
    positive = np.concatenate((bits, ends.reshape(-1))).view(np.float32)
    random = np.random.default_rng(0)
    ordinary = random.standard_normal(count) * random.choice([0.1, 1, 20], count)
    return np.concatenate((positive, -positive, ordinary.astype(np.float32), np.float32([0.5, 1, 2, -1, -2, np.nan])))


def assert_close(found, x, function, ulp):
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        rounded = exact.astype(np.float32)
        wrong = abs(found - exact) > ulp * np.spacing(abs(rounded))
    assert found.dtype == np.float32
    ordinary = np.isfinite(rounded)
    assert np.array_equal(found[~ordinary], rounded[~ordinary], equal_nan=True)
    assert np.isfinite(found[ordinary]).all()
    assert not np.any(wrong[ordinary]), x[ordinary][wrong[ordinary]]


def has_no_tables():
    return not loop_table.has_loops(np.zeros(1, np.float32))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    x = floats()
    table = Tabled(FUNCTIONS[name])
    if has_no_tables():
        assert table(x) is None
        return
    assert_close(table(x), x, FUNCTIONS[name], ULP)
    part = np.sort(x[::7])
    assert table(part).tobytes() == Tabled(FUNCTIONS[name])(part).tobytes()  # does not depend on earlier calls


@pytest.mark.skipif(has_no_tables(), reason="there are no loops")
@pytest.mark.parametrize("name", OPS)
def test_ops(name):
    function, ulp = OPS[name]
    op = cygrad.special if name.startswith("special.") else cygrad
    x = floats()
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
    x = x[~np.isinf(exact)]  # poles follow PyTorch and are tested elsewhere
    assert_close(getattr(op, name.split(".")[-1])(cygrad.tensor(x)).numpy(), x, function, ulp)


def test_polygamma():
    def trigamma(x):
        return special.polygamma(1, x)

    x = floats()
    x = x[(x > 0) | ((x > -50) & (x < 0))]
    with np.errstate(all="ignore"):
        x = x[np.isfinite(trigamma(x.astype(np.float64)).astype(np.float32))]
    assert_close(cygrad.polygamma(1, cygrad.tensor(x)).numpy(), x, trigamma, ULP)
    assert cygrad.polygamma(1, cygrad.tensor([-1e5 - 0.5])).isfinite()


def test_zeros_are_exact():
    assert cygrad.lgamma(cygrad.tensor([1.0, 2.0])).tolist() == [0, 0]
    zeros = cygrad.erfinv(cygrad.tensor([0.0, -0.0])).tolist()
    assert zeros == [0, 0]
    assert has_no_tables() or [math.copysign(1, zero) for zero in zeros] == [1, -1]  # SciPy ignores the sign
    assert cygrad.special.ndtri(cygrad.tensor([0.5, 0.0, 1.0])).tolist() == [0, -math.inf, math.inf]
    assert cygrad.erfinv(cygrad.tensor([1.0, -1.0])).tolist() == [math.inf, -math.inf]


def test_poles_of_digamma():
    found = cygrad.digamma(cygrad.tensor([0.0, -0.0, -1.0, -7.0, math.nan, math.inf])).numpy()
    assert np.array_equal(found, [-np.inf, np.inf, np.nan, np.nan, np.nan, np.inf], equal_nan=True)


@pytest.mark.skipif(has_no_tables(), reason="there are no loops")
def test_layouts():
    x = floats(300)[:1500].reshape(50, 30)
    table = Tabled(np.exp)
    expected = table(x)
    for name, array in layouts(x):
        found = table(array)
        assert found is None if name == "swapped" else np.array_equal(found, expected, equal_nan=True), name
    assert table(np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert table(np.float32(1) + np.zeros((), np.float32)) is None
    assert table(np.zeros((), np.float32)).shape == ()
    assert table(np.zeros(3)) is None


@pytest.mark.skipif(has_no_tables(), reason="there are no loops")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_number_has_a_row_outside(name):
    table = Tabled(FUNCTIONS[name])
    table(floats())
    first, places, rows = table.table
    assert rows.flags.c_contiguous and places.flags.c_contiguous and places.dtype == np.int32
    assert places.min() >= 0 and places[:, 1].max() <= 23
    assert np.all(places[:, 0] + (0x7FFFFF >> places[:, 1]) < len(rows))
    assert np.array_equal(places[:, 0], np.maximum(first, 0))


@pytest.mark.skipif(has_no_tables(), reason="there are no loops")
def test_threads_change_nothing():
    x, before = floats(100_000), thread_pool.num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            thread_pool.set_num_threads(threads)
            results.append(Tabled(special.digamma)(x).tobytes())
    finally:
        thread_pool.set_num_threads(before)
    assert len(set(results)) == 1


@pytest.mark.skipif(has_no_tables(), reason="there are no loops")
def test_function_is_asked_only_where_needed():
    asked = []

    def function(x):
        asked.append(x.size)
        return np.exp(x)

    table, x = Tabled(function), np.float32([1, 1.5, 3, 0.25])
    table(x)
    asked.clear()
    assert_close(table(x), x, np.exp, ULP)
    assert asked == []
    table(np.float32([1, np.nan, np.inf, 5]))
    assert asked[-1] == 2  # NaN and inf have no polynomial


@pytest.mark.skipif(has_no_tables(), reason="there are no loops")
def test_the_first_call_gives_the_bits_of_the_next():
    """Also behind the first block, after which the table has what later blocks need."""
    x = np.random.default_rng(0).standard_normal(60_000).astype(np.float32)
    function = Tabled(FUNCTIONS["digamma"])
    first, second = function(x), function(x)
    assert first.view(np.uint32).tolist() == second.view(np.uint32).tolist()
