"""The argument `layout` of functions that create tensors: none makes a dense tensor in place of a sparse one."""

import pytest

import cygrad as torch

DENSE_ONLY = {
    "rand": (3,),
    "randn": (3,),
    "randint": (3, (3,)),
    "randperm": (3,),
    "normal": (0.0, 1.0, (3,)),
    "full": ((3,), 1.0),
    "ones": (3,),
    "eye": (3,),
    "arange": (3,),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "empty_strided": ((3,), (1,)),
    "empty_permuted": ((3,), (0,)),
    "hann_window": (3,),
    "hamming_window": (3,),
    "blackman_window": (3,),
    "bartlett_window": (3,),
    "kaiser_window": (3,),
    "signal.windows.hann": (3,),
    "signal.windows.gaussian": (3,),
    "tril_indices": (3, 3),
    "triu_indices": (3, 3),
    "fft.fftfreq": (3,),
    "fft.rfftfreq": (3,),
    "ones_like": (torch.ones(3),),
    "empty_like": (torch.ones(3),),
    "full_like": (torch.ones(3), 2),
    "rand_like": (torch.ones(3),),
    "randn_like": (torch.ones(3),),
    "randint_like": (torch.ones(3), 5),
    "Tensor.new_ones": (torch.ones(3), (3,)),
    "Tensor.new_full": (torch.ones(3), (3,), 1),
    "Tensor.new_tensor": (torch.ones(3), [1]),
    "Tensor.new_empty_strided": (torch.ones(3), (3,), (1,)),
}
OF_ZEROS = {
    "zeros": ((2, 3),),
    "empty": ((2, 3),),
    "zeros_like": (torch.ones(2, 3),),
    "Tensor.new_zeros": (torch.ones(2, 3), (2, 3)),
    "Tensor.new_empty": (torch.ones(2, 3), (2, 3)),
}


def function(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", DENSE_ONLY)
def test_what_makes_dense_tensors_refuses_other_layouts(name):
    create, args = function(name), DENSE_ONLY[name]
    with pytest.raises(
        (NotImplementedError, RuntimeError, ValueError), match="SparseCPU|sparse layout|sparse types|strided"
    ):
        create(*args, layout=torch.sparse_coo)
    assert create(*args, layout=torch.strided).layout is torch.strided


@pytest.mark.parametrize("name", OF_ZEROS)
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_zeros_in_a_layout(name, layout):
    found = function(name)(*OF_ZEROS[name], layout=layout, dtype=torch.float64)
    assert found.layout is layout and found.shape == (2, 3) and found.dtype is torch.float64 and found._nnz() == 0


@pytest.mark.parametrize("name", [*DENSE_ONLY, *OF_ZEROS])
def test_what_is_no_layout(name):
    args = {**DENSE_ONLY, **OF_ZEROS}[name]
    # PyTorch's windows compare what they get with `strided`, and say so of anything else.
    kind = ValueError if name.startswith("signal.") else TypeError
    with pytest.raises(kind, match="layout|strided tensors only, got: sparse"):
        function(name)(*args, layout="sparse")
