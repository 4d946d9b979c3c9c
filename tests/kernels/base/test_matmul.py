"""Matrix products against NumPy's, over shapes, dtypes and memory."""

import itertools
import sys
import warnings

import numpy as np
import pytest
from arrays_zoo import layouts, values

from cygrad._kernels.cpu.base import matmul
from cygrad._kernels.cpu.linalg import lapack

DTYPES = ["b", "i", "l", "e", "f", "d", "g", "F", "D"]
SHAPES = [
    ((3,), (3,)), ((1,), (1,)), ((0,), (0,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)),
    ((1, 1), (1, 1)), ((1, 5), (5, 1)), ((5, 1), (1, 5)), ((0, 3), (3, 4)), ((2, 0), (0, 4)),
    ((2, 3), (3, 0)), ((17, 33), (33, 9)), ((64, 40), (40, 70)), ((0,), (0, 3)), ((3, 0), (0,)),
    ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((2, 1, 2, 3), (1, 4, 3, 2)), ((0, 2, 3), (3, 4)),
    ((1, 2, 3), (5, 3, 4)), ((5, 2, 0), (0, 4)), ((2, 0, 2, 3), (0, 3, 4)), ((4, 3, 5, 2), (2, 6)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def product(a, b):
    """NumPy's product: of integers in their own dtype, of others in double precision."""
    if a.dtype.kind in "iu":
        return np.asarray(np.matmul(a, b))
    accurate = "D" if a.dtype.kind == "c" else "d"
    return np.asarray(np.matmul(a.astype(accurate), b.astype(accurate))).astype(a.dtype)


def check(actual, expected, n=1):
    assert type(actual) is np.ndarray
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    kind = expected.dtype.kind
    eps = np.finfo(expected.dtype).eps if kind in "fc" else 0
    if expected.dtype == np.longdouble:
        eps = np.finfo("d").eps  # the precision of the expected value
    np.testing.assert_allclose(actual, expected, rtol=4 * eps, atol=4 * eps * (n + 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul(dtype, rng):
    for m, n in SHAPES:
        a, b = values(rng, m, dtype), values(rng, n, dtype)
        check(matmul.matmul(a, b), product(a, b), m[-1])


@pytest.mark.parametrize("dtype", ["i", "e", "f", "D"])
@pytest.mark.parametrize(("m", "n"), [((6, 5), (5, 7)), ((5,), (5, 7)), ((2, 3, 4), (2, 4, 5))])
def test_memory(m, n, dtype, rng):
    a, b = values(rng, m, dtype), values(rng, n, dtype)
    for _, x in layouts(a):
        for _, y in layouts(b):
            check(matmul.matmul(x, y), product(a, b), m[-1])


def test_views_of_larger_matrices(rng):
    memory = values(rng, (40, 50), "f")
    for a in (memory[:10, :20], memory[::2, 3:23], memory[:, ::3], memory.T[:20, :20], memory[::-1, :20]):
        for b in (memory[: a.shape[1], :30], memory[: a.shape[1], 1:31:2], memory[: a.shape[1], :1]):
            check(matmul.matmul(a, b), product(a, b), a.shape[1])
            check(matmul.matmul(b.T, a.T), product(b.T, a.T), a.shape[1])
            check(matmul.matmul(a, b[:, 0]), product(a, b[:, 0]), a.shape[1])
    square = memory[:30, :30]
    check(matmul.matmul(square, square.T), product(square, square.T), 30)
    repeated = np.broadcast_to(memory[0], (6, 50))
    check(matmul.matmul(repeated, memory.T), product(repeated, memory.T), 50)
    stack = np.broadcast_to(memory, (3, 40, 50))
    check(matmul.matmul(stack, memory.T), product(stack, memory.T), 50)


def test_large_products_release_the_gil_and_agree(rng):
    a, b = values(rng, (300, 200), "d"), values(rng, (200, 100), "d")
    check(matmul.matmul(a, b), product(a, b), 200)
    stack = values(rng, (20, 60, 50), "f")
    check(matmul.matmul(stack, stack.transpose(0, 2, 1)), product(stack, stack.transpose(0, 2, 1)), 60)


@pytest.mark.parametrize("dtype", ["i", "f", "d", "F"])
@pytest.mark.parametrize(
    ("m", "n"),
    [
        *[((1000, 70), (70, 130)), ((70, 300), (300, 1001)), ((515, 129), (129, 387)), ((64, 784), (784, 128))],
        *[((3001,), (3001, 1003)), ((1003, 3001), (3001,)), ((33, 3000), (3000, 65)), ((66, 2000), (2000, 1))],
        *[((40, 64, 64), (40, 64, 64)), ((5, 1, 130, 90), (1, 4, 90, 131)), ((3, 200, 150), (150, 190))],
    ],
)
def test_products_in_tiles(m, n, dtype, rng):
    a, b = values(rng, m, dtype), values(rng, n, dtype)
    expected = product(a, b)
    check(matmul.matmul(a, b), expected, m[-1])
    if len(m) > 1 and len(n) > 1:
        columns = [np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) for x in (a, b)]
        check(matmul.matmul(*columns), expected, m[-1])
        check(matmul.matmul(a, columns[1]), expected, m[-1])


@pytest.mark.parametrize("depth", [67, 68, 79, 257])
def test_every_number_of_rows_and_columns_of_tiles(depth, rng):
    """Rows are processed in sixes or fours, depth in steps of 4 and 16; sums of small integers are exact."""
    for m, n in itertools.product(range(8, 64, 8), (16, 32, 48)):
        a, b = (rng.integers(-8, 9, shape).astype("f") for shape in ((m, depth), (depth, n)))
        for left, right in itertools.product((a, a.T.copy().T), (b, b.T.copy().T)):
            np.testing.assert_array_equal(matmul.matmul(left, right), product(a, b))


@pytest.mark.parametrize(("m", "depth", "n"), [(1035, 300, 150), (2130, 40, 2130), (1024, 257, 128)])
def test_tiles_of_columns_far_apart(m, depth, n, rng):
    """Such columns are packed first, some rows at a time."""
    a, b = values(rng, (depth, m), "f").T, values(rng, (depth, n), "f")
    check(matmul.matmul(a, b), product(a, b), depth)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("depth", [127, 600, 8192, 8195])
def test_few_rows_or_columns(depth, dtype, rng):
    """From 2 to 26 rows or columns, in matrices too large for the loops of small ones."""
    numbers = (2, 3, 7, 8, 9, 15, 16, 25, 26) if depth < 8192 else (2, 9, 26)
    for few, many in itertools.product(numbers, (33, 260) if depth < 8192 else (17,)):
        for m, n in ((few, many), (many, few)):
            a, b = values(rng, (m, depth), dtype), values(rng, (depth, n), dtype)
            expected = product(a, b)
            for left, right in itertools.product((a, a.T.copy().T), (b, b.T.copy().T)):
                check(matmul.matmul(left, right), expected, depth)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33])
def test_small_products(depth, dtype, rng):
    for m, n in itertools.product((1, 2, 8, 13), (1, 2, 3, 4, 5, 15, 16, 17, 33)):
        memory = values(rng, (m * depth + depth * n + 3,), dtype)
        a, b = memory[1 : 1 + m * depth], memory[2 + m * depth : 2 + m * depth + depth * n]  # at odd offsets
        for x, y in itertools.product(
            (a.reshape(m, depth), a.reshape(depth, m).T), (b.reshape(depth, n), b.reshape(n, depth).T)
        ):
            check(matmul.matmul(x, y), product(x, y), depth)
        out = np.full((3, m, n + 2), 7, dtype)
        stack = np.stack([a.reshape(m, depth)] * 3)
        matmul.matmul_into(stack, np.stack([b.reshape(depth, n)] * 3), out[..., 1:-1])
        check(out[1, :, 1:-1], product(stack[1], b.reshape(depth, n)), depth)
        assert (out[..., [0, -1]] == 7).all()


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_small_products_of_special_values(dtype):
    a = np.array([[-0.0, 1, np.inf, 1], [1, 1, 1, np.nan]], dtype)
    b = np.array([[1, 1], [0, 2], [0, 1], [1, 1]], dtype)
    with np.errstate(invalid="ignore"):
        for x, y in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
            np.testing.assert_array_equal(matmul.matmul(x, y), [[np.nan, np.inf], [np.nan, np.nan]])
    column, row = np.array([[-0.0], [1e-45], [3]], dtype), np.array([[1, 0.5, -0.0, np.inf]], dtype)
    with np.errstate(invalid="ignore"):
        found, expected = matmul.matmul(column, row), column * row
    np.testing.assert_array_equal(found, expected)
    small = np.linspace(-1, 1, 26, dtype=dtype).reshape(2, 13)
    found = matmul.matmul(small.T, small)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("dtype", ["i", "e", "f", "d", "F"])
@pytest.mark.parametrize(
    ("m", "n"),
    [((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (6, 4, 5)), ((5, 1, 130, 90), (1, 4, 90, 131)), ((2, 3, 0), (2, 0, 4))],
)
def test_products_into_an_array(m, n, dtype, rng):
    a, b = values(rng, m, dtype), values(rng, n, dtype)
    expected = product(a, b)
    wide = np.full((*expected.shape[:-1], expected.shape[-1] + 3), 7, dtype)
    for out in (np.full(expected.shape, 7, dtype), wide[..., 1:-2], wide[..., ::-1][..., 1:-2], wide[::-1, ..., :-3]):
        if dtype == "e":  # NumPy accumulates with less precision than float32
            expected = np.matmul(a, b)
        assert matmul.matmul_into(a, b, out) is out
        check(out, expected, m[-1])
    assert (wide[..., -1] == 7).all()


def test_products_into_an_array_of_another_shape():
    a, out = np.ones((2, 3, 3)), np.zeros((2, 3, 4))
    with pytest.raises(ValueError, match="product of shape|mismatch"):  # our message or NumPy's
        matmul.matmul_into(a, a, out)
    assert not out.any()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        matmul.matmul_into(a, np.ones((2, 3, 4)), out)


def test_large_matrix_times_itself_transposed(rng):
    a = values(rng, (400, 300), "f")
    found = matmul.matmul(a, a.T)
    check(found, product(a, a.T), 300)
    np.testing.assert_array_equal(found, found.T)


def test_blas_gets_its_threads_back(rng):
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def count():
        return [entry["num_threads"] for entry in threadpoolctl.threadpool_info() if entry["user_api"] == "blas"]

    a = values(rng, (300, 300), "f")
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads, "blas"):
            former = count()
            matmul.matmul(a, a)
            assert count() == former


def test_special_values():
    nan, inf = np.nan, np.inf
    a = np.array([[nan, 1], [inf, 1]])
    np.testing.assert_array_equal(matmul.matmul(a, np.ones((2, 2))), [[nan, nan], [inf, inf]])
    assert np.isnan(matmul.matmul(np.array([[inf, -inf]]), np.ones((2, 1))))
    assert matmul.matmul(np.full((1, 9), 3e38, "f"), np.ones((9, 1), "f"))[0, 0] == inf


def test_float16_is_added_up_in_float32():
    a = np.full((1, 4096), 1, "e")
    assert matmul.matmul(a, a.T)[0, 0] == 4096


def test_dot_and_outer(rng):
    for dtype in DTYPES:
        a, b = values(rng, 7, dtype), values(rng, 7, dtype)
        check(matmul.dot(a, b), product(a, b), 7)
        check(matmul.dot(a[::-2], b[::-2]), product(a[::-2], b[::-2]), 7)
        check(matmul.outer(a, b[:4]), np.outer(a, b[:4]))
    assert matmul.dot(a, b).shape == ()
    for f in (matmul.dot, matmul.outer):
        with pytest.raises(ValueError, match="two vectors"):
            f(np.ones((2, 2)), np.ones(2))


@pytest.mark.parametrize("dtype", ["l", "e", "f", "d", "F"])
def test_addmm(dtype, rng):
    for bias in [(), (1,), (4,), (1, 4), (2, 1), (2, 4)]:
        a, b, c = values(rng, (2, 3), dtype), values(rng, (3, 4), dtype), values(rng, bias, dtype)
        check(matmul.addmm(c, a, b), (c + product(a, b)).astype(dtype), 4)
        check(matmul.addmm(c, a, b.T.copy().T), (c + product(a, b)).astype(dtype), 4)


def test_shapes_that_do_not_fit():
    for m, n in [((3,), (4,)), ((2, 3), (2, 3)), ((), (3,)), ((3,), ()), ((2, 2, 3), (3, 3, 4))]:
        with pytest.raises(ValueError, match="matmul|must match|broadcast"):
            matmul.matmul(np.ones(m), np.ones(n))
    for bias in [(3,), (3, 4), (1, 2, 4)]:
        with pytest.raises(ValueError, match=r"must match|output with shape"):
            matmul.addmm(np.ones(bias), np.ones((2, 3)), np.ones((3, 4)))


@pytest.mark.parametrize("m, depth, n", [(1, 3, 2), (4, 3, 5), (5, 64, 64), (16, 4, 3), (40, 40, 40)])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_sums_of_negative_zeros_are_zero(m, depth, n, dtype):
    """Sums start from 0, as in BLAS."""
    for b in (-np.ones((depth, n), dtype), -np.ones((n, depth), dtype).T):
        assert not np.signbit(matmul.matmul(np.zeros((m, depth), dtype), b)).any()


# --- LAPACK ------------------------------------------------------------------------------------


def test_functions_of_lapack_are_called_for_each_matrix():
    """Arrays advance from matrix to matrix, those in tuples do not; the integer dtype is the library's."""
    gesv = lapack.routine("gesv", np.empty(0))
    if gesv is None:
        pytest.skip("LAPACK's functions can not be called")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 3))
    factors, x, pivots, info = a.swapaxes(-1, -2).copy(), b.copy(), lapack.integers((5, 3)), lapack.integers(5)
    gesv(5, 3, 1, factors, 3, pivots, x, 3, info)
    np.testing.assert_allclose(x, np.linalg.solve(a, b[..., None])[..., 0])
    assert not info.any() and pivots.min() >= 1 and pivots.max() <= 3
    one, trsm = (np.full(1, 2.0),), lapack.routine("trsm", a)
    x, lower = b.copy(), (np.tril(a[0]).T.copy(),)
    trsm(5, "L", "L", "N", "N", 3, 1, one, lower, 3, x, 3)
    np.testing.assert_allclose(x @ np.tril(a[0]).T, 2 * b)


def test_what_lapack_can_not_take_is_refused():
    memory = np.zeros(33, np.uint8)
    for wrong in (memory[1:].view("d"), np.zeros(4, ">d" if sys.byteorder == "little" else "<d")):
        with pytest.raises(ValueError, match="not aligned, or of swapped bytes"):
            matmul.call_lapack(0, 0, wrong)
    with pytest.raises(ValueError, match="too many"):
        matmul.call_lapack(0, 0, *range(16))
    assert matmul.find_lapack(b"no such library", b"dgetrf") is None
    assert lapack.routine("no_such_function", np.empty(0)) is None
    assert lapack.routine("getrf", np.empty(0, np.int64)) is None
