"""Classes with `__torch_dispatch__`: tensors that hold other tensors, and answer the ops on them."""

import copy
import io
import pickle

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad.utils._mode_utils import all_same_mode, no_dispatch
from cygrad.utils._pytree import tree_map

aten = torch.ops.aten


class Holder(torch.Tensor):
    """Holds a tensor, and passes each op on to it."""

    __slots__ = ["elem", "seen"]
    noted: list = []
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=requires_grad,
        )
        made.elem = elem
        return made

    def __repr__(self):
        return super().__repr__(tensor_contents=f"{self.elem}")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.noted.append(str(func))

        def inner(value):
            return value.elem if isinstance(value, cls) else value

        def outer(value):
            return cls(value) if isinstance(value, torch.Tensor) else value

        return tree_map(outer, func(*tree_map(inner, args), **tree_map(inner, kwargs or {})))


class Scaled(torch.Tensor):
    """int8 numbers and a factor, as a matrix of float32: what weights are quantised to."""

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32, device=data.device)

    def __init__(self, data, scale):
        self.held, self.scale = data, scale

    def plain(self):
        return self.held.to(torch.float32) * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (aten.detach.default, aten.t.default):
            return cls(func(args[0].held), args[0].scale)
        args = tree_map(lambda value: value.plain() if isinstance(value, cls) else value, args)
        return func(*args, **(kwargs or {}))


def data(*size):
    return torch.arange(1.0, 1 + torch.Size(size).numel()).reshape(size) / 7


def test_what_such_a_tensor_says_of_itself():
    x = Holder(data(2, 3).t(), requires_grad=True)
    assert (x.shape, x.stride(), x.dtype, x.device.type) == ((3, 2), (1, 3), torch.float32, "cpu")
    assert x.requires_grad and x.is_leaf and not x.is_meta and x.is_cpu and not x.is_contiguous()
    assert repr(Holder(torch.ones(2))) == "Holder(tensor([1., 1.]))"
    assert torch.Tensor._make_wrapper_subclass(Holder, (2,), storage_offset=3).storage_offset() == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2 + 1).sum(),
        lambda x: (x.exp().sin() / x).sum(),
        lambda x: (x @ x.t()).tanh().mean(),
        lambda x: F.linear(x, data(4, 3), data(4)).relu().sum(),
        lambda x: F.cross_entropy(x, torch.tensor([1, 2])),
        lambda x: F.gelu(x).softmax(1).log().sum(),
        lambda x: F.layer_norm(x, (3,), data(3), data(3)).pow(2).sum(),
        lambda x: F.mse_loss(x[0], x[1].detach()),
        lambda x: x.view(3, 2).permute(1, 0)[:, 1:].max(1)[0].sum(),
        lambda x: torch.cat([x, x * x], 1).std(),
        lambda x: torch.where(x > 0.5, x, -x).logsumexp(1).sum(),
        lambda x: x.gather(1, torch.tensor([[0], [1]])).pow(3).sum(),
        lambda x: F.embedding(torch.tensor([0, 1, 0]), x).square().sum(),
    ],
)
def test_gradients_are_computed_above_the_class(function):
    plain = data(2, 3).requires_grad_()
    expected = function(plain)
    expected.backward()
    x = Holder(data(2, 3), requires_grad=True)
    found = function(x)
    assert type(found) is Holder and found.requires_grad
    torch.testing.assert_close(found.elem, expected.detach())
    found.backward()
    assert type(x.grad) is Holder
    torch.testing.assert_close(x.grad.elem, plain.grad)


def test_second_derivatives_and_grad():
    x = Holder(data(3), requires_grad=True)
    (first,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert type(first) is type(second) is Holder
    torch.testing.assert_close(second.elem, -data(3).sin())


def test_jacobians_and_hessians():
    def function(x):
        return x.sum(1) ** 2

    x, of = data(2, 2), torch.autograd.functional
    for found, expected in (
        (of.jacobian(function, Holder(x)), of.jacobian(function, x)),
        (of.hessian(lambda x: function(x).sum(), Holder(x)), of.hessian(lambda x: function(x).sum(), x)),
    ):
        assert type(found) is Holder and torch.equal(found.elem, expected)


def test_gradients_accumulate():
    x = Holder(data(3), requires_grad=True)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.elem.tolist() == [6, 6, 6]


def test_ops_in_place():
    x, b = Holder(data(2, 3)), data(2, 3)
    assert x.add_(1) is x and x.mul_(b) is x
    torch.testing.assert_close(x.elem, (data(2, 3) + 1) * data(2, 3))
    x.copy_(b)
    x.zero_()
    assert x.elem.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_values_and_ops_whose_results_depend_on_values():
    x = Holder(data(3))
    assert (
        x.sum().item() == pytest.approx(6 / 7) and bool(x.sum() > 0) and float(Holder(data(1))) == pytest.approx(1 / 7)
    )
    assert x.nonzero().elem.tolist() == [[0], [1], [2]]
    with pytest.raises(NotImplementedError, match="nonzero"):
        x[x > 0.2]


def test_new_tensors_and_conversions():
    x = Holder(data(3))
    assert torch.zeros_like(x).elem.tolist() == x.new_zeros(3).elem.tolist() == [0, 0, 0]
    assert (
        x.double().dtype is torch.float64 and type(x.detach()) is Holder and x.clone().elem.tolist() == data(3).tolist()
    )


def test_the_operand_may_be_anywhere():
    x, plain = Holder(data(2, 3)), data(2, 3)
    for found in (x + plain, plain + x, torch.where(plain > 0, x, plain), torch.stack([plain, x])):
        assert type(found) is Holder
    Holder.noted.clear()
    plain + plain
    assert Holder.noted == []


def test_weights_of_another_kind():
    weight = Scaled(torch.tensor([[1, 2], [3, 4]], dtype=torch.int8), 0.5)
    assert (weight.dtype, weight.shape) == (torch.float32, (2, 2))
    x = torch.ones(1, 2, requires_grad=True)
    y = F.linear(x, weight)
    assert type(y) is torch.Tensor and y.tolist() == [[1.5, 3.5]]
    y.sum().backward()
    assert type(x.grad) is torch.Tensor and x.grad.tolist() == [[2, 3]]
    module = torch.nn.Linear(2, 2, bias=False)
    module.weight = torch.nn.Parameter(weight, requires_grad=False)
    assert module(torch.ones(1, 2)).tolist() == [[1.5, 3.5]]


class Wrapper(torch.Tensor):
    """Holds a tensor in an attribute that has the name of a method."""

    @staticmethod
    def __new__(cls, values):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=values.dtype)

    def __init__(self, values):
        self.values = values

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = tree_map(lambda x: x.values if isinstance(x, cls) else x, args)
        kwargs = tree_map(lambda x: x.values if isinstance(x, cls) else x, kwargs or {})
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, func(*args, **kwargs))

    def __repr__(self):
        return super().__repr__(tensor_contents=f"{self.values}")


