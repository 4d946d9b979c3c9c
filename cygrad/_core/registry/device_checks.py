"""Checks that operands share a device, for ops whose kernels would otherwise fail with a less helpful message.

Most ops check devices when their kernel runs (`gpu.run`). Ops that prepare arrays before that, or read indices, state
`devices=` in their row (see opdef.pyx); their wrapper `autocast.guarded` checks the devices once there are arrays
elsewhere.
"""

from cygrad._core.graph.opdef import facts_of
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.device import gpu_forms

DEVICES = facts_of["devices"]  # {name of an op: "together", "recurrent" or arguments that may be numbers}
_ON_CPU = facts_of["on_cpu"]  # {name of an op: arguments that belong on the CPU, by position and by name}


def check(name, args, kwargs):
    """Return the arguments of an op, with numbers moved from the CPU to the device of the others.

    Raises RuntimeError if the tensors are on different devices.
    """
    numbers = DEVICES[name]
    is_recurrent = numbers == "recurrent"  # batch sizes are integers on the CPU
    values = [value for i, value in enumerate(args) if i not in _ON_CPU.get(name, ())]
    values += [value for key, value in kwargs.items() if key != "out" and key not in _ON_CPU.get(name, ())]
    tensors = [value for value in _tensors(values) if not is_recurrent or value.is_floating_point()]
    if len(tensors) < 2:
        return args, kwargs
    first = tensors[0].device
    if all(value.device == first for value in tensors):
        return args, kwargs
    if not isinstance(numbers, str):
        place = next(value.device for value in tensors if not value.is_cpu)
        args = tuple(_number(value, place) if i in numbers else value for i, value in enumerate(args))
        kwargs = {key: _number(value, place) if key in numbers else value for key, value in kwargs.items()}
        tensors = list(_tensors((*args, *(value for key, value in kwargs.items() if key != "out"))))
        if all(value.device == tensors[0].device for value in tensors):
            return args, kwargs
    if is_recurrent:
        found = next(value for value in tensors if value.device != first)
        what = "hidden" if any(found is value for value in _tensors(args[1:2])) else "parameter"
        raise RuntimeError(
            f"Input and {what} tensors are not at the same device, found input tensor at {first} and {what} tensor at "
            f"{found.device}"
        )
    other = next(value.device for value in tensors if value.device != first)
    raise gpu_forms.different_devices(str(first), str(other))


def _tensors(values):
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from _tensors(value)


def _number(value, place):
    return value.to(place) if isinstance(value, Tensor) and value.ndim == 0 and value.is_cpu else value
