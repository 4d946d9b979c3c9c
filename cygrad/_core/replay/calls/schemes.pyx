"""What a backward pass depends on, besides the values of arrays, and whether another pass is like it.

Note [Schemes]
--------------
The rule of a built-in op reads its node (OpNode), the gradients that arrive, and modes of the thread. So two passes do the
same to other values if their graphs agree in all that a node has:

    ops         the very row, its other arguments by type and value, edges, shapes and dtypes of results
    saved       numbers by value; tensors by class, dtype, shape, strides and flags. Their memory is an argument of the pass:
                in pieces, so that tensors that overlap do so in the same way in each pass
    order       in which the nodes were made, since the engine runs them by it and sums in that order
    ends        which gradients are asked for, and which begin the pass

Nodes of other kinds (custom functions, checkpoints, changes through views), hooks, values packed by hooks, and arguments of
classes that are not listed in `template` make a pass unfit. So do tensors of subclasses, and those on a GPU.
"""

cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcmp, memset

import numpy as np

from cygrad._core.engine.run cimport Run
from cygrad._core.graph.accumulate_grad cimport AccumulateGrad
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.opdef cimport OpNode, is_op_node
from cygrad._core.graph.tensor cimport DISPATCHES, GRAD_DTYPE_SHIFT, KEEPS_CLASS, Tensor, VersionCounter, version_of, wrap
from cygrad._core.replay.parts cimport Argument, matters

from cygrad._core.replay.extents import span_of
from cygrad._core.replay.parts import Unfit
from cygrad._core.types.dtypes import dtype

cnp.import_array()

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*) noexcept

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        PyTypeObject*, cnp.PyArray_Descr*, int, cnp.npy_intp*, cnp.npy_intp*, void*, int, PyObject*)
    PyTypeObject PyArray_Type

cdef unsigned long long LAST = <unsigned long long>-1       # the sequence number of nodes that accumulate

_CONSTANTS = (bool, int, str, bytes, type(None), type(Ellipsis), type, dtype, np.dtype)


CHANGED = "a saved tensor was changed in place"     # a reason, for which the engine raises an error


cdef bint is_saved_with(Run run, VersionCounter counter) except -1:
    """Whether a node of a run keeps a tensor with this version counter."""
    cdef Node node
    cdef Py_ssize_t i
    if Py_REFCNT(<PyObject*>counter) == 1:      # that of a gradient alone
        return False
    for i in range(run.n_entries):
        node = <Node>run.entries[i].node
        for value in (node.saved0, node.saved1, node.saved2, node.saved3):
            if isinstance(value, Tensor) and (<Tensor>value).counter is counter:
                return True
    return False


@cython.final
cdef class Kept:
    pass


@cython.final
cdef class Spot:

    def __cinit__(self):
        self.ends = NULL

    cdef int free_ends(self) except -1:
        """Get memory for the edges."""
        self.ends = <Py_ssize_t*>PyMem_Malloc((2 * self.n_edges + 1) * sizeof(Py_ssize_t))
        if self.ends == NULL:
            raise MemoryError
        return 0

    def __dealloc__(self):
        PyMem_Free(self.ends)


