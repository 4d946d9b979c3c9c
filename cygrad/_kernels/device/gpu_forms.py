"""Kernels on GPUs, where CuPy has the arrays.

Note [Kernels on GPUs]
----------------------
A kernel is a function of arrays, then of other arguments. On CuPy's arrays `run` calls `form_of(kernel)` in its
place:

- for a ufunc of NumPy, CuPy's function of that name;
- for `cygrad._kernels.cpu.<family>.<module>.<name>`, the function `cygrad._kernels.gpu.<family>.<module>.<name>` where
  there is one;
- else the kernel itself: what is written in Python on NumPy's functions runs on CuPy's arrays as it stands, since NumPy
  hands calls on to the arrays' own functions. That of a row gets half precision as float32, as in memory. New arrays
  must then be made beside others (`like=`), for CuPy converts no array of NumPy's, and nothing may ask for a value,
  which would wait for the GPU.

CuPy is imported when the first array on a GPU is asked for (`library.py`), never before.
"""

from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import cupy, current_device, explained, is_array, name_of, on_device
from cygrad._kernels.device.launch import given_here
from cygrad._library import later

allocating = later("cygrad._kernels.gpu.runtime.allocator")
loops = later("cygrad._kernels.gpu.elementwise.fused_loops")

_CPU, _GPU = "cygrad._kernels.cpu.", "cygrad._kernels.gpu."
_forms: dict = {}
# Forms, by module and name, that get half precision as float32: CuPy's sorts and scans take no bfloat16, and squares
# are soon too large
_IN_FLOAT32 = set(
    """
    image.grid_sampling.sample
    linalg.ldl.ldl_factor linalg.ldl.ldl_solve linalg.triangular.solve_block
    loss.ctc.backward
    nn.distances.cdist nn.distances.vecdot
    reduction.scans.logcumsumexp reduction.scans.running_extremum
    reduction.searching.distinct reduction.searching.frequencies reduction.searching.isin
    reduction.searching.searchsorted
    reduction.sorting.first_along reduction.sorting.kth_along reduction.sorting.median_along
    reduction.sorting.median_of_all reduction.sorting.middle_along reduction.sorting.most_frequent
    reduction.sorting.nanmedian_of_all reduction.sorting.sorted_along
    """.split()
)
around: Any = None  # `around(kernel, form, args, kwargs)` calls each form in place of us, where somebody watches


def run(kernel, arrays, args):
    """`kernel(*arrays, *args)` on the GPU where the arrays are.

    Among `arrays` may be numbers, None, and arrays of one element in the CPU's memory. Raises RuntimeError for arrays
    on different devices.
    """
    try:
        given = given_here(arrays)
        if given is None or around is not None:
            device, given = _given(arrays)
            return _call(kernel, device, (*given, *args), {}, True)
        form = _forms.get(kernel) or form_of(kernel)  # from here on as in `_call`, whose call would take time
        if form is kernel:
            form = partial(_in_float32, kernel)
        try:
            return form(*given, *args)
        except Exception as error:
            if explained(error) is error:
                raise
            raise explained(error) from error
    except ValueError:
        from cygrad._kernels.cpu.elementwise.numpy_pointwise import broadcast_failure

        shapes = [a.shape if is_array(a) else np.shape(a) for a in arrays]
        if not isinstance(kernel, np.ufunc) or _broadcast(shapes):
            raise
        raise RuntimeError(broadcast_failure(*shapes)) from None


def _given(arrays):
    """(the GPU they are on, what kernels get for arrays): of those in the CPU's memory their only elements."""
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
    """Do arrays of these shapes?"""
    try:
        return np.broadcast_shapes(*shapes) is not None
    except ValueError:
        return False


def call_form(kernel, a, in_memory, args, kwargs):
    """`kernel(*args, **kwargs)` on the GPU where its argument `a` is; `in_memory` stands before it, or is None.

    Raises RuntimeError if that is an array with dimensions.
    """
    if in_memory is not None and in_memory.ndim:
        raise different_devices("cpu", f"cuda:{a.device.id}")
    return _call(kernel, a.device.id, args, kwargs)


def _call(kernel, device, args, kwargs, is_pure=False):
    form = form_of(kernel)
    if is_pure and form is kernel:  # on NumPy's functions, of which CuPy's know no bfloat16
        form = partial(_in_float32, kernel)
    if around is not None:
        form, args, kwargs = partial(around, kernel, form), (args, kwargs), {}
    try:
        if device == current_device():
            return form(*args, **kwargs)
        with on_device(device):
            return form(*args, **kwargs)
    except Exception as error:  # that a kernel is not compiled is no RuntimeError
        # No variable keeps the error, which holds the frames: what these hold would stay until the collector comes.
        if explained(error) is error:
            raise
        raise explained(error) from error


