"""`cygrad.func`: nested transforms, and cases PyTorch leaves undefined."""

import itertools

import pytest

import cygrad as torch
from cygrad import func
from cygrad._functorch import make_functional
from helpers import fails

X = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
V = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64)


def energy(x):
    return (torch.sin(x) * x**2).sum() + x.prod()


def hessian_of_energy():
    x = X.clone().requires_grad_()
    (g,) = torch.autograd.grad(energy(x), x, create_graph=True)
    return torch.stack([torch.autograd.grad(part, x, retain_graph=True)[0] for part in g])


WAYS = [func.jacrev, func.jacfwd]


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(WAYS, WAYS)))
def test_jacobians_nest(outer, inner):
    assert torch.allclose(outer(inner(energy))(X), hessian_of_energy())
    third = func.jacrev(outer(inner(energy)))(X)
    assert torch.allclose(third, torch.autograd.functional.jacobian(func.hessian(energy), X))


def test_products_with_the_hessian():
    expected = hessian_of_energy() @ V
    assert torch.allclose(func.jvp(func.grad(energy), (X,), (V,))[1], expected)
    assert torch.allclose(func.vjp(func.grad(energy), X)[1](V)[0], expected)
    assert torch.allclose(func.grad(lambda x: func.jvp(energy, (x,), (V,))[1])(X), expected)
    assert torch.allclose(func.linearize(func.grad(energy), X)[1](V), expected)
    twice = func.jvp(lambda x: func.jvp(energy, (x,), (V,))[1], (X,), (V,))[1]
    assert torch.allclose(twice, V @ expected)


def test_inside_and_outside_are_told_apart():
    """The derivative of x * d/dy (x * y) at y = x is that of x * x, not of x * 1."""
    two = torch.tensor(2.0)
    for d in (func.grad, lambda f: lambda x: func.jvp(f, (x,), (torch.ones(()),))[1]):
        for e in (func.grad, lambda f: lambda x: func.jvp(f, (x,), (torch.ones(()),))[1]):
            assert d(lambda x, e=e: x * e(lambda y: x * y)(x))(two) == 4


def test_history_only_if_something_outside_has_one():
    w = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    for f, recorded in ((energy, False), (lambda x: energy(x * w), True)):
        assert func.grad(f)(X).requires_grad is recorded
        assert func.jacrev(f)(X).requires_grad is recorded
        assert func.jacfwd(f)(X).requires_grad is recorded
        value, product = func.vjp(f, X)
        assert value.requires_grad is recorded and product(torch.ones_like(value))[0].requires_grad is recorded
        assert func.jvp(f, (X,), (V,))[1].requires_grad is recorded
    (found,) = torch.autograd.grad(func.grad(lambda x: (x * w) @ V)(X).sum(), w)
    assert found == V.sum()
    assert not func.grad(func.grad(lambda x: x**3))(torch.tensor(2.0)).requires_grad
    assert not X.requires_grad and X.grad is None


def test_no_level_stays_open_after_an_error():
    with pytest.raises(ZeroDivisionError):
        func.jvp(lambda x: 1 / 0, (X,), (V,))
    with torch.autograd.forward_ad.dual_level():
        pass


def test_vmap_of_transforms():
    batch = torch.stack([X, V])
    assert torch.allclose(torch.vmap(func.grad(energy))(batch), torch.stack([func.grad(energy)(x) for x in batch]))
    assert torch.allclose(torch.vmap(func.hessian(energy))(batch)[0], hessian_of_energy())
    derivative = func.jvp(torch.vmap(energy), (batch,), (batch,))[1]
    assert torch.allclose(derivative, torch.stack([func.grad(energy)(x) @ x for x in batch]))


def test_vmap_draws_random_numbers_as_told():
    zeros = torch.zeros(3, 2)
    same = torch.vmap(lambda x: x + torch.rand(2), randomness="same")(zeros)
    different = torch.vmap(lambda x: x + torch.rand(2), randomness="different")(zeros)
    assert torch.equal(same[0], same[2]) and not torch.equal(different[0], different[2])
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(lambda x: x + torch.rand(2))(zeros)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_ensemble_has_the_same_parameters_frozen():
    models = [torch.nn.Linear(2, 2) for _ in range(2)]
    models[1].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="^Expected weight from each model to have the same .requires_grad"):
        func.stack_module_state(models)


