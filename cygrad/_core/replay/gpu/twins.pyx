"""The parts of a captured step on a GPU: what arguments must be like, and what new tensors are like."""

cimport cython

from cygrad._core.graph.spent_gradients cimport is_unshared
from cygrad._core.graph.tensor cimport (
    VIEW_DEFAULT, Tensor, ViewMeta, counter_of, version_of, wrap)
from cygrad._core.replay.parts cimport Given
from cygrad._core.replay.results cimport can_be_made_again

from weakref import getweakrefcount

from cygrad._core.replay.parts import Unfit
from cygrad._kernels.device.cupy_library import gpu_class
from cygrad._library import later

captured_work = later("cygrad._kernels.gpu.launch.captured_work")      # needed only on GPUs

ELSEWHERE = "a view, or a tensor on memory that is not its own, is returned"


cdef bint is_here(object array, int device) except -1:
    return type(array) is gpu_class() and array.data.device_id == device


@cython.final
cdef class GpuArgument(Given):
    """What an argument on a GPU must be like."""

    def __init__(self, Tensor t not None, bint sees_grads):
        self.take(t, sees_grads, False)
        self.dtype, self.shape, self.strides = t.array.dtype, t.array.shape, t.array.strides

    cdef str misfit(self, object value, int device):
        """Why a tensor does not fit, or None."""
        cdef const char* reason = self.misfit_of_class(value)
        if reason == NULL:
            array = (<Tensor>value).array
            if not is_here(array, device):
                return "an argument is not in the memory of the GPU"
            if array.dtype != self.dtype or array.shape != self.shape or array.strides != self.strides:
                return "an argument has another dtype, shape or strides"
            reason = self.misfit_of_history(<Tensor>value)
        return None if reason == NULL else reason.decode()


# ------------------------------------------------------------------------------------------------ new tensors

@cython.final
cdef class Twin:
    """A new tensor of the step, of which each call gets a fresh one."""

    def __init__(self, Tensor t not None, room):
        self.array, self.grad_fn, self.output_nr, self.flags = t.array, t.grad_fn_, t.output_nr_, t.flags
        self.version, self.room = version_of(t), room
        self.origin = t.origin_kind, t.origin_name, t.origin_code, t.origin_lasti

    cdef Tensor fresh(self, dict memories):
        """A tensor like it. `memories` are those of one call: {room: memory, and twin of a base: its tensor}."""
        cdef Tensor t
        cdef ViewMeta view
        if self.room is None:
            t = wrap(captured_work.room_for(self.array))
        else:
            if self.room not in memories:
                memories[self.room] = self.room.fresh()
            t = wrap(self.room.part(memories[self.room], self.array))
        t.flags, t.grad_fn_, t.output_nr_ = self.flags, self.grad_fn, self.output_nr
        if self.version:
            counter_of(t).version = self.version
        if self.origin[0]:
            t.origin_kind, t.origin_name, t.origin_code, t.origin_lasti = self.origin
        if self.base is not None:
            if self.base not in memories:
                memories[self.base] = self.base.fresh(memories)
            view = ViewMeta.__new__(ViewMeta)
            view.base = memories[self.base]
            t.counter = counter_of(view.base)
            view.attr_version = t.counter.version
            view.creation_meta, view.code, view.lasti = self.made
            t.view = view
        return t

    cdef bint fits(self, Tensor t) except -1:
        """Whether a former gradient may be overwritten: nothing refers to it and its memory but the `grad` field."""
        return (type(t) is Tensor and is_here(t.array, self.array.data.device_id) and is_unshared(t, 2)
                and t.array.dtype == self.array.dtype and t.array.shape == self.array.shape
                and t.array.strides == self.array.strides and t.flags == self.flags and t.view is None
                and t.grad_fn_ is None and t.grad_ is None and t.accumulator is None and t.tangents is None
                and t.attributes is None and getweakrefcount(t) == 0 and getweakrefcount(t.array) == 0)


@cython.final
cdef class Rooms:
    """Where the new tensors of a step lie in the memory of its graph."""

    def __init__(self, work, int device):
        self.work, self.device = work, device
        self.rooms, self.bases, self.alone, self.viewed = {}, {}, set(), set()

    cdef Twin twin(self, Tensor t):
        """What a result is like; raises Unfit for one that cannot be made again."""
        cdef Twin made
        cdef bint is_restricted = t.view is not None and t.view.creation_meta != VIEW_DEFAULT
        if is_restricted and not can_be_made_again(t):
            raise Unfit("a view of a tensor with a history is returned")
        if is_restricted and not t.array.size:
            raise Unfit("a view without elements is returned")
        if t.array.size and t.array.data.mem.ptr in self.rooms and (
                t.view is not None or t.array.data.mem.ptr in self.viewed) and (
                not is_restricted or id(t.view.base) not in self.bases):
            raise Unfit("two results share memory, one of which is a view")
        made = self.placed(t)
        if is_restricted:
            self.enter_base(made, t)
        return made

    cdef Twin alone_twin(self, Tensor t):
        """What a new gradient is like, with whose memory no other tensor has to do."""
        cdef Twin made
        if t.view is not None or t.array.size and t.array.data.mem.ptr in self.rooms:
            raise Unfit("a new gradient is a view, or shares memory")
        made = self.placed(t)
        if t.array.size:
            self.alone.add(t.array.data.mem.ptr)
        return made

    cdef Twin placed(self, Tensor t):
        cdef object room = None
        if type(t) is not Tensor or t.attributes or t.grad_ is not None or t.tangents is not None:
            raise Unfit("a tensor of an unusual kind is returned")
        if not is_here(t.array, self.device) or not captured_work.has_room(t.array):
            raise Unfit(ELSEWHERE)
        if t.array.size:
            place = t.array.data.mem.ptr
            if not self.work.owns(t.array) or place in self.alone:
                raise Unfit(ELSEWHERE)
            room = self.rooms.get(place)
            if room is None:
                room = self.rooms[place] = captured_work.Room(t.array)
            else:
                room.widen(t.array)
        return Twin(t, room)

    cdef int enter_base(self, Twin twin, Tensor t) except -1:
        """Enter a view that may not be changed in place as others may, and what it lies in."""
        cdef Tensor of = t.view.base
        if id(of) not in self.bases:
            if not of.array.size or of.array.data.mem.ptr != t.array.data.mem.ptr:
                raise Unfit(ELSEWHERE)
            self.bases[id(of)] = self.placed(of)
            self.viewed.add(of.array.data.mem.ptr)
        twin.base = self.bases[id(of)]
        twin.made = t.view.creation_meta, t.view.code, t.view.lasti
        return 0


class Line:
    """What a graph does, for explanations."""

    def __init__(self, kind, op, bytes_read=0, bytes_written=0):
        self.kind, self.op, self.site = kind, op, None
        self.bytes_read, self.bytes_written = bytes_read, bytes_written

    def __repr__(self):
        return f"<{self.kind} {self.op}>"
