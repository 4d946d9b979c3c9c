"""Random numbers: streams, distributions, threads."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, in_threads

N = 20_000


# --- Streams -----------------------------------------------------------------------------------


def draws(generator=None):
    """Draw from every kind of distribution, as plain lists."""
    g = {"generator": generator}
    x = torch.zeros(3)
    return [
        torch.rand(3, **g).tolist(),
        torch.randn(3, **g).tolist(),
        torch.randint(100, (3,), **g).tolist(),
        torch.randperm(5, **g).tolist(),
        torch.normal(0.0, 1.0, (2,), **g).tolist(),
        torch.bernoulli(torch.full((9,), 0.5), **g).tolist(),
        torch.multinomial(torch.ones(9), 3, **g).tolist(),
        torch.poisson(torch.full((9,), 5.0), **g).tolist(),
        torch.binomial(torch.full((9,), 5.0), torch.full((9,), 0.5), **g).tolist(),
        *(getattr(x.clone(), name)(**g).tolist() for name in ("uniform_", "normal_", "random_")),
        *(getattr(x.clone(), name)(**g).tolist() for name in ("exponential_", "bernoulli_", "cauchy_", "log_normal_")),
        x.clone().geometric_(0.1, **g).tolist(),
    ]


def test_a_seed_gives_one_stream():
    torch.manual_seed(3)
    first = draws()
    assert draws() != first
    torch.manual_seed(3)
    assert draws() == first
    torch.manual_seed(4)
    assert draws() != first


def test_a_generator_is_a_stream_of_its_own():
    g, h = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    first = draws(g)
    torch.rand(10)
    assert draws(h) == first
    torch.manual_seed(1)
    assert draws() == first


def test_seeds_one_apart_have_nothing_in_common():
    streams = [torch.rand(1000, generator=torch.Generator().manual_seed(s)).numpy() for s in range(5)]
    correlations = np.corrcoef(streams) - np.eye(5)
    assert np.abs(correlations).max() < 0.15


def test_state_is_a_place_in_the_stream():
    g = torch.Generator().manual_seed(5)
    torch.rand(3, generator=g)
    torch.randint(10, (1,), dtype=torch.int32, generator=g)  # may leave half a word buffered
    state = g.get_state()
    assert state.dtype is torch.uint8
    expected = draws(g)
    for other in (
        g.set_state(state),
        torch.Generator().set_state(state),
        pickle.loads(pickle.dumps(g.set_state(state))),
        copy.deepcopy(g.set_state(state)),
        g.set_state(state).clone_state(),
    ):
        assert draws(other) == expected
        assert other.initial_seed() == 5


def test_default_stream_by_its_functions():
    before = torch.get_rng_state()
    first = draws()
    torch.set_rng_state(before)
    assert draws() == first
    torch.set_rng_state(before)
    with torch.random.fork_rng():
        draws()
    assert draws() == first
    assert torch.seed() == torch.initial_seed() == torch.default_generator.initial_seed()
    assert torch.seed() != torch.initial_seed() or torch.seed() != torch.seed()


@pytest.mark.parametrize(
    "call, error, line",
    [
        (lambda g: g.manual_seed(1.5), RuntimeError, "manual_seed expected a long, but got float"),
        (lambda g: g.manual_seed(2**64), ValueError, "Overflow when unpacking long long"),
        (lambda g: g.set_state(3), TypeError, "expected a torch.ByteTensor, but got int"),
        (lambda g: g.set_state(torch.zeros(3)), TypeError, "RNG state must be a torch.ByteTensor"),
        (
            lambda g: g.set_state(torch.zeros(3, dtype=torch.uint8)),
            RuntimeError,
            "Expected a CPUGeneratorImplState of size ... but found the input RNG state size to be 3",
        ),
        (lambda g: torch.rand(2, generator=3), TypeError, "rand(): argument 'generator' ..."),
    ],
)
def test_bad_seeds_and_states(call, error, line):
    with fails(error, line):
        call(torch.Generator())


def test_numpy_random_is_imported_when_first_needed():
    code = "import sys, cygrad; cygrad.manual_seed(1); print('numpy.random' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    import_by_numpy = subprocess.run(
        [sys.executable, "-c", "import sys, numpy; print('numpy.random' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == import_by_numpy.stdout


# --- Distributions -----------------------------------------------------------------------------


def moments(t):
    array = t.numpy().astype(np.float64)
    return array.mean(), array.std(), array.min(), array.max()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_uniform(dtype):
    mean, std, low, high = moments(torch.rand(N, dtype=dtype))
    assert abs(mean - 0.5) < 0.01 and abs(std - 12**-0.5) < 0.01 and 0 <= low and high < 1
    mean, std, low, high = moments(torch.zeros(N, dtype=dtype).uniform_(-3, 5))
    assert abs(mean - 1) < 0.1 and -3 <= low and high < 5


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_normal(dtype):
    mean, std, low, high = moments(torch.randn(N, dtype=dtype))
    assert abs(mean) < 0.03 and abs(std - 1) < 0.03 and low < -3 and high > 3
    mean, std, _, _ = moments(torch.zeros(N, dtype=dtype).normal_(10, 2))
    assert abs(mean - 10) < 0.06 and abs(std - 2) < 0.06


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.float16], ids=str)
def test_numbers_without_dimensions_are_tensors(dtype):
    for made in (torch.randn((), dtype=dtype), torch.rand_like(torch.zeros((), dtype=dtype))):
        assert made.device.type == "cpu" and made.dtype is dtype and made.shape == ()
        assert made.to("cpu") is made


def test_complex():
    z = torch.randn(N, dtype=torch.complex64).numpy()
    assert z.dtype == np.complex64
    assert abs(z.real.std() - 0.5**0.5) < 0.02 and abs(z.imag.std() - 0.5**0.5) < 0.02
    assert abs(np.mean(z.real * z.imag)) < 0.02
    u = torch.rand(N, dtype=torch.complex128).numpy()
    assert abs(u.real.mean() - 0.5) < 0.01 and abs(u.imag.mean() - 0.5) < 0.01


def test_integers():
    for made in (
        torch.randint(3, 7, (N,)),
        torch.zeros(N).random_(3, 7),
        torch.zeros(N, dtype=torch.uint8).random_(3, 7),
    ):
        counts = np.bincount(made.numpy().astype(int), minlength=7)
        assert counts[:3].sum() == 0 and np.abs(counts[3:] / N - 0.25).max() < 0.02
    assert torch.randint(2, (N,), dtype=torch.bool).numpy().mean() == pytest.approx(0.5, abs=0.02)
    assert torch.zeros(N, dtype=torch.int8).random_().numpy().max() == 127
    assert torch.zeros(9, dtype=torch.int64).random_().numpy().max() > 2**55


@pytest.mark.parametrize("low", [0, -(2**31), -(2**63)])
def test_integers_of_a_span_that_does_not_divide_the_bits(low):
    """A quarter of the 2^32 words must be rejected here; otherwise some numbers would be twice as likely."""
    made = torch.randint(low, low + 3 * 2**30, (3 * N + 1,)).numpy().astype(object) - low
    assert 0 <= made.min() and made.max() < 3 * 2**30
    thirds = np.bincount([int(number) >> 30 for number in made], minlength=3)
    assert np.abs(thirds / len(made) - 1 / 3).max() < 0.02
    remainders = np.bincount([int(number) % 3 for number in made], minlength=3)
    assert np.abs(remainders / len(made) - 1 / 3).max() < 0.02


def test_permutations():
    assert sorted(torch.randperm(100).tolist()) == list(range(100))
    firsts = [torch.randperm(4)[0].item() for _ in range(400)]
    assert np.bincount(firsts).min() > 50
    with fails(RuntimeError, "value cannot be converted to type uint8_t without overflow"):
        torch.randperm(300, dtype=torch.uint8)


def test_exponential_and_coins():
    mean, std, low, _ = moments(torch.zeros(N).exponential_(2))
    assert abs(mean - 0.5) < 0.02 and abs(std - 0.5) < 0.03 and low >= 0
    p = torch.linspace(0, 1, 5).repeat(N // 5, 1)
    for coins in (torch.bernoulli(p), torch.zeros_like(p).bernoulli_(p)):
        assert set(np.unique(coins.numpy())) == {0, 1}
        np.testing.assert_allclose(coins.numpy().mean(0), np.linspace(0, 1, 5), atol=0.03)
    assert abs(torch.zeros(N).bernoulli_(0.2).mean().item() - 0.2) < 0.02


def test_poisson():
    for rate in (0.3, 4.0, 1e4):
        mean, std, low, _ = moments(torch.poisson(torch.full((N,), rate, dtype=torch.float64)))
        assert abs(mean - rate) < 5 * (rate / N) ** 0.5 and abs(std / rate**0.5 - 1) < 0.05 and low >= 0
    huge = torch.poisson(torch.tensor([1e30, 1e18], dtype=torch.float64)).numpy()
    np.testing.assert_allclose(huge, [1e30, 1e18], 1e-6)


def test_binomial():
    mean, std, low, high = moments(torch.binomial(torch.full((N,), 20.0), torch.tensor(0.3)))
    assert abs(mean - 6) < 0.1 and abs(std - 4.2**0.5) < 0.05 and low >= 0 and high <= 20
    nan = torch.binomial(torch.tensor([1.0, float("nan")]), torch.tensor([float("nan"), 0.5]))
    assert torch.isnan(nan).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_cauchy(dtype):
    drawn = np.sort(torch.zeros(N, dtype=dtype).cauchy_(2, 3).numpy().astype(np.float64))
    np.testing.assert_allclose(drawn[[N // 4, N // 2, 3 * N // 4]], [-1, 2, 5], atol=0.3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_log_normal(dtype):
    mean, std, _, _ = moments(torch.zeros(N, dtype=dtype).log_normal_(0.5, 0.3).log())
    assert abs(mean - 0.5) < 0.02 and abs(std - 0.3) < 0.02


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int64, torch.uint8])
def test_geometric(dtype):
    drawn = torch.zeros(N, dtype=dtype).geometric_(0.25).numpy().astype(np.float64)
    assert abs(drawn.mean() - 4) < 0.15 and drawn.min() == 1
    assert abs((drawn == 1).mean() - 0.25) < 0.02


def test_normal_of_tensors():
    mean, std = torch.tensor([[0.0], [100.0]]), torch.tensor([1.0, 0.0, 5.0])
    drawn = torch.stack([torch.normal(mean, std) for _ in range(500)]).numpy()
    np.testing.assert_allclose(drawn.mean(0), [[0, 0, 0], [100, 100, 100]], atol=1)
    np.testing.assert_allclose(drawn.std(0), [[1, 0, 5]] * 2, atol=0.5)
    assert torch.normal(mean, 2.0).shape == (2, 1) and torch.normal(1.0, std).shape == (3,)


def test_multinomial():
    weights = torch.tensor([[1.0, 2.0, 0.0, 1.0], [0.0, 0.0, 3.0, 1.0]])
    drawn = torch.multinomial(weights, N, replacement=True).numpy()
    for row, w in zip(drawn, weights.numpy()):
        np.testing.assert_allclose(np.bincount(row, minlength=4) / N, w / w.sum(), atol=0.02)
    firsts = [torch.multinomial(weights[0], 3).tolist() for _ in range(2000)]
    assert all(sorted(first) == [0, 1, 3] for first in firsts)
    np.testing.assert_allclose(np.bincount([f[0] for f in firsts]) / 2000, [0.25, 0.5, 0, 0.25], atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("rows", [1, 4])
def test_few_indices_are_the_first_of_many(dtype, rows):
    """All indices in the order of exponential numbers divided by their weights; the first of them need no full sort."""
    weights = torch.rand(rows, 400, generator=torch.Generator().manual_seed(2)).to(dtype) + 0.01
    few, all_ = (torch.multinomial(weights, n, generator=torch.Generator().manual_seed(3)) for n in (20, 400))
    assert torch.equal(few, all_[:, :20]) and (all_.sort(1).values == torch.arange(400)).all()


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("replacement", [True, False])
def test_what_are_no_weights_draws_nothing(bad, replacement):
    for rows in (1, 3, 700):
        weights = torch.ones(rows, 300)
        weights[-1, 5] = bad
        g, h = (torch.Generator().manual_seed(5) for _ in range(2))
        text = "contains either `inf`, `nan` or element < 0"
        if replacement:
            text = "encountering probability entry " + ("= infinity or NaN" if bad == np.inf else "< 0")
        with pytest.raises(RuntimeError, match=text):
            torch.multinomial(weights, 2, replacement, generator=g)
        with pytest.raises(RuntimeError, match="contains either `inf`, `nan` or element < 0"):
            torch.multinomial(weights, 1, replacement, generator=g)
        weights[-1] = 0
        with pytest.raises(RuntimeError, match=r"invalid multinomial distribution \(sum of probabilities <= 0\)"):
            torch.multinomial(weights, 2, replacement, generator=g)
        assert torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=h))


@pytest.mark.parametrize("rows", [1, 3, 700])
def test_more_indices_than_weights_draw_nothing(rows):
    """PyTorch goes on with indices whose weight is 0."""
    weights = torch.ones(rows, 300)
    weights[-1, 2:] = 0
    g, h = (torch.Generator().manual_seed(5) for _ in range(2))
    for given in (weights, weights[-1]):
        with pytest.raises(RuntimeError, match="not enough non-negative category to sample"):
            torch.multinomial(given, 3, generator=g)
    assert torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=h))
    assert sorted(torch.multinomial(weights[-1], 2).tolist()) == [0, 1]
    assert torch.multinomial(weights, 3, replacement=True)[-1].max() < 2
    with pytest.raises(RuntimeError, match="not enough non-negative category to sample"):
        list(torch.utils.data.WeightedRandomSampler(weights[-1], 3, replacement=False))


# --- In place ----------------------------------------------------------------------------------

IN_PLACE = {
    "uniform_": "UniformBackward0",
    "normal_": "NormalBackward0",
    "exponential_": "ExponentialBackward0",
    "random_": "RandomBackward2",
    "bernoulli_": "BernoulliBackward2",
    "cauchy_": "CauchyBackward0",
    "log_normal_": "LogNormalBackward0",
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_overwriting_cuts_the_gradient(name):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    assert getattr(y, name)() is y
    assert y._version == 1 and y.grad_fn.name() == IN_PLACE[name]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", IN_PLACE)
def test_overwriting_is_refused_where_it_would_be_wrong(name):
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used") as caught:
        getattr(leaf, name)()
    assert f"changed by {name} at {__file__}" in str(caught.value)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        getattr(torch.ones(1).expand(3), name)()
    assert leaf.tolist() == [1, 1, 1] and leaf._version == 0
    with torch.no_grad():
        getattr(leaf, name)()
    assert leaf._version == 1


def test_what_is_refused_draws_nothing():
    before = torch.get_rng_state()
    leaf, x = torch.ones(3, requires_grad=True), torch.ones(3)
    calls = [getattr(leaf, name) for name in IN_PLACE]
    calls += [lambda: x.uniform_(3, 1), lambda: x.normal_(0, -1), lambda: x.exponential_(-1), lambda: x.bernoulli_(2)]
    calls += [lambda: x.random_(5, 2), lambda: x.cauchy_(0, 0), lambda: x.log_normal_(0, 0), lambda: x.geometric_(1)]
    calls += [lambda: torch.normal(0.0, -1.0, (2,)), lambda: torch.normal(x, -x), lambda: x.long().normal_()]
    calls += [lambda: x.bernoulli_(x + 1), lambda: torch.randint(5, 2, (3,)), lambda: torch.bernoulli(x + 1)]
    for call in calls:
        with pytest.raises((RuntimeError, NotImplementedError)):
            call()
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("bounds", [(None,), (None, 3)])
def test_random_needs_a_lower_end_that_is_a_number(bounds):
    x = torch.ones(2)
    with pytest.raises(TypeError, match=r"random_\(\) received an invalid combination of arguments - got \(NoneType"):
        x.random_(*bounds)
    assert x.tolist() == [1, 1] and x.random_(0, None).max() > 1


def test_overwriting_a_view_changes_its_base():
    base = torch.zeros(2, 3)
    base[:, 1].uniform_(1, 2)
    assert (base[:, 1] >= 1).all() and base[:, ::2].sum() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_probabilities_lie_between_0_and_1(dtype):
    """NaN is out of range; an empty tensor is valid."""
    for wrong in (-0.01, 1.01, float("nan"), float("inf")):
        for values in ([wrong], [0.0, wrong, 1.0], [[1.0], [wrong]]):
            with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1 to be true"):
                torch.bernoulli(torch.tensor(values, dtype=dtype))
    assert torch.bernoulli(torch.tensor([[0.0, 1.0]], dtype=dtype).T).tolist() == [[0.0], [1.0]]
    assert torch.bernoulli(torch.zeros(0, 2, dtype=dtype)).shape == (0, 2)


def test_probabilities_get_zero_gradients():
    p = torch.full((3,), 0.5, requires_grad=True)
    torch.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0, 0, 0]
    mean, std = torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True)
    torch.normal(mean, std).sum().backward()
    assert mean.grad.tolist() == std.grad.tolist() == [0, 0]
    torch.poisson(p).sum().backward()
    y = (p * 1).geometric_(0.5)
    assert y.grad_fn.name() == "GeometricBackward0"
    y.sum().backward()
    assert p.grad.tolist() == [0, 0, 0]
    with fails(RuntimeError, "derivative for aten::binomial is not implemented"):
        torch.binomial(p, p).sum().backward()


# --- Threads -----------------------------------------------------------------------------------


def test_threads_draw_from_one_stream_without_repeating_it():
    torch.manual_seed(0)
    results = [[] for _ in range(4)]

    def work(numbers):
        for _ in range(50):
            numbers.append(torch.rand(40, dtype=torch.float64).numpy())

    threads = [threading.Thread(target=work, args=(numbers,)) for numbers in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = np.sort(np.concatenate([np.concatenate(numbers) for numbers in results]))
    torch.manual_seed(0)
    alone = np.sort(torch.rand(4 * 50 * 40, dtype=torch.float64).numpy())
    np.testing.assert_array_equal(together, alone)


def test_a_thread_draws_from_a_stream_of_its_own():
    def draw(seed):
        with torch.random.drawing_from(torch.Generator().manual_seed(seed)):
            return torch.rand(5).tolist(), torch.randperm(9).tolist(), torch.initial_seed()

    before = torch.get_rng_state()
    drawn = in_threads([lambda seed=seed: [draw(seed) for _ in range(50)] for seed in (1, 2, 3)])
    assert [set(map(str, rounds)) for rounds in drawn] == [{str(draw(seed))} for seed in (1, 2, 3)]
    assert torch.equal(torch.get_rng_state(), before)


def test_streams_of_a_thread_nest():
    outer, inner = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    with torch.random.drawing_from(outer):
        a = torch.rand(2)
        with pytest.raises(ZeroDivisionError), torch.random.drawing_from(inner):
            torch.manual_seed(4)
            1 / 0  # noqa: B018  raises ZeroDivisionError
        b = torch.rand(2)
    assert torch.equal(torch.cat([a, b]), torch.rand(4, generator=torch.Generator().manual_seed(1)))
    assert inner.initial_seed() == 4 and outer.initial_seed() == 1


@pytest.mark.parametrize("dtype", "bool uint8 int8 int16 int32 float16 bfloat16 float32 float64".split())
def test_integers_of_every_type_are_those_of_int64(dtype):
    kind = getattr(torch, dtype)
    for count in (1, 70, 8192):
        g, h = (torch.Generator().manual_seed(6) for _ in range(2))
        for low, high in ((0, 2), (0, 1)) if dtype == "bool" else ((0, 7), (3, 100)):
            expected = torch.zeros(count, dtype=torch.int64).random_(low, high, generator=g).to(kind)
            assert torch.equal(torch.zeros(count, dtype=kind).random_(low, high, generator=h), expected)
            expected = torch.randint(low, high, (count,), generator=g).to(kind)
            assert torch.equal(torch.randint(low, high, (count,), dtype=kind, generator=h), expected)
        assert torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=h))


@pytest.mark.parametrize("count", [5, 100, 20_001])
def test_uniform_numbers_are_stretched_below_the_end(count):
    for low, high in ((-1, 1), (3, 3), (1, 1 + 2**-23)):
        whole = torch.rand(count, generator=torch.Generator().manual_seed(1)).numpy()
        drawn = torch.zeros(count).uniform_(low, high, generator=torch.Generator().manual_seed(1)).numpy()
        expected = whole * np.float32(high - low) + np.float32(low)
        np.testing.assert_allclose(drawn, np.where(expected < high, expected, low), 1e-6, 1e-6)
        assert low == high or (drawn < high).all()


def test_numbers_do_not_depend_on_the_number_of_threads():
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            g, x = torch.Generator().manual_seed(4), torch.zeros(100_003)
            calls = x.normal_, x.exponential_, x.uniform_, x.bernoulli_
            found.append([call(generator=g).tolist() for call in calls])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("span", [1, 5, 1000, 1024, 1025, 3 * 2**30, 2**32 - 1])
def test_integers_are_spread_over_their_span_in_every_type(span):
    made = torch.randint(7, 7 + span, (N,), generator=torch.Generator().manual_seed(2)).numpy() - 7
    assert 0 <= made.min() and made.max() < span
    assert abs(made.mean() / span - 0.5 + 0.5 / span) < 0.02
    assert len(np.unique(made)) == span if span < 6 else len(np.unique(made)) > min(span, N) * 0.6
    for t in (torch.zeros(N, dtype=torch.float64), torch.zeros(N, 2, dtype=torch.int64)[:, 0]):
        drawn = t.random_(7, 7 + span).numpy() - 7
        assert 0 <= drawn.min() and drawn.max() < span and abs(drawn.mean() / span - 0.5 + 0.5 / span) < 0.02


def test_tensors_that_are_not_dense_are_filled_in_the_order_of_their_memory():
    for dtype in (torch.float32, torch.float64, torch.float16):
        for draw in ("normal_", "uniform_", "exponential_", "bernoulli_"):
            dense = getattr(torch.zeros(5, 3, dtype=dtype), draw)(generator=torch.Generator().manual_seed(3))
            whole = torch.zeros(5, 6, dtype=dtype)
            part = whole[:, ::2].t()
            getattr(part, draw)(generator=torch.Generator().manual_seed(3))
            assert torch.equal(part.t(), dense) and not whole[:, 1::2].any()


@pytest.mark.parametrize("columns", [3, 70, 9000])
def test_integers_in_parts_of_tensors(columns):
    whole = torch.full((columns, 4), -1)
    for part in (whole.t(), whole[::2], whole[:, 1::2]):
        whole.fill_(-1)
        part.random_(5)
        assert (part >= 0).all() and (part < 5).all() and (whole < 0).sum() == whole.numel() - part.numel()


def test_permutations_of_many():
    for n in (128, 129, 300, 70_000):
        found = torch.randperm(n)
        assert found.dtype is torch.int64 and found.sort()[0].equal(torch.arange(n))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_do_not_depend_on_how_many_follow(dtype):
    """Loops over the last few elements round as those over whole vectors."""
    whole = torch.empty(256, dtype=dtype).uniform_(-0.577, 0.577, generator=torch.Generator().manual_seed(1))
    for n in (1, 3, 15, 31, 60, 100, 255):
        part = torch.empty(n, dtype=dtype).uniform_(-0.577, 0.577, generator=torch.Generator().manual_seed(1))
        assert torch.equal(part, whole[:n])


@pytest.mark.parametrize(("dtype", "first"), [
    (torch.int8, -128), (torch.uint8, 5), (torch.int64, -(2**63)), (torch.int64, 2**62), (torch.float32, -3),
])  # fmt: skip
def test_random_integers_from_a_number_on(dtype, first):
    """`random_(n)` ends at n, and `random_(n, None)` begins there."""
    torch.manual_seed(0)
    drawn = torch.empty(200, dtype=dtype).random_(first, None)
    assert (drawn >= first).all() and len(set(drawn.tolist())) > 100
    with fails(RuntimeError, "random_ expects 'from' to be less than 'to', but got from=0 >= to=-3"):
        torch.empty(2, dtype=dtype).random_(-3)


def test_the_bits_of_all_int64():
    """PyTorch's own numbers for this seed."""
    torch.manual_seed(0)
    drawn = torch.empty(3, dtype=torch.int64).random_(-(2**63), None)
    assert drawn.tolist() == [-8322921849960486353, -5253828890213626688, -7327722439656189189]
