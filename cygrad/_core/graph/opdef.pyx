"""Declares ops: one row per op (OpDef), and the node type of all built-in ops (OpNode).

How to declare an op
--------------------
In its family file under `_ops/`, three things are defined together:

    cdef object sin_rule(OpNode n, object g):               # the rule
        return mul(g, cos(n.saved(0)))

    cdef OpDef SIN = op("sin", sin_rule).row(
        saves=IN0, flags=ELEMENTWISE | INPLACE | FLOAT_RESULT, ufunc="sin", inputs="self")

    cpdef Tensor sin(object input, Tensor out=None):        # the entry point
        (docstring: formula, shapes, dtypes, errors, what is saved)
        return apply1(SIN, input, out)

*rule*: takes the node and the incoming gradient. For an op with one output the gradient is never None; for several
outputs it is a tuple in which missing gradients are None, but never all of them. The rule returns a tuple with a gradient
or None for each input, or just the gradient if there is one input. It is written with recorded ops on tensors, so that
second derivatives follow automatically. `n.needs(i)` is whether the gradient of input i is wanted, `n.saved(i)` and
`n.saved_result()` return what the row saves, and `n.arguments` holds the other arguments. A gradient may have the shape
and dtype that broadcasting or promotion gave the output: the engine sums and casts it back to those of the input.

*row*: `op(name, rule)` (without a rule the op has no derivative, and its flags include NONDIFF). A second row for the
same op, for other arguments and with another node, is named like 'max.dim' and needs no entry point of its own. Fields:
    saves       what the gradients need: one mask of IN0, IN1, IN2, OUT0 for all inputs, or a tuple with one mask each.
                Only what a wanted gradient needs is saved. For an op with several results, OUT1 and OUT2 take the
                slots of inputs 1 and 2; `n.saved_output(i)` returns them.
    flags       see opdef.pxd
    ufunc       name of the NumPy ufunc whose inner loop is called; otherwise
    kernel      a function of arrays, then `args`; returns an array or a tuple of arrays
    numpy       names of further NumPy ufuncs that map to this op, besides `ufunc`: calling them on tensors records it
    node        PyTorch's name of the node; derived from the name if omitted ('sin': 'SinBackward0')
    inputs      names of the tensor inputs as PyTorch spells them in `_saved_self`, `_saved_other`
    outputs     names of the results, likewise
    attributes  names of `args`, for `_saved_dim` and the like
    aliases     other public names of the op
    devices     how device_checks.py treats operands: "together" requires one device for all of them, "recurrent" the same
                except for batch sizes; a tuple of positions and names lists arguments that may also be 0-dim tensors on
                the CPU, which count as numbers
    on_cpu      arguments that belong on the CPU wherever the others are, by position and by name
    autocast, autocast_gpu
                the policy of automatic mixed precision for operands on the CPU and on GPUs (autocast.py): "lower",
                "float32", "widest", "state" or "refused"
    casts_itself
                whether the entry point runs the check of autocast itself, so that `publish` need not wrap it
    out_dtype, out_castable
                the error text if `out` has another dtype than the result, and the one if the result cannot be converted
                to it, or a tuple with a text for each result; see out_dtypes.py
    takes_dtype whether autocast on GPUs leaves calls alone in which a dtype is passed
    not_cast    a string argument, such as a mode, with which autocast on GPUs leaves calls alone
    direct      whether the entry point is just `apply1(ROW, input, out)`, so that calls with one tensor may skip it
    derived     further `_saved_` attributes, which are computed on access; see derived_attributes.py
    batching    the rule by which `vmap` applies the op to all samples at once, or None if there is none; elementwise ops
                have one by default. See _ops/base/batching/rules.py
    vmap_name   PyTorch's name of the op in the warning that it has no batching rule, if it differs
    vmap_write  PyTorch's words for the op in the error that it cannot write into a tensor without samples
  For error texts and the correction of refused calls (_core/diagnostics/):
    in_python   whether PyTorch's function is written in Python, too, so that its errors are Python's own
    overloads   of an op with several signatures in PyTorch: the numbers of arguments that only one of them has, as digits
    spellings   {another name of the op that is no alias: PyTorch's name for it in errors}
    arguments_first
                (the operands, the orders, the factors) of calls that early PyTorch allowed, with factors before operands
    overloaded_aliases
                whether the aliases have several signatures although the op itself has one, or fewer
    alpha_by_position
                whether `alpha` needs no keyword after a number
    takes_ints  whether the op takes several integers one by one in place of a tuple
    inplace_argument
                whether the in-place form is also called by functions and modules with `inplace=True`
    operator    Python's operator for the op
    advice      what to write instead if a gradient is lost at this op
    float8      PyTorch's kernel that does not take numbers of 8 bits; see registry/float8.py
  For modes and classes of `__torch_dispatch__`:
    aten        PyTorch's name of the op, if it differs
    engine      why the op is shown as `torch.ops.engine.<name>`: what PyTorch has in its place
A function without a row of its own states facts, from `devices` on, in the decorator `facts`.

*entry point*: a cpdef function with the row's name and the public docstring. `publish` puts it into the package and
into Tensor as a method. With INPLACE it also creates `sin_`, as a method and a function, which calls the entry point
with `out=` the tensor itself (Note [Writing into a tensor] in record.pyx).

A family is compiled (`.pyx`) if its calls are short and frequent. If arrays are large or calls are rare, it is written
in Python (`.py`), at a tenth of the binary size: `declare` makes the row from a rule that is a Python function with the
same arguments, and `apply_n`, `record_n`, `record_outputs` and `record_view` of record.pyx do the rest:

    def trace_rule(n, g):
        ...
    TRACE = declare("trace", trace_rule, kernel=trace_array, flags=LINEAR, inputs="self", attributes="shape")

    def trace(input):
        (docstring)
        return apply_n(TRACE, (input,))
"""