@cython.final
cdef class Scheme:
    """What a pass depends on; see Note [Schemes]."""

    def __cinit__(self):
        self.bases = NULL

    def __dealloc__(self):
        PyMem_Free(self.bases)

    cdef str misfit(self, Run run):
        """Why a run that is about to begin is not like this one, or None. Notes where its values are."""
        cdef Py_ssize_t i
        cdef unsigned long long number, former = LAST
        cdef str reason
        if run.n_entries != len(self.spots):
            return "the graph has another number of nodes"
        if (run.selective != self.selective or run.captures != self.captures) and (
                matters(b"other gradients are asked for")):
            return "other gradients are asked for"
        memset(self.bases, 0, len(self.sizes) * sizeof(char*))
        self.owners = [None] * len(self.sizes)
        for i in range(run.n_entries):
            reason = self.misfit_at(run, i)
            if reason is not None:
                return reason
        for each in self.made:
            number = (<Node>run.entries[<Py_ssize_t>each].node).sequence_nr
            if number >= former and matters(b"nodes were made in another order"):
                return "nodes were made in another order"
            former = number
        for i in range(len(self.sizes)):
            if self.bases[i] == NULL:
                return "saved tensors share memory in another way"
        return self.misfit_of_leaves(run, self.given(run))

    cdef str misfit_at(self, Run run, Py_ssize_t i):
        """The same of one node."""
        cdef Spot spot = <Spot>self.spots[i]
        cdef Node node = <Node>run.entries[i].node
        cdef Py_ssize_t end
        cdef int k
        cdef const char* text
        if (run.entries[i].needed != spot.needed or run.entries[i].captured != spot.captured) and (
                matters(b"other gradients are asked for")):
            return "other gradients are asked for"
        if node.hooks is not None and matters(b"a node has hooks"):
            return "a node has hooks"
        if not begins_alike(spot.given, run, i):
            return "another gradient begins the pass"
        if spot.leaf is not None:
            if type(node) is not AccumulateGrad:
                return "a node is of another op"
            text = spot.leaf.misfit(<Tensor>(<AccumulateGrad>node).leaf)
            if text != NULL and matters(text):
                return text.decode()
            return None if node.sequence_nr == LAST else "nodes were made in another order"
        if not is_op_node(node) or (<OpNode>node).op is not spot.op and matters(b"a node is of another op"):
            return "a node is of another op"
        if node.n_edges != spot.n_edges or node.n_outputs != spot.n_outputs:
            return "a node leads elsewhere"
        for k in range(node.n_edges):
            target = node.target(k)
            end = -1 if target is None else run.find(target)
            if (end != spot.ends[2 * k] or node.target_nr(k) != spot.ends[2 * k + 1]) and matters(b"a node leads elsewhere"):
                return "a node leads elsewhere"
        if (not has_metas(node, spot)) and matters(b"a result has another shape or dtype"):
            return "a result has another shape or dtype"
        return self.misfit_of_values(spot, node)

    cdef str misfit_of_values(self, Spot spot, Node node):
        """The same of what a node keeps; nothing, if its values have been freed."""
        cdef str reason
        if node.further is not None or node.stream is not None:
            return "a node is of another op"
        reason = self.misfit_of_slot(spot.saved0, node.saved0, node.version0)
        if reason is None:
            reason = self.misfit_of_slot(spot.saved1, node.saved1, node.version1)
        if reason is None:
            reason = self.misfit_of_slot(spot.saved2, node.saved2, node.version2)
        if reason is None:
            reason = self.misfit_of_slot(spot.saved3, node.saved3, node.version3)
        if reason is not None:
            return reason
        if (spot.has_tensors or (<OpNode>node).arguments is not spot.arguments) and (
                not self.is_like(spot.arguments, (<OpNode>node).arguments) and matters(b"an op has other arguments")):
            return "an op has other arguments"
        return None

    cdef str misfit_of_slot(self, object mine, object value, long long saved_at):
        """The same of a saved value."""
        if type(mine) is Kept:
            if isinstance(value, Tensor) and version_of(<Tensor>value) != saved_at and (
                    matters(b"a saved tensor was changed in place")):
                return CHANGED
            return self.misfit_of_memory(<Kept>mine, value)
        if mine is not value and not self.is_like(mine, value) and matters(b"another number is saved"):
            return "another number is saved"
        return None

    cdef str misfit_of_memory(self, Kept kept, object value):
        """The same of a tensor that a node keeps."""
        cdef const char* text = kept.argument.misfit(value)
        cdef char* base
        if text != NULL and matters(text):
            return text.decode()
        self.owners.append((<Tensor>value).array)
        if kept.piece < 0:
            return None
        base = cnp.PyArray_BYTES(<cnp.ndarray>(<Tensor>value).array) - kept.offset
        if self.bases[kept.piece] == NULL:
            self.bases[kept.piece] = base
            self.owners[kept.piece] = (<Tensor>value).array
        elif self.bases[kept.piece] != base and matters(b"saved tensors share memory in another way"):
            return "saved tensors share memory in another way"
        return None

    cdef bint is_like(self, object mine, object its) except -1:
        """Whether an argument has the type and value of that of this scheme."""
        cdef Py_ssize_t i
        cdef double a, b
        if type(mine) is Kept:
            return isinstance(its, Tensor) and self.misfit_of_memory(<Kept>mine, its) is None
        if type(mine) is not type(its):
            return False
        if mine is its and type(mine) is not tuple and type(mine) is not list:
            return True
        if type(mine) is float:
            a, b = mine, its
            return memcmp(&a, &b, sizeof(double)) == 0
        if type(mine) is complex:
            return self.is_like(mine.real, its.real) and self.is_like(mine.imag, its.imag)
        if type(mine) is tuple or type(mine) is list:
            if len(mine) != len(its):
                return False
            for i in range(len(mine)):
                if not self.is_like(mine[i], its[i]):
                    return False
            return True
        if type(mine) is slice:
            return self.is_like((mine.start, mine.stop, mine.step), (its.start, its.stop, its.step))
        return mine is its or type(mine) in (int, str, bytes, bool) and mine == its

    cdef str misfit_of_leaves(self, Run run, list given):
        """Why gradients cannot be added to those that the leaves have, after the pass instead of in its course, or None."""
        cdef AccumulateGrad node
        cdef Tensor present, t
        cdef cnp.ndarray array
        cdef char* low
        cdef char* high
        cdef Py_ssize_t k
        for each in self.leaves:
            node = <AccumulateGrad>run.entries[<Py_ssize_t>each].node
            present = (<Tensor>node.leaf).grad_
            if present is None:
                continue
            if type(present) is not Tensor or type(present.array) is not cnp.ndarray or present.flags or (
                    present.tangents is not None):
                return "a leaf has an unusual gradient"
            if present.counter is not None and is_saved_with(run, present.counter) and (
                    matters(b"the pass changes the version of a saved tensor")):
                return "the pass changes the version of a saved tensor"
            array = present.array
            if not cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_WRITEABLE) or (
                    cnp.PyArray_TYPE(array) != cnp.PyArray_TYPE(<cnp.ndarray>(<Tensor>node.leaf).array)):
                return "a leaf has an unusual gradient"
            low = cnp.PyArray_BYTES(array)
            high = low + cnp.PyArray_NBYTES(array)
            for k in range(len(self.sizes)):
                if low < self.bases[k] + <Py_ssize_t>self.sizes[k] and self.bases[k] < high and (
                        matters(b"the pass reads the gradient of a leaf")):
                    return "the pass reads the gradient of a leaf"
            for t in given:
                first, last = span_of(t.array)
                if <size_t>low < <size_t>last and <size_t>first < <size_t>high and (
                        matters(b"the pass reads the gradient of a leaf")):
                    return "the pass reads the gradient of a leaf"
        return None

    cdef list given(self, Run run):
        """The gradients with which a run begins."""
        cdef Py_ssize_t i
        cdef list found = []
        for i in range(run.n_entries):
            if run.entries[i].grad == NULL:
                continue
            value = <object>run.entries[i].grad
            found.extend([t for t in value if t is not None] if type(value) is list else [value])
        return found

    cdef list memory(self):
        """Tensors of bytes on the pieces of memory of the pass that was compared last."""
        cdef cnp.npy_intp size
        cdef cnp.ndarray array
        cdef list found = []
        cdef Py_ssize_t k
        for k in range(len(self.sizes)):
            dtype_of_bytes = cnp.PyArray_DescrFromType(cnp.NPY_UINT8)
            Py_INCREF(dtype_of_bytes)           # PyArray_NewFromDescr steals a reference
            size = self.sizes[k]
            array = PyArray_NewFromDescr(&PyArray_Type, <cnp.PyArray_Descr*>dtype_of_bytes, 1, &size, NULL, self.bases[k],
                                         cnp.NPY_ARRAY_WRITEABLE, NULL)
            cnp.set_array_base(array, self.owners[k])
            found.append(wrap(array))
        return found

    cdef int simulate(self, Run run) except -1:
        """Find in which order the engine runs nodes and accumulates."""
        cdef Run twin = twin_of(run)
        cdef Py_ssize_t i, j
        cdef int k
        cdef Node node
        self.done, self.leaves = [], []
        for i in range(twin.n_entries):
            if twin.entries[i].dependencies == 0:
                twin.push(i)
        while twin.n_ready:
            i = twin.pop()
            if run.selective and not run.entries[i].needed:
                continue
            node = <Node>twin.entries[i].node
            (self.leaves if type(node) is AccumulateGrad else self.done).append(i)
            for k in range(node.n_edges):
                target = node.target(k)
                j = -1 if target is None else twin.find(target)
                if j >= 0:
                    twin.entries[j].dependencies -= 1
                    if twin.entries[j].dependencies == 0:
                        twin.push(j)
        return 0


