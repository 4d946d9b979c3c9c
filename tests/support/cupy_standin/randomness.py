"""`cupy.random`: NumPy's random numbers on the device, with one generator per device."""

import numpy as np

from . import compute, names, state


def drawn(name, text, generator_of):
    """A method of NumPy's generator whose numbers are moved to the device in the requested dtype."""
    expected = names.signature(text)

    def call(*args, **kwargs):
        bound = expected.bind(*args, **kwargs)
        given = dict(bound.arguments)
        source, given = generator_of(given)
        dtype = given.pop("dtype", None)
        out = given.pop("out", None)
        method = getattr(source, RENAMED.get(name, name))
        for value in given.values():
            if isinstance(value, np.ndarray):
                raise TypeError(f"Unsupported type {type(value)}")
        if name in ("rand", "randn"):
            return compute.run(name, lambda: np.asarray(method(*given.get("size", ()), *given.get("args", ()))), [])

        def draw(*arrays):
            result = np.asarray(method(**dict(zip(given, arrays))))
            result = result if dtype is None else result.astype(dtype)
            if out is not None:
                arrays_out[...] = result
                return arrays_out
            return result

        arrays_out = None if out is None else out._a
        result = compute.run(name, draw, list(given.values()))
        return result if out is None else out

    return names.checked(f"cupy.random.{name}", text, call)


RENAMED = {"random_sample_": "random_sample", "ranf": "random_sample", "sample": "random_sample"}
generators: dict = {}


def global_state():
    device = state.current_device()
    return generators.setdefault(device, RandomState())


def seed(seed=None):
    generators[state.current_device()] = RandomState(seed)


class RandomState:
    """`cupy.random.RandomState`."""

    def __init__(self, seed=None, method=100):
        self._source = np.random.RandomState(seed)

    def seed(self, seed=None):
        self._source.seed(seed)

    def shuffle(self, a):
        compute.run("shuffle", self._source.shuffle, [a])

    def permutation(self, a):
        if isinstance(a, compute.ndarray_class()):
            return compute.run("permutation", self._source.permutation, [a])
        return compute.run("permutation", lambda: self._source.permutation(a), [])

    def choice(self, a, size=None, replace=True, p=None):
        if p is not None:
            state.synchronize("cupy.random.choice with p")
        return compute.run("choice", lambda a, p: np.asarray(self._source.choice(a, size, replace, p)), [a, p])


class Generator:
    """`cupy.random.Generator`."""

    def __init__(self, bit_generator):
        self.bit_generator = bit_generator
        self._source = np.random.Generator(np.random.Philox(bit_generator._seed))


class BitGenerator:
    def __init__(self, seed=None, *, size=None):
        self._seed = seed


XORWOW = type("XORWOW", (BitGenerator,), {})
MRG32k3a = type("MRG32k3a", (BitGenerator,), {})
Philox4x3210 = type("Philox4x3210", (BitGenerator,), {})


def default_rng(seed=None):
    return seed if isinstance(seed, Generator) else Generator(XORWOW(seed))


def of_self(given):
    return given.pop("self")._source, given


def of_device(given):
    return global_state()._source, given


for _class, _numpy in ((RandomState, np.random.RandomState), (Generator, np.random.Generator)):
    for _name, _text in names.CLASSES[f"cupy.random.{_class.__name__}"].items():
        if not hasattr(_class, _name) and hasattr(_numpy, _name) and _text.startswith("("):
            setattr(_class, _name, drawn(_name, _text, of_self))


def contents():
    recorded = names.MODULES["cupy.random"]
    found = {}
    for name, text in recorded.items():
        if hasattr(np.random.RandomState, RENAMED.get(name, name)) and text.startswith("("):
            found[name] = drawn(name, text, of_device)
    for name in ("shuffle", "permutation", "choice"):
        found[name] = names.checked(
            f"cupy.random.{name}",
            recorded[name],
            lambda *args, name=name, **kwargs: getattr(global_state(), name)(*args, **kwargs),
        )
    own = (RandomState, Generator, BitGenerator, XORWOW, MRG32k3a, Philox4x3210)
    found |= {c.__name__: c for c in own}
    found |= {"seed": seed, "default_rng": default_rng, "get_random_state": global_state}
    found["reset_states"] = generators.clear
    return found