cimport cython
from cpython.object cimport Py_TYPE, PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from numpy cimport PyArray_SIZE, ndarray

import sys
from functools import update_wrapper

import numpy as np

from cygrad._core.types.dtypes cimport COMPLEX, category_of_num
from cygrad._core.graph.node cimport Node, forbid_making, meta_of
from cygrad._core.graph.saved_slots cimport (
    Packed, as_output, check_not_freed, forget, place_in, read_slot, save_output, save_value, unpacked, value_in)
from cygrad._core.runtime.thread_state cimport FORWARD, IN_RULE, NO_GRAD, WATCH_INF, WATCH_RESULTS, ThreadState, thread_state
from cygrad._core.graph.tensor cimport DISPATCHES, Tensor, bind_methods, wrap
from cygrad._core.errors import messages
from cygrad._kernels.array_ops cimport typenum_of, zeros_beside
from cygrad._kernels.device.dispatch import in_memory
from cygrad._kernels.cpu.base.ufunc cimport Ufunc
from cygrad._kernels.cpu.base.view_geometry cimport in_format_of
from cygrad._kernels.platform.memory_pool cimport call_kernel
from cygrad._kernels.cpu.reduction.non_finite cimport has_bad


class Registry(dict):
    """All rows by name. A missing row may belong to a family that is not imported yet; `finder` imports it."""

    finder = None           # set by _ops/lazy_families.py

    def __missing__(self, name):
        if self.finder is not None:
            self.finder(name)
        if name in self:
            return self[name]
        raise KeyError(name)


