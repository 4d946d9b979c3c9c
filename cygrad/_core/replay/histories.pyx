"""Results of a captured step whose backward pass comes later, outside of the step.

Note [Later backward passes]
----------------------------
A compiled module returns tensors from which a loss is computed elsewhere. All results of one call get one node,
CompiledFunctionBackward, whose inputs are the arguments and the tensors outside of the step that require grad.

    capture     When the step has been captured, its graph is run backward with gradients of our own making while another
                tape is open. So this pass is a program, too. Its arguments are the gradients, the step's arguments and the
                memory that the step has given and its graph keeps: blocks of the first tape that are alive at its end.
                What the pass reads of them must have been written by noted loops. The graph is kept, for the user's own
                backward pass.
    replay      The step's program has a further result for each block that a pass reads; the node owns these until its
                saved values are released. There is one program for each layout of the incoming gradients.
    otherwise   A pass that is itself recorded (double backward), or whose gradients have another layout, runs as it is
                written: the function is called once more, with the random numbers of the first time and without its
                effects, and that graph is run. If a layout comes again, the function is captured anew with it. After a
                recorded pass, the node's edges lead to this graph, so that later passes sum up gradients as eager ones do.
    versions    For each value that the eager graph has saved, the node remembers the version of the tensor whose memory it
                is. A change in between is eager's error.

Hooks on results, arguments and parameters are the outer pass's affair: they are not run within the node.
"""

import gc
from types import CodeType, FunctionType, ModuleType

cimport cython
cimport numpy as cnp

import numpy as np

from cygrad._core.graph.node cimport Node, begin_node, forbid_making, set_metas
from cygrad._core.graph.opdef cimport OpDef, asks_nobody
from cygrad._core.graph.saved_slots cimport check_not_freed, refuse_modified
from cygrad._core.graph.tensor cimport Tensor, VersionCounter, counter_of, grad_fn_of, wrap
from cygrad._core.replay.graphs cimport Graph, edge_of, inner_gradients, layout_of, placeholder, witness_of
from cygrad._core.replay.numbers cimport Live
from cygrad._core.replay.parts cimport A_PART, AN_ARGUMENT, External, Result
from cygrad._core.replay.program cimport History, Program
from cygrad._core.runtime.thread_state cimport NO_GRAD, ThreadState, thread_state
from cygrad._kernels.tape.tape cimport ARGUMENT_BLOCK, READS, Block, Entry, Touch

from cygrad._core.engine.backward import queue_callback
from cygrad._core.errors import messages
from cygrad._core.replay.casts import situation_of_pass, within
from cygrad._core.replay.parts import Unfit
from cygrad._core.replay.program import MISS
from cygrad._kernels.device.cupy_library import gpu_class
from cygrad._library import later

captured_work = later("cygrad._kernels.gpu.launch.captured_work")      # needed only on GPUs

cnp.import_array()

cdef object _miss = MISS

GIVEN, OUTSIDE, RESULT = "argument", "outside", "result"      # kinds of what is watched
MOST_LAYOUTS = 8


# ----------------------------------------------------------------------------------------------- capture


def are_there(grads):
    """The gradients that there are."""
    return [grad for grad in grads if grad is not None]


@cython.final
cdef class Saved:
    pass


@cython.final
cdef class Pass:
    pass


