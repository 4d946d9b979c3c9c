"""Pooling, resizing and sampling of images, as `__torch_dispatch__` shows them; see `_dispatch_rules.py`.

Tables and windows that are computed before the kernel runs come with the op's `hint`: the arguments of the function.
"""

from typing import Any

from cygrad.ops import aten
from cygrad.ops._dispatch_rules import Step, _lists, _rule, shortened

_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


@_rule("max_pool2d_with_indices max_pool3d_with_indices")
def _max_pool(done: Any, made: Any) -> Step:
    kernel, stride, padding, dilation, ceil_mode = done.hint[0]
    size = _lists(kernel)
    n = len(size)
    given = [size, _lists(stride), _lists(padding), _lists(dilation), bool(ceil_mode)]
    args = shortened(given, (None, size, [0] * n, [1] * n, False), 1)
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], *args))


@_rule("adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices")
def _adaptive_max_pool(done: Any, made: Any) -> Step:
    op = getattr(aten, done.op.name.removesuffix("_with_indices")).default
    return Step(op, (done.inputs[0], _lists(done.hint[0][0])))


@_rule("fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices")
def _fractional_max_pool(done: Any, made: Any) -> Step:
    kernel, size, samples = done.hint
    op = getattr(aten, done.op.name.removesuffix("_with_indices")).default
    return Step(op, (done.inputs[0], _lists(kernel), _lists(size), samples))


@_rule("max_unpool2d max_unpool3d")
def _max_unpool(done: Any, made: Any) -> Step:
    indices, *how = done.hint
    size = list(made[0].shape[made[0].ndim - done.args[0] :])
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], indices, size, *map(_lists, how)))


@_rule("resample")
def _resample(done: Any, made: Any) -> Any:
    if done.hint is None:
        return NotImplemented
    name, *given = done.hint
    op, x = getattr(aten, name).default, done.inputs[0]
    if name.startswith("_adaptive"):
        return Step(op, (x, _lists(given[0])))
    if name.startswith("avg"):
        kernel, stride, padding, *how = given
        defaults = None, _lists(kernel), [0] * len(kernel), False, True, None
        return Step(op, (x, *shortened([*map(_lists, (kernel, stride, padding)), *how], defaults, 1)))
    size, align_corners, factors = given
    aligned = [] if "nearest" in name else [bool(align_corners)]
    scales = [] if all(factor is None for factor in factors) else list(factors)
    return Step(op, (x, _lists(size), *aligned, *scales))


@_rule("grid_sampler_2d grid_sampler_3d")
def _grid_sampler(done: Any, made: Any) -> Step:
    _, mode, padding, align_corners = done.args
    how = _MODES[mode], _PADDINGS[padding], bool(align_corners)
    return Step(getattr(aten, done.op.name).default, (*done.inputs[:2], *how))


@_rule("im2col col2im")
def _patches(done: Any, made: Any) -> Step:
    given = done.args if done.op.name == "col2im" else done.args[1:]
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], *map(_lists, given)))
