"""Samples with operands of 8 bits: what PyTorch refuses is refused here."""

import numpy as np
import pytest
from ops.calls import SAMPLES, Cygrad, replace
from oracle.ops.test_ops import SHARED, Torch

import cygrad
from helpers import first_line

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Functions that compute in 8 bits where PyTorch does not: {name: reason}.
TAKEN = {
    **dict.fromkeys(("mul", "pow", "square"), "by a number, in one pass"),
    **dict.fromkeys(("einsum", "inner", "tensordot"), "as a matrix product, which both libraries take"),
    **dict.fromkeys(
        ("matmul", "matmul.matrix_stack", "matrix_power", "matmul.plain", "linear.other_shapes"), "as one product"
    ),
    "index_reduce": "some kinds are taken there, too",
    **dict.fromkeys(("linalg_vander", "vander"), "powers are made by multiplication"),
    **dict.fromkeys(("bernoulli", "embedding_bag", "index_put"), "elements move"),
    **dict.fromkeys(("aminmax", "isin"), "elements are compared"),
}


def outcome(name, sample, on):
    """The error of a sample whose floats have 8 bits, or None."""
    library = on.library

    def small(array):
        made = on.tensor(np.array(array))
        return made.to(library.float8_e4m3fn) if array.dtype.kind == "f" else made

    try:
        on.function(name)(
            *replace(list(sample.args), small), **{k: replace(v, small) for k, v in sample.kwargs.items()}
        )
    except Exception as error:
        return error
    return None


def sizes(sample):
    """The numbers of elements of all floats."""
    values = [*sample.args, *sample.kwargs.values()]
    return [value.size for value in values if isinstance(value, np.ndarray) and value.dtype.kind == "f"]


@pytest.mark.parametrize("name", [name for name in SHARED if name not in TAKEN])
def test_refused(name):
    for sample in SAMPLES[name]:
        if sizes(sample) and all(sizes(sample)):
            expected = outcome(name, sample, Torch)
            found = outcome(name, sample, Cygrad)
            if expected is not None:
                assert found is not None, f"{sample}: {first_line(expected)}"


@pytest.mark.parametrize(
    "expression",
    [
        "x.gather(1, i)", "x.scatter(1, i, x)", "x.masked_fill(x == x, 1.0)", "x.take(i)", "x.mode()", "x[0].dot(x[0])",
        "x.mv(x[0])", "x.unsqueeze(0).bmm(x.unsqueeze(0))", "torch.nn.functional.max_pool2d(x[None], 2)", "x.unique()",
        "torch.searchsorted(x[0], x[0])", "torch.nn.functional.mse_loss(x, x, reduction='none')", "x.logsumexp(0)",
    ],
)  # fmt: skip
def test_errors(expression):
    def error_of(library):
        x = library.tensor([[1.0, 2.0], [3.0, 4.0]]).to(library.float8_e5m2)
        with pytest.raises(NotImplementedError) as caught:
            eval(expression, {"torch": library, "x": x, "i": library.tensor([[0, 1], [1, 0]])})
        return first_line(caught.value)

    assert error_of(cygrad) == error_of(torch)