cdef bint begins_alike(object given, Run run, Py_ssize_t i) except -1:
    """Whether a run begins at an entry with such gradients."""
    cdef Py_ssize_t k
    if given is None or run.entries[i].grad == NULL:
        return given is None and run.entries[i].grad == NULL
    value = <object>run.entries[i].grad
    if type(given) is not list:
        return type(value) is not list and is_alike(<Argument>given, value)
    if type(value) is not list or len(value) != len(given):
        return False
    for k in range(len(given)):
        if (given[k] is None) != (value[k] is None) or given[k] is not None and not is_alike(<Argument>given[k], value[k]):
            return False
    return True


cdef bint is_alike(Argument argument, object value) except -1:
    cdef const char* text = argument.misfit(value)
    return text == NULL or not matters(text)


cdef bint has_metas(Node node, Spot spot) except -1:
    """Whether the results of a node have these shapes and dtypes."""
    cdef int i
    if node.metas is not None or spot.metas is not None:
        return node.metas == spot.metas
    if node.meta.ndim != spot.meta.ndim or node.meta.num != spot.meta.num:
        return False
    for i in range(node.meta.ndim):
        if node.meta.dims[i] != spot.meta.dims[i]:
            return False
    return True


# ------------------------------------------------------------------------------------------------ making one


