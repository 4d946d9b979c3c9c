"""What PyTorch's compiler counts and knows of devices."""

from collections import Counter, defaultdict

counters: defaultdict = defaultdict(Counter)  # what was compiled: always empty


def is_compile_supported(device_type):
    """Whether programs can be compiled for a kind of device: always False."""
    return False


def compile_times(repr="str", aggregate=False):
    """Return how long compilations took: an empty report, or (headers, values) for `repr="csv"`."""
    return ("", ()) if repr == "csv" else ""
