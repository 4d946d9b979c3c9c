"""The same seed gives the numbers of PyTorch: all functions, dtypes, sizes and memory layouts, and the states."""

import io
import itertools
import pickle

import numpy as np
import pytest
from draw_cases import CASES, evaluate

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

FLOATS = "float32", "float64", "float16", "bfloat16"
WHOLE = "int64", "int32", "int16", "int8", "uint8"
SIZES = [*range(1, 41), 100, 1000]
LAYOUTS = {
    "dense": lambda lib, dtype, n: lib.zeros(n, dtype=dtype),
    "transposed": lambda lib, dtype, n: lib.zeros(3, n, dtype=dtype).t(),
    "with gaps": lambda lib, dtype, n: lib.zeros(n, 4, dtype=dtype)[:, ::2],
    "channels last": lambda lib, dtype, n: lib.zeros(n, 2, 3, 2, dtype=dtype).contiguous(
        memory_format=lib.channels_last
    ),
}
IN_PLACE = [
    ("uniform_", ()),
    ("uniform_", (-0.3, 0.7)),
    ("normal_", ()),
    ("normal_", (1.0, 0.3)),
    ("exponential_", (2.0,)),
    ("bernoulli_", (0.3,)),
    ("cauchy_", ()),
    ("log_normal_", ()),
    ("geometric_", (0.2,)),
    ("random_", ()),
    ("random_", (3, 100)),
]


def numbers(lib, draw):
    """What `draw` gives for a seed, and the number that is drawn next."""
    lib.manual_seed(11)
    found = draw(lib).detach()
    if found.is_complex():
        found = lib.view_as_real(found)
    if found.dtype in (lib.float16, lib.bfloat16):
        found = found.double()
    return found.numpy(), lib.rand((), dtype=lib.float64).item()


def agree(draw, ulps=0, what=""):
    """Compare: to the last bit, or to as many units in the last place."""
    (found, following), (expected, expected_following) = (numbers(lib, draw) for lib in (cygrad, torch))
    assert following == expected_following and found.dtype == expected.dtype, what
    if ulps:
        np.testing.assert_array_max_ulp(found, expected, ulps)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=what)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_in_place(dtype, layout):
    sizes = SIZES if layout == "dense" else [1, 2, 5, 8, 9, 17]
    for n, (name, arguments) in itertools.product(sizes, IN_PLACE):
        ulps = 2 if name in ("normal_", "log_normal_") and dtype in ("float32", "float64") else 0
        draw = lambda lib: getattr(LAYOUTS[layout](lib, getattr(lib, dtype), n), name)(*arguments)  # noqa: E731
        agree(draw, ulps, f"{name}{arguments} of {n}")


