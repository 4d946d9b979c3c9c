"""The docstring of every differentiable op states what it saves for its gradient."""

import re

from ops.calls import is_internal, public_function

import cygrad
from cygrad._core.graph.opdef import registry

PLACES = (cygrad, cygrad.nn.functional, cygrad.Tensor, cygrad.linalg, cygrad.special, cygrad.fft)


def docstrings(name):
    """The docstrings of all public functions for a row."""
    public = name.partition(".")[0]
    found = [getattr(place, public.removeprefix("linalg_"), None) for place in PLACES]
    return [f.__doc__ or "" for f in (*found, public_function(cygrad, name)) if f is not None]


def says_what_it_saves(name):
    said = " ".join(" ".join(docstrings(name)).split())
    if any(registry[name].saved_masks) and "." not in name:  # a variant may save what the op itself does not
        said = said.replace("Saves nothing. ", "")
    return re.search(r"\b[Ss]ave[sd]?\b", said) is not None


def test_ops_say_what_they_save():
    public = [name for name, row in registry.items() if row.differentiable and not is_internal(name)]
    names = [name for name in public if docstrings(name)]
    assert len(names) > 300
    assert [name for name in names if not says_what_it_saves(name)] == []