cdef extern from "checked_call.h":
    int check_calls "cygrad_check_calls"(object function, int least, int most, object look_again) except -1
    void stand_before "cygrad_stand_before"(object function, object behind, bint in_place, object look_again)
    void show "cygrad_show"(object function, object behind, object ask_objects)
    void become_twin "cygrad_become_twin"(object twin, object function)
    cpdef bint is_seen "cygrad_is_seen"(object function)     # whether modes and overriding classes see a function's calls
    int asking "cygrad_asking", taken "cygrad_taken", modes "cygrad_modes"
    void attend "cygrad_attend_gpus"(EnterGpu enter, LeaveGpu leave) noexcept
    cpdef void let_override "cygrad_let_override"(object classes, object hand_over) noexcept    # see `torch_function.py`


cdef bint changing = False          # whether autocast or another interceptor of calls may be active
registry = Registry()
entries_by_ufunc = {}   # entry points of the imported families, keyed by the NumPy ufuncs that map to them
namespaces = {}         # globals of the Python modules that declared the rows, keyed by row name
unpublished = {}        # rows whose entry point has not been bound yet
ufuncs_by_name = {}     # names of NumPy ufuncs, keyed by row name
# The facts on ops that are looked up by name: {fact: {name of a row or function: value}}; see the module docstring.
# "derived" is looked up by the name of the node, which several rows may share.
facts_of = {fact: {} for fact in (
    "devices", "on_cpu", "autocast", "autocast_gpu", "casts_itself", "takes_dtype", "not_cast", "out_dtype",
    "out_castable", "direct", "derived", "batching", "vmap_name", "vmap_write", "in_python", "overloads",
    "overloaded_aliases", "spellings", "arguments_first", "alpha_by_position", "takes_ints", "inplace_argument", "operator",
    "advice", "aten", "engine", "float8")}


@cython.final
cdef class OpDef:
    """The row of an op; see the module docstring."""

    def row(self, *, saves=0, unsigned int flags=0, kernel=None, ufunc=None, node=None, inputs="self other",
            outputs="result", attributes="", aliases="", str numpy="", **facts):
        """Fill in the row and register it; see the module docstring."""
        cdef int i
        self.flags = flags
        self.kernel = in_memory(kernel)
        self.ufunc = None if ufunc is None else Ufunc(getattr(np, ufunc))
        self.node_name = node or "".join([word.title() for word in self.name.split("_")]) + "Backward0"
        for i in range(3):
            self.saves[i] = saves if isinstance(saves, int) else (saves[i] if i < len(saves) else 0)
        self.inputs = tuple(inputs.split())
        self.outputs = tuple(outputs.split())
        self.attributes = tuple(attributes.split())
        self.aliases = tuple(aliases.split())
        namespace = imported_namespace()
        if self.name in registry and not is_imported_again(namespaces[self.name], namespace):
            raise ValueError(f"op {self.name!r} is declared twice")
        namespaces[self.name] = namespace
        registry[self.name] = unpublished[self.name] = self
        ufuncs_by_name[self.name] = [*([ufunc] if ufunc else []), *numpy.split()]
        if "derived" in facts:
            note_facts(self.node_name, {"derived": facts.pop("derived")})
        note_facts(self.name, facts)
        self.name = self.name.partition(".")[0]
        return self

    def __repr__(self):
        return f"<op {self.name}>"

    @property
    def differentiable(self):
        """Whether the op is recorded."""
        return self.rule != NULL

    @property
    def saved_masks(self):
        """The masks of what is saved for the gradients of inputs 0, 1, 2."""
        return self.saves[0], self.saves[1], self.saves[2]


cdef dict imported_namespace():
    """The globals of the innermost Python module that is being imported: a helper of another may declare its rows."""
    frame = sys._getframe()
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals


cdef bint is_imported_again(dict before, dict now) except -1:
    """Whether a family declares its rows anew, in a new module, because its import was interrupted (by Ctrl-C, say)."""
    return before is not now and before.get("__name__") == now.get("__name__") != "importlib._bootstrap"


def note_facts(str name, dict given):
    """Note facts on the op with this name: {fact: value}."""
    for fact, value in given.items():
        if fact not in facts_of:
            raise TypeError(f"op {name!r} has the unknown field {fact!r}")
        facts_of[fact][name] = value