cdef Run twin_of(Run run):
    cdef Run twin = Run.__new__(Run)
    cdef Py_ssize_t i
    twin.caller = "grad"
    for i in range(run.n_entries):
        twin.add(<object>run.entries[i].target)
    twin.discover()
    return twin


cdef Scheme scheme_of(Run run):
    cdef Scheme scheme = Scheme()
    cdef Py_ssize_t i
    cdef list arrays = [], numbers = []
    scheme.selective, scheme.captures = run.selective, None if run.captures is None else dict(run.captures)
    scheme.spots = []
    for i in range(run.n_entries):
        scheme.spots.append(spot_of(run, i, arrays))
        if (<Spot>scheme.spots[i]).leaf is None:
            numbers.append(((<Node>run.entries[i].node).sequence_nr, i))
    scheme.made = [i for _, i in sorted(numbers, reverse=True)]
    enter_pieces(scheme, arrays)
    scheme.simulate(run)
    scheme.ends = [(i, 0) for i in scheme.leaves] if run.captures is None else sorted(run.captures)
    return scheme


cdef Argument argument_of(Tensor t):
    """What a tensor must be like; raises Unfit."""
    if type(t.array) is not cnp.ndarray or t.flags & (KEEPS_CLASS | DISPATCHES) or t.tangents is not None:
        raise Unfit("a tensor is of a subclass, has tangents or is not in main memory")
    if t.flags >> GRAD_DTYPE_SHIFT:
        raise Unfit("the gradient of a tensor has another dtype")
    return Argument(t, False, True)


