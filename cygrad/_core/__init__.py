"""Recording and running the graph: tensors, nodes, the engine (layer L2)."""