def facts(**given):
    """Decorator that notes facts on a function without a row of its own; see the module docstring."""
    def note(function):
        note_facts(function.__name__, given)
        return function
    return note


cdef OpDef op(str name, rule_t rule=NULL):
    cdef OpDef row = OpDef.__new__(OpDef)
    row.name = name
    row.in_place = name.partition(".")[0] + "_"
    row.rule = rule
    return row


cdef object as_image(object found, object grad):
    """Return the gradients that a rule has found, of which that of input 0 gets the memory format of the incoming one."""
    cdef object own = found[0] if type(found) is tuple else found
    if not isinstance(own, Tensor) or not isinstance(grad, Tensor):
        return found
    array = in_format_of((<Tensor>own).array, (<Tensor>grad).array)
    if array is (<Tensor>own).array:
        return found
    own = wrap(array)
    return (own, *found[1:]) if type(found) is tuple else own


cdef inline bint is_large(object grad) noexcept:
    """Whether this is a single gradient large enough that computing it in chunks may pay off."""
    return type(grad) is Tensor and type((<Tensor>grad).array) is ndarray and (
        PyArray_SIZE(<ndarray>(<Tensor>grad).array) > 1 << 15)


cdef inline bint of_other_size(object saved, Tensor grad) noexcept:
    """Whether this is a tensor that was broadcast, so that its gradient will be summed."""
    return type(saved) is Tensor and type((<Tensor>saved).array) is ndarray and (
        PyArray_SIZE(<ndarray>(<Tensor>saved).array) != PyArray_SIZE(<ndarray>grad.array))


cdef object seen_rules = None       # the function of dispatch.py; None until there is a mode or class that it serves


def show_rules(function):
    """Let modes and classes of `__torch_dispatch__` see what rules do: `function(node, row, gradient)` comes before them."""
    global seen_rules
    seen_rules = function


cdef bint is_seen_by_dispatch(OpNode n, object grad, ThreadState* state) except -1:
    """Whether a mode, or the class of a gradient or a saved value, sees the ops of a rule."""
    if state.dispatching:
        return True
    for value in (n.saved0, n.saved1, n.saved2, n.saved3, *(grad if type(grad) is tuple else (grad,))):
        if isinstance(value, Tensor) and (<Tensor>value).flags & DISPATCHES:
            return True
    return False


cdef object call_python_rule(OpNode n, object g):
    return n.op.python_rule(n, g)


def declare(str name, rule=None, **row):
    """Declare a row whose rule is a Python function or None: `op(name, rule).row(**row)` for Python families."""
    cdef OpDef made = op(name)
    if rule is not None:
        made.rule = call_python_rule
        made.python_rule = rule
    return made.row(**row)


def unregistered(str name, rule, str node, *, saves=0, str inputs="self"):
    """Return a row without a kernel and a public name, for results whose arrays come from elsewhere."""
    cdef OpDef made = op(name)
    made.rule, made.python_rule, made.node_name = call_python_rule, rule, node
    for i in range(3):
        made.saves[i] = saves if isinstance(saves, int) else (saves[i] if i < len(saves) else 0)
    made.inputs, made.outputs, made.attributes, made.aliases = tuple(inputs.split()), ("result",), (), ()
    return made


cpdef OpDef variant(OpDef row, str node=None, unsigned int flags=0, str name=None):
    """Return a row for the same op with another node, or without a derivative. It is not registered.

    `flags` are added to the row's; `name` is for a different function that shares the row's rule.
    """
    cdef OpDef other = op(name or row.name, row.rule if node else NULL)
    other.node_name = node or row.node_name
    other.ufunc, other.kernel, other.python_rule = row.ufunc, row.kernel, row.python_rule
    other.saves = row.saves
    other.flags = row.flags | flags | (0 if node else NONDIFF)
    other.inputs, other.outputs = row.inputs, row.outputs
    other.attributes, other.aliases = row.attributes, row.aliases
    return other