class Named(torch.Tensor):
    """A class without methods of its own."""


def saved_and_loaded(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    with torch.serialization.safe_globals([type(x)]):
        return torch.load(file)


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x)), "file": saved_and_loaded}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("made", [Wrapper, lambda values: values.as_subclass(Named)], ids=["holding", "own elements"])
def test_parameters_are_of_the_class_that_they_are_made_of(made, copied):
    plain = made(torch.tensor([1.0, 2.0]))
    parameter = torch.nn.Parameter(plain)
    assert type(parameter) is type(plain) and isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad
    assert not isinstance(plain, torch.nn.Parameter)
    assert repr(parameter).startswith(f"Parameter({type(plain).__name__}(")
    for other in (parameter.detach(), parameter.data, parameter + 1):
        assert type(other) is type(plain) and not isinstance(other, torch.nn.Parameter)
    again = copied(parameter)
    assert type(again) is type(plain) and isinstance(again, torch.nn.Parameter) and again.requires_grad
    assert repr(again) == repr(parameter)
    module = torch.nn.Module()
    module.weight = parameter
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    module.double()
    assert module.weight is parameter and parameter.dtype == torch.float64


class Slotted(torch.Tensor):
    __slots__ = ["elem"]


class WithState(torch.Tensor):
    """Has its attributes written, and read, by its own methods."""

    def __getstate__(self):
        return "mark", self.__dict__

    def __setstate__(self, state):
        _, self.__dict__ = state


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_of_slots(copied):
    x = torch.ones(2).as_subclass(Slotted)
    x.elem, x.other = torch.zeros(3), "more"
    again = copied(x)
    assert type(again) is Slotted and again.elem.tolist() == [0, 0, 0] and again.other == "more"
    assert again.elem is not x.elem


def test_the_dictionary_of_a_tensor_can_be_replaced():
    x = torch.ones(2).as_subclass(WithState)
    x.name = "first"
    assert saved_and_loaded(x).name == "first"
    x.__dict__ = {"other": 1}
    assert x.other == 1 and not hasattr(x, "name")
    with pytest.raises(TypeError, match="__dict__ must be set to a dictionary, not a 'int'"):
        x.__dict__ = 3
    assert x.other == 1


def test_parameters_need_a_class_that_detaches_to_itself():
    class Losing(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*(x.values if isinstance(x, cls) else x for x in args), **(kwargs or {}))

    with pytest.raises(RuntimeError, match="^Creating a Parameter from an instance of type Losing requires"):
        torch.nn.Parameter(Losing(torch.ones(2)))


def test_a_class_that_holds_its_own_elements():
    seen = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append((str(func), types))
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = torch.Tensor._make_subclass(Own, data(2))
    assert (x + 1).tolist() == (data(2) + 1).tolist()
    assert seen[0] == ("aten.add.Tensor", (Own,))


def test_classes_may_refuse():
    class Refuses(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch._ops.aten.exp.default'"):
        torch.exp(torch.Tensor._make_subclass(Refuses, data(2)))


def test_a_wrapper_needs_a_handler():
    class Plain(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="Plain must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))
    type("NotAsked", (torch.Tensor,), {"__torch_dispatch__": None})


def test_modes_come_before_classes():
    order = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append((str(func), types))
            return func(*args, **(kwargs or {}))

    x = Holder(data(2))
    Holder.noted.clear()
    with Mode():
        y = x * 3
    assert order[0] == ("aten.mul.Tensor", (Holder,)) and Holder.noted == ["aten.mul.Tensor"] and type(y) is Holder


@pytest.mark.parametrize("block", [no_dispatch, torch._C._DisableTorchDispatch])
def test_blocks_in_which_classes_and_modes_see_no_ops(block):
    x = Holder(data(2))
    Holder.noted = []
    with block():
        x.detach()
    assert Holder.noted == []
    x.detach()
    assert Holder.noted == ["aten.detach.default"]
    assert all_same_mode([1, 1]) and not all_same_mode([1, 2])
