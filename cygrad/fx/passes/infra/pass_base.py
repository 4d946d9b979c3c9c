"""Base class of passes over GraphModules."""

import abc
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass returns: the module, and whether it has been changed.

    >>> import cygrad
    >>> from cygrad.fx.passes.infra.pass_base import PassResult
    >>> result = PassResult(cygrad.fx.symbolic_trace(cygrad.nn.ReLU()), modified=False)
    >>> result.modified
    False
    """

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` changes a module; `requires` and `ensures` check it before and after.

    >>> import cygrad
    >>> from cygrad.fx.passes.infra.pass_base import PassBase, PassResult
    >>> class WithoutDeadCode(PassBase):
    ...     def requires(self, graph_module):
    ...         graph_module.graph.lint()
    ...     def call(self, graph_module):
    ...         return PassResult(graph_module, graph_module.graph.eliminate_dead_code())
    ...     def ensures(self, graph_module):
    ...         graph_module.graph.lint()
    >>> WithoutDeadCode()(cygrad.fx.symbolic_trace(lambda x: x + 1)).modified
    False
    """

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Change the module, and return it with the answer whether it has changed."""

    def requires(self, graph_module: Any) -> None:  # noqa: B027 - a pass may do without
        """Raise an error if the module is not as the pass needs it."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027 - a pass may do without
        """Raise an error if the module is not as the pass should leave it."""