ELSEWHERE = FUNCTION_ONLY | METHOD_ONLY     # public in neither place, only in nn.functional or special


def named(str name):
    """Decorator that sets the public name of a function whose name in its family differs."""
    def rename(function):
        function.__name__ = function.__qualname__ = name
        return function
    return rename


cdef OpDef lookup(str name):
    return <OpDef>registry[name]


@cython.final
@cython.trashcan(True)
cdef class OpNode(Node):
    """The node of a built-in op.

    `_saved_<input>` attributes expose the saved values under PyTorch's names.

    >>> import cygrad
    >>> x = cygrad.tensor([3.0], requires_grad=True)
    >>> (x * 2).grad_fn._saved_other
    tensor(2)
    """

    cpdef str name(self):
        """Return PyTorch's name for this kind of node, such as 'MulBackward0'."""
        return self.op.node_name

    cdef object label(self):
        return self.op

    cdef Node shown(self):
        if Py_TYPE(self) == <PyTypeObject*>OpNode:
            own = type_named(self.op.node_name)
            (<PyObject*>self).ob_type = <PyTypeObject*>own
        return self

    cdef object call(self, object grad):
        cdef ThreadState* state = thread_state()
        cdef unsigned int modes = state.modes
        if not modes & NO_GRAD:
            return self.op.rule(self, grad)
        state.modes = modes | IN_RULE
        try:
            if seen_rules is not None and is_seen_by_dispatch(self, grad, state):
                found = seen_rules(self, self.op, grad)
                if found is not NotImplemented:
                    return found
                state.modes &= ~NO_GRAD     # has the rule call ops, which are not recorded since IN_RULE is set
            if self.op.flags & (ELEMENTWISE | LINEAR) == ELEMENTWISE and is_large(grad) and not (
                    self.op.flags & ONE_PASS and not (of_other_size(self.saved0, grad) or of_other_size(self.saved1, grad))
                    ) and not (
                    modes & FORWARD or state.unwanted or state.observers != NULL or not state.modes & NO_GRAD):
                from cygrad._core.engine.blocked_gradients import gradients  # which imports this module
                found = call_kernel(gradients, ((<Tensor>grad).array,), (self, grad, state.spare == <void*>grad))
                if found is not None:
                    return found
            if self.op.flags & IMAGE_GRADIENT:
                return as_image(self.op.rule(self, grad), grad)
            return self.op.rule(self, grad)
        finally:
            state.modes = modes

    def part(self, saved, tuple args):
        """Return a copy of this node that saves `saved`: inputs 0 to 2 and the result, None where not saved."""
        cdef OpNode node = OpNode.__new__(OpNode)
        node.op, node.arguments, node.n_edges, node.n_outputs = self.op, args, self.n_edges, self.n_outputs
        node.edge0, node.edge1, node.edge2 = [None if self.target(i) is None else self.op for i in range(3)]
        node.more_edges = self.more_edges
        node.saved0, node.saved1, node.saved2, node.saved3 = saved
        return node

    def opened(self, saved0, saved1=None):
        """Return a copy of this node with unpacked inputs 0 and 1, so that nested rules do not run unpack hooks again."""
        cdef OpNode node = self.part((None, None, None, None), self.arguments)
        node.edge0, node.edge1, node.edge2 = self.edge0, self.edge1, self.edge2
        node.save_input(0, saved0)
        node.save_input(1, saved1)
        return node

    def run_rule(self, OpNode part, grads):
        """Apply this node's rule to the gradients and saved values of another node."""
        return self.op.rule(part, grads)

    def on_block(self, bint is_spare, Tensor grad, *saved):
        """Apply the rule to one chunk of the gradient, of inputs 0 to 2 and of the result."""
        cdef ThreadState* state = thread_state()
        node = self.part(saved, self.arguments)
        state.spare = <void*>grad if is_spare else NULL         # Note [Spent gradients] in spent_gradients.pyx
        try:
            return self.op.rule(node, grad)
        finally:
            state.spare = NULL

    def may_run_in_parts(self, grads):
        """Whether the rule may process large arrays chunk by chunk, since nothing records or watches its ops."""
        cdef ThreadState* state = thread_state()
        if not state.modes & IN_RULE or state.modes & FORWARD or state.observers != NULL:
            return False
        for value in (*(grads if type(grads) is tuple else (grads,)), self.saved0, self.saved1, self.saved2, self.saved3):
            if is_large(value):
                return True
        return False

    def expected_gradients(self):
        """Return (shape, whether complex) of each input's gradient, or None for inputs without one."""
        cdef list expected = []
        for i in range(self.n_edges):
            target = self.target(i)
            if target is None:
                expected.append(None)
                continue
            if isinstance(target, Node):
                shape, num = meta_of(<Node>target, self.target_nr(i))
            else:
                shape, num = (<Tensor>target).array.shape, (<Tensor>target).array.dtype.num
            expected.append((shape, category_of_num(num) == COMPLEX))
        return expected

    cpdef bint needs(self, int i) noexcept:
        """Whether the gradient of input `i` is wanted, by the graph and by the running pass."""
        if 0 <= i < 64 and thread_state().unwanted >> i & 1:
            return False
        if i == 0:
            return self.edge0 is not None
        if i == 1:
            return self.edge1 is not None
        if i == 2:
            return self.edge2 is not None
        return 0 < i < self.n_edges and self.more_edges[i - 3][0] is not None

    cdef object part_of(self, ndarray whole):
        """Return the elements of `whole` that this node (a slice or select) picked from its input."""
        dim = self.arguments[1]
        where = slice(*self.arguments[2:]) if len(self.arguments) == 5 else self.arguments[2]
        return whole[(slice(None),) * dim + (where, ...)]

    # -- saved values; see Note [Saved slots] in saved_slots.pyx -------------------------------------------

    cpdef int save_input(self, int i, object value) except -1:
        """Save `value`, a tensor or a number, as input `i`. Rules also use this for values that are not inputs."""
        if not 0 <= i < RESULT:
            raise IndexError(f"a node saves inputs 0 to 2, not {i}")
        return save_value(self, i, value)

    cdef int save_outputs(self, list outs, unsigned int mask) except -1:
        """Save the results selected by the mask."""
        if mask & OUT0:
            save_output(self, RESULT, outs[0])
        if mask & OUT1:
            save_output(self, 1, outs[1])
        if mask & OUT2:
            save_output(self, 2, outs[2])
        return 0

    cpdef object saved(self, int i):
        """Return saved input `i`. Raises RuntimeError if it has been changed or freed since."""
        cdef object stored, value
        cdef long long version
        if not 0 <= i < RESULT:
            raise IndexError(f"a node saves inputs 0 to 2, not {i}")
        stored = read_slot(self, i, &version)
        value = unpacked(self, stored, version, False)
        if value is stored:             # not packed by a hook
            if not isinstance(value, Tensor):
                check_not_freed(self)
            elif (<Tensor>value).grad_fn_ is None and isinstance(self.target(i), Node):
                raise RuntimeError(messages.SAVED_DETACHED)
        return value

    cpdef Tensor saved_result(self):
        """Return the saved result. Raises RuntimeError if it has been changed or freed since."""
        return self.saved_output(0)

    cpdef Tensor saved_output(self, int i):
        """Return saved result `i` of several. Raises RuntimeError if it has been changed or freed since."""
        cdef object stored
        cdef Tensor kept
        cdef long long version
        check_not_freed(self)
        stored = read_slot(self, i or RESULT, &version)
        if stored is None:
            raise RuntimeError(f"{self.op.node_name} did not save its result")
        kept = <Tensor?>unpacked(self, stored, version, True)
        if kept is not stored or i >= self.n_outputs or thread_state().modes & NO_GRAD:     # the hook's has its history;
            return kept                                             # trailing results may have no derivative
        return as_output(self, kept, i)

    def readable_values(self):
        """Return saved inputs 0 to 2 and the result, or None if reading them might run hooks or fail."""
        cdef int i
        cdef list values = []
        if self.freed_by is not None:
            return None
        for i in range(RESULT + 1):
            value = value_in(self, i)
            if type(value) is Packed:
                return None
            if value is not None:
                value = self.saved_output(self.output_in(i)) if self.output_in(i) >= 0 else self.saved(i)
            values.append(value)
        return values

    @property
    def _is_view(self):
        """Whether the result shares the memory of the input."""
        return bool(self.op.flags & VIEW)

    cdef unsigned int mask(self) noexcept:
        return self.op.saves[0] | self.op.saves[1] | self.op.saves[2]

    cdef int release_variables(self, object freed_by) except -1:
        if forget(self):
            self.freed_by = freed_by
        return 0

    def _place(self, Py_ssize_t i):
        """Return (the value in slot `i` as stored, which output it is or -1, whether the saved values were freed)."""
        return place_in(self, i)

    cdef Py_ssize_t n_places(self):
        return RESULT + 1

    cdef int output_in(self, Py_ssize_t i) except -2:
        return 0 if i == RESULT else <int>i if 0 < i < self.n_outputs and self.mask() & (OUT0 << i) else -1

    @property
    def args(self):
        # Cython's own getter would lock the node, which the engine already holds locked while a rule runs. On
        # free-threaded CPython 3.13 the thread then waits for itself, for about 35 us.
        return self.arguments

    @property
    def _freed_by(self):
        return self.freed_by

    def __dir__(self):
        from cygrad._core.saved.saved_attributes import names  # few programs need it
        return [*object.__dir__(self), *names(self, self.op)]

    def __getattr__(self, str name):
        from cygrad._core.saved.saved_attributes import read  # few programs need it
        with cython.critical_section(self):     # another thread may free what this one reads
            return read(self, self.op, name)

