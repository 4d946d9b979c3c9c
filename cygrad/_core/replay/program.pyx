"""Captured steps: which tensors they take, what they return and change, and how they are replayed.

Note [Captured steps]
---------------------
The tape (`_kernels/tape/`) holds a step as loops on memory. A `Program` adds what the step means for tensors:

    arguments   each must be like the one of the captured call in all that loops and rules depend on; its memory is a slot
    externals   tensors that existed before: parameters, buffers, states of optimizers. Each must still have the same array,
                flags and hooks. How `grad` was found decides, too: None, the very tensor that was there (the step may add
                to it), or any (the step replaces it without reading it)
    results     fresh tensors on fresh memory each time, views of such ones, or an argument or external itself. A
                result whose graph has been used up by the step's own backward pass gets that graph's node, as its eager twin
                has one; results whose backward pass comes later get one new node together (histories.pyx)
    lives       numbers that optimizers keep in dictionaries are read again before each run, random numbers are drawn from
                the stream that an eager step would draw from (numbers.pyx)
    effects     version counters go up, with op and line of the captured step; `grad` fields are cleared or set. A gradient's
                memory is used again only if nothing but the parameter refers to the tensor and its array

All guards are tested before anything is written, and a call of a kernel that fails leaves nothing behind: `replay` either
does the whole step or returns MISS. What the capture saw
and cannot repeat (tensors that outlive the step elsewhere, changed flags, graphs that still hold values) makes it `Unfit`.
`check` runs a program on copies and compares with the eager step, bit for bit.
"""

import functools

cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_Free
from libc.stdint cimport uintptr_t
from libc.string cimport memcmp, memcpy

import numpy as np

from cygrad._core.graph.inplace cimport set_grad
from cygrad._core.graph.tensor cimport Tensor, VersionCounter, counter_of, wrap
from cygrad._core.replay.numbers cimport Live, Numbers
from cygrad._core.replay.parts cimport (
    A_PART, AN_ARGUMENT, AN_EXTERNAL, MADE, REPLACED, Argument, External, Result, is_as_before, matters)
from cygrad._core.types.dtypes cimport default_dtype
from cygrad._kernels.cpu.base.arrays cimport empty_strided
from cygrad._kernels.tape.tape cimport Entry, Tape

from warnings import warn_explicit

from cygrad._core.errors.sites import Heard
from cygrad._core.replay.casts import added, known, put, within
from cygrad._core.replay.parts import site_of

cnp.import_array()


class _Miss:
    """What `replay` returns if a guard fails."""

    def __repr__(self):
        return "MISS"

    def __bool__(self):
        return False


MISS = _Miss()
cdef object _no_elements = np.empty(0)
cdef object _miss = MISS


NOT_PUT_BACK = "random numbers are not put back"


cdef int put_numbers_back(list lives, list states) except -1:
    """Let what runs have changed be as it was when it was `saved`."""
    if matters(b"random numbers are not put back"):
        for each, state in zip(lives, states):
            (<Live>each).restore(state)
    return 0


def clear_grads(list externals not None):
    """Drop the `grad` of tensors."""
    for each in externals:
        set_grad((<External>each).tensor, None)


cdef int count_changes(VersionCounter counter, tuple change) except -1:
    """Raise a counter as the captured step did: `change` is (whose it is, by how much, op name, code, offset)."""
    counter.version += <long long>change[1]
    counter.op_name, counter.code, counter.lasti = change[2], change[3], change[4]
    return 0


cdef class History:

    cdef list attached(self, list found, list arguments, tuple call, tuple states):
        """The results of a run, with their history. `states`: where random numbers stood before the run, or None, and copies
        of the ranges that it has changed, or None."""
        return found

    cdef str difference(self, list leaves, list found, list arguments):
        """How the backward pass of an eager step's results differs from what is replayed, or None. `found` are the tensors
        of a run of the program."""
        return None