def test_functional_modules_share_what_the_module_shares():
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = self.same = torch.nn.Parameter(torch.ones(1))
            self.buffer = torch.nn.Buffer(torch.ones(1))
            self.register_buffer("alias", self.buffer)

        def forward(self, x):
            return x + self.bias + self.same + self.buffer + self.alias

    call, params, buffers = make_functional.make_functional_with_buffers(Shared())
    assert len(params) == len(buffers) == 1 and all(p.is_meta for p in call.stateless_model.parameters())
    assert call((torch.tensor(10.0),), (torch.tensor(100.0),), torch.zeros(())).item() == 220


def test_an_ensemble_of_modules():
    models = [torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()).double() for _ in range(4)]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["0.weight"].shape == (4, 2, 3) and parameters["0.weight"].is_leaf and not buffers

    def call(parameters, x):
        return func.functional_call(models[0], parameters, (x,))

    found = torch.vmap(call, in_dims=(0, None))(parameters, X)
    assert torch.allclose(found, torch.stack([model(X) for model in models]))
    found.sum().backward()
    models[2](X).sum().backward()
    assert torch.allclose(parameters["0.weight"].grad[2], models[2][0].weight.grad)
    by_name = func.grad(lambda p: call(p, X).sum())(dict(models[2].named_parameters()))
    assert torch.allclose(by_name["0.weight"], models[2][0].weight.grad)


def counted(x, calls):
    """Return `x`, recording each gradient that passes through."""
    y = x * 1
    y.register_hook(lambda g: calls.append(g.shape))
    return y


def test_jacobians_take_one_pass():
    calls = []
    whole = torch.autograd.functional.jacobian(lambda x: counted(x, calls) ** 2, X, vectorize=True)
    assert calls == [X.shape] and torch.allclose(whole, torch.diag(2 * X.reshape(-1)).view(*X.shape, *X.shape))
    calls.clear()
    assert torch.allclose(func.jacrev(lambda x: counted(x, calls) ** 2)(X), whole) and len(calls) == 1
    calls.clear()
    func.jacrev(lambda x: counted(x, calls) ** 2, chunk_size=X.numel() - 1, _preallocate_and_copy=True)(X)
    assert len(calls) == 2
    assert torch.allclose(func.jacfwd(lambda x: x**2)(X), whole)


def test_batched_gradients_free_the_graph():
    x = X.clone().requires_grad_()
    y = x.exp()
    rows = torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape)
    found = torch.autograd.grad(y, x, rows, is_grads_batched=True, retain_graph=True)[0]
    assert torch.allclose(found, rows * y) and not found.requires_grad
    assert torch.autograd.grad(y, x, rows, is_grads_batched=True)[0].equal(found)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x, rows, is_grads_batched=True)


def test_gradients_of_samples_of_a_network():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    inputs, targets = torch.randn(5, 2, dtype=torch.float64), torch.randn(5, 1, dtype=torch.float64)

    def loss(parameters, x, y):
        return ((func.functional_call(net, parameters, (x,)) - y) ** 2).mean()

    found = torch.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, inputs, targets)
    for i in range(5):
        expected = func.grad(loss)(parameters, inputs[i], targets[i])
        assert all(torch.allclose(found[name][i], expected[name]) for name in parameters)


def test_a_missing_rule_warns_and_takes_one_sample_after_the_other():
    with pytest.warns(UserWarning, match="batching rule for aten::embedding_bag"):
        assert torch.vmap(_mean_of_rows)(torch.rand(3, 4, 2)).shape == (3, 1, 2)


def _mean_of_rows(table):
    return torch.nn.functional.embedding_bag(torch.tensor([[0, 2]]), table)


def test_what_was_changed_can_not_be_started_again():
    with pytest.raises(RuntimeError, match="has already changed one of its arguments in place"):
        torch.vmap(lambda x: _mean_of_rows(x.add_(1)))(torch.rand(3, 4, 2))