forbid_making(OpNode)


# Note [Types of nodes]
# ---------------------
# `type(node).__name__` is PyTorch's name of the node, 'MulBackward0'; many programs that draw graphs read it. Creating
# each node with its own type would take time, and few nodes are ever inspected, so a node receives its type when Python
# first sees it, through `grad_fn` or `next_functions`. These types are identical to OpNode except for the name. They are
# created on first use and are immortal, so nodes need not count references to them. Compiled code uses `is_op_node`.
cdef dict types_of_nodes = {}
(<PyTypeObject*>OpNode).tp_flags |= 1 << 10     # Py_TPFLAGS_BASETYPE


cdef object type_named(str name):
    cdef PyTypeObject* like = <PyTypeObject*>OpNode
    cdef PyTypeObject* new
    found = types_of_nodes.get(name)
    if found is None:
        short = name.rpartition("::")[2]
        found = type(short, (OpNode,), {"__slots__": (), "__module__": "builtins"})
        new = <PyTypeObject*>found
        new.tp_dealloc, new.tp_traverse, new.tp_clear = like.tp_dealloc, like.tp_traverse, like.tp_clear
        Py_INCREF(found)
        found = types_of_nodes.setdefault(name, found)
    return found


# -- checks of results, and rows without derivative ---------------------------------------------------------

