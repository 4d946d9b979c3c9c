"""Graph nodes: edges, input metadata, hooks, site.

Note [Leaf edges]
-----------------
In PyTorch an edge to a leaf points to the leaf's AccumulateGrad node; the node owns the leaf, and the leaf refers back
to it weakly. Here the edge points to the leaf tensor itself, and the tensor owns its AccumulateGrad, which is created
when a backward pass or a user first requests it. This avoids a reference cycle, and recording an op on a leaf creates
no node. Python code only ever sees nodes.
"""

cimport cython
cimport numpy as cnp
from numpy cimport ndarray, PyArray_NDIM, PyArray_DIMS, PyArray_TYPE

from cygrad._core.runtime.thread_state cimport ThreadState, current_site
import gc

from cygrad._core.types.hook_handles import HookDict, RemovableHandle

cnp.import_array()

cdef extern from "atomic_owner.h":
    object cygrad_published(object)

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_dict
    void PyType_Modified(PyTypeObject* type)


@cython.final
cdef class NodeHooks:
    pass


@cython.trashcan(True)
cdef class Node:
    """One step of the recorded computation: maps the gradients of its outputs to those of its inputs.

    Users do not create nodes: a tensor's `grad_fn` is the node that computed it.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> (x * 3).grad_fn.name()
    'MulBackward0'
    >>> (x * 3).grad_fn.next_functions[0][0].name()
    'torch::autograd::AccumulateGrad'
    """

    def __init__(self):
        _refuse_to_make(type(self))

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot pickle '{self.name().rpartition('::')[2]}' object")

    cdef object call(self, object grad):
        raise RuntimeError(f"{self.name()} cannot be run")

    cdef int release_variables(self, object freed_by) except -1:
        return 0

    cdef bint takes_undefined(self) noexcept:
        return False

    cdef bint stands_for_several(self) noexcept:
        return False

    cdef Py_ssize_t n_places(self):
        return 0

    cdef int output_in(self, Py_ssize_t i) except -2:
        return -1

    cdef object lock(self):
        return self

    cpdef str name(self):
        """Return PyTorch's name for this kind of node, such as 'MulBackward0'.

        >>> import cygrad
        >>> (cygrad.tensor(3.0, requires_grad=True) * 2).grad_fn.name()
        'MulBackward0'
        """
        return type(self).__name__

    cdef object label(self):
        return self.name()

    cdef Node shown(self):
        return self

    # -- edges ---------------------------------------------------------------------------------------------

    cdef int add_edge(self, object target, int nr) except -1:
        if self.n_edges == 0:
            self.edge0 = target
            self.nr0 = nr
        elif self.n_edges == 1:
            self.edge1 = target
            self.nr1 = nr
        elif self.n_edges == 2:
            self.edge2 = target
            self.nr2 = nr
        else:
            if self.more_edges is None:
                self.more_edges = []
            self.more_edges.append((target, nr))
        self.n_edges += 1
        return 0

    cdef object target(self, int i):
        if i == 0:
            return self.edge0
        if i == 1:
            return self.edge1
        if i == 2:
            return self.edge2
        return self.more_edges[i - 3][0]

    cdef int target_nr(self, int i) noexcept:
        if i == 0:
            return self.nr0
        if i == 1:
            return self.nr1
        if i == 2:
            return self.nr2
        return <int>(self.more_edges[i - 3][1])

    @property
    def next_functions(self):
        """The nodes of the inputs, as a tuple of pairs (node or None, which of its outputs the input was)."""
        cdef int i
        edges = []
        for i in range(self.n_edges):
            target = self.target(i)
            if target is not None and not isinstance(target, Node):
                target = target._accumulate_grad
            edges.append((None if target is None else (<Node?>target).shown(), self.target_nr(i)))
        return tuple(edges)

    # -- description ---------------------------------------------------------------------------------------

    def __call__(self, *grads):
        """Apply the node to the gradients of its outputs (tensors or None): a gradient, or a tuple of them.

        Does not call hooks. Raises TypeError if the number of gradients differs from the number of outputs, and
        RuntimeError if a gradient has the wrong shape or the saved values have been freed.
        """
        from cygrad._core.engine.arguments import call_node  # which imports this module
        return call_node(self, grads)

    def __repr__(self):
        return f"<{self.name().rpartition('::')[2]} object at {hex(id(self))}>"

    @property
    def metadata(self):
        """A dictionary for users' annotations of this node."""
        if self.metadata_ is None:
            with cython.critical_section(self):
                if self.metadata_ is None:
                    self.metadata_ = <dict>cygrad_published({})
        return self.metadata_

    @property
    def requires_grad(self):
        """Always True: tensors that need no gradient have no node."""
        return True

    @property
    def _site(self):
        """(code object, instruction offset) of the site that recorded this node."""
        return self.code, self.lasti

    @property
    def _metas(self):
        """((shape, NumPy type number), ...) of the incoming gradients; the public form is `_input_metadata`."""
        cdef int i
        return tuple([meta_of(self, i) for i in range(self.n_outputs)])

    def _sequence_nr(self):
        """Return the node's position in the order of recording."""
        return self.sequence_nr

    def _set_sequence_nr(self, unsigned long long sequence_nr):
        """Change the node's position in the order of execution (larger numbers run first)."""
        self.sequence_nr = sequence_nr

    # -- hooks ---------------------------------------------------------------------------------------------

    cdef NodeHooks ensure_hooks(self):
        if self.hooks is None:
            with cython.critical_section(self):
                if self.hooks is None:
                    self.hooks = <NodeHooks>cygrad_published(NodeHooks.__new__(NodeHooks))
        return self.hooks

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after each run of this node; it may return replacement grad_inputs.

        Returns a handle with `remove()`.

        >>> import cygrad
        >>> x = cygrad.tensor(3.0, requires_grad=True)
        >>> y = x * 2
        >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: print(grad_inputs[0], grad_outputs))
        >>> y.backward()
        tensor(2.) (tensor(1.),)
        """
        return RemovableHandle.add(hooks_of(self, POST), fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before each run of this node; it may return replacement grad_outputs.

        Returns a handle with `remove()`.

        >>> import cygrad
        >>> x = cygrad.tensor(3.0, requires_grad=True)
        >>> y = x * 2
        >>> handle = y.grad_fn.register_prehook(lambda grad_outputs: (10 * grad_outputs[0],))
        >>> y.backward()
        >>> x.grad
        tensor(20.)
        """
        return RemovableHandle.add(hooks_of(self, PRE), fn)

    @property
    def _hooks(self):
        """Dictionaries or None: tensor hooks, `retain_grad` references, pre-hooks, post-hooks, post-accumulate hooks."""
        cdef NodeHooks hooks = self.hooks
        return (None,) * 5 if hooks is None else (
            hooks.tensor_pre, hooks.retains, hooks.pre, hooks.post, hooks.post_accumulate)

    @property
    def _register_hook_dict(self):
        return self.hooks.tensor_pre if self.hooks is not None else None


