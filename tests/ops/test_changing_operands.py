"""Nothing that another thread or process does to an index or a mask may crash the interpreter, or be told wrongly.

The calls run in a process of their own, see changing_operands.py. The kernels' own checks are tested one by one below.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad
from cygrad._kernels.cpu.base.arrays import private
from cygrad._kernels.cpu.image import max_pooling
from cygrad._kernels.cpu.indexing import axis_ops, indexing, scatter
from cygrad._kernels.cpu.linalg import ldl, lu
from cygrad._kernels.cpu.loss import losses
from cygrad._kernels.cpu.nn import softmax

SCRIPT = Path(__file__).with_name("changing_operands.py")
TYPES = [np.uint8, np.int32, np.float16, np.float32, np.float64, np.complex128]
OUTSIDE = [7, -8, 2**40, -(2**40), 2**63 - 1, -(2**63)]
GUARD = 64  # elements on either side of an operand


def run(folder, what):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), what], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-3000:]}"
    assert done.stdout == ""


@pytest.mark.interpreter
def test_operands_that_another_process_changes(tmp_path):
    run(tmp_path, "some")


@pytest.mark.slow
def test_large_operands_that_another_process_changes(tmp_path):
    run(tmp_path, "large")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_operands_of_all_samples_that_another_process_changes(tmp_path):
    run(tmp_path, "all")


# -- kernels that callers have promised valid indices --


class Guarded:
    """Zeros in the midst of a larger block of ones."""

    def __init__(self, shape, dtype):
        size = int(np.prod(shape))
        self.block = np.ones(size + 2 * GUARD, dtype)
        self.array = self.block[GUARD : GUARD + size].reshape(shape)
        self.array[...] = 0

    def check(self):
        assert (self.block[:GUARD] == 1).all() and (self.block[-GUARD:] == 1).all()


WRITES = {
    "scatter": lambda a, i: scatter.scatter(a, 0, i[:, None], np.ones((2, 3), a.dtype)[:, :1]),
    "scatter_of_columns": lambda a, i: scatter.scatter(a, 1, i[None], np.ones((1, 2), a.dtype)),
    "scatter_reduce": lambda a, i: scatter.scatter_reduce(a, 0, i[:, None], np.ones((2, 1), a.dtype), "prod", True),
    "index_reduce": lambda a, i: scatter.index_reduce(a, 0, i, np.ones((2, 3), a.dtype), "prod", False),
    "index_copy": lambda a, i: scatter.index_copy(a, 0, i, np.ones((2, 3), a.dtype)),
    "index_add": lambda a, i: scatter.index_add(a, 0, i, np.ones((2, 3), a.dtype)),
    "index_put": lambda a, i: indexing.index_put(a, [i], np.ones((), a.dtype)),
    "accumulate": lambda a, i: indexing.index_put(a, [i], np.ones((), a.dtype), True),
    "index_put_of_two": lambda a, i: indexing.index_put(a, [i, i % 3], np.ones((), a.dtype)),
    "put": lambda a, i: indexing.put(a, i * 3, np.ones(2, a.dtype), False),
    "index_sum": lambda a, i: scatter.index_sum(np.ones((2, 3), a.dtype), (7, 3), [i]),
    "gather": lambda a, i: indexing.gather(a, 0, i[:, None]),
    "gather_of_broadcast": lambda a, i: indexing.gather(np.broadcast_to(a[:, :1], (7, 3)), 0, i[:, None]),
    "index": lambda a, i: indexing.index(a, [i, i % 3]),
    "take": lambda a, i: indexing.take(a, np.where(abs(i) < 10, i * 3, i)),
    "index_select": lambda a, i: indexing.index_select(a, 0, i),
    "unpooled": lambda a, i: max_pooling.unpooled(np.ones((1, 2), a.dtype), i[None], 7),
    "select_along": lambda a, i: axis_ops.select_along(a[:, :2], i, 0, False),
    "place_along": lambda a, i: axis_ops.place_along(np.ones(2, a.dtype), i, (7, 2), 0, False),
}


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("name", WRITES)
def test_kernels_refuse_an_index_that_changed_after_the_check(name, outside):
    for dtype in TYPES:
        given = Guarded((7, 3), dtype)
        with pytest.raises(IndexError), np.errstate(all="ignore"):
            WRITES[name](given.array, np.array([1, outside]))
        given.check()


@pytest.mark.parametrize("outside", [4, -1, 2**40, -(2**40)])
def test_losses_refuse_a_class_that_changed_after_the_check(outside):
    target = np.array([1, outside])
    for dtype in (np.float32, np.float64):
        x = np.zeros((2, 4), dtype)
        one = np.ones((), dtype)
        for call in (
            lambda x=x: softmax.nll(x, target, None, -100, 1),
            lambda x=x, one=one: softmax.nll_backward(one, x, target, None, -100, 1, one),
            lambda x=x: softmax.cross_entropy(x, target, None, -100, 1),
            lambda x=x, one=one: softmax.cross_entropy_backward(one, x, target, None, -100, 1, one),
        ):
            with pytest.raises(IndexError, match=f"Target {outside} is out of bounds"):
                call()
        if not -4 <= outside < 4:
            with pytest.raises(IndexError):
                losses.multi_margin(x, target, None, 1.0, 1)


@pytest.mark.parametrize("pivot", [0, 4, -5, 2**30])
def test_solvers_refuse_pivots_that_changed_after_the_check(pivot):
    a, b = np.eye(3), np.ones((3, 1))
    pivots = np.array([1, pivot, 3], np.int32)
    with pytest.raises(RuntimeError, match="pivots must be between"):
        ldl.ldl_solve(a, pivots, b, False)
    if abs(pivot) > 3:
        for call in (lambda: lu.permutation(pivots, 3, a.dtype), lambda: lu.lu_solve(a, pivots, b)):
            with pytest.raises(IndexError):
                call()


@pytest.mark.parametrize("dtype", TYPES)
def test_masks_with_fewer_elements_than_were_counted(dtype):
    out = Guarded(5, dtype)
    with pytest.raises(RuntimeError, match="the mask was changed"):
        indexing.select_into(out.array, np.ones(8, dtype), np.arange(8) < 4)
    out.check()
    with pytest.raises(RuntimeError, match="the mask was changed"):
        scatter.index_sum(np.ones(5, dtype), (8,), [np.arange(8) < 4])
    with pytest.raises(RuntimeError, match="the mask was changed"):
        indexing.masked_first(np.ones(8, dtype), np.arange(8) < 4, 3)


@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32, np.float64])
def test_masks_with_more_elements_than_were_counted(dtype):
    x = np.ones((40, 10), dtype)
    np.testing.assert_array_equal(axis_ops._places(x, 3), [[0, 0], [0, 1], [0, 2]])
    x[1:] = 0
    with pytest.raises(RuntimeError, match="the number of nonzero elements changed"):
        axis_ops._places(x, 11)


def test_private_copies():
    for a in (np.arange(6), np.arange(6).reshape(2, 3).T, np.arange(6)[::2], np.array(5), np.zeros(3, ">i8")):
        copied = private(a)
        assert not np.shares_memory(a, copied) and copied.flags.c_contiguous
        np.testing.assert_array_equal(copied, a)


@pytest.mark.parametrize("count", [2**62, 2**63 - 1])
def test_repeats_whose_sum_overflows(count):
    for dim in (None, 0):
        with pytest.raises((RuntimeError, MemoryError)):
            cygrad.arange(4).repeat_interleave(cygrad.tensor([count] * 4), dim)
    with pytest.raises((RuntimeError, MemoryError)):
        cygrad.repeat_interleave(cygrad.tensor([count] * 4))
