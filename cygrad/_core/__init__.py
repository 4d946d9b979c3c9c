"""The core (layer L2): tensors, graph nodes, recording of ops and the backward engine."""

from cygrad._library import later

faults = later("cygrad._core.diagnostics.graph_errors")  # needed only when an error is raised
