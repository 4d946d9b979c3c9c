"""Kernels on GPUs, dispatched for CuPy arrays.

Note [Kernels on GPUs]
----------------------
A kernel is a function of arrays followed by other arguments. For CuPy arrays, `run` calls `form_of(kernel)` instead of
the kernel:

- for a NumPy ufunc, the CuPy function of the same name;
- for `cygrad._kernels.cpu.<module>.<name>`, the function `cygrad._kernels.gpu.<module>.<name>` if it exists;
- otherwise the kernel itself: Python code written against NumPy functions also runs on CuPy arrays, because NumPy
  dispatches to the array's own functions. If such a kernel belongs to a row, half precision is passed as float32, as
  on the CPU, unless the kernel only calls others that have forms (`half_as_it_is`). It must create new arrays with
  `like=`, because CuPy does not convert NumPy arrays, and must not read values back, because that would wait for the
  GPU.

CuPy is imported when the first GPU array is requested (`cupy_library.py`), never earlier.
"""

from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import (
    cupy,
    current_device,
    explained,
    gpu_class,
    is_array,
    is_meta,
    is_sparse,
    name_of,
    on_device,
)
from cygrad._kernels.device.errors import broadcast_failure
from cygrad._kernels.device.launch import given_here
from cygrad._library import later

basics = later("cygrad._kernels.gpu.base.arrays")  # needed only for arrays on GPUs and for meta arrays
graph_capture = later("cygrad._kernels.gpu.runtime.graph_capture")  # needed only for GPU arrays
loops = later("cygrad._kernels.gpu.elementwise.fused_loops")  # likewise
ufuncs = later("cygrad._kernels.gpu.base.ufunc")  # likewise
meta = later("cygrad._kernels.meta.running")  # needed only for meta arrays

_CPU, _GPU = "cygrad._kernels.cpu.", "cygrad._kernels.gpu."
_SINGLE, _HALVES = np.dtype(np.float32), ("float16", "bfloat16")
_forms: dict = {}
around: Any = None  # `around(kernel, form, args, kwargs)`, if set by an observer, calls each form in our place
captures: set = set()  # of graphs, in any thread: they keep the arrays that forms get


def run(kernel, arrays, args, by_element=False):
    """Run `kernel(*arrays, *args)` on the GPU that holds the arrays, or describe its results if they are meta arrays.

    `arrays` may contain scalars, None, and 0-d arrays in host memory. `by_element` is whether each element of the
    result depends only on those at the same position. Raises RuntimeError for arrays on different devices.
    """
    try:
        given = given_here(arrays)
        if given is None or around is not None:
            for a in arrays:
                if is_sparse(a):
                    raise a.refused(kernel)
            if any(map(is_meta, arrays)):
                meta.check_places(arrays)
                return meta.run(kernel, (*meta.beside(arrays, arrays), *args), None, by_element)
            device, given = _given(arrays)
            return _call(kernel, device, (*given, *args), {}, True)
        form = _forms.get(kernel) or form_of(kernel)  # inlined from `_call` from here on, to save the call
        if captures:
            graph_capture.keep((given, args))
            found = graph_capture.join(form, given, args)
            if found is not None:
                return found
            if getattr(form, "hands_on", False):
                form = partial(graph_capture.hand_on, form)
        if form is kernel:
            form = partial(in_float32, kernel)
        try:
            return form(*given, *args)
        except Exception as error:
            if explained(error) is error:
                raise
            raise explained(error) from error
    except ValueError:
        shapes = [a.shape if is_array(a) else np.shape(a) for a in arrays]
        if not isinstance(kernel, np.ufunc) or _broadcast(shapes):
            raise
        raise RuntimeError(broadcast_failure(*shapes)) from None


def _given(arrays):
    """Return (index of the arrays' GPU, kernel arguments), with 0-d arrays in host memory replaced by their element."""
    ndarray, device, given = cupy_library._found.ndarray, None, []
    for a in arrays:
        if type(a) is ndarray:
            index = a.data.device_id
            if index != device and device is not None:
                raise different_devices(f"cuda:{device}", f"cuda:{index}")
            device = index
        elif type(a) is np.ndarray:
            if a.ndim:
                device_of(arrays)  # raises
            a = a[()]
        given.append(a)
    return device, given


