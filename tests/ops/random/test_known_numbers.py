"""The numbers that PyTorch draws for a seed, recorded by tools/record_draws.py."""

import hashlib
import json
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from draw_cases import CASES, SEED, evaluate

import cygrad as torch
from helpers import fails

KNOWN = json.loads(Path(__file__).with_name("pytorch_draws.json").read_text(encoding="utf-8"))


def test_the_file_holds_every_case():
    assert list(KNOWN["draws"]) == CASES


@pytest.mark.parametrize("expression", CASES)
def test_numbers_are_pytorchs(expression):
    """The last bits depend on the processor and on the C library; what is drawn next does not."""
    numbers, following = KNOWN["draws"][expression]
    found, next_found = evaluate(torch, expression)
    assert next_found == following
    if "float64" in expression:
        np.testing.assert_allclose(found, numbers, 1e-13, 1e-15)
    elif any(isinstance(number, float) for number in numbers):
        half = "float16" in expression or "bfloat16" in expression
        np.testing.assert_allclose(found, numbers, 1e-2 if half else 1e-6, 1e-3 if half else 2e-7)
    else:
        assert found == numbers


@pytest.mark.parametrize("expression", [case for case in CASES if case.startswith("torch.rand(")])
def test_uniform_numbers_are_pytorchs_to_the_last_bit(expression):
    assert evaluate(torch, expression)[0] == KNOWN["draws"][expression][0]


@pytest.mark.parametrize("count", KNOWN["states"])
def test_states_are_pytorchs(count):
    torch.manual_seed(SEED)
    for _ in range(int(count)):
        torch.randn(())
    state = torch.get_rng_state()
    assert hashlib.sha256(bytes(state.tolist())).hexdigest() == KNOWN["states"][count]
    other = torch.Generator().set_state(state)
    assert other.initial_seed() == SEED and torch.randn(3, generator=other).equal(torch.randn(3))


def test_the_twister_is_that_of_numpy():
    """Words of 32 bits from three blocks, whose last 24 are the float's."""
    for seed in (0, 5, 2**32 - 1, 2**64 - 3):
        bits = np.random.MT19937()
        bits._legacy_seeding(seed % 2**32)
        words = bits.random_raw(1500) & (2**24 - 1)
        drawn = torch.rand(1500, generator=torch.Generator().manual_seed(seed))
        assert (drawn.numpy() == words / 2**24).all()


@pytest.mark.parametrize("sizes", [(1, 2, 623, 624, 625), (600, 24, 1), (623, 1, 1, 1247), (7,) * 100])
def test_draws_of_any_size_go_on_where_the_last_one_ended(sizes):
    g, h = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    parts = [torch.rand(size, generator=g) for size in sizes]
    assert torch.cat(parts).equal(torch.rand(sum(sizes), generator=h)) and g.get_state().equal(h.get_state())


def changed(position, value):
    state = torch.Generator().get_state()
    state[position] = value
    return state


@pytest.mark.parametrize(
    "state",
    [
        changed(8, 0),
        changed(slice(8, 12), 255),
        changed(9, 9),
        changed(12, 0),
        changed(17, 9),
        torch.zeros(5056).byte(),
    ],
)
def test_invalid_states_change_nothing(state):
    g = torch.Generator().manual_seed(3)
    before = g.get_state()
    with fails(RuntimeError, "Invalid mt19937 state"):
        g.set_state(state)
    assert g.get_state().equal(before)


