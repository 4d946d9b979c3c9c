"""Sums that run block by block with the loops before them, and small ops in between: the bits of an eager step."""

import pytest
from compile.replays import bits, tensors_in

import cygrad
from cygrad._core.replay.capture import capture
from cygrad._core.replay.parts import Refusal

SIZES = 5000, 20_001, 32_768, 50_000, 65_536, 65_537, 100_001, 32_768 * 5 + 700
ROWS = (3000, 3), (40, 256), (17, 300), (9, 512), (11, 1000), (5, 1024), (6, 2048), (3, 2049), (3, 40_000), (2, 70_000)
DTYPES = cygrad.float32, cygrad.float64


def captured(step, *given):
    """The program of a step, captured and checked on copies, whose memory was filled with NaN."""
    step(*given)
    _, program = capture(lambda: step(*given), list(given), tensors_in)
    assert not isinstance(program, Refusal), program
    _, difference = program.check(lambda: step(*given), list(given), tensors_in)
    assert difference is None
    return program


def equal(program, step, *given):
    """Compare a replay with an eager step."""
    found, expected = program.replay(list(given)), tensors_in(step(*given))
    assert [bits(each) for each in found] == [bits(each) for each in expected]


@pytest.fixture(params=[1, 2])
def threads(request):
    before = cygrad.get_num_threads()
    cygrad.set_num_threads(request.param)
    yield request.param
    cygrad.set_num_threads(before)


