"""Results of an expression in a library (value, error, warnings) in a comparable form."""

import re
import warnings

import numpy as np
import pytest

import cygrad
from helpers import class_of, first_line

torch = pytest.importorskip("torch")


def lines(table):
    """The expressions of a table, one per line; empty lines and comments are skipped."""
    return [line for line in map(str.strip, table.splitlines()) if line and line[0] != "#"]


def described(value, given):
    """Describe tensors by their visible properties, other objects by type and text.

    With `given` (tensors by name), also describe shared memory.
    """
    if isinstance(value, (cygrad.Tensor, torch.Tensor)):
        return seen(value) if given is None else seen(value) | sharing(value, given)
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.tolist()
    if type(value) in (list, tuple):
        return [described(item, given) for item in value]
    return re.sub(r"cygrad|torch\._C", "torch", re.sub(r"0x[0-9a-f]+", "0x", repr(value)))


def seen(tensor):
    """The visible properties of a tensor."""
    try:
        node = tensor.grad_fn
    except RuntimeError as error:
        node = first_line(error)
    array = tensor.detach()
    if isinstance(array, torch.Tensor):
        array = array.resolve_conj().resolve_neg()
    array = array.numpy()
    return {
        "dtype": str(tensor.dtype),
        "shape": tuple(tensor.shape),
        "strides": tuple(tensor.stride()) if tensor.numel() else None,
        "requires_grad": tensor.requires_grad,
        "node": node if node is None or isinstance(node, str) else node.name(),
        "values": np.where(np.isnan(array), 777, array).tolist() if array.dtype.kind in "fc" else array.tolist(),
    }


def sharing(tensor, given):
    """The given tensor that this is or is a view of, with offset and version."""
    return {
        "is": name_of(tensor, given),
        "base": name_of(tensor._base, given),
        "offset": tensor.storage_offset() if tensor._is_view() and tensor.numel() else None,
        "version": tensor._version,
    }


def name_of(tensor, given):
    """The name of a tensor: '?' if unnamed, None for None."""
    return next((name for name, other in given.items() if other is tensor), None if tensor is None else "?")


def answer(library, expression, names, shared):
    """Return (outcome, warnings) of an expression where `torch` is the library, and its named tensors afterwards."""
    given = {"torch": library, "np": np, **names(library)}
    # Otherwise PyTorch issues some warnings once per process, so that results depend on the order of the tests.
    torch.set_warn_always("warn_always" not in expression)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = eval(expression, given)
            tensors = {k: v for k, v in given.items() if type(v) is library.Tensor}
            outcome = described(value, tensors if shared else None)
        except Exception as error:
            outcome = class_of(error), first_line(error)
    texts = [(w.category.__name__, str(w.message).partition(" (Triggered")[0][:60]) for w in caught]
    return outcome, texts, given


def check(expression, names, shared=False):
    """Check that the expression gives the same on cygrad and on PyTorch, and that an error has changed nothing.

    With `shared`, tensors must also share the same memory with the same others.
    """
    found, found_warnings, given = answer(cygrad, expression, names, shared)
    expected, expected_warnings, _ = answer(torch, expression, names, shared)
    assert same(found, expected), f"{expression}: {found}, PyTorch gives {expected}"
    assert found_warnings == expected_warnings, expression
    if isinstance(expected, tuple):
        for name, before in names(cygrad).items():
            if isinstance(before, cygrad.Tensor):
                assert same(seen(given[name]), seen(before)), f"{expression} changed {name}"
                assert given[name]._version == before._version, f"{expression} changed {name}"


def same(a, b):
    """Whether values are equal, floats up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return bool(np.isclose(a, b, rtol=1e-5, atol=1e-7))
    return type(a) is type(b) and a == b
