"""The core (layer L2): tensors, graph nodes, recording of ops and the backward engine."""

from cygrad._library import later

graph_errors = later("cygrad._core.diagnostics.graph_errors")  # both are needed only when an error is raised
operators = later("cygrad._core.diagnostics.operators")