cdef class Past(History):
    """The history of a program's results; see Note [Later backward passes]."""

    @property
    def layouts(self):
        """The layouts of gradients for which there is a program."""
        return list(self.passes)

    @property
    def programs(self):
        """The programs of the backward passes."""
        return [(<Pass>each).program for each in self.passes.values()]

    cdef list attached(self, list found, list arguments, tuple call, tuple states):
        cdef CompiledFunctionBackward node = CompiledFunctionBackward.__new__(CompiledFunctionBackward)
        cdef Tensor t
        cdef Py_ssize_t i
        begin_node(node, thread_state())
        node.past, node.arguments, node.given, node.states = self, arguments, call, states
        set_metas(node, tuple([(<Tensor>found[i]).array for i in self.outputs]))
        for i in range(self.from_arguments):
            target, nr = edge_of(True, (<tuple>self.edges[i])[1], arguments)
            node.add_edge(target, nr)
        for i in range(self.from_arguments, len(self.edges)):
            if node.n_edges == 3 and self.further is not None:
                node.more_edges = self.further
                node.n_edges = <int>len(self.edges)
                break
            t = (<tuple>self.edges[i])[1]
            node.add_edge(t, t.output_nr_)
        node.saved = self.memory_of(found, arguments)
        node.counters, node.versions = [], []
        for kind, i in self.watched:
            t = self.tensor_at(kind, i, found, arguments)
            node.counters.append(counter_of(t))
            node.versions.append((<VersionCounter>t.counter).version)
        del found[self.n_results:]
        for nr, i in enumerate(self.outputs):
            t = found[i]
            t.grad_fn_, t.output_nr_ = node, nr
        return found

    cdef int begin(self, Graph graph, list leaves, list outputs, object flatten, list outside, unsigned int modes) except -1:
        """Take over what is known before any pass is captured."""
        self.flatten, self.outputs, self.edges, self.outside, self.modes = flatten, outputs, graph.edges, outside, modes
        self.passes, self.refused, self.unknown, self.n_results = {}, {}, {}, len(leaves)
        self.from_arguments = sum([1 for is_argument, _ in graph.edges if is_argument])
        if self.from_arguments <= 3 < len(self.edges):
            self.further = [(t, (<Tensor>t).output_nr_) for _, t in self.edges[3:]]
        return 0

    cdef Tensor tensor_at(self, object kind, Py_ssize_t i, list found, list arguments):
        if kind is GIVEN:
            return arguments[i]
        return found[i] if kind is RESULT else (<External>self.outside[i]).tensor

    cdef bint takes(self, tuple grads) except -1:
        """Whether programs may be given these gradients, if they have the right layout."""
        return are_plain(grads)

    cdef list memory_of(self, list found, list arguments):
        """Tensors on what passes read of a run: of the arguments, and the memory that it gave."""
        cdef list saved = []
        cdef Py_ssize_t i, n = len(arguments)
        for i in range(n):
            saved.append(wrap((<Tensor>arguments[i]).array) if self.needed[i] else None)
        for i in range(len(self.memory)):
            if not self.needed[n + i]:
                saved.append(None)
            elif self.memory[i][0]:
                saved.append(wrap((<Tensor>found[self.memory[i][1]]).array))
            else:
                saved.append(found[self.memory[i][1]])
        return saved

    cdef str difference(self, list leaves, list found, list arguments):
        cdef Pass each
        cdef tuple grads
        cdef list outputs = [leaves[i] for i in self.outputs], saved = self.memory_of(found, arguments)
        for t in outputs:
            if grad_fn_of(<Tensor>t) is None:
                return "a result has no history"
        for key, each in list(self.passes.items()):
            strides, unwanted, casting = key
            grads = tuple([None if step is None else placeholder(t, step, 2) for t, step in zip(outputs, strides)])
            with within(casting):
                _, text = each.program.check(
                    lambda: inner_gradients(outputs, grads, self.edges, arguments, unwanted, True, False),
                    [*are_there(grads), *saved], are_there)
            if text is not None and each is self.dense:
                return f"in the backward pass, {text}"
            if text is not None:
                self.refused[key] = text
                del self.passes[key]
        return None

    def bind(self, function, guard, learn):
        """Tell how the function is called as it is written, what must hold for it to do the same as before, and what to do
        about a layout that is not captured: `learn(key)`."""
        self.function, self.guard, self.learn = function, guard, learn

    cdef int capture(self, object by, Graph graph, list leaves, list arguments, list blocks, tuple layouts,
                     Py_ssize_t n_shown) except -1:
        """Capture the passes. `by` is `capture` of capture.pyx, `blocks` are those of the first tape that are alive. No
        gradients are expected of results from `n_shown` on."""
        cdef Tensor t
        cdef list outputs = [leaves[i] for i in self.outputs]
        cdef list saved = [wrap((<Tensor>t).array) for t in arguments]
        cdef list strides = [np.empty((<Tensor>t).array.shape, (<Tensor>t).array.dtype).strides for t in outputs]
        cdef tuple dense = (tuple([step if i < n_shown else None for i, step in zip(self.outputs, strides)]), 0, None)
        for block, (is_result, i) in zip(blocks, self.memory):
            saved.append(wrap((<Tensor>leaves[i]).array) if is_result else wrap(bytes_of(block)))
        self.needed = [False] * len(saved)
        for key in (dense, *[key for key in layouts if key != dense]):
            try:
                self.passes[key] = self.captured(key, by, graph, outputs, arguments, saved, blocks)
            except Unfit as reason:
                if key == dense:
                    raise
                self.refused[key] = str(reason)
        self.dense = self.passes[dense]
        return 0

    cdef Pass captured(self, tuple key, object by, Graph graph, list outputs, list arguments, list saved, list blocks):
        cdef Pass made = Pass()
        cdef Program program
        cdef Entry entry
        cdef Touch touch
        cdef Block block
        cdef Result r
        cdef Py_ssize_t i, k
        strides, unwanted, casting = key
        grads = tuple([None if step is None else placeholder(t, step, 1) for t, step in zip(outputs, strides)])
        given = [grad for grad in grads if grad is not None]
        with within(casting):
            found, refusal = by(lambda: inner_gradients(outputs, grads, self.edges, arguments, unwanted, True, False),
                                [*given, *saved], are_there, is_pass=True)
        if not isinstance(refusal, Program):
            raise Unfit(f"its backward pass cannot be replayed: {refusal}")
        program = refusal
        if program.counts or program.grads or program.lives or any(program.changes):
            raise Unfit("its backward pass changes tensors outside of it")
        made.program = program
        k, made.arrives = 0, []
        for grad in found:
            made.arrives.append(-1 if grad is None else k)
            k += grad is not None
        used = {r.index for r in program.results if r.kind == AN_ARGUMENT or r.kind == A_PART}
        for entry in program.launches.entries:
            for touch in entry.touches:
                block = touch.block
                if block is None or block.kind != ARGUMENT_BLOCK:
                    continue
                used.add(block.index)
                i = block.index - len(given) - len(arguments)
                if i >= 0 and touch.mode & READS and not (<Block>blocks[i]).covers(touch.low, touch.high):
                    raise Unfit("its backward pass reads what no noted loop has computed")
        for i in range(len(given), len(program.guards)):
            if i in used:
                self.needed[i - len(given)] = True
            else:
                program.guards[i] = None
        made.reads = None
        if unwanted:                # values that only the gradients nobody wants need may change
            made.reads = {(GIVEN, i) for i in range(len(arguments)) if len(given) + i in used}
            made.reads.update([(RESULT, i) for k, (is_result, i) in enumerate(self.memory)
                               if is_result and len(given) + len(arguments) + k in used])
            made.reads.update(places_of(program.outside, self.outside))
        return made

    # -- passes as they are written ---------------------------------------------------------------------------

    cdef object as_written(self, CompiledFunctionBackward node, tuple grads, unsigned long long unwanted, bint create):
        """The gradients of a pass that cannot be replayed: from a graph that is made once more."""
        cdef ThreadState* state = thread_state()
        cdef unsigned int modes = state.modes
        cdef list outputs
        cdef const char* reason
        if self.function is None or node.given is None:
            raise RuntimeError(messages.COMPILED_BACKWARD.format("its function is not known"))
        if not self.guard.holds():
            raise RuntimeError(messages.COMPILED_BACKWARD.format(self.guard.why()))
        for (kind, i), counter, version in zip(self.watched, node.counters, node.versions):
            if kind is not RESULT and (<VersionCounter>counter).version != version:
                raise RuntimeError(messages.COMPILED_BACKWARD.format("a tensor that it reads was changed in place"))
        for external in self.outside:
            reason = (<External>external).misfit()
            if reason != NULL:
                raise RuntimeError(messages.COMPILED_BACKWARD.format(reason.decode()))
        state.modes = self.modes
        unwanted_outside, state.unwanted, state.spare = state.unwanted, 0, NULL
        try:
            leaves = self.again(node)
        finally:
            state.modes, state.unwanted = modes, unwanted_outside
        outputs = [leaves[i] for i in self.outputs]
        found = inner_gradients(outputs, grads, self.edges, node.arguments, unwanted, create, create)
        if create and state.run != NULL:
            queue_callback(lambda: node.lead_to(outputs))
        return found

    cdef list of_casts(self, tuple grads):
        """The gradients of parameters, if only casts of these have any: to pass them on takes no saved values."""
        cdef list found = [None] * len(self.edges)
        for nr, grad in enumerate(grads):
            if grad is None:
                continue
            if nr not in self.casts:
                return None
            found[self.casts[nr]] = grad.to((<tuple>self.edges[self.casts[nr]])[1].dtype)
        return found

    cdef list again(self, CompiledFunctionBackward node):
        """Call the function of a node once more, as then, but without its effects; return its tensors."""
        cdef list current = [(<Live>each).saved() for each in self.program.lives]
        try:
            drawn, changed = node.states
            for each, former in zip(self.program.lives, drawn or ()):
                (<Live>each).restore(former)
            return self.program.again(lambda: self.function(*node.given), self.flatten, changed)
        finally:
            for each, former in zip(self.program.lives, current):
                (<Live>each).restore(former)

    cdef int note_unknown(self, tuple key) except -1:
        """A pass is of a layout that is not captured: have it captured if it comes again."""
        cdef Py_ssize_t n
        if self.learn is None or key in self.refused or len(self.unknown) >= MOST_LAYOUTS and key not in self.unknown:
            return 0
        n = self.unknown.get(key, 0) + 1
        self.unknown[key] = n
        if n == 2:
            self.learn(key)
        return 0