@cython.final
cdef class Program:
    """A captured step; `replay` does it again."""

    @property
    def externals(self):
        """The tensors outside of the arguments that the step reads or changes."""
        return [(<External>e).tensor for e in self.outside]

    @property
    def arguments(self):
        """The number of arguments."""
        return len(self.guards)

    @property
    def entries(self):
        """The loops that a replay runs."""
        return [Line(entry) for entry in self.launches.entries]

    @property
    def memory(self):
        """Bytes that the program holds."""
        return self.launches.memory

    @property
    def effects(self):
        """What a replay changes besides bytes, as texts."""
        texts = [f"raises a version counter by {by} ({name})" for _, by, name, _, _ in (*self.counts, *self.given_counts)]
        for e, made in self.grads:
            shape = tuple((<External>e).array.shape)
            texts.append(f"{'clears' if made is None else 'sets'} the grad of a tensor of shape {shape}")
        texts += [f"reads anew: {n}" for n in dict.fromkeys(map(str, self.lives))]
        if self.history is not None:
            texts += [f"makes a node, which replays a backward pass of {len(p.entries)} entries"
                      for p in self.history.programs]
        return texts

    @property
    def live(self):
        """(dictionary, key) of each value that a replay reads anew."""
        return [((<Numbers>n).owner, key) for n in self.lives if isinstance(n, Numbers) for key in (<Numbers>n).keys]

    def why_missed(self):
        """The guard that failed in the last replay, or None."""
        return self.missed

    def replay(self, list arguments not None, tuple call=None):
        """Do the step, and return its tensors; or MISS, with nothing done.

        `call` are the arguments of the function, positional and by keyword, which a history keeps.
        """
        cdef const char* reason
        if self.is_running:
            self.missed = "another thread replays this program"
            return _miss
        self.is_running = True
        try:
            reason = self.misfit(arguments)
            if reason != NULL:
                self.missed = reason.decode()
                return _miss
            found = self.run(arguments, call)
            return _miss if found is None else found
        finally:
            self.is_running = False

    cdef const char* misfit(self, list arguments) noexcept:
        """Why these arguments, or the state of things, do not fit; NULL if they do. Tells the slots of the arguments."""
        cdef Py_ssize_t i, k, n = len(self.guards)
        cdef const char* reason
        cdef Argument a, b
        cdef char* base
        cdef char* other
        if not self.is_plain() and matters(b"grad mode or another mode differs"):
            return "grad mode or another mode differs"
        if default_dtype() is not self.default and matters(b"the default dtype differs"):
            return "the default dtype differs"
        if len(arguments) != n:
            return "there are more arguments, or fewer"
        for i in range(len(self.outside)):
            reason = (<External>self.outside[i]).misfit()
            if reason != NULL and matters(reason):
                return reason
        for i in range(n):
            if self.guards[i] is None:
                continue
            a = <Argument>self.guards[i]
            reason = a.misfit(arguments[i])
            if reason != NULL and matters(reason):
                return reason
            if self.is_pass:
                continue
            if self.given_changes[i] and not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>(<Tensor>arguments[i]).array) and matters(
                    b"an argument that the step changes is read-only"):
                return "an argument that the step changes is read-only"
            base = data_of(arguments[i])
            for k in range(i):
                b = <Argument>self.guards[k]
                other = data_of(arguments[k])
                if (base + a.low < other + b.high and other + b.low < base + a.high
                        and matters(b"two arguments share memory")):
                    return "two arguments share memory"
            for k in range(self.n_ranges):
                if (base + a.low < <char*>self.highs[k] and <char*>self.lows[k] < base + a.high
                        and matters(b"an argument shares memory with a tensor that the step uses")):
                    return "an argument shares memory with a tensor that the step uses"
        for i in range(n):
            if self.guards[i] is not None:
                self.launches.set_base(<int>i, data_of(arguments[i]) + (<Argument>self.guards[i]).low)
        for i in range(len(self.lives)):
            if not (<Live>self.lives[i]).refresh() and matters(
                    b"a number that decides what is done was changed, or what random numbers are drawn from"):
                return "a number that decides what is done was changed, or what random numbers are drawn from"
        if not self.launches.may_run() and matters(b"a value is out of bounds"):
            return "a value is out of bounds"
        return NULL

    cdef bint is_plain(self) noexcept:
        """Whether the modes of the thread are those of the captured step."""
        return is_as_before(self.modes, self.is_pass, self.casting, self.values)

    cdef list run(self, list arguments, tuple call):
        """Everything that follows the guards; None if a call fails (Note [Noted calls] in calls.pyx): nothing is done."""
        cdef Result r
        cdef External e
        cdef list found = [], shared = self.room_for_memory(), grads = [], states = None, former = None
        cdef tuple change
        cdef Py_ssize_t i
        if self.warned and not self.warns():
            return None
        for i in range(len(self.grads)):        # all memory first: there may be too little
            change = self.grads[i]
            grads.append(None if change[1] is None else self.gradient((<External>change[0]).tensor, change[1], shared))
        for r in self.results:
            if r.kind == MADE:
                found.append(self.made_tensor(r, shared))
            elif r.kind == AN_ARGUMENT:
                found.append(arguments[r.index])
            elif r.kind == AN_EXTERNAL:
                found.append((<External>self.outside[r.index]).tensor)
            elif r.kind == A_PART:
                found.append(self.part_of(r, arguments[r.index]))
            else:
                found.append(found[r.index])
        if self.lives and (self.launches.may_fail() or self.history is not None):
            states = [(<Live>each).saved() for each in self.lives]
        if self.history is not None and self.history.keeps_former:
            former = self.changed()
        failure = "was interrupted"
        try:
            failure = self.launches.run(self.pauses)
        except MemoryError:
            if not self.launches.may_fail():    # nothing is restored, and some of it may have been changed
                self.raise_versions(arguments)
            raise
        finally:
            if failure is not None and states is not None:
                put_numbers_back(self.lives, states)
        if failure is not None:
            self.missed = self.located(failure)
            return None
        self.fill_handed(shared)
        for i in range(len(self.lives)):
            (<Live>self.lives[i]).done()
        self.raise_versions(arguments)
        for i in range(len(self.grads)):
            e = <External>(<tuple>self.grads[i])[0]
            if e.tensor.grad_ is not grads[i]:
                set_grad(e.tensor, grads[i])
        if self.history is not None:
            self.history.attached(found, arguments, call, (states, former))
        if self.casts:
            self.take_casts(found)
        return found

    cdef bint warns(self) except -1:
        """Issue the warnings of the step; return False if filters make an error of one, which the step must raise."""
        try:
            for each in self.warned:
                warn_explicit(*each)
        except Warning:
            self.missed = "a warning is an error"
            return False
        return True

    cdef int take_casts(self, list found) except -1:
        """Take the casts of parameters out of the list of results, and put them into the cache."""
        cdef Py_ssize_t n = self.n_shown + len(self.casts)
        put(self.casts, found[self.n_shown:n])
        del found[self.n_shown:n]
        return 0

    cdef int raise_versions(self, list arguments) except -1:
        cdef tuple change
        for change in self.counts:
            count_changes(<VersionCounter>change[0], change)
        for change in self.given_counts:
            count_changes(counter_of(<Tensor>arguments[<Py_ssize_t>change[0]]), change)
        return 0

    cdef Tensor part_of(self, Result r, Tensor argument):
        """A tensor on the memory of an argument."""
        cdef Tensor t = wrap(r.array(<cnp.ndarray>argument.array, r.offset))
        t.flags = r.flags
        return t

    cdef int choose_handed(self) except -1:
        """Find the tensors that get their arrays during a run: those that calls return, and large gradients."""
        cdef Result r
        self.handed = [False] * len(self.sizes)
        for r in [each for each in self.results if (<Result>each).kind == MADE] + [
                each for _, each in self.grads if each is not None]:
            if r.index >= 0 and self.sizes[r.index] == 0:
                self.handed[r.index] = self.launches.hands_over(
                    self.first_made + <int>r.index, r.typenum, r.ndim, r.dims, r.steps)
        for _, r in self.grads:
            if r is not None and r.index >= 0 and not self.handed[r.index]:
                self.handed[r.index] = self.launches.takes_late(self.first_made + <int>r.index, r.fresh_array)
        return 0

    cdef int choose_pauses(self, Tape tape) except -1:
        """Find where a run gives up the former gradients: behind the calls that came before the step cleared them. If one of
        these fails, the step as it is written finds what it would have found."""
        cdef External e
        cdef dict found = {}
        for e in [each for each, _ in self.grads if (<External>each).before == REPLACED]:
            if id(e.tensor) in tape.replaced:
                unit = self.launches.after_calls(tape, tape.replaced[id(e.tensor)][1])
                found.setdefault(unit, []).append(e)
        self.pauses = [(unit, functools.partial(clear_grads, found[unit])) for unit in sorted(found)]
        return 0

    cdef int fill_handed(self, list shared) except -1:
        """Give such tensors their arrays."""
        cdef Py_ssize_t i
        for i in range(len(self.sizes)):
            if type(shared[i]) is Tensor:
                (<Tensor>shared[i]).array = self.launches.taken(self.first_made + <int>i)
        return 0

    cdef list room_for_memory(self):
        """`shared` of `made_tensor`, for a new run."""
        return [None] * (len(self.sizes) + len(self.bases))

    cdef Tensor made_tensor(self, Result r, list shared):
        """A fresh tensor, of whose memory its slot is told. `shared` holds the memory of slots with several tensors,
        the tensors that get a call's array when it has run, and after these the tensors that others are views of."""
        cdef Tensor t
        cdef cnp.ndarray memory
        cdef cnp.npy_intp size = 0
        if r.index < 0:
            return r.tensor(None)
        size = self.sizes[r.index]
        if self.handed[r.index]:
            shared[r.index] = t = r.around(_no_elements)
            return t
        if size == 0:
            t = r.tensor(None)
            self.launches.set_base(self.first_made + <int>r.index, data_of(t))
            return t
        memory = shared[r.index]
        if memory is None:
            memory = shared[r.index] = empty_strided(1, &size, NULL, cnp.NPY_UINT8)
            self.launches.set_base(self.first_made + <int>r.index, cnp.PyArray_BYTES(memory))
        t = r.tensor(memory)
        if r.base is not None:
            r.become_view(t, self.base_of(r, shared))
        return t

    cdef Tensor base_of(self, Result r, list shared):
        """The tensor that a view lies in."""
        cdef Py_ssize_t i = len(self.sizes) + r.base.number
        if shared[i] is None:
            shared[i] = r.base.tensor(shared[r.index])
        return shared[i]

    cdef Tensor gradient(self, Tensor owner, Result r, list shared):
        """The new `grad` of a tensor: on the memory of the former one if nothing else refers to that, else a fresh one."""
        cdef Tensor t = owner.grad_
        if (t is None or r.index < 0 or self.sizes[r.index] != 0 or self.handed[r.index] or self.launches.may_fail()
                or not r.fits(t)):
            return self.made_tensor(r, shared)
        if t.counter is not None:
            t.counter.version = r.version
        self.launches.set_base(self.first_made + <int>r.index, data_of(t))
        return t

    def check(self, call, list arguments not None, flatten, further=None):
        """Run the program on copies, then `call()`; return the value of that, and how they differ (a text, or None)."""
        cdef const char* reason = self.misfit(arguments)
        if reason != NULL:
            return call(), f"does not fit: {reason.decode()}"
        cdef list shadows = [], given = [], shared = self.room_for_memory(), twins, grads, leaves
        cdef Py_ssize_t i
        cdef Result r
        twins = [self.made_tensor(r, shared) if r.kind == MADE else None for r in self.results]
        grads = [None if r is None else self.made_tensor(r, shared) for _, r in self.grads]
        for i in range(len(arguments)):
            given.append(self.shadow_of_argument(i, arguments[i]) if self.given_changes[i] else None)
            if self.given_changes[i]:
                self.launches.set_base(<int>i, data_of_array(given[i]))
        for i in range(self.n_ranges):
            shadows.append(self.shadow(i) if self.changes[i] else None)
            if self.changes[i]:
                self.launches.set_base(self.first_made - self.n_ranges + <int>i, data_of_array(shadows[i]))
        self.launches.poison()
        states = [(<Live>each).saved() for each in self.lives]
        try:
            failure = self.launches.run([])
        finally:
            put_numbers_back(self.lives, states)
            for i in range(self.n_ranges):
                self.launches.set_base(self.first_made - self.n_ranges + <int>i, <char*>self.lows[i])
        if failure is None:
            self.fill_handed(shared)
        if failure is not None:
            return call(), self.located(failure)
        before = known()
        with Heard(True) as heard:
            value = call()
        if [each[:4] for each in heard.calls] != [each[:4] for each in self.warned]:
            return value, "another warning was issued"
        casts = added(before)
        if [(id(cast.value), cast.dtype) for cast in casts] != [(id(cast.value), cast.dtype) for cast in self.casts]:
            return value, "other parameters were cast"
        leaves = [*flatten(value), *[cast.tensor for cast in casts], *([] if further is None else further(value))]
        found = self.compared(leaves, arguments, twins, grads, shadows)
        for i in range(len(arguments)):
            if found is None and self.given_changes[i] and not are_equal(
                    given[i], self.shadow_of_argument(i, arguments[i])):
                found = f"argument {i} differs"
        if found is None and self.history is not None:
            found = self.history.difference(leaves, twins, arguments)
        return value, found

    cdef str located(self, str failure):
        """Why the last run failed, with the line of the call."""
        site = site_of(self.launches.failed_at)
        return failure if site is None else f"{failure}, at {site[0]}:{site[1]}"

    def again(self, call, flatten, list former):
        """Do `call()` once more `without_effects`, with ops cast as they were; return its tensors and casts."""
        with within(self.casting), Heard(False):
            value = self.without_effects(call, former)
            return [*flatten(value), *[cast.tensor for cast in added(())]]

    cdef list changed(self):
        """Copies of the external ranges that the step changes, and None for each other one."""
        return [self.shadow(i) if self.changes[i] else None for i in range(self.n_ranges)]

    cdef int put_back(self, list copies) except -1:
        """Let external ranges have the bytes of copies."""
        cdef Py_ssize_t i
        for i in range(self.n_ranges):
            if copies[i] is not None:
                memcpy(<void*>self.lows[i], cnp.PyArray_DATA(<cnp.ndarray>copies[i]), self.highs[i] - self.lows[i])
        return 0

    def without_effects(self, call, list former):
        """Do `call()`, a call of the step as it is written, and undo what it changes of tensors outside of it. `former` are
        copies of what the step changes, as it was before the call that is repeated; None if that does not matter."""
        cdef VersionCounter counter
        cdef tuple change
        cdef list shadows = self.changed(), versions = []
        for change in self.counts:
            counter = <VersionCounter>change[0]
            versions.append((counter, counter.version, counter.op_name, counter.code, counter.lasti))
        try:
            if former is not None:
                self.put_back(former)
            return call()
        finally:
            self.put_back(shadows)
            for counter, version, op_name, code, lasti in versions:
                counter.version, counter.op_name, counter.code, counter.lasti = version, op_name, code, lasti

    cdef cnp.ndarray shadow(self, Py_ssize_t i):
        """A copy of an external range, aligned like it."""
        return copy_of_bytes(self.lows[i], self.highs[i])

    cdef cnp.ndarray shadow_of_argument(self, Py_ssize_t i, Tensor argument):
        """A copy of the bytes that an argument spans."""
        cdef Argument like = self.guards[i]
        return copy_of_bytes(<uintptr_t>(data_of(argument) + like.low), <uintptr_t>(data_of(argument) + like.high))

    cdef str compared(self, list leaves, list arguments, list twins, list grads, list shadows):
        """How what a run on copies has left differs from what the eager step has left, or None."""
        cdef Py_ssize_t i
        cdef Result r
        cdef Tensor t, twin
        cdef External e
        if len(leaves) != (len(self.results) if self.history is None else self.history.n_results):
            return "it returns another number of tensors"
        for i in range(len(leaves)):
            r, t = self.results[i], leaves[i]
            if r.kind == MADE:
                twin = twins[i]
                if t.flags != twin.flags or type(t) is not Tensor or not are_equal(t.array, twin.array):
                    return f"result {i} differs"
                if r.base is not None and (t.view is None or t.view.creation_meta != twin.view.creation_meta):
                    return f"result {i} is another kind of view"
            elif r.kind == A_PART:
                twin = self.part_of(r, arguments[r.index])
                if data_of(t) != data_of(twin) or not are_equal(t.array, twin.array):
                    return f"result {i} is another part of an argument"
            elif t is not (arguments[r.index] if r.kind == AN_ARGUMENT else
                           (<External>self.outside[r.index]).tensor if r.kind == AN_EXTERNAL else leaves[r.index]):
                return f"result {i} is another tensor"
        for i in range(len(self.grads)):
            e = (<tuple>self.grads[i])[0]
            t, twin = e.tensor.grad_, grads[i]
            if (t is None) != (twin is None) or t is not None and not are_equal(t.array, twin.array):
                return f"the grad of a tensor of shape {tuple(e.array.shape)} differs"
        for i in range(self.n_ranges):
            if shadows[i] is not None and memcmp(cnp.PyArray_DATA(<cnp.ndarray>shadows[i]), <void*>self.lows[i],
                                                 self.highs[i] - self.lows[i]) != 0:
                return f"a tensor outside of the step differs: {self.names_of(i)}"
        return None

    cdef str names_of(self, Py_ssize_t i):
        """The shapes of the tensors in an external range."""
        shapes = [tuple((<External>e).array.shape) for e in self.outside
                  if self.lows[i] <= <uintptr_t>(<External>e).data < self.highs[i]]
        return ", ".join(map(str, shapes))

    def difference(self, Program other not None):
        """How the loops of another capture differ from these, or None."""
        cdef Entry mine, its
        cdef dict blocks = {}
        if len(self.launches.entries) != len(other.launches.entries):
            return f"{len(self.launches.entries)} loops, then {len(other.launches.entries)}"
        for mine, its in zip(self.launches.entries, other.launches.entries):
            found = mine.difference(its, blocks)
            if found is not None:
                return found
        return None

    def __dealloc__(self):
        PyMem_Free(self.lows)
        PyMem_Free(self.highs)


