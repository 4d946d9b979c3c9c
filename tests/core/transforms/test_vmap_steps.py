"""`vmap` with steps that a library has replaced, as tensordict does for its dictionaries."""

import pytest

import cygrad as torch
from cygrad._functorch import vmap as steps
from cygrad.utils._pytree import register_pytree_node, tree_flatten, tree_unflatten


class Row:
    """Tensors that lie one after the other along a dimension of the whole, which has no memory of its own."""

    def __init__(self, parts, dim=0):
        self.parts, self.dim = list(parts), dim

    def whole(self):
        return torch.stack(self.parts, self.dim)

    def __getitem__(self, index):
        return self.whole()[index]


register_pytree_node(Row, lambda row: (row.parts, row.dim), lambda parts, dim: Row(parts, dim))


class Result:
    """A tensor that knows how many samples it holds."""

    def __init__(self, value, samples=None):
        self.value, self.samples = value, samples


register_pytree_node(Result, lambda r: ([r.value], r.samples), lambda values, samples: Result(values[0], samples))


def is_own(value):
    return isinstance(value, (Row, Result))


def process(in_dims, args, func):
    leaves, form = tree_flatten(args, is_leaf=is_own)
    dims = steps._broadcast_to_and_flatten(in_dims, form)
    sizes = [(x.whole() if is_own(x) else x).shape[d] for x, d in zip(leaves, dims) if d is not None]
    return sizes[0], dims, leaves, form


def create(dims, leaves, level, form):
    whole = [x.whole() if is_own(x) and d is not None else x for x, d in zip(leaves, dims)]
    own = [x if d is None else steps._add_batch_dim(x, d, level) for x, d in zip(whole, dims)]
    return tree_unflatten(own, form)


def unwrap(outputs, out_dims, level, size, func):
    leaves, form = tree_flatten(outputs, is_leaf=is_own)
    dims = steps._broadcast_to_and_flatten(out_dims, form)

    def placed(x, dim):
        value = x.value if is_own(x) else x
        found = steps._maybe_remove_batch_dim(steps._get_name(func), value, level, size, dim)
        return Result(found, size) if is_own(x) else found

    return tree_unflatten([placed(x, d) for x, d in zip(leaves, dims)], form)


@pytest.fixture
def replaced(monkeypatch):
    monkeypatch.setattr(steps, "_process_batched_inputs", process)
    monkeypatch.setattr(steps, "_create_batched_inputs", create)
    monkeypatch.setattr(steps, "_unwrap_batched", unwrap)


X = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("dim", [0, 1])
def test_samples_lie_where_the_container_says(replaced, dim):
    row = Row([X.unbind(dim)[i] for i in range(X.shape[dim])], dim)
    assert torch.equal(torch.vmap(lambda x: x.sum())(row), X.sum(1))
    assert torch.equal(torch.vmap(lambda x: x.sum(), in_dims=1)(row), X.sum(0))
    assert torch.equal(torch.vmap(lambda x, y: x @ y, (0, None))(row, torch.ones(4)), X.sum(1))


@pytest.mark.parametrize("chunk_size", [None, 2])
def test_results_know_their_samples(replaced, chunk_size):
    result = torch.vmap(lambda x: Result(x * 2), chunk_size=chunk_size)(X)
    assert torch.equal(result.value, X * 2)
    if chunk_size is None:
        assert result.samples == 3


def test_plain_tensors_gradients_and_nesting(replaced):
    x = X.clone().requires_grad_()
    torch.vmap(lambda row: row.sin() * row.sum())(x).sum().backward()
    y = X.clone().requires_grad_()
    (y.sin() * y.sum(1, keepdim=True)).sum().backward()
    assert torch.allclose(x.grad, y.grad)
    assert torch.equal(torch.vmap(torch.func.grad(lambda row: (row**2).sum()))(X), 2 * X)
    outer = torch.vmap(torch.vmap(lambda a, b: a * b, (0, None), 1), (None, 0))(X, torch.arange(2.0))
    assert torch.equal(outer, torch.stack([0 * X.T, X.T]))
    assert torch.equal(torch.func.hessian(lambda a: (a**3).sum())(X[0]), torch.diag(6 * X[0]))


@pytest.mark.filterwarnings("error")
def test_random_numbers(replaced):
    torch.manual_seed(0)
    zeros = torch.zeros(3, 1)
    different = torch.vmap(lambda a: a + torch.randperm(50), randomness="different")(zeros)
    assert not torch.equal(different[0], different[1]) and torch.equal(different[0].sort().values, torch.arange(50.0))
    for chunk_size in (None, 2):
        same = torch.vmap(lambda a: a + torch.rand(2), randomness="same", chunk_size=chunk_size)(zeros)
        assert torch.equal(same, same[:1].expand(3, 2)) and not torch.equal(same[0, 0], same[0, 1])
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        torch.vmap(lambda a: a + torch.rand(2))(zeros)


def test_ops_without_a_rule_are_called_for_each_sample(replaced):
    x = X.clone().requires_grad_()

    def second(row):
        assert torch.equal(row, row.clone())  # reads values, which only one sample at a time has
        return Result(row[1:3]), torch.ones(2)

    with pytest.warns(UserWarning, match="second is called once for each sample instead"):
        found, ones = torch.vmap(second, out_dims=(1, None))(x)
    assert torch.equal(found.value, X[:, 1:3].T) and found.samples == 3 and torch.equal(ones, torch.ones(2))
    found.value.sum().backward()
    assert torch.equal(x.grad, torch.tensor([0.0, 1, 1, 0]).expand(3, 4))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is"):
        torch.vmap(second, out_dims=None)(X)


def test_own_steps_alone_give_the_same(monkeypatch):
    """A library may replace one step and leave the others."""
    calls = []

    def create_and_note(*arguments):
        calls.append(1)
        return own(*arguments)

    own = steps._create_batched_inputs
    monkeypatch.setattr(steps, "_create_batched_inputs", create_and_note)
    tree = {"a": X, "b": (X[0],)}
    found = torch.vmap(lambda t: {"sum": t["a"] + t["b"][0]}, in_dims=({"a": 0, "b": None},), out_dims=1)(tree)
    assert torch.equal(found["sum"], (X + X[0]).T) and calls == [1]
    with pytest.raises(ValueError, match="Got in_dim=2 for some input"):
        torch.vmap(torch.sum, in_dims=2)(X)
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'int'>"):
        torch.vmap(lambda x: 3)(X)
    with pytest.raises(ValueError, match="out_dims is not compatible with the structure"):
        torch.vmap(lambda x: x, out_dims=(0, 0))(X)


def test_the_vmap_of_autograd_lets_none_through():
    from cygrad._vmap_internals import _vmap

    x = torch.arange(3.0)
    squares, nothing = _vmap(lambda v: (v * v, None), allow_none_pass_through=True)(x)
    assert squares.tolist() == [0, 1, 4] and nothing is None
    assert _vmap(lambda v: None if v.ndim else v + 1, allow_none_pass_through=True)(x).tolist() == [1, 2, 3]
    w = torch.ones(3, requires_grad=True)
    y = w.exp() * x
    rows = _vmap(lambda v: torch.autograd.grad(y, w, v, retain_graph=True)[0])(torch.eye(3))
    assert torch.allclose(rows, torch.diag(x * w.exp()))


def test_the_old_name_of_vmap_warns():
    from cygrad import _vmap_internals

    with pytest.warns(FutureWarning, match=r"Please use `torch.vmap` instead of"):
        assert _vmap_internals.vmap(torch.sum)(torch.ones(2, 3)).tolist() == [3, 3]
