"""The old name of `torch.distributed.tensor`."""

import sys

from cygrad.distributed import tensor
from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.tensor import *
from cygrad.distributed.tensor import DeviceMesh as DeviceMesh
from cygrad.distributed.tensor import init_device_mesh as init_device_mesh

__all__ = tensor.__all__

for _name in ("api", "device_mesh", "experimental", "placement_types"):
    also_named(__name__, **{_name: sys.modules.get(f"{tensor.__name__}.{_name}") or getattr(tensor, _name, tensor)})
