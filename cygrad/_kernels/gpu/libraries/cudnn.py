"""Convolutions by cuDNN; None for anything it rejects, or if it is not installed.

Plans are made by the package nvidia-cudnn-frontend if it is there, otherwise by the library (`cudnn_library.py`).

A plan is built once for each geometry and cached. cuDNN infers groups from the shapes: filters have only their group's
share of the channels.
"""

import math
from functools import cache
from importlib import import_module
from threading import local
from typing import Any

from cygrad._kernels.device.cupy_library import cupy, current_device, dense, switches
from cygrad._kernels.gpu.libraries import cudnn_library
from cygrad._kernels.gpu.runtime.graph_capture import is_capturing
from cygrad._kernels.gpu.runtime.matmul_precision import Precision

_TYPES = {"e": "HALF", "E": "BFLOAT16", "f": "FLOAT", "d": "DOUBLE"}  # by dtype char
_MOST = 1024
_plans: dict = {}  # by the arguments of `computed`: a Plan, or None if cuDNN has none
_of_thread = local()  # .handles: by GPU
settings: dict[str, Any] = {"enabled": True, "deterministic": False, "allow_tf32": True}  # torch.backends.cudnn's


@cache
def module():
    """Return the `cudnn` package if it can load cuDNN, else None."""
    try:
        found = import_module("cudnn")
        found.backend_version()
    except Exception:  # the package or its library is missing
        return None
    return found


def source():
    """Return what convolutions are computed with: "nvidia-cudnn-frontend", "libcudnn", or None without cuDNN."""
    if module() is not None:
        return "nvidia-cudnn-frontend"
    return "libcudnn" if cudnn_library.is_usable() else None


def version():
    """Return the version of cuDNN as a number; None without it."""
    if module() is not None:
        return module().backend_version()
    return cudnn_library.version() if source() else None


def all_settings():
    """Return the settings that decide which kernels a captured step has, and that no other guard compares."""
    of_cudnn = (settings[name] for name in ("enabled", "deterministic", "allow_tf32"))
    return *of_cudnn, *Precision.reduced.values()


def computed(kind, given, shape, where):
    """Return a contiguous array of `shape`, or None if cuDNN cannot compute it.

    `kind` with `given` is `conv_fprop` of (images, filters), `conv_dgrad` of (results, filters), or `conv_wgrad` of
    (images, results).
    """
    dtype = given[0].dtype
    if not settings["enabled"] or dtype.char not in _TYPES or source() is None:
        return None
    given = [a if a.data.ptr % 16 == 0 else a.copy() for a in map(dense, given)]  # as plans assume
    is_ordered = settings["deterministic"] or switches.in_order
    geometry = tuple(map(tuple, (where.low, where.stride, where.dilation)))
    shapes = *(a.shape for a in given), tuple(shape)  # with strides, the inputs do not determine the last shape
    key = current_device(), kind, dtype.char, *shapes, *geometry, is_ordered, settings["allow_tf32"]
    if key not in _plans:
        if is_capturing():  # building a plan may wait for the GPU
            return None
        if len(_plans) >= _MOST:
            _plans.pop(next(iter(_plans)), None)
        _plans[key] = _tried(_planned, kind, given, shape, geometry, is_ordered) if _is_even(where) else None
    plan = _plans[key]
    if plan is None:
        return None
    out = cupy().empty(shape, dtype)
    if _tried(plan.run, (*given, out)) is None:
        _plans[key] = None
        return None
    return out


def _tried(function, *args):
    """Return `function(*args)`, or None if it raises."""
    try:
        return function(*args)
    except Exception:
        return None


def _planned(kind, given, shape, geometry, is_ordered):
    """Return a plan made by what there is of cuDNN."""
    if module() is not None:
        return Plan(*_graph(kind, given, shape, geometry, is_ordered))
    shapes = *(a.shape for a in given), tuple(shape)
    return cudnn_library.Plan(kind, shapes, given[0].dtype.char, geometry, is_ordered, settings["allow_tf32"])


