"""Every public function and method with sparse tensors: a right result, or an error in PyTorch's words."""

import inspect
import types

import pytest

import cygrad as torch

SPACES = {
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
}
SPACES |= {"torch.special": torch.special}
KINDS = ["coo", *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in ("csr", "hybrid"))]
# What takes no tensors, changes settings, or waits.
LEFT_OUT = ("breakpoint", "import_ir_module", "hub", "set_", "use_", "compile", "save", "load", "manual_seed", "seed")


def made():
    s = torch.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, 1.0], (2, 3))
    return {"coo": s, "csr": s.to_sparse_csr(), "hybrid": torch.eye(3).to_sparse(1)}


def functions():
    for space, module in SPACES.items():
        for name in dir(module):
            function = getattr(module, name, None)
            public = not name.startswith("_") and not name.startswith(LEFT_OUT)
            if (
                public
                and callable(function)
                and not inspect.isclass(function)
                and not isinstance(function, types.ModuleType)
            ):
                yield f"{space}.{name}", function


ALLOWED = (
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    ImportError,
    AssertionError,
)


def agrees(found, expected):
    """Whether a result is that of dense tensors, as far as both are tensors of numbers."""
    if not isinstance(found, torch.Tensor) or not isinstance(expected, torch.Tensor) or found.shape != expected.shape:
        return True
    return torch.allclose(found.to_dense().double(), expected.to_dense().double(), equal_nan=True)


# Functions that look only at elements that are stored, or whose results are random or not set.
OF_STORED_ELEMENTS = (
    *("empty", "fill_", "full_like", "ones_like", "rand", "normal", "new", "sgn", "uniform", "bernoulli", "gumbel"),
    *("dropout", "pow", "detach", "_as_gradient"),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_functions(kind):
    for name, function in functions():
        for more in ((), (made()[kind],), (torch.ones(3, 2),), (2,), (0, 1)):
            s, d = made()[kind], made()[kind].to_dense()
            same = [each.to_dense().clone() if isinstance(each, torch.Tensor) else each for each in more]
            try:
                found = function(s, *more)
            except ALLOWED:
                continue
            if name.rpartition(".")[2].startswith(OF_STORED_ELEMENTS):
                continue
            try:
                expected = function(d, *same)
            except ALLOWED:
                continue
            assert agrees(found, expected), (name, more)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_methods(kind):
    for name in dir(torch.Tensor):
        if name in ("__class__", "__init_subclass__", "__new__", "__init__", "register_hook", "__setstate__"):
            continue
        for more in ((), (made()[kind],), (torch.ones(3, 2),), (2,), (0, 1)):
            s, d = made()[kind], made()[kind].to_dense()
            same = [each.to_dense().clone() if isinstance(each, torch.Tensor) else each for each in more]
            try:
                method = getattr(s, name)
            except ALLOWED:
                continue
            if not callable(method):
                continue
            try:
                found = method(*more)
            except (*ALLOWED, StopIteration):
                continue
            if name.startswith(OF_STORED_ELEMENTS):
                continue
            try:
                expected = getattr(d, name)(*same)
            except ALLOWED:
                continue
            assert agrees(found, expected), (name, more)


@pytest.mark.filterwarnings("ignore")
def test_dense_methods_with_a_sparse_operand():
    for name in dir(torch.Tensor):
        if name in ("__class__", "__init_subclass__", "__new__", "__init__", "register_hook", "__setstate__"):
            continue
        for kind in ("coo", "csr"):
            d, s = torch.arange(6.0).reshape(2, 3), made()[kind]
            if not callable(getattr(torch.Tensor, name)):
                continue
            try:
                found = getattr(d.clone(), name)(s)
            except ALLOWED:
                continue
            try:
                expected = getattr(d.clone(), name)(s.to_dense())
            except ALLOWED:
                continue
            assert agrees(found, expected), name


def test_the_error_names_the_function():
    s = made()["coo"]
    for call, name in (
        (lambda: s.cos(), "cos"),
        (lambda: torch.exp(s), "exp"),
        (lambda: s.max(), "max"),
        (lambda: torch.nn.functional.gelu(s), "gelu"),
        (lambda: torch.ones(2, 3).maximum(s), "maximum"),
    ):
        with pytest.raises(
            NotImplementedError, match=rf"^Could not run 'aten::{name}' with arguments from the 'SparseCPU'"
        ):
            call()
