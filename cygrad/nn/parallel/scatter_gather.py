"""Spreading inputs over devices and collecting outputs, for one device."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor, cat
from cygrad.nn.modules import Module

__all__ = ["gather", "is_namedtuple", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """Whether a value is a named tuple.

    >>> import cygrad
    >>> from collections import namedtuple
    >>> from cygrad.nn.parallel.scatter_gather import is_namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> is_namedtuple(Point(1, 2)), is_namedtuple((1, 2))
    (True, False)
    """
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def _check_one(devices: Any, name: str) -> Any:
    if len(devices) != 1:
        raise ValueError(f"nn.parallel.{name}: cygrad computes on one device, got {list(devices)}")
    return devices[0]


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> list[Any]:
    """Return a list with `inputs`, however nested, for each device; of devices there is one.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.parallel.scatter((cygrad.ones(2), "text"), ["cpu"])
    [(tensor([1., 1.]), 'text')]
    """
    return [_moved(inputs, _check_one(target_gpus, "scatter"))]


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """Return `scatter(inputs)` and `scatter(kwargs)`, as tuples.

    >>> import cygrad
    >>> from cygrad.nn.parallel.scatter_gather import scatter_kwargs
    >>> scatter_kwargs((cygrad.ones(2),), {"scale": 3}, ["cpu"])
    (((tensor([1., 1.]),),), ({'scale': 3},))
    """
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def _moved(value: Any, device: Any) -> Any:
    """The value with all its tensors on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if is_namedtuple(value):
        return type(value)(*(_moved(each, device) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(each, device) for each in value)
    if isinstance(value, dict):
        return type(value)((key, _moved(each, device)) for key, each in value.items())
    return value


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Join the outputs of all devices along `dim`, on one of them; they may be nested.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.parallel.gather([cygrad.ones(2)], "cpu")
    tensor([1., 1.])
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        return cat([each.to(target_device) for each in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([each[key] for each in outputs], target_device, dim)) for key in first)
    joined = (gather(each, target_device, dim) for each in zip(*outputs))
    return type(first)(*joined) if is_namedtuple(first) else type(first)(joined)


def replicate(network: Module, devices: Any, detach: bool = False) -> list[Module]:
    """Return a list with the module for each device; of devices there is one.

    >>> from cygrad import nn
    >>> copies = nn.parallel.replicate(nn.Linear(2, 3), ["cpu"])
    >>> len(copies)
    1
    """
    return [network.to(_check_one(devices, "replicate"))]


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """Return `[module(*input, **kwargs), ...]` for modules, inputs and keyword arguments side by side.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.parallel.parallel_apply([nn.ReLU(), nn.Flatten(0)], [cygrad.ones(1), cygrad.ones(1, 1)])
    [tensor([1.]), tensor([1.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    return [
        module(*(each if isinstance(each, tuple) else (each,)), **kwargs)
        for module, each, kwargs in zip(modules, inputs, kwargs_tup or [{}] * len(modules))
    ]
