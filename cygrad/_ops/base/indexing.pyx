"""Reads and writes parts of a tensor: `x[...]` and `x[...] = value`.

Note [Indexing]
---------------
An index is processed from left to right. Each basic part makes a view of the previous one, with its own node if autograd
is recording: an int selects (SelectBackward0), a slice narrows (SliceBackward0), None inserts a dimension
(UnsqueezeBackward0), and a bool inserts one and keeps or drops its only element. Lists, arrays and tensors with
dimensions are collected along the way; they then gather elements from the last view, all at once, into a new tensor
(IndexBackward0). Ints never take part in this fancy indexing, which is why `x[0, :, [1, 2]]` orders its dimensions
differently than NumPy.

Assignment makes the same views and writes the value into the last one.
"""

from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from numpy cimport NPY_BOOL, NPY_INT32, NPY_INT64, NPY_UINT8, ndarray

import numpy as np

from cygrad._core.types.dtypes cimport is_float_num
from cygrad._core.graph.observers cimport Recorded, dispatches, mark_start
from cygrad._core.graph.inplace cimport check_apart, check_inplace
from cygrad._core.graph.opdef cimport INPLACE, LINEAR, MAY_OVERLAP, PRIVATE, OpDef, OpNode, op, variant
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.dual cimport keep, keep_written
from cygrad._core.graph.record cimport (
    begin_write, end_write, record1, record_n, record_view, write_into, write_resolved)
from cygrad._core.runtime.thread_state cimport FORWARD, is_recording, thread_state
from cygrad._core.graph.tensor cimport Tensor, dtype_of, requires_grad, version_of, wrap
from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._kernels.tape.calls cimport run_on_tape
from cygrad._kernels.tape.tape cimport noted_data, tape_open
from cygrad._kernels.cpu.base import copying
from cygrad._kernels.cpu.indexing import indexing, scatter
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.array_ops cimport cast, ndim_of, typenum_of
from cygrad._kernels.cpu.base.arrays cimport is_on_cpu, same_shape
from cygrad._kernels.device.unresolved cimport is_unresolved, resolved
from cygrad._kernels.cpu.base.view_geometry cimport (
    Geometry, geometry_of, insert_dim, overlaps_itself, select_at, slice_at, view_of)
from cygrad._ops.base.arguments cimport require, type_name
from cygrad._ops.base.copying cimport apart, converted, copy_into, fill_with, warn_of_lost_part
from cygrad._ops.base.slicing cimport SELECT, SLICE
from cygrad._ops.base.views cimport UNSQUEEZE, alias, expanded, viewed

from cygrad._library import later

conditions = later("cygrad._kernels.tape.conditions")      # needed only to compile


cdef object checks():
    """Return the module that handles unusual indices and builds error messages; imported on first use."""
    from cygrad._ops.base.checks import indexing as index_checks  # which imports this module
    return index_checks


# -- reading -----------------------------------------------------------------------------------------------

cpdef object getitem(Tensor t, object index):
    """Return `t[index]`; see Note [Indexing]."""
    cdef Reading reading
    mark_start()
    if type(index) is int:
        return item(t, index)
    if type(index) is slice:
        return stretch(t, index)
    reading = read(t, index)
    if reading.tensors:
        return pick(reading.result(), tuple(reading.tensors))
    return reading.result() if reading.changed else alias(t)


cdef Tensor item(Tensor t, object index):
    """Return `t[index]` for an int, the most common index."""
    cdef Geometry g
    cdef Py_ssize_t i
    if t.array.ndim == 0:
        raise checks().too_many(index, 0)
    geometry_of(t.array, &g)
    i = checked_index(&g, 0, as_index(index), 0)
    select_at(&g, 0, i)
    return record_view(SELECT, view_of(t.array, &g), t, (t.array.shape, 0, i) if needs_steps(t) else None)


cdef inline bint needs_steps(Tensor t) noexcept:
    """Whether each step of an index needs its own node, or forward-mode or batching support."""
    return requires_grad(t) and is_recording() or thread_state().modes & FORWARD or dispatches


