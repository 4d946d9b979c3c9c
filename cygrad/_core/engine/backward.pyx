"""Runs backward passes: the shared core of `Tensor.backward`, `autograd.backward` and `autograd.grad`."""

from cpython.number cimport PyNumber_Index
from cpython.pythread cimport PyThread_get_thread_ident
from numpy cimport PyArray_DATA, PyArray_ITEMSIZE, PyArray_NDIM, PyArray_SIZE, PyArray_TYPE, import_array, ndarray

from cygrad._core.types.dtypes cimport FLOATING, category_of_num
from cygrad._core.graph.record cimport model_of
from cygrad._core.graph.accumulate_grad cimport AccumulateGrad
from cygrad._core.graph.node cimport Node
from cygrad._core.engine.run cimport Run
from cygrad._core.runtime.thread_state cimport (
    FORWARD, NO_GRAD, WATCH_INF, ThreadState, current_site, entered_hooks, save_by, thread_state)
from cygrad._core.graph.tensor cimport (
    CUT_BACKWARD, CUT_NONE, DISPATCHES, IS_VOLATILE, REQUIRES_GRAD, Tensor, cut, dispatched_call, grad_fn_of, requires_grad,
    set_leaf_requires_grad, wrap_in_mode)
from cygrad._kernels.cpu.base.arrays cimport array_of_number
from cygrad._kernels.cpu.reduction.non_finite cimport has_bad
from cygrad._kernels.tape.tape cimport note_constant, tape_open
from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._kernels.device import cupy_library
from cygrad._library import later

import numpy as np

import_array()

arguments = later("cygrad._core.engine.arguments")  # needed only for backward passes


cdef bint several_gpus = False      # whether nodes may have to run on different ones
cdef object transform_check = None  # raises inside function transforms; None until one has been used


def check_before_backward(check):
    """Set a function to call before each `backward`; it raises inside a function transform, where that is forbidden."""
    global transform_check
    transform_check = check


def attend_gpus(bint is_loaded=True):
    """Let ops and nodes run on the GPU of their tensors, if CuPy is loaded and finds several."""
    global several_gpus
    from cygrad._core.registry.several_gpus import connect      # needed only for GPUs
    several_gpus = connect(is_loaded)


cdef bint flag(object value) except -1:
    """Whether a flag is set. Accepts any integer, as PyTorch does, but not other truthy objects."""
    return value is True or (value is not False and PyNumber_Index(value) != 0)


