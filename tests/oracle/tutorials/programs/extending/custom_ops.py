"""Operators of one's own through torch.library, their gradients, fakes, and opcheck."""

import torch
from torch import Tensor
from shared import told


@torch.library.custom_op("mylib::scaled", mutates_args=())
def scaled(x: Tensor, k: float = 2.0) -> Tensor:
    return x * k


print(
    scaled(torch.ones(2)),
    torch.ops.mylib.scaled(torch.ones(2), 3.0),
    torch.ops.mylib.scaled.default,
    torch.ops.mylib.scaled.default._schema,
)
told(lambda: scaled(torch.ones(2, requires_grad=True)).sum().backward())


def setup(ctx, inputs, output):
    ctx.k = inputs[1]


scaled.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=setup)
x = torch.ones(2, requires_grad=True)
scaled(x, 4.0).sum().backward()
print(x.grad)


@scaled.register_fake
def _(x, k=2.0):
    return torch.empty_like(x)


print(scaled(torch.ones(2, device="meta")))


@scaled.register_vmap
def _(info, in_dims, x, k=2.0):
    return scaled(x, k), in_dims[0]


print(torch.vmap(lambda a: scaled(a))(torch.ones(3, 2)))


@torch.library.custom_op("mylib::fill", mutates_args={"out"}, schema="(Tensor(a!) out, int v=1) -> ()")
def fill(out, v=1):
    out.fill_(v)


t = torch.zeros(2)
fill(t, 5)
print(t)
told(lambda: fill(t.requires_grad_()))
told(lambda: torch.library.custom_op("bad", mutates_args=())(lambda x: x))


def untyped(x):
    return x


told(lambda: torch.library.custom_op("mylib::untyped", untyped, mutates_args=()))
told(lambda: torch.library.infer_schema(scaled._init_fn, mutates_args=()))
told(lambda: torch.library.infer_schema(untyped, mutates_args=()))


def many(x: Tensor, xs: list[Tensor], n: int | None, s: str = "a", *, f: bool = False) -> tuple[Tensor, Tensor]:
    return x, x


told(lambda: torch.library.infer_schema(many, mutates_args=()))
told(lambda: torch.library.infer_schema(many, mutates_args={"x"}))
told(lambda: torch.library.infer_schema(many, mutates_args={"nosuch"}))


@torch.library.custom_op("mylib::alias", mutates_args=())
def alias(x: Tensor) -> Tensor:
    return x


told(lambda: torch.ops.mylib.nosuch)
told(lambda: torch.ops.nolib.nosuch(3))
told(lambda: scaled("text"))
told(lambda: scaled())
told(lambda: scaled(torch.ones(1), 2.0, 3))
told(lambda: scaled(torch.ones(1), nosuch=3))
lib = torch.library.Library("other", "DEF")
lib.define("twice(Tensor x, *, int n=2) -> Tensor")
lib.impl("twice", lambda x, n=2: x * n, "CPU")
print(torch.ops.other.twice(torch.ones(2), n=3))
told(lambda: lib.define("wrong(Tenso x) -> Tensor"))
told(lambda: torch.library.register_autograd("other::twice", lambda ctx, g: g * 2))
y = torch.ones(2, requires_grad=True)
told(lambda: torch.ops.other.twice(y).sum().backward() or y.grad)
print(torch.library.opcheck(scaled, (torch.ones(2, requires_grad=True),), {}))
print(
    torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2), alpha=3),
    torch.ops.aten.sum.dim_IntList(torch.ones(2, 2), [0]),
)
told(lambda: torch.ops.aten.add.Nosuch)


@torch.library.custom_op("mylib::pair", mutates_args=())
def pair(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sin(), x.cos()


pair.register_autograd(
    lambda ctx, a, b: a * ctx.saved_tensors[0].cos() - b * ctx.saved_tensors[0].sin(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
z = torch.ones(2, requires_grad=True)
(pair(z)[0] + 2 * pair(z)[1]).sum().backward()
print(z.grad)
with torch.no_grad():
    print(scaled(z).requires_grad)