cdef Tensor stretch(Tensor t, object bounds):
    """Return `t[start:stop:step]`."""
    cdef Geometry g
    cdef Py_ssize_t start, stop, step, length
    geometry_of(t.array, &g)
    if g.ndim == 0:
        raise checks().too_many(bounds, 0)
    length = unpack_slice(bounds, g.dims[0], &start, &stop, &step)
    slice_at(&g, 0, start, length, step)
    return record_view(SLICE, view_of(t.array, &g), t,
                       (t.array.shape, 0, start, stop, step) if needs_steps(t) else None)


cdef Py_ssize_t as_index(object index) except? -1:
    try:
        return index
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None


cdef Py_ssize_t checked_index(Geometry* g, int dim, Py_ssize_t i, Py_ssize_t position) except -1:
    """Return `i` counted from the front; `position` is its position in the index, for the error message."""
    cdef Py_ssize_t length = g.dims[dim]
    if not -length <= i < length:
        raise checks().out_of_bounds(i, position, length)
    return i + length if i < 0 else i


cdef Py_ssize_t unpack_slice(object bounds, Py_ssize_t size, Py_ssize_t* start, Py_ssize_t* stop,
                             Py_ssize_t* step) except -1:
    """Clip the bounds of a slice to `size` and return its length."""
    PySlice_Unpack(bounds, start, stop, step)
    if step[0] < 0:
        raise checks().backwards()
    return PySlice_AdjustIndices(size, start, stop, step[0])


# -- the parts of an index ---------------------------------------------------------------------------------

cdef class Reading:
    """State while an index is being applied to a tensor."""
    cdef Tensor t               # the last recorded view
    cdef Geometry g             # geometry after the steps applied since
    cdef bint recording         # whether each step needs a node
    cdef bint changed           # whether any step was applied
    cdef bint pending           # whether `g` is ahead of `t`
    cdef int dim                # the next dimension to index
    cdef list tensors           # the index tensors, None for dimensions taken whole
    cdef int covered            # number of dimensions covered by `tensors`

    cdef int step(self, OpDef op, tuple args) except -1:
        """Note that `op` changed `g`."""
        self.changed = True
        self.pending = True
        if self.recording:
            self.settle(op, args)
        return 0

    cdef int settle(self, OpDef op, tuple args) except -1:
        mark_start()                # the event of the first step has already begun, with the index
        self.t = record_view(op, view_of(self.t.array, &self.g), self.t, args)
        geometry_of(self.t.array, &self.g)
        self.pending = False
        return 0

    cdef Tensor result(self):
        if self.pending:
            self.settle(SLICE, None)
        return self.t

    cdef int select(self, Py_ssize_t i, Py_ssize_t position) except -1:
        i = checked_index(&self.g, self.dim, i, position)
        args = (self.t.array.shape, self.dim, i) if self.recording else None
        select_at(&self.g, self.dim, i)
        return self.step(SELECT, args)

    cdef int slice(self, object bounds) except -1:
        cdef Py_ssize_t start, stop, step, size = self.g.dims[self.dim], length, spelled
        PySlice_Unpack(bounds, &spelled, &stop, &step)
        length = unpack_slice(bounds, size, &start, &stop, &step)
        if length != size or step != 1 or spelled != 0:         # PyTorch also tests the start as written
            args = (self.t.array.shape, self.dim, start, stop, step) if self.recording else None
            slice_at(&self.g, self.dim, start, length, step)
            self.step(SLICE, args)
        self.dim += 1
        return 0

    cdef int new_dim(self) except -1:
        insert_dim(&self.g, self.dim, self.t.array.itemsize)
        return self.step(UNSQUEEZE, (self.dim,))

    cdef int pick(self, Tensor index) except -1:
        """Collect `index`, which gathers along the next dimension, or along several if it is a mask."""
        self.tensors += [None] * (self.dim - self.covered)
        self.tensors.append(index)
        self.dim += dims_taken(index)
        self.covered = self.dim
        return 0