cdef object run_backward(tuple tensors, tuple gradients, object retain_graph, object create_graph, object inputs,
                         str caller):
    """Check the arguments, run the pass and accumulate into leaves."""
    if transform_check is not None:
        transform_check()
    cdef Run run = Run.__new__(Run)
    cdef bint recorded = create_graph is not None and flag(create_graph)    # None was the default of early PyTorch
    run.caller = caller
    run.keep_graph = recorded if retain_graph is None else flag(retain_graph)
    if inputs is not None:
        inputs = arguments.inputs_of(inputs, "backward")
    plant(run, tensors, roots_of(tensors, gradients))
    if inputs is not None:
        aim_at_leaves(run, inputs)
    carry_out(run, recorded)
    return None


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None,
             inputs=None, *, retain_variables=None):
    """Compute the gradients of `tensors` with respect to the leaves, and add them to the leaves' `grad`.

    `tensors` is a tensor or a sequence of tensors; `grad_tensors` contains for each the gradient of the final result
    with respect to it (None means 1, for tensors with one element). `retain_graph` keeps the saved values for another
    pass (default: `create_graph`). `create_graph` records the pass (None: do not). `inputs` limits accumulation to the
    given tensors. `grad_variables` and `retain_variables` are deprecated names of `grad_tensors` and `retain_graph`.

    Raises RuntimeError for a tensor that does not require grad, a gradient with the wrong shape, a graph that has been
    freed, or a saved tensor that was changed in place.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.autograd.backward([x * 2, x * x], [cygrad.ones(2), cygrad.ones(2)])
    >>> x.grad
    tensor([4., 4.])
    """
    if grad_variables is not None:
        messages.grad_variables_deprecated()
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    if retain_variables is not None:
        messages.deprecated("retain_variables", "retain_graph")
        retain_graph = retain_variables
    tensors = arguments.roots_of(tensors)
    run_backward(tensors, arguments.gradients_for(tensors, grad_tensors), retain_graph, create_graph, inputs, "backward")


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, bint only_inputs=True,
         allow_unused=None, bint is_grads_batched=False, bint materialize_grads=False):
    """Return the gradients of the sum of `outputs` with respect to `inputs` as a tuple; accumulate nothing.

    `grad_outputs` contains for each output the gradient of the final result with respect to it. For an input that the
    outputs do not depend on, the result is None with `allow_unused=True` and zeros with `materialize_grads=True`;
    otherwise it is an error. `retain_graph` and `create_graph` are as in `backward`.
    If outputs or inputs include a subclass of Tensor, the gradients have that class.

    Raises RuntimeError under the same conditions as `backward`, and for an unused input.

    >>> import cygrad
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> cygrad.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    cdef tuple targets, results
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, "
                         "but got: allow_unused=False.")
    if not only_inputs:
        messages.only_inputs_deprecated()
    create_graph = create_graph is not None and flag(create_graph)
    retain_graph = create_graph if retain_graph is None else flag(retain_graph)
    allow_unused = materialize_grads if allow_unused is None else flag(allow_unused)
    outputs = arguments.roots_of(outputs)
    targets = (inputs,) if isinstance(inputs, Tensor) else arguments.inputs_of(inputs, "grad")
    if arguments.is_overridden(outputs + targets):
        return arguments.answer_of_class(grad, (outputs, inputs), {
            "grad_outputs": grad_outputs, "retain_graph": retain_graph, "create_graph": create_graph,
            "allow_unused": allow_unused, "is_grads_batched": is_grads_batched, "materialize_grads": materialize_grads})
    gradients = (None,) * len(outputs) if grad_outputs is None else arguments.gradients_for(outputs, grad_outputs)
    if is_grads_batched:
        results = arguments.batched(run_grad, outputs, targets, gradients, retain_graph, create_graph, allow_unused)
    else:
        results = run_grad(outputs, gradients, targets, retain_graph, create_graph, allow_unused)
    if materialize_grads:
        arguments.check_no_edges([t for t, result in zip(targets, results) if result is None])
        results = tuple([zeros_for(t, create_graph) if result is None else result
                         for t, result in zip(targets, results)])
    model = model_of(outputs + targets)
    if model is not None:
        results = arguments.as_subclass(results, type(model))
    return dict(zip(inputs, results)) if type(inputs) is dict else results


cpdef tuple run_grad(tuple outputs, tuple gradients, tuple inputs, bint retain_graph, bint create_graph,
                     bint allow_unused):
    """Same as `grad`, for arguments that have been checked."""
    cdef Run run = Run.__new__(Run)
    run.keep_graph = retain_graph
    return gradients_by(run, outputs, roots_of(outputs, gradients), inputs, create_graph, allow_unused)


def gradients_since(unsigned long long oldest, tuple outputs, tuple inputs, tuple gradients, bint create_graph):
    """Same as `grad`, limited to nodes recorded since number `oldest`; None for inputs that are not reached."""
    cdef Run run = Run.__new__(Run)
    run.keep_graph = create_graph
    run.oldest = oldest
    return gradients_by(run, outputs, list(gradients), inputs, create_graph, True)


cdef tuple gradients_up_to(set ends, tuple outputs, tuple gradients, tuple inputs, bint retain_graph, bint create_graph):
    """Same as `run_grad`, but the pass does not go beyond the nodes in `ends`; None for inputs that are not reached."""
    cdef Run run = Run.__new__(Run)
    run.keep_graph = retain_graph
    run.ends = ends
    return gradients_by(run, outputs, roots_of(outputs, gradients), inputs, create_graph, True)


cdef tuple gradients_by(Run run, tuple outputs, list roots, tuple inputs, bint create_graph, bint allow_unused):
    """The gradients of `inputs` by a new pass, which `roots` enter."""
    run.caller = "grad"
    plant(run, outputs, roots)
    aim_at_inputs(run, inputs, allow_unused)
    carry_out(run, create_graph)
    return captured_gradients(run, inputs, create_graph, allow_unused)


def queue_callback(callback):
    """Call `callback()` at the end of the backward pass running in this thread."""
    cdef ThreadState* state = thread_state()
    if state.run == NULL:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    (<Run>state.run).callbacks.append(callback)


def set_poll(callback):
    """Call `callback()` every few nodes until the backward pass running in this thread ends; None ends it.

    For what must be asked now and then in order to proceed, as collectives of MPI must. Raises RuntimeError outside of a
    pass.
    """
    cdef ThreadState* state = thread_state()
    if state.run == NULL:
        raise RuntimeError("set_poll() can only be called during a backward pass.")
    (<Run>state.run).poll = callback


# -- before ------------------------------------------------------------------------------------------------

cdef list roots_of(tuple tensors, tuple gradients):
    """Check everything, then return the initial gradient of each tensor."""
    cdef list roots = []
    cdef Py_ssize_t i
    cdef Tensor t
    if len(tensors) != 1 or len(gradients) != 1 or gradients[0] is not None or not is_real_scalar(tensors[0]):
        arguments.check_roots(tensors, gradients)
    for i in range(len(tensors)):
        if not isinstance(tensors[i], Tensor):          # a GradientEdge
            roots.append(arguments.root_of_edge(tensors[i]) if gradients[i] is None else gradients[i])
            continue
        t = <Tensor>tensors[i]
        if t.flags & IS_VOLATILE:
            raise RuntimeError(messages.VOLATILE_BACKWARD)
        if not requires_grad(t) or (grad_fn_of(t) is None and not t.flags & REQUIRES_GRAD):
            from cygrad._core.diagnostics.missing_grad import no_grad_error  # needed only for errors
            raise no_grad_error(t, i)
        grad = gradients[i]
        if grad is None and t.origin_kind != CUT_NONE and grad_fn_of(t) is None:
            from cygrad._core.diagnostics.missing_grad import warn_late_leaf  # needed only for the warning
            warn_late_leaf(t)
        if grad is None and (t.flags & DISPATCHES or thread_state().dispatching):
            grad = dispatched_call("ones_like", t, wrap_in_mode(ones_like(t.array)))
        roots.append(wrap_in_mode(ones_like(t.array)) if grad is None else grad)
    return roots


cdef object ones_like(object array):
    """Return ones like a loss, as its initial gradient; for 0-d arrays without NumPy's overhead."""
    if type(array) is not ndarray:
        return cupy_library.filled_like(array, array.shape, 1, array.dtype)
    if PyArray_NDIM(<ndarray>array) == 0:
        return array_of_number(1.0, PyArray_TYPE(<ndarray>array))
    ones = np.ones_like(array)
    if tape_open and PyArray_SIZE(<ndarray>ones) == 1:
        note_constant(PyArray_DATA(<ndarray>ones), PyArray_DATA(<ndarray>ones), PyArray_ITEMSIZE(<ndarray>ones), 1)
    return ones