def test_values_read_without_an_op_are_noticed():
    x = torch.tensor([[5, 7], [1, 2]])
    with pytest.warns(UserWarning, match="batching rule for aten::equal"):
        found = torch.vmap(lambda x: x * torch.equal(x, torch.tensor([1, 2])))(x)
    assert found.tolist() == [[0, 0], [1, 2]]


def test_the_function_that_read_values_is_named(monkeypatch):
    x, offsets = torch.tensor([[0, 1, 1], [1, 0, 0]]), torch.tensor([0, 2])
    table = torch.rand(2, 4)
    with monkeypatch.context() as patch:
        patch.setattr("cygrad._ops.elementwise.logic.check_unbatched", lambda *_: None)
        with pytest.warns(UserWarning, match=r"batching rule for aten::equal\n  it read a tensor of shape \(4,\)"):
            torch.vmap(lambda x: torch.ones(2) * torch.equal(x, table[0]))(table)
    with pytest.warns(UserWarning, match="batching rule for aten::embedding_bag"):
        torch.vmap(lambda i: torch.nn.functional.embedding_bag(i, table, offsets) * i.sum())(x)


def test_after_an_error_no_batch_is_open():
    with pytest.raises(ZeroDivisionError):
        torch.vmap(lambda x: 1 / 0)(X)
    assert X.sum().item() == X.sum().item() and not forward_levels()


def forward_levels():
    from cygrad._core.transforms import forward_mode

    return forward_mode.levels()


def in_place(name):
    """A function that overwrites a tensor needed by backward, and an equivalent one that does not."""

    def divided(x):
        y = x.exp()
        return y.div_(y.sum())

    def squared(x):
        y = x.sin()
        y.mul_(y)
        return y.mul_(y.view(3)) + y.norm()

    def softmax(x):
        y = x * 2
        y.sub_(y.max()).exp_()
        return y.div_(y.sum()).sqrt_()

    return {
        "divided": (divided, lambda x: x.softmax(0)),
        "squared": (squared, lambda x: x.sin() ** 4 + (x.sin() ** 4).norm()),
        "softmax": (softmax, lambda x: (x * 2).softmax(0).sqrt()),
    }[name]


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # a loop copies for one sample after another
@pytest.mark.parametrize("name", ["divided", "squared", "softmax"])
def test_forward_derivatives_of_functions_that_overwrite(name):
    changing, plain = in_place(name)
    expected = func.jacrev(plain)(X)
    assert torch.allclose(func.jacfwd(changing)(X), expected)
    assert torch.allclose(func.jvp(changing, (X,), (V,))[1], expected @ V)
    output, product = func.linearize(changing, X)
    assert torch.allclose(output, plain(X)) and torch.allclose(product(V), expected @ V)
    assert torch.allclose(func.jacfwd(func.jacfwd(changing))(X), func.hessian(plain)(X))
    batch = torch.stack([X, X * 2])
    assert torch.allclose(func.vmap(func.jacfwd(changing))(batch), func.vmap(func.jacrev(plain))(batch))
    for transform in (func.grad(lambda x: changing(x).sum()), func.jacrev(changing), func.hessian(changing)):
        with pytest.raises(torch.errors.ChangedInPlaceError):
            transform(X)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        assert torch.allclose(func.jacrev(changing)(X), expected)
        x = X.clone().requires_grad_()
        changing(x).sum().backward()
    assert torch.allclose(x.grad, expected.sum(0))


def test_a_function_that_overwrites_draws_the_same_numbers_again():
    masks = []

    def dropped(x):
        y = x.exp()
        masks.append(torch.rand(3, dtype=x.dtype))
        return y.mul_(masks[-1]).div_(y.sum())

    func.jacfwd(dropped)(X)
    assert len(masks) == 2 and torch.equal(*masks)


@pytest.mark.parametrize("name", ["sin", "square", "exp", "tanh", "sigmoid", "softplus"])
@pytest.mark.parametrize("inner", WAYS)
def test_tangents_of_a_jacobian(name, inner):
    function = getattr(torch.nn.functional if name == "softplus" else torch, name)
    expected = func.jacrev(func.jacrev(function))(X) @ V
    assert expected.any()
    assert torch.allclose(func.jvp(inner(function), (X,), (V,))[1], expected)
    assert torch.allclose(func.linearize(inner(function), X)[1](V), expected)
    with torch.autograd.forward_ad.dual_level():
        dual = inner(function)(torch.autograd.forward_ad.make_dual(X, V))
        assert torch.allclose(torch.autograd.forward_ad.unpack_dual(dual).tangent, expected)