cdef bint is_bad_result(OpDef op, object array, ThreadState* state) except -1:
    """For `nan_check`: whether a result contains a NaN. Views, which only show their operand's NaNs, are exempt."""
    return (state.watch & WATCH_RESULTS and state.run == NULL and not op.flags & VIEW
            and has_bad(array, state.watch & WATCH_INF != 0))


cdef int refuse_result(OpDef op, object array, tuple inputs, ThreadState* state) except -1:
    from cygrad._core.diagnostics import non_finite  # needed only if a check fails
    non_finite.bad_result(op.name, array, inputs, state.watch & WATCH_INF)
    return 0


cdef dict flat_rows = {}


cdef OpDef flat(OpDef op):
    """Return the row of an op without a derivative, such as `==`, with a zero gradient, for in-place use."""
    cdef OpDef row = flat_rows.get(op.name)
    if row is None:
        row = variant(op, op.node_name)
        row.flags &= ~NONDIFF
        row.rule = zero_gradient
        flat_rows[op.name] = row
    return row


cdef object zero_gradient(OpNode n, object grad):
    cdef Tensor g = <Tensor>grad
    zeros = wrap(zeros_beside(g.array, g.array.shape, typenum_of(g.array)))
    return zeros if n.n_edges == 1 else (zeros,) + (None,) * (n.n_edges - 1)


