"""Runs cuFFT by plans that no two streams and no two graphs share.

A plan has a work area, which cuFFT writes in each transform. CuPy's own cache hands one plan to all streams of a
thread: transforms in two streams would write the same work area at the same time, and a captured graph would go on
writing that of a plan which the cache has dropped, where others may have their memory by then. So each plan here
belongs to one stream of one thread. A capture takes the plan that the warm-up has made, and the graph keeps it.
"""

import math
from _thread import _local as local
from collections import OrderedDict
from importlib import import_module
from typing import Any

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.runtime.graph_capture import current, place

MOST_PLANS = 16  # of a thread: each holds a work area
_TYPES = {"c2c": {"F": "C2C", "D": "Z2Z"}, "r2c": {"f": "R2C", "d": "D2Z"}, "c2r": {"F": "C2R", "D": "Z2D"}}
_OF_RESULTS: dict[str, Any] = {"c2c": str, "r2c": str.upper, "c2r": str.lower}  # dtype chars


class _OfThread(local):
    def __init__(self):
        self.plans = OrderedDict()  # by GPU, stream and arguments; the least recently used first


_of_thread = _OfThread()


def transform(a, count, is_at_end, how, length=None, forward=True, is_own=False):
    """Transform the last `count` dimensions of `a`, or the first if not `is_at_end`; they are one to three.

    `how` is "c2c", "r2c" or "c2r"; for the last, `length` is that of the last of these dimensions in the result. `a` is
    in C order. `is_own` allows "c2c" to work in place, and "c2r" to use up its input, which it always does. Nothing is
    scaled.
    """
    assert a.flags.c_contiguous and (is_own or how != "c2r")
    first = a.ndim - count if is_at_end else 0
    last = first + count - 1
    shape, lengths = list(a.shape), a.shape[first : last + 1]
    if how == "r2c":
        shape[last] = a.shape[last] // 2 + 1
    elif how == "c2r":
        shape[last] = length
    lengths_after = tuple(shape[first : last + 1])
    batch = a.size // math.prod(lengths)
    if is_at_end:
        layout, layout_after = (1, math.prod(lengths)), (1, math.prod(lengths_after))
    else:
        layout = layout_after = (batch, 1)
    out = a if is_own and how == "c2c" else cupy().empty(shape, _OF_RESULTS[how](a.dtype.char))
    points = lengths_after if how == "c2r" else lengths
    arguments = points, lengths, *layout, lengths_after, *layout_after, _TYPES[how][a.dtype.char], batch
    plan, cufft = _plan(arguments), _cufft()
    plan.fft(a, out, cufft.CUFFT_FORWARD if forward else cufft.CUFFT_INVERSE)
    return out


def _cufft():
    return import_module("cupy.cuda.cufft")


def _plan(arguments):
    """Return a plan of the current stream; in a capture, one of its own."""
    plans, capture, here = _of_thread.plans, current(), place()
    key = *here, arguments
    if capture is not None:
        found = capture.plans.get(key)
        if found is None:
            found = capture.plans[key] = _taken(plans, key) or _made(arguments)
            capture.kept.append(found)
        return found
    found = plans.pop(key, None)
    plans[key] = found = _made(arguments) if found is None else found
    if len(plans) > MOST_PLANS:
        plans.popitem(last=False)
    return found


def _taken(plans, key):
    """Take a plan made before a capture: that of its stream, else of another, since planning may need the GPU."""
    device, _, arguments = key
    if key not in plans:
        key = next((other for other in plans if other[0] == device and other[2] == arguments), key)
    return plans.pop(key, None)


def _made(arguments):
    *layouts, kind, batch = arguments
    # what follows serves CuPy's `get_output_array`, which we do not use
    return _cufft().PlanNd(*layouts, getattr(_cufft(), f"CUFFT_{kind}"), batch, "C", len(arguments[0]) - 1, None)
