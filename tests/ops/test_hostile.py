"""Every op on hostile input: sizes and indices out of bounds, NaN, empty arrays and unusual memory layouts.

An op may reject its input with an error message, but it must neither crash nor touch memory beside its operands. A
build with CYGRAD_SANITIZE=1 (tox -e asan) aborts on any access out of bounds, including reads.
"""

import contextlib
import random
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.calls import DIFFERENTIABLE, SAMPLES, Cygrad, is_internal

import cygrad
from cygrad._kernels.cpu.linalg import svd

NUMBERS = [0, 1, -1, 2, -2, 3, 7, 2**63 - 1, -(2**63), 2**62, -(2**40)]
VALUES = [0.0, -0.0, -1.0, 1e308, -1e308, 1e-310, 1e30, 2.0**63, np.nan, np.inf, -np.inf]
TYPES = ["e", "f", "d", "F", "D", "?", "u1", "i2", "i4", "i8"]
GUARD = 64  # bytes on either side of an operand
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, MemoryError, OverflowError, NotImplementedError)
# Python's own errors, which PyTorch's functions of these names raise as well
ALSO = dict.fromkeys(["lobpcg", "multi_head_attention_forward"], AssertionError)
ALSO |= dict.fromkeys(["lp_pool1d", "lp_pool2d", "lp_pool3d"], ZeroDivisionError)
# Ops whose run time is proportional to a number's value, also in PyTorch
ENDLESS = {"local_response_norm", "mvlgamma", "round.decimals", "tensor_split"}
NAMES = [name for name in SAMPLES if not (is_internal(name) or name in ENDLESS or "polynomial" in name)]


class Operands:
    """Hostile variants of a sample's arguments, and the original contents of the memory around them."""

    def __init__(self, name, seed, on):
        self.random, self.on = random.Random(seed), on
        self.share = self.random.choice([0, 0.1, 0.3, 0.8])  # of numbers that are replaced
        self.differentiable = name in DIFFERENTIABLE
        self.memory = []

    def of(self, value):
        """The value or a replacement."""
        if isinstance(value, np.ndarray):
            return self.tensor(self.array(value) if self.random.random() < 0.7 else value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.of(item) for item in value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and self.random.random() < self.share:
            return self.random.choice(NUMBERS if isinstance(value, int) else VALUES)
        return value

    def array(self, a):
        """An array with other elements, or another dtype, shape or layout."""
        choice = self.random.choice
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            if a.size and a.dtype.kind in "iuf" and choice([True, False]):
                a = a.copy()
                for _ in range(choice([1, 1, 2, a.size])):
                    number = choice(VALUES if a.dtype.kind == "f" else [*NUMBERS, *a.shape])
                    a.flat[self.random.randrange(a.size)] = np.array(number).astype(a.dtype)
            if self.random.random() < 0.2:
                a = a.astype(choice(TYPES))
            elif a.dtype == np.float64:
                a = a.astype(choice("fd"))
        axis = self.random.randrange(a.ndim) if a.ndim else None
        changes = [lambda: a, lambda: a[None], lambda: a[..., None], lambda: a.T]
        if a.ndim:
            changes += [lambda: np.flip(a, axis), lambda: np.take(a, [], axis), lambda: np.repeat(a, 17, axis)]
        if a.size:
            changes += [lambda: np.broadcast_to(a.flat[0], a.shape), lambda: a.reshape(-1)[0]]
        if a.ndim and a.shape[axis]:
            changes.append(lambda: np.broadcast_to(np.take(a, [-1], axis), a.shape))
        return np.asarray(choice(changes)())

    def tensor(self, a):
        """A tensor in memory with known bounds, laid out like the array or contiguous, possibly misaligned."""
        moves = [0, 0, 0, 1, 4] if self.on is Cygrad else [0, 0, a.itemsize]  # GPUs need aligned elements
        start = GUARD + self.random.choice(moves)
        block = np.full(2 * GUARD + a.nbytes + 8, 0xA5, np.uint8)
        held = block[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
        held[...] = a
        if self.on is Cygrad:
            self.memory.append((block, block.copy()))
        steps = [step and self.random.choice([1, 0]) for step in range(1, a.ndim + 1)]
        if a.size and self.random.random() < 0.2:  # repeat elements instead
            strides = [0 if not step else stride for step, stride in zip(steps, held.strides)]
            held = np.lib.stride_tricks.as_strided(held, held.shape, strides)
        elif a.ndim > 1 and self.random.random() < 0.3:
            held = held.reshape(a.shape[::-1]).T
        if self.on is Cygrad:
            tensor = cygrad.from_numpy(held)
        else:
            tensor, there = self.on.tensor_within(block, start, held)
            self.memory.append((there, block))
        if self.differentiable and (tensor.is_floating_point() or tensor.is_complex()):
            tensor.requires_grad_(self.random.random() < 0.7)
        return tensor

    def check(self):
        for block, former in self.memory:
            now = block if self.on is Cygrad else block.get()
            assert (now == former).all(), "an operand, or what lies beside it, was changed"


@pytest.fixture(autouse=True)
def little_memory(request):
    former = cygrad.set_memory_limit(2**29)
    if request.config.getoption("device") != "cpu":
        request.getfixturevalue("cupy").get_default_memory_pool().set_limit(2**29)
    yield
    cygrad.set_memory_limit(former)


def try_out(name, args, kwargs):
    """Call the op and run backward from its results."""
    given = Cygrad.function(name)(*args, **kwargs)
    results = given if isinstance(given, (list, tuple)) else [given]
    results = [x for x in results if isinstance(x, cygrad.Tensor) and x.requires_grad]
    cygrad.autograd.backward(results, [cygrad.ones_like(x) for x in results])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, database=None)
@given(seed=st.integers(0, 2**32))
def test_hostile_input(name, on, seed):
    operands = Operands(name, seed, on)
    for sample in SAMPLES[name]:
        args = operands.of(sample.args)
        kwargs = {key: operands.of(value) for key, value in sample.kwargs.items()}
        with contextlib.suppress(*REFUSALS, ALSO.get(name, RuntimeError)):
            try_out(name, args, kwargs)
        operands.check()


# --- Calls that once crashed or hung -----------------------------------------------------------


@pytest.mark.parametrize("sizes", [[2**62] * 4 + [5], [2**63 - 1, 6], [2**63 - 1, 2**63 - 1, 7]])
def test_sizes_whose_sum_is_beyond_integers(sizes):
    with pytest.raises(RuntimeError, match="to sum exactly to 5"):
        cygrad.split_with_sizes(cygrad.arange(5), sizes)


@pytest.mark.parametrize("count", [5, 6, 2**31, 2**62, 2**63 - 1])
def test_more_chunks_than_elements(count):
    parts = cygrad.chunk(cygrad.arange(5), count)
    assert [part.tolist() for part in parts] == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64, cygrad.float16])