cdef bint is_real_scalar(object value) except -1:
    if not isinstance(value, Tensor):
        return False
    array = (<Tensor>value).array
    if type(array) is ndarray:
        return PyArray_SIZE(<ndarray>array) == 1 and category_of_num(PyArray_TYPE(<ndarray>array)) == FLOATING
    return array.size == 1 and array.dtype.kind == "f"


cdef int plant(Run run, tuple tensors, list roots) except -1:
    """Find the graph below the tensors and insert their initial gradients."""
    cdef Py_ssize_t i
    cdef int nr
    cdef list entries = []
    for value in tensors:
        target = target_of(value, &nr)
        entries.append((run.add(target), nr))
    run.discover()
    run.one_root = len(tensors) == 1
    for i in range(len(tensors)):
        entry, nr = entries[i]
        if thread_state().watch:
            check_given(i, <Tensor>roots[i])
        run.give(entry, nr, <Tensor>roots[i])
        roots[i] = None
    return 0


cdef object target_of(object value, int* nr):
    """Return the node or leaf at which the gradient of a tensor or GradientEdge arrives; set `nr` to its output."""
    if not isinstance(value, Tensor):
        nr[0] = value.output_nr
        return value.node
    node = grad_fn_of(<Tensor>value)
    nr[0] = (<Tensor>value).output_nr_
    return value if node is None else node


