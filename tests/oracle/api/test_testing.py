"""`cygrad.testing` reports on two values exactly as PyTorch does, word for word."""

import collections

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle

NAN, INF = float("nan"), float("inf")

# actual, expected, and options, as expressions
PAIRS = """
t([1.0, 2.0]), t([1.0, 2.1])
t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 2.5], [3.0, 9.0]])
t(1.0), t(2.0)
t([1, 2]), t([1, 3])
t([1.0, 2.0]), t([1, 2])
t([1.0, 2.0]), t([1, 2]), {"check_dtype": False}
t([1.0, 1.5]).half(), t([1, 2]), {"check_dtype": False}
t([1.0, 2.0]), t([1.0, 2.0, 3.0])
t([1.0]), t([[1.0]])
t([1.0, NAN]), t([1.0, NAN])
t([NAN, 1.0]), t([NAN, 2.0]), {"equal_nan": True}
t([NAN]), t([NAN]), {"equal_nan": True}
t([1.0 + 1j]), t([1.0 + 2j])
t([True, False]), t([True, True])
t([1, 2, 3], dtype=lib.uint8), t([1, 5, 0], dtype=lib.uint8)
t([1.0], dtype=lib.float64), t([1.0])
t([1.0]), t([INF])
t([INF]), t([INF])
t([0.0]), t([1e-6])
t([1e5, 0.0]), t([1e5 + 1, 0.0])
t([1.0, 2.0]).half(), t([1.0, 2.1]).half()
t([1.0, 2.0]).bfloat16(), t([1.0, 2.1]).bfloat16()
t([]), t([])
t(0.0), t(1.0)
t([-1.0]), t([0.0])
t([1.0, 2.0]), t([1.0, 2.1]), {"rtol": 1.0}
t([1.0, 2.0]), t([1.0, 2.1]), {"atol": 1.0}
t([1.0, 2.0]), t([1.0, 2.1]), {"rtol": 0.0, "atol": 0.01}
t([1.0, 2.0]), t([1.0, 2.1]), {"rtol": 0, "atol": 0}
t([1.0, 2.0]), t([1.0, 2.1]), {"rtol": 0.0, "atol": 0.2}
t([1.0, 2.0]), t([1.0, 2.1]), {"msg": "hello"}
[t(1.0), t(2.0)], [t(1.0), t(2.1)], {"msg": lambda text: "before\\n" + text + "\\nafter"}
t([[1.0, 2.0], [3.0, 4.0]]).t(), t([[1.0, 3.0], [2.0, 4.0]]), {"check_stride": True}
t([2.0]), lib.nn.Parameter(t([2.0]))
t([2.0], requires_grad=True), t([2.0])
[t([1.0]), t([2.0])], [t([1.0]), t([3.0])]
[t([1.0])], [t([1.0, 2.0])]
{"x": [t([1.0]), 2]}, {"x": [t([1.0]), 3]}
{"a": 1, "b": t([1.0])}, {"a": 1, "b": t([2.0])}
{"a": 1}, {"b": 1}
{"a": 1, "c": 2}, {"b": 1}
{1: 2}, {1: 3}
collections.OrderedDict(a=1), {"a": 2}
[1, 2], [1, 2, 3]
[[1, 2], [3, 4]], [[1, 2], [3, 5]]
(1, 2), [1, 2]
[], []
1.0, 1.1
1, 2
1, 2, {"rtol": 0.1, "atol": 0.1}
0, 1
1, 1.0
1, 1.0, {"check_dtype": False}
1j, 1 + 1j
NAN, NAN
NAN, NAN, {"equal_nan": True}
INF, 1.0
True, False
True, True
None, None
None, 1
1, None
[None], [1]
np.array([1.0, 2.0]), np.array([1.0, 3.0])
np.float64(1.0), 2.0
np.float32(1.0), 1.0
"a", "a"
[1], {"a": 1}
set(), set()
""".strip().splitlines()


def answer(lib, pair):
    names = {"t": lib.tensor, "lib": lib, "np": np, "NAN": NAN, "INF": INF, "collections": collections}
    actual, expected, *options = eval(pair, names)
    try:
        return lib.testing.assert_close(actual, expected, **(options[0] if options else {}))
    except (AssertionError, TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_said_of_two_values(pair):
    assert answer(cygrad, pair) == answer(torch, pair)


MADE = """
dtype=lib.float32
dtype=lib.float64, low=0, high=1
dtype=lib.int64
dtype=lib.uint8, low=-5
dtype=lib.bool
dtype=lib.complex64
dtype=lib.float32, requires_grad=True, exclude_zero=True
dtype=lib.float32, noncontiguous=True
dtype=lib.int8, low=-3, high=4
dtype=lib.float32, low=2, high=1
dtype=lib.int64, low=1, high=1
dtype=lib.float32, low=float("nan")
dtype=lib.float32, low=1e39, high=1e40
dtype=lib.int32, requires_grad=True
dtype=lib.float32, memory_format=lib.channels_last
dtype=lib.float32, memory_format=lib.channels_last, noncontiguous=True
""".strip().splitlines()


@pytest.mark.parametrize("options", MADE)
def test_tensors_to_test_with(options):
    found = []
    for lib in (cygrad, torch):
        try:
            x = eval(f"lib.testing.make_tensor((2, 3, 4, 5), device='cpu', {options})", {"lib": lib})
        except ValueError as error:
            found.append(str(error))
            continue
        x, requires_grad = x.detach(), x.requires_grad
        parts = lib.view_as_real(x) if x.is_complex() else x
        limits = (parts.double().min().item(), parts.double().max().item())
        found.append((str(x.dtype), tuple(x.shape), x.stride(), requires_grad, *map(round, limits)))
    ours, theirs = found
    if isinstance(theirs, tuple):
        assert all(abs(a - b) <= 1 for a, b in zip(ours[4:], theirs[4:], strict=True))  # random, and rounded
        ours, theirs = ours[:4], theirs[:4]
    assert ours == theirs