def value_and_gradient(x):
    w = x.detach().requires_grad_()
    value = (cygrad.tanh(w) * w + cygrad.exp(w)).sum()
    return value.detach(), cygrad.autograd.grad(value, w)[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_sum_of_all_in_a_group(size, dtype, threads):
    def step(x):
        return (cygrad.tanh(x) * x).sum(), (x * x - 1).mean()

    program = captured(step, cygrad.randn(size, dtype=dtype))
    for _ in range(2):
        equal(program, step, cygrad.randn(size, dtype=dtype) * 1000)
    equal(program, step, cygrad.full((size,), -0.0, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_sums_of_rows_in_a_group(rows, dtype, threads):
    def step(x):
        y = cygrad.exp(x) * x
        return y.sum(1), (y + 1).sum(-1, keepdim=True), y

    program = captured(step, cygrad.randn(*rows, dtype=dtype))
    for _ in range(2):
        equal(program, step, cygrad.randn(*rows, dtype=dtype))


def test_sums_of_rows_and_of_all_in_a_group(threads):
    for columns in (128, 300, 512):

        def step(x):
            y = x * x + 1
            return y.sum(), y.sum(1), (y * 2).sum()

        program = captured(step, cygrad.randn(777, columns))
        equal(program, step, cygrad.randn(777, columns))


def test_chain_with_its_sum_and_gradient_needs_no_arrays():
    def step(x):
        y = (cygrad.tanh(x) * x).sum() * 2
        return y + 1, cygrad.exp(x) * 3

    for size in (20_000, 200_000):
        program = captured(step, cygrad.randn(size))
        assert program.memory < size, "the elements that are summed up are not kept"
        equal(program, step, cygrad.randn(size))


def test_gradient_in_the_group_of_the_sum(threads):
    x = cygrad.randn(100_000, requires_grad=True)

    def step():
        value = (cygrad.tanh(x) * x + cygrad.exp(x)).sum()
        return value.detach() / 3, cygrad.autograd.grad(value, x)[0]

    program = captured(step)
    assert program.memory < 100_000
    equal(program, step)


def test_loops_that_use_a_sum_wait_for_it(threads):
    def step(x):
        y = x * 2
        total = y.sum()
        return y / total, (y - total).sum(), (y * 3).sum() + total

    program = captured(step, cygrad.rand(70_000))
    for _ in range(2):
        equal(program, step, cygrad.rand(70_000))


def test_small_ops_in_between_keep_their_order():
    small = cygrad.zeros(3)

    def step(x):
        y = x * 2
        total = y.sum()
        small.add_(total)
        z = y + 1
        small.mul_(0.5)
        return z, small * total, z.sum() + small[0]

    program = captured(step, cygrad.randn(10_000))
    for _ in range(3):
        x, before = cygrad.randn(10_000), small.clone()
        found = program.replay([x])
        after = small.clone()
        small.copy_(before)
        expected = tensors_in(step(x))
        assert [bits(each) for each in found] == [bits(each) for each in expected]
        assert bits(after) == bits(small)


def test_products_with_one_are_left_out():
    """The first products of a backward pass: their readers see the other factor, before it or they are changed."""
    one = cygrad.ones(())

    def step(x):
        y = cygrad.exp(x)
        a = one.new_ones(()) * y
        b = a + 1
        a.mul_(3)  # in place, of what `b` has seen
        c = y * one.new_ones(())
        y.add_(1)  # `c` is a copy of what was there before
        return a, b, c + 0, y

    x = cygrad.randn(9000)
    program = captured(step, x)
    equal(program, step, cygrad.randn(9000))
    special = cygrad.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, 88.0]).repeat(1000)
    equal(captured(step, special), step, special)


def test_products_of_other_types_with_one_are_kept():
    def step(x):
        ones = x.new_ones(())
        return (x * ones) * 2 + 1

    for dtype in (cygrad.float64, cygrad.int32, cygrad.int64, cygrad.complex64):
        x = (cygrad.randn(9000) * 10).to(dtype)
        equal(captured(step, x), step, x)


def test_gradient_of_a_sum_starts_without_products():
    u = cygrad.randn(20_000, requires_grad=True)

    def step():
        return cygrad.autograd.grad((cygrad.tanh(u) * u + cygrad.exp(u) * cygrad.sigmoid(u)).sum(), u)[0]

    program = captured(step)
    equal(program, step)
    assert len(program.entries) <= 11


BROADCAST = {
    "row": lambda x: cygrad.ones(x.shape[1]) + cygrad.arange(x.shape[1]),
    "column": lambda x: cygrad.arange(x.shape[0], dtype=cygrad.float32)[:, None] / 7,
    "expanded": lambda x: cygrad.ones(()).expand(x.shape[1]) * 3,
}


@pytest.mark.parametrize("kind", BROADCAST)
@pytest.mark.parametrize("rows", [(300, 40), (5, 1024), (7, 3001), (4000, 17)], ids=str)
def test_rows_and_columns_for_all_items_join_a_group(rows, kind, threads):
    """One row or column that all items see, before and after loops over items."""
    b = BROADCAST[kind](cygrad.empty(*rows))

    def step(x, b):
        y = cygrad.tanh(x + b) * x
        return (b - y) * 2, (y * b).sum()

    program = captured(step, cygrad.randn(*rows), b)
    for _ in range(2):
        equal(program, step, cygrad.randn(*rows), b + 1)
    assert program.memory < 4 * rows[0] * rows[1], "what lies between the loops is not kept"


def test_rows_in_place_in_a_group(threads):
    def step(x, b):
        y = x * 2
        y += b
        y *= y
        return y - b

    for dtype in DTYPES:
        x, b = cygrad.randn(200, 70, dtype=dtype), cygrad.randn(70, dtype=dtype)
        equal(captured(step, x, b), step, x + 1, b - 1)


def test_a_row_that_the_group_itself_computes_ends_it(threads):
    def step(x):
        y = x * 2
        return y + y.view(-1)[:100], y + y[:, :1], y

    program = captured(step, cygrad.randn(90, 100))
    equal(program, step, cygrad.randn(90, 100))


def test_rows_of_steps_that_no_group_takes():
    """Short rows, gaps, and an output in another order go on as before."""

    def step(x, b):
        return x[:, :4] + b[:4], x[:, ::2] + b[::2], x.t() + b[:, None], x + x[:, :1].contiguous()

    program = captured(step, cygrad.randn(3000, 60), cygrad.randn(60))
    equal(program, step, cygrad.randn(3000, 60), cygrad.randn(60))
