"""What a call draws random numbers from: the stream of a generator, of the thread, or of the program.

This is the part of generators that each draw passes; the rest is in generator.py.
"""

from cygrad._core.graph.dual cimport is_forward
from cygrad._core.replay.numbers cimport Live, followed
from cygrad._core.runtime.thread_state cimport thread_state
from cygrad._core.runtime.thread_state import exchange_generator
from cygrad._kernels.cpu.random.twister cimport Twister
from cygrad._kernels.device.cupy_library import META
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._library import later

kernels_of_meta = later("cygrad._kernels.meta.random")              # needed only for meta tensors
generators = later("cygrad._ops.random.generator")                  # it imports this module
vmap_random = later("cygrad._core.transforms.vmap_random")          # rarely needed

cdef Source _default = None


cdef class Source:
    """What a `Generator` draws from."""

    def source(self):
        """Return (kernels, numbers): the functions that draw arrays, and the stream to draw from."""
        return _source(self)


cdef inline tuple _source(Source generator):
    cdef object found = generator._source       # another thread may set it back meanwhile
    return <tuple>found if type(found) is tuple else generator._philox()


def set_default_source(Source generator not None):
    """Set the generator that threads draw from unless they name another one."""
    global _default
    _default = generator


def source_of_thread():
    """Return the generator that this thread draws from instead of the default one, or None."""
    return None if thread_state().generator == NULL else <object>thread_state().generator


def set_source_of_thread(Source generator):
    """Set the generator that this thread draws from instead of the default one, or None, and return the former one."""
    return exchange_generator(generator)


def draws_of_thread():
    """Return how often this thread drew from its own or the default generator."""
    return thread_state().draws


cpdef tuple source_of(object generator, str function, object place=None):
    """Return (kernels, numbers), see `Source.source`.

    `place` is the number of the GPU, or None for the CPU; the stream is that of `generator` or of the default
    generator. Raises TypeError for non-Generators, RuntimeError for a generator of another device.
    """
    cdef Source found
    if is_forward():
        vmap_random.note_draw(_in_memory(generator, place))
    if generator is not None:
        return _source_of_named(generator, function, place)
    if place is not None:
        return (kernels_of_meta, None) if place == META else generators.gpu_generator(place).source()
    found = _unnamed()
    found.draws += 1
    thread_state().draws += 1
    return _noted(found, False)


cdef object _in_memory(object generator, object place):
    """The generator in memory that is about to be drawn from, or None."""
    if generator is None:
        return _unnamed() if place is None else None
    return generator if isinstance(generator, Source) and generator.device.type == "cpu" and place is None else None


cdef Source _unnamed():
    """The generator in memory that this thread draws from if it names none."""
    cdef object own
    if thread_state().generator != NULL:
        own = <object>thread_state().generator
        if own.device.type == "cpu":
            return <Source?>own
    return _default if _default is not None else generators.default_generator      # importing it sets it


cdef tuple _source_of_named(object generator, str function, object place):
    if not isinstance(generator, Source):
        raise TypeError(f"{function}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    if place == META:
        return kernels_of_meta, None
    wanted = "cpu" if place is None else "cuda"
    if generator.device.type != wanted:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{generator.device.type}'")
    if place is not None and generator.device.index != place:
        raise RuntimeError(f"Expected a generator of cuda:{place} but found one of {generator.device}")
    return _noted(<Source>generator, True) if place is None else _source(<Source>generator)


# -- captured steps --


cdef class Draws(Live):
    """The draws of a captured step from one generator."""

    cdef Source generator
    cdef readonly object stream
    cdef readonly unsigned long long count
    cdef bint is_named

    def __str__(self):
        return f"{self.count} draws of random numbers"

    cdef bint refresh(self) noexcept:
        """Whether the calls of the step would still draw from this stream."""
        cdef object now
        try:
            now = self.generator._source
            return (self.is_named or _unnamed() is self.generator) and type(now) is tuple and (<tuple>now)[1] is self.stream
        except Exception:           # of a generator that is no more
            return False

    cdef int done(self) except -1:
        if not self.is_named:
            self.generator.draws += self.count
            thread_state().draws += self.count
        return 0

    cdef object saved(self):
        return self.stream.read() if type(self.stream) is Twister else self.stream.bit_generator.state

    cdef int restore(self, object state) except -1:
        if type(self.stream) is Twister:
            self.stream.move(state)
        else:
            self.stream.bit_generator.state = state
        return 0


cdef tuple _noted(Source generator, bint is_named):
    """What a generator draws from, which a step that is being noted will draw from again."""
    cdef tuple found = _source(generator)
    cdef list lives
    cdef Draws draws
    if not tape_open:
        return found
    lives = followed()
    if lives is None:
        return found
    for each in lives:
        if type(each) is Draws:
            draws = each
            if draws.generator is generator and draws.stream is found[1] and draws.is_named == is_named:
                draws.count += 1
                return found
    draws = Draws.__new__(Draws)
    draws.generator, draws.stream, draws.is_named, draws.count = generator, found[1], is_named, 1
    lives.append(draws)
    return found
