"""Functions of lists of tensors."""

import numpy as np
import pytest

import cygrad as torch
from cygrad._ops.foreach.table import TABLE

UNARY = [name for name, row in TABLE.items() if list(row.signatures) == ["default"] and row.in_place and row.has_result]
NUMPY = {
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "ceil": np.ceil, "cos": np.cos,
    "cosh": np.cosh, "exp": np.exp, "expm1": np.expm1, "floor": np.floor, "frac": lambda a: a - np.trunc(a),
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "neg": np.negative,
    "reciprocal": np.reciprocal, "round": np.round, "rsqrt": lambda a: 1 / np.sqrt(a),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "erf": np.vectorize(__import__("math").erf), "erfc": np.vectorize(__import__("math").erfc),
    "lgamma": np.vectorize(__import__("math").lgamma),
}  # fmt: skip
A, B, C = np.array([0.25, 0.5, 0.75]), np.array([[0.125, 0.875]]), np.array(0.375)


def tensors(*arrays):
    return [torch.tensor(array.copy()) for array in arrays]


def check(found, expected):
    assert type(found) in (tuple, list)
    for one, array in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), array, rtol=1e-12)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    given = tensors(A, B, C)
    found = getattr(torch, f"_foreach_{name}")(given)
    assert type(found) is tuple
    expected = [NUMPY[name](array) for array in (A, B, C)]
    check(found, expected)
    check(given, (A, B, C))
    assert getattr(torch, f"_foreach_{name}_")(given) is given
    check(given, expected)
    assert [one._version for one in given] == [1, 1, 1]


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "maximum": np.maximum,
    "minimum": np.minimum, "clamp_min": np.maximum, "clamp_max": np.minimum,
}  # fmt: skip
OTHERS = {
    "Scalar": (0.4, [0.4, 0.4, 0.4]),
    "ScalarList": ([0.4, 2, 0.5], [0.4, 2, 0.5]),
    "List": ([A + 0.1, B - 0.1, C], [A + 0.1, B - 0.1, C]),
    "Tensor": (np.array(0.4), [0.4, 0.4, 0.4]),
}
CALLS = [(name, overload) for name in BINARY for overload in TABLE[name].signatures if overload in OTHERS]


@pytest.mark.parametrize(("name", "overload"), CALLS)
def test_binary(name, overload):
    given = tensors(A, B, C)
    other, each = OTHERS[overload]
    if overload == "List":
        other = tensors(*other)
    elif overload == "Tensor":
        other = torch.tensor(other)
    expected = [BINARY[name](array, one) for array, one in zip((A, B, C), each)]
    check(getattr(torch, f"_foreach_{name}")(given, other), expected)
    check(getattr(torch, f"_foreach_{name}_")(given, other), expected)
    check(given, expected)
    assert [one._version for one in given] == [1, 1, 1]


def test_alpha():
    check(torch._foreach_add(tensors(A, B), tensors(A, B), alpha=3), [A * 4, B * 4])
    check(torch._foreach_sub(tensors(A, B), tensors(A, B), alpha=3), [A * -2, B * -2])
    check(torch._foreach_add(tensors(A, B), torch.tensor(0.5), alpha=2), [A + 1, B + 1])
    check(torch._foreach_add_(tensors(A, B), tensors(A, B), alpha=3), [A * 4, B * 4])


def test_powers_of_a_number():
    check(torch._foreach_pow(2.0, tensors(A, B)), [2**A, 2**B])


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
@pytest.mark.parametrize("value", [2.5, [2.5, 2.5], "packed"])
def test_sums_with_factors(name, value):
    value = torch.tensor([2.5, 2.5]) if value == "packed" else value
    product = np.multiply if name == "addcmul" else np.divide
    expected = [A + 2.5 * product(A, A + 1), B + 2.5 * product(B, B + 1)]
    arguments = tensors(A, B), tensors(A + 1, B + 1), value
    check(getattr(torch, f"_foreach_{name}")(tensors(A, B), *arguments), expected)
    check(getattr(torch, f"_foreach_{name}_")(tensors(A, B), *arguments), expected)


def test_the_factor_by_name():
    lists = tensors(A), tensors(A), tensors(A)
    check(torch._foreach_addcmul(*lists), [A + A * A])
    check(torch._foreach_addcmul(*lists, value=2), [A + 2 * A * A])
    check(torch._foreach_addcmul(*lists, scalars=[3]), [A + 3 * A * A])