cdef object hooks_of(Node node, int kind):
    cdef NodeHooks hooks = node.ensure_hooks()
    with cython.critical_section(hooks):        # two threads may create the first one at once
        if kind == PRE:
            if hooks.pre is None:
                hooks.pre = cygrad_published(HookDict())
            return hooks.pre
        if kind == POST:
            if hooks.post is None:
                hooks.post = cygrad_published(HookDict())
            return hooks.post
        if kind == TENSOR_PRE:
            if hooks.tensor_pre is None:
                hooks.tensor_pre = cygrad_published({})
            return hooks.tensor_pre
        if kind == RETAINS:
            if hooks.retains is None:
                hooks.retains = cygrad_published({})
            return hooks.retains
        if hooks.post_accumulate is None:
            hooks.post_accumulate = cygrad_published(HookDict())
        return hooks.post_accumulate


def _refuse_to_make(cls, *args, **kwargs):
    raise TypeError(f"cannot create '{cls.__name__}' instances\n  nodes are made by recording an op on tensors")


cdef int forbid_making(type cls) except -1:
    """Block `cls.__new__(cls)`, `copy` and `pickle` for users: an instance that no op has filled in would crash."""
    set_attribute(cls, "__new__", staticmethod(_refuse_to_make))
    return 0


def set_attribute(type cls, str name, value):
    """Set an attribute that is written in Python on a compiled class."""
    (<dict>(<PyTypeObject*>cls).tp_dict)[name] = value
    PyType_Modified(<PyTypeObject*>cls)

forbid_making(Node)


cdef int begin_node(Node node, ThreadState* state) except -1:
    node.sequence_nr = state.sequence
    state.sequence += 1
    node.n_outputs = 1
    node.code = current_site(&node.lasti)
    if state.stream != NULL:
        node.stream = <object>state.stream
    return 0


def nodes_alive():
    """Return the live graph nodes of this process, by walking the objects the garbage collector tracks."""
    return [value for value in gc.get_objects() if isinstance(value, Node)]


cdef int set_meta(Node node, object array) except -1:
    """Record shape and dtype of the node's only output."""
    cdef ndarray a
    cdef int i
    if type(array) is ndarray:
        a = <ndarray>array
        node.meta.num = PyArray_TYPE(a)
        if PyArray_NDIM(a) <= MAX_INLINE_DIMS:
            node.meta.ndim = PyArray_NDIM(a)
            for i in range(PyArray_NDIM(a)):
                node.meta.dims[i] = PyArray_DIMS(a)[i]
            return 0
    node.meta.ndim = -1
    node.metas = ((array.shape, array.dtype.num),)
    return 0


cdef int set_metas(Node node, tuple arrays) except -1:
    node.n_outputs = <int>len(arrays)
    if len(arrays) > 1:
        node.metas = tuple([(array.shape, array.dtype.num) for array in arrays])
    else:
        set_meta(node, arrays[0])
    return 0


cdef tuple meta_of(Node node, int output_nr):
    cdef int i
    if node.metas is not None:
        return node.metas[output_nr]
    return tuple([node.meta.dims[i] for i in range(node.meta.ndim)]), node.meta.num


cdef int meta_matches(Node node, int output_nr, object array) except -1:
    """Return 1 if `array` has exactly the shape and dtype that the node expects for that output."""
    cdef ndarray a
    cdef int i
    if node.metas is None and type(array) is ndarray:
        a = <ndarray>array
        if PyArray_NDIM(a) != node.meta.ndim or PyArray_TYPE(a) != node.meta.num:
            return 0
        for i in range(node.meta.ndim):
            if PyArray_DIMS(a)[i] != node.meta.dims[i]:
                return 0
        return 1
    shape, num = meta_of(node, output_nr)
    return array.shape == shape and array.dtype.num == num
