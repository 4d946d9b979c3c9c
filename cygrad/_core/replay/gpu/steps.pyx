"""Captured steps on a GPU: a graph that is launched again with the arguments of each call.

Note [Captured steps on GPUs]
-----------------------------
On a GPU, the driver captures what a step launches (Note [Captures] in `_kernels/gpu/runtime/graph_capture.py`). While it
captures, nothing runs. So the Python code of the step runs once more, without an effect, to be captured: its arguments
have the memory of the graph meanwhile, and all that it changes of tensors is put back afterwards. That is permitted since
two calls have shown before that the step changes nothing else.

    capture   runs the second call as it is written, and sees whether it leaves anything behind but results, gradients and
              new versions, all of it on one GPU
    check     has the third call captured, launches the graph on copies, runs the call as it is written, and compares bits
    replay    tests what `Program` tests (Note [Captured steps]), launches the graph, and leaves what eager leaves

What a graph reads is fixed: numbers, and tensors in main memory, would be those of the captured call. So no step is
captured that can reach a tensor in main memory with more than one element. Those with one element are out of reach while
the graph is captured, but for optimizers, whose rates and counts of steps each replay reads anew (Note [Host numbers] in
`_kernels/gpu/optim/host_numbers.py`).
"""

cimport cython

from cygrad._core.engine.run cimport passes_begun
from cygrad._core.graph.inplace cimport set_grad
from cygrad._core.graph.tensor cimport REQUIRES_GRAD, Tensor, VersionCounter, grad_fn_of
from cygrad._core.replay.gpu.changes cimport Former, changes_of, check_leftovers, formers
from cygrad._core.replay.gpu.later_passes cimport GpuPast, Memory
from cygrad._core.replay.gpu.twins cimport GpuArgument, Rooms, Twin, is_here
from cygrad._core.replay.graphs cimport Graph
from cygrad._core.replay.parts cimport External, external_of, is_plain_now, matters
from cygrad._core.runtime.thread_state cimport thread_state
from cygrad._core.types.dtypes cimport default_dtype

from bisect import bisect_right

from numpy import ndarray

from cygrad._core.engine.streams import place_of
from cygrad._core.registry.several_gpus import attend_captures
from cygrad._core.replay.gpu.twins import Line
from cygrad._core.replay.histories import graph_of, leaves_of
from cygrad._core.replay.numbers import follow_on_gpu
from cygrad._core.replay.parts import Refusal, Unfit, is_plain_state
from cygrad._core.replay.program import MISS
from cygrad._core.replay.results import check_graph
from cygrad._core.replay.situation import resting_collector
from cygrad._core.runtime.thread_state import set_stream
from cygrad._kernels.device.cupy_library import cupy, current_device, gpu_class, on_device
from cygrad._kernels.device.gpu_forms import extent
from cygrad._library import later

graph_capture = later("cygrad._kernels.gpu.runtime.graph_capture")      # both are needed only on GPUs
captured_work = later("cygrad._kernels.gpu.launch.captured_work")
cudnn = later("cygrad._kernels.gpu.libraries.cudnn")
host_numbers = later("cygrad._kernels.gpu.optim.host_numbers")

cdef object _miss = MISS

IN_MEMORY = "a tensor of several elements in main memory can be reached, whose values a graph cannot read anew"


def are_on_gpu(tensors):
    """Whether any of these tensors is in the memory of a GPU."""
    kind = gpu_class()
    if kind is None:
        return False
    for t in tensors:
        if type((<Tensor?>t).array) is kind:
            return True
    return False


# ------------------------------------------------------------------------------------------------ capturing

