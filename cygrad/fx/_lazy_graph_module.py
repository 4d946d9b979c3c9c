"""How passes make a GraphModule, so that programs may choose when its source is compiled."""

import contextlib
from collections.abc import Iterator
from typing import Any

from cygrad.fx.graph_module import GraphModule


class _LazyGraphModule(GraphModule):
    """Same as GraphModule, whose source is compiled at once here."""


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> Any:
    return (graph_module_cls or GraphModule)(*args, **kwargs)


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Has no effect: compiling the source takes little time."""
    yield