@pytest.mark.parametrize("kernel, padding", [(2**31 - 1, 2**30 - 1), (2**40, 2**39), (11, 5)])
def test_windows_far_larger_than_the_image(kernel, padding, dtype):
    F = cygrad.nn.functional
    x = cygrad.arange(25, dtype=dtype).reshape(1, 1, 5, 5)
    assert (F.max_pool2d(x, kernel, 1, padding) == 24).all()
    rows = F.max_pool2d(x, (kernel, 1), 1, (padding, 0))
    assert (rows == x[:, :, -1:]).all()
    lines = F.max_pool1d(x[0, 0], kernel, 1, padding)
    assert (lines == x[0, 0, :, -1:]).all()
    cube, places = F.max_pool3d(x[None], (11, kernel, kernel), 1, (5, padding, padding), return_indices=True)
    assert (cube == 24).all() and (places == 24).all()


@pytest.mark.parametrize("times", [2**62, 2**63 - 1])
def test_more_copies_than_memory(times):
    with pytest.raises(REFUSALS):
        cygrad.ones(1, 4).repeat(times, 1)


def test_pooling_to_no_windows():
    x = cygrad.ones(2, 3, 4, 4, requires_grad=True)
    y = cygrad.nn.functional.adaptive_max_pool2d(x, (0, 2))
    y.sum().backward()
    assert y.shape == (2, 3, 0, 2) and not x.grad.any()


def test_dimensions_to_solve_for_are_checked():
    a, b = 2 * cygrad.eye(4).reshape(2, 2, 4), cygrad.ones(2, 2)
    for dims in ((5,), (-4,)):
        with pytest.raises(IndexError, match=r"expected to be in range of \[-3, 2\]"):
            cygrad.linalg.tensorsolve(a, b, dims)
    with pytest.raises(IndexError, match="out of range"):
        cygrad.linalg.tensorsolve(cygrad.tensor(3.0), cygrad.tensor(1.0), (1,))
    assert cygrad.linalg.tensorsolve(cygrad.tensor(3.0), cygrad.tensor(6.0), (0,)).item() == 2


def test_gradient_of_determinants_of_matrices_that_are_not_finite():
    a = np.zeros((4, 3, 3), "f")
    a[0], a[1, 0, 0], a[2, 1, 2], a[3, 0] = np.eye(3), np.inf, np.nan, 1
    found = svd.cofactors(a)
    np.testing.assert_allclose(found[0], np.eye(3), 1e-6, 1e-6)
    assert np.isnan(found[1:3]).all() and (found[3] == 0).all()
    x = cygrad.tensor(a, requires_grad=True)
    cygrad.det(x).sum().backward()
    assert x.grad[0].isfinite().all() and not x.grad[1].isfinite().any() and not x.grad[2].isfinite().any()
