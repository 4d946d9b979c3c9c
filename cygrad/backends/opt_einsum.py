"""The package opt_einsum, which `einsum` asks for the order of three or more operands if it is installed."""

from importlib.util import find_spec

__all__ = ["is_available"]


def is_available():
    """Whether it is installed."""
    return find_spec("opt_einsum") is not None