cdef Reading read(Tensor t, object index):
    """Apply the basic parts of an index and collect the tensors; see Note [Indexing]."""
    cdef Reading r = Reading.__new__(Reading)
    cdef list parts = index_parts(index)
    cdef Py_ssize_t position, taken = dims_indexed(parts)
    cdef Tensor tensor
    r.t = t
    r.recording = needs_steps(t)
    r.tensors = []
    geometry_of(t.array, &r.g)
    if taken > r.g.ndim:
        raise checks().too_many(index, r.g.ndim)
    for position in range(len(parts)):
        part = parts[position]
        if type(part) is int:
            r.select(part, position)
        elif type(part) is slice:
            r.slice(part)
        elif part is None:
            r.new_dim()
            r.dim += 1
        elif part is Ellipsis:
            r.dim += <int>(t.array.ndim - taken)
            taken = t.array.ndim        # a second ellipsis expands to nothing
        elif isinstance(part, bool):
            r.new_dim()
            r.pick(wrap(np.zeros(1 if part else 0, np.int64)))
        else:
            tensor = part
            r.pick(tensor)
    return r


cdef list index_parts(object index):
    """Split an index into ints, bools, slices, None, Ellipsis and tensors with dimensions."""
    if isinstance(index, tuple):
        return [index_part(part) for part in index]
    if type(index) is int or type(index) is slice or isinstance(index, (Tensor, np.ndarray, str)):
        return [index_part(index)]
    return [index_part(part) for part in index] if checks().is_like_tuple(index) else [index_part(index)]


cdef object index_part(object part):
    if type(part) is int:
        return as_index(part)
    if type(part) is slice or part is None or part is Ellipsis or type(part) is bool:
        return part
    if isinstance(part, Tensor):
        return tensor_part(<Tensor>part)
    part = checks().unusual_part(part)
    return tensor_part(<Tensor>part) if isinstance(part, Tensor) else as_index(part)


cdef object tensor_part(Tensor index):
    """Convert a 0-dim tensor to an int or a bool; check the dtype of others."""
    if ndim_of(index.array) == 0 and index.array.dtype.kind in "biu":
        if thread_state().modes & FORWARD and checks().is_batched(index):
            return index.long()
        if tape_open and is_on_cpu(index.array):
            return conditions.is_true(index.array) if is_mask(index) else int(conditions.whole_number(index.array))
        return bool(index.array) if is_mask(index) else int(index.array)
    if not is_index(index):
        raise checks().wrong_type()
    return index


cdef inline bint is_index(Tensor index):
    """Whether the dtype of a tensor is allowed for indices."""
    cdef int num = typenum_of(index.array)
    return num == NPY_INT64 or num == NPY_BOOL or num == NPY_INT32 or num == NPY_UINT8


cdef bint is_mask(Tensor index):
    cdef int num = typenum_of(index.array)
    return num == NPY_BOOL or num == NPY_UINT8


cdef int dims_taken(Tensor index):
    """Number of dimensions that an index tensor consumes."""
    return ndim_of(index.array) if is_mask(index) else 1


cdef Py_ssize_t dims_indexed(list parts):
    """Number of dimensions that a list of index parts consumes."""
    cdef Py_ssize_t count = 0
    for part in parts:
        if type(part) is int or type(part) is slice:
            count += 1
        elif isinstance(part, Tensor):
            count += dims_taken(<Tensor>part)
    return count


# -- picking by tensors ------------------------------------------------------------------------------------

cdef object index_rule(OpNode n, object g):
    return index_backward(g, n.arguments[0], checked_indices(n, n.arguments[1]))

cdef OpDef INDEX = op("index", index_rule).row(
    flags=LINEAR | PRIVATE, kernel=indexing.index, inputs="self _ indices", attributes="self_sym_sizes")

