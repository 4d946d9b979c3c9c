"""Functions of the package that take a tuple where the method of their name takes integers one by one, too."""

from functools import wraps

from cygrad._core.errors import messages


def of_tuple(entry, name):
    """The function of the package for a method that also takes integers one by one: it takes a tuple alone."""

    @wraps(entry)
    def function(input, *given, **named):
        if given and not isinstance(given[0], (tuple, list)):
            raise messages.wrong_type(entry.__name__, name, 2, "tuple of ints", given[0])
        return entry(input, *given, **named)

    return function