def _is_even(where):
    """Whether the padding before and after the image is equal, as far as windows reach."""
    return min(where.low) >= 0 and all(
        (image + 2 * low - dilation * (kernel - 1) - 1) // stride + 1 == size
        for image, low, dilation, kernel, stride, size in zip(
            where.image, where.low, where.dilation, where.kernel, where.stride, where.size
        )
    )


def _handle():
    handles = _of_thread.__dict__.setdefault("handles", {})
    device = current_device()
    if device not in handles:
        handles[device] = module().create_handle()
    module().set_stream(handles[device], cupy().cuda.get_current_stream().ptr)
    return handles[device]


def _graph(kind, given, shape, geometry, is_ordered):
    """Return (a graph with its execution plan, its tensors)."""
    cudnn = module()
    name = _TYPES[given[0].dtype.char]
    own, wide = (getattr(cudnn.data_type, n) for n in (name, "DOUBLE" if name == "DOUBLE" else "FLOAT"))
    graph = cudnn.pygraph(handle=_handle(), io_data_type=own, intermediate_data_type=wide, compute_data_type=wide)

    def sizes(shape):
        """Return (lengths, strides), with at least two image dimensions."""
        dim = [*shape[:2], *([1] if len(shape) == 3 else []), *shape[2:]]
        return dim, [math.prod(dim[i + 1 :]) for i in range(len(dim))]

    tensors = [
        graph.tensor(name=f"given{i}", dim=dim, stride=stride, data_type=own)
        for i, (dim, stride) in enumerate(sizes(a.shape) for a in given)
    ]
    before = [[value] if len(shape) == 3 else [] for value in (0, 1, 1)]
    padding, stride, dilation = ([*first, *values] for first, values in zip(before, geometry))
    out = getattr(graph, kind)(*tensors, padding=padding, stride=stride, dilation=dilation)
    dim, steps = sizes(shape)
    out.set_output(True).set_data_type(own).set_dim(dim).set_stride(steps)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    notes = [cudnn.numerical_note.NONDETERMINISTIC] if is_ordered else []
    if name == "FLOAT" and not settings["allow_tf32"]:
        notes.append(cudnn.numerical_note.TENSOR_CORE)
    if notes:
        graph.deselect_numeric_notes(notes)
    graph.check_support()
    graph.build_plans()
    return graph, (*tensors, out)


class Plan:
    """A graph with its execution plan, ready to run on arrays."""

    def __init__(self, graph, tensors):
        self.graph, self.tensors = graph, tensors
        self.size = graph.get_workspace_size()
        self.compiled = None  # a faster equivalent of `graph.execute`, set after the first run; False if there is none

    def run(self, arrays):
        """Compute the last array from the others."""
        handle, workspace = _handle(), cupy().cuda.alloc(max(self.size, 1))
        pointers = [a.data.ptr for a in arrays]
        if self.compiled and _tried(self.compiled, pointers, workspace.ptr, handle):
            return True
        self.graph.execute(dict(zip(self.tensors, pointers)), workspace.ptr, handle=handle)
        self.compiled = (_tried(_compiled, self.graph, self.tensors) or False) if self.compiled is None else False
        return True


def _compiled(graph, tensors):
    """Return the last step of newer packages' `graph.execute`, without its Python checks, which take ten times as long.

    Raises if the package does not have it.
    """
    if graph.selected_engine is not None:
        raise NotImplementedError("this plan is implemented in Python")
    lowered, index, uids = graph._lowered_graph, graph._plans[graph._plan_index].cpp_index, [t.uid for t in tensors]
    execute, at = (lowered._execute, ()) if index is None else (lowered._execute_plan_at_index, (index,))

    def run(pointers, workspace, handle):
        execute(dict(zip(uids, pointers)), workspace, *at, handle.backend_handle)
        return True

    return run