@pytest.mark.parametrize("weight", [0.25, [0.25, 0.25], "tensors"])
def test_lerp(weight):
    weight = tensors(np.full(3, 0.25), np.array(0.25)) if weight == "tensors" else weight
    expected = [A + 0.25 * (1 - A), B + 0.25 * (2 - B)]
    ends = tensors(np.ones(3), np.full((1, 2), 2.0))
    check(torch._foreach_lerp(tensors(A, B), ends, weight), expected)
    check(torch._foreach_lerp_(tensors(A, B), ends, weight), expected)


def test_reductions_and_products():
    square = np.arange(4.0).reshape(2, 2)
    check(torch._foreach_norm(tensors(A, B)), [np.linalg.norm(A), np.linalg.norm(B)])
    check(torch._foreach_norm(tensors(A, B), float("inf")), [0.75, 0.875])
    check(torch._foreach_powsum(tensors(A, B), 3), [(A**3).sum(), (B**3).sum()])
    check(torch._foreach_max(tensors(A, B, C)), [0.75, 0.875, 0.375])
    check(torch._foreach_mm(tensors(square, square), tensors(square, np.eye(2))), [square @ square, square])
    assert torch._foreach_norm([torch.ones(2)], dtype=torch.float64)[0].dtype is torch.float64


def test_copies():
    given = tensors(A, B)
    copies = torch._foreach_clone(given)
    torch._foreach_zero_(given)
    check(given, [A * 0, B * 0])
    check(copies, [A, B])
    integers = [torch.zeros(3, dtype=torch.int64), torch.zeros(1, 2)]
    torch._foreach_copy_(integers, tensors(A * 8, B))
    assert integers[0].tolist() == [2, 4, 6] and integers[0].dtype is torch.int64
    assert integers[1].dtype is torch.float32


@pytest.mark.parametrize("in_place", [False, True])
def test_gradients(in_place):
    x, y, w = (torch.tensor(array, requires_grad=True) for array in (A, B, np.array(0.5)))
    lists = [x * 1, y * 1]
    if in_place:
        torch._foreach_mul_(lists, [x, w])
        torch._foreach_add_(lists, [y.sum(), y], alpha=2)
        found = lists
    else:
        found = torch._foreach_add(torch._foreach_mul(lists, [x, w]), [y.sum(), y], alpha=2)
    gradients = torch.autograd.grad(found[0].sum() + found[1].sum(), [x, y, w])
    check(gradients, [2 * A, np.full_like(B, 0.5 + 2 + 2 * 3), B.sum()])


def test_ties_share_or_keep_the_gradient():
    ones = torch.ones(1, dtype=torch.float64, requires_grad=True)
    for name, share in {"maximum": 0.5, "minimum": 0.5, "clamp_min": 1, "clamp_max": 1}.items():
        (result,) = getattr(torch, f"_foreach_{name}")([ones], 1.0)
        check(torch.autograd.grad(result, [ones]), [[share]])


def test_dtypes():
    integers = torch.tensor([1, 2])
    for found, dtype in {
        torch._foreach_add([integers], 1): torch.int64,
        torch._foreach_add([integers], 1.5): torch.float32,
        torch._foreach_add([integers], 1j): torch.complex64,
        torch._foreach_maximum([integers], 1.5): torch.float32,
        torch._foreach_maximum([integers], 3): torch.int64,
        torch._foreach_sqrt([integers]): torch.float32,
        torch._foreach_div([integers], [2]): torch.float32,
        torch._foreach_div([integers], torch.tensor(2.0, dtype=torch.float64)): torch.float64,
    }.items():
        assert found[0].dtype is dtype
    exact = torch._foreach_maximum([torch.zeros(1, dtype=torch.float64)], 0.1)[0]
    assert exact.item() == 0.1


