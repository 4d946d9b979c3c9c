"""The functions that programs call, by name: "nn.functional.linear", "Tensor.view".

A program from a file calls nothing else. These are the functions that modes see, all of which compute with tensors,
without those that read or write memory that is not a tensor's, or that call functions.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from cygrad import ops, overrides
from cygrad.ops import OpOverload, OpOverloadPacket

__all__ = ["READS", "function_named", "name_of"]

_LEFT_OUT = set(
    """
    _typed_storage storage_type untyped_storage data_ptr set_ share_memory_ pin_memory is_shared record_stream new
    apply_ map_ map2_ backward from_dlpack to_dlpack from_numpy frombuffer from_file asarray as_tensor tensor
    sparse_coo_tensor __format__ register_hook register_post_accumulate_grad_hook retain_grad _is_view is_set_to
    lobpcg __array_function__ __array_ufunc__ __dlpack__ __dlpack_device__ __array__ __iter__ __reversed__ to_numpy
    numpy tolist item xpu mtia ipu chalf __bool__ __int__ __float__ __index__ __complex__ __len__ __contains__
    __delitem__ module_load
    """.split()
)
# What reads the values of tensors into Python, and what PyTorch calls the result
READS = {
    "Tensor.__bool__": "Python boolean",
    "is_nonzero": "Python boolean",
    "equal": "Python boolean",
    "allclose": "Python boolean",
    "Tensor.__contains__": "Python boolean",
    "Tensor.__int__": "Python integer",
    "Tensor.__index__": "Python index",
    "Tensor.__float__": "Python float",
    "Tensor.__complex__": "Python complex number",
    "Tensor.item": "Python number",
    "Tensor.tolist": "Python list",
    "Tensor.numpy": "NumPy array",
    "Tensor.to_numpy": "NumPy array",
}
_PREFIX = "torch."
_OPS = "ops."


def name_of(function: Callable[..., Any]) -> str | None:
    """Return the name of a function that a mode has received; None if it has none in the package.

    A method that is also a function has the name of the function; an op that a program defined, `ops.space.op.default`.
    """
    if isinstance(function, OpOverloadPacket) and function.namespace != "aten":  # of a single op
        function = getattr(function, *function.overloads())
    if isinstance(function, OpOverload) and function.namespace != "aten":
        return f"{_OPS}{function}"
    name = overrides.resolve_name(getattr(function, "function_form", function)) or overrides.resolve_name(function)
    if name is None or not name.startswith(_PREFIX):
        return None
    return name.removeprefix(_PREFIX).removeprefix("functional.")  # which PyTorch shows as part of the name


@cache
def _by_name() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for functions in overrides._get_overridable_functions()[0].values():
        for function in functions:
            name = name_of(function)
            if name is not None:
                found.setdefault(name, function)
    return found


def _defined_op(name: str) -> OpOverload:
    try:
        found = attrgetter(name)(ops)
    except AttributeError:
        found = None
    if not isinstance(found, OpOverload) or found.namespace == "aten":
        raise ValueError(f"torch.ops.{name} is not defined\n  import what defines it before you load the program")
    return found


def function_named(name: str) -> Callable[..., Any]:
    """Return the function that a program calls by this name. Raises ValueError if programs do not call it."""
    if isinstance(name, str) and name.startswith(_OPS):
        return _defined_op(name.removeprefix(_OPS))
    found = _by_name().get(name) if isinstance(name, str) else None
    if found is None or name.rpartition(".")[2] in _LEFT_OUT:
        raise ValueError(f"{name!r} is no function that a program may call")
    return found
