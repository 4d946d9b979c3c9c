"""Random number streams.

On the CPU they are PyTorch's: the Mersenne Twister, from which each function draws the numbers that PyTorch's draws for
the same seed (mersenne.py). `Generator(algorithm="philox")` gives streams of Philox, a counter-based generator, from
NumPy; on GPUs, our own implementation of it.

Each stream has a lock (NumPy's or ours), so drawing from several threads at once is safe.
"""

import contextlib
import os
from _thread import allocate_lock
from typing import Any

import numpy as np

from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.device import check_device, device, device_at
from cygrad._kernels.cpu.random import mersenne
from cygrad._kernels.cpu.random.twister import Twister
from cygrad._kernels.gpu.random import random as kernels_of_gpu
from cygrad._library import later
from cygrad._ops.random.source import (
    Source,
    draws_of_thread,
    set_default_source,
    set_source_of_thread,
    source_of_thread,
)

kernels_of_philox = later("cygrad._kernels.cpu.random.random")  # rarely asked for

_FIRST_SEED = 67280421310721  # PyTorch's default seed
_ALGORITHMS = "mt19937", "philox"
_TWISTER_BYTES = 5056
_PHILOX_BYTES = 8 * 14  # seed, counter (4), key (2), buffer (4), buffer position, leftover half word (2)


