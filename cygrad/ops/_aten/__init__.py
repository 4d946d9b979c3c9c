"""Functions of `torch.ops.aten` that have no public name, or other arguments than the public function of that name."""

from importlib import import_module

from cygrad.ops._aten.table import own as functions

for _subject in (
    "activations",
    "attention",
    "backward",
    "conversions",
    "decompositions",
    "fourier",
    "images",
    "indexing",
    "lacking",
    "layers",
    "losses",
    "products",
    "queries",
    "random",
    "scaling",
):
    import_module(f"{__name__}.{_subject}")
globals().update(functions)