# -- from rows to the public namespace ---------------------------------------------------------------------

def publish(module, others=None):
    """Bind the entry points of a family's rows; see `published` in `publish.py`."""
    from cygrad._core.registry.publish import published  # which imports this module
    functions, methods = published(module, others or {})
    bind_methods(methods)
    return functions


def look_again(function, values, names, kind, error):
    """Deferred import of `calls.look_again`, which few programs need."""
    from cygrad._core.diagnostics import refused_calls  # few programs need it
    return refused_calls.look_again(function, values, names, kind, error)


def ask_objects(function, values, names, kind, error):
    """Deferred import of `answer_of_objects`, as in `look_again`."""
    from cygrad._core.diagnostics import refused_calls  # few programs need it
    return refused_calls.answer_of_objects(function, values, names)


def check_function(function, int least, int most):
    """Have failing calls of a compiled function re-examined; it takes `least` to `most` positional arguments."""
    check_calls(function, least, most, look_again)


def standing_before(behind, bint in_place=False):
    """Return a compiled function in front of a Python function, or of a tuple of several; see `checked_call.h`."""
    @cython.binding(True)       # a method
    def standing(input, *args, **kwargs):
        pass
    stand_before(standing, behind, in_place, look_again)
    return standing


def shown(function):
    """Return a compiled function in front of a Python function whose calls modes and classes may override."""
    @cython.binding(True)       # a method
    def showing(input, *args, **kwargs):
        pass
    show(showing, function, ask_objects)
    return update_wrapper(showing, function)


def twin(function):
    """Return another function object that does what a checked one does, at the same cost: see `_form` in publish.py."""
    @cython.binding(True)       # a method
    def method(input, *args, **kwargs):
        pass
    become_twin(method, function)
    update_wrapper(method, function).function_form = function
    method.__module__, method.__qualname__ = "cygrad", f"Tensor.{function.__name__}"
    return method


def is_taken(becomes=None):
    """How far overriding by subclasses is disabled in this thread; set it to `becomes` if given.

    0 not at all, 1 while a class handles a call, 2 by the program: then results are plain tensors, 3 that of modes, too.
    """
    global taken
    before, taken = taken, taken if becomes is None else becomes
    return before


cdef bint keeps_no_class() noexcept:
    return taken > 1


def has_modes(becomes=None):
    """Whether a mode of this thread sees calls; set it to `becomes` if given."""
    global modes
    before, modes = modes, bool(modes if becomes is None else becomes)
    return bool(before)


def is_in_pass():
    """Whether this thread runs a backward pass."""
    return thread_state().run != NULL


cdef void attend_gpus(EnterGpu enter, LeaveGpu leave) noexcept:
    attend(enter, leave)


cdef bint asks_nobody() noexcept:
    return not changing and not taken and not modes


cdef bint overrides_nothing() noexcept:
    return not taken and not modes


def ask_first(bint somebody, bint changes):
    """Enable or disable the checks that run before guarded functions; whether somebody may change what they do."""
    global asking, changing
    asking, changing = somebody, changes
