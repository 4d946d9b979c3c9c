"""The numbers that PyTorch draws for a seed, recorded by tools/record_draws.py."""

import hashlib
import json
import pickle
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
