"""Random tensors have PyTorch's text, character by character."""

import itertools
import math

import numpy as np
import pytest

import cygrad
from cygrad._core.tensor import tensor_str as module

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
MORE_INTEGERS = ["uint16", "uint32", "uint64"]

SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf]
TELLING = [0, 1, 1e-4, 0.99e-4, 1e3, 1001, 1e8, 1e8 + 1, 99999.5, -0.99995, 1e-12, 1e12]


@pytest.fixture(autouse=True)
def sealed():
    """Restore print options and default dtype of both libraries after each test."""
    yield
    set_options({"profile": "default"})
    torch.set_default_dtype(torch.float32)


def set_options(options):
    torch.set_printoptions(**options)
    cygrad.set_printoptions(**options)


# --- Random material ---------------------------------------------------------------------------


def some_shape(rng):
    kind = rng.integers(12)
    if kind == 0:
        return ()
    if kind == 1:  # often empty
        return tuple(rng.integers(0, 4, rng.integers(1, 5)).tolist())
    if kind <= 3:  # around the threshold
        return (int(rng.choice([1, 2, 3, 7, 13, 50, 999, 1000, 1001, 1500])),)
    if kind <= 5:
        return tuple(rng.choice([1, 2, 5, 6, 7, 8, 20, 31, 32, 33], 2).tolist())
    return tuple(rng.choice([1, 2, 3, 5, 6, 7, 8], rng.integers(2, 6)).tolist())


def some_reals(rng, count):
    values = rng.standard_normal(count)
    match rng.integers(8):
        case 0:
            values *= 10.0 ** rng.uniform(-12, 12)
        case 1:
            values = np.sign(values) * 10.0 ** rng.uniform(-12, 12, count)
        case 2:
            values = np.rint(values * 10.0 ** rng.uniform(0, 11))
        case 3:
            values = np.rint(values * 10.0 ** rng.uniform(0, 4)) / 4
        case 4:
            values = np.abs(values) * 10.0 ** rng.uniform(-3, 6)
        case 5:
            values = rng.choice([*SPECIAL, 1.0], count)
        case 6:
            values = rng.choice(TELLING, count if rng.random() < 0.5 else 1) * np.ones(count)
    for special in SPECIAL:
        if rng.random() < 0.15:
            values[rng.random(count) < rng.random()] = special
    return values


def some_array(rng, dtypes):
    shape = some_shape(rng)
    count = math.prod(shape)
    dtype = np.dtype(str(rng.choice(dtypes)))
    if dtype.kind == "b":
        values = rng.random(count) < rng.choice([0, 0.5, 1])
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        bound = 1 << int(rng.integers(1, limits.bits))
        low = max(limits.min, -bound) if rng.random() < 0.5 else 0
        values = rng.integers(low, min(limits.max, bound), count, dtype, endpoint=True)
    elif dtype.kind == "c":
        values = np.empty(count, np.complex128)
        values.real, values.imag = some_reals(rng, count), some_reals(rng, count)
    else:
        values = some_reals(rng, count)
    with np.errstate(over="ignore"):
        return values.astype(dtype).reshape(shape)


def some_options(rng):
    options = {"profile": "default"}
    if rng.random() < 0.5:
        options |= {
            "precision": int(rng.integers(0, 9)),
            "threshold": [0, 1, 5, 100, 1000, math.inf][rng.integers(6)],
            "edgeitems": int(rng.choice([0, 1, 2, 3, 4, 10])),
            "linewidth": int(rng.choice([0, 10, 20, 40, 60, 79, 81, 100, 120, 200])),
        }
    if rng.random() < 0.3:
        options["sci_mode"] = [True, False, None][rng.integers(3)]
    return options


# --- The comparisons ---------------------------------------------------------------------------


def assert_same_text(array, given, expected):
    assert given == expected, f"{array.dtype} {array.shape} under {module.get_printoptions()}"


