"""Custom ops: schemas, kernels, gradients, transforms, libraries and checks."""

from collections.abc import Sequence

import pytest

import cygrad as torch
from cygrad import Tensor, library
from cygrad.ops._schema import parse_schema
from helpers import fails


def sine(name):
    """A new op `test::name` that computes k sin(x), with its gradient."""

    @library.custom_op(f"test::{name}", mutates_args=())
    def op(x: Tensor, k: float = 1.0) -> Tensor:
        return torch.from_numpy(torch.sin(x).numpy() * k)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.cos(x) * ctx.k, None

    op.register_autograd(backward, setup_context=setup)
    return op


def test_calls_and_names():
    op = sine("named")
    x = torch.tensor([0.5, 1.0])
    torch.testing.assert_close(op(x, 2.0), 2 * torch.sin(x))
    assert torch.ops.test.named(x).tolist() == torch.ops.test.named.default(x, k=1.0).tolist() == op(x).tolist()
    overload = torch.ops.test.named.default
    assert (str(overload), overload.name(), overload.namespace) == ("test.named.default", "test::named", "test")
    assert repr(op) == "<CustomOpDef(test::named)>" and torch.ops.test.named.overloads() == ["default"]
    assert str(overload._schema) == "test::named(Tensor x, float k=1.0) -> Tensor"
    assert [argument.name for argument in overload._schema.arguments] == ["x", "k"]
    with pytest.raises(AttributeError, match="'_OpNamespace' 'test' object has no attribute 'nonesuch'"):
        _ = torch.ops.test.nonesuch
    with pytest.raises(AttributeError, match="The underlying op of 'test.named' has no overload name 'other'"):
        _ = torch.ops.test.named.other


@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        (
            (),
            {},
            "test::wrong\\(\\) is missing value for argument 'x'. Declaration: test::wrong\\(Tensor x, float k=1.0\\)",
        ),
        ((1,), {}, "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
        ((torch.ones(1), "a"), {}, "Expected a value of type 'float' for argument 'k' but instead found type 'str'"),
        ((torch.ones(1), 1.0, 2), {}, "expected at most 2 argument\\(s\\) but received 3"),
        ((torch.ones(1),), {"z": 1}, "Unknown keyword argument 'z' for operator 'test::wrong'"),
        ((torch.ones(1),), {"x": 1}, "Unknown keyword argument 'x' for operator 'test::wrong'"),
    ],
)
def test_wrong_calls(args, kwargs, text):
    op = sine("wrong")
    with pytest.raises(RuntimeError, match=text):
        op(*args, **kwargs)


def test_gradients():
    op = sine("differentiable")
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y = op(x, 3.0)
    assert type(y.grad_fn).__name__ == "GeneratedBackwardFor_test_differentiable_defaultBackward"
    assert torch.autograd.gradcheck(lambda x: op(x, 3.0), x)
    (second,) = torch.autograd.grad(torch.autograd.grad(y.sum(), x, create_graph=True)[0].sum(), x)
    torch.testing.assert_close(second, -3 * torch.sin(x))
    with torch.no_grad():
        assert op(x).grad_fn is None