def capture(call, list arguments not None, flatten, *, bint sees_grads=True, tuple reachable=(), bint joins=True,
            positions=int, tuple layouts=()):
    """Run `call()` once, and return (its value, a `GpuProgram` that `check` completes, or a Refusal).

    `arguments` are the tensors among the arguments of the step, `reachable` the other tensors that it can reach,
    `flatten` lists the tensors of its value. If not `sees_grads`, the step looks at no `grad` but by means of a backward
    pass. `joins`: launch elementwise functions together. `positions()` tells where random numbers in main memory
    stand. `layouts` are those of the gradients of a later backward pass, besides dense ones.
    """
    cdef unsigned long long passes = passes_begun()
    reason = unfit_tensors(arguments, reachable) or is_plain_state()
    if reason is None and graph_capture.is_capturing():
        reason = "the stream is being captured already"
    if reason:
        return call(), Refusal(reason, None, None)
    before, standing = formers(), positions()
    host = host_numbers.HostWork(True)
    former = follow_on_gpu(host)
    try:
        value = call()
    finally:
        follow_on_gpu(former)
    if positions() != standing:
        return value, Refusal("random numbers are drawn in main memory", None, None)
    cdef GpuProgram program = GpuProgram.__new__(GpuProgram)
    program.joins, program.layouts = joins, layouts
    program.has_passed = passes_begun() != passes
    program.released = host.places
    program.out_of_reach = [t for t in reachable if type((<Tensor>t).array) is ndarray]
    program.device, program.sees_grads = current_device(), sees_grads or program.has_passed
    try:
        with resting_collector():
            for t in arguments:
                if (<Tensor>t).array is not (<Former>before[id(t)]).array:
                    raise Unfit("an argument gets other memory")
            changed = changes_of(before, arguments, program.device, None)
            leaves = flatten(value)
            graph = program.graph_of(leaves, arguments, before, changed[0])
            check_leftovers(before, leaves, changed[0], graph)
            if program.has_passed:
                check_histories(arguments)
    except Unfit as unfit:
        return value, Refusal(str(unfit), None, None)
    return value, program


cdef object unfit_tensors(list arguments, tuple reachable):
    """Why a step with these tensors cannot be captured, or None."""
    cdef Tensor t
    cdef int device = current_device()
    for t in arguments:
        if not is_here(t.array, device):
            return "an argument is not in the memory of the current GPU"
        if t.attributes:
            return "an argument has attributes, which may be others in the next call"
        if t.tangents is not None:
            return "an argument has a tangent"
        if not captured_work.has_room(t.array):
            return "an argument is a small part of the memory that it spans, or runs backwards"
    for t in reachable:
        if type(t.array) is ndarray and t.array.size > 1:
            return IN_MEMORY
        if type(t.array) is not ndarray and not is_here(t.array, device):
            return "a tensor outside of the step is not in the memory of the current GPU"
    return None


cdef int check_histories(list arguments) except -1:
    for t in arguments:
        if (<Tensor>t).grad_fn_ is not None:
            raise Unfit("an argument has a history, which a backward pass of the step may reach")
    return 0


cdef list outputs_of(list leaves, dict before):
    """The numbers of the new results with a history."""
    return [i for i, t in enumerate(leaves) if id(t) not in before and grad_fn_of(<Tensor>t) is not None]


# ------------------------------------------------------------------------------------------------- programs