@pytest.mark.parametrize("dtype", [*WHOLE, "bool"])
def test_whole_numbers_in_place(dtype):
    for n in (1, 2, 9, 40, 1000):
        for bounds in ((), (1,)) if dtype == "bool" else ((), (5,), (3, 100)):
            agree(lambda lib: lib.zeros(n, dtype=getattr(lib, dtype)).random_(*bounds))
        agree(lambda lib: lib.zeros(n, dtype=getattr(lib, dtype)).bernoulli_(0.4))
        if dtype != "bool":
            agree(lambda lib: lib.zeros(n, dtype=getattr(lib, dtype)).geometric_(0.4))
            agree(lambda lib: lib.randperm(min(n, 100), dtype=getattr(lib, dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_like_and_with_parameters(dtype, layout):
    def like(lib, n):
        return LAYOUTS[layout](lib, getattr(lib, dtype), n)

    def chances(lib, x):
        return (lib.arange(x.numel(), dtype=lib.float64) / x.numel()).reshape(x.shape)

    for n in (1, 2, 5, 16, 17, 40):
        agree(lambda lib: lib.rand_like(like(lib, n)))
        agree(lambda lib: lib.randn_like(like(lib, n)), 0 if "16" in dtype else 2)
        agree(lambda lib: lib.randint_like(like(lib, n), 3, 50))
        agree(lambda lib: lib.poisson(like(lib, n) + 7))
        agree(lambda lib: lib.bernoulli(like(lib, n) + 0.25))
        agree(lambda lib: like(lib, n).bernoulli_(chances(lib, like(lib, n))))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype):
    for n in SIZES:
        agree(lambda lib: lib.rand(n, dtype=getattr(lib, dtype)))
        agree(lambda lib: lib.randn(n, dtype=getattr(lib, dtype)), 2)
        agree(lambda lib: lib.zeros(3, n, dtype=getattr(lib, dtype)).t().normal_(), 2)


@pytest.mark.parametrize("high", [10, 2**28 - 1, 2**28, 2**31, 2**32 + 5, 2**62])
def test_integers_of_any_span(high):
    for n, low in itertools.product(SIZES, (0, -3)):
        agree(lambda lib: lib.randint(low, high, (n,)))
    if high < 2**53:
        agree(lambda lib: lib.randint(high, (9,), dtype=lib.float64))


def test_permutations():
    for n in (*range(42), 100, 1000, 70_001):
        agree(lambda lib: lib.randperm(n))


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_numbers_of_tensors(dtype):
    ulps = 0 if "16" in dtype else 2
    for n in (1, 5, 15, 16, 17, 40):
        values = lambda lib: lib.arange(n).to(getattr(lib, dtype)) / 4  # noqa: E731
        agree(lambda lib: lib.normal(values(lib), 0.4), ulps)
        agree(lambda lib: lib.normal(0.3, values(lib)), ulps)
        agree(lambda lib: lib.normal(values(lib), values(lib)), ulps)
        agree(lambda lib: lib.normal(1.3, 0.4, (n,), dtype=getattr(lib, dtype)), ulps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_indices_by_weight(dtype):
    def weights(lib, *shape):
        return (lib.arange(int(np.prod(shape))) + 1).to(getattr(lib, dtype)).reshape(shape)

    for n in (1, 2, 7, 40, 300):
        for count in (1, 3, 50):
            agree(lambda lib: lib.multinomial(weights(lib, n), count, replacement=True))
            agree(lambda lib: lib.multinomial(weights(lib, n), min(count, n)))
            agree(lambda lib: lib.multinomial(weights(lib, 4, n), min(count, n)))
            agree(lambda lib: lib.multinomial(weights(lib, n, 4).t(), min(count, n)))
            agree(lambda lib: lib.multinomial(weights(lib, n, 4).t(), count, replacement=True))
    agree(lambda lib: lib.binomial(weights(lib, 60), weights(lib, 60) / 61))
    agree(lambda lib: lib.binomial(weights(lib, 60) * 9, weights(lib, 60) / 61))
    agree(lambda lib: lib.poisson(weights(lib, 200) / 2))


DROPOUTS = "dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d rrelu".split()


@pytest.mark.filterwarnings("ignore:dropout")
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "dense"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout(dtype, layout):
    def dropped(lib, name, n):
        x = LAYOUTS[layout](lib, getattr(lib, dtype), n)
        x += (lib.arange(x.numel(), dtype=lib.float64) / 8 - 2).reshape(x.shape).to(x.dtype)
        options = {} if name == "rrelu" else {"p": 0.3}
        return getattr(lib.nn.functional, name)(x, training=True, **options)

    for name, n in itertools.product(DROPOUTS, (1, 2, 5, 17)):
        missing = (name, dtype) == ("rrelu", "float16") or (name, layout) == ("dropout1d", "channels last")
        if not missing:  # in PyTorch
            agree(lambda lib: dropped(lib, name, n))


@pytest.mark.parametrize("expression", CASES)
def test_recorded_cases(expression):
    (found, following), (expected, expected_following) = (evaluate(lib, expression) for lib in (cygrad, torch))
    assert following == expected_following
    np.testing.assert_allclose(found, expected, 3e-7, 1e-7)


def test_states_are_exchanged():
    for count in (0, 1, 2, 623, 624, 700):
        for lib, other in ((cygrad, torch), (torch, cygrad)):
            g = lib.Generator().manual_seed(2**40 + 5)
            lib.rand(count, generator=g)
            lib.randn(1, generator=g)
            h = other.Generator().set_state(other.tensor(g.get_state().tolist(), dtype=other.uint8))
            assert h.initial_seed() == 2**40 + 5
            assert lib.randn(9, generator=g).tolist() == other.randn(9, generator=h).tolist()
            assert g.get_state().tolist() == h.get_state().tolist()


def test_saved_generators_and_states_are_read():
    file = io.BytesIO()
    torch.manual_seed(5)
    torch.save({"rng": torch.get_rng_state()}, file)
    file.seek(0)
    cygrad.set_rng_state(cygrad.load(file)["rng"])
    assert cygrad.rand(5).tolist() == torch.rand(5).tolist()


@pytest.mark.parametrize("seed", [-1, 0, 2**31, 2**32, -(2**63), 2**63, 2**64 - 1, 2**64, True, 1.5, "3", None])
def test_seeds(seed):
    def seeded(lib, call):
        try:
            return call(lib).initial_seed()
        except Exception as error:
            return type(error), str(error).splitlines()[0]

    for call in (lambda lib: lib.Generator().manual_seed(seed), lambda lib: lib.manual_seed(seed)):
        assert seeded(cygrad, call) == seeded(torch, call)


def test_parts_of_generators():
    reduced = [lib.Generator().manual_seed(5).__reduce__() for lib in (cygrad, torch)]
    assert [len(parts) for parts in reduced] == [3, 3]
    assert reduced[0][2][:2] == reduced[1][2][:2] and reduced[0][2][2].tolist() == reduced[1][2][2].tolist()
    assert pickle.loads(pickle.dumps(cygrad.Generator().manual_seed(5))).initial_seed() == 5
