"""Results of a step on a GPU whose backward pass comes later: graphs for that pass, in the memory of the step's graph.

Note [Later backward passes on GPUs]
------------------------------------
As in main memory (Note [Later backward passes] in `_core/replay/histories.pyx`), all results of a call get one node, and
there is a program for each layout of the gradients that arrive. Such a program is a graph of its own, captured right after
the step, while the history of the captured call stands on the memory of the step's graph. It reads what the step has left
there.

The next launch of the step overwrites this. So the memory has a tenant: the call whose values are in it. If another call
comes while the tenant's pass may still come, what passes read is copied out (`vacate`), and copied in again for its pass
(`admit`). In the usual order, forward, backward, forward, nothing is copied. Arguments and results are the user's, who may
change them through `data`: passes read them anew, as eager ones do.
"""

cimport cython

from cygrad._core.graph.tensor cimport Tensor, VersionCounter, grad_fn_of, wrap
from cygrad._core.replay.gpu.twins cimport Twin, is_here
from cygrad._core.replay.graphs cimport Graph, inner_gradients, placeholder
from cygrad._core.replay.histories cimport CompiledFunctionBackward, Pass, Past, places_of, watch
from cygrad._core.replay.parts cimport External, external_of, is_plain_now, matters
from cygrad._core.types.dtypes cimport default_dtype

import weakref

from numpy import empty

from cygrad._core.replay.gpu.twins import Line
from cygrad._core.replay.histories import GIVEN, RESULT, are_there, arrays_kept_by
from cygrad._core.replay.parts import Unfit
from cygrad._core.replay.program import MISS
from cygrad._kernels.device.cupy_library import current_device, gpu_class, on_device
from cygrad._library import later

captured_work = later("cygrad._kernels.gpu.launch.captured_work")      # needed only on GPUs
cudnn = later("cygrad._kernels.gpu.libraries.cudnn")
graph_capture = later("cygrad._kernels.gpu.runtime.graph_capture")

cdef object _miss = MISS


# ------------------------------------------------------------------------------------------------ memory

@cython.final
cdef class Values:
    """What one call has left for its backward pass."""

    def __init__(self, list given not None):
        self.given = given


@cython.final
cdef class Memory:
    """The memory of a step's graph, and the call whose values are in it."""

    def __init__(self, work):
        self.work, self.inner, self.sources, self.tenant = work, [], [], None

    cdef int vacate(self) except -1:
        """Before other values come: keep those of the tenant, if its pass may still come. Raises if memory is short."""
        cdef Values values = None if self.tenant is None else self.tenant()
        if values is not None and values.copies is None and self.inner:
            self.work.wait_for_last()
            values.copies = [captured_work.copied(a) for a in self.inner]
        self.tenant = None
        return 0

    cdef int admit(self, Values values) except -1:
        """Let the values of a call be in the memory."""
        if self.tenant is None or self.tenant() is not values:
            self.vacate()
            self.work.wait_for_last()
            if matters(b"the values of an earlier call are not copied in"):
                for own, copy in zip(self.inner, values.copies or ()):
                    captured_work.copy(own, copy)
            self.tenant = weakref.ref(values)
        self.work.wait_for_last()
        for own, array in zip(self.sources, values.given):
            captured_work.copy(own, array)
        return 0


# ------------------------------------------------------------------------------------------------ passes