cdef cnp.ndarray copy_of_bytes(uintptr_t low, uintptr_t high):
    """A copy of these bytes, aligned like them."""
    room = np.empty(high - low + 128, np.uint8)
    cdef uintptr_t at = <uintptr_t>cnp.PyArray_DATA(<cnp.ndarray>room)
    cdef Py_ssize_t skipped = (low - at) % 64
    copy = room[skipped:skipped + <Py_ssize_t>(high - low)]
    memcpy(cnp.PyArray_DATA(<cnp.ndarray>copy), <void*>low, high - low)
    return copy


cdef inline char* data_of(object tensor) noexcept:
    return cnp.PyArray_BYTES(<cnp.ndarray>(<Tensor>tensor).array)


cdef inline char* data_of_array(object array) noexcept:
    return cnp.PyArray_BYTES(<cnp.ndarray>array)


cdef bint are_equal(object a, object b) except -1:
    """Whether two arrays have one dtype, shape and order in memory, and the same bits."""
    if a.dtype != b.dtype or a.shape != b.shape or a.strides != b.strides and a.size > 1:
        return False
    if cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>a) and cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>b):
        return memcmp(cnp.PyArray_DATA(<cnp.ndarray>a), cnp.PyArray_DATA(<cnp.ndarray>b),
                      cnp.PyArray_NBYTES(<cnp.ndarray>a)) == 0
    return np.array(a, order="C").tobytes() == np.array(b, order="C").tobytes()


class Line:
    """A loop of a program, for explanations."""

    def __init__(self, Entry entry):
        self.kind, self.op, self.site = entry.kind, None, site_of(entry.place)
        self.bytes_read, self.bytes_written = entry.bytes_read, entry.bytes_written

    def __repr__(self):
        place = "" if self.site is None else f" at {self.site[0]}:{self.site[1]}"
        return f"<{self.kind}{place}>"
