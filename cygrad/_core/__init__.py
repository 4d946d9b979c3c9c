"""Recording and running the graph: tensors, nodes, the engine (layer L2)."""

from cygrad._library import later

faults = later("cygrad._core.diagnostics.graph_errors")  # which errors alone need