def test_a_missing_gradient():
    @library.custom_op("test::no_gradient", mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x * 2

    y = op(torch.ones(2, requires_grad=True))
    with pytest.raises(
        RuntimeError, match="Trying to backward through test.no_gradient.default but no autograd formula"
    ):
        y.sum().backward()


def test_lists_keywords_and_several_results():
    @library.custom_op("test::several", mutates_args=())
    def op(xs: Sequence[Tensor], y: Tensor, *, factor: float = 2.0) -> tuple[Tensor, Tensor]:
        return xs[0] * xs[1] * factor, y + 1

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(*inputs[0])
        ctx.factor = keyword_only_inputs["factor"]
        assert len(output) == 2

    def backward(ctx, first, second):
        a, b = ctx.saved_tensors
        return [first * b * ctx.factor, first * a * ctx.factor], second

    op.register_autograd(backward, setup_context=setup)
    a, b, y = (torch.tensor(value, requires_grad=True) for value in (3.0, 4.0, 5.0))
    first, second = op([a, b], y, factor=10.0)
    assert (first.item(), second.item()) == (120, 6)
    (first + second).backward()
    assert (a.grad.item(), b.grad.item(), y.grad.item()) == (40, 30, 1)


def test_a_list_as_the_result():
    @library.custom_op("test::parts", mutates_args=())
    def op(x: Tensor) -> list[Tensor]:
        return [x[:1].clone(), x[1:].clone()]

    op.register_autograd(lambda ctx, grads: torch.cat(grads))
    x = torch.ones(3, requires_grad=True)
    first, second = op(x)
    (first.sum() + 2 * second.sum()).backward()
    assert x.grad.tolist() == [1, 2, 2]


def test_results_that_are_numbers_have_no_gradient():
    @library.custom_op("test::with_number", mutates_args=())
    def op(x: Tensor) -> tuple[int, Tensor]:
        return 2, x * 3

    kinds = []

    def backward(ctx, first, second):
        kinds.append((type(first), type(second)))
        return second * 3

    op.register_autograd(backward)
    x = torch.ones(2, requires_grad=True)
    number, y = op(x)
    y.sum().backward()
    assert number == 2 and x.grad.tolist() == [3, 3]
    assert kinds == [(type(None), torch.Tensor)]


def test_kernels_and_fakes():
    op = sine("placed")
    with pytest.raises(RuntimeError, match="There was no fake impl registered for <CustomOpDef\\(test::placed\\)>"):
        op(torch.ones(2, device="meta"))
    op.register_fake(lambda x, k=1.0: torch.empty_like(x))
    assert op(torch.ones(2, 3, device="meta")).shape == (2, 3)
    op.register_kernel("cpu", lambda x, k=1.0: x * 100)
    assert op(torch.ones(1)).item() == 100
    with op.set_kernel_enabled("cpu", False):
        assert op(torch.ones(1)).item() < 1
    assert library.get_kernel(op, "CPU")(torch.ones(1)).item() == 100

    @library.custom_op("test::cuda_alone", mutates_args=(), device_types="cuda")
    def alone(x: Tensor) -> Tensor:
        return x

    with pytest.raises(
        NotImplementedError, match="Could not run 'test::cuda_alone' with arguments from the 'CPU' backend"
    ):
        alone(torch.ones(1))


def test_results_that_share_memory():
    @library.custom_op("test::same", mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x[:]

    with pytest.raises(RuntimeError, match="The output of this custom operator \\(1\\) must not also be an input"):
        op(torch.ones(2))


def test_ops_that_write():
    @library.custom_op("test::fill", mutates_args={"x"})
    def op(x: Tensor, value: float) -> None:
        x.fill_(value)

    x = torch.zeros(2)
    assert op(x, 3.0) is None and x.tolist() == [3, 3] and x._version == 1
    assert op._schema == "(Tensor(a0!) x, float value) -> ()"
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        op.register_autograd(lambda ctx, grad: grad)


def test_vmap():
    op = sine("batched")
    x = torch.randn(3, 2)

    @op.register_vmap
    def rule(info, in_dims, x, k):
        notes.append((info.batch_size, in_dims))
        return op(x, k), in_dims[0]

    notes: list = []
    torch.testing.assert_close(torch.vmap(op)(x), torch.sin(x))
    assert notes == [(3, (0, None))]


def test_modes_see_custom_ops():
    op = sine("seen")

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            notes.append(torch.overrides.resolve_name(func))
            return func(*args, **(kwargs or {}))

    notes: list = []
    x = torch.ones(1)
    with Mode():
        op(x)
    assert notes == ["test.seen.default"]
    traced = torch.fx.symbolic_trace(lambda x: torch.ops.test.seen(x) + 1)
    torch.testing.assert_close(traced(torch.ones(1)), torch.sin(torch.ones(1)) + 1)


def test_autocast():
    op = sine("cast")
    library.register_autocast(op, "cpu", torch.float16)
    with torch.autocast("cpu"):
        assert op(torch.ones(1)).dtype is torch.float16
    assert op(torch.ones(1)).dtype is torch.float32
    with pytest.raises(ValueError, match="Unknown device type: tpu"):
        op.register_autocast("tpu", torch.float16)


def plain(
    x: Tensor, y: Tensor | None, n: int, s: float = 2.0, t: str = "a", *, d: torch.dtype | None = None
) -> None: ...
def lists(x: Sequence[Tensor], w: Sequence[float] | None = None, b: bool = True) -> list[Tensor]: ...
def pair(x: Tensor, n: Sequence[int]) -> tuple[Tensor, int]: ...


@pytest.mark.parametrize(
    "function, mutates, schema",
    [
        (plain, (), '(Tensor x, Tensor? y, SymInt n, float s=2.0, str t="a", *, ScalarType? d=None) -> ()'),
        (plain, {"y"}, '(Tensor x, Tensor(a0!)? y, SymInt n, float s=2.0, str t="a", *, ScalarType? d=None) -> ()'),
        (lists, (), "(Tensor[] x, float[]? w=None, bool b=True) -> Tensor[]"),
        (lists, "unknown", "(Tensor(a0!)[] x, float[]? w=None, bool b=True) -> Tensor[]"),
        (pair, (), "(Tensor x, SymInt[] n) -> (Tensor, SymInt)"),
    ],
)
def test_inferred_schemas(function, mutates, schema):
    assert library.infer_schema(function, mutates_args=mutates) == schema
    parsed = parse_schema(f"f{schema}")
    assert [argument.name for argument in parsed.arguments] == list(function.__annotations__)[:-1]


def variadic(*x: Tensor) -> Tensor: ...
def unannotated(x) -> Tensor: ...
def no_result(x: Tensor): ...
def bad_type(x: dict) -> Tensor: ...
def bad_result(x: Tensor) -> dict: ...
def bad_default(x: Tensor, n: Sequence[int] = ()) -> Tensor: ...


@pytest.mark.parametrize(
    "function, text",
    [
        (variadic, "We do not support positional-only args, varargs, or varkwargs"),
        (unannotated, "Parameter x must have a type annotation"),
        (no_result, "No return type annotation was provided"),
        (bad_type, "Parameter x has unsupported type"),
        (bad_result, "Return has unsupported type"),
        (bad_default, "Parameter n has an unsupported default value type"),
    ],
)
def test_functions_without_a_schema(function, text):
    with pytest.raises(ValueError, match=text):
        library.infer_schema(function, mutates_args=())


def test_parsed_schemas():
    schema = parse_schema(
        "ns::f.over(Tensor(a!) x, int[2] n=[1, 2], *, float s=-1.5, bool? b=None, str t='q') -> (Tensor, int)"
    )
    assert (schema.name, schema.overload_name) == ("ns::f", "over")
    assert [result.kind for result in schema.returns] == ["Tensor", "int"]
    assert [argument.default_value for argument in schema.arguments] == [None, [1, 2], -1.5, None, "q"]
    assert schema.is_mutable and [argument.kwarg_only for argument in schema.arguments] == [
        False,
        False,
        True,
        True,
        True,
    ]
    for text in ("f(Tensor x)", "f(Tensor) -> Tensor", "nothing"):
        with pytest.raises(RuntimeError, match="expected a"):
            parse_schema(text)


def test_libraries():
    lib = library.Library("test_lib", "DEF")
    assert lib.define("twice(Tensor x, int n=2) -> Tensor") == "twice"
    with pytest.raises(
        NotImplementedError, match="Could not run 'test_lib::twice' with arguments from the 'CPU' backend"
    ):
        torch.ops.test_lib.twice(torch.ones(1))
    lib.impl("twice", lambda x, n=2: x * n, "CPU")
    assert torch.ops.test_lib.twice(torch.ones(1), 3).item() == 3
    lib.impl("twice", lambda x, n=2: x.new_empty(x.shape), "Meta")
    assert torch.ops.test_lib.twice(torch.ones(4, device="meta")).shape == (4,)
    with pytest.raises(RuntimeError, match="with the same name and overload name multiple times"):
        lib.define("twice(Tensor x) -> Tensor")
    assert lib.define("twice.other(str x) -> str") == "twice.other"
    lib.impl("twice.other", lambda x: x * 2, "CompositeExplicitAutograd")
    assert torch.ops.test_lib.twice("a") == "aa" and torch.ops.test_lib.twice.other("b") == "bb"
    notes: list = []

    def outer(x, n=2):
        notes.append(n)
        return torch.ops.test_lib.twice.default(x, n) + 1

    lib.impl("twice", outer, "Autograd")
    assert torch.ops.test_lib.twice.default(torch.ones(1)).item() == 3 and notes == [2]
    lib._destroy()
    assert not hasattr(torch.ops.test_lib, "twice")
    assert repr(lib) == "Library(kind=DEF, ns=test_lib, dispatch_key=)>"
    with pytest.raises(ValueError, match="aten is a reserved namespace"):
        library.Library("aten", "DEF")
    with pytest.raises(ValueError):
        library.Library("test_lib", "BAD")
    with pytest.raises(TypeError, match="Input function is required to be a callable"):
        lib.impl("twice", 3, "CPU")


def test_definitions_by_name():
    library.define("test_names::inc", "(Tensor x) -> Tensor")

    @library.impl("test_names::inc", "default")
    def inc(x):
        return x + 1

    assert torch.ops.test_names.inc(torch.ones(1)).item() == 2
    library.register_autograd("test_names::inc", lambda ctx, grad: grad * 5)
    x = torch.ones(1, requires_grad=True)
    torch.ops.test_names.inc(x).backward()
    assert x.grad.item() == 5
    library.register_fake("test_names::inc")(lambda x: torch.empty_like(x))
    library.register_kernel("test_names::inc", "cpu", lambda x: x + 2)
    assert torch.ops.test_names.inc(torch.ones(1)).item() == 3
    for name in ("noname", "a::b::c", "::x"):
        with pytest.raises(ValueError, match='Expected `qualname` to be of the form "namespace::name"'):
            library.define(name, "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="operator test_names::none does not exist"):
        library.register_fake("test_names::none", lambda x: x)


def test_fake_functions_for_ops_of_a_library_that_could_not_be_loaded(monkeypatch):
    monkeypatch.setattr("cygrad.library.missed_libraries", [])
    monkeypatch.setattr("cygrad.ops.missed_libraries", library.missed_libraries)
    with pytest.raises(RuntimeError, match="operator absent_library::nms does not exist"):
        library.register_fake("absent_library::nms")
    with pytest.raises(OSError, match="Could not load this library: absent.so"):
        torch.ops.load_library("absent.so")

    @library.register_fake("absent_library::nms")
    def nms(boxes):
        return boxes.new_empty(0)

    assert nms(torch.ones(2)).shape == (0,)
    with pytest.raises(RuntimeError, match="operator aten_of_ours::add does not exist"):
        library.define("aten_of_ours::mul", "(Tensor x) -> Tensor")
        library.register_fake("aten_of_ours::add")


def test_checks():
    op = sine("checked")
    op.register_fake(lambda x, k=1.0: torch.empty_like(x))
    good = library.opcheck(op, (torch.ones(2, requires_grad=True),))
    assert set(good.values()) == {"SUCCESS"} and len(good) == 4

    @library.custom_op("test::liar", mutates_args=())
    def liar(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    liar.register_fake(lambda x: x.new_empty(7))
    with pytest.raises(library.OpCheckError, match="Argument x is not defined as mutable but was mutated"):
        library.opcheck(liar, (torch.ones(2),))
    found = library.opcheck(liar, (torch.ones(2),), raise_exception=False)
    assert "gives the shape" in str(found["test_faketensor"]) and found["test_aot_dispatch_dynamic"] == "SUCCESS"
    with pytest.raises(ValueError, match="expected test_utils to be subset"):
        library.opcheck(op, (torch.ones(1),), test_utils="bad")


def test_ops_of_functions():
    class Twice(torch._ops.HigherOrderOperator):
        def __init__(self):
            super().__init__("twice")

        def __call__(self, function, x):
            return super().__call__(function, x)

    twice = Twice()
    with pytest.raises(NotImplementedError, match="could not find kernel for HigherOrderOperator twice"):
        twice(torch.neg, torch.ones(1))

    @twice.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
    def plain(function, x):
        return function(function(x))

    assert torch.ops.higher_order.twice(lambda x: x * 3, torch.ones(1)).item() == 9
    assert torch._ops.OpOverload is torch.ops.OpOverload and twice.name() == str(twice) == "twice"


def test_one_library_owns_a_namespace_as_long_as_it_lives():
    owner = library.Library("owned", "DEF")
    library.Library("owned", "FRAGMENT").define("part(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY can be used to register the namespace owned"):
        library.Library("owned", "DEF")
    owner._destroy()
    library.Library("owned", "DEF")._destroy()


def test_decorators_take_a_library():
    lib = library.Library("decorated", "DEF")

    @library.define(lib, "plus(Tensor x) -> Tensor")
    def plus(x):
        return x + 1

    lib.define("twice(Tensor x) -> Tensor")

    @library.impl(lib, "twice", "CPU")
    def twice(x):
        return x * 2

    x = torch.ones(1)
    assert torch.ops.decorated.plus(x).item() == plus(x).item() == 2
    assert torch.ops.decorated.twice(x).item() == twice(x).item() == 2
    lib._destroy()


def test_kernels_end_with_their_library():
    owner = library.Library("ending", "DEF")
    owner.define("plus(Tensor x) -> Tensor")
    owner.impl("plus", lambda x: x + 1, "CPU")
    first, second, third = (library.Library("ending", kind) for kind in ("IMPL", "IMPL", "FRAGMENT"))
    first.impl("plus", lambda x: x + 10, "CPU")
    second.impl("plus", lambda x: x + 100, "CPU")
    library.register_fake("ending::plus", lambda x: x.new_empty(7), lib=second)
    third.define("minus(Tensor x) -> Tensor")
    plus, x = torch.ops.ending.plus, torch.zeros(1)
    assert plus(x).item() == 100 and plus(x.to("meta")).shape == (7,)
    del first
    assert plus(x).item() == 100  # the kernel that was registered last stays
    second._destroy()
    with pytest.raises(NotImplementedError, match="META"):
        plus(x.to("meta"))
    assert hasattr(torch.ops.ending, "minus")
    del third
    assert not hasattr(torch.ops.ending, "minus")
    owner._destroy()


def test_libraries_register_what_they_are_for():
    lib = library.Library("purposes", "DEF")
    lib.define("plus(Tensor x) -> Tensor")
    kernels = library.Library("purposes", "IMPL", "CPU")
    with pytest.raises(RuntimeError, match="Cannot define an operator inside of a TORCH_LIBRARY_IMPL block"):
        kernels.define("minus(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match=r"dispatch key \(CUDA\) is inconsistent with .* block \(CPU\)"):
        kernels.impl("plus", lambda x: x, "CUDA")
    with pytest.raises(RuntimeError, match=r"namespace \(other\) in operator name .* block \(purposes\)"):
        kernels.impl("other::plus", lambda x: x)
    assert not torch.ops.purposes.plus.default.kernels
    lib._destroy()


def test_changes_that_autograd_does_not_see_are_counted():
    @library.custom_op("test::sin_of_array", mutates_args={"x", "more"})
    def sin_(x: Tensor, more: list[Tensor | None], kept: Tensor) -> None:
        x.detach().numpy()[...] = 5

    y = torch.ones(2, requires_grad=True).exp()
    other, kept = torch.ones(2), torch.ones(2)
    sin_(y, [None, other], kept)
    assert (y._version, other._version, kept._version) == (1, 1, 0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        sin_(torch.ones(2), [], kept)


def test_ops_without_tensors_run_the_kernel_of_a_device():
    seen: list = []

    def ones(device: torch.device = "cpu") -> Tensor:
        seen.append(device)
        return torch.ones(1)

    op = library.custom_op("test::ones_on_cpu", ones, mutates_args=(), device_types="cpu")
    assert op().item() == op("cpu:0").item() == op(device=torch.device("cpu")).item() == 1
    assert seen == [torch.device("cpu"), torch.device("cpu:0"), torch.device("cpu")]
    with fails(RuntimeError, "ones_on_cpu does not have a kernel registered for cuda. Please use register_kernel..."):
        op(device="cuda")
    anywhere = library.custom_op("test::ones_anywhere", ones, mutates_args=())
    assert anywhere("meta").item() == 1 and seen[-1] == torch.device("meta")


def test_tensors_by_keyword_have_no_gradient():
    def scaled(x: Tensor, *, by: Tensor | None) -> Tensor:
        return x.clone()

    with fails(NotImplementedError, "custom_op with kwarg-only Tensor args. Please make your tensors..."):
        library.custom_op("test::scaled_by", scaled, mutates_args=())
    assert not hasattr(torch.ops.test, "scaled_by")
    lib = library.Library("by_keyword", "DEF")
    lib.define("f(Tensor x, *, Tensor[] by) -> Tensor")
    with fails(NotImplementedError, "register_autograd with kwarg-only Tensor args. In the original..."):
        library.register_autograd("by_keyword::f", lambda ctx, grad: grad)
    with fails(NotImplementedError, "register_vmap with kwarg-only Tensor args. In the original..."):
        library.register_vmap("by_keyword::f", lambda info, in_dims, x, by: (x, 0))
    lib._destroy()


@pytest.mark.parametrize(("given", "schema"), [((), "(Tensor(a!) x) -> ()"), ({"x"}, "(Tensor x) -> ()")])
def test_schemas_agree_with_mutates_args(given, schema):
    with pytest.raises(ValueError, match="which is different from what was provided to us in `mutates_args`"):
        library.custom_op("test::disagreeing", lambda x: None, mutates_args=given, schema=schema)
    assert not hasattr(torch.ops.test, "disagreeing")


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("float", 3, 3.0),
        ("float", torch.tensor(2), 2.0),
        ("int", torch.tensor(2), 2),
        ("Device", "cpu", torch.device("cpu")),
        ("Device?", None, None),
        ("int[]", (1, 2), [1, 2]),
        ("int[2]", 4, [4, 4]),
        ("int[2]?", 4, [4, 4]),
        ("float[]", (1, 2.5), [1.0, 2.5]),
        ("bool", True, True),
        ("Scalar", 2, 2),
    ],
)
def test_kernels_get_values_of_the_types_in_the_schema(kind, given, expected):
    seen: list = []
    lib = library.Library("types", "DEF")
    lib.define(f"f({kind} value) -> ()")
    lib.impl("f", lambda value: seen.append(value), "CPU")
    torch.ops.types.f(given)
    lib._destroy()
    assert seen == [expected] and type(seen[0]) is type(expected)
    assert not isinstance(expected, list) or list(map(type, seen[0])) == list(map(type, expected))


@pytest.mark.parametrize("schema", ["f(Tenso x) -> Tensor", "f(Tensor x, Tenso y) -> Tensor", "f(Tensor x) -> Tenso"])
def test_types_that_schemas_do_not_know(schema):
    with pytest.raises(RuntimeError, match="^\nunknown type specifier") as caught:
        parse_schema(schema)
    line, marks = str(caught.value).splitlines()[2:4]
    assert line == schema and line[marks.index("~") :].startswith("Tenso") and marks.count("~") == 5


def test_kernels_without_a_gradient_of_their_own_are_recorded():
    lib = library.Library("test_recorded", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    lib.define("double_(Tensor(a!) x) -> ()")
    lib.impl("double_", lambda x: (x.mul_(2), None)[1], "CPU")
    x = torch.ones(2, requires_grad=True)
    ops = torch.ops.test_recorded
    assert torch.autograd.grad(ops.twice(x).sum(), x)[0].tolist() == [2, 2]
    y = x * 3
    assert ops.double_(y) is None
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [6, 6]
    library.register_autograd("test_recorded::twice", lambda ctx, grad: grad * 5)
    assert torch.autograd.grad(ops.twice(x).sum(), x)[0].tolist() == [5, 5]


def test_kernels_return_what_the_schema_says():
    lib = library.Library("test_returns", "DEF")
    lib.define("double_(Tensor(a!) x) -> ()")
    lib.impl("double_", lambda x: x.mul_(2), "CPU")
    with fails(RuntimeError, "Expected PythonKernelHolder for test_returns::double_ to return None but it returned..."):
        torch.ops.test_returns.double_(torch.ones(2))


def test_wrong_dispatch_keys():
    lib = library.Library("test_keys", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    for key in ("Foo", "cpu"):
        with fails(RuntimeError, f"could not parse dispatch key: {key}"):
            lib.impl("f", torch.relu, key)
    with fails(TypeError, "a dispatch key is the name of one, but got 3"):
        lib.impl("f", torch.relu, 3)
    for register in (library.impl, library.register_kernel):
        with fails(RuntimeError, "Expected one of cpu, cuda, ... device type at start of device string: Foo"):
            register("test_keys::f", "Foo", torch.relu)
    with fails(ValueError, "Unsupported kind: FOO"):
        library.Library("test_keys", "FOO")
