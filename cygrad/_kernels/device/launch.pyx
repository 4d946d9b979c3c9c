"""Launches our own kernels through C functions that CuPy's compiled modules export.

CuPy's Python kernel objects unpack and repack each argument, which takes longer than the driver call itself. Where CuPy
lacks these functions or has other signatures, as the stand-in for tests does, we launch through its Python objects.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, intptr_t, uint64_t
from numpy cimport PyArray_DATA, dtype as Dtype, ndarray as Array

from importlib import import_module

cdef extern from *:
    uint64_t bits_of_number "PyLong_AsUnsignedLongLongMask"(object number) except? 0xFFFFFFFFFFFFFFFF

cdef enum:
    MOST = 48           # maximum number of kernel arguments
    MOST_OPERANDS = 8
    MOST_DIMENSIONS = 64
    DENSE = 0           # an operand with all elements of the result in their order,
    ONE = 1             # one number for all of them,
    ROW = 2             # a row of the last dimensions, repeated,
    COLUMN = 3          # or one number for each row of the last dimensions

ctypedef object (*Launch)(intptr_t, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                          unsigned int, intptr_t, intptr_t, intptr_t, int)
cdef struct Lengths:    # the layout of a C++ `std::vector` with the compilers that build CuPy
    Py_ssize_t* begin
    Py_ssize_t* end
    Py_ssize_t* end_of_room

ctypedef object (*Make)(object, const Lengths*, object, object)
ctypedef object (*Prepare)()
ctypedef intptr_t (*Stream)() except? -1
ctypedef int (*Device)(int) except? -1

cdef Launch launch_kernel = NULL        # NULL: use Python objects
cdef Make make_array = NULL             # NULL: call the class, which takes twice as long
cdef Prepare ensure_context = NULL      # a thread needs it before its first launch
cdef Stream current_stream = NULL
cdef Device current_device = NULL
cdef object ndarray = None, python_device = None, on_device = None


cdef void* function(str module, str name, const char* signature) except NULL:
    return PyCapsule_GetPointer(import_module(module).__pyx_capi__[name], signature)


def connect(module):
    """Use this CuPy module for arrays, and its C functions for launches; return whether it has them."""
    global launch_kernel, make_array, ensure_context, current_stream, current_device, ndarray, python_device
    global on_device
    cdef str api = "cupy_backends.cuda.api."
    cdef void* launch
    ndarray, python_device, on_device = module.ndarray, module.cuda.runtime.getDevice, module.cuda.Device
    launch_kernel, make_array = NULL, NULL
    try:
        launch = function(
            api + "driver", "launchKernel",
            b"PyObject *(intptr_t, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, "
            b"unsigned int, intptr_t, intptr_t, intptr_t, int __pyx_skip_dispatch)",
        )
        ensure_context = <Prepare>function(api + "runtime", "_ensure_context", b"PyObject *(void)")
        current_device = <Device>function(api + "runtime", "getDevice", b"int (int __pyx_skip_dispatch)")
        current_stream = <Stream>function("cupy.cuda.stream", "get_current_stream_ptr", b"intptr_t (void)")
    except (ImportError, AttributeError, KeyError, ValueError):
        return False
    launch_kernel = <Launch>launch
    try:
        make_array = <Make>function(
            "cupy._core.core", "_ndarray_init",
            b"struct __pyx_obj_4cupy_5_core_4core__ndarray_base *(PyObject *, "
            b"__pyx_t_4cupy_5_core_7_carray_shape_t const &, PyObject *, PyObject *)",
        )
    except (ImportError, AttributeError, KeyError, ValueError):
        pass
    return True


cdef int device() except -1:
    return python_device() if launch_kernel == NULL else current_device(0)


def given_here(arrays):
    """Return the kernel arguments for `arrays` if all GPU arrays among them are on the current GPU, else None.

    0-d arrays in host memory are replaced by their element; if one has dimensions, the result is None, too.
    """
    cdef list given = []
    cdef int here = -1
    for a in arrays:
        if type(a) is ndarray:
            if here < 0:
                here = device()
            if a.data.device_id != here:
                return None
        elif type(a) is Array:
            if (<Array>a).ndim:
                return None
            a = a[()]
        given.append(a)
    return None if here < 0 else given


cdef object empty(tuple shape, dtype):
    """Return a new array on the current GPU."""
    cdef Py_ssize_t lengths[MOST_DIMENSIONS]
    cdef Lengths given
    cdef Py_ssize_t i
    cdef double elements = 1
    for i in range(len(shape)):
        elements *= <double>shape[i]
    if elements >= 2.0 ** 59:       # byte count beyond 63 bits, which CuPy would truncate silently
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if make_array == NULL or len(shape) > MOST_DIMENSIONS:
        return ndarray(shape, dtype)
    for i in range(len(shape)):
        lengths[i] = shape[i]
    given.begin, given.end, given.end_of_room = lengths, lengths + len(shape), lengths + len(shape)
    return make_array(ndarray, &given, dtype, None)


@cython.final
cdef class Kernel:
    """A kernel for the GPU that is current at construction."""

    cdef object raw             # CuPy's `RawKernel`
    cdef intptr_t handle        # CUDA function handle, 0 until compiled

    def __init__(self, raw):
        self.raw = raw

    def __call__(self, tuple blocks, tuple threads, tuple args, unsigned int shared=0):
        """Launch it on a grid, with `shared` bytes of shared memory per block."""
        cdef unsigned int sizes[6]
        cdef int64_t slots[MOST]
        cdef void* places[MOST]
        fill(sizes, blocks)
        fill(sizes + 3, threads)
        if launch_kernel == NULL or len(args) > MOST or not pack(args, slots, places):
            self.raw((sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5]), args, shared_mem=shared)
        else:
            self.launch(sizes, shared, places)

    cdef int launch(self, unsigned int* sizes, unsigned int shared, void** places) except -1:
        if not self.handle:
            self.handle = self.raw.kernel.ptr
        ensure_context()
        launch_kernel(self.handle, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], shared,
                      current_stream(), <intptr_t>places, 0, 0)
        return 0


cdef int fill(unsigned int* sizes, tuple given) except -1:
    """Fill in three sizes of at least 1."""
    cdef Py_ssize_t i
    cdef int64_t size
    for i in range(3):
        size = given[i] if i < len(given) else 1
        sizes[i] = <unsigned int>max(size, 1)
    return 0


cdef bint pack(tuple args, int64_t* slots, void** places) except -1:
    """Find the places of the arguments as the kernel expects them; False for an unsupported argument type.

    Structs, given as NumPy arrays of one element, are read where they are; all others from slots of 8 bytes.
    """
    cdef Py_ssize_t i
    cdef type kind
    for i in range(len(args)):
        arg = args[i]
        kind = type(arg)
        places[i] = &slots[i]
        if kind is ndarray:
            slots[i] = arg.data.ptr
        elif kind is float:
            (<double*>slots)[i] = arg
        elif kind is int or kind is bool:
            slots[i] = <int64_t>bits_of_number(arg)
        elif arg is None:
            slots[i] = 0
        elif kind is Array and (<Array>arg).size == 1 and (<Dtype>(<Array>arg).dtype).kind == c"V":
            places[i] = PyArray_DATA(<Array>arg)
        else:
            return False
    return True


@cython.final
cdef class Launches:
    """An elementwise function of arrays followed by numbers, with one kernel per dtype and operand kinds.

    `make(dtype, kinds)` returns the `RawKernel`, or None. A block has `threads` threads and computes `each` bytes of the
    result.
    """

    cdef object make
    cdef Py_ssize_t arrays, operands
    cdef unsigned int threads
    cdef int64_t each
    cdef dict kernels

    def __init__(self, make, Py_ssize_t arrays, Py_ssize_t operands, unsigned int threads, int64_t each):
        self.make = make
        self.arrays = arrays
        self.operands = operands
        self.threads = threads
        self.each = each
        self.kernels = {}

    def __call__(self, tuple operands):
        """Return the result, or None unless all arrays share a floating-point dtype and have supported layouts."""
        cdef int kinds[MOST_OPERANDS]
        cdef int64_t rows[MOST_OPERANDS]
        cdef int64_t slots[MOST]
        cdef void* places[MOST]
        cdef unsigned int sizes[6]
        cdef int64_t key = 0, total
        cdef Py_ssize_t i
        cdef int count = 0      # number of row lengths
        cdef bint are_alike
        cdef tuple order = None
        if len(operands) != self.operands:
            return None
        first = operands[0]
        if type(first) is not ndarray:
            return None
        if first.data.device_id != device():
            with on_device(first.data.device_id):
                return self(operands)
        dtype, shape = first.dtype, first.shape
        if (<Dtype>dtype).kind != c"f" and (<Dtype>dtype).kind != c"V":
            return None
        are_alike = first._c_contiguous
        for i in range(1, self.arrays):
            a = operands[i]
            if type(a) is not ndarray or (a.dtype is not dtype and a.dtype != dtype):
                return None
            if a.data.device_id != first.data.device_id:
                return None
            are_alike = are_alike and a.shape == shape and a._c_contiguous
        if not are_alike and first.ndim > 1:
            order = order_of_all(operands, self.arrays)
            are_alike = order is not None
        if not are_alike:
            shape = shape_of_all(operands, self.arrays)
            for i in range(self.arrays):
                rows[count] = kind_of(operands[i], shape, (<Dtype>dtype).itemsize, &kinds[i])
                if rows[count] < 0:
                    return None
                key = key << 2 | kinds[i]
                count += kinds[i] >= ROW
        key = (key << 24 | (<Dtype>dtype).type_num) << 8 | device()
        kernel = self.kernels.get(key)
        if kernel is None:
            raw = self.make(dtype, tuple([0 if are_alike else kinds[i] for i in range(self.arrays)]))
            if raw is None:
                return None
            kernel = self.kernels[key] = Kernel(raw)
        out = empty(shape, dtype) if order is None else empty_in_order(shape, order, dtype)
        total = out.size
        if not total:
            return out
        sizes[:] = [1, 1, 1, self.threads, 1, 1]
        sizes[0] = <unsigned int>((total * (<Dtype>dtype).itemsize + self.each - 1) // self.each)
        if launch_kernel == NULL or not pack(operands, slots, places):
            args = operands + (out, total, *[rows[i] for i in range(count)])
            (<Kernel>kernel).raw((sizes[0],), (self.threads,), args)
            return out
        slots[self.operands] = out.data.ptr
        slots[self.operands + 1] = total
        for i in range(count):
            slots[self.operands + 2 + i] = rows[i]
        for i in range(self.operands, self.operands + 2 + count):
            places[i] = &slots[i]
        (<Kernel>kernel).launch(sizes, 0, places)
        return out

    def layout(self, tuple operands):
        """Return (dtype, kinds, row lengths, shape, order) of the arrays and the result, or None where a call would.

        All arrays must be on the current GPU. `order` are the axes from longest to shortest stride, or None in C order.
        """
        cdef int kind = DENSE
        cdef int64_t row
        cdef Py_ssize_t i
        cdef tuple order = None, shape
        cdef list kinds = [], rows = []
        first = operands[0]
        if len(operands) != self.operands or type(first) is not ndarray:
            return None
        dtype, shape = first.dtype, first.shape
        if (<Dtype>dtype).kind != c"f" and (<Dtype>dtype).kind != c"V":
            return None
        cdef bint are_alike = first._c_contiguous
        for i in range(1, self.arrays):
            a = operands[i]
            if type(a) is not ndarray or a.dtype != dtype:
                return None
            are_alike = are_alike and a.shape == shape and a._c_contiguous
        for i in range(self.arrays, self.operands):
            if type(operands[i]) is not float:
                return None
        if not are_alike and first.ndim > 1:
            order = order_of_all(operands, self.arrays)
            are_alike = order is not None
        if are_alike:
            return dtype, (DENSE,) * self.arrays, (), shape, order
        shape = shape_of_all(operands, self.arrays)
        for i in range(self.arrays):
            row = kind_of(operands[i], shape, (<Dtype>dtype).itemsize, &kind)
            if row < 0:
                return None
            kinds.append(kind)
            if kind >= ROW:
                rows.append(row)
        return dtype, tuple(kinds), tuple(rows), shape, None


def made_in_order(tuple shape, order, dtype):
    """Return an array for the result of a `Launches.layout` on the current GPU."""
    return empty(shape, dtype) if order is None else empty_in_order(shape, order, dtype)


cdef tuple order_of_all(tuple operands, Py_ssize_t count):
    """Return the axes from longest to shortest stride if all arrays share one gap-free layout, else None."""
    cdef Py_ssize_t i
    cdef int64_t total
    first = operands[0]
    cdef tuple shape = first.shape, strides = first.strides
    for i in range(1, count):
        if operands[i].shape != shape or operands[i].strides != strides:
            return None
    order = tuple(sorted(range(len(shape)), key=strides.__getitem__, reverse=True))
    total = first.itemsize
    for axis in reversed(order):
        if strides[axis] != total:
            return None
        total *= <int64_t>shape[axis]
    return order


cdef object empty_in_order(tuple shape, tuple order, dtype):
    """Return a new array whose dimensions are in this memory order."""
    out = empty(tuple([shape[axis] for axis in order]), dtype)
    return out.transpose(tuple([order.index(axis) for axis in range(len(order))]))


cdef tuple shape_of_all(tuple operands, Py_ssize_t count):
    """Return the shape of the largest array, padded with ones to the largest number of dimensions."""
    cdef Py_ssize_t i, size, dimensions, most = -1, most_dimensions = 0
    cdef tuple shape = ()
    for i in range(count):
        a = operands[i]
        size, dimensions = a.size, a.ndim
        most_dimensions = max(dimensions, most_dimensions)
        if size > most or (size == most and dimensions > len(shape)):
            shape, most = a.shape, size
    return shape if len(shape) == most_dimensions else (1,) * (most_dimensions - len(shape)) + shape


cdef int64_t kind_of(a, tuple shape, int64_t step, int* kind) except -2:
    """Classify the layout of an array relative to a result of this shape; return its row length, or -1 if unsupported.

    From the last dimension backwards its elements are contiguous, then, from some dimension on, repeated. Or they are
    repeated, then contiguous.
    """
    cdef tuple own = a.shape, strides
    cdef Py_ssize_t i, missing = len(shape) - len(own)
    cdef int64_t length, mine, stride, total = 1, row = 1, column = 1
    cdef bint is_repeated = False, is_column = False
    kind[0] = DENSE
    if own == shape and a._c_contiguous:
        return 1
    strides = a.strides
    for i in range(len(shape) - 1, -1, -1):
        length, mine = shape[i], own[i - missing] if i >= missing else 1
        if mine != length and mine != 1:
            return -1
        if length == 1:
            continue
        stride = 0 if mine == 1 else strides[i - missing]
        if stride == 0:
            if is_column:
                return -1
            is_repeated = True
        else:
            if is_repeated and not is_column:
                if row != 1:
                    return -1
                is_column, column = True, total
            if stride != row * step:
                return -1
            row *= length
        total *= length
    if is_column:
        kind[0] = COLUMN
        return -1 if column >= 1 << 31 else column
    kind[0] = DENSE if row == total else ONE if row == 1 else ROW
    return -1 if kind[0] == ROW and row >= 1 << 31 else row
