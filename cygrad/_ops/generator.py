"""Streams of random numbers: Philox, a counter-based generator, by NumPy's implementation.

NumPy's lock in each stream makes it safe to draw from several threads at once.
"""

import contextlib
import os
from _thread import _local, allocate_lock

import numpy as np

from cygrad._core.access import array_of, tensor_of
from cygrad._core.device import check_device
from cygrad._core.tensor import Tensor

_FIRST_SEED = 67280421310721  # what PyTorch's generators start with
_STATE_WORDS = 14  # seed, counter (4), key (2), buffer (4), place in it, half a word left over (2)


class Generator:
    """A stream of random numbers, to be handed to functions as `generator=`.

    Two generators of the same seed give the same numbers, whatever the number of threads.

    >>> import cygrad
    >>> g = cygrad.Generator().manual_seed(3)
    >>> a = cygrad.rand(2, generator=g)
    >>> b = cygrad.rand(2, generator=cygrad.Generator().manual_seed(3))
    >>> bool((a == b).all())
    True
    """

    __module__ = "cygrad"

    def __init__(self, device="cpu"):
        self.device = check_device(device)
        self._seed = _FIRST_SEED
        self._numpy = None
        self._lock = allocate_lock()

    def numpy_generator(self):
        """NumPy's generator of this stream."""
        # Made when first needed: importing numpy.random takes as long as importing all of cygrad.
        numbers = self._numpy
        if numbers is None:
            from numpy.random import Generator as NumpyGenerator
            from numpy.random import Philox

            with self._lock:
                if self._numpy is None:
                    self._numpy = NumpyGenerator(Philox(key=self._seed))
                numbers = self._numpy
        return numbers

    def manual_seed(self, seed):
        """Start the stream that belongs to `seed`, an int of up to 64 bits; return the generator.

        Raises RuntimeError for what is no int, ValueError for more bits.
        """
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        with self._lock:
            self._seed = seed % 2**64
            self._numpy = None
        return self

    def seed(self):
        """Start a stream that nobody can foresee, and return its seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self):
        """The seed this stream was started with."""
        return self._seed

    def get_state(self):
        """Where in the stream we are, as a tensor of bytes."""
        state = self.numpy_generator().bit_generator.state
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
        """Go to a place that `get_state` gave.

        Raises TypeError or RuntimeError for what is no such state.
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        array = array_of(new_state)
        if array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if array.size != 8 * _STATE_WORDS:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {8 * _STATE_WORDS} but found the input "
                f"RNG state size to be {array.size}"
            )
        words = np.ascontiguousarray(array).view(np.uint64).ravel()
        seed, position, has_half, half = (int(words[i]) for i in (0, 11, 12, 13))
        self.manual_seed(seed)
        self.numpy_generator().bit_generator.state = {
            "bit_generator": "Philox",
            "state": {"counter": words[1:5], "key": words[5:7]},
            "buffer": words[7:11],
            "buffer_pos": position,
            "has_uint32": has_half,
            "uinteger": half,
        }
        return self

    def clone_state(self):
        """Another generator at the same place in the same stream."""
        return type(self)(self.device).set_state(self.get_state())

    def __reduce__(self):
        return _restored, (array_of(self.get_state()),)


def _restored(state):
    return Generator().set_state(tensor_of(state))


default_generator = Generator()
default_generator.seed()
_of_thread = _local()


class drawing_from:
    """In the block, what this thread draws without naming a generator comes from `generator`.

    So a thread's numbers do not depend on what others draw meanwhile. Seeding and the state of the stream then mean
    this generator, too.

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
        self._outer = getattr(_of_thread, "generator", None)
        _of_thread.generator = self._generator

    def __exit__(self, *error):
        _of_thread.generator = self._outer


def current_generator():
    """What this thread draws from: the default generator, unless it is in a block `drawing_from` another."""
    return getattr(_of_thread, "generator", None) or default_generator


def numbers_of(generator, function):
    """NumPy's generator of `generator`, or of the default one.

    Raises TypeError for what is no Generator.
    """
    if generator is None:
        return current_generator().numpy_generator()
    if not isinstance(generator, Generator):
        raise TypeError(f"{function}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator.numpy_generator()


def manual_seed(seed):
    """Start the default generator's stream that belongs to `seed`, and return that generator.

    Raises ValueError for a seed of more than 64 bits.

    >>> import cygrad
    >>> cygrad.manual_seed(7).initial_seed()
    7
    """
    return current_generator().manual_seed(int(seed))


def seed():
    """Start the default generator on a stream that nobody can foresee, and return its seed."""
    return current_generator().seed()


def initial_seed():
    """The seed that the default generator's stream was started with."""
    return current_generator().initial_seed()


def get_rng_state():
    """Where in its stream the default generator is, as a tensor of bytes."""
    return current_generator().get_state()


def set_rng_state(new_state):
    """Take the default generator to a place that `get_rng_state` gave."""
    current_generator().set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True):
    """What is drawn inside the block does not show outside: the generator's state is put back.

    >>> import cygrad
    >>> before = cygrad.get_rng_state()
    >>> with cygrad.random.fork_rng():
    ...     noise = cygrad.rand(3)
    >>> bool((cygrad.get_rng_state() == before).all())
    True
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


functions: dict[str, object] = {
    function.__name__: function for function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state)
}
functions |= {"Generator": Generator, "default_generator": default_generator}
