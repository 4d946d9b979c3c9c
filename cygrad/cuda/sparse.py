"""Legacy types of sparse tensors on a GPU, which can be named only.

>>> import cygrad
>>> isinstance(cygrad.ones(2), cygrad.cuda.sparse.FloatTensor)
False
"""

from cygrad._ops.creation.legacy_types import types_on_gpu
from cygrad.backends._absent import class_refusing

__all__ = sorted(types_on_gpu.keys() - {"BoolTensor"})

for _name in __all__:
    globals()[_name] = class_refusing(
        __name__,
        _name,
        TypeError,
        f"type torch.cuda.sparse.{_name} not available. Torch not compiled with CUDA enabled.",
    )
