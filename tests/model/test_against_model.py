"""Random programs: cygrad's gradients, second gradients and errors match the model's."""

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model import engine_model

import cygrad

EXAMPLES = 150
LEAVES = [
    [0.5, -0.3, 0.8, 0.1, -0.6, 0.4],
    [-0.2, 0.7, 0.3, -0.5, 0.9, 0.2],
    [0.6, -0.4, 0.2, 0.3, 0.1, -0.8],
]
CONSTANT = [0.3, 0.9, -0.7, 0.2, -0.1, 0.5]

OUT_OF_PLACE = ["add", "mul", "sin", "tanh", "sum", "reshape", "slice", "cat", "detach", "hook"]
IN_PLACE = ["add_", "mul_", "slice add_", "slice mul_", "no_grad mul_", "no_grad slice add_"]


def statements(ops):
    small = st.integers(0, 11)
    return st.lists(st.tuples(st.sampled_from([*ops, "no_grad mul"]), small, small, small))


class Cygrad:
    """cygrad's ops under the model's names."""

    no_grad = staticmethod(cygrad.no_grad)
    cat = staticmethod(cygrad.cat)
    tensor = staticmethod(functools.partial(cygrad.tensor, dtype=cygrad.float64))

    @staticmethod
    def grad(root, inputs, create_graph=False, retain_graph=False):
        retain_graph = retain_graph or create_graph
        return cygrad.autograd.grad(root, inputs, None, retain_graph, create_graph, True, True)


def part(x, number):
    """A slice of a vector; anything else is first reshaped to a vector."""
    flat = x if len(x.shape) == 1 else x.reshape(-1)
    length = flat.shape[0]
    start = number % length
    return flat[start : start + 1 + number % 3]


def partner(values, x, number, lib):
    """An operand that can be combined with x: same shape, or 0-dim, or a number."""
    other = values[number % len(values)]
    return other if other.shape in (x.shape, ()) else lib.tensor(0.7)


def step(lib, values, op, i, j, k):
    """Execute one statement on the list of all tensors created so far."""
    x = values[i % len(values)]
    if op.startswith("no_grad "):
        with lib.no_grad():
            return step(lib, values, op.removeprefix("no_grad "), i, j, k)
    if op in ("add_", "mul_", "slice add_", "slice mul_"):
        target = part(x, k) if op.startswith("slice") else x
        getattr(target, op[-4:])(partner(values, target, j, lib))
    elif op == "hook":
        if x.requires_grad:
            x.register_hook(lambda g: g * lib.tensor(2.0))
    elif op == "add":
        values.append(x + partner(values, x, j, lib))
    elif op == "mul":
        values.append(x * partner(values, x, j, lib))
    elif op == "reshape":
        size = int(np.prod(x.shape))
        values.append(x.reshape(*((2, size // 2) if size % 2 == 0 else (size, 1))))
    elif op == "slice":
        values.append(part(x, k))
    elif op == "cat":
        values.append(lib.cat([part(x, k), part(values[j % len(values)], k)]))
    else:
        values.append(getattr(x, op)())


def run(lib, program):
    """Return all tensors of a program, its leaves, and a 0-dim result that combines several tensors."""
    leaves = [lib.tensor(values, requires_grad=True) for values in LEAVES]
    values = [x * lib.tensor(1.0) for x in leaves] + [lib.tensor(CONSTANT)]
    for statement in program:
        step(lib, values, *statement)
    root = lib.tensor(0.0)
    for x in values[-3:]:
        root = root + x.tanh().sum()
    return values, leaves, root


def numbers(tensors):
    return [None if x is None else x.tolist() for x in tensors]


def gradients(lib, program):
    values, leaves, root = run(lib, program)
    return numbers(values), numbers(lib.grad(root, leaves))


def second_gradients(lib, program):
    _, leaves, root = run(lib, program)
    first = [g for g in lib.grad(root, leaves, create_graph=True) if g is not None]
    length = lib.tensor(0.0)
    for g in first:
        length = length + (g * g).sum()
    return numbers(first), numbers(lib.grad(length, leaves))


def gradients_of_intermediates(lib, program):
    values, leaves, root = run(lib, program)
    inputs = [x for x in [*values, *leaves[:2]] if x.requires_grad]
    return numbers(lib.grad(root, inputs))


def gradients_twice(lib, program):
    _, leaves, root = run(lib, program)
    first = lib.grad(root, leaves, retain_graph=True)
    second = lib.grad(root, leaves)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        lib.grad(root, leaves)
    return numbers(first), numbers(second)


def outcome(function, lib, program):
    """The result of a function, or its error."""
    try:
        return function(lib, program), None
    except RuntimeError as error:
        return None, str(error)


def same(found, expected):
    """Compare nested lists of numbers and Nones."""
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    elif expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def agree(function, program):
    expected, error = outcome(function, engine_model, program)
    found, found_error = outcome(function, Cygrad, program)
    if error is not None:
        assert found_error is not None and error in found_error
    else:
        assert found_error is None, found_error
        same(found, expected)


checked = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@checked
@given(statements(OUT_OF_PLACE))
def test_gradients_without_in_place(program):
    agree(gradients, program)


@checked
@given(statements([*OUT_OF_PLACE, *IN_PLACE]))
def test_gradients_with_in_place(program):
    agree(gradients, program)


@checked
@given(statements(["mul", "tanh", "sum", "slice", *IN_PLACE]))
def test_gradients_of_mostly_in_place_programs(program):
    agree(gradients, program)


@checked
@given(statements([*OUT_OF_PLACE, "slice add_", "slice mul_"]))
def test_second_gradients(program):
    agree(second_gradients, program)


@checked
@given(statements(OUT_OF_PLACE))
def test_gradients_of_intermediate_tensors(program):
    agree(gradients_of_intermediates, program)


@checked
@given(statements(OUT_OF_PLACE))
def test_running_twice_and_once_too_often(program):
    agree(gradients_twice, program)


def test_model_knows_the_errors_of_leaves():
    x = engine_model.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="^a leaf Variable"):
        x.mul_(engine_model.tensor(2.0))
    with pytest.raises(RuntimeError, match="^a view of a leaf Variable"):
        x[0:1].mul_(engine_model.tensor(2.0))


def test_model_differentiates_a_product():
    x = engine_model.tensor([1.0, 2.0], requires_grad=True)
    (first,) = engine_model.grad((x * x * x).sum(), [x], create_graph=True)
    (second,) = engine_model.grad(first.sum(), [x])
    assert first.tolist() == [3.0, 12.0]
    assert second.tolist() == [6.0, 12.0]