cdef int aim_at_leaves(Run run, tuple inputs) except -1:
    """Restrict accumulation to these tensors."""
    cdef int nr
    cdef Py_ssize_t entry
    for value in inputs:
        if isinstance(value, Tensor) and not requires_grad(<Tensor>value):
            value.retain_grad()         # raises
    for value in inputs:
        if isinstance(value, Tensor):
            value.retain_grad()
        entry = run.find(target_of(value, &nr))
        if entry >= 0:
            run.entries[entry].needed = True
    run.select()
    return 0


cdef int aim_at_inputs(Run run, tuple inputs, bint allow_unused) except -1:
    """Have the run capture the gradients of these tensors."""
    cdef int nr
    cdef Py_ssize_t entry
    run.captures = {}
    run.captured = [None] * len(inputs)
    for i, value in enumerate(inputs):
        if isinstance(value, Tensor) and not requires_grad(<Tensor>value):
            raise graph_errors.input_without_gradient(value, i)
    for i, value in enumerate(inputs):
        entry = run.find(target_of(value, &nr))
        if entry >= 0:
            run.entries[entry].captured = True
            run.captures.setdefault((entry, nr), []).append(i)
        elif not allow_unused:
            raise graph_errors.unused_input(value, i)
    run.select()
    return 0


# -- what code that runs during a pass, such as a hook, can ask --------------------------------------------

cdef Run running():
    """Return the innermost pass of this thread, or None."""
    cdef ThreadState* state = thread_state()
    return None if state.run == NULL else <Run>state.run


def number_of_pass():
    """Return the number of the pass, which the next one exceeds; -1 outside of a pass."""
    cdef Run run = running()
    return -1 if run is None else run.id


def keeps_graph():
    """Whether the pass keeps saved values for another one; True outside of a pass."""
    cdef Run run = running()
    return True if run is None else run.keep_graph


def execution_order():
    """Return the nodes of the pass in the order in which they run. Raises RuntimeError outside of a pass.

    The pass is gone through from its start, with a heap of its own and no gradients.
    """
    cdef Run run = running()
    cdef Run trial = Run.__new__(Run)
    cdef Py_ssize_t entry, j
    cdef list waiting, order = []
    if run is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    waiting = [0] * run.n_entries
    for entry in range(run.n_entries):
        for j in followers(run, entry):
            waiting[j] += 1
    trial.entries = run.entries         # lent: `trial` counts none of them as its own
    try:
        for entry in range(run.n_entries):
            if waiting[entry] == 0:
                trial.push(entry)
        while trial.n_ready:
            entry = trial.pop()
            if not run.wants(entry):
                continue
            order.append(<object>run.entries[entry].node)
            if run.selective and not run.entries[entry].needed:
                continue
            for j in followers(run, entry):
                waiting[j] -= 1
                if waiting[j] == 0:
                    trial.push(j)
    finally:
        trial.entries = NULL
    return order


cdef list followers(Run run, Py_ssize_t entry):
    """Return the entries to which a node passes gradients, one for each edge."""
    cdef Node node = <Node>run.entries[entry].node
    cdef int k
    cdef list found = []
    for k in range(node.n_edges):
        target = node.target(k)
        if target is not None and run.find(target) >= 0:
            found.append(run.find(target))
    return found


def will_run(Node node not None):
    """Whether this thread's running backward pass wants a gradient at this node."""
    cdef Run run = running()
    cdef Py_ssize_t entry = -1 if run is None else run.find(node)
    return entry >= 0 and run.wants(entry)


def will_execute(node):
    """Return `will_run(node)`; implements `_will_engine_execute_node`.

    Raises RuntimeError outside of a pass, for anything but a node, and in `autograd.grad` for the node of a leaf whose
    gradient is asked for.
    """
    cdef Run run = running()
    cdef Py_ssize_t entry
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {messages.type_name(node)}")
    if run is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    entry = run.find(node)
    if entry >= 0 and run.entries[entry].captured and isinstance(node, AccumulateGrad):
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported.")
    return will_run(node)


# -- during and after --------------------------------------------------------------------------------------

cdef follower_t follower = NULL     # does a pass that it can do faster; see Note [Followed passes]


cdef void follow_passes(follower_t by) noexcept:
    global follower
    follower = by