cpdef Tensor index(object input, tuple indices):
    """Gather the elements that index tensors select; `indices` has a tensor or None for each dimension. Saves the tensors.

    Gradient: the elements of g, scatter-added into zeros.
    """
    return pick(require(input, "index"), indices)


cdef Tensor pick(Tensor t, tuple indices):
    cdef Tensor result
    mark_start()
    array = run_index(INDEX.kernel, t, index_arrays(t, indices), None, False)
    args = t.array.shape, versions_of(indices)
    result = record1(INDEX, array, t, args) if not dispatches else record_n(INDEX, array, (t,), args, indices)
    keep(result, 2, indices)
    return result


cpdef bint writes_expanded(Tensor t, object value, str name) except -1:
    """Whether `t` is expanded memory that may be written to; warns if so. Not allowed where the write is recorded."""
    if not overlaps_itself(t.array):
        return False
    if is_recording() and (requires_grad(t) or isinstance(value, Tensor) and requires_grad(<Tensor>value)):
        return False            # the gradient cannot distinguish elements that share memory
    checks().warn_of_expanded(name)
    return True


cdef tuple versions_of(tuple indices):
    return tuple([None if index is None else version_of(<Tensor>index) for index in indices])


cdef tuple checked_indices(OpNode n, tuple versions):
    """Return the saved index tensors. Raises RuntimeError if one was modified in place since."""
    indices = n.saved(2)
    for index, version in zip(indices, versions):
        if index is not None and version_of(<Tensor>index) != version:
            raise graph_errors.modified_error(index, n, version, version_of(<Tensor>index), False)
    return indices


cdef object index_backward_rule(OpNode n, object g):
    return pick(g, checked_indices(n, n.arguments[1]))

cdef OpDef INDEX_BACKWARD = op("index_backward", index_backward_rule).row(
    flags=LINEAR | PRIVATE, kernel=scatter.index_sum, inputs="self _ indices")

cpdef Tensor index_backward(object input, tuple shape, tuple indices):
    """Return zeros of `shape` with each element of `input` added at the position that `indices` read it from."""
    cdef Tensor g = require(input, "index_backward")
    cdef Tensor result
    values = resolved(g.array)
    kernel = INDEX_BACKWARD.kernel if is_on_cpu(values) else gpu_forms.fitting(INDEX_BACKWARD.kernel, values)
    places = index_arrays_of_shape(shape, indices)
    array = run_on_tape(kernel, kernel, (values, shape, places), {}) if tape_open else kernel(values, shape, places)
    args = shape, versions_of(indices)
    result = record1(INDEX_BACKWARD, array, g, args) if not dispatches else (
        record_n(INDEX_BACKWARD, array, (g,), args, indices))
    keep(result, 2, indices)
    return result


cdef list index_arrays(Tensor t, tuple indices):
    return index_arrays_of_shape(t.array.shape, indices)


cdef list index_arrays_of_shape(tuple shape, tuple indices):
    """Return the arrays of index tensors, with bytes as booleans. Raises IndexError for a mask of the wrong shape."""
    cdef list arrays = []
    cdef Py_ssize_t dim = 0
    cdef bint alike = True      # integer arrays of one shape on the CPU need no further checks
    cdef Tensor index
    cdef object first = None
    for value in indices:
        if value is None:
            arrays.append(None)
            dim += 1
            continue
        index = value
        array = index.array
        if is_mask(index):
            if array.shape != shape[dim:dim + array.ndim]:
                checks().check_mask(array.shape, shape, dim)
            if array.dtype != bool:
                checks().warn_of_bytes()
                array = array != 0
            alike = False
        elif not is_on_cpu(array):
            alike = False
        elif first is None:
            first = array
        else:
            alike = alike and same_shape(<ndarray>first, <ndarray>array)
        arrays.append(array)
        dim += dims_taken(index)
    if not alike and len(indices) > 1:
        arrays = checks().check_joined(arrays)
    return arrays