def test_states_whose_counters_disagree_do_not_read_beyond_the_block():
    state = torch.Generator().manual_seed(3).get_state()
    for left, following in ((1, 5), (624, 624), (200, 500)):
        state[8:12] = torch.tensor([left % 256, left // 256, 0, 0], dtype=torch.uint8)
        state[16:20] = torch.tensor([following % 256, following // 256, 0, 0], dtype=torch.uint8)
        drawn = torch.rand(2000, generator=torch.Generator().set_state(state))
        assert ((drawn >= 0) & (drawn < 1)).all()


def test_generators_on_the_cpu_refuse_what_those_of_gpus_do():
    g = torch.Generator()
    for call, error, line in (
        (g.get_offset, RuntimeError, "CPU Generator does not use offset"),
        (lambda: g.set_offset(4), RuntimeError, "CPU Generator does not use offset"),
        (g.graphsafe_get_state, NotImplementedError, "graphsafe_get_state is not supported in this Generator"),
        (
            lambda: g.graphsafe_set_state(g),
            NotImplementedError,
            "graphsafe_set_state is not supported in this Generator",
        ),
    ):
        with fails(error, line):
            call()


def test_pickles_hold_what_those_of_pytorch_hold():
    g = torch.Generator().manual_seed(5)
    kind, arguments, (seed, offset, state) = g.__reduce__()
    assert kind is torch.Generator and arguments == (torch.device("cpu"),)
    assert (seed, offset) == (5, None) and state.equal(g.get_state())
    torch.randn(3, generator=g)  # leaves the second number of a pair
    again = pickle.loads(pickle.dumps(g))
    assert torch.randn(4, generator=again).equal(torch.randn(4, generator=g))


def drawn(draw, seed=7):
    """Return the numbers that `draw` makes, and the word that follows them."""
    torch.manual_seed(seed)
    found = draw()
    return found, torch.rand(()).item()


@pytest.mark.parametrize("rate", [1, 0.3, 1e30, 1e-30, 2e-39, 7e37])
def test_exponential_numbers_in_vectors_are_those_made_one_by_one(rate):
    """Floats are rounded from doubles, which are made one by one, to the last bit."""
    for n in (1, 63, 64, 65, 511, 513, 200_000):
        floats, after = drawn(partial(torch.empty(n).exponential_, rate))
        doubles, after_doubles = drawn(partial(torch.empty(n, dtype=torch.float64).exponential_, rate))
        assert after == after_doubles
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_array_equal(floats.numpy(), doubles.numpy().astype(np.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.uint8, torch.int16, torch.float16])
def test_integers_of_other_types_are_those_of_int64(dtype):
    for n in (1, 7, 511, 512, 513, 3000):
        wide, after = drawn(partial(torch.empty(n, dtype=torch.int64).random_, 0, 100))
        narrow, after_narrow = drawn(partial(torch.empty(n, dtype=dtype).random_, 0, 100))
        assert after == after_narrow and narrow.dtype == dtype
        np.testing.assert_array_equal(narrow.numpy(), wide.numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("length, count", [(1, 3), (2, 2), (4, 2), (7, 100), (100, 5), (1000, 3), (1000, 500)])
def test_picks_are_where_running_sums_reach_uniform_numbers(length, count, dtype):
    rng = np.random.default_rng(length)
    weights = rng.random((3, length)) * (rng.random((3, length)) < 0.7)
    weights[:, length // 2] = 1
    given = torch.tensor(weights, dtype=dtype)
    picks, after = drawn(lambda: torch.multinomial(given, count, replacement=True))
    uniform, after_uniform = drawn(lambda: torch.rand(3, count, dtype=torch.float64))
    assert after == after_uniform
    kept = given.double() if dtype == torch.float64 else given.float()
    sums = kept.numpy().cumsum(1)  # one after the other, in this type
    sums /= sums[:, -1:]
    for row, values, found in zip(sums, uniform.numpy(), picks.numpy()):
        expected = np.minimum(np.searchsorted(row.astype(np.float64), values), length - 1)
        np.testing.assert_array_equal(found, expected)


def test_weights_are_checked_before_anything_is_drawn():
    for bad in ([0.0, 0.0], [1.0, -1.0], [float("inf"), 1.0], [float("nan"), 1.0]):
        for dtype in (torch.float32, torch.float64, torch.float16):
            for length in (2, 20):
                weights = torch.tensor([[1.0] * length, (bad * length)[:length]], dtype=dtype)
                torch.manual_seed(0)
                before = torch.get_rng_state()
                with pytest.raises(RuntimeError, match="multinomial|probability tensor"):
                    torch.multinomial(weights, 1, replacement=True)
                assert torch.get_rng_state().equal(before)