@pytest.mark.parametrize("function", [torch.tanh, torch.sigmoid, lambda x: x.tanh().tanh(), lambda x: x.tanh().log1p()])
def test_third_derivatives_by_every_way(function):
    first = func.grad(lambda x: function(x).sum())
    expected = func.jacrev(func.jacrev(first))(X) @ V
    for inner in WAYS:
        assert torch.allclose(func.jvp(inner(first), (X,), (V,))[1], expected)
        for outer in WAYS:
            assert torch.allclose(outer(inner(first))(X) @ V, expected)


def test_views_made_in_no_grad_keep_their_tangents():
    x = X.clone().requires_grad_()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, V)
        with torch.no_grad():
            products = torch.vmap(lambda row: row * dual.tanh())(torch.eye(3, dtype=X.dtype))
            product = dual.view(3, 1).expand(3, 2) * 3
        expected = torch.diag(V * (1 - X.tanh() ** 2))
        assert torch.allclose(torch.autograd.forward_ad.unpack_dual(products).tangent, expected)
        assert torch.allclose(torch.autograd.forward_ad.unpack_dual(product).tangent[:, 0], 3 * V)


def test_no_grad_is_nothing_to_forward_mode():
    cube = torch.no_grad()(lambda x: (x**3).sum())

    def paused(x):
        with torch.set_grad_enabled(False):
            y = x.exp()
        return y * x

    expected = func.jacrev(lambda x: x.exp() * x)(X)
    assert torch.allclose(func.jacfwd(cube)(X), 3 * X**2)
    assert torch.allclose(func.linearize(cube, X)[1](V), (3 * X**2 * V).sum())
    assert torch.allclose(func.jacfwd(paused)(X), expected)
    assert torch.allclose(func.jvp(paused, (X,), (V,))[1], expected @ V)
    assert torch.allclose(func.jacfwd(func.grad(lambda x: (x**2).sum() + cube(x)))(X), 2 * torch.eye(3).double())


def test_a_number_of_each_sample_as_an_index():
    rows, places = torch.arange(6.0).reshape(2, 3), torch.tensor([2, 0], dtype=torch.int16)

    def written(row, i):
        row = row.clone()
        row[i] = -1
        return row

    assert torch.vmap(lambda row, i: row[i])(rows, places).tolist() == [2, 3]
    assert torch.vmap(lambda i: rows[:, i])(places).tolist() == [[2, 5], [0, 3]]
    assert torch.vmap(written)(rows, places).tolist() == [[0, 1, -1], [-1, 4, 5]]
    assert torch.vmap(lambda row, i: row[i], in_dims=(0, None))(rows, torch.tensor(1)).tolist() == [1, 4]
    gradients = torch.vmap(func.grad(lambda row, i: row[i] ** 2))(rows, places)
    assert gradients.tolist() == [[0, 0, 4], [6, 0, 0]]
    for mask in (torch.tensor([True, False]), torch.tensor([1, 0], dtype=torch.uint8)):
        with pytest.raises(RuntimeError, match="^vmap: We do not support batching operators that can support dynamic"):
            torch.vmap(lambda row, b: row[b].sum())(rows, mask)


def test_outputs_without_derivatives():
    def function(x):
        return {"values": x * 2, "place": x.argmax(), "signs": x > 0}

    x = torch.tensor([1.0, 3.0])
    for found in (torch.func.jacfwd(function)(x), torch.func.jacfwd(torch.func.vmap(function))(x[None])):
        assert found["values"].squeeze().tolist() == [[2, 0], [0, 2]]
        assert not found["place"].any() and found["place"].dtype is torch.int64
        assert not found["signs"].any() and found["signs"].dtype is torch.bool
    products = torch.func.linearize(function, x)[1](torch.ones(2))
    assert products["values"].tolist() == [2, 2] and products["place"].item() == 0
    for run in (lambda: torch.func.vjp(function, x), lambda: torch.func.jacrev(function)(x)):
        with fails(RuntimeError, "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got ..."):
            run()


