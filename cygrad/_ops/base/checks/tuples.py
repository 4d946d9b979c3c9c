"""Wraps methods that take integers either one by one or as a tuple into functions that require a tuple."""

from functools import wraps

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import shown


def of_tuple(entry, name):
    """Return the function of `cygrad` for a method that also takes integers one by one; it requires a tuple."""

    @shown
    @wraps(entry)
    def function(input, *given, **named):
        if given and not isinstance(given[0], (tuple, list)):
            raise messages.wrong_type(entry.__name__, name, 2, "tuple of ints", given[0])
        return entry(input, *given, **named)

    return function