@pytest.mark.parametrize("seed", range(20))
def test_text(seed):
    """The formatting function by itself, with every possible suffix."""
    rng = np.random.default_rng(seed)
    dtypes = [*FLOATS, *FLOATS, *COMPLEX, *INTEGERS, *MORE_INTEGERS, "bool"]
    for _ in range(250):
        set_options(some_options(rng))
        array = some_array(rng, dtypes)
        tensor = torch.from_numpy(array.copy())
        names = {"dtype_name": str(tensor.dtype)}
        if array.dtype.kind in "fc" and rng.random() < 0.4:
            tensor.requires_grad_()
            names["requires_grad"] = True
            match rng.integers(3):
                case 0:
                    tensor = torch.nn.Parameter(tensor)
                    names["is_parameter_prefix"] = True
                case 1:
                    tensor = tensor.clone()
                    names["grad_fn_name"] = "CloneBackward0"
        default = getattr(torch, FLOATS[rng.choice(3, p=[0.1, 0.7, 0.2])])
        torch.set_default_dtype(default)
        text = module.tensor_str(array, default_dtype_name=str(default), **names)
        assert_same_text(array, text, repr(tensor))


@pytest.mark.parametrize("seed", range(4))
def test_text_of_bfloat16(seed):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 of its own")
    rng = np.random.default_rng(seed)
    names = {"dtype_name": "torch.bfloat16", "default_dtype_name": "torch.float32"}
    for _ in range(100):
        set_options(some_options(rng))
        array = some_array(rng, ["float32"])
        text = module.tensor_str(array.astype(ml_dtypes.bfloat16), **names)
        assert_same_text(array, text, repr(torch.from_numpy(array).bfloat16()))


@pytest.mark.parametrize("seed", range(4))
def test_repr(seed):
    """Tensors of both libraries, through the public API."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        set_options(some_options(rng))
        array = some_array(rng, [*FLOATS, *COMPLEX, *INTEGERS, "bool"])
        ours, theirs = cygrad.from_numpy(array), torch.from_numpy(array)
        if array.dtype.kind in "fc" and rng.random() < 0.5:
            ours, theirs = ours.requires_grad_(), theirs.requires_grad_()
            if rng.random() < 0.5:
                ours, theirs = ours.clone(), theirs.clone()  # these ops preserve the sign of zeros
        assert_same_text(array, repr(ours), repr(theirs))


def test_every_linewidth():
    """Lines are wrapped, and suffixes moved to lines of their own, at the same column."""
    shapes = [(), (1,), (4,), (12,), (2, 3), (2, 2, 2), (0,), (0, 3)]
    for linewidth, shape in itertools.product(range(120), shapes):
        set_options({"linewidth": linewidth})
        leaf = torch.full(shape, 1.25, dtype=torch.float64, requires_grad=True)
        for tensor, suffix in [
            (leaf, {"requires_grad": True}),
            (leaf * 1, {"grad_fn_name": "MulBackward0"}),
            (leaf * (1 + 0j), {"grad_fn_name": "MulBackward0"}),
        ]:
            array = tensor.detach().numpy()
            names = {"dtype_name": str(tensor.dtype), "default_dtype_name": "torch.float32"}
            text = module.tensor_str(array, **names, **suffix)
            assert_same_text(array, text, repr(tensor))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # PyTorch's own
def test_tangents():
    """The text of dual tensors with tangents of one or several lines."""
    from torch.autograd import forward_ad

    names = {"dtype_name": "torch.float32", "default_dtype_name": "torch.float32"}
    shapes = [(), (2,), (2, 3), (20,)]
    for linewidth, shape in itertools.product(range(20, 120), shapes):
        set_options({"linewidth": linewidth})
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(shape), torch.full(shape, 0.5))
            tangent = format(forward_ad.unpack_dual(dual).tangent)
            array = np.ones(shape, np.float32)
            text = module.tensor_str(array, tangent=tangent, **names)
            assert_same_text(array, text, repr(dual))
