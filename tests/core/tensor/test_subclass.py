"""Subclasses of Tensor: results have the operands' class; `.grad` is a plain tensor, but results of `grad` are not."""

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn import functional as F
from helpers import leaf


class Length(torch.Tensor):
    unit = "m"

    def doubled(self):
        return self * 2


class Width(Length):
    pass


@pytest.fixture
def s():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Length)


PLAIN = torch.ones(2, 2)

USES = {
    "operator": lambda s: s + 1,
    "reflected operator": lambda s: 2.0**s,
    "plain operand first": lambda s: PLAIN * s,
    "function": torch.exp,
    "method": lambda s: s.tanh(),
    "reduction": lambda s: s.sum(),
    "two results": lambda s: s.max(0)[0],
    "indices": lambda s: s.max(0)[1],
    "comparison": lambda s: s > 1,
    "product": lambda s: PLAIN @ s,
    "join": lambda s: torch.cat([PLAIN, s]),
    "choice": lambda s: torch.where(PLAIN > 0, 0.0, s),
    "index": lambda s: s[0],
    "advanced index": lambda s: s[torch.tensor([0])],
    "view": lambda s: s.view(4),
    "transposed": lambda s: s.T,
    "split": lambda s: s.split(1)[1],
    "iteration": lambda s: next(iter(s)),
    "converted": lambda s: s.double(),
    "clone": lambda s: s.clone(),
    "detach": lambda s: s.detach(),
    "data": lambda s: s.data,
    "like": torch.zeros_like,
    "random like": torch.rand_like,
    "new": lambda s: s.new_ones(3),
    "in place": lambda s: s.add_(1),
    "out": lambda s: torch.add(PLAIN, 1, out=s),
    "loss": lambda s: F.mse_loss(s, PLAIN),
    "own method": lambda s: s.doubled().doubled(),
    "module": lambda s: nn.Linear(2, 2)(s),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_results_keep_the_class(s, use):
    result = use(s)
    assert type(result) is Length
    assert result.unit == "m"


def test_without_grad_and_with_it(s):
    with torch.no_grad():
        assert type(s * 2) is Length
    s.requires_grad_()
    y = s * 2
    assert type(y) is Length
    assert y.grad_fn.name() == "MulBackward0"
    assert type(y[0]) is Length


def test_the_most_derived_class_wins(s):
    w = torch.ones(2, 2).as_subclass(Width)
    assert type(s + w) is type(w + s) is type(torch.stack([s, PLAIN, w])) is Width


def test_gradients_are_plain(s):
    s.requires_grad_()
    seen = []
    s.register_hook(lambda grad: seen.append(type(grad)))
    (s * s).sum().backward()
    assert seen == [torch.Tensor]
    assert type(s.grad) is torch.Tensor
    assert s.grad.tolist() == [[2, 4], [6, 8]]


def test_what_grad_gives_is_of_the_class(s):
    s.requires_grad_()
    (first,) = torch.autograd.grad((s**3).sum(), s, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), s)
    assert type(first) is type(second) is Length
    assert second.tolist() == [[6, 12], [18, 24]]
    plain = torch.ones(2, requires_grad=True)
    found = torch.autograd.grad((s[0] * plain).sum(), {"plain": plain, "unused": leaf(1.0)}, allow_unused=True)
    assert type(found["plain"]) is Length and found["unused"] is None
    assert type(torch.autograd.grad((plain * 2).sum(), plain)[0]) is torch.Tensor


def test_in_place_keeps_the_object(s):
    before = s
    s += 1
    s[0] = 0
    assert s is before
    assert s.tolist() == [[0, 0], [4, 5]]


def test_attributes_are_not_passed_on(s):
    s.note = "mine"
    assert not hasattr(s + 1, "note")


@pytest.mark.parametrize("make", [nn.Parameter, nn.Buffer])
def test_what_is_computed_from_parameters_and_buffers_is_plain(make):
    p = make(torch.ones(2, 2))
    for result in (p + 1, p[0], p.t(), p.detach(), p.data, p.sum(), torch.ones_like(p)):
        assert type(result) is torch.Tensor


def test_a_class_of_parameters_is_plain_too_unless_another_operand_is_not(s):
    class Scale(nn.Parameter):
        pass

    p = Scale(torch.ones(2, 2))
    assert type(p * 2) is torch.Tensor
    assert type(p * s) is type(s * p) is Length


def test_format_of_a_number():
    x = torch.tensor(1.5)
    assert f"{x}" == "1.5" and f"{x:.2f}" == "1.50"
    x = x.as_subclass(Length)
    assert f"{x}" == str(x) == "Length(1.5000)" and f"{x:.2f}" == "1.50"


def test_arguments_of_a_class_reach_what_stands_before_the_tensor():
    class Named:
        def __init_subclass__(cls, unit=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.unit = unit

    class Before(Named, torch.Tensor, unit="m"):
        pass

    class After(torch.Tensor, Named, unit="s"):
        pass

    assert (Before.unit, After.unit) == ("m", "s")
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        type("Wrong", (torch.Tensor,), {}, unit="m")


def test_operators_of_the_class_go_first():
    class Noted(torch.Tensor):
        def __add__(self, other):
            calls.append("add")
            return super().__add__(other)

        def __radd__(self, other):
            calls.append("radd")
            return super().__radd__(other)

        def exp(self):
            calls.append("exp")
            return super().exp()

    calls = []
    noted = torch.ones(2).as_subclass(Noted)
    for result in (noted + 1, torch.ones(2) + noted, 1 + noted, noted.exp()):
        assert type(result) is Noted
    assert calls == ["add", "radd", "radd", "exp"]


def test_new_makes_the_whole_tensor():
    class Labeled(torch.Tensor):
        @staticmethod
        def __new__(cls, data, label):
            return super().__new__(cls, data)

        def __init__(self, data, label):
            super().__init__()  # does not empty it
            self.label = label

    data = torch.ones(2, 3, requires_grad=True)
    labeled = Labeled(data, "a")
    assert type(labeled) is Labeled and labeled.label == "a" and labeled.data_ptr() == data.data_ptr()
    assert torch.equal(torch.Tensor.__new__(Labeled, [1, 2]).as_subclass(torch.Tensor), torch.tensor([1.0, 2.0]))
    assert torch.Tensor.__new__(torch.Tensor, 2, 3).shape == (2, 3)

    class Counted(torch.Tensor):
        def __init__(self, data):
            super().__init__()
            self.count = len(data)

    assert Counted(torch.ones(4)).count == 4 and Counted([1, 2]).shape == (2,)

    class Extended(torch.Tensor):
        def __init__(self, data, more):
            super().__init__(data)

    with pytest.raises(TypeError, match=r"new\(\)"):
        Extended(torch.ones(2), "a")
