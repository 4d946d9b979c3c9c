"""Every sample of every op against PyTorch: values, gradients, second gradients, dtypes, shapes, node names; and every
sample of invalid input: type and first line of the error.
"""

import contextlib

import numpy as np
import pytest
from ops.calls import DIFFERENTIABLE, ERRORS, SAMPLES, Call, Cygrad, is_internal, public_function

import cygrad
from helpers import first_line

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),  # cygrad makes no copy
    pytest.mark.filterwarnings("ignore:index_reduce\\(\\) is in beta"),
    pytest.mark.filterwarnings(r"ignore:(torch|at)\W+\w+ is deprecated"),
]
torch = pytest.importorskip("torch")


class Torch:
    """Runs samples on PyTorch."""

    library = torch
    tensor = staticmethod(torch.from_numpy)

    @staticmethod
    def array(tensor):
        if tensor.is_floating_point():
            tensor = tensor + 0  # PyTorch's lazy zeros have no memory
        return tensor.detach().resolve_conj().resolve_neg().numpy()

    @staticmethod
    def function(name):
        return None if is_internal(name) else public_function(torch, name)


# PyTorch's own exception types and ours
OWN_ERRORS = {torch.linalg.LinAlgError: cygrad.linalg.LinAlgError}

SHARED = [name for name in SAMPLES if Torch.function(name)]

# Single ops in PyTorch that cygrad composes of two, or vice versa: {name: reason}.
OTHER_NODES = {
    **dict.fromkeys(
        ("linalg_tensorinv", "linalg_lu_solve", "lu_solve", "ormqr", "linalg_cond"),
        "made of other ops here, and of others in PyTorch",
    ),
    **dict.fromkeys(
        ("cumulative_trapezoid", "trapezoid", "trapz"),
        "PyTorch multiplies or divides by a number in C++, where that node has another name",
    ),
    "diff": "PyTorch copies the input into zeros",
    **dict.fromkeys(
        (
            "gaussian_nll_loss",
            "hinge_embedding_loss",
            "instance_norm",
            "l1_loss",
            "margin_ranking_loss",
            "poisson_nll_loss",
            "smooth_l1_loss.l1",
            "softsign",
            "tanhshrink",
        ),
        "one node here, of PyTorch's name, which saves the inputs alone",
    ),
    **dict.fromkeys(
        (
            "aminmax",
            "corrcoef",
            "cov",
            "nanquantile",
            "quantile",
            "std_mean",
            "var_mean",
            "einsum",
            "kron",
            "matrix_power",
            "chain_matmul",
            "vdot",
        ),
        "PyTorch makes them of other ops, or has one of their own",
    ),
    "istft": "PyTorch adds a dimension, and takes it away again",
    "mvlgamma": "PyTorch has a node of its own for the sum",
    "stft": "PyTorch transposes in place",
    "dist": "PyTorch has a node of its own for the norm of a difference",
    "vander": "PyTorch multiplies in place",
    **dict.fromkeys(("xlog1py", "xlogy", "zeta"), "PyTorch has two more nodes for an operand that is a number"),
    "ndtr": "PyTorch multiplies by a number in C++, where that node has another name",
    "linear_cross_entropy": "PyTorch divides by a number in C++, where that node has another name",
    "cross_entropy.soft": "PyTorch divides by a number in C++, where that node has another name",
    "linear.other_shapes": "PyTorch reshapes, multiplies matrices and takes a view of the result",
    "matmul": "PyTorch reshapes, multiplies stacks of matrices and takes a view of the result",
    "linalg_vecdot": "one node here",
    "matmul.plain": "PyTorch takes a vector for a matrix of one row and squeezes the result",
    "pad.circular": "PyTorch copies parts of the input into a new tensor",
    "scaled_dot_product_attention": "PyTorch has several ways to compute it",
    "multi_head_attention_forward": "PyTorch reshapes otherwise",
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), "PyTorch records each step, or has one op of its library"),
    "pairwise_distance": "PyTorch has a node of its own for the norm over dimensions",
    "sum_to_size": "PyTorch sums with keepdim and takes a view of the result",
}

# Only the first result is defined; the others are auxiliary values for PyTorch's gradient.
ONE_RESULT = {"embedding_bag"}

# Ops that PyTorch can differentiate only once.
ONCE = {
    "cdist",
    "ctc_loss",
    "ctc_loss.reduced",
    "pdist",
    "embedding_bag",
    "hardsigmoid",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "segment_reduce",
}


