"""Elementwise loops against plain NumPy: values, shapes, memory, `out`, errors."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from arrays_zoo import LENGTHS, layouts, unaligned, values

from cygrad._kernels.cpu.base import elementwise
from cygrad._kernels.cpu.base.arrays import cast, may_overlap
from cygrad._kernels.cpu.base.ufunc import Ufunc

PURE = os.environ.get("CYGRAD_PURE") == "1"
DTYPES = ["?", "b", "B", "h", "i", "l", "q", "Q", "e", "f", "d", "g", "F", "D"]
BINARY = [np.add, np.multiply, np.maximum, np.less, np.equal, np.subtract, np.divide, np.logaddexp]
UNARY = [np.negative, np.cbrt, np.sqrt, np.rint, np.abs, np.isnan, np.logical_not, np.sign]

ufuncs = {u: Ufunc(u) for u in {*BINARY, *UNARY, np.power, np.log, np.bitwise_and}}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def same(actual, expected):
    """Check that arrays are equal bit for bit, NaN included, with the same dtype."""
    expected = np.asarray(expected)
    assert type(actual) is np.ndarray
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


def near(actual, expected):
    """As `same`, but for functions whose last bits NumPy does not promise: they may depend on the layout."""
    expected = np.asarray(expected)
    assert type(actual) is np.ndarray
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    limit = 4 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(actual, expected, rtol=limit)


def numpy_call(ufunc, *arrays):
    with np.errstate(all="ignore"):
        return ufunc(*arrays)


# --- Values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_binary_on_all_dtypes(ufunc, rng):
    for dtype in DTYPES:
        a, b = values(rng, (5, 7), dtype), values(rng, (5, 7), dtype)
        try:
            expected = numpy_call(ufunc, a, b)
        except TypeError:
            with pytest.raises(TypeError):
                ufuncs[ufunc](a, b)
        else:
            same(ufuncs[ufunc](a, b), expected)


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda u: u.__name__)
def test_unary_on_all_dtypes(ufunc, rng):
    for dtype in DTYPES:
        a = values(rng, (5, 7), dtype)
        try:
            expected = numpy_call(ufunc, a)
        except TypeError:
            with pytest.raises(TypeError):
                ufuncs[ufunc](a)
        else:
            (near if ufunc is np.cbrt else same)(ufuncs[ufunc](a), expected)


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_lengths_and_offsets(offset, rng):
    for n in [*LENGTHS, 20001, 50000]:
        a, b = (values(rng, n + offset, "f")[offset:] for _ in range(2))
        same(ufuncs[np.add](a, b), a + b)
        same(ufuncs[np.rint](a), np.rint(a))
        same(ufuncs[np.multiply](a, 2.5), a * np.float32(2.5))


def test_special_values_and_no_warnings():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-45], "f")
    a, b = (m.copy() for m in np.meshgrid(x, x))
    for ufunc in (np.add, np.multiply, np.divide, np.maximum, np.power):
        same(ufuncs[ufunc](a, b), numpy_call(ufunc, a, b))
    near(ufuncs[np.log](x), numpy_call(np.log, x))
    same(ufuncs[np.divide](x, 0.0), numpy_call(np.divide, x, np.float32(0)))
    near(ufuncs[np.log](x.astype(">f4")), numpy_call(np.log, x))


def test_power_of_integers_raises_numpys_error():
    a = np.array([2, 3, 4])
    same(ufuncs[np.power](a, a), a**a)
    for b in (-a, -1):
        with pytest.raises(ValueError, match="negative integer powers"):
            ufuncs[np.power](a, b)
    many = np.full(30000, 3)
    with pytest.raises(ValueError, match="negative integer powers"):
        ufuncs[np.power](many, -many)


def test_a_dtype_numpy_knows_only_as_a_plugin(rng):
    bfloat16 = pytest.importorskip("ml_dtypes", reason="the fallback's user dtypes").bfloat16
    a = values(rng, (3, 4), "f").astype(bfloat16)
    same(ufuncs[np.add](a, a[0]), a + a[0])
    same(ufuncs[np.multiply](a, 2.0), a * bfloat16(2))
    near(ufuncs[np.cbrt](a[0, :1].reshape(())), np.cbrt(a[0, 0]))


# --- Shapes ------------------------------------------------------------------------------------

SHAPES = [
    ((), ()), ((1,), ()), ((), (1,)), ((3,), ()), ((), (2, 3)), ((1, 1), (3,)), ((3,), (1, 1, 1)),
    ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 1), (1, 3)), ((4, 1, 5), (3, 1)), ((0,), (1,)),
    ((0, 3), (3,)), ((3, 0), (3, 1)), ((1,), (0,)), ((64, 10), (10,)), ((1, 40, 1), (5, 1, 3)),
    ((300, 2), (2,)), ((2, 3, 4, 5), (3, 1, 5)), ((100, 300), (300,)), ((200, 1), (1, 200)),
]  # fmt: skip


def test_broadcasting(rng):
    for m, n in SHAPES:
        a, b = values(rng, m, "d"), values(rng, n, "d")
        for x, y in ((a, b), (b, a)):
            same(ufuncs[np.subtract](x, y), x - y)
            same(ufuncs[np.less](x, y), x < y)
            for order in ("C", "F"):
                out = np.empty(np.broadcast_shapes(m, n), order=order)
                assert ufuncs[np.subtract](x, y, out=out) is out
                same(out, x - y)


@pytest.mark.parametrize("dtype", ["?", "h", "e", "f", "d", "D"])
def test_layouts(dtype, rng):
    for shape in [(), (1,), (13,), (6, 5), (3, 4, 5), (0, 4), (2, 1, 3)]:
        a, b = values(rng, shape, dtype), values(rng, shape, dtype)
        for name, x in layouts(a):
            same(ufuncs[np.logical_not](x), np.logical_not(a))
            same(ufuncs[np.multiply](x, True), a)
            same(ufuncs[np.multiply](True, x), a)
            for other, y in layouts(b):
                assert np.array_equal(ufuncs[np.add](x, y), a + b), (name, other)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("shape", [(8, 2, 4), (9, 3, 8), (600, 2, 300)])
def test_loops_that_write_gaps_wrongly_get_none(dtype, shape, rng):
    """Faulty loops of NumPy 2.4 with AVX-512: `negative` with strides of 64 or 16 bytes, and predicates for every
    input.
    """
    whole = (rng.normal(size=shape) * 9).astype(dtype)
    for a in (whole[:, :1], whole[:, -1], whole[:, :, 1:], whole[:, :, ::2], whole[:, :, 0], whole[:, 1:].T):
        dense = np.ascontiguousarray(a)
        gaps = np.zeros([2 * n for n in a.shape], dtype)
        target = gaps[tuple([slice(None, None, 2)] * a.ndim)]
        for found in (Ufunc(np.negative)(a), Ufunc(np.negative)(a, out=np.empty(a.shape, dtype))):
            np.testing.assert_array_equal(found, 0 - dense)
        np.testing.assert_array_equal(Ufunc(np.negative)(a, out=target), 0 - dense)
        assert np.count_nonzero(gaps) == np.count_nonzero(dense)
        if dtype.startswith("float"):
            np.testing.assert_array_equal(Ufunc(np.signbit)(a), dense < 0)
            for ufunc, expected in ((np.isnan, False), (np.isinf, False), (np.isfinite, True)):
                assert (Ufunc(ufunc)(a) == expected).all()


def test_the_result_keeps_the_memory_order_of_dense_inputs(rng):
    a = values(rng, (2, 3, 4), "f")
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)):
        x = a.transpose(axes)
        for result in (ufuncs[np.cbrt](x), ufuncs[np.add](x, x), ufuncs[np.add](x, 1.0)):
            assert result.strides == x.strides
        assert ufuncs[np.add](x, x[..., :1]).strides == x.strides
        assert ufuncs[np.equal](x, x).strides == tuple(s // 4 for s in x.strides)
    assert ufuncs[np.add](a[:, :, ::2], a[:, :, ::2]).flags.c_contiguous


@pytest.mark.skipif(PURE, reason="NumPy prefers C order where the inputs differ")
def test_the_first_input_decides_about_the_memory_order(rng):
    a = values(rng, (3, 4), "f")
    assert ufuncs[np.add](a.T, a.T.copy()).strides == a.T.strides


def test_shapes_that_do_not_fit():
    f = ufuncs[np.add]
    text = r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1"
    with pytest.raises(RuntimeError, match=text):
        f(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(RuntimeError, match=text):
        f(np.ones((2, 3)).astype(">f8"), np.ones((2, 4)))
    with pytest.raises(RuntimeError, match=r"tensor a \(2\) .* tensor b \(5\) at non-singleton dimension 0"):
        f(np.ones((2, 3)), np.ones((5, 3)))


# --- Numbers -----------------------------------------------------------------------------------


def test_python_numbers_take_the_arrays_dtype(rng):
    for dtype in DTYPES[1:]:
        a = values(rng, (3, 4), dtype)
        for x in (a, a.T, a[:, ::2]):
            for number in (3, True, np.int64(3), 3.0):
                number_array = np.asarray(number, a.dtype)
                same(ufuncs[np.subtract](x, number), x - number_array)
                same(ufuncs[np.subtract](number, x), number_array - x)


def test_numbers_wrap_and_overflow_as_in_c():
    same(ufuncs[np.add](np.array([1], "B"), 300), np.array([45], "B"))
    same(ufuncs[np.add](np.array([1], "b"), -1000), np.array([25], "b"))
    same(ufuncs[np.add](np.array([1], "Q"), 2**64 - 2), np.array([2**64 - 1], "Q"))
    same(ufuncs[np.add](np.array([1.0], "f"), 1e300), np.array([np.inf], "f"))
    same(ufuncs[np.add](np.array([1.0], "e"), 1e300), np.array([np.inf], "e"))
    same(ufuncs[np.add](np.array([1.0], "F"), 2j), np.array([1 + 2j], "F"))
    with pytest.raises(OverflowError):
        ufuncs[np.add](np.array([1]), 2**64)
    with pytest.raises(TypeError):
        ufuncs[np.add](np.array([1.0]), "one")
    with pytest.raises(TypeError):
        ufuncs[np.add](np.array([1.0]), 1j)


# --- out ---------------------------------------------------------------------------------------


def test_out_may_be_an_input(rng):
    a, b = values(rng, (4, 5), "f"), values(rng, (4, 5), "f")
    for make in (np.copy, np.asfortranarray, unaligned, lambda x: x.astype(">f4")[:, ::-1]):
        x = make(a)
        if x.dtype.isnative:
            assert ufuncs[np.subtract](x, b, out=x) is x
            same(x, a - b)
    x = b.copy()
    ufuncs[np.subtract](a, x, out=x)
    same(x, a - b)
    x = a.copy()
    ufuncs[np.cbrt](x, out=x)
    near(x, np.cbrt(a))
    x = a.copy()
    ufuncs[np.subtract](1, x, out=x)
    same(x, 1 - a)
    x = a.copy()
    ufuncs[np.multiply](x, x, out=x)
    same(x, a * a)
    x = np.array(3.0)
    ufuncs[np.add](x, x, out=x)
    assert x == 6
    x = np.ones(1)
    ufuncs[np.add](x, np.array(1.0), out=x)
    assert x == 2


@pytest.mark.parametrize("n", [5, 40, 1000])
def test_out_may_overlap_inputs_in_part(n, rng):
    for shift in [-9, -1, 1, 2, 17]:
        memory = values(rng, n + 40, "f")
        start, other = 20, 20 + shift
        a, b = memory[start : start + n].copy(), memory[other : other + n].copy()
        m = memory.copy()
        out = m[start : start + n]
        ufuncs[np.subtract](m[other : other + n], 2.0, out=out)
        same(out, b - np.float32(2))
        m = memory.copy()
        out = m[start : start + n]
        ufuncs[np.add](m[start : start + n], m[other : other + n], out=out)
        same(out, a + b)
        m = memory.copy()
        out = m[start : start + n]
        ufuncs[np.subtract](out, out[::-1], out=out)
        same(out, a - a[::-1])
        m = memory.copy()
        out = m[start : start + n]
        ufuncs[np.subtract](out, out[:1], out=out)
        same(out, a - a[0])


def test_out_of_another_item_size_over_the_input():
    x = np.arange(32, dtype="f")
    expected = np.exp(x) > 3
    out = x.view("?")[:32]
    ufuncs[np.less](np.full(32, np.float32(np.log(3))), x, out=out)
    same(out, expected)


def test_a_wrong_out_is_refused_and_left_alone():
    f, a = ufuncs[np.add], np.ones((2, 3))
    for x in (a, a.astype(">f8")):
        text = r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"
        for out, error, match in (
            (np.zeros(3), RuntimeError, text),
            (np.zeros((2, 3), "f"), ValueError, "dtype float32"),
            (np.broadcast_to(0.0, (2, 3)), ValueError, "read-only"),
        ):
            with pytest.raises(error, match=match):
                f(x, a, out=out)
            assert not out.any()


def test_equal_types_of_different_names_may_be_out():
    a = np.arange(5, dtype="l")
    out = np.empty(5, "q")
    ufuncs[np.add](a, a, out=out)
    same(out, 2 * a)


def test_subclasses_give_plain_arrays(rng):
    a = values(rng, (3, 3), "d")
    same(ufuncs[np.add](a.view(np.matrix), a), a + a)
    same(ufuncs[np.multiply](a.view(np.matrix), a), a * a)
    near(ufuncs[np.cbrt](a.view(np.matrix)), np.cbrt(a))


def test_arguments():
    with pytest.raises(TypeError, match="takes 2 arrays, got 1"):
        ufuncs[np.add](np.ones(3))
    with pytest.raises(ValueError, match="does not have one or two inputs"):
        Ufunc(np.modf)
    assert (ufuncs[np.add].name, ufuncs[np.add].nin, ufuncs[np.add].numpy) == ("add", 2, np.add)
    assert repr(ufuncs[np.cbrt]) == "Ufunc(cbrt)"


def test_threads_do_not_disturb_each_other(rng):
    a, b = values(rng, (200, 300), "f"), values(rng, 300, "f")

    def work(_):
        c = ufuncs[np.add](ufuncs[np.multiply](a.T, 2.0), b[:, None])
        return ufuncs[np.cbrt](ufuncs[np.negative](c), out=c)

    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(work, range(40)):
            near(result, np.cbrt(-(a.T * np.float32(2) + b[:, None])))


# --- cast, may_overlap -------------------------------------------------------------------------


@pytest.mark.parametrize("source", DTYPES)
def test_cast(source, rng):
    for target in DTYPES:
        for shape in ((), (33,), (4, 5)):
            a = np.abs(values(rng, shape, source)) if source != "?" else values(rng, shape, source)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = np.asarray(a.astype(target))
            for _, x in layouts(np.asarray(a)):
                same(cast(x, np.dtype(target).num), expected)


def test_cast_of_special_values_warns_of_nothing():
    x = np.array([np.nan, np.inf, -np.inf, 1e300, -1.0, 0.0, -0.0])
    same(cast(x, np.dtype("?").num), x.astype("?"))
    assert np.isinf(cast(x, np.dtype("f").num)[3])
    cast(x, np.dtype("i").num)
    cast(x[::2], np.dtype("i").num)
    assert cast(x[4:], np.dtype("B").num)[0] == 255
    same(cast(np.full(30000, 2.5), np.dtype("l").num), np.full(30000, 2))


@pytest.mark.parametrize("dtype", ["?", "B", "i", "l", "f", "d"])
def test_truth_values_of_every_bit(dtype):
    """Each bit alone is true, also -0, NaN and subnormals, for lengths around those of vectors."""
    kind = np.dtype(dtype)
    bits = np.array([0, *(1 << i for i in range(8 * kind.itemsize))], f"u{kind.itemsize}")
    for n in (0, 1, 7, 31, 32, 33, 70, 1000):
        x = np.resize(bits[:2] if dtype == "?" else bits, n).view(kind)
        for view in (x, x[1:], x[::-1]):
            same(cast(view, np.dtype("?").num), view != 0)


def test_cast_keeps_what_needs_no_cast():
    x = np.ones((2, 3))
    assert cast(x, x.dtype.num) is x
    assert cast(x.T, x.dtype.num).base is x
    assert cast(x.T, np.dtype("f").num).flags.f_contiguous


def test_may_overlap():
    x = np.zeros((4, 6))
    assert may_overlap(x, x)
    assert may_overlap(x[:, ::2], x[:, 1::2])  # their extents do
    assert may_overlap(x[::-1], x[3])
    assert not may_overlap(x[:2], x[2:])
    assert not may_overlap(x[1::-1], x[:1:-1])
    assert not may_overlap(x, x.copy())
    assert not may_overlap(x, x[:0])


@pytest.mark.parametrize("begin", [0, 1])
def test_where_of_complex_numbers_that_begin_at_a_multiple_of_four_bytes(begin):
    a = np.arange(2 * 67 + 1, dtype=np.float32)[begin : begin + 2 * 67].view(np.complex64)
    condition = np.arange(67) % 3 == 0
    np.testing.assert_array_equal(elementwise.where(condition, a, -a), np.where(condition, a, -a))
