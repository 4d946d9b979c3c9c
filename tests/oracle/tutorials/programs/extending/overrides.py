"""`__torch_function__`, subclasses, modes, `__torch_dispatch__`."""

import torch
from shared import told
from torch.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_method_or_property,
    resolve_name,
)
from torch.utils._python_dispatch import TorchDispatchMode


class Unit:
    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    def __repr__(self):
        return f"Unit({self.value}, {self.unit})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in (torch.add, torch.sum, torch.Tensor.add):
            return NotImplemented
        print(func.__name__, [t.__name__ for t in types])
        values = [a.value if isinstance(a, Unit) else a for a in args]
        return Unit(func(*values, **(kwargs or {})), args[0].unit)


u = Unit(torch.ones(2), "m")
print(torch.add(u, u), torch.sum(u))
told(lambda: torch.mul(u, u))
told(lambda: torch.add(torch.ones(2), u))
told(lambda: torch.ones(2) + u)
told(lambda: torch.cat([u, torch.ones(2)]))
calls = []


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


n = torch.ones(2).as_subclass(Named)
print(type(n + 1), (n + 1), type(torch.stack([n, n])), type(n.shape), type(n.sum().item()))
print(type(n[0]), type(torch.ones(2) + n))
print(calls)


class Log(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("mode", func.__name__)
        return func(*args, **(kwargs or {}))


with Log():
    x = torch.ones(2) * 2
    x.sum().item()
    torch.nn.functional.gelu(x)
    with torch._C.DisableTorchFunction():
        x + 1


class Ops(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print("op", func)
        return func(*args, **(kwargs or {}))


with Ops():
    a = torch.ones(2, requires_grad=True)
    b = (a * 2).sum()
    torch.nn.functional.softmax(torch.ones(2), 0)
    torch.nn.functional.linear(torch.ones(1, 2), torch.ones(3, 2), torch.ones(3))


class Zero(torch.Tensor):
    @staticmethod
    def __new__(cls, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print("zero", func)
        return Zero(args[0].shape)


z = Zero((2, 3))
print((z + 1).shape, z.dtype, type(z))
print(is_tensor_method_or_property(torch.Tensor.add), has_torch_function((u,)), has_torch_function((torch.ones(1),)))
told(lambda: handle_torch_function(torch.mul, (u,), u, u))


class Plain(torch.Tensor):
    extra = 3


p = Plain([1.0, 2.0])
print(type(p), p.extra, type(p * 2), type(p.as_subclass(torch.Tensor)), p)


class Dev(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.zeros, torch.empty):
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


with Dev():
    print(torch.zeros(2).dtype, torch.ones(2).dtype)
with torch.device("meta"):
    print(torch.zeros(2), torch.nn.Linear(2, 2).weight.device)
