"""Lazily imports the families whose ops training loops do not call in every step, on first use of one of their names.

`tools/make_stubs.py` extracts these names from the families and writes them to lazy_names.py.
"""

from functools import cache
from importlib import import_module

from cygrad._core.graph.internals import bind
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.lazy_names import FUNCTIONS, METHODS


class MethodOnFirstUse:
    """Placeholder in Tensor for a method; on first access it imports the method's family, which replaces it."""

    __slots__ = ("family", "name")

    def __init__(self, name, family):
        self.name, self.family = name, family

    def __get__(self, tensor, owner):
        import_module(self.family)
        if vars(Tensor)[self.name] is self:
            raise AttributeError(f"{self.family} has no method {self.name!r}, contrary to {METHODS!r}")
        return getattr(owner if tensor is None else tensor, self.name)


def families():
    """Return {function name: module that defines it}, and put placeholders for the methods into Tensor."""
    bind(
        {
            name: MethodOnFirstUse(name, module)
            for family, names in METHODS.items()
            for module in (f"cygrad._ops.{family}",)
            for name in names.split()
        }
    )
    functions: dict[str, str] = {}
    for family, names in FUNCTIONS.items():
        functions |= dict.fromkeys(names.split(), f"cygrad._ops.{family}")

    def import_row(name):
        if name in functions:
            import_module(functions[name])

    registry.finder = import_row
    registry.batching_rules = batching_rules
    registry.import_families = import_families
    return functions


@cache
def batching_rules():
    """Return the function that looks up the batching rule of an op; imports the rules of compiled ops."""
    for subject in ("elementwise", "indexing", "sums_and_products", "views"):
        import_module(f"cygrad._ops.base.batching.{subject}")
    return import_module("cygrad._ops.base.batching.rules").results


def import_families():
    """Import every family, including those whose functions are only in a submodule such as `nn.functional`."""
    from pkgutil import walk_packages  # its imports would make `import cygrad` slower

    for module in walk_packages(import_module("cygrad._ops").__path__, "cygrad._ops."):
        import_module(module.name)


def import_all():
    """Import all families, for code that inspects every op."""
    for family in sorted({*FUNCTIONS, *METHODS}):  # sorted: the same order in every process
        import_module(f"cygrad._ops.{family}")
