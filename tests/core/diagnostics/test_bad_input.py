"""Invalid input raises PyTorch's exception with its first line, and changes no tensor."""

import operator

import numpy as np
import pytest

import cygrad as torch
import cygrad.nn.functional as F
from helpers import fails

DIM_1 = "Dimension out of range (expected to be in range of [-1, 0], but got {})"
DIM_2 = "Dimension out of range (expected to be in range of [-2, 1], but got {})"
BROADCAST = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}"
SIZE = "{}(): argument 'size' (position 1) must be tuple of ints, not {}"
CAST = "result type {} can't be cast to the desired output type {}"
BATCH2 = "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [{}]."
TOO_LARGE = "Storage size calculation overflowed with sizes=[{}]"
NO_FIT = "value cannot be converted to type {} without overflow"
SCALARS_ONLY = "grad can be implicitly created only for scalar outputs"
INCONSISTENT = (
    "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of "
    "elements, but got 3 and 2 elements respectively"
)
USE_XOR = " is not supported. Use the `^` or `logical_xor()` operator instead."
USE_NOT = " is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."


def tensors():
    """Create fresh tensors for one case: x, m, b require grad; i holds integers, f bools, z is 0-dim."""
    return {
        "x": torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
        "m": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True),
        "b": torch.ones(2, 3, 4, requires_grad=True),
        "d": torch.tensor([1.0, 2.0, 3.0]),
        "e": torch.tensor([1.0, 2.0]),
        "i": torch.tensor([1, 2, 3]),
        "f": torch.tensor([True, False, True]),
        "z": torch.tensor(2.0),
    }


def state(given):
    return {
        name: (t.tolist(), t.shape, t.dtype, t._version, t.requires_grad, t.grad, t.is_leaf)
        for name, t in given.items()
    }