def _add_to_part(r):
    r[1:].add_(5.0)
    r[0].mul_(r[2])
    return r


def _scale_view(r):
    r.view(3).mul_(2)
    return r[1:]


@pytest.mark.parametrize("change", [_add_to_part, _scale_view])
def test_tangents_of_views_changed_in_place_are_those_of_each_sample(change):
    rows = torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])

    def product(x, v):
        return func.jvp(lambda x: change(x * 1), (x,), (v,))[1]

    expected = [product(row, 2 * row) for row in rows]
    assert torch.equal(func.vmap(product)(rows, 2 * rows), torch.stack(expected))
    assert torch.equal(func.vmap(product, in_dims=(None, 0))(rows[1], rows)[1], product(rows[1], rows[1]))


def test_tangents_of_what_changes_in_place_inside_of_two_levels():
    x = torch.tensor([[[1.0, 2.0], [10.0, 20.0]], [[3.0, 4.0], [30.0, 40.0]]])

    def squared(x):
        r = x * 1
        r.mul_(x)
        return r

    def product(x):
        return func.jvp(squared, (x,), (torch.ones_like(x),))[1]

    assert torch.equal(func.vmap(func.vmap(product))(x), 2 * x)
    value, change = func.jvp(func.vmap(func.vmap(product)), (x,), (x,))
    assert torch.equal(value, 2 * x) and torch.equal(change, 2 * x)
    assert torch.equal(func.vmap(lambda x: func.jvp(product, (x,), (x,))[1])(x), 2 * x)


# -- rearrange -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "lengths", "expected"),
    [
        ("b c d -> d b c", {}, lambda x: x.permute(2, 0, 1)),
        ("b c d -> b (d c)", {}, lambda x: x.transpose(1, 2).reshape(2, 12)),
        ("b (c k) d -> (b k) c d", {"k": 2}, lambda x: x.view(2, 2, 2, 3).transpose(1, 2).reshape(4, 2, 3)),
        ("b (c k) d -> b c k d", {"c": 4, "k": 1}, lambda x: x.unsqueeze(2)),
        ("b ... -> ... b", {}, lambda x: x.permute(1, 2, 0)),
        ("b ... -> b (...)", {}, lambda x: x.flatten(1)),
        ("... d -> d () (...)", {}, lambda x: x.reshape(8, 3).T.unsqueeze(1)),
        ("b c d -> b 1 c (d 1)", {}, lambda x: x.unsqueeze(1)),
        ("… d -> d …", {}, lambda x: x.movedim(2, 0)),
    ],
)
def test_rearrange(pattern, lengths, expected):
    x = torch.arange(24.0).reshape(2, 4, 3)
    assert torch.equal(func.rearrange(x, pattern, **lengths), expected(x))
    for stacked in ([x, -x], (x, -x)):
        found = func.rearrange(stacked, "first " + pattern.replace("->", "-> first"), **lengths)
        assert torch.equal(found[1], expected(-x))
    assert torch.equal(func.vmap(lambda row: func.rearrange(row, "a b -> (b a)"))(x), x.transpose(1, 2).flatten(1))


def test_a_rearranged_tensor_is_a_view_where_it_can_be_and_has_a_gradient():
    x = torch.zeros(2, 6)
    func.rearrange(x, "a (b c) -> c b a", b=3)[1, 0, 0] = 1
    assert x[0].tolist() == [0, 1, 0, 0, 0, 0]
    g = func.grad(lambda x: (func.rearrange(x, "a b -> (b a)") * torch.arange(4.0)).sum())(torch.ones(2, 2))
    assert g.tolist() == [[0, 2], [1, 3]]
    assert func.rearrange(torch.tensor(3.0), "-> 1").tolist() == [3]
    assert func.rearrange(torch.zeros(0, 3), "(a c) b -> a c b", a=2).shape == (2, 0, 3)


