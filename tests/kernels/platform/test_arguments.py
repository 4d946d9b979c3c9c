"""Compiled kernels dereference pointers, so non-arrays must be rejected first."""

import inspect

import numpy as np
import pytest

from cygrad._kernels.cpu.base import arrays, elementwise, matmul, reduce, ufunc, view_geometry
from cygrad._kernels.cpu.indexing import add_rows
from cygrad._kernels.cpu.nn import activations, softmax
from cygrad._kernels.cpu.optim import optim
from cygrad._kernels.device.dispatch import in_memory

A = np.ones((3, 3), "f")
V = np.ones(3, "f")
N = np.array([0, 1, 2])

CALLS = [
    (arrays.cast, (A, 12)),
    (arrays.copy_array, (A.copy(), A)),
    (arrays.dense, (A,)),
    (arrays.dense_copy, (A,)),
    (arrays.drop_spares, ()),
    (arrays.fill, (A.copy(), 1.0)),
    (arrays.private, (A,)),
    (arrays.joined_in_numpy, ([A, A], 0)),
    (arrays.may_overlap, (A, A)),
    (arrays.new_array, ((2, 3), 11)),
    (arrays.order_in_memory, ((A, A.T.copy()),)),
    (arrays.zeros, ((2, 3), 11)),
    (matmul.call_lapack, (0, 0, A, (A,))),
    (matmul.find_lapack, (b"", b"dgetrf")),
    (matmul.has_normal_diagonal, (A, True)),
    (elementwise.clamp, (A, 0.0, 1.0)),
    (elementwise.copy_of_real, (A,)),
    (elementwise.erf, (A,)),
    (elementwise.power, (A, 2.0)),
    (elementwise.relu, (A,)),
    (elementwise.rsqrt, (A,)),
    (elementwise.sign, (A,)),
    (elementwise.where, (A > 0, A, A)),
    (ufunc.Ufunc, (np.add,)),
    (ufunc.Ufunc(np.exp), (A,)),
    (ufunc.Ufunc(np.add), (A, A)),
    (softmax.softmax, (A, 0)),
    (softmax.log_softmax, (A, 0)),
    (softmax.softmax_backward, (A, A, 0)),
    (softmax.log_softmax_backward, (A, A, 0)),
    *[(getattr(activations, name), (A,)) for name in "sigmoid silu mish gelu gelu_tanh".split()],
    *[(getattr(activations, f"{name}_backward"), (A, A)) for name in "silu mish gelu threshold tanh sigmoid".split()],
    (softmax.nll, (A, N, V, -100, 1)),
    (softmax.nll_backward, (np.array(1.0, "f"), A, N, V, -100, 1, np.array(3.0, "f"))),
    (softmax.cross_entropy, (A, N, V, -100, 1)),
    (softmax.cross_entropy_backward, (np.array(1.0, "f"), A, N, V, -100, 1, np.array(3.0, "f"))),
    (optim.sgd_step, ([A.copy()], [A], [A.copy()], 0.1, 0.9)),
    (optim.adam_step, ([A.copy()], [A], [A.copy()], [A.copy()], [A.copy()], [1], 0.1, 0.9, 0.99, 1e-8, 0.0, True)),
    (optim.any_complex, ([A],)),
    (optim.count_steps, ([np.array(0.0, "f"), np.array(2)],)),
    (matmul.matmul, (A, A)),
    (matmul.matmul_into, (A[None], A[None], A[None].copy())),
    (matmul.dot, (V, V)),
    (matmul.outer, (V, V)),
    (matmul.addmm, (V, A, A)),
    *[(getattr(reduce, name), (A,)) for name in "sum mean prod amax amin var std norm logsumexp".split()],
    *[(getattr(reduce, name), (A,)) for name in "all_ any_".split()],
    (reduce.are_in_range, (A,)),
    (reduce.sum_to, (A, (3,))),
    (add_rows.add_rows, (A.copy(), N, A)),
    (add_rows.joined, ([N], (3,))),
    (add_rows.counted, (N, 3)),
    (add_rows.selected, (A, A > 0)),
    (view_geometry.restride, (A, (2, 2), (4, 4), 0)),
    (view_geometry.overlaps_itself, (A,)),
    (view_geometry.is_channels_last, (A,)),
    (view_geometry.in_format_of, (A, A)),
]
ALLOWED = [
    *[("nll", 2, None), ("nll_backward", 3, None), ("sgd_step", 2, [None])],
    *[(name, 0, wrong) for name in ("dense_copy", "private") for wrong in (None, "array", [None])],  # accept GPU arrays
    ("joined", 0, [None]),  # returns None for what has no loop
    *[("in_format_of", 0, wrong) for wrong in (None, "array", [None])],  # returned as it is
    *[("cross_entropy", 2, None), ("cross_entropy_backward", 3, None)],
]