@cython.final
cdef class GpuPass:
    """A captured backward pass. It has the methods of `Program` that a history needs."""

    cdef object work, settings, default
    cdef Memory memory
    cdef list results               # of each gradient: a Twin, the number of an earlier one, Given, or Part
    cdef list externals             # of External
    cdef unsigned int modes
    cdef int device
    cdef str missed

    @property
    def entries(self):
        """What a replay launches."""
        return [Line("graph", None), *[Line(*line) for line in self.work.lines]]

    @property
    def size(self):
        """Bytes that the graph holds."""
        return self.work.size

    def why_missed(self):
        """The guard that failed in the last replay, or None."""
        return self.missed

    def replay(self, list given not None):
        """Do the pass. `given` are gradients, and at the end what the call has left. Return the new gradients, or MISS,
        with nothing done."""
        cdef list grads = given[:len(given) - 1]
        self.missed = self.misfit()
        if self.missed is not None:
            return _miss
        self.memory.is_busy = True
        try:
            with on_device(self.device):
                self.memory.admit(<Values?>given[len(given) - 1])
                return self.run(grads)
        finally:
            self.memory.is_busy = False

    cdef str misfit(self):
        """Why the pass cannot be replayed now, or None."""
        cdef const char* found
        if self.memory.is_busy and matters(b"another thread replays this program"):
            return "another thread replays this program"
        if current_device() != self.device and matters(b"another GPU is current"):
            return "another GPU is current"
        if not is_plain_now(self.modes, True) and matters(b"a mode of the thread differs"):
            return "a mode of the thread differs"
        if default_dtype() is not self.default and matters(b"the default dtype differs"):
            return "the default dtype differs"
        if cudnn.all_settings() != self.settings and matters(b"a setting of cuDNN or of matrix products differs"):
            return "a setting of cuDNN or of matrix products differs"
        if graph_capture.is_capturing() and matters(b"the stream is being captured"):
            return "the stream is being captured"
        for e in self.externals:
            found = (<External>e).misfit()
            if found != NULL and matters(found):
                return found.decode()
        return None

    cdef list run(self, list grads):
        """Launch the graph on gradients of the right layout, and return the new ones."""
        cdef list found = []
        cdef dict memories = {}
        for r in self.results:
            if type(r) is Twin:
                found.append((<Twin>r).fresh(memories))
            elif type(r) is tuple:
                k, array = r
                found.append(grads[k] if array is None else wrap(
                    captured_work.part_of((<Tensor>grads[k]).array, self.work.taken[k], array)))
            else:
                found.append(found[r])
        self.work.launch([(<Tensor>t).array for t in grads])
        for room, memory in memories.items():
            room.fill(memory)
        return found

    cdef int enter(self, list grads, list found, list before) except -1:
        """Take over the gradients of the captured pass; raises Unfit. `grads` are those that it was given,
        `before` the tensors that existed, with their arrays."""
        cdef Tensor t
        cdef dict at = {}, rooms = {}, given = {id(t): k for k, t in enumerate(grads)}
        cdef dict taken = {a.data.mem.ptr: k for k, a in enumerate(self.work.taken) if a.size}
        self.results = []
        for t in found:
            if type(t) is not Tensor or t.grad_fn_ is not None or t.flags or not is_here(t.array, self.device) or (
                    not captured_work.has_room(t.array)):
                raise Unfit("its backward pass returns a gradient of an unusual kind")
            place = t.array.data.mem.ptr if t.array.size else 0
            if id(t) in given:
                self.results.append((given[id(t)], None))
            elif id(t) in at:
                self.results.append(at[id(t)])
            elif place in taken:
                self.results.append((taken[place], t.array))
            elif not place:
                self.results.append(Twin(t, None))
            else:
                if place in rooms:
                    rooms[place].widen(t.array)
                else:
                    rooms[place] = captured_work.Room(t.array)
                self.results.append(Twin(t, rooms[place]))
            at.setdefault(id(t), len(self.results) - 1)
        self.externals, used = [], self.work.used
        for t, array in before:
            if type(array) is gpu_class() and id(array.data.mem) in used:
                self.externals.append(external_of(t, t.grad_, False, True))
        return 0

    cdef str difference(self, list grads, call):
        """How the pass differs from `call()`, the one as it is written, or None."""
        cdef list expected, found
        former = self.work.snapshot()
        self.work.poison()
        found = self.run(grads)
        if not self.work.is_as(former):
            return "a tensor outside of the step is changed"
        expected = are_there(call())
        if len(expected) != len(found):
            return "other gradients are there"
        for i, (t, twin) in enumerate(zip(expected, found)):
            if not is_here((<Tensor?>t).array, self.device) or not captured_work.are_equal(
                    (<Tensor>t).array, (<Tensor>twin).array):
                return f"gradient {i} differs"
        return None


# --------------------------------------------------------------------------------------------- histories