@pytest.mark.parametrize(
    ("pattern", "lengths", "line"),
    [
        ("b c", {}, "Pattern must contain a single '->' separator"),
        ("b c -> b", {}, "Identifiers only on one side of rearrange expression (should be on both): {'c'}"),
        (
            "b -> b",
            {},
            "Number of dimensions in pattern (1) must be equal to the number of dimensions in the tensor (2)",
        ),
        (
            "b c d ... -> d c b ...",
            {},
            "Number of dimensions in pattern (3) must be less than or equal to the number ...",
        ),
        ("b b -> b b", {}, "Indexing expression contains duplicate dimension 'b'"),
        ("(b c -> b c", {}, "Imbalanced parentheses in expression: '(b c '"),
        ("b c) -> b c", {}, "Brackets are not balanced"),
        ("((b) c) -> b c", {}, "Axis composition is one-level (brackets inside brackets not allowed)"),
        ("b c -> b c", {"d": 3}, "Identifiers not found in rearrange expression: {'d'}"),
        ("b 1c -> b 1c", {}, "Invalid axis identifier: 1c"),
        ("b _c -> b _c", {}, "Invalid axis identifier: _c"),
        ("b-c d -> d b-c", {}, "Unknown character '-'"),
        ("b c -> ... b c", {}, "Ellipsis found in right side, but not left side of a pattern b c -> ... b c"),
        ("b (...) -> b ...", {}, "Ellipsis is parenthesis in the left side is not allowed: b (...) -> b ..."),
        ("b ... ... -> b ...", {}, "Expression may contain dots only inside ellipsis (...); only one ellipsis for ..."),
        (".. b -> b", {}, "Expression may contain dots only inside ellipsis (...)"),
        ("b c -> b 2 c", {}, "rearrange only supports unnamed axes of size 1"),
        ("b (c d) -> b c d", {}, "cannot infer the sizes of two dimensions at once c and d"),
        ("b (c d) -> b c d", {"c": 3}, "inferred dimension does not evenly fit into larger dimension: 4 vs (3, '?')"),
        ("b (c d) -> b c d", {"c": 0}, "inferred dimension does not evenly fit into larger dimension: 4 vs (0, '?')"),
        ("b c -> b c", {"b": 3}, "Dimension sizes to do not match (2 != 3) when matching dimension pack ('b',)"),
        ("b 1 -> b", {}, "Dimension sizes to do not match (4 != 1) when matching dimension pack ()"),
    ],
)
def test_patterns_that_do_not_fit(pattern, lengths, line):
    with fails(ValueError, line):
        func.rearrange(torch.ones(2, 4), pattern, **lengths)
    with fails(TypeError, "rearrange axis lengths must be integers, got: <class 'str'>"):
        func.rearrange(torch.ones(2, 4), "b c -> b c", b="2")


def test_detach_in_a_batch_cuts_the_tangents_outside():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    ones = torch.ones_like(x)

    def half(a):
        return a * a.detach()

    def kept(a):
        with torch.no_grad():
            y = a * 2
        return a * y

    def shared(a):
        b = a * 1
        b.detach().add_(1)
        return b * a

    assert func.jvp(func.vmap(half), (x,), (ones,))[1].tolist() == x.tolist()
    assert func.jvp(func.vmap(func.vmap(half)), (x,), (ones,))[1].tolist() == x.tolist()
    assert func.jvp(func.vmap(kept), (x,), (ones,))[1].tolist() == (4 * x).tolist()
    assert func.vmap(shared)(x).tolist() == [[2, 6], [12, 20]]
    inner = func.vmap(lambda a: func.jvp(half, (a,), (a,))[1])
    assert func.jvp(inner, (x,), (ones,))[1].tolist() == x.tolist()


def test_cotangents_that_are_no_tensors():
    _, product = func.vjp(torch.sin, X)
    with fails(TypeError, "gradients can be either Tensors or None, but got int"):
        product(3)


def _cubes(x):
    return (x**3).sum()


