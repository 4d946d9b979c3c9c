"""`FloatFunctional`, and the names of layers on quantized tensors, which programs compare the classes of layers with.

`dynamic` has the names of those with quantized weights alone.
"""

from types import SimpleNamespace

import cygrad
from cygrad.nn import Identity, Module
from cygrad.nn.functional import relu

__all__ = ["FloatFunctional", "dynamic"]


class FloatFunctional(Module):
    """Operations as methods of a module, so that a quantizer can observe their results.

    >>> import cygrad
    >>> cygrad.ao.nn.quantized.FloatFunctional().add_relu(cygrad.ones(2), -3.0)
    tensor([0., 0.])
    >>> functional, x = cygrad.ao.nn.quantized.FloatFunctional(), cygrad.ones(2, 2)
    >>> functional.add(x, x)[0], functional.add_scalar(x, 2)[0]
    (tensor([2., 2.]), tensor([3., 3.]))
    >>> functional.mul(x, x)[0], functional.mul_scalar(x, 2)[0]
    (tensor([1., 1.]), tensor([2., 2.]))
    >>> functional.cat([x, x]).shape, functional.matmul(x, x)[0]
    (torch.Size([4, 2]), tensor([2., 2.]))
    >>> functional.forward(x)
    Traceback (most recent call last):
        ...
    RuntimeError: FloatFunctional is not intended to use the 'forward'. Please use the underlying operation
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        """Raises RuntimeError: the methods are called instead."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        """Return x + y."""
        return self.activation_post_process(cygrad.add(x, y))

    def add_scalar(self, x, y):
        """Return x + y for a number y."""
        return cygrad.add(x, y)

    def mul(self, x, y):
        """Return x * y."""
        return self.activation_post_process(cygrad.mul(x, y))

    def mul_scalar(self, x, y):
        """Return x * y for a number y."""
        return cygrad.mul(x, y)

    def cat(self, x, dim=0):
        """Join tensors along a dimension."""
        return self.activation_post_process(cygrad.cat(x, dim=dim))

    def add_relu(self, x, y):
        """Return relu(x + y)."""
        return self.activation_post_process(relu(cygrad.add(x, y)))

    def matmul(self, x, y):
        """Return the matrix product."""
        return self.activation_post_process(cygrad.matmul(x, y))


class _Quantized(Module):
    """The base of the layers on quantized tensors. Making one raises RuntimeError."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self).__module__}.{type(self).__name__}: cygrad has no quantized tensors\n"
            f"  use nn.{type(self).__name__} in float16 or bfloat16"
        )


def _layers(names, module):
    return {
        name: type(name, (_Quantized,), {"__module__": module, "__doc__": _doc(name, module)}) for name in names.split()
    }


def _doc(name, module):
    return (
        f"`nn.{name}` on quantized tensors: cannot be made. Programs ask whether a layer is one.\n\n"
        f">>> import cygrad\n>>> isinstance(cygrad.nn.Identity(), {module}.{name})\nFalse\n"
        f">>> {module}.{name}()\nTraceback (most recent call last):\n    ...\n"
        f"RuntimeError: {module}.{name}: cygrad has no quantized tensors..."
    )


_STATIC = "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d BatchNorm2d BatchNorm3d Embedding"
_HERE = _layers(_STATIC, __name__)
globals().update(_HERE)
__all__ += list(_HERE)
dynamic = SimpleNamespace(**_layers("Linear LSTM GRU RNNCell LSTMCell GRUCell", f"{__name__}.dynamic"))
