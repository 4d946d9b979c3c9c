"""`autograd.forward_ad` against PyTorch's: visible properties of tensors, and errors."""

import pytest

import cygrad
from helpers import class_of, first_line

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:Casting complex values"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script"),
]

EXPRESSIONS = """
    dual
    unpack(dual)
    unpack(x)
    unpack(dual.detach())
    unpack(dual.data)
    unpack(unpack(dual).primal)
    unpack(dual.double())
    unpack(dual.long())
    unpack(dual > 1)
    unpack(dual.argmax())
    unpack(lib.sign(dual))
    unpack(lib.floor(dual))
    unpack(lib.zeros_like(dual))
    [unpack(each) for each in dual.max(0)]
    [unpack(each) for each in dual.sort()]
    unpack(dual[:1])
    unpack(dual * leaf).tangent.detach()
    unpack(dual @ y)
    unpack(lib.stack([dual, y]))
    unpack(lib.where(dual > 1, dual, y))
    unpack(dual.clone().zero_())
    unpack(dual.clone().eq_(1))
    unpack(dual.clone().detach_())
    unpack(x.clone().copy_(dual))
    unpack(x.clone().long().copy_(dual))
    unpack((make(leaf, y) ** 2).sum()).tangent.detach()
    unpack(lib.autograd.grad((make(leaf, y) ** 3).sum(), leaf)[0])
    (make(leaf, y) ** 3).sum().backward(), leaf.grad, unpack(leaf.grad)
    dual.requires_grad, make(leaf, y).requires_grad, make(leaf, y).grad_fn is None
    make(x, y[:1])
    make(x, y.double())
    make(x, y.long())
    make(x.long(), y)
    make(x, y * 1j)
    make(x + 1j, y)
    make(3.0, y)
    make(dual, y)
    make(x, dual)
    lib.mul(dual, 2, out=lib.empty(2))
    lib.mul(x, 2, out=make(lib.empty(2), y))
    ad.exit_dual_level(level=1)
    ad.enter_dual_level()
    ad.UnpackedDualTensor(x, None)._fields
    Linear.apply(dual)
""".strip().splitlines()


def outcome(lib, expression, inside):
    ad = lib.autograd.forward_ad

    class Linear(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    names = {"lib": lib, "ad": ad, "make": ad.make_dual, "unpack": ad.unpack_dual, "Linear": Linear}
    names |= {"x": lib.tensor([1.0, 2.0]), "y": lib.tensor([3.0, 4.0])}
    names["leaf"] = lib.tensor([0.5, -2.0], requires_grad=True)
    if inside:
        ad.enter_dual_level()
    try:
        if inside:
            names["dual"] = ad.make_dual(names["x"], names["y"])
        value = eval(expression, names)
        return "<Identity>".join(repr(value).replace("<ViewBackward0>", "<Identity>").split("<AliasBackward0>"))
    except (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError) as error:
        return class_of(error), first_line(error)
    finally:
        if inside:
            ad.exit_dual_level()


@pytest.mark.parametrize("expression", [line.strip() for line in EXPRESSIONS])
def test_inside_of_a_level(expression):
    assert outcome(cygrad, expression, True) == outcome(torch, expression, True)


@pytest.mark.parametrize("expression", ["make(x, y)", "unpack(x)", "unpack(leaf)", "ad.exit_dual_level()"])
def test_outside_of_a_level(expression):
    assert outcome(cygrad, expression, False) == outcome(torch, expression, False)