cdef object run_index(object kernel, Tensor t, list indices, object values, bint accumulate):
    """Call `picking.index` or `picking.index_put`, and translate NumPy's errors into PyTorch's."""
    cdef object array = resolved(t.array)
    if not is_on_cpu(array):
        kernel = gpu_forms.fitting(kernel, array)
    try:
        if tape_open:
            return run_on_tape(kernel, kernel, (array, indices) if values is None else (
                array, indices, resolved(values), accumulate), {})
        if values is None:
            return kernel(array, indices)
        return kernel(array, indices, resolved(values), accumulate)
    except IndexError:
        raise checks().index_error(t.array.shape, indices) from None
    except ValueError:
        raise checks().values_error(t.array, indices, values) from None
    except (TypeError, RuntimeError) as error:
        raise checks().explanation(error, checks().check_devices, t.array, indices, values) from None


# -- putting by tensors ------------------------------------------------------------------------------------

cdef object index_put_rule(OpNode n, object g):
    accumulate, versions = n.arguments
    indices = checked_indices(n, versions)
    kept = g
    if n.needs(0) and not accumulate:
        kept = put_into_copy(g, indices, wrap(noted_data(np.zeros((), (<Tensor>g).array.dtype))), False)
    return kept if n.needs(0) else None, pick(g, indices) if n.needs(1) else None

cdef OpDef INDEX_PUT = op("index_put", index_put_rule).row(
    flags=LINEAR | INPLACE, kernel=indexing.index_put, inputs="self values indices",
    attributes="accumulate", autocast_gpu="widest", vmap_write="index_put_")
cdef OpDef INDEX_PUT_UNRECORDED = variant(INDEX_PUT)      # for integers, and for writes into expanded memory
INDEX_PUT_UNRECORDED.flags |= MAY_OVERLAP