PRODUCTS_WITH_HESSIAN = {
    "grad": lambda x, v: func.jvp(func.grad(_cubes), (x,), (v,))[1],
    "vjp": lambda x, v: func.jvp(lambda x: func.vjp(lambda x: x**3, x)[1](torch.ones(2))[0], (x,), (v,))[1],
    "jacrev": lambda x, v: func.jvp(func.jacrev(_cubes), (x,), (v,))[1],
    "jacfwd": lambda x, v: func.jvp(func.jacfwd(_cubes), (x,), (v,))[1],
    "hessian": lambda x, v: func.jvp(lambda x: func.hessian(lambda x: (x**4).sum() / 4)(x).sum(0), (x,), (v,))[1],
    "jvp": lambda x, v: func.jvp(lambda x: func.jvp(lambda x: x**3, (x,), (torch.ones(2),))[1], (x,), (v,))[1],
    "jvp of products": lambda x, v: func.jvp(
        lambda x: func.jvp(lambda x: torch.stack([x, x]).prod(0) * x, (x,), (torch.ones(2),))[1], (x,), (v,)
    )[1],
    "vmap": lambda x, v: func.jvp(lambda x: torch.vmap(func.grad(lambda x: x**3))(x), (x,), (v,))[1],
}


@pytest.mark.parametrize("name", PRODUCTS_WITH_HESSIAN)
def test_direction_of_a_gradient_has_a_history(name):
    """The Hessian is the derivative of the Hessian-vector product with respect to the vector."""
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)
    expected = [[6.0, 0.0], [0.0, 12.0]]
    product = PRODUCTS_WITH_HESSIAN[name]
    assert func.jacrev(lambda v: product(x, v))(v.detach()).tolist() == expected
    assert func.jacfwd(lambda v: product(x, v))(v.detach()).tolist() == expected
    (found,) = torch.autograd.grad(product(x, v).sum(), v)
    assert found.tolist() == [6.0, 12.0]
    assert not product(x, v.detach()).requires_grad


TRANSFORMS = {
    "grad": lambda f: func.grad(f)(X),
    "vjp": lambda f: func.vjp(f, X),
    "jvp": lambda f: func.jvp(f, (X,), (V,)),
    "jacrev": lambda f: func.jacrev(f)(X),
    "jacfwd": lambda f: func.jacfwd(f)(X),
    "hessian": lambda f: func.hessian(f)(X),
    "functionalize": lambda f: func.functionalize(f)(X),
    "vmap": lambda f: func.vmap(f)(torch.stack([X, V])),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(torch.stack([X, V])),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_backward_inside_of_a_transform(transform):
    w = torch.ones(3, requires_grad=True)

    def by_method(x):
        (w * w).sum().backward()
        return (x * x).sum()

    def by_function(x):
        y = (x * x).sum()
        torch.autograd.backward(y)
        return y

    for f in by_method, by_function:
        with fails(RuntimeError, "backward() called inside a functorch transform. This is not supported..."):
            transform(f)
    assert w.grad is None
    (w * w).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_tensors_that_are_to_require_grad_inside_of_a_transform(transform):
    def by_method(x):
        return (x * torch.ones(3).requires_grad_()).sum()

    def by_jacobian(x):
        return torch.autograd.functional.jacobian(torch.sin, x).sum()

    for f in by_method, by_jacobian:
        with fails(RuntimeError, "You are attempting to call Tensor.requires_grad_() (or perhaps..."):
            transform(f)
    assert torch.ones(3).requires_grad_().requires_grad
    transform(lambda x: (x * torch.ones(3, requires_grad=True)).sum())


def test_linearized_functions_may_run_backward():
    def f(x):
        w = torch.ones(3, requires_grad=True)
        (w * w).sum().backward()
        return (x * w.grad).sum()

    output, derivative = func.linearize(f, X)
    assert output == 2 * X.sum()
    assert derivative(V) == 2 * V.sum()


def test_a_block_in_which_transforms_see_no_ops():
    def function(x):
        assert torch._C._functorch.maybe_current_level()
        with torch._C._DisableFuncTorch():
            assert torch._C._functorch.maybe_current_level() is None
        return x * x

    x = torch.tensor([1.0, 2.0])
    assert torch.func.vmap(function)(x).tolist() == [1, 4]
    assert torch.func.vmap(torch.func.grad(function))(x).tolist() == [2, 4]
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(2))
        with torch._C._DisableFuncTorch():
            y = dual * 3  # no transform of functions
        assert torch.autograd.forward_ad.unpack_dual(y).tangent.tolist() == [3, 3]