cdef list places_of(list externals, list outside):
    """Where these are in a list of further tensors: (OUTSIDE, number) of each."""
    cdef set wanted = {id((<External>e).tensor) for e in externals}
    return [(OUTSIDE, i) for i, e in enumerate(outside) if id((<External>e).tensor) in wanted]


cdef cnp.ndarray bytes_of(Block block):
    """The memory of a block, as long as that is alive."""
    cdef cnp.npy_intp size = block.high - block.low
    return cnp.PyArray_SimpleNewFromData(1, &size, cnp.NPY_UINT8, <void*>block.low)


# ---------------------------------------------------------------------------------------------- the node


@cython.final
@cython.trashcan(True)
cdef class CompiledFunctionBackward(Node):
    """The node of the results of a compiled function."""

    cdef object call(self, object grad):
        cdef ThreadState* state = thread_state()
        cdef unsigned long long unwanted = state.unwanted
        cdef tuple grads = <tuple>grad if self.n_outputs > 1 else (grad,)
        cdef Pass found
        cdef Py_ssize_t arrives
        cdef list made, given
        if self.freed_by is not None and self.past.casts:
            made = self.past.of_casts(grads)
            if made is not None:
                return tuple(made)
        check_not_freed(self)
        if self.is_passed:
            return grads
        if len(self.past.edges) < 64:
            unwanted &= ((<unsigned long long>1) << len(self.past.edges)) - 1
        if not state.modes & NO_GRAD or not self.past.takes(grads):
            self.check_versions(None)
            return self.past.as_written(self, grads, unwanted, not state.modes & NO_GRAD)
        key = (tuple([layout_of(each) for each in grads]), unwanted, None if asks_nobody() else situation_of_pass())
        found = self.past.passes.get(key)
        if found is None:
            self.check_versions(None)
            self.past.note_unknown(key)
            return self.past.as_written(self, grads, unwanted, False)
        self.check_versions(found)
        given = [each for each in grads if each is not None]
        given.extend(self.saved)
        replayed = found.program.replay(given)
        if replayed is _miss:
            return self.past.as_written(self, grads, unwanted, False)
        made = <list>replayed
        return tuple([None if arrives < 0 else made[arrives] for arrives in found.arrives])

    cdef bint stands_for_several(self) noexcept:
        return True

    cdef int lead_to(self, list outputs) except -1:
        """From now on, let gradients pass to the graph that was made once more: it is part of the graph of the gradients."""
        cdef Tensor t
        self.edge0 = self.edge1 = self.edge2 = self.more_edges = None
        self.n_edges = 0
        for t in outputs:
            self.add_edge(grad_fn_of(t), t.output_nr_)
        self.is_passed = True
        self.saved = self.arguments = self.counters = self.versions = None
        self.states = self.given = None
        return 0

    cdef int check_versions(self, Pass found) except -1:
        """Raise eager's error if a value that its graph saves was changed since."""
        cdef Saved each
        cdef VersionCounter counter
        cdef Py_ssize_t i
        cdef bint differ = False
        for i in range(len(self.versions)):
            if (<VersionCounter>self.counters[i]).version != <long long>self.versions[i]:
                differ = True
        if not differ:
            return 0
        for each in self.past.saved:
            if found is not None and found.reads is not None and each.place not in found.reads:
                continue
            i = self.past.watched.index(each.place)
            counter = self.counters[i]
            if counter.version != <long long>self.versions[i]:
                each.value.counter = counter
                refuse_modified(each.node, each.value, self.versions[i], each.is_result)
        return 0

    cdef int release_variables(self, object freed_by) except -1:
        self.saved = self.arguments = self.counters = self.versions = self.states = None
        self.given = None
        self.freed_by = freed_by
        return 0