@cython.final
cdef class GpuProgram:
    """A captured step on a GPU; see Note [Captured steps on GPUs]. It has the methods of `Program`."""

    cdef int device
    cdef bint sees_grads, joins, has_passed, is_running
    cdef readonly GpuPast history       # None if results have none, or one that has been used up
    cdef object host                    # a `HostWork`: numbers that are read anew; None if there are none
    cdef list released                  # (dictionary, key) of those that were followed in the second call
    cdef list out_of_reach              # tensors in main memory that the captured call must not read
    cdef tuple layouts                  # of gradients that may come, besides dense ones
    cdef object work                    # a `CapturedWork`; None before `check`
    cdef list guards                    # a GpuArgument for each argument
    cdef list outside                   # of External
    cdef list results                   # a Twin, the number of an argument or of an earlier result, or a Tensor outside
    cdef list grads                     # (External, Twin, or None to clear it)
    cdef list counts                    # (VersionCounter, by how much, op name, code, instruction offset)
    cdef list lows, highs               # of the memory that it uses
    cdef unsigned int modes
    cdef object default                 # dtype
    cdef object settings                # of cuDNN and matrix products
    cdef str missed

    is_pass = False

    @property
    def externals(self):
        """The tensors outside of the arguments that the step reads or changes."""
        return [] if self.work is None else [(<External>e).tensor for e in self.outside]

    @property
    def arguments(self):
        """The number of arguments."""
        return len(self.guards)

    @property
    def entries(self):
        """What a replay launches."""
        return [Line("graph", None), *[Line(*line) for line in self.work.lines]]

    @property
    def memory(self):
        """Bytes that the program holds."""
        return self.work.size + sum([p.size for p in (() if self.history is None else self.history.programs)])

    @property
    def effects(self):
        """What a replay changes besides bytes, as texts."""
        texts = [f"raises a version counter by {by} ({name})" for _, by, name, _, _ in self.counts]
        for e, made in self.grads:
            shape = tuple((<External>e).array.shape)
            texts.append(f"{'clears' if made is None else 'sets'} the grad of a tensor of shape {shape}")
        if self.history is not None:
            texts += [f"makes a node, which replays a backward pass of {len(p.entries)} entries"
                      for p in self.history.programs]
        return texts

    @property
    def live(self):
        """(dictionary, key) of each value that a replay reads anew."""
        return self.released

    def why_missed(self):
        """The guard that failed in the last replay, or None."""
        return self.missed

    # -- replaying --

    def replay(self, list arguments not None, tuple call=None):
        """Do the step, and return its tensors; or MISS, with nothing done."""
        if self.is_running or self.history is not None and self.history.memory_of_graph.is_busy:
            self.missed = "another thread replays this program"
            return _miss
        self.be_busy(True)
        try:
            self.missed = self.misfit(arguments)
            if self.missed is not None:
                return _miss
            with on_device(self.device):
                return self.run(arguments, call)
        finally:
            self.be_busy(False)

    cdef int be_busy(self, bint now) except -1:
        self.is_running = now
        if self.history is not None:
            self.history.memory_of_graph.is_busy = now
        return 0

    cdef str misfit(self, list arguments):
        """Why a call does not fit, or None."""
        cdef str reason
        cdef const char* found
        cdef Py_ssize_t i
        if current_device() != self.device and matters(b"another GPU is current"):
            return "another GPU is current"
        if not is_plain_now(self.modes, False) and matters(b"a mode of the thread differs"):
            return "a mode of the thread differs"
        if default_dtype() is not self.default and matters(b"the default dtype differs"):
            return "the default dtype differs"
        if cudnn.all_settings() != self.settings and matters(b"a setting of cuDNN or of matrix products differs"):
            return "a setting of cuDNN or of matrix products differs"
        if len(arguments) != len(self.guards):
            return "there are more arguments, or fewer"
        if graph_capture.is_capturing() and matters(b"the stream is being captured"):
            return "the stream is being captured"
        for e in self.outside:
            found = (<External>e).misfit()
            if found != NULL and matters(found):
                return found.decode()
        for i in range(len(arguments)):
            reason = (<GpuArgument>self.guards[i]).misfit(arguments[i], self.device)
            if reason is not None and matters(reason.encode()):
                return reason
            if self.is_outside((<Tensor>arguments[i]).array) and matters(
                    b"an argument shares memory with a tensor that the step uses"):
                return "an argument shares memory with a tensor that the step uses"
        if self.host is not None and not self.host.refresh() and matters(b"a number that decides what is done was changed"):
            return f"a number that decides what is done was changed: {self.host.missed}"
        return None

    cdef bint is_outside(self, object array) except -1:
        """Whether an array shares memory with a tensor that the step uses."""
        low, high = extent(array)
        place = bisect_right(self.lows, low) - 1
        return place >= 0 and low < self.highs[place] or place + 1 < len(self.lows) and self.lows[place + 1] < high

    cdef list run(self, list arguments, tuple call):
        cdef list found = [], grads = [], reused = []
        cdef dict memories = {}
        cdef tuple states = None
        cdef VersionCounter counter
        cdef External e
        cdef Tensor t
        for e, made in self.grads:          # all memory first: there may be too little
            t = e.tensor.grad_
            if made is not None and (t is None or not (<Twin>made).fits(t)):
                t = (<Twin>made).fresh(memories)
            elif made is not None:
                reused.append((t, made))
            grads.append(None if made is None else t)
        for r in self.results:
            found.append((<Twin>r).fresh(memories) if type(r) is Twin else r if isinstance(r, Tensor) else
                         arguments[r] if r >= 0 else found[-1 - r])
        if self.history is not None:
            states = self.history.state_before()
            self.history.memory_of_graph.vacate()
        self.work.launch([(<Tensor>t).array for t in arguments])
        if self.host is not None:
            self.host.commit()
        for room, memory in memories.items():
            if type(room) is not Twin:
                room.fill(memory)
        for t, made in reused:
            captured_work.copy(t.array, (<Twin>made).array)
            if t.counter is not None:
                t.counter.version = (<Twin>made).version
        for (e, _), t in zip(self.grads, grads):
            if e.tensor.grad_ is not t:
                set_grad(e.tensor, t)
        for counter, by, op_name, code, lasti in self.counts:
            counter.version += <long long>by
            counter.op_name, counter.code, counter.lasti = op_name, code, lasti
        return found if self.history is None else self.history.attached(found, arguments, call, states)

    # -- capturing --

    cdef int record(self, call, list arguments, flatten) except -1:
        """Have `call()` captured, and put back what it changes of tensors. Raises Unfit."""
        cdef Former seen
        cdef Tensor t
        before = formers()
        work = captured_work.CapturedWork(self.device, self.joins)
        host = host_numbers.HostWork()
        followed_before = follow_on_gpu(host)
        self.history = self.host = None
        given = [(<Tensor>t).array for t in arguments]
        failure = None
        self.modes, self.default = thread_state().modes, default_dtype()
        self.settings = cudnn.all_settings()
        former = set_stream(None)
        try:
            with resting_collector():
                with work.capturing(given):
                    set_stream(place_of(cupy().cuda.get_current_stream(), self.device))
                    attend_captures(graph_capture.keep)
                    for t, array in zip(arguments, work.taken):
                        t.array = array
                    for t in self.out_of_reach:
                        t.array = host_numbers.Absent(t.array)
                    value = call()
                    graph_capture.settle()
                    for t in self.out_of_reach:
                        if type(t.array) is host_numbers.Absent:
                            t.array = t.array.held
                self.take_host(work, host)
                leaves = flatten(value)
                graph = self.enter(work, before, arguments, leaves)
                if graph is not None:
                    self.enter_history(work, graph, before, arguments, leaves, flatten)
        except Unfit:
            raise
        except Exception as error:
            failure = f"it cannot be captured as a graph: {(str(error) or type(error).__name__).splitlines()[0]}"
        finally:
            follow_on_gpu(followed_before)
            set_stream(former)
            attend_captures(graph_capture.keep if graph_capture.captures else None)
            for seen in before.values():
                seen.put_back()
        if failure is not None:
            raise Unfit(failure)
        self.work, self.out_of_reach = work, []
        return 0

    cdef int take_host(self, work, host) except -1:
        """Take over what the captured call has computed in main memory; raises Unfit."""
        missing = {(id(owner), key) for owner, key in self.released}
        missing.difference_update([(id(owner), key) for owner, key in host.places])
        if missing:
            raise Unfit("a number of an optimizer is read in another way than in the call before")
        if host.actions:
            self.host = work.host = host
        return 0

    cdef Graph graph_of(self, list leaves, list arguments, dict before, list grads):
        """The history of results whose backward pass comes later, or None; raises Unfit."""
        cdef Tensor t
        for t in leaves:
            if id(t) not in before and t.grad_fn_ is None and t.flags & REQUIRES_GRAD:
                raise Unfit("a new leaf is returned")
        outputs = outputs_of(leaves, before)
        if self.has_passed:
            for i in outputs:
                check_graph((<Tensor>leaves[i]).grad_fn_, {id(each) for each in arguments})
            return None
        if not outputs:
            return None
        if grads:
            raise Unfit("it changes gradients, and returns a result with a history")
        return graph_of([grad_fn_of(<Tensor>leaves[i]) for i in outputs], arguments, before)

    cdef int enter_history(self, work, Graph graph, dict before, list arguments, list leaves, flatten) except -1:
        """Have the backward pass of results captured; raises Unfit."""
        cdef GpuPast past = GpuPast()
        past.begin(graph, leaves, outputs_of(leaves, before), flatten, self.outside, self.modes)
        past.memory_of_graph, past.work, past.device = Memory(work), work, self.device
        past.settings, past.default, past.counts = self.settings, self.default, self.counts
        for r in self.results:
            if type(r) is Twin:
                (<Twin>r).grad_fn, (<Twin>r).output_nr = None, 0
        existing = [((<Former>seen).tensor, (<Former>seen).array) for seen in before.values()]
        past.capture_all(graph, leaves, arguments, existing, self.results, self.layouts)
        self.history = past
        return 0

    cdef Graph enter(self, work, dict before, list arguments, list leaves):
        """Take over what the captured call has done to tensors, and return the history of its results, or None; raises
        Unfit."""
        cdef Former seen
        cdef Tensor t
        cdef dict at = {}, outside = {}, places = {id(t): i for i, t in enumerate(arguments)}
        cdef Rooms rooms = Rooms(work, self.device)
        grads, counts = changes_of(before, arguments, self.device,
                                   set() if self.host is None else set(map(id, self.host.arrays)))
        graph = self.graph_of(leaves, arguments, before, grads)
        check_leftovers(before, leaves, grads, graph)
        ends = set() if graph is None else {id(t) for t in leaves_of(graph)}
        self.guards, self.outside, self.results, self.grads = [], [], [], []
        self.counts = list(counts.values())
        for t in arguments:
            self.guards.append(GpuArgument(t, self.sees_grads))
        used, changed = work.used, {id((<Former>seen).tensor) for seen, _ in grads}
        for seen in before.values():
            t = seen.tensor
            if id(t) in places:
                continue
            is_used = type(seen.array) is gpu_class() and id(seen.array.data.mem) in used
            if is_used or id(t) in changed or id(t) in ends or (t.counter is not None and id(t.counter) in counts):
                outside[id(t)] = external_of(t, seen.grad, self.sees_grads, False)
        for t in arguments:
            if t.grad_ is not None and id(t.grad_) in outside:
                raise Unfit("the grad of an argument is used, and may be another in the next call")
        for seen, grad in grads:
            if seen.grad is not None and id((<Tensor>seen.grad).array.data.mem) in used:
                raise Unfit("a gradient is used, and then replaced")
            if grad is not None and (<Tensor>grad).grad_fn_ is not None:
                raise Unfit("a new gradient has a history")
            self.grads.append((outside[id(seen.tensor)], None if grad is None else rooms.alone_twin(grad)))
        self.outside = list(outside.values())
        new = {id(grad) for _, grad in grads}
        for i, t in enumerate(leaves):
            if id(t) not in before and t.view is not None and id(t.view.base) in at:
                raise Unfit("a tensor and a view of it are returned")
            if id(t) in at:
                self.results.append(-1 - <Py_ssize_t>at[id(t)])
            elif id(t) in places:
                self.results.append(places[id(t)])
            elif id(t) in before:
                if id(t) not in outside:
                    raise Unfit("a tensor that the step does not use is returned")
                self.results.append(t)
            elif id(t) in new:
                raise Unfit("a new gradient is returned")
            else:
                self.results.append(rooms.twin(t))
            at[id(t)] = i
        spans = sorted({(mem.ptr, mem.ptr + mem.size) for mem in used.values()})
        self.lows, self.highs = [low for low, _ in spans], [high for _, high in spans]
        return graph

    # -- comparing --

    def check(self, call, list arguments not None, flatten):
        """Run the program on copies, then `call()`; return the value of that, and how they differ (a text, a Refusal if the
        call cannot be captured, or None)."""
        cdef str reason
        if current_device() != self.device:
            return call(), "another GPU is current"
        if self.work is None:
            try:
                self.record(call, arguments, flatten)
            except Unfit as unfit:
                return call(), Refusal(str(unfit), None, None)
        reason = self.misfit(arguments)
        if reason is not None:
            return call(), f"does not fit: {reason}"
        with on_device(self.device):
            try:
                memory = self.work.snapshot()
            except MemoryError:
                return call(), Refusal("there is too little memory to compare two calls", None, None)
            if self.history is not None:
                self.history.memory_of_graph.vacate()
            positions = self.work.positions()
            self.work.poison()
            given = [(<Tensor>t).array for t in arguments]
            self.work.launch(given)
            is_kept = all([captured_work.are_equal(own, a) for own, a in zip(self.work.taken, given)])
            twins = [captured_work.copied((<Twin>r).array) if type(r) is Twin else None for r in self.results]
            grads = [None if made is None else captured_work.copied((<Twin>made).array) for _, made in self.grads]
            drawn = self.work.positions()
            if self.history is not None:
                self.history.changed.update(self.work.changes(memory))
            self.work.exchange(memory)
            self.work.set_back(positions)
            value = call()
            if not is_kept:
                return value, Refusal("an argument is changed in place", None, None)
            leaves = flatten(value)
            text = self.difference(leaves, arguments, twins, grads, memory, drawn)
            if text is None and self.history is not None:
                text = self.history.compare(leaves, twins, arguments)
            return value, text

    cdef str difference(self, list leaves, list arguments, list twins, list grads, dict memory, list drawn):
        """How what a run on copies has left differs from what the eager step has left, or None."""
        cdef Py_ssize_t i
        cdef Tensor t
        if len(leaves) != len(self.results):
            return "it returns another number of tensors"
        for i in range(len(leaves)):
            t, r = leaves[i], self.results[i]
            if type(r) is Twin:
                if t.flags != (<Twin>r).flags or type(t) is not Tensor or not is_here(t.array, self.device) or (
                        not captured_work.are_equal(t.array, twins[i])):
                    return f"result {i} differs"
            elif t is not (r if isinstance(r, Tensor) else arguments[r] if r >= 0 else leaves[-1 - r]):
                return f"result {i} is another tensor"
        for (e, _), twin in zip(self.grads, grads):
            t = (<External>e).tensor.grad_
            if (t is None) != (twin is None) or t is not None and not (
                    is_here(t.array, self.device) and captured_work.are_equal(t.array, twin)):
                return f"the grad of a tensor of shape {tuple((<External>e).array.shape)} differs"
        if not self.work.is_as(memory):
            return "a tensor outside of the step differs"
        if self.host is not None and not self.host.is_as_done():
            return "it leaves other counts of steps"
        if self.work.positions() != drawn:
            return "it draws other random numbers"
        return None