def device_of(arrays):
    """The number of the GPU that arrays have in common; arrays without dimensions may be in the CPU's memory."""
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
    """The error for operands on two devices."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!\n"
        f"  move one of them first, as in x.to({(second if first == 'cpu' else first)!r})"
    )


def check_out(array, out):
    """Raise RuntimeError unless what is to be written into `out` is where it is."""
    places = [f"cuda:{a.device.id}" if is_array(a) else "cpu" for a in (array, out)]
    if places[0] != places[1]:
        raise RuntimeError(f"Expected out tensor to have device {places[0]}, but got {places[1]} instead")


def form_of(kernel):
    """The function that stands for a kernel on GPUs."""
    try:
        return _forms[kernel]
    except KeyError:
        _forms[kernel] = found = _find(kernel)
        return found


def fitting(kernel, array):
    """What runs a kernel on an array: its form, or it itself."""
    return form_of(kernel) if is_array(array) else kernel


def _find(kernel):
    name = getattr(kernel, "__name__", "")
    if isinstance(kernel, np.ufunc):
        from cygrad._kernels.gpu.base import ufunc

        return getattr(ufunc, name, None) or getattr(cupy(), name)
    module = getattr(kernel, "module", None) or getattr(kernel, "__module__", None) or ""  # the first if compiled
    if module.startswith("numpy"):
        return getattr(cupy(), name)
    if module.startswith(_CPU):
        place = _GPU + module.removeprefix(_CPU)
        try:
            found = getattr(import_module(place), name, None)
        except ModuleNotFoundError as error:
            if error.name != place:
                raise
            found = None
        if found is not None:
            is_widened = f"{module.removeprefix(_CPU)}.{name}" in _IN_FLOAT32
            return partial(_in_float32, found) if is_widened else found
    if hasattr(kernel, "loop"):
        from cygrad._kernels.gpu.elementwise.fused_loops import form

        return form(kernel, partial(_in_float32, kernel))
    around = getattr(kernel, "__wrapped__", None) or getattr(kernel, "func", None)
    if not isinstance(kernel, FunctionType) and not isinstance(around, FunctionType):  # compiled
        raise RuntimeError(f"{name} can not be computed on a GPU\n  move the tensors first, as in x.cpu()")
    return kernel


def _in_float32(form, *args, **kwargs):
    """`form(*args, **kwargs)` where arrays of half precision become float32, and results become their type again."""
    half = next((a.dtype for a in args if is_array(a) and name_of(a.dtype) in ("float16", "bfloat16")), None)
    if half is None:
        return form(*args, **kwargs)
    found = form(*(a.astype(np.float32) if is_array(a) and a.dtype == half else a for a in args), **kwargs)
    if isinstance(found, tuple):
        return tuple(_narrow(part, half) for part in found)
    return _narrow(found, half)


def _narrow(a, dtype):
    return a.astype(dtype) if is_array(a) and a.dtype == np.float32 else a


def view(a, shape, strides, offset):
    """A view of the memory of `a` from `offset` bytes behind its first element, with these strides in bytes."""
    require_array(a)
    forwards = tuple(map(abs, strides))  # CuPy makes none of negative strides
    if 0 in shape:
        return cupy().ndarray(shape, a.dtype, a.data, forwards)
    backwards = [i for i, stride in enumerate(strides) if stride < 0 and shape[i] > 1]
    start = offset + sum((shape[i] - 1) * strides[i] for i in backwards)
    found = cupy().ndarray(shape, a.dtype, a.data + start, forwards)
    if not backwards:
        return found
    return found[tuple(slice(None, None, -1 if i in backwards else 1) for i in range(len(shape)))]


def require_array(a):
    """Raise TypeError for what is no array on a GPU."""
    if not is_array(a):
        raise TypeError(f"expected an array, not {type(a).__name__}")


def lies_within(part, whole):
    """Whether the extent in memory of one array lies within that of another, which may be elsewhere."""
    if not (is_array(part) and is_array(whole)):
        return False
    low, high = extent(part)
    low_whole, high_whole = extent(whole)
    return low == high or (low_whole <= low and high <= high_whole)


def extent(a):
    """The addresses of the first byte of an array and of that behind its last."""
    start = a.data.ptr
    if a.size == 0:
        return start, start
    steps = [(length - 1) * stride for length, stride in zip(a.shape, a.strides)]
    return start + sum(s for s in steps if s < 0), start + sum(s for s in steps if s > 0) + a.itemsize