LISTS = tensors(A, B)
WRONG = [
    (torch._foreach_add, (LISTS, LISTS[:1]), {}, "Tensor lists must have the same number of tensors, got 2 and 1"),
    (torch._foreach_add, (LISTS, [1.0]), {}, "Tensor list must have same number of elements as scalar list."),
    (torch._foreach_add, ([], 1), {}, "Tensor list must have at least one tensor."),
    (torch._foreach_mul, (LISTS, torch.ones(2)), {}, "scalar tensor expected to be 0 dim but it has 1 dimensions"),
    (
        torch._foreach_addcmul,
        (LISTS,) * 3 + (torch.ones(3),),
        {},
        "Expected length of scalars to match input of length",
    ),
    (
        torch._foreach_addcmul,
        (LISTS,) * 3 + (torch.ones(2, 1),),
        {},
        "Expected packed scalar Tensor to be of dimension",
    ),
    (torch._foreach_mm, ([], []), {}, "_foreach_mm requires non-empty tensor lists"),
    (torch._foreach_mm, (LISTS, []), {}, "_foreach_mm: self and mat2 must have the same number of tensors"),
    (torch._foreach_max, ([torch.ones(0)],), {}, "_foreach_max cannot compute the maximum of an empty tensor"),
    (torch._foreach_norm, ([torch.ones(0)], float("inf")), {}, "_foreach_norm cannot compute the infinity norm"),
]
REFUSED = [
    (torch._foreach_exp, (LISTS[0],), {}, r"_foreach_exp\(\): argument 'self' \(position 1\) must be tuple of Tensors"),
    (torch._foreach_exp, ([1.0],), {}, "expected Tensor as element 0 in argument 0, but got float"),
    (torch._foreach_exp, (), {}, r"_foreach_exp\(\) missing 1 required positional arguments: \"self\""),
    (torch._foreach_exp, (LISTS, 1), {}, r"_foreach_exp\(\) takes 1 positional argument but 2 were given"),
    (torch._foreach_exp, (LISTS,), {"k": 1}, r"_foreach_exp\(\) got an unexpected keyword argument 'k'"),
    (torch._foreach_exp, (LISTS,), {"self": LISTS}, r"_foreach_exp\(\) got multiple values for argument 'self'"),
    (
        torch._foreach_norm,
        (LISTS, "a"),
        {},
        r"_foreach_norm\(\): argument 'ord' \(position 2\) must be Number, not str",
    ),
    (torch._foreach_add, (LISTS, "a"), {}, r"_foreach_add\(\) received an invalid combination of arguments"),
    (torch._foreach_add, (LISTS, 1), {"alpha": 2}, r"_foreach_add\(\) received an invalid combination of arguments"),
]


@pytest.mark.parametrize(("function", "args", "kwargs", "text"), WRONG)
def test_wrong_lists(function, args, kwargs, text):
    with pytest.raises(RuntimeError, match=text):
        function(*args, **kwargs)


@pytest.mark.parametrize(("function", "args", "kwargs", "text"), REFUSED)
def test_wrong_arguments(function, args, kwargs, text):
    with pytest.raises(TypeError, match=text):
        function(*args, **kwargs)


def test_dtypes_that_have_no_kernel():
    with pytest.raises(NotImplementedError, match="powsum_cpu"):
        torch._foreach_powsum([torch.tensor([1])])
    with pytest.raises(NotImplementedError, match="clamp is not supported for complex types"):
        torch._foreach_maximum([torch.tensor([1j])], 1)


@pytest.mark.parametrize(
    ("last", "call"),
    [
        (torch.tensor([1, 2]), lambda lists: torch._foreach_add_(lists, 1.5)),
        (torch.ones(1), lambda lists: torch._foreach_add_(lists, [torch.ones(2), torch.ones(3)])),
        (torch.ones(2, requires_grad=True), lambda lists: torch._foreach_sqrt_(lists)),
        (torch.ones(2, requires_grad=True)[:], lambda lists: torch._foreach_sqrt_(lists)),
        (torch.ones(1).expand(2), lambda lists: torch._foreach_zero_(lists)),
        (torch.tensor([1j]), lambda lists: torch._foreach_abs_(lists)),
        (torch.tensor([True]), lambda lists: torch._foreach_neg_(lists)),
    ],
)
def test_what_cannot_be_changed_leaves_all_as_they_are(last, call):
    first = torch.full((2,), 4.0)
    with pytest.raises(RuntimeError):
        call([first, last])
    assert first.tolist() == [4, 4] and first._version == 0


def test_subclasses_override_the_calls():
    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    assert torch._foreach_add([torch.ones(2).as_subclass(Named)], 1) == "_foreach_add"


def test_every_name_describes_itself():
    for name, row in TABLE.items():
        for ending in ("",) * row.has_result + ("_",) * row.in_place:
            function = getattr(torch, f"_foreach_{name}{ending}")
            assert function.__name__ == f"_foreach_{name}{ending}"
            assert all(text in function.__doc__ for text in row.signatures.values())


# --- compiled passes -----------------------------------------------------------------------------

