"""Functions of devices that only PyTorch has: they answer as PyTorch does on a machine without such a device."""

import copy


def answering(module, answers):
    """Return functions, by name, each of which returns a constant: {name: what it returns}."""
    return {name: _answer(module, name, value) for name, value in answers.items()}


def refusing(module, errors):
    """Return functions, by name, each of which raises an error: {name: (class of the error, text)}."""
    return {name: _refusal(module, name, *error) for name, error in errors.items()}


def without_backend(backend, hooks):
    """Return the errors of functions that ask a backend for something: {name: what PyTorch asks it for}."""
    return {name: (RuntimeError, f"Cannot execute {hook}() without {backend} backend.") for name, hook in hooks.items()}


def _answer(module, name, value):
    def answer(*args, **named):
        return copy.copy(value)

    return _named(answer, module, name, f"Answer as without such a device: {value!r}.")


def _refusal(module, name, kind, text):
    def refuse(*args, **named):
        raise kind(f"{text}\n  cygrad computes on CPUs and on NVIDIA's GPUs: ask is_available() first")

    return _named(refuse, module, name, f"Raise {kind.__name__}: there is no such device.")


def _named(function, module, name, doc):
    function.__module__, function.__name__, function.__qualname__, function.__doc__ = module, name, name, doc
    return function


def class_refusing(module, name, kind, text):
    """Return a class, a stream or an event of such a device, of which nothing can be made."""

    def __init__(self, *args, **named):
        raise kind(text)

    return type(name, (), {"__module__": module, "__init__": __init__, "__doc__": f"Raises {kind.__name__}: {text}."})


def device_context(module, kind, text):
    """Return the class of contexts that make a device current; entering one raises, for lack of the device."""

    class device:
        """A context in which another device is current; a negative index is a no-op."""

        def __init__(self, device):
            self.idx, self.prev_idx = device, -1

        def __enter__(self):
            if not isinstance(self.idx, int) or self.idx >= 0:
                raise kind(text)

        def __exit__(self, *error):
            """Nothing was changed."""

    device.__module__, device.__qualname__ = module, "device"
    return device
