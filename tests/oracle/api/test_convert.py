"""Conversions of tensors and predicates give PyTorch's results."""

import copy
import pickle

import pytest
from oracle.answers import check, lines

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def names(library):
    """A leaf, a number, and the result of an op."""
    x = library.ones(2, 3, requires_grad=True)
    return {"copy": copy, "pickle": pickle, "x": x, "s": library.tensor(2.5), "y": x * 2}


CONVERSIONS = """
torch.ones(2).item()
torch.ones(1,1).item()
torch.ones(0).item()
torch.tensor(True).item()
torch.tensor(1j).item()
float(torch.ones(2))
float(torch.ones(1))
float(torch.tensor(1j))
int(torch.tensor(2.7))
int(torch.tensor(float('nan')))
int(torch.tensor(float('inf')))
int(torch.ones(2))
int(torch.tensor(1j))
complex(torch.tensor(2.))
complex(torch.ones(2))
bool(torch.ones(2))
bool(torch.ones(0))
bool(torch.ones(1))
bool(torch.tensor(0.))
bool(torch.tensor(0j))
bool(torch.tensor(float('nan')))
[1,2,3][torch.tensor(1)]
[1,2,3][torch.tensor([1])]
[1,2,3][torch.tensor(1.)]
[1,2,3][torch.tensor(True)]
[1,2,3][torch.ones(2,dtype=torch.int64)]
list(range(torch.tensor(3)))
iter(torch.tensor(1.))
list(torch.ones(2,requires_grad=True))
list(torch.ones(2,1,requires_grad=True))[0].grad_fn
list(reversed(torch.arange(3)))
2 in torch.arange(3)
5 in torch.arange(3)
torch.tensor(1) in torch.arange(3)
"a" in torch.arange(3)
None in torch.arange(3)
torch.ones(2) in torch.ones(3,2)
torch.tensor(3.).tolist()
torch.ones(2,2).tolist()
torch.ones(0,2).tolist()
torch.ones(2,0).tolist()
x.numpy()
y.numpy()
x.numpy(force=True)
y.detach().numpy().dtype
np.asarray(x)
np.asarray(x.detach())
np.asarray(x.detach(), dtype=np.int32).dtype
x.__array__()
x.detach().__array__(np.float64).dtype
x.detach().__array__(dtype=None).dtype
copy.copy(x) is x
copy.copy(x).data_ptr() == x.data_ptr()
copy.copy(x).is_leaf
copy.copy(y)
copy.deepcopy(x).requires_grad
copy.deepcopy(y)
copy.deepcopy([x,x])[0] is copy.deepcopy([x,x])[1]
'grad' in dir(x)
'sin' in dir(x)
x.nelement()
x.is_floating_point()
x.is_complex()
x.element_size()
x.ndimension()
x.is_same_size(y)
x.get_device()
x.is_cuda
x.is_sparse
x.is_quantized
x.layout
x.names
x.is_mkldnn
x.is_meta
x.nbytes
x.itemsize
x.cpu() is x
x.type()
x.type(torch.float64).dtype
x.type('torch.DoubleTensor').dtype
x.type_as(torch.ones(1).double()).dtype
torch.is_tensor(x)
torch.is_tensor(3)
torch.is_storage(3)
torch.numel(x)
torch.numel(3)
torch.is_floating_point(x)
torch.is_floating_point(3)
torch.is_complex(x)
torch.is_nonzero(torch.tensor(1.))
torch.is_nonzero(x)
torch.is_same_size(x,y)
torch.finfo(torch.float32)
torch.finfo(torch.float16)
torch.finfo(torch.float64)
torch.finfo(torch.complex64)
torch.finfo(torch.int32)
torch.finfo()
torch.finfo(torch.float32).eps
torch.finfo(torch.float32).smallest_normal
torch.finfo(torch.float32).resolution
torch.finfo(torch.float32).dtype
torch.finfo(3)
torch.iinfo(torch.int32)
torch.iinfo(torch.uint8)
torch.iinfo(torch.bool)
torch.iinfo(torch.float32)
torch.iinfo(torch.int8).min
torch.finfo(torch.float32) == torch.finfo(torch.float32)
torch.result_type(x, 3)
torch.result_type(torch.ones(2,dtype=torch.int64), 3.5)
torch.result_type(3, 2.5)
torch.result_type(x, s.double())
torch.result_type(s, 1j)
torch.result_type("a", 1)
torch.result_type(1, x)
torch.can_cast(torch.double, torch.float)
torch.can_cast(torch.int, torch.bool)
torch.can_cast(torch.int, torch.uint8)
torch.can_cast(torch.int8, torch.uint8)
x.is_pinned()
x.__index__()
format(torch.tensor(2.5), '.3f')
format(torch.ones(2), '.3f')
f"{torch.tensor(2.5)}"
f"{torch.tensor(2.5,requires_grad=True):.2f}"
torch.tensor(3).__int__()
torch.ones(1,dtype=torch.uint8).item()
torch.ones(1,dtype=torch.float16).item()
torch.tensor(2**63,dtype=torch.uint64).item()
"""


@pytest.mark.parametrize("expression", lines(CONVERSIONS))
def test_conversions(expression):
    check(expression, names)