PASSES = {
    "add": [lambda a, b: (a, b), lambda a, b: (a, 2.5), lambda a, b: (a, [1.0, 2, -0.5])],
    "sub": [lambda a, b: (a, b), lambda a, b: (a, 2)],
    "mul": [lambda a, b: (a, b), lambda a, b: (a, 2.5), lambda a, b: (a, [1.0, 2, -0.5])],
    "div": [lambda a, b: (a, b), lambda a, b: (a, 2.5)],
    "maximum": [lambda a, b: (a, b)],
    "clamp_min": [lambda a, b: (a, b)],
    "addcmul": [lambda a, b: (a, b, b), lambda a, b: (a, b, b, 0.5)],
    "addcdiv": [lambda a, b: (a, b, b, -2)],
    "lerp": [lambda a, b: (a, b, 0.25), lambda a, b: (a, b, 0.75)],
    "sqrt": [lambda a, b: (b,)],
    "neg": [lambda a, b: (a,)],
    "abs": [lambda a, b: (a,)],
    "exp": [lambda a, b: (a,)],
}


def lists(dtype, requires_grad=False):
    sizes = ((3,), (2, 4), ())
    a = [torch.linspace(-1, 1, max(1, torch.Size(s).numel()), dtype=dtype).reshape(s) for s in sizes]
    b = [(t.abs() + 0.5) for t in a]
    return [t.detach().requires_grad_(requires_grad) for t in a], [t.detach().requires_grad_(requires_grad) for t in b]


def one_by_one(name, args, out_of):
    first = args[0]
    count = len(first)
    rows = [[value[i] if isinstance(value, list) else value for value in args] for i in range(count)]
    if name in ("addcmul", "addcdiv"):
        rows = [[*row[:3]] for row in rows]
        value = args[3] if len(args) > 3 else 1
        return [getattr(row[0], f"{name}{out_of}")(*row[1:], value=value) for row in rows]
    return [getattr(row[0], f"{name}{out_of}")(*row[1:]) for row in rows]


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_passes_give_what_the_ops_give(name, dtype):
    for arguments in PASSES[name]:
        expected = one_by_one(name, arguments(*lists(dtype)), "")
        found = getattr(torch, f"_foreach_{name}")(*arguments(*lists(dtype)))
        assert isinstance(found, tuple)
        for x, y in zip(found, expected, strict=True):
            assert x.dtype is y.dtype and x.tolist() == y.tolist()
        args = arguments(*lists(dtype))
        versions = [t._version for t in args[0]]
        assert getattr(torch, f"_foreach_{name}_")(*args) in (None, args[0])
        assert [t._version for t in args[0]] == [v + 1 for v in versions]
        assert [t.tolist() for t in args[0]] == [t.tolist() for t in expected]


@pytest.mark.parametrize("name", PASSES)
def test_passes_record_as_the_ops_do(name):
    for arguments in PASSES[name]:
        ours, theirs = lists(torch.float64, True), lists(torch.float64, True)
        sum(t.sum() for t in getattr(torch, f"_foreach_{name}")(*arguments(*ours))).backward()
        sum(t.sum() for t in one_by_one(name, arguments(*theirs), "")).backward()
        for x, y in zip([*ours[0], *ours[1]], [*theirs[0], *theirs[1]], strict=True):
            assert (x.grad is None) == (y.grad is None)
            assert x.grad is None or x.grad.tolist() == y.grad.tolist()


def test_a_pass_changes_nothing_if_one_tensor_refuses():
    a, b = lists(torch.float32)
    a[2].requires_grad_()
    for change in (
        lambda: torch._foreach_add_(a, b),
        lambda: torch._foreach_zero_(a),
        lambda: torch._foreach_addcmul_(a, b, b),
    ):
        before = [t.tolist() for t in a]
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            change()
        assert [t.tolist() for t in a] == before
    with torch.no_grad():
        torch._foreach_addcmul_(a, b, b)
        torch._foreach_copy_(a, b)
    assert [t.tolist() for t in a] == [t.tolist() for t in b]


def test_operands_that_share_memory():
    base = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch._foreach_addcmul_([base[1:4]], [base[:3]], [base[:3]])
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    same = torch.ones(3)
    torch._foreach_add_([same, same], [same, same])
    assert same.tolist() == [4, 4, 4]


def test_mixed_dtypes_and_shapes_take_the_plain_path():
    a = [torch.ones(2), torch.ones(2, dtype=torch.int64)]
    assert [t.dtype for t in torch._foreach_add(a, 1.5)] == [torch.float32, torch.float32]
    found = torch._foreach_mul([torch.ones(2, 1)], [torch.ones(3)])
    assert found[0].shape == (2, 3)
    strided = [torch.ones(4, 4).t()[1:, ::2]]
    torch._foreach_addcdiv_(strided, [torch.ones(3, 2)], [torch.ones(3, 2)])
    assert strided[0].sum().item() == 12
