"""Custom functions under `vmap`."""

import collections
import warnings

import pytest

import cygrad as torch
from cygrad import func
from helpers import fails

pytestmark = pytest.mark.filterwarnings("error")


class Scaled(torch.autograd.Function):
    """k x**2, computed with NumPy."""

    calls: list = []

    @staticmethod
    def forward(x, k):
        return torch.from_numpy(x.detach().numpy() ** 2) * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0] * 2)
        ctx.save_for_forward(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * ctx.k, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * 2 * ctx.saved_tensors[0] * ctx.k

    @staticmethod
    def vmap(info, in_dims, x, k):
        Scaled.calls.append((info.batch_size, info.randomness, in_dims))
        return Scaled.apply(x, k), in_dims[0]


class Generated(torch.autograd.Function):
    """(k x**2, the sum of x)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, k):
        return x * x * k, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0] * 2)
        ctx.save_for_forward(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, grad, grad_of_sum):
        return grad * ctx.saved_tensors[0] * ctx.k + grad_of_sum, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * 2 * ctx.saved_tensors[0] * ctx.k, tangent.sum()


TWO = "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure ..."
X = torch.tensor([[1.0, -2.0], [3.0, 0.5], [-1.0, 4.0]])


def by_hand(x):
    return 3 * x**2


def scaled(x):
    return Scaled.apply(x, 3.0)


def generated(x):
    return Generated.apply(x, 3.0)[0]


@pytest.mark.parametrize("f", [scaled, generated])
@pytest.mark.parametrize(
    "use",
    [
        lambda f: func.vmap(f)(X),
        lambda f: func.vmap(f, out_dims=1)(X) * 2,
        lambda f: func.vmap(func.vmap(f))(X[None]),
        lambda f: func.vmap(func.grad(lambda x: f(x).sum()))(X),
        lambda f: func.vmap(func.jacrev(f))(X),
        lambda f: func.vmap(func.grad(lambda x: f(x * x).sin().sum()))(X),
        lambda f: func.vmap(lambda x: func.jvp(f, (x,), (x + 1,))[1])(X),
        lambda f: func.vmap(f)(X[:0]),
        lambda f: func.jacfwd(f)(X[0]),
    ],
)
def test_transforms_agree_with_the_formula(f, use):
    assert torch.allclose(use(f), use(by_hand))


def test_vmap_is_called_with_all_samples():
    Scaled.calls.clear()
    func.vmap(Scaled.apply, in_dims=(0, None), randomness="same")(X, 2.0)
    assert Scaled.calls == [(3, "same", (0, None))]


def test_a_function_of_samples_is_differentiated_outside():
    x = X.clone().requires_grad_()
    func.vmap(lambda a: scaled(a).sin())(x).sum().backward()
    assert torch.allclose(x.grad, (3 * X**2).cos() * 6 * X)
    assert torch.allclose(func.jvp(func.vmap(scaled), (X,), (X,))[1], 6 * X * X)


def test_what_a_generated_rule_can_not_differentiate_outside_goes_sample_by_sample():
    x = X.clone().requires_grad_()
    with pytest.warns(UserWarning, match="batching rule for aten::GeneratedBackward"):
        func.vmap(generated)(x).sum().backward()
    assert torch.equal(x.grad, 6 * X)
    with pytest.warns(UserWarning, match="batching rule for aten::GeneratedBackward"):
        found = func.jvp(func.vmap(generated), (X,), (X,))
    assert torch.equal(found[1], 6 * X * X)


def test_a_generated_rule_differentiates_what_has_no_samples():
    class Product(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    factor, y = torch.tensor(2.0, requires_grad=True), torch.arange(3.0)
    with pytest.warns(UserWarning, match="batching rule for aten::ProductBackward"):
        out = func.vmap(lambda y: Product.apply(factor, y) * factor)(y)
    assert torch.autograd.grad(out.sum(), factor)[0].item() == 12
    with torch.no_grad():
        assert func.vmap(lambda y: Product.apply(factor, y))(y).tolist() == [0, 2, 4]


def test_outputs_without_samples_and_along_other_dimensions():
    class Turned(Scaled):
        @staticmethod
        def vmap(info, in_dims, x, k):
            return Scaled.apply(x, k).t(), 1

    class Same(Scaled):
        @staticmethod
        def vmap(info, in_dims, x, k):
            return x[0], None

    assert torch.equal(func.vmap(lambda x: Turned.apply(x, 1.0))(X), X**2)
    assert torch.equal(func.vmap(lambda x: Same.apply(x, 1.0), out_dims=None)(X), X[0])


def test_errors():
    class Both(Scaled):
        generate_vmap_rule = True

    class Alone(Scaled):
        @staticmethod
        def vmap(info, in_dims, x, k):
            return x

    class Three(Scaled):
        @staticmethod
        def vmap(info, in_dims, x, k):
            return x, 0, 0

    class TooMany(Scaled):
        @staticmethod
        def vmap(info, in_dims, x, k):
            return x, (0, 0)

    with fails(RuntimeError, "You tried to vmap over Both, but it has both generate_vmap_rule=True and an ..."):
        func.vmap(lambda x: Both.apply(x, 1.0))(X)
    with fails(RuntimeError, TWO):
        func.vmap(lambda x: Alone.apply(x, 1.0))(X)
    with fails(RuntimeError, TWO):
        func.vmap(lambda x: Three.apply(x, 1.0))(X)
    with fails(
        RuntimeError,
        "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
        "out_dims=(0, 0) to be compatible with the structure of `output`.",
    ):
        func.vmap(lambda x: TooMany.apply(x, 1.0))(X)

    class Listed(Scaled):
        @staticmethod
        def vmap(info, in_dims, x, k):
            return (x if k else [x]), (0,)

    for k in (0.0, 1.0):
        with fails(
            RuntimeError,
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            "out_dims=(0,) to be compatible with the structure of `output`.",
        ):
            func.vmap(lambda x, k=k: Listed.apply(x, k))(X)
    with fails(NotImplementedError, "To use autograd.Function with vmap, you must either override the vmap ..."):
        torch.autograd.Function.vmap(None, (0,), X)
    assert torch.equal(func.vmap(scaled)(X), by_hand(X))  # still works after the errors


class Times(torch.autograd.Function):
    """k x, with the scalar as the first argument."""

    @staticmethod
    def forward(ctx, k, x):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        return None, grad * ctx.k


def test_arguments_that_are_no_tensors_may_stand_first():
    x = torch.arange(6.0).view(3, 2)
    with pytest.warns(UserWarning, match="batching rule for aten::TimesBackward"):
        assert torch.vmap(lambda row: Times.apply(2.0, row))(x).equal(2 * x)
    with pytest.warns(UserWarning, match="batching rule for aten::TimesBackward"):
        assert torch.vmap(func.grad(lambda row: Times.apply(2.0, row).sum()))(x).equal(torch.full((3, 2), 2.0))
    assert torch.vmap(lambda row: row + Times.apply(2.0, torch.ones(2)))(x).equal(x + 2)


class Summed(torch.autograd.Function):
    """The sum of a tensor and of the tensors in a container."""

    @staticmethod
    def forward(x, more):
        return x + sum(more.values() if isinstance(more, dict) else more)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class SummedByRule(Summed):
    generate_vmap_rule = True


class SummedAtOnce(Summed):
    seen: list = []

    @staticmethod
    def vmap(info, in_dims, x, more):
        SummedAtOnce.seen.append(in_dims)
        return Summed.forward(x, more), 0


class SummedInOneStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, more):
        return Summed.forward(x, more)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


Pair = collections.namedtuple("Pair", "first second")
CONTAINERS = [
    lambda *x: list(x),
    lambda *x: x,
    Pair,
    lambda *x: {"a": x[0], "b": x[1]},
    lambda *x: collections.deque(x),
    lambda *x: collections.OrderedDict(a=x[0], b=x[1]),
]


@pytest.mark.parametrize("pack", CONTAINERS)
@pytest.mark.parametrize("f", [Summed, SummedByRule, SummedAtOnce, SummedInOneStep])
def test_tensors_in_containers_have_samples(f, pack):
    x, y = torch.arange(3.0, requires_grad=True), torch.arange(3.0) * 10
    fixed = torch.ones((), requires_grad=True)
    with warnings.catch_warnings(action="ignore"):  # some run once for each sample
        assert func.vmap(lambda x, y: f.apply(x, pack(y, y + 1)))(x, y).tolist() == [1, 22, 43]
        out = func.vmap(lambda y: f.apply(fixed, pack(y, torch.ones(()))))(y)
    assert out.tolist() == [2, 12, 22] and torch.autograd.grad(out.sum(), fixed)[0].item() == 3


def test_in_dims_are_nested_like_arguments():
    SummedAtOnce.seen.clear()
    func.vmap(lambda x, y: SummedAtOnce.apply(x, [y, torch.ones(()), 2]))(torch.ones(2), torch.ones(2))
    func.vmap(lambda y: SummedAtOnce.apply(torch.ones(()), Pair(1.0, y)))(torch.ones(2))
    assert SummedAtOnce.seen == [(0, [0, None, None]), (None, Pair(None, 0))]


def test_in_dims_of_shapes_and_results_of_ops():
    SummedAtOnce.seen.clear()
    extremes = torch.arange(4.0).reshape(2, 2).max(0)
    assert func.vmap(lambda x: SummedAtOnce.apply(x, torch.Size([1, 2])))(torch.ones(2)).tolist() == [4, 4]
    assert func.vmap(lambda x: SummedAtOnce.apply(x, extremes))(torch.ones(2)).tolist() == [4, 5]
    (_, of_shape), (_, of_result) = SummedAtOnce.seen
    assert of_shape == (None, None) and of_result.values is None and type(of_result) is type(extremes)


def test_samples_inside_vmap():
    from cygrad._C._functorch import _add_batch_dim, _remove_batch_dim, maybe_get_level
    from cygrad._functorch.vmap import _maybe_remove_batch_dim

    x, y = torch.arange(3.0), torch.arange(6.0).reshape(2, 3)

    def function(sample):
        level = maybe_get_level(sample)
        assert _remove_batch_dim(sample * 2, level, 3, 0).tolist() == [0.0, 2.0, 4.0]
        column = _add_batch_dim(y, 1, level)
        assert column.shape == (2,) and torch.equal(_remove_batch_dim(column, level, 3, -1), y)
        same = torch.ones(2)
        assert _maybe_remove_batch_dim("f", same, level, 3, 0).shape == (3, 2)
        assert _maybe_remove_batch_dim("f", same, level, 3, None) is same
        with pytest.raises(ValueError, match="must only return Tensors, got type <class 'int'>"):
            _maybe_remove_batch_dim("f", 3, level, 3, 0)
        with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
            _maybe_remove_batch_dim("f", sample, level, 3, None)
        return sample + column.sum()

    assert torch.func.vmap(function)(x).tolist() == [3.0, 6.0, 9.0]
    with pytest.raises(RuntimeError, match="level 1 is not that of a running vmap"):
        _add_batch_dim(x, 0, 1)