CASES = [
    # making tensors
    ("torch.tensor('text')", TypeError, "new(): invalid data type 'str'"),
    ("torch.tensor([1, 'text'])", TypeError, "new(): invalid data type 'str'"),
    ("torch.tensor(None)", RuntimeError, "Could not infer dtype of NoneType"),
    (
        "torch.tensor([[1, 2], [3]])",
        ValueError,
        "expected sequence of length 2 at dim 1 (got 1)",
    ),
    (
        "torch.tensor([1, 2], requires_grad=True)",
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    (
        "torch.zeros(2, dtype=torch.int64, requires_grad=True)",
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    (
        "torch.arange(3, requires_grad=True)",
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    ("torch.zeros('a')", TypeError, SIZE.format("zeros", "str")),
    ("torch.ones(2.5)", TypeError, SIZE.format("ones", "float")),
    ("torch.randn('a')", TypeError, SIZE.format("randn", "str")),
    ("torch.zeros(-1)", RuntimeError, "zeros: Dimension size must be non-negative."),
    (
        "torch.rand(2, -1)",
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [2, -1]",
    ),
    (
        "torch.ones(2, dtype='float')",
        TypeError,
        "ones(): argument 'dtype' must be torch.dtype, not str",
    ),
    (
        "torch.full((2,), 'a')",
        TypeError,
        "full(): argument 'fill_value' (position 2) must be Number, not str",
    ),
    (
        "torch.arange(5, 0)",
        RuntimeError,
        "upper bound and lower bound inconsistent with step sign",
    ),
    ("torch.arange(0, 5, 0)", RuntimeError, "step must be nonzero"),
    ("torch.linspace(0, 1, -1)", RuntimeError, "number of steps must be non-negative"),
    ("torch.eye(-1)", RuntimeError, "n must be greater or equal to 0, got -1"),
    (
        "torch.randint(0, (2,))",
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=0 >= to=0",
    ),
    ("torch.from_numpy([1])", TypeError, "expected np.ndarray (got list)"),
    # changing shapes
    ("x.view(2)", RuntimeError, "shape '[2]' is invalid for input of size 3"),
    ("x.view(-1, 2)", RuntimeError, "shape '[-1, 2]' is invalid for input of size 3"),
    ("x.view(-1, -1)", RuntimeError, "only one dimension can be inferred"),
    ("x.view(-2)", RuntimeError, "invalid shape dimension -2 at index 0 of shape [-2]"),
    ("m.reshape(5)", RuntimeError, "shape '[5]' is invalid for input of size 6"),
    ("m.transpose(0, 5)", IndexError, DIM_2.format(5)),
    ("b.t()", RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    (
        "x.mT",
        RuntimeError,
        "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.",
    ),
    ("m.permute(0, 0)", RuntimeError, "permute(): duplicate dims are not allowed."),
    ("m.permute(0, 5)", IndexError, DIM_2.format(5)),
    (
        "m.permute(0)",
        RuntimeError,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
        "of the desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1",
    ),
    (
        "m.expand(5, 3)",
        RuntimeError,
        "The expanded size of the tensor (5) must match the existing size (2) at non-singleton "
        "dimension 0.  Target sizes: [5, 3].  Tensor sizes: [2, 3]",
    ),
    (
        "m.expand(3)",
        RuntimeError,
        "expand(torch.FloatTensor{[2, 3]}, size=[3]): the number of sizes provided (1) must be "
        "greater or equal to the number of dimensions in the tensor (2)",
    ),
    (
        "m.expand(-1, -1, -1)",
        RuntimeError,
        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0",
    ),
    ("x.squeeze(4)", IndexError, DIM_1.format(4)),
    ("x.unsqueeze(4)", IndexError, DIM_2.format(4)),
    (
        "m.flatten(1, 0)",
        RuntimeError,
        "flatten() has invalid args: start_dim cannot come after end_dim",
    ),
    ("m.size(5)", IndexError, DIM_2.format(5)),
    (
        "x.select(0, 9)",
        IndexError,
        "select(): index 9 out of range for tensor of size [3] at dimension 0",
    ),
    ("z.select(0, 0)", IndexError, "select() cannot be applied to a 0-dim tensor."),
    # joining and splitting
    ("torch.cat([])", ValueError, "torch.cat(): expected a non-empty list of Tensors"),
    (
        "torch.cat([m, x])",
        RuntimeError,
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    (
        "torch.cat([m, torch.ones(3, 4)])",
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for "
        "tensor number 1 in the list.",
    ),
    ("torch.cat([m, m], 2)", IndexError, DIM_2.format(2)),
    (
        "torch.cat(m)",
        TypeError,
        "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
    ),
    (
        "torch.cat([m, 5])",
        TypeError,
        "expected Tensor as element 1 in argument 0, but got int",
    ),
    (
        "torch.stack([m, x])",
        RuntimeError,
        "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [3] at entry 1",
    ),
    ("torch.stack([])", RuntimeError, "stack expects a non-empty TensorList"),
    (
        "torch.stack([m, m], 5)",
        IndexError,
        "Dimension out of range (expected to be in range of [-3, 2], but got 5)",
    ),
    (
        "m.split(0)",
        RuntimeError,
        "split_size can only be 0 if dimension size is 0, but got dimension size of 2",
    ),
    (
        "m.split(-1)",
        RuntimeError,
        "split expects split_size be non-negative, but got split_size=-1",
    ),
    (
        "m.split([1, 5])",
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at "
        "dimension 0), but got split_sizes=[1, 5]",
    ),
    ("m.chunk(0)", RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
    # products
    (
        "m @ m",
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    ),
    ("torch.mm(m, x)", RuntimeError, "mat2 must be a matrix"),
    ("torch.mv(m, e)", RuntimeError, "size mismatch, got input (2), mat (2x3), vec (2)"),
    ("torch.mv(x, x)", RuntimeError, "vector + matrix @ vector expected, got 1, 1, 1"),
    ("torch.dot(x, e)", RuntimeError, INCONSISTENT),
    ("x @ e", RuntimeError, INCONSISTENT),
    ("torch.dot(m, m)", RuntimeError, "1D tensors expected, but got 2D and 2D tensors"),
    ("torch.bmm(m, m)", RuntimeError, "batch1 must be a 3D tensor"),
    ("torch.bmm(b, b)", RuntimeError, BATCH2.format("2, 3")),
    ("torch.bmm(b, torch.ones(3, 4, 4))", RuntimeError, BATCH2.format("3, 4")),
    (
        "z @ m",
        RuntimeError,
        "both arguments to matmul need to be at least 1D, but they are 0D and 2D",
    ),
    (
        "m @ m.detach().t().double()",
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    ("torch.tensordot(m, m.detach().double(), ([0], [0]))", RuntimeError, "both inputs should have same dtype"),
    (
        "F.bilinear(x, x, torch.ones(1, 3, 3), torch.ones(1).double())",
        RuntimeError,
        "All tensors must have the same dtype, got input1: float, input2: float, weight: float, bias: double",
    ),
    # losses
    (
        "F.kl_div(x, x.cfloat(), log_target=True, reduction='sum')",
        RuntimeError,
        "kl_div: Complex inputs not supported.",
    ),
    ("F.hinge_embedding_loss(x.cfloat(), x)", NotImplementedError, "clamp is not supported for complex types"),
    ("F.margin_ranking_loss(x.cfloat(), x, x)", NotImplementedError, "clamp is not supported for complex types"),
    # elementwise
    ("x + e", RuntimeError, BROADCAST.format(3, 2, 0)),
    ("m * e", RuntimeError, BROADCAST.format(3, 2, 1)),
    ("torch.maximum(x, e)", RuntimeError, BROADCAST.format(3, 2, 0)),
    ("torch.where(f, x, e)", RuntimeError, BROADCAST.format(3, 2, 0)),
    ("x < e", RuntimeError, BROADCAST.format(3, 2, 0)),
    (
        "torch.where(x, x, x)",
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype Float",
    ),
    ("x + 'a'", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    ("x * None", TypeError, "unsupported operand type(s) for *: 'Tensor' and 'NoneType'"),
    ("x + [1, 2, 3]", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'list'"),
    ("x < 'a'", TypeError, "'<' not supported between instances of 'Tensor' and 'str'"),
    (
        "torch.add(x, 'a')",
        TypeError,
        "add(): argument 'other' (position 2) must be Tensor, not str",
    ),
    (
        "torch.maximum(x, 5)",
        TypeError,
        "maximum(): argument 'other' (position 2) must be Tensor, not int",
    ),
    ("torch.exp(5)", TypeError, "exp(): argument 'input' (position 1) must be Tensor, not int"),
    ("i ** -1", RuntimeError, "Integers to negative integer powers are not allowed."),
    (
        "torch.clamp(x)",
        RuntimeError,
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    ),
    (
        "f - f",
        RuntimeError,
        "Subtraction, the `-` operator, with two bool tensors" + USE_XOR,
    ),
    ("f - 1", RuntimeError, "Subtraction, the `-` operator, with a bool tensor" + USE_NOT),
    ("-f", RuntimeError, "Negation, the `-` operator, on a bool tensor" + USE_NOT),
    # in-place
    (
        "d.add_(m.detach())",
        RuntimeError,
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
    ),
    ("d.copy_(e)", RuntimeError, BROADCAST.format(3, 2, 0)),
    (
        "d.fill_(e)",
        RuntimeError,
        "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.",
    ),
    ("i.exp_()", RuntimeError, CAST.format("Float", "Long")),
    ("i.mul_(1.5)", RuntimeError, CAST.format("Float", "Long")),
    ("i.div_(2)", RuntimeError, CAST.format("Float", "Long")),
    ("f.add_(1)", RuntimeError, CAST.format("Long", "Bool")),
    (
        "x.mul_(2)",
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    # reductions
    ("x.sum(5)", IndexError, DIM_1.format(5)),
    ("m.mean(7)", IndexError, DIM_2.format(7)),
    ("m.max(7)", IndexError, DIM_2.format(7)),
    ("m.argmax(9)", IndexError, DIM_2.format(9)),
    ("m.prod(4)", IndexError, DIM_2.format(4)),
    ("m.std(4)", IndexError, DIM_2.format(4)),
    ("m.sum((0, 0))", RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (
        "i.mean()",
        RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long",
    ),
    (
        "i.var()",
        RuntimeError,
        "std and var only support floating point and complex dtypes",
    ),
    (
        "i.norm()",
        RuntimeError,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
    ),
    (
        "torch.ones(0).max()",
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.",
    ),
    (
        "torch.ones(0, 3).max(0)",
        IndexError,
        "max(): Expected reduction dim 0 to have non-zero size.",
    ),
    (
        "torch.ones(0).argmax()",
        IndexError,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    # losses
    ("F.softmax(x, 4)", IndexError, DIM_1.format(4)),
    ("F.log_softmax(x, 4)", IndexError, DIM_1.format(4)),
    (
        "F.cross_entropy(m, torch.tensor([0, 1, 2]))",
        ValueError,
        "Expected input batch_size (2) to match target batch_size (3).",
    ),
    ("F.cross_entropy(m, torch.tensor([0, 5]))", IndexError, "Target 5 is out of bounds."),
    ("F.nll_loss(m, torch.tensor([0, -3]))", IndexError, "Target -3 is out of bounds."),
    (
        "F.nll_loss(m, e)",
        RuntimeError,
        "expected target dtype to be Long or Byte, but got Float",
    ),
    (
        "F.cross_entropy(m, torch.tensor([0, 1]), reduction='half')",
        ValueError,
        "half is not a valid value for reduction",
    ),
    (
        "F.mse_loss(x, d, reduction='half')",
        ValueError,
        "half is not a valid value for reduction",
    ),
    # backward
    ("(x * 2).backward()", RuntimeError, SCALARS_ONLY),
    ("m.backward()", RuntimeError, SCALARS_ONLY),
    (
        "d.sum().backward()",
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    (
        "i.sum().backward()",
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    (
        "x.backward(e)",
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a "
        "shape of torch.Size([3]).",
    ),
    (
        "(x * 2).backward([1, 1, 1])",
        TypeError,
        "gradients can be either Tensors or None, but got int",
    ),
    # devices
    (
        "x.to('nowhere')",
        RuntimeError,
        "Expected one of cpu, cuda...device type at start of device string: nowhere",
    ),
    # conversions
    ("x.item()", RuntimeError, "a Tensor with 3 elements cannot be converted to Scalar"),
    ("bool(x)", RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    (
        "bool(torch.ones(0))",
        RuntimeError,
        "Boolean value of Tensor with no values is ambiguous",
    ),
    ("float(d)", ValueError, "only one element tensors can be converted to Python scalars"),
    (
        "[1][d]",
        TypeError,
        "only integer tensors of a single element can be converted to an index",
    ),
    (
        "x.numpy()",
        RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    ("len(z)", TypeError, "len() of a 0-d tensor"),
    ("iter(z)", TypeError, "iteration over a 0-d tensor"),
    # attributes and methods
    ("x.size(1.0)", TypeError, "size(): argument 'dim' (position 1) must be int, not float"),
    ("x.size(True)", TypeError, "size(): argument 'dim' (position 1) must be int, not bool"),
    ("x.size(d)", TypeError, "size(): argument 'dim' (position 1) must be int, not Tensor"),
    ("x.size(torch.float32)", TypeError, "size(): argument 'dim' (position 1) must be int, not torch.dtype"),
    ("x.size(1)", IndexError, DIM_1.format(1)),
    ("z.size(0)", IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    ("x.stride('a')", TypeError, "stride(): argument 'dim' (position 1) must be int, not str"),
    ("x.stride(-2)", IndexError, DIM_1.format(-2)),
    (
        "x.is_contiguous(memory_format=None)",
        TypeError,
        "is_contiguous(): argument 'memory_format' must be torch.memory_format, not NoneType",
    ),
    ("d.requires_grad_(1)", TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not int"),
    (
        "x.requires_grad_(None)",
        TypeError,
        "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not NoneType",
    ),
    ("x.__format__(0)", TypeError, "__format__() argument must be str, not int"),
    (
        "setattr(x, 'grad', np.ones(3))",
        TypeError,
        "assigned grad expected to be a Tensor or None but got grad of type numpy.ndarray",
    ),
    ("setattr(x, 'data', np.ones(3))", TypeError, "Variable data has to be a tensor, but got numpy.ndarray"),
    # sizes and indices
    (
        "torch.ones(2**31, 2**31, 2**31)",
        RuntimeError,
        TOO_LARGE.format("2147483648, 2147483648, 2147483648"),
    ),
    ("torch.Tensor(2**62, 4)", RuntimeError, TOO_LARGE.format("4611686018427387904, 4")),
    ("F.pad(x, (0, 2**62))", RuntimeError, TOO_LARGE.format("4611686018427387907")),
    ("F.pad(m, (1, 2**62), mode='replicate')", RuntimeError, TOO_LARGE.format("2, 4611686018427387908")),
    ("torch.diag_embed(x, 2**40)", RuntimeError, TOO_LARGE.format("1099511627779, 1099511627779")),
    ("torch.diag(x, -(2**40))", RuntimeError, TOO_LARGE.format("1099511627779, 1099511627779")),
    ("torch.bincount(i, minlength=2**62)", RuntimeError, TOO_LARGE.format("4611686018427387904")),
    ("torch.histc(x, 2**62)", RuntimeError, TOO_LARGE.format("4611686018427387904")),
    ("F.one_hot(i, 2**62)", RuntimeError, TOO_LARGE.format("3, 4611686018427387904")),
    ("torch.fft.fft(x, 2**61)", RuntimeError, TOO_LARGE.format("2305843009213693952")),
    ("F.interpolate(m[None], size=2**62)", RuntimeError, TOO_LARGE.format("1, 2, 4611686018427387904")),
    ("torch.arange(2**62)", RuntimeError, TOO_LARGE.format("4611686018427387904")),
    ("torch.arange(0.0, 2.0**62)", RuntimeError, TOO_LARGE.format("4611686018427387904")),
    ("torch.linspace(0, 1, 2**62)", RuntimeError, TOO_LARGE.format("4611686018427387904")),
    ("torch.eye(2**40, 2**21)", RuntimeError, TOO_LARGE.format("1099511627776, 2097152")),
    ("torch.hann_window(2**62)", RuntimeError, TOO_LARGE.format("4611686018427387904")),
    ("torch.vander(x, 2**62)", RuntimeError, TOO_LARGE.format("3, 4611686018427387904")),
    ("x.expand(2**62, 3)", RuntimeError, "numel: integer multiplication overflow"),
    ("x.repeat_interleave(2**62)", RuntimeError, "numel: integer multiplication overflow"),
    ("x.multinomial(2**62, True)", RuntimeError, TOO_LARGE.format("4611686018427387904")),
    (
        "F.max_unpool1d(i.expand(2, 3), i.expand(2, 3), 4)",
        NotImplementedError,
        "\"max_unpool2d\" not implemented for 'Long'",
    ),
    (
        "torch.zeros(2**63)",
        TypeError,
        "zeros(): argument 'size' failed to unpack the object at pos 1 ...\"Overflow when unpacking long long",
    ),
    ("x.sum(2**63)", ValueError, "Overflow when unpacking long long"),
    ("torch.arange(0, 1, float('nan'))", RuntimeError, "step must be nonzero"),
    (
        "torch.device([1])",
        TypeError,
        "device() received an invalid combination of arguments - got (list)...",
    ),
    ("torch.device('cpu', 1.5)", TypeError, "device(): argument 'index' (position 2) must be int, not float"),
    # numbers that overflow
    ("i.to(torch.uint8).clamp(max=300)", RuntimeError, NO_FIT.format("uint8_t")),
    ("d.clamp(min=1e300)", RuntimeError, NO_FIT.format("float")),
    ("torch.where(f, i.to(torch.int8), 300)", RuntimeError, NO_FIT.format("int8_t")),
    ("torch.where(f, d, 1e300)", RuntimeError, NO_FIT.format("float")),
    ("i.to(torch.int8) ** 200", RuntimeError, NO_FIT.format("int8_t")),
    ("i ** -1", RuntimeError, "Integers to negative integer powers are not allowed."),
    ("i // 1j", NotImplementedError, "\"div_floor_cpu\" not implemented for 'ComplexFloat'"),
    ("1j % d", NotImplementedError, "\"remainder_cpu\" not implemented for 'ComplexFloat'"),
    # operators with invalid operands
    ("d + None", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'NoneType'"),
    ("None + d", TypeError, "unsupported operand type(s) for +: 'NoneType' and 'Tensor'"),
    ("operator.iadd(d, {})", TypeError, "unsupported operand type(s) for +=: 'Tensor' and 'dict'"),
    ("d * print", TypeError, "unsupported operand type(s) for *: 'Tensor' and 'builtin_function_or_method'"),
    ("d ** 'a'", TypeError, "unsupported operand type(s) for ** or pow(): 'Tensor' and 'str'"),
    ("torch.float32 - d", TypeError, "unsupported operand type(s) for -: 'torch.dtype' and 'Tensor'"),
    ("i & 'a'", TypeError, "unsupported operand type(s) for &: 'Tensor' and 'str'"),
    ("d // None", TypeError, "unsupported operand type(s) for //: 'Tensor' and 'NoneType'"),
    ("d < None", TypeError, "'<' not supported between instances of 'Tensor' and 'NoneType'"),
    ("d * 'a'", TypeError, "only integer tensors of a single element can be converted to an index"),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("source", "error", "line"), CASES, ids=[case[0] for case in CASES])
def test_error_and_nothing_changed(source, error, line):
    given = tensors()
    before = state(given)
    with fails(error, line):
        eval(source, {"torch": torch, "F": F, "np": np, "operator": operator, **given})
    assert state(given) == before


class _Unknown:
    pass


@pytest.mark.parametrize("other", [_Unknown(), None, "a", {}], ids=["object", "None", "str", "dict"])
@pytest.mark.parametrize(
    "name",
    [
        *("add", "radd", "iadd", "sub", "rsub", "mul", "imul", "truediv", "pow", "rpow", "ipow", "matmul", "rmatmul"),
        *("mod", "floordiv", "and", "ior", "xor", "lshift", "irshift", "lt", "le", "gt", "ge", "eq", "ne"),
    ],
)
def test_methods_of_operators_return_notimplemented(name, other):
    x = torch.ones(2, dtype=torch.int64)
    if isinstance(other, str) and name in ("mul", "imul"):
        return  # which repeats the string
    assert getattr(x, f"__{name}__")(other) is NotImplemented and x.tolist() == [1, 1]
    assert x.__add__(other) is NotImplemented
    with fails(TypeError, f"unsupported operand type(s) for +: 'Tensor' and '{type(other).__name__}'"):
        x + other