@pytest.mark.parametrize("function, arguments", CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_none_is_no_array(function, arguments):
    function(*arguments)
    name = getattr(function, "__name__", None)
    for i, argument in enumerate(arguments):
        if not isinstance(argument, (np.ndarray, np.ufunc, list, tuple)):
            continue
        for wrong in (None, "array", [None]):
            if (name, i, wrong) in ALLOWED:
                continue
            with pytest.raises(TypeError):
                function(*arguments[:i], wrong, *arguments[i + 1 :])


def test_every_function_is_called_above():
    called = {getattr(function, "__name__", None) for function, _ in CALLS}
    for module in (arrays, matmul, elementwise, softmax, optim, reduce, add_rows, view_geometry):
        functions = map(in_memory, vars(module).values())
        names = {f.__name__ for f in functions if inspect.isbuiltin(f) and f.__module__ == module.__name__}
        assert names, module.__name__
        assert names <= called, module.__name__


@pytest.mark.parametrize("dtype", ["f", "d", np.int64])
@pytest.mark.parametrize("extreme", [0, 1, -1])
def test_rows_that_are_taken_are_added(dtype, extreme):
    """The result is the same as for rows copied first."""
    rng = np.random.default_rng(0)
    values, index, taken = rng.integers(-9, 9, (7, 5)).astype(dtype), rng.integers(0, 4, 60), rng.integers(0, 7, 60)
    out, expected = np.zeros((4, 5), dtype), np.zeros((4, 5), dtype)
    has_loop = add_rows.add_rows(expected, index, values[taken], extreme)
    assert add_rows.add_rows(out, index, values, extreme, taken) == has_loop
    assert expected.any() == has_loop
    np.testing.assert_array_equal(out, expected)


def test_rows_that_do_not_fit_are_refused():
    out = np.zeros((3, 2), "f")
    values = np.ones((2, 2), "f")
    for index in ([0, 3], [-1, 0]):
        with pytest.raises(IndexError, match="out of range"):
            add_rows.add_rows(out, np.array(index), values)
    np.testing.assert_array_equal(out, [[1, 1], [0, 0], [0, 0]])  # processed in order up to the first invalid row
    out[...] = 0
    for taken in ([0, 2], [-1, 0]):
        with pytest.raises(IndexError, match="out of range"):
            add_rows.add_rows(out, np.array([0, 1]), values, 0, np.array(taken))
    np.testing.assert_array_equal(out, [[1, 1], [0, 0], [0, 0]])
    out[...] = 0
    frozen = out.copy()
    frozen.flags.writeable = False
    for bad in (
        (out, np.array([0]), values),
        (out, np.array([[0, 1]]), values),
        (out, np.array([0, 1], "i"), values),
        (out, np.array([0, 1]), values[:, :1]),
        (out, np.array([0, 1]), values.astype("d")),
        (out, np.array([0, 1]), values[:, ::-1]),
        (out[:, ::-1], np.array([0, 1]), values),
        (frozen, np.array([0, 1]), values),
        (out, np.array([0, 1]), values, 0, np.array([0])),
        (out, np.array([0, 1]), values, 0, np.array([0, 1], "i")),
        (out, np.array([0, 1, 1]), values, 0, np.array([0, 1, 1, 1])[::2]),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            add_rows.add_rows(*bad)
    assert not out.any()
    assert not add_rows.add_rows(out.astype("e"), np.array([0, 1]), values.astype("e"))