forbid_making(CompiledFunctionBackward)


cdef bint are_plain(tuple grads) noexcept:
    """Whether these are dense tensors in memory, without anything that others could see."""
    for each in grads:
        if each is not None and (type(each) is not Tensor or type((<Tensor>each).array) is not cnp.ndarray
                                 or (<Tensor>each).flags or (<Tensor>each).tangents is not None):
            return False
    return True


# ------------------------------------------------------------------------------------------ the way there


def is_live(list leaves):
    """Whether a result has a history that has not been used up."""
    cdef Tensor t
    cdef Node node
    cdef set seen = set()
    cdef list todo = []
    cdef Py_ssize_t i
    for t in leaves:
        node = grad_fn_of(t)
        if node is not None:
            todo.append(node)
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.freed_by is not None:
            return False
        for i in range(node.n_edges):
            if isinstance(node.target(<int>i), Node):
                todo.append(node.target(<int>i))
    return len(seen) > 0


def graph_of(list roots, list arguments, dict before):
    """The graph of these nodes; raises Unfit."""
    return Graph(roots, arguments, before)


def kept_by(Graph graph not None):
    """The tensors that a graph keeps."""
    return [t for _, _, t in graph.kept()]


def objects_kept_by(Graph graph not None, list leaves):
    """All objects that a graph and its results keep, also those in objects that rules keep for themselves."""
    cdef list todo = [*graph.nodes, *leaves], found = []
    cdef set seen = set(map(id, todo))
    while todo:
        for value in gc.get_referents(todo.pop()):
            if id(value) in seen or isinstance(value, _NOT_FOLLOWED):
                continue
            seen.add(id(value))
            found.append(value)
            if not is_array(value):
                todo.append(value)
    return found


