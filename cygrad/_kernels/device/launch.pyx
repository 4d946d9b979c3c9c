"""Launches of kernels of our own by C functions of CuPy's, which its compiled modules hand to whoever asks for them.

Its Python objects for kernels take apart and pack each argument anew, which takes longer than the driver does. Where
CuPy has no such functions, or others of these names, as the stand-in for tests, kernels are launched by these objects.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, intptr_t, uint64_t
from numpy cimport dtype as Dtype, ndarray as Array

from importlib import import_module

cdef extern from *:
    uint64_t bits_of_number "PyLong_AsUnsignedLongLongMask"(object number) except? 0xFFFFFFFFFFFFFFFF

cdef enum:
    MOST = 48           # arguments of a kernel
    MOST_OPERANDS = 8
    MOST_DIMENSIONS = 64
    DENSE = 0           # an operand that has all elements of the result in their order,
    ONE = 1             # one number for all of them,
    ROW = 2             # or those of the last dimensions, which are repeated

ctypedef object (*Launch)(intptr_t, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                          unsigned int, intptr_t, intptr_t, intptr_t, int)
cdef struct Lengths:    # a `std::vector` of C++, as the compilers that CuPy is built by have it
    Py_ssize_t* begin
    Py_ssize_t* end
    Py_ssize_t* end_of_room

ctypedef object (*Make)(object, const Lengths*, object, object)
ctypedef object (*Prepare)()
ctypedef intptr_t (*Stream)() except? -1
ctypedef int (*Device)(int) except? -1

cdef Launch launch_kernel = NULL        # NULL: by Python objects
cdef Make make_array = NULL             # NULL: by a call of the class, which takes twice as long
cdef Prepare ensure_context = NULL      # which a thread needs before its first launch
cdef Stream current_stream = NULL
cdef Device current_device = NULL
cdef object ndarray = None, python_device = None, on_device = None


cdef void* function(str module, str name, const char* signature) except NULL:
    return PyCapsule_GetPointer(import_module(module).__pyx_capi__[name], signature)


def connect(module):
    """Make arrays of this CuPy, and launch by its functions; tells whether it has them."""
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
    """What a kernel gets for arrays and others, if those on GPUs are all on the current one; None if not.

    Of an array without dimensions in the CPU's memory it gets the element; where one has dimensions, this is None, too.
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
    """A new array on the current GPU."""
    cdef Py_ssize_t lengths[MOST_DIMENSIONS]
    cdef Lengths given
    cdef Py_ssize_t i
    cdef double elements = 1
    for i in range(len(shape)):
        elements *= <double>shape[i]
    if elements >= 2.0 ** 59:       # or more than 63 bits of bytes, of which CuPy keeps what fits
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if make_array == NULL or len(shape) > MOST_DIMENSIONS:
        return ndarray(shape, dtype)
    for i in range(len(shape)):
        lengths[i] = shape[i]
    given.begin, given.end, given.end_of_room = lengths, lengths + len(shape), lengths + len(shape)
    return make_array(ndarray, &given, dtype, None)


@cython.final
cdef class Kernel:
    """A kernel on the GPU that is current when this is made."""

    cdef object raw             # CuPy's `RawKernel`
    cdef intptr_t handle        # CUDA's, 0 until it is compiled

    def __init__(self, raw):
        self.raw = raw

    def __call__(self, tuple blocks, tuple threads, tuple args, unsigned int shared=0):
        """Run it on a grid, with so many bytes of shared memory for each block."""
        cdef unsigned int sizes[6]
        cdef int64_t slots[MOST]
        fill(sizes, blocks)
        fill(sizes + 3, threads)
        if launch_kernel == NULL or len(args) > MOST or not pack(args, slots):
            self.raw((sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5]), args, shared_mem=shared)
        else:
            self.launch(sizes, shared, slots, <int>len(args))

    cdef int launch(self, unsigned int* sizes, unsigned int shared, int64_t* slots, int count) except -1:
        cdef void* places[MOST]
        cdef int i
        for i in range(count):
            places[i] = &slots[i]
        if not self.handle:
            self.handle = self.raw.kernel.ptr
        ensure_context()
        launch_kernel(self.handle, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], shared,
                      current_stream(), <intptr_t>places, 0, 0)
        return 0


cdef int fill(unsigned int* sizes, tuple given) except -1:
    """Three sizes of at least 1."""
    cdef Py_ssize_t i
    cdef int64_t size
    for i in range(3):
        size = given[i] if i < len(given) else 1
        sizes[i] = <unsigned int>max(size, 1)
    return 0


cdef bint pack(tuple args, int64_t* slots) except -1:
    """Arguments as a kernel finds them, of 8 bytes each; False where one is of another kind."""
    cdef Py_ssize_t i
    cdef type kind
    for i in range(len(args)):
        arg = args[i]
        kind = type(arg)
        if kind is ndarray:
            slots[i] = arg.data.ptr
        elif kind is float:
            (<double*>slots)[i] = arg
        elif kind is int or kind is bool:
            slots[i] = <int64_t>bits_of_number(arg)
        elif arg is None:
            slots[i] = 0
        else:
            return False
    return True


@cython.final
cdef class Launches:
    """An elementwise function of arrays, and then of numbers, by kernels for types and kinds of operands.

    `make(dtype, kinds)` gives the `RawKernel`, or None. A block of its `threads` takes `each` bytes of the result.
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
        """The result, or None where the arrays are no floating-point numbers of one type, lie otherwise, or are more."""
        cdef int kinds[MOST_OPERANDS]
        cdef int64_t rows[MOST_OPERANDS]
        cdef int64_t slots[MOST]
        cdef unsigned int sizes[6]
        cdef int64_t key = 0, total
        cdef Py_ssize_t i
        cdef int count = 0      # of rows
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
                count += kinds[i] == ROW
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
        if launch_kernel == NULL or not pack(operands, slots):
            args = operands + (out, total, *[rows[i] for i in range(count)])
            (<Kernel>kernel).raw((sizes[0],), (self.threads,), args)
            return out
        slots[self.operands] = out.data.ptr
        slots[self.operands + 1] = total
        for i in range(count):
            slots[self.operands + 2 + i] = rows[i]
        (<Kernel>kernel).launch(sizes, 0, slots, <int>self.operands + 2 + count)
        return out


cdef tuple order_of_all(tuple operands, Py_ssize_t count):
    """The dimensions from the longest step to the shortest, if the arrays all lie like this in memory without gaps; or None.
    """
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
    """A new array whose dimensions lie in this order."""
    out = empty(tuple([shape[axis] for axis in order]), dtype)
    return out.transpose(tuple([order.index(axis) for axis in range(len(order))]))


cdef tuple shape_of_all(tuple operands, Py_ssize_t count):
    """The shape of the largest array, with as many dimensions as any has."""
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
    """How an array lies beside a result of this shape, and how long its row is; -1 where it is nothing of this.

    From the last dimension on its elements follow each other; from some dimension on they are repeated.
    """
    cdef tuple own = a.shape, strides
    cdef Py_ssize_t i, missing = len(shape) - len(own)
    cdef int64_t length, mine, stride, total = 1, row = 1
    cdef bint is_repeated = False
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
        total *= length
        stride = 0 if mine == 1 else strides[i - missing]
        is_repeated = is_repeated or stride == 0
        if not is_repeated:
            if stride != row * step:
                return -1
            row *= length
        elif stride != 0:
            return -1
    kind[0] = DENSE if row == total else ONE if row == 1 else ROW
    return -1 if kind[0] == ROW and row >= 1 << 31 else row