def _broadcast(shapes):
    """Whether arrays of these shapes broadcast."""
    try:
        return np.broadcast_shapes(*shapes) is not None
    except ValueError:
        return False


def call_form(kernel, a, in_memory, args, kwargs):
    """Run `kernel(*args, **kwargs)` on the GPU of its argument `a`.

    `in_memory` is the first array argument in host memory, or None. Raises RuntimeError if it has dimensions.
    """
    if is_sparse(a):
        raise a.refused(kernel)
    if is_meta(a):
        return meta.run_on(kernel, *meta.beside((a,), args), **kwargs)
    if in_memory is not None and in_memory.ndim:
        raise different_devices("cpu", f"cuda:{a.device.id}")
    return _call(kernel, a.device.id, args, kwargs)


def passed_on(kernel, *args):
    """Call a kernel whose results the caller only passes on: in a captured step, it may wait (Note [Groups])."""
    return graph_capture.hand_on(kernel, *args) if captures else kernel(*args)


def _call(kernel, device, args, kwargs, is_pure=False):
    form = form_of(kernel)
    if captures:
        graph_capture.keep((args, kwargs))
        may_wait = graph_capture.is_handed_on() and not kwargs and around is None and device == current_device()
        found = graph_capture.join(form, args) if may_wait else graph_capture.settle()
        if found is not None:
            return found
    if is_pure and form is kernel:  # it calls NumPy functions, whose CuPy versions do not support bfloat16
        form = partial(in_float32, kernel)
    if around is not None:
        form, args, kwargs = partial(around, kernel, form), (args, kwargs), {}
    try:
        if device == current_device():
            return form(*args, **kwargs)
        with on_device(device):
            return form(*args, **kwargs)
    except Exception as error:  # compile errors of kernels are not RuntimeErrors
        # Do not bind the error to a variable: it holds the frames, whose objects would live until the collector runs.
        if explained(error) is error:
            raise
        raise explained(error) from error


def device_of(arrays):
    """Return the index of the GPU that the arrays share; 0-d arrays may be in host memory."""
    found = None
    for a in arrays:
        if is_array(a):
            index = a.data.device_id
            if found is None:
                found = index
            elif index != found:
                raise different_devices(f"cuda:{found}", f"cuda:{index}")
        elif isinstance(a, np.ndarray) and a.ndim:
            gpu = next(f"cuda:{other.device.id}" for other in arrays if is_array(other))
            raise different_devices(*((gpu, "cpu") if found is not None else ("cpu", gpu)))
    return found


def different_devices(first, second):
    """Return the error for operands on two devices."""
    if "meta" in (first, second):
        return meta.other_device(first, second)
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!\n"
        f"  move one of them first, as in x.to({(second if first == 'cpu' else first)!r})"
    )


def check_out(array, out):
    """Raise RuntimeError unless `array`, which is to be written into `out`, is on the device of `out`."""
    places = [place_name(a) for a in (array, out)]
    if places[0] != places[1]:
        raise RuntimeError(f"Expected out tensor to have device {places[0]}, but got {places[1]} instead")


def place_name(array):
    """Return the name of the device that holds an array."""
    return "meta" if is_meta(array) else f"cuda:{array.device.id}" if is_array(array) else "cpu"


def form_of(kernel):
    """Return the GPU form of a kernel."""
    try:
        return _forms[kernel]
    except KeyError:
        _forms[kernel] = found = _find(kernel)
        return found


def fitting(kernel, array):
    """Return the function that runs a kernel on this array: its form on the array's GPU, or the kernel itself."""
    if is_sparse(array):
        raise array.refused(kernel)
    if is_meta(array):
        return partial(meta.run_on, kernel)
    if not is_array(array):
        return kernel
    index = array.data.device_id
    return form_of(kernel) if index == current_device() and not captures else partial(_there, index, form_of(kernel))


def _there(index, form, *args):
    if captures:
        graph_capture.used(args)
    with on_device(index):
        return form(*args)