cdef Spot spot_of(Run run, Py_ssize_t i, list arrays):
    cdef Spot spot = Spot()
    cdef Node node = <Node>run.entries[i].node
    cdef int k
    cdef Py_ssize_t before = len(arrays)
    if node.hooks is not None:
        raise Unfit("a node has hooks, or a tensor retains its gradient")
    if run.entries[i].grad != NULL:
        value = <object>run.entries[i].grad
        spot.given = [None if t is None else argument_of(t) for t in value] if type(value) is list else argument_of(value)
    spot.needed, spot.captured = run.entries[i].needed, run.entries[i].captured
    if type(node) is AccumulateGrad:
        spot.leaf = argument_of(<Tensor>(<AccumulateGrad>node).leaf)
        return spot
    if not is_op_node(node):
        raise Unfit(f"a node is no built-in op ({node.name()})")
    if node.further is not None or node.stream is not None:
        raise Unfit(f"a node keeps more than it usually does ({node.name()})")
    spot.op, spot.n_edges, spot.n_outputs = (<OpNode>node).op, node.n_edges, node.n_outputs
    spot.meta, spot.metas = node.meta, node.metas
    spot.arguments = template((<OpNode>node).arguments, arrays)
    spot.has_tensors = len(arrays) > before or not is_unchanging(spot.arguments)
    spot.saved0, spot.saved1, spot.saved2, spot.saved3 = [
        template(value, arrays) for value in (node.saved0, node.saved1, node.saved2, node.saved3)]
    spot.free_ends()
    for k in range(node.n_edges):
        target = node.target(k)
        spot.ends[2 * k] = -1 if target is None else run.find(target)
        spot.ends[2 * k + 1] = node.target_nr(k)
    return spot


cdef bint is_unchanging(object value) except -1:
    """Whether nobody can change an argument, so that the very same one is the same."""
    if type(value) is tuple:
        for each in value:
            if not is_unchanging(each):
                return False
    return type(value) is not list


cdef object template(object value, list arrays):
    """A value that a node keeps, with a Kept in the place of each tensor; raises Unfit if it cannot be compared."""
    cdef Kept kept
    if isinstance(value, Tensor) and arrays is not None:
        kept = Kept()
        kept.argument = argument_of(<Tensor>value)
        arrays.append((kept, (<Tensor>value).array))
        return kept
    if type(value) is tuple:
        parts = [template(each, arrays) for each in value]
        is_same = all([mine is its for mine, its in zip(parts, value)])
        return value if is_same else tuple(parts)
    if type(value) is list:
        return [template(each, arrays) for each in value]
    if type(value) is slice:
        template((value.start, value.stop, value.step), None)
        return value
    if type(value) in (float, complex) or isinstance(value, _CONSTANTS) and type(value).__hash__ is not None:
        return value
    raise Unfit(f"an op keeps a value of class {type(value).__name__}")


cdef int enter_pieces(Scheme scheme, list arrays) except -1:
    """Find the pieces of memory in which arrays lie."""
    cdef Kept kept
    cdef Py_ssize_t i
    cdef list pieces = []
    for low, high in sorted([span_of(array) for _, array in arrays]):
        if low == high:
            continue
        if pieces and low < pieces[len(pieces) - 1][1]:
            pieces[len(pieces) - 1][1] = max(high, pieces[len(pieces) - 1][1])
        else:
            pieces.append([low, high])
    for kept, array in arrays:
        low, high = span_of(array)
        kept.piece = -1
        for i in range(len(pieces)):
            if low < high and pieces[i][0] <= low < pieces[i][1]:
                kept.piece, kept.offset = i, <size_t>cnp.PyArray_BYTES(<cnp.ndarray>array) - <size_t>pieces[i][0]
    scheme.sizes = [high - low for low, high in pieces]
    scheme.bases = <char**>PyMem_Malloc((len(pieces) + 1) * sizeof(char*))
    if scheme.bases == NULL:
        raise MemoryError
    return 0
