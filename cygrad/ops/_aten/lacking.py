"""Functions that make what cygrad does not have: they raise as others of their kind do, and say what serves."""

import cygrad
from cygrad.ops._aten.table import aten


def _of_quantized(name):
    def function(*args, **kwargs):
        raise NotImplementedError(
            f"torch.{name}: cygrad has no quantized tensors\n  use float16 or bfloat16; `nn.utils` and `ao` say more"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raise NotImplementedError: there are no quantized tensors."
    return aten(function)


for _name in ("_make_per_channel_quantized_tensor", "_make_per_tensor_quantized_tensor"):
    _of_quantized(_name)


@aten
def _nested_view_from_buffer(self, nested_size, nested_strides, offsets):
    """Raise NotImplementedError: there are no nested tensors."""
    return cygrad.nested.nested_tensor(self)