class Generator(Source):
    """A random number stream, to be passed to functions as `generator=`.

    Generators with the same seed produce the same numbers, whatever the number of threads: on the CPU, PyTorch's
    numbers. `algorithm` is "mt19937", PyTorch's, or "philox", the one for GPUs.

    >>> import cygrad
    >>> g = cygrad.Generator().manual_seed(3)
    >>> cygrad.rand(2, generator=g)
    tensor([0.0043, 0.1056])
    """

    __module__ = "cygrad"

    device: device
    _source: Any

    def __init__(self, device="cpu", *, algorithm=None):
        self.device = check_device(device)
        if self.device.type == "meta":
            raise RuntimeError("META device type not an accelerator.")
        self._seed = _FIRST_SEED
        self._lock = allocate_lock()
        is_on_gpu = self.device.type == "cuda"
        if algorithm is None:
            algorithm = _ALGORITHMS[is_on_gpu]
        if algorithm not in _ALGORITHMS or (is_on_gpu and algorithm != "philox"):
            raise ValueError(
                f"no random number generator {algorithm!r} for {self.device}: choose "
                + ("'philox'" if is_on_gpu else "'mt19937' or 'philox'")
            )
        self._is_twister = algorithm == "mt19937"
        if is_on_gpu:
            self._source = kernels_of_gpu, kernels_of_gpu.Stream(self.device.index, _FIRST_SEED)
        elif self._is_twister:
            self._source = mersenne, Twister(_FIRST_SEED)

    @property
    def algorithm(self):
        """The name of the algorithm: "mt19937" or "philox"."""
        return _ALGORITHMS[not self._is_twister]

    @property
    def _numbers(self):
        return self.source()[1]

    def _philox(self):
        from numpy.random import Generator as NumpyGenerator  # takes as long as importing all of cygrad
        from numpy.random import Philox  # likewise

        with self._lock:
            if self._source is None:
                self._source = kernels_of_philox, NumpyGenerator(Philox(key=self._seed))
            return self._source

    def manual_seed(self, seed):
        """Restart the stream from `seed`, an int of up to 64 bits, and return the generator.

        Raises RuntimeError for non-integers, ValueError for more bits.

        >>> import cygrad
        >>> a, b = cygrad.Generator(), cygrad.Generator()
        >>> cygrad.equal(cygrad.rand(2, generator=a.manual_seed(7)), cygrad.rand(2, generator=b.manual_seed(7)))
        True
        """
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or isinstance(seed, Tensor):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        seed %= 2**64
        with self._lock:
            if self._is_twister or self.device.type != "cpu":
                self._source[1].restart(seed)
            else:
                self._source = None
            self._seed = seed
        return self

    def seed(self):
        """Restart the stream from an unpredictable seed and return that seed.

        >>> import cygrad
        >>> g = cygrad.Generator()
        >>> g.seed() == g.initial_seed()
        True
        """
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self):
        """Return the seed from which this stream was started.

        >>> import cygrad
        >>> cygrad.Generator().manual_seed(7).initial_seed()
        7
        """
        return self._seed

    def get_state(self):
        """Return the position in the stream as a tensor of bytes.

        It is PyTorch's state; for a stream of Philox, its counter; for a GPU's stream, the seed and the offset.

        >>> import cygrad
        >>> g = cygrad.Generator().manual_seed(0)
        >>> state = g.get_state()
        >>> first = cygrad.rand(2, generator=g)
        >>> g = g.set_state(state)
        >>> cygrad.equal(cygrad.rand(2, generator=g), first)
        True
        """
        if self._is_twister:
            return tensor_of(self._numbers.read())
        if self.device.type != "cpu":
            return tensor_of(np.array([self._seed, self._numbers.offset], np.uint64).view(np.uint8))
        state = self._numbers.bit_generator.state
        words = [
            self._seed,
            *state["state"]["counter"],
            *state["state"]["key"],
            *state["buffer"],
            state["buffer_pos"],
            state["has_uint32"],
            state["uinteger"],
        ]
        return tensor_of(np.array(words, np.uint64).view(np.uint8))

    def set_state(self, new_state):
        """Move to a position that was returned by `get_state`, of cygrad or of PyTorch.

        On the CPU, the stream continues with the algorithm that the state belongs to. Raises TypeError or RuntimeError
        for invalid states.

        >>> import cygrad
        >>> g = cygrad.Generator().manual_seed(0)
        >>> copy = cygrad.Generator().set_state(g.get_state())
        >>> cygrad.equal(cygrad.rand(2, generator=g), cygrad.rand(2, generator=copy))
        True
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        array = array_of(new_state)
        if array.dtype != np.uint8 or not isinstance(array, np.ndarray):
            raise TypeError("RNG state must be a torch.ByteTensor")
        array = np.ascontiguousarray(array).ravel()
        if self.device.type != "cpu":
            return self._set_stream(array)
        if array.size == _TWISTER_BYTES:
            self._set_twister(array)
        elif array.size == _PHILOX_BYTES:
            self._set_philox(array.view(np.uint64))
        else:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_TWISTER_BYTES} but found the input RNG state size to be "
                f"{array.size}"
            )
        return self

    def _set_twister(self, array):
        numbers = self._numbers if self._is_twister else Twister()
        if not numbers.move(array):
            raise RuntimeError("Invalid mt19937 state")
        self._source, self._seed, self._is_twister = (mersenne, numbers), numbers.seed, True

    def _set_philox(self, words):
        from numpy.random import Generator as NumpyGenerator  # takes as long as importing all of cygrad
        from numpy.random import Philox  # likewise

        seed, position, has_half, half = (int(words[i]) for i in (0, 11, 12, 13))
        bits = Philox(key=seed)
        bits.state = {
            "bit_generator": "Philox",
            "state": {"counter": words[1:5], "key": words[5:7]},
            "buffer": words[7:11],
            "buffer_pos": position,
            "has_uint32": has_half,
            "uinteger": half,
        }
        with self._lock:
            self._source, self._seed, self._is_twister = (kernels_of_philox, NumpyGenerator(bits)), seed, False

    def _set_stream(self, array):
        if array.size != 16:
            raise RuntimeError("RNG state is wrong size")
        seed, offset = map(int, array.view(np.uint64))
        self.manual_seed(seed)
        self.set_offset(offset)
        return self

    def get_offset(self):
        """Return how many groups of four words have been drawn from a GPU's stream. Raises RuntimeError on the CPU.

        >>> import cygrad
        >>> cygrad.Generator().get_offset()
        Traceback (most recent call last):
            ...
        RuntimeError: CPU Generator does not use offset
        """
        return self._stream_of("use offset").offset

    def set_offset(self, offset):
        """Move to an offset in a GPU's stream. Raises RuntimeError on the CPU.

        >>> import cygrad
        >>> cygrad.Generator().set_offset(4)
        Traceback (most recent call last):
            ...
        RuntimeError: CPU Generator does not use offset
        """
        self._stream_of("use offset").restart(self._seed, int(offset))

    def _stream_of(self, what):
        if self.device.type == "cpu":
            raise RuntimeError(f"CPU Generator does not {what}")
        return self._numbers

    def clone_state(self):
        """Return a copy of this generator, at the same position in the same stream.

        >>> import cygrad
        >>> g = cygrad.Generator().manual_seed(0)
        >>> copy = g.clone_state()
        >>> cygrad.equal(cygrad.rand(2, generator=g), cygrad.rand(2, generator=copy))
        True
        """
        return type(self)(self.device).set_state(self.get_state())

    def graphsafe_get_state(self):
        """Return another generator that draws from this GPU's stream. Raises NotImplementedError on the CPU.

        >>> import cygrad
        >>> cygrad.Generator().graphsafe_get_state()
        Traceback (most recent call last):
            ...
        NotImplementedError: graphsafe_get_state is not supported in this Generator
        """
        other = type(self)(self._on_gpu("graphsafe_get_state"))
        return other.graphsafe_set_state(self)

    def graphsafe_set_state(self, state):
        """Draw from the stream of another generator from now on. Raises NotImplementedError on the CPU.

        >>> import cygrad
        >>> g = cygrad.Generator()
        >>> g.graphsafe_set_state(g)
        Traceback (most recent call last):
            ...
        NotImplementedError: graphsafe_set_state is not supported in this Generator
        """
        if self._on_gpu("graphsafe_set_state") != state.device:
            raise RuntimeError(f"Expected a generator of {self.device} but found one of {state.device}")
        self._source, self._seed = state._source, state._seed
        return self

    def _on_gpu(self, method):
        if self.device.type == "cpu":
            raise NotImplementedError(f"{method} is not supported in this Generator")
        return self.device

    def __reduce__(self):
        offset = None if self.device.type == "cpu" else self.get_offset()
        return type(self), (self.device,), (self.initial_seed(), offset, self.get_state())

    def __setstate__(self, state):
        seed, offset, position = state
        self.manual_seed(seed)
        if offset is not None:
            self.set_offset(offset)
        self.set_state(position)


def _restored(state, device="cpu"):
    """Return the generator of a pickle that an older cygrad wrote."""
    return Generator(device).set_state(tensor_of(state))


default_generator = Generator()
default_generator.seed()


set_default_source(default_generator)


class drawing_from:
    """Context manager: draws of this thread that name no generator come from `generator`.

    This makes the numbers of a thread independent of concurrent draws in other threads. Inside the block, seeding and
    the generator state refer to this generator, too.

    >>> import cygrad
    >>> with cygrad.random.drawing_from(cygrad.Generator().manual_seed(3)):
    ...     a = cygrad.rand(2)
    >>> bool((a == cygrad.rand(2, generator=cygrad.Generator().manual_seed(3))).all())
    True
    """

    __slots__ = ("_generator", "_outer")

    def __init__(self, generator):
        self._generator = generator

    def __enter__(self):
        self._outer = set_source_of_thread(self._generator)

    def __exit__(self, *error):
        set_source_of_thread(self._outer)


def current_generator():
    """Return the generator that this thread draws from: the default one, or that of an enclosing `drawing_from`."""
    found = source_of_thread()
    return default_generator if found is None or found.device.type != "cpu" else found


class Draws:
    """What this thread draws from its generator from now on. True if it has drawn anything.

    Other threads may draw from the default generator meanwhile. It is never set back then: their numbers would be drawn
    a second time.
    """

    def __init__(self):
        self._generator, self._own = current_generator(), draws_of_thread()
        self._state, self._all = self._generator.get_state(), self._generator.draws

    def __bool__(self):
        return draws_of_thread() != self._own

    def take_back(self):
        """Set the generator back, if no other thread has drawn from it."""
        if self and draws_of_thread() - self._own == self._generator.draws - self._all:
            self._generator.set_state(self._state)
            self._own, self._all = draws_of_thread(), self._generator.draws

    @contextlib.contextmanager
    def repeated(self):
        """A block that draws the same numbers each time. The generator then continues behind the last of them."""
        own = Generator()
        own.set_state(self._state)
        with drawing_from(own):
            yield
        if own.draws and self._generator.draws == self._all:
            self._generator.set_state(own.get_state())


# -- generators of GPUs --

_of_gpus: dict[int, Generator] = {}
_seeds: dict[int, int] = {}  # seeds of GPUs whose generators are not in use yet; -1 for all GPUs


def gpu_generator(place):
    """Return the default generator of this GPU, or that of an enclosing `drawing_from` of this thread."""
    own = source_of_thread()
    if own is not None and own.device.type == "cuda" and own.device.index == place:
        return own
    found = _of_gpus.get(place)
    if found is None:
        new = Generator(device_at(place))
        given = _seeds.get(place, _seeds.get(-1))
        new.seed() if given is None else new.manual_seed(given)
        found = _of_gpus.setdefault(place, new)
    return found


def seed_gpu(seed, place=-1):
    """Seed the default generator of a GPU, or of all GPUs, immediately or on first use."""
    if place == -1:
        _seeds.clear()
    _seeds[place] = seed
    for index, generator in _of_gpus.items():
        if place in (-1, index):
            generator.manual_seed(seed)


# -- the default generator --


def manual_seed(seed):
    """Restart the default generators, including those of GPUs, from `seed` and return that of the CPU.

    Raises ValueError for a seed of more than 64 bits.

    >>> import cygrad
    >>> cygrad.manual_seed(7).initial_seed()
    7
    """
    seed = int(seed)
    found = current_generator().manual_seed(seed)
    if found is default_generator:
        seed_gpu(seed)
    return found


def seed():
    """Restart the default generators from an unpredictable seed and return that seed.

    >>> import cygrad
    >>> cygrad.seed() == cygrad.initial_seed()
    True
    """
    found = current_generator().seed()
    if current_generator() is default_generator:
        seed_gpu(found)
    return found


def initial_seed():
    """Return the seed from which the default generator was started.

    >>> import cygrad
    >>> generator = cygrad.manual_seed(7)
    >>> cygrad.initial_seed()
    7
    """
    return current_generator().initial_seed()


def get_rng_state():
    """Return the position of the default generator in its stream as a tensor of bytes.

    >>> import cygrad
    >>> state = cygrad.get_rng_state()
    >>> first = cygrad.rand(2)
    >>> cygrad.set_rng_state(state)
    >>> cygrad.equal(cygrad.rand(2), first)
    True
    """
    return current_generator().get_state()


def set_rng_state(new_state):
    """Move the default generator to a position that was returned by `get_rng_state`.

    >>> import cygrad
    >>> state = cygrad.get_rng_state()
    >>> first = cygrad.rand(2)
    >>> cygrad.set_rng_state(state)
    >>> cygrad.equal(cygrad.rand(2), first)
    True
    """
    current_generator().set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None):
    """Context manager that restores the states of the default generators at the end of the block.

    Of the generators of GPUs, those of `devices` (indices or devices), by default all. `device_type` is the kind of
    device that they are of; for "meta" nothing is restored.

    >>> import cygrad
    >>> before = cygrad.get_rng_state()
    >>> with cygrad.random.fork_rng():
    ...     noise = cygrad.rand(3)
    >>> bool((cygrad.get_rng_state() == before).all())
    True
    """
    kind = "cuda" if device_type is None else device(device_type).type
    if not enabled or kind == "meta":
        yield
        return
    state = get_rng_state()
    on_gpus = [(place, gpu_generator(place).get_state()) for place in _forked(devices)] if kind == "cuda" else []
    try:
        yield
    finally:
        set_rng_state(state)
        for place, state_there in on_gpus:
            gpu_generator(place).set_state(state_there)


def _forked(devices):
    """Return the indices of the GPUs whose generators `fork_rng` restores: all in use, if none are named."""
    if devices is None:
        return list(_of_gpus)
    return [check_device(device("cuda", place) if isinstance(place, int) else place).index for place in devices]


functions: dict[str, object] = {
    function.__name__: function for function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state)
}
functions |= {"Generator": Generator, "default_generator": default_generator}