# Ops whose results have other strides than PyTorch's: {family or name: reason}.
OTHER_STRIDES = {
    **dict.fromkeys(
        (
            "cholesky",
            "eigen",
            "ldl",
            "least_squares",
            "solve",
            "lu",
            "qr",
            "svd",
            "triangular",
        ),
        "PyTorch's lie column by column, as LAPACK made them",
    ),
    "fourier": "PyTorch's lie as its library for Fourier transforms made them",
    "einsum": "PyTorch multiplies in another order where the result is transposed",
    "matrix_power": "PyTorch's inverse lies column by column",
    "unravel_index": "PyTorch's are columns of one tensor",
}


def has_other_strides(name):
    family = Cygrad.function(name).__module__ or ""
    return name in OTHER_STRIDES or family.rpartition(".")[2] in OTHER_STRIDES


def pairs(name, **limits):
    """For each sample with these attributes, yield a call on cygrad and one on PyTorch."""
    for sample in SAMPLES[name]:
        if all(getattr(sample, key) == value for key, value in limits.items()):
            yield sample, Call(name, sample), Call(name, sample, on=Torch)


def assert_same(ours, theirs, found, expected, what, tolerance=1e-6):
    """Check equality of shapes, dtypes and values."""
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(b, torch.Tensor):
            assert type(a) is type(b) and a == b, f"{what} {i}: {a} instead of {b}"
            continue
        assert str(a.dtype) == str(b.dtype), f"{what} {i}: {a.dtype} instead of {b.dtype}"
        a, b = ours.on.array(a), theirs.on.array(b)
        assert a.shape == b.shape, f"{what} {i}: {a.shape} instead of {b.shape}"
        np.testing.assert_allclose(a, b, tolerance, tolerance, err_msg=f"{what} {i}")


@pytest.mark.parametrize("name", SHARED)
def test_values(name):
    for sample, ours, theirs in pairs(name, unique=True):
        results = slice(1) if name in ONE_RESULT else slice(None)
        assert_same(ours, theirs, ours.run()[results], theirs.run()[results], f"{sample}: result")


@pytest.mark.parametrize("name", [name for name in SHARED if not has_other_strides(name)])
def test_strides(name):
    """For row-major operands, results have PyTorch's strides."""
    for sample, ours, theirs in pairs(name):
        if all(value.flags.c_contiguous for value in sample.args if isinstance(value, np.ndarray)):
            for i, (a, b) in enumerate(zip(ours.run(), theirs.run(), strict=True)):
                if isinstance(b, torch.Tensor):
                    assert seen_strides(a) == seen_strides(b), f"{sample}: result {i} of shape {tuple(b.shape)}"


def seen_strides(tensor):
    """The strides of all dimensions with more than one element; the others are meaningless."""
    return [step for step, length in zip(tensor.stride(), tensor.shape) if length > 1] if tensor.numel() else None


@pytest.mark.parametrize("name", [name for name in SHARED if name in DIFFERENTIABLE])
def test_gradients(name):
    for sample, ours, theirs in pairs(name, oracle_grad=True, unique=True):
        outputs, expected = ours.outputs(), theirs.outputs()
        assert len(outputs) == len(expected), f"{sample}: {len(outputs)} recorded"
        if expected:
            found = ours.gradients(ours.weights(outputs), outputs)
            expected = theirs.gradients(theirs.weights(expected), expected)
            assert_same(ours, theirs, found, expected, f"{sample}: gradient")


@pytest.mark.parametrize("name", [name for name in SHARED if name in DIFFERENTIABLE and name not in ONCE])
def test_second_gradients(name):
    for sample, ours, theirs in pairs(name, oracle_grad=True, unique=True):
        found, expected = second_gradients(ours), second_gradients(theirs)
        # PyTorch's are NaN at some points with a known limit: a norm of 0, a power of 0
        known = [torch.isfinite(grad) for grad in expected]
        expected = [torch.where(mask, grad, 0) for mask, grad in zip(known, expected)]
        masks = [mask.numpy() for mask in known]
        found = [ours.on.tensor(np.where(m, ours.on.array(g), 0)) for m, g in zip(masks, found)]
        assert_same(ours, theirs, found, expected, f"{sample}: second gradient")


def second_gradients(call):
    incoming = call.weights(call.outputs(), requires_grad=True)
    return call.second_gradients(incoming, call.weights(call.leaves, seed=1)) if incoming else []


@pytest.mark.parametrize("name", [name for name in SHARED if name in DIFFERENTIABLE])
def test_nodes(name):
    for sample, ours, theirs in pairs(name, oracle_grad=True):
        found, expected = ([node(out) for out in call.outputs()] for call in (ours, theirs))
        assert found == expected or name in OTHER_NODES, sample


