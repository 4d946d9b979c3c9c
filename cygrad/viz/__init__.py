"""Graph visualization.

>>> import cygrad
>>> from cygrad import viz
>>> w = cygrad.tensor([1.0, 2.0], requires_grad=True)
>>> print(viz.graph((w * w).sum(), params={"w": w}).text())
output ()
└─ SumBackward0 ()
   └─ MulBackward0 (2,)
      ├─ w (2,)
      └─ w (2,)
"""

from cygrad.viz._picture import Graph, graph
from cygrad.viz._program import show

__all__ = ["Graph", "graph", "show"]