def _find(kernel):
    name = getattr(kernel, "__name__", "")
    if isinstance(kernel, np.ufunc):
        return getattr(ufuncs, name, None) or getattr(cupy(), name)
    module = getattr(kernel, "module", None) or getattr(kernel, "__module__", None) or ""  # `module` if compiled
    if module.startswith("numpy"):
        return getattr(cupy(), name)
    if module.startswith(_GPU):
        return partial(kernel)  # a form itself, which takes half precision as it is
    if module.startswith(_CPU):
        place = _GPU + module.removeprefix(_CPU)
        try:
            found = getattr(import_module(place), name, None)
        except ModuleNotFoundError as error:
            if error.name != place:
                raise
            found = None
        if found is not None:
            is_widened = getattr(found, "half_as_float32", False)
            return partial(in_float32, found) if is_widened else found
    if hasattr(kernel, "loop"):
        return loops.form(kernel, partial(in_float32, kernel))
    if getattr(kernel, "half_as_it_is", False):
        return _handing_on(kernel)
    around = getattr(kernel, "__wrapped__", None) or getattr(kernel, "func", None)
    if not isinstance(kernel, FunctionType) and not isinstance(around, FunctionType):  # compiled
        raise RuntimeError(f"{name} cannot be computed on a GPU\n  move the tensors first, as in x.cpu()")
    return kernel


def _handing_on(kernel):
    form: Any = partial(kernel)
    form.hands_on = True  # what it calls may wait (Note [Groups] in `_kernels/gpu/launch/groups.py`)
    return form


def half_as_float32(form):
    """Decorate a GPU form that is to receive half precision as float32.

    CuPy's sorts and scans do not support bfloat16, and squares overflow soon in float16.
    """
    form.half_as_float32 = True
    return form


def half_as_it_is(kernel):
    """Decorate a kernel in Python that leaves all computing to kernels with GPU forms, which take half precision."""
    kernel.half_as_it_is = True
    return kernel


def in_float32(form, *args, **kwargs):
    """Call `form(*args, **kwargs)` with half-precision arrays widened to float32, and narrow the results again."""
    half, classes = None, cupy_library._classes  # `is_array` inlined
    for a in args:
        if half is None and isinstance(a, classes) and name_of(a.dtype) in _HALVES:
            half = a.dtype
    if half is None:
        return form(*args, **kwargs)
    found = form(*(basics.cast(a, _SINGLE) if is_array(a) and a.dtype == half else a for a in args), **kwargs)
    if isinstance(found, tuple):
        return tuple(_narrow(part, half) for part in found)
    return _narrow(found, half)


def _narrow(a, dtype):
    return basics.cast(a, dtype) if is_array(a) and a.dtype == _SINGLE else a


def view(a, shape, strides, offset):
    """Return a view of the memory of `a` that starts `offset` bytes after its first element; strides are in bytes."""
    kind = type(a)
    if kind is not gpu_class():
        require_array(a)
        if is_sparse(a):
            raise a.refused(view)
        return kind(shape, a.dtype, a.data + offset, strides)
    if not strides or (min(strides) >= 0 and 0 not in shape):
        return kind(shape, a.dtype, a.data + offset if offset else a.data, strides)
    forwards = tuple(map(abs, strides))  # CuPy creates no arrays with negative strides
    if 0 in shape:
        return cupy().ndarray(shape, a.dtype, a.data, forwards)
    backwards = [i for i, stride in enumerate(strides) if stride < 0 and shape[i] > 1]
    start = offset + sum((shape[i] - 1) * strides[i] for i in backwards)
    found = cupy().ndarray(shape, a.dtype, a.data + start, forwards)
    if not backwards:
        return found
    return found[tuple(slice(None, None, -1 if i in backwards else 1) for i in range(len(shape)))]


def require_array(a):
    """Raise TypeError unless `a` is a GPU array."""
    if not is_array(a):
        raise TypeError(f"expected an array, not {type(a).__name__}")


def lies_within(part, whole):
    """Whether the memory extent of `part` lies within that of `whole`; False unless both are on a GPU."""
    if not (is_array(part) and is_array(whole)):
        return False
    if is_meta(part) and not (is_meta(whole) and part.data.mem is whole.data.mem):
        return part.size == 0
    low, high = extent(part)
    low_whole, high_whole = extent(whole)
    return low == high or (low_whole <= low and high <= high_whole)


def extent(a):
    """Return the addresses of an array's first byte and of the byte after its last."""
    start = a.data.ptr
    if a.size == 0:
        return start, start
    steps = [(length - 1) * stride for length, stride in zip(a.shape, a.strides)]
    return start + sum(s for s in steps if s < 0), start + sum(s for s in steps if s > 0) + a.itemsize
