"""Functions of devices that only PyTorch has: they answer as PyTorch does on a machine without such a device."""

import copy

# What functions that cannot do without arguments are called with in the examples of their docstrings.
_ARGUMENTS = {
    "can_device_access_peer": "0, 1",
    "compile_shader": '"..."',
    "get_stream_from_external": "0",
    "load_metallib": '"shaders.metallib"',
    "manual_seed": "0",
    "manual_seed_all": "0",
    "set_device": "0",
    "set_per_process_memory_fraction": "0.5",
    "set_rng_state": "cygrad.get_rng_state()",
    "set_rng_state_all": "[]",
    "set_stream": "None",
    "stream": "None",
}


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

    shown = "" if value is None else f"\n{value!r}"
    says = "Do nothing: there is no such device" if value is None else f"Answer as without such a device: {value!r}"
    return _named(answer, module, name, f"{says}.{_example(module, name)}{shown}")


def _refusal(module, name, kind, text):
    def refuse(*args, **named):
        raise kind(f"{text}\n  cygrad computes on CPUs and on NVIDIA's GPUs: ask is_available() first")

    shown = _example(module, name) + _traceback(kind, text.rstrip("."))
    return _named(refuse, module, name, f"Raise {kind.__name__}: there is no such device.{shown}...")


def _example(module, name):
    return f"\n\n>>> import cygrad\n>>> {module}.{name}({_ARGUMENTS.get(name, '')})"


def _traceback(kind, text):
    return f"\nTraceback (most recent call last):\n    ...\n{kind.__name__}: {text}"


def _named(function, module, name, doc):
    function.__module__, function.__name__, function.__qualname__, function.__doc__ = module, name, name, doc
    return function


def class_refusing(module, name, kind, text):
    """Return a class, a stream or an event of such a device, of which nothing can be made."""

    def __init__(self, *args, **named):
        raise kind(text)

    doc = f"Raises {kind.__name__}: {text.rstrip('.')}.{_example(module, name)}{_traceback(kind, text)}"
    return type(name, (), {"__module__": module, "__init__": __init__, "__doc__": doc})


def device_context(module, kind, text):
    """Return the class of contexts that make a device current; entering one raises, for lack of the device."""

    class device:
        def __init__(self, device):
            self.idx, self.prev_idx = device, -1

        def __enter__(self):
            if not isinstance(self.idx, int) or self.idx >= 0:
                raise kind(text)

        def __exit__(self, *error):
            """Nothing was changed."""

    device.__module__, device.__qualname__ = module, "device"
    device.__doc__ = (
        "A context in which another device is current; a negative index is a no-op.\n\n"
        f">>> import cygrad\n>>> with {module}.device(-1):\n...     cygrad.ones(2).device\ndevice(type='cpu')\n"
        f">>> with {module}.device(0):\n...     pass{_traceback(kind, text)}"
    )
    return device
