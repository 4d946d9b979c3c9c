"""Streams of Philox on the CPU: NumPy's numbers, which cygrad drew by default once, and their states."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.random import random as kernels
from helpers import fails

N = 20_000

by_own_loops = pytest.mark.skipif(not loop_table.has_loops(np.zeros(1)), reason="NumPy draws otherwise")


def philox(seed):
    """Return a generator at the beginning of the stream of a seed."""
    return torch.Generator(algorithm="philox").manual_seed(seed)


def test_single_precision_has_the_numbers_of_the_generator():
    """Drawing in chunks gives the same numbers as drawing one by one."""
    numbers = np.random.Generator(np.random.Philox(key=5))
    made = torch.rand(3, 7001, generator=philox(5)).numpy()
    np.testing.assert_array_equal(made, numbers.random((3, 7001), np.float32))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 1), (5, 300), (700, 300)])
def test_weights_cover_parts_of_their_sum(shape, dtype):
    weights = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    weights[..., 0] = 1
    g = philox(5)
    drawn = np.random.Generator(np.random.Philox(key=5))
    for count in (1, 4):
        found = torch.multinomial(torch.tensor(weights), count, replacement=True, generator=g).numpy()
        rows = np.atleast_2d(weights).astype(np.float64)
        edges = rows.cumsum(1)
        values = drawn.random((len(rows), count)) * edges[:, -1:]
        expected = [np.searchsorted(edge, value, "right") for edge, value in zip(edges, values)]
        np.testing.assert_array_equal(found, np.reshape(expected, found.shape))


@pytest.mark.skipif(not loop_table.has_loops(np.zeros(1)), reason="without loops")
def test_no_index_without_weight_is_drawn_at_the_end_of_the_sum():
    edges = kernels.running_weights(np.array([[0.1, 0.2, 0.0], [0.0, 1.0, 0.0]]))
    drawn = np.full((2, 1), 1 - 2.0**-53)
    found = np.full((2, 1), -1)
    loop_table.run(kernels.PICK, (edges, drawn, found), (3, 1), 0, 2, 1)
    assert found.tolist() == [[1], [1]]


@pytest.mark.parametrize("count", [2048, 2051, 20_000, 20_003])
@pytest.mark.parametrize("before", [0, 1, 7])
def test_numbers_are_those_of_numpys_stream(count, before):
    """Large draws, made by our own loop across threads, and the draws after them agree with NumPy's stream."""
    generator = philox(2**63 + 5)
    words = np.random.Philox(key=2**63 + 5)
    for _ in range(before):
        generator.source()[1].bit_generator.random_raw()
    words.random_raw(before)
    for _ in range(2):
        bits = words.random_raw(-(-count // 2)).view(np.uint32)[:count]
        found = torch.rand(count, generator=generator)
        assert (found.numpy() == (bits >> 8).astype(np.float32) / 2**24).all()


@pytest.mark.parametrize("ahead", [0, 1, 7])
@pytest.mark.parametrize("seed", [0, 3, 2**40 + 1])
def test_what_is_drawn_one_by_one_is_what_numpy_draws(seed, ahead):
    ours, theirs = (np.random.Generator(np.random.Philox(key=seed)) for _ in range(2))
    for numbers in (ours, theirs):
        numbers.random(ahead, np.float32)  # may leave half a word buffered
    spans = (0, 1), (0, 5), (-7, 3**18), (0, 2**32 - 1), (2**62, 2**62 + 9), (-(2**63), 10 - 2**63), (5, 5 + 3 * 2**30)
    for count in (0, 1, 5, 63):
        np.testing.assert_array_equal(kernels.singles(ours, (count,)), theirs.random(count, np.float32))
        for low, high in spans:
            found = kernels.whole_numbers(ours, (count,), low, high, np.dtype(np.int64))
            np.testing.assert_array_equal(found, theirs.integers(low, high, count))
    for count in (0, 1, 64, 5000):
        drawn = kernels.uniform(ours, (count,), np.dtype(np.float64))
        np.testing.assert_array_equal(drawn, theirs.random(count))
        np.testing.assert_array_equal(kernels.permutation(ours, count, np.dtype(np.int64)), theirs.permutation(count))
    assert ours.random(3).tolist() == theirs.random(3).tolist()


@pytest.mark.parametrize("low, high", [(0, 2**32), (-5, 2**32), (-(2**62), 2**62), (-(2**63), 2**63 - 1), (1, 2**63)])
def test_integers_of_wide_spans_are_what_numpy_draws(low, high):
    ours, theirs = (np.random.Generator(np.random.Philox(key=4)) for _ in range(2))
    for count in (0, 1, 5, 100, 9000):
        expected = theirs.integers(low, high, count)
        found = kernels.whole_numbers(ours, (count,), low, high, np.dtype(np.int64))
        np.testing.assert_array_equal(found, expected)
    assert ours.random(3).tolist() == theirs.random(3).tolist()


def units(words, count):
    """Numbers in [0, 1) from the halves of NumPy's words, low half first."""
    return (words.random_raw(-(-count // 2)).view(np.uint32)[:count] >> 8) / 2**24


def of_uniform(uniform, spare):
    """Normal numbers by the Box-Muller transform: each chunk of 128 uniform numbers provides directions in its first
    half and distances in its second; an odd last number is paired with `spare`.
    """

    def points(turns, distances):
        angles, distances = 2 * np.pi * (turns - 0.5), np.sqrt(-2 * np.log(1 - distances))
        return [*np.cos(angles) * distances, *np.sin(angles) * distances]

    found = []
    for start in range(0, len(uniform), 128):
        part = uniform[start : start + 128]
        half = len(part) // 2
        found += points(part[:half], part[half : 2 * half])
        if len(part) % 2:
            found += points(part[-1:], np.array([spare]))[:1]
    return np.array(found)


@by_own_loops
@pytest.mark.parametrize("count", [64, 65, 127, 128, 129, 1000, 8191, 8192, 8193, 20_001])
def test_normal_numbers_are_made_of_pairs_of_uniform_ones(count):
    """Check every element, including the tail and the chunks that threads share."""
    words = np.random.Philox(key=9)
    uniform = units(words, count)
    spare = np.float32(np.random.Generator(words).random(None, np.float32))
    drawn = torch.randn(count, generator=philox(9))
    np.testing.assert_allclose(drawn.numpy(), of_uniform(uniform, spare), 1e-4, 2e-6)
    shifted = torch.zeros(count).normal_(3, 0.5, generator=philox(9))
    np.testing.assert_allclose(shifted.numpy(), 3 + 0.5 * drawn.numpy(), 1e-6, 1e-6)


@by_own_loops
@pytest.mark.parametrize("count", [1, 2, 7, 63])
def test_few_normal_numbers_are_made_likewise(count):
    numbers = np.random.Generator(np.random.Philox(key=9))
    uniform, spare = numbers.random(count, np.float32), numbers.random(None, np.float32)
    drawn = torch.randn(count, generator=philox(9))
    np.testing.assert_allclose(drawn.numpy(), of_uniform(uniform.astype(float), spare), 1e-4, 2e-6)


@by_own_loops
@pytest.mark.parametrize("count", [3, 64, 8193, 20_001])
def test_exponential_numbers_are_logarithms_and_not_0(count):
    numbers = np.random.Generator(np.random.Philox(key=9))
    uniform = numbers.random(count, np.float32) if count < 64 else units(numbers.bit_generator, count)
    drawn = torch.zeros(count).exponential_(2, generator=philox(9)).numpy()
    np.testing.assert_allclose(drawn, -np.log1p(-uniform.astype(float)) / 2, 1e-5, 2e-8)
    assert (drawn > 0).all()


# --- States --------------------------------------------------------------------------------------


def numbers(generator):
    return torch.rand(5, generator=generator).tolist(), torch.randperm(7, generator=generator).tolist()


def test_states_lead_to_the_algorithm_they_belong_to():
    g = philox(5)
    torch.randint(10, (1,), dtype=torch.int32, generator=g)  # leaves half a word buffered
    state = g.get_state()
    expected = numbers(g)
    for other in (
        g.set_state(state),
        torch.Generator().set_state(state),
        pickle.loads(pickle.dumps(g.set_state(state))),
        copy.deepcopy(g.set_state(state)),
        g.set_state(state).clone_state(),
    ):
        assert other.algorithm == "philox" and numbers(other) == expected and other.initial_seed() == 5
    back = philox(1).set_state(torch.Generator().manual_seed(5).get_state())
    assert back.algorithm == "mt19937" and numbers(back) == numbers(torch.Generator().manual_seed(5))


def test_pickles_of_generators_from_before_are_read():
    """They named this function; its argument was the state of Philox, 14 words."""
    from cygrad._ops.random.generator import _restored

    words = [5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 4, 0, 0]
    old = _restored(np.array(words, np.uint64).view(np.uint8))
    assert numbers(old) == numbers(philox(5))


def test_algorithms_are_checked():
    with fails(ValueError, "no random number generator 'xorshift' for cpu: choose 'mt19937' or 'philox'"):
        torch.Generator(algorithm="xorshift")


def test_every_distribution_is_drawn():
    g, x = philox(3), torch.zeros(9)
    for name, arguments in {
        **dict.fromkeys("uniform_ normal_ exponential_ bernoulli_ cauchy_ log_normal_ random_".split(), ()),
        "geometric_": (0.3,),
    }.items():
        first = getattr(x, name)(*arguments, generator=g).clone()
        assert not torch.equal(getattr(x, name)(*arguments, generator=g), first)
        assert torch.equal(
            getattr(x, name)(*arguments, generator=philox(3)), getattr(x, name)(*arguments, generator=philox(3))
        )
    assert torch.zeros(99, dtype=torch.uint8).random_(generator=g).max() > 99
    assert sorted(torch.multinomial(torch.ones(5), 5, generator=g).tolist()) == [0, 1, 2, 3, 4]
    with torch.random.drawing_from(g):
        assert (torch.distributions.Gamma(2.0, torch.ones(9)).sample() > 0).all()
