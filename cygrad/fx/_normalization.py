"""How the call of an overridden function is recorded: with the arguments that PyTorch's functions pass on."""

import inspect
from functools import cache
from typing import Any

import cygrad
import cygrad.nn.functional as F
from cygrad.overrides import is_tensor_method_or_property

# The functions of nn.functional that PyTorch writes in C++ and that therefore pass on their arguments as they are.
_COMPILED = frozenset(
    """adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc cosine_similarity elu_ gelu hardshrink hardtanh_
    leaky_relu_ linear logsigmoid native_channel_shuffle one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle
    prelu relu_ rrelu_ scaled_dot_product_attention selu_ softplus softshrink threshold_""".split()
)


@cache
def _parameters() -> dict[Any, tuple[int, dict[str, Any]]]:
    """Return {function: (number of its required arguments, defaults of the others)} for nn.functional."""
    found = {}
    for name, function in vars(F).items():
        is_own = callable(function) and not name.startswith("_") and getattr(cygrad, name, None) is not function
        if is_own and name not in _COMPILED:
            parameters = list(inspect.signature(function).parameters.values())
            required = sum(p.default is inspect.Parameter.empty for p in parameters)
            found[function] = required, {p.name: p.default for p in parameters[required:]}
    return found


def as_recorded(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, Any, Any]:
    """Return `(op, target, args, kwargs)` of the node for a call.

    PyTorch's functions in Python pass all optional arguments on by keyword.
    """
    name = getattr(function, "__name__", "")
    if function in _parameters():
        required, optional = _parameters()[function]
        given = dict(zip(optional, args[required:], strict=False))
        return "call_function", function, args[:required], {**optional, **given, **kwargs} if optional else kwargs
    if is_tensor_method_or_property(function):
        return "call_method", name, args, kwargs
    return "call_function", function, args, kwargs