cpdef Tensor index_put(object input, object indices, object values, bint accumulate=False, Tensor out=None):
    """Write `values` into a copy of `input` at the positions selected by the tensors in `indices`, or add them there.

    Saves the indices. Gradients: g with zeros at these positions (all of g if `accumulate`), and the elements of g that
    the indices read. Without `accumulate`, if an index occurs twice, it is unspecified which value is kept.

    Raises RuntimeError for values whose dtype differs or whose shape does not broadcast, IndexError for indices out of
    bounds.

    >>> import cygrad
    >>> cygrad.zeros(3).index_put((cygrad.tensor([0, 2]),), cygrad.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    cdef Tensor t = require(input, "index_put")
    cdef Tensor new = require(values, "index_put", "values", 2)
    checked = checks().put_indices(t, indices)
    if out is None:
        return put_into_copy(t, checked, new, accumulate)
    if out is t:
        return put(t, checked, new, accumulate, None)
    array = put_array(wrap(copying.contiguous(t.array)), index_arrays(t, checked), new, accumulate)
    return write_into(INDEX_PUT, out, array, (t, new), None)


cdef Tensor put_into_copy(Tensor t, tuple indices, Tensor values, bint accumulate):
    cdef Tensor result
    row = INDEX_PUT if is_float_num(t.array.dtype.num) else INDEX_PUT_UNRECORDED
    array = put_array(wrap(copying.copy(t.array)), index_arrays(t, indices), values, accumulate)
    result = record_n(row, array, (t, values), (accumulate, versions_of(indices)), indices)
    keep(result, 2, indices)
    return result


cdef object put_array(Tensor t, list arrays, Tensor values, bint accumulate):
    """Write into the array of `t` and return it."""
    if dtype_of(t) is not dtype_of(values) or (values.array.ndim and values.array.ndim > result_ndim(t, arrays)):
        checks().check_values(t.array, arrays, values, accumulate)
    return run_index(INDEX_PUT.kernel, t, arrays, values.array, accumulate)


def put_array_from_python(Tensor t, list arrays, Tensor values, bint accumulate):
    put_array(t, arrays, values, accumulate)


cdef int result_ndim(Tensor t, list indices):
    """Number of dimensions of the result of fancy indexing."""
    taken = sum([index.ndim if index.dtype.kind == "b" else 1 for index in indices if index is not None])
    return t.array.ndim - taken + max([1 if index.dtype.kind == "b" else index.ndim
                                       for index in indices if index is not None])


cdef Tensor put(Tensor t, tuple indices, Tensor values, bint accumulate, str label):
    """Run `index_put` in place."""
    cdef unsigned int mask = 0
    cdef tuple inputs
    cdef OpNode node
    mark_start()
    row = INDEX_PUT if is_float_num(t.array.dtype.num) else INDEX_PUT_UNRECORDED
    recording = (requires_grad(t) or requires_grad(values)) and is_recording()
    check_inplace(t, label or "index_put_", recording)      # before any error about the index
    if values.array.size == 1 and is_single_mask(indices):      # mask and value are both read before the write
        values = apart(values, t)
    else:
        for operand in indices + (values,):
            check_apart(t, operand)
    inputs = (t, values)
    arrays = index_arrays(t, indices)
    if writes_expanded(t, values, "index_put_"):
        row = INDEX_PUT_UNRECORDED
    node = begin_write(row, t, inputs, (accumulate, versions_of(indices)), &mask, label)
    keep_written(node, indices)
    if thread_state().changing != NULL:
        (<Recorded>thread_state().changing).hint = indices
    if is_unresolved(t.array):
        write_resolved(t, put_array_from_python, (t, arrays, values, accumulate))
    else:
        put_array(t, arrays, values, accumulate)
    return end_write(row, t, inputs, node, mask, label)


# -- writing -----------------------------------------------------------------------------------------------

cpdef object setitem(Tensor t, object index, object value):
    """Assign `t[index] = value`; see Note [Indexing]."""
    cdef Reading reading
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (Tensor, int, float, complex)):
        raise TypeError(f"can't assign a {type_name(value)} to a {messages.type_word(t.array)}")
    if index is False:
        return None
    reading = read(t, None if index is True else index)
    if reading.tensors:
        put_values(reading.result(), tuple(reading.tensors), value)
    else:
        write(reading.result() if reading.changed else t, value)


cdef int put_values(Tensor target, tuple indices, object value) except -1:
    cdef Tensor values
    if isinstance(value, Tensor):
        values = value
        shape = shape_without_leading_ones(values)
        if len(shape) < values.array.ndim:
            values = viewed(values, shape)
    else:
        values = wrap(number_element(value, target))
    if values.array.ndim == 0 and dtype_of(values) is not dtype_of(target) and is_single_mask(indices):
        values = converted(values, dtype_of(target))
    put(target, indices, values, False, "__setitem__")
    return 0


cdef bint is_single_mask(tuple indices):
    """Whether the index consists of a single mask."""
    given = [index for index in indices if index is not None]
    return len(given) == 1 and is_mask(<Tensor>given[0])


cdef object number_element(object number, Tensor target):
    if target.array.dtype == np.float16 and not isinstance(number, complex):
        return noted_data(cast(np.asarray(number), target.array.dtype.num))     # overflow to inf is no error, for masks
    try:
        return noted_data(copying.element(number, target.array.dtype))
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None


cdef int write(Tensor target, object value) except -1:
    """Write a number or a tensor into all of `target`, with broadcasting."""
    mark_start()
    cdef Tensor source = value if isinstance(value, Tensor) else wrap(number_element(value, target))
    if source.array.shape != target.array.shape:
        if source.array.ndim == 0:
            warn_of_lost_part(source, dtype_of(target))
            fill_with(target, source, "__setitem__")
            return 0
        source = viewed(source, shape_without_leading_ones(source))
        if source.array.shape != target.array.shape:
            source = expanded(source, target.array.shape)
    copy_into(target, source, "__setitem__")
    return 0


cdef tuple shape_without_leading_ones(Tensor t):
    shape = t.array.shape
    first = 0
    while first < len(shape) and shape[first] == 1:
        first += 1
    return shape[first:]


functions = publish(globals())
