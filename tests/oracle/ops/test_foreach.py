"""Functions of lists of tensors against PyTorch: names, results, dtypes, gradients and errors."""

import numpy as np
import pytest

import cygrad
from cygrad._ops.foreach.table import TABLE

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

KINDS = {
    "float32": np.array([[0.25, 0.5], [1.0, 2.0]], np.float32),
    "float64": np.array([0.3, 1.0, 0.7]),
    "int64": np.array([1, 2, 3]),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j, 0.5 - 1j], np.complex64),
    "0-dim": np.array(0.5, np.float32),
}


def test_names():
    ours = {f"_foreach_{name}" for name, row in TABLE.items() if row.has_result}
    ours |= {f"_foreach_{name}_" for name, row in TABLE.items() if row.in_place}
    assert ours == {name for name in dir(torch) if name.startswith("_foreach_")}


def arguments(library, text, array, number):
    """Arguments for a signature."""
    found = []
    for part in text.split(", "):
        kind = part.partition(" = ")[0].rpartition(" ")[0]
        if kind == "tuple of Tensors":
            leaf = library.tensor(array.copy())
            found.append([leaf.requires_grad_() if array.dtype.kind in "fc" else leaf, library.tensor(array.copy())])
        elif kind == "tuple of Scalars":
            found.append([number, 2])
        elif kind == "Tensor":
            found.append(library.tensor([number, 2.0] if part.endswith("scalars") else number))
        elif kind == "Number" and " = " not in part:
            found.append(number)
    return found


def has_derivative(name, text, in_place):
    """Whether PyTorch can differentiate this call; here each can be."""
    is_number = "Scalar" in text or "Number" in text
    return not (
        name in ("powsum", "copy")
        or (name in ("addcmul", "addcdiv") and "Tensor scalars" in text)
        or (in_place and name in ("maximum", "minimum") and is_number)
    )


def outcome(library, name, text, array, number, in_place):
    """The results, their dtypes and the gradient, or the first line of the error."""
    args = arguments(library, text, array, number)
    place = next(
        i for i, value in enumerate(args) if isinstance(value, list) and not isinstance(value[0], (int, float))
    )
    leaf = args[place][0]
    args[place] = [one.clone() for one in args[place]]
    try:
        found = getattr(library, f"_foreach_{name}{'_' * in_place}")(*args)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return str(error).split("\n")[0]
    gradient = None
    if found[0].requires_grad and has_derivative(name, text, in_place):
        gradient = library.autograd.grad(found[0].sum().abs(), leaf)[0].numpy()
    dtypes = [str(one.dtype).rpartition(".")[2] for one in found]
    return dtypes, [one.detach().numpy() for one in found], gradient


CASES = [(name, overload) for name, row in TABLE.items() for overload in row.signatures]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "overload"), CASES)
def test_same_as_pytorch(name, overload, kind, in_place):
    row = TABLE[name]
    if (name, kind) == ("addcmul", "bool"):
        pytest.skip("PyTorch has no `addcmul` for bool")
    if not (row.in_place and overload != "ScalarAndTensor" if in_place else row.has_result):
        return
    for number in (1.5, 2):
        given = name, row.signatures[overload], KINDS[kind], number, in_place
        ours, theirs = outcome(cygrad, *given), outcome(torch, *given)
        if isinstance(theirs, str):
            assert ours == theirs
            continue
        assert ours[0] == theirs[0]
        for one, other in zip((*ours[1], ours[2]), (*theirs[1], theirs[2]), strict=True):
            if other is None:
                assert one is None
            else:
                np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-7)
