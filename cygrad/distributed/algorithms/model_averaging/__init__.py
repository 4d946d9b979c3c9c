"""Averaging the parameters of all processes now and then, in place of their gradients."""

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.algorithms.model_averaging import averagers

__all__: list[str] = []

also_named(__name__, utils=averagers, hierarchical_model_averager=averagers)
