"""Common mistakes of users, each a function that ends in an error or a warning; golden.json holds their full texts.

After changing a text, run `PYTHONPATH=.:tests python -m core.diagnostics.situations` to regenerate the file, and review
the diff before you commit it. File names and line numbers are removed, so these files may be edited.
"""

import re
import warnings
from pathlib import Path

from core.diagnostics.situations import custom_functions, cuts, in_place, operands, passes, table, wrong_values

from cygrad._core.diagnostics import graph_errors

__all__ = ["FILES", "GOLDEN", "SITUATIONS", "text_of"]

GOLDEN = Path(__file__).parent.with_name("golden.json")
SITUATIONS = table.SITUATIONS
FILES = [Path(module.__file__) for module in (table, in_place, passes, cuts, wrong_values, operands, custom_functions)]


def text_of(function):
    """The text of the error or warning that a situation ends in, with places removed."""
    graph_errors._warned.clear()  # the lines that have been warned about
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            function()
        except Exception as error:
            names = [kind.__name__ for kind in type(error).__mro__]
            text = "\n".join([f"{type(error).__name__} ({names[-4]}): {error}", *getattr(error, "__notes__", [])])
        else:
            text = f"{seen[-1].category.__name__}: {seen[-1].message}" if seen else "nothing"
    return without_places(text)


def without_places(text):
    """The text with FILE and LINE for places, and N for numbers that differ between machines."""
    text = re.sub(r"(?:[\w.:~-]*[/\\])+[\w.-]+\.py:\d+", "FILE:LINE", text)
    text = re.sub(r"0x[0-9a-f]+", "0xN", text)
    text = re.sub(r"(maximum recursion depth exceeded).*", r"\1", text)  # the rest depends on the interpreter
    return re.sub(r"Function\.<locals>\.", "", text)