cdef int carry_out(Run run, bint create_graph) except -1:
    """Execute the run, then the final callbacks, with the right grad mode."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes
    cdef Run outer = None if state.run == NULL else <Run>state.run
    cdef unsigned long long unwanted = state.unwanted
    cdef void* on_save = state.on_save
    cdef tuple saving = () if on_save == NULL else entered_hooks()
    cdef int lasti = 0
    code = current_site(&lasti)
    run.freed_by = (run.caller, code, lasti, state.sequence, PyThread_get_thread_ident())
    run.callbacks = []
    if modes & FORWARD:
        from cygrad._core.transforms.forward_mode import flush  # needed only for forward mode or vmap
        flush()                         # may raise, which is safe here: nothing has been changed yet
        run.cuts = not create_graph     # tangents need the recorded (differentiable) form of the rules
    if follower != NULL and not create_graph and follower(run):
        run.callbacks = None
        return 0
    state.run = <void*>run
    state.modes = (modes & ~NO_GRAD) if create_graph or run.cuts else (modes | NO_GRAD)
    state.unwanted = 0
    try:
        if run.has_streams or state.stream != NULL or several_gpus:
            execute_in_streams(run)
        else:
            run.execute()
        for callback in run.callbacks:      # may grow during the loop
            callback()
    finally:
        state.modes = modes
        if state.on_save != on_save:        # a function called by the pass entered or ended hooks on saved tensors
            save_by(saving)
        # Of two greenlets, the one whose pass began first may end it first; then there is nothing to return to.
        run.callbacks = None
        state.run = NULL if outer is None or outer.callbacks is None else <void*>outer
        state.unwanted = unwanted
    return 0


cdef int execute_in_streams(Run run) except -1:
    from cygrad._core.engine.streams import Pass  # needed only for GPUs
    run.streams = Pass()
    try:
        run.execute()
    finally:
        streams, run.streams = run.streams, None
        streams.leave()
    return 0


cdef Tensor zeros_for(Tensor input, bint create_graph):
    """Return zeros as the gradient of an unused input."""
    zeros = wrap_in_mode(np.zeros_like(input.array))
    if create_graph:
        set_leaf_requires_grad(zeros, True)
    return zeros


cdef tuple captured_gradients(Run run, tuple inputs, bint create_graph, bint allow_unused):
    if run.cuts:
        from cygrad._core.transforms.forward_mode import without_history  # needed only for forward mode or vmap
        run.captured = [None if result is None else without_history(result) for result in run.captured]
    cdef list gradients = []
    for i, result in enumerate(run.captured):
        if result is not None:
            if not create_graph and isinstance(inputs[i], Tensor):
                if 0 in (<Tensor>result).array.strides:     # make it writable in place
                    result = result.clone()
                cut(<Tensor>result, <Tensor>inputs[i], CUT_BACKWARD, "grad")
        elif not allow_unused:
            raise graph_errors.unused_input(inputs[i], i)
        gradients.append(result)
    return tuple(gradients)


cdef int check_given(Py_ssize_t i, Tensor grad) except -1:
    """For `nan_check`: raise if an initial gradient contains a NaN."""
    cdef bint inf = thread_state().watch & WATCH_INF
    if has_bad(grad.array, inf):
        from cygrad._core.diagnostics import non_finite  # needed only if a check fails
        non_finite.bad_given(i, grad.array, inf)
    return 0


# -- the pass running in this thread, for the package's Python code ------------------------------------------

def current_run():
    """Return (number of the backward pass running in this thread or 0, its nodes)."""
    cdef void* run = thread_state().run
    return (0, []) if run == NULL else ((<Run>run).id, (<Run>run).nodes())


def history_is_cut():
    """Whether this thread runs a backward pass that records gradients only for their tangents or samples."""
    cdef void* run = thread_state().run
    return run != NULL and (<Run>run).cuts


def notes_of_run():
    """Return a dictionary that lives as long as this thread's running backward pass; raise outside of one."""
    cdef void* run = thread_state().run
    if run == NULL:
        raise RuntimeError("no backward pass is running")
    if (<Run>run).notes is None:
        (<Run>run).notes = {}
    return (<Run>run).notes


def is_selective():
    """Whether this thread's running backward pass computes only the requested gradients; None outside of a pass."""
    cdef void* run = thread_state().run
    return None if run == NULL else bool((<Run>run).selective)


cupy_library.followers.append(attend_gpus)