def node(tensor):
    """The name and the number of inputs of a node."""
    node = tensor.grad_fn
    return node if node is None else (node.name(), len(node.next_functions))


# Node attributes with PyTorch's name but a different value: {node or attribute: reason}.
OTHER_SAVED = {
    **dict.fromkeys(
        ("LinalgSvdBackward0", "LinalgEigBackward0", "LinalgEighBackward0"), "which singular vectors is not determined"
    ),
    **dict.fromkeys(("FftC2CBackward0", "FftR2CBackward0", "FftC2RBackward0"), "PyTorch numbers the normalizations"),
    **dict.fromkeys(("ConvolutionBackward0", "NllLoss2DBackward0"), "PyTorch saves the operands in another shape"),
    "RreluWithNoiseBackward0._saved_noise": "the random slopes",
    "_saved_total_weight": "PyTorch leaves it at 0 where the sum is not divided by it",
    "PreluKernelBackward0._saved_weight": "PyTorch broadcasts it first",
    "AddcdivBackward0._saved_tensor1": "here of the type of the result",
    **dict.fromkeys(("MulBackward0", "DivBackward0"), "PyTorch first converts an operand without dimensions"),
    **dict.fromkeys(
        (
            f"{name}Backward{number}._saved_dim"
            for name, number in {"Sum": 1, "Mean": 1, "Logsumexp": 0, "Amax": 0, "Amin": 0, "Norm": 1}.items()
        ),
        "None stands for all dimensions here",
    ),
    **dict.fromkeys(("VarBackward0", "StdBackward0"), "the same, and 1 for PyTorch's None as correction"),
    **dict.fromkeys(("_saved_split_size", "_saved_split_sizes", "_saved_start", "_saved_end"), "here within bounds"),
    "ViewBackward0._saved_self_sym_sizes": "of intermediate results",
}


@pytest.mark.parametrize("name", [name for name in SHARED if name in DIFFERENTIABLE and name not in OTHER_NODES])
def test_saved_attributes(name):
    """Saved values of nodes, for the attributes that PyTorch's nodes also have."""
    for sample, ours, theirs in pairs(name, oracle_grad=True):
        for a, b in zip(ours.outputs(), theirs.outputs()):
            found, expected = saved_by(a.grad_fn), saved_by(b.grad_fn)
            for key in found.keys() & expected.keys():
                if counts_from_the_end(expected[key]):
                    continue
                assert found[key] == expected[key], f"{sample}: {a.grad_fn.name()}.{key}"


def saved_by(node):
    """The `_saved_...` attributes of a node by name, in a comparable form."""
    saved = {}
    for key in dir(node):
        if key.startswith("_saved_") and not {node.name(), key, f"{node.name()}.{key}"} & OTHER_SAVED.keys():
            with contextlib.suppress(RuntimeError):  # not saved for this gradient
                saved[key] = comparable(getattr(node, key))
    return saved


def counts_from_the_end(value):
    """PyTorch keeps dimensions as given and shows negative ones as huge numbers; cygrad normalizes them."""
    return any(type(item) is int and not 0 <= item < 2**60 for item in (value if type(value) is list else [value]))


def comparable(value):
    if isinstance(value, (cygrad.Tensor, torch.Tensor)):
        array = (Torch if isinstance(value, torch.Tensor) else Cygrad).array(value.detach())
        rounded = np.round(array, 4) + 0 if array.dtype.kind in "fc" else array
        return str(array.dtype), array.shape, str(np.nan_to_num(rounded, nan=777).tolist())
    if isinstance(value, (tuple, list)):
        return [comparable(item) for item in value]
    return str(value) if isinstance(value, (cygrad.dtype, torch.dtype)) else value


class TorchMethod(Torch):
    """Runs samples on PyTorch as methods, if one with the name exists."""

    @staticmethod
    def function(name):
        method = getattr(torch.Tensor, name.partition(".")[0], None)
        return method or Torch.function(name)


def error_of(name, sample, on):
    """The error raised by a sample there, or None."""
    try:
        Call(name, sample, requires_grad=False, on=on).run()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", [name for name in ERRORS if Torch.function(name)])
def test_errors(name):
    """Here a function equals its method; PyTorch numbers arguments differently, so either message is accepted."""
    for sample in ERRORS[name]:
        expected = error_of(name, sample, Torch)
        assert expected is not None, sample
        method = error_of(name, sample, TorchMethod)
        with pytest.raises(OWN_ERRORS.get(type(expected), type(expected))) as found:
            Call(name, sample, requires_grad=False).run()
        assert first_line(found.value) in {first_line(e) for e in (expected, method) if e is not None}, sample