@cython.final
cdef class GpuPast(Past):
    """The history of a captured step's results on a GPU; see Note [Later backward passes on GPUs]."""

    cdef bint takes(self, tuple grads) except -1:
        cdef Tensor t
        for each in grads:
            if each is None:
                continue
            if type(each) is not Tensor:
                return False
            t = each
            if not is_here(t.array, self.device) or t.flags or t.tangents is not None:
                return False
        return True

    cdef list memory_of(self, list found, list arguments):
        """What the call of which these are the results has left; it becomes the tenant of the memory."""
        cdef Values values = Values([
            (<Tensor>(arguments[i] if kind is GIVEN else found[i])).array for kind, i in self.places])
        self.memory_of_graph.tenant = weakref.ref(values)
        return [values]

    cdef list again(self, CompiledFunctionBackward node):
        cdef VersionCounter counter
        cdef list versions = [(c, (<VersionCounter>c).version, (<VersionCounter>c).op_name, (<VersionCounter>c).code,
                               (<VersionCounter>c).lasti) for c, *_ in self.counts]
        positions, former = node.states
        present = self.work.positions(), [captured_work.copied(a) for a in self.mutable.values()]
        try:
            self.work.set_back(positions)
            for array, copy in former:
                captured_work.copy(array, copy)
            return self.flatten(self.function(*node.given))
        finally:
            self.work.set_back(present[0])
            for array, copy in zip(self.mutable.values(), present[1]):
                captured_work.copy(array, copy)
            for counter, version, op_name, code, lasti in versions:
                counter.version, counter.op_name, counter.code, counter.lasti = version, op_name, code, lasti

    cdef tuple state_before(self):
        """What `again` needs to know of the time before a call."""
        return self.work.positions(), [(a, captured_work.copied(a)) for a in self.changed.values()]

    cdef int note_memory(self, list before) except -1:
        """Find out which memory outside the step may change: not every kernel raises a version counter. `before` are the
        tensors that existed, with their arrays."""
        cdef Tensor t
        cdef set counted = {id(counter) for counter, *_ in self.counts}
        cdef dict used = self.work.used
        leaves = {id(end) for is_argument, end in self.edges if not is_argument}
        self.mutable = {key: captured_work.bytes_of(mem) for key, mem in used.items()}
        self.changed = {}
        for t, array in before:
            if type(array) is not gpu_class() or id(array.data.mem) not in used:
                continue
            key = id(array.data.mem)
            if t.counter is not None and id(t.counter) in counted:
                self.changed[key] = captured_work.bytes_of(used[key])
            elif id(t) in leaves:
                self.mutable.pop(key, None)
        self.mutable.update(self.changed)
        return 0

    # -- capturing --

    cdef int capture_all(self, Graph graph, list leaves, list arguments, list before, list twins, tuple layouts) except -1:
        """Capture the passes; raises Unfit. `twins` are those of the results."""
        cdef list outputs = [leaves[i] for i in self.outputs]
        cdef tuple dense = (tuple([empty((<Tensor>t).array.shape, (<Tensor>t).array.dtype).strides for t in outputs]),
                            0, None)
        for key in (dense, *[key for key in layouts if key != dense]):
            try:
                self.passes[key] = self.recorded(key, graph, outputs, arguments, before)
            except Unfit as reason:
                if key == dense:
                    raise
                self.refused[key] = str(reason)
        self.dense = self.passes[dense]
        self.note_memory(before)
        self.enter_memory(graph, leaves, arguments, twins)
        watch(self, graph, arguments, leaves)
        return 0

    cdef Pass recorded(self, tuple key, Graph graph, list outputs, list arguments, list before):
        cdef Pass made = Pass()
        cdef GpuPass program = GpuPass()
        cdef Py_ssize_t k = 0
        strides, unwanted, casting = key
        if casting is not None:
            raise Unfit("its backward pass runs within a block of autocast, on a GPU")
        given = [None if step is None else gpu_placeholder(t, step, 1) for t, step in zip(outputs, strides)]
        work = captured_work.CapturedWork(self.device, self.work.joins, self.work)
        program.work, program.memory, program.device, program.modes = work, self.memory_of_graph, self.device, self.modes
        program.settings, program.default = self.settings, self.default
        with work.capturing([(<Tensor>t).array for t in are_there(given)]):
            taken = iter([wrap(a) for a in work.taken])
            grads = tuple([None if t is None else next(taken) for t in given])
            found = inner_gradients(outputs, grads, self.edges, arguments, unwanted, True, False)
            graph_capture.settle()
        if work.draws:
            raise Unfit("its backward pass draws random numbers")
        program.enter(are_there(grads), are_there(found), before)
        made.program, made.arrives = program, []
        for grad in found:
            made.arrives.append(-1 if grad is None else k)
            k += grad is not None
        return made

    cdef int enter_memory(self, Graph graph, list leaves, list arguments, list twins) except -1:
        """Find out what passes read of the memory of the step's graph; raises Unfit."""
        cdef Pass each
        cdef Memory memory = self.memory_of_graph
        cdef dict read = {}, owners = {}
        self.places = []
        for each in self.passes.values():
            read.update((<GpuPass>each.program).work.inherited)
        for i, a in enumerate(self.work.taken):
            owners.setdefault(id(a.data.mem), []).append((GIVEN, i, a))
        for i in self.outputs:
            if type(twins[i]) is Twin:
                a = (<Twin>twins[i]).array
                owners.setdefault(id(a.data.mem), []).append((RESULT, i, a))
        kept = {id(a.data.mem) for a in arrays_kept_by(graph, leaves) if type(a) is gpu_class()}
        for key, mem in read.items():
            if key not in kept and key not in owners:
                raise Unfit("its backward pass reads memory that no saved value is on")
            for kind, i, a in owners.get(key, ()):
                self.places.append((kind, i))
                memory.sources.append(a)
            if key not in owners or owners[key][0][0] is RESULT:
                memory.inner.append(captured_work.bytes_of(mem))
        for (_, unwanted, _), each in self.passes.items():
            if unwanted:            # values that only the gradients nobody wants need may change
                self.enter_reads(each)
        return 0

    cdef int enter_reads(self, Pass each) except -1:
        """Note which of the values that are watched a pass reads."""
        cdef GpuPass program = each.program
        inherited = program.work.inherited
        each.reads = {place for place, a in zip(self.places, self.memory_of_graph.sources)
                      if id(a.data.mem) in inherited}
        each.reads.update(places_of(program.externals, self.outside))
        return 0

    # -- comparing --

    cdef str compare(self, list leaves, list twins, list arguments):
        """How the passes differ from those of a call as it is written, or None. `leaves` are the tensors of its value,
        `twins` copies of the arrays of the results that the step's graph has just left."""
        cdef Pass each
        cdef str text
        cdef Values values
        cdef list outputs = [leaves[i] for i in self.outputs]
        for t in outputs:
            if grad_fn_of(<Tensor>t) is None:
                return "a result has no history"
        values = Values([(<Tensor>arguments[i]).array if kind is GIVEN else twins[i] for kind, i in self.places])
        self.memory_of_graph.tenant = weakref.ref(values)
        self.memory_of_graph.vacate()
        self.work.poison()
        for key, each in list(self.passes.items()):
            strides, unwanted, _ = key
            grads = tuple([None if step is None else gpu_placeholder(t, step, 2) for t, step in zip(outputs, strides)])
            self.memory_of_graph.admit(values)
            text = (<GpuPass>each.program).difference(are_there(grads), lambda: inner_gradients(
                outputs, grads, self.edges, arguments, unwanted, True, False))
            if text is not None and each is self.dense:
                return f"in the backward pass, {text}"
            if text is not None:
                self.refused[key] = text
                del self.passes[key]
        return None


cdef Tensor gpu_placeholder(Tensor output, object strides, double first):
    """A gradient of an output, on its GPU, in a given layout, with values of our own."""
    cdef object array = captured_work.on_gpu(placeholder(output, strides, first).array)
    if not captured_work.has_room(array):
        raise Unfit("a gradient is a small part of the memory that it spans")
    return wrap(array)