def arrays_kept_by(Graph graph not None, list leaves):
    """The arrays among `objects_kept_by`."""
    return [value for value in objects_kept_by(graph, leaves) if is_array(value)]


cdef bint is_array(object value) except -1:
    return isinstance(value, np.ndarray) or type(value) is gpu_class()


_NOT_FOLLOWED = (Node, OpDef, type, ModuleType, FunctionType, CodeType, str, int, float, bytes)


def leaves_of(Graph graph not None):
    """The tensors outside of the step at which a graph ends."""
    return [t for is_argument, t in graph.edges if not is_argument]


def past_of(Program program not None, Graph graph not None, list arguments, list leaves, list outputs, list blocks,
            list places, by, tuple layouts, flatten, Py_ssize_t n_shown):
    """The history of results: `outputs` are their numbers, `blocks` the memory that the step gave, `places` which result
    is on each block, or None. Raises Unfit."""
    cdef Past past = Past()
    cdef Py_ssize_t k = len(leaves)
    past.program = program
    past.begin(graph, leaves, outputs, flatten, program.outside, program.modes)
    ends = {id(t): i for i, (is_argument, t) in enumerate(graph.edges) if not is_argument}
    past.casts = {outputs.index(n_shown + i): ends[id(t)] for i, t in enumerate(program.values) if id(t) in ends}
    past.memory = [(False, -1) if place is None else (True, place) for place in places]
    if not any([i < n_shown for i in outputs]):
        n_shown = len(leaves)
    past.capture(by, graph, leaves, arguments, blocks, layouts, n_shown)
    for i in range(len(blocks)):
        if past.needed[len(arguments) + i] and not past.memory[i][0]:
            past.memory[i] = False, k
            k += 1
    watch(past, graph, arguments, leaves)
    return past


def further_blocks(Past past not None, Py_ssize_t n_arguments, list blocks):
    """The blocks for which the program must have a further result, in their order."""
    return [block for i, block in enumerate(blocks) if past.needed[n_arguments + i] and not past.memory[i][0]]


cdef object one_element(object array):
    """An array of the same kind, dtype and shape, whose memory is one element."""
    if type(array) is gpu_class():
        return captured_work.expanded(array)
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


cdef int watch(Past past, Graph graph, list arguments, list leaves) except -1:
    """Note which values the nodes save, to compare their versions later."""
    cdef Tensor t
    cdef Saved saved
    cdef Node node
    cdef dict known = {}
    cdef list found = []
    past.watched = []
    for kind, tensors in ((GIVEN, arguments), (OUTSIDE, [(<External>e).tensor for e in past.outside]),
                          (RESULT, leaves)):
        for i, t in enumerate(tensors):
            if kind is RESULT and i not in past.outputs:
                continue
            known.setdefault(id(t), (kind, i))
            if t.counter is not None:
                known.setdefault(id(t.counter), (kind, i))
    for node, place, t in graph.kept():
        where = known.get(id(t), known.get(id(t.counter)) if t.counter is not None else None)
        if where is None or place < 0:
            continue
        saved = Saved()
        saved.place, saved.node, saved.is_result = where, witness_of(node), node.output_in(place) >= 0
        saved.value = wrap(one_element(t.array))
        saved.value.output_nr_ = max(node.output_in(place), 0) if saved.is_result else t.output_nr_
        made_by = None if saved.is_result else t.grad_fn_
        if made_by is not None:
            saved.value.grad_fn_ = witness_of(made_by)
        found.append(saved)
        if where not in past.watched:
            past.watched.append(where)
    past.saved = found
    return 0
