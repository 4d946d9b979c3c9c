"""What type checkers say of tensors: after `#` the type of `reveal_type`'s argument, or `error:` and part of a message.

Checked by test_types.py; nothing here is ever run.
"""

from typing import reveal_type

import numpy as np

import cygrad as torch
import cygrad.nn.functional as F

x = torch.ones(2, 3)

# -- operators, attributes, indices --
reveal_type(x + 1)  # Tensor
reveal_type(1 - x)  # Tensor
reveal_type(x @ x.mT)  # Tensor
reveal_type(x == 1)  # Tensor
reveal_type(-x)  # Tensor
reveal_type(x.grad)  # Tensor | None
reveal_type(x.shape)  # Size
reveal_type(x.shape[0])  # int
reveal_type(x.shape[1:])  # Size
reveal_type(x.dtype)  # dtype
reveal_type(x.device.type)  # str
reveal_type(x.requires_grad)  # bool
reveal_type(x[0, ..., None])  # Tensor
reveal_type([row for row in x])  # list[Tensor]
reveal_type(len(x))  # int
reveal_type(float(x))  # float
x.grad = None
x.requires_grad = True
x[x > 0] = 1
np.exp(np.asarray(x))

# -- methods --
reveal_type(x.sum())  # Tensor
reveal_type(x.sum(0, keepdim=True))  # Tensor
reveal_type(x.sum(axis=0))  # Tensor
reveal_type(x.max())  # Tensor
reveal_type(x.max(x))  # Tensor
reveal_type(x.max(1).values)  # Tensor
reveal_type(x.max(dim=1).indices)  # Tensor
reveal_type(x.size())  # Size
reveal_type(x.size(0))  # int
reveal_type(x.item())  # int | float
reveal_type(x.numpy())  # ndarray[Any, Any]
reveal_type(x.add_(1))  # Tensor
reveal_type(x.to("cuda"))  # Tensor
reveal_type(x.to(torch.float64, copy=True))  # Tensor
reveal_type(x.view(-1, 2))  # Tensor
reveal_type(x.view((3, 2)))  # Tensor
reveal_type(x.split(1))  # tuple[Tensor, ...]
reveal_type(x.nonzero(as_tuple=True))  # tuple[Tensor, ...]
reveal_type(x.type())  # str
reveal_type(x.allclose(x))  # bool
reveal_type(x.backward())  # None
x.register_hook(lambda grad: grad * 2).remove()

# -- functions --
reveal_type(torch.zeros((2, 3), dtype=torch.int64))  # Tensor
reveal_type(torch.arange(0, 1, 0.1))  # Tensor
reveal_type(torch.where(x > 0, x, 0.0))  # Tensor
reveal_type(torch.where(x > 0))  # tuple[Tensor, ...]
reveal_type(torch.topk(x, 2).values)  # Tensor
reveal_type(torch.linalg.svd(x).Vh)  # Tensor
reveal_type(torch.linalg.slogdet(x).sign)  # Tensor
reveal_type(torch.fft.rfft(x, norm="ortho"))  # Tensor
reveal_type(torch.special.erf(x))  # Tensor
reveal_type(F.relu(x))  # Tensor
reveal_type(F.max_pool2d(x, 2))  # Tensor
reveal_type(F.max_pool2d(x, 2, return_indices=True))  # tuple[Tensor, Tensor]
reveal_type(torch.finfo(torch.float32).eps)  # float
reveal_type(torch.get_num_threads())  # int

# -- mistakes --
x.bacwkard()  # error: "Tensor" has no attribute "bacwkard"; maybe "backward"?
x.sum(dimension=1)  # error: Unexpected keyword argument "dimension"
x.sum("rows")  # error: incompatible type "str"
x.note = 1  # error: "Tensor" has no attribute "note"
x.shape = 1  # error: Property "shape" defined in "Tensor" is read-only
x["rows"]  # error: Invalid index type "str"
x + "a"  # error: Unsupported operand types for + ("Tensor" and "str")
x.max(1).value  # error: has no attribute "value"
F.relu("a")  # error: Argument 1 to "relu" has incompatible type "str"; expected "Tensor"
torch.relux(x)  # error: has no attribute "relux"
torch.zeros(2, dtype="float")  # error: No overload variant of "zeros"
torch.cat(x, x)  # error: Argument 1 to "cat" has incompatible type "Tensor"; expected "Sequence[Tensor]"
torch.softmax(x)  # error: Missing positional argument "dim"
torch.topk(x, k="2")  # error: Argument "k" to "topk" has incompatible type "str"; expected "int"
