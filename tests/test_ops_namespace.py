"""Ops by the names of PyTorch's library; `tests/oracle/ops/test_aten.py` compares their results with PyTorch."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

aten = torch.ops.aten
M = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


def test_names():
    op = aten.add.Tensor
    assert aten.add is aten.add and op is aten.add.Tensor and op.overloadpacket is op._overloadpacket is aten.add
    assert (str(aten.add), repr(aten.add)) == ("aten.add", "<OpOverloadPacket(op='aten.add')>")
    assert (str(op), repr(op)) == ("aten.add.Tensor", "<OpOverload(op='aten.add', overload='Tensor')>")
    assert (op.name(), op.__name__, op.namespace, op._opname) == ("aten::add.Tensor", "add.Tensor", "aten", "add")
    assert op.__module__ == aten.add.__module__ == "torch._ops.aten"
    assert aten.add._qualified_op_name == "aten::add" and aten.mm.default.name() == "aten::mm"
    assert aten.add.overloads() == ["Tensor", "Scalar", "out", "Scalar_out"] and aten.sin_.overloads() == ["default"]
    assert [name for name in aten.any.overloads() if "out" not in name] == ["default", "dim", "dims"]
    assert {aten.add.Tensor: 1}[op] == 1 and aten.add.Scalar != op


LISTED = """
    _assert_async _assert_scalar _assert_tensor_metadata _fft_c2c _foreach_add_ _foreach_div _foreach_maximum_
    _is_all_true _local_scalar_dense _scaled_dot_product_cudnn_attention_backward
    _scaled_dot_product_flash_attention_backward _to_copy _unsafe_view any.dim bucketize.Tensor div.Tensor eq.Tensor
    fill_diagonal_ gt.Tensor masked_fill.Scalar mm.dtype mul.Scalar mul.Tensor randint.low remainder.Scalar
    repeat_interleave.self_int scatter_reduce.two searchsorted.Tensor slice.Tensor slice_copy.Tensor sub.Scalar
    sub.Tensor sym_constrain_range_for_size sym_size to.device to.dtype to.dtype_layout to.other where.self
"""


@pytest.mark.parametrize("name", LISTED.split())
def test_what_libraries_ask_for(name):
    packet, _, overload = name.partition(".")
    op = getattr(getattr(aten, packet), overload or "default")
    assert callable(op) and callable(op.op) and op.name() == f"aten::{name}"


def test_schemas():
    schema = aten.add.Tensor._schema
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "Tensor", False)
    assert str(schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    first, second, alpha = schema.arguments
    assert (first.name, second.name, alpha.name) == ("self", "other", "alpha")
    assert not first.has_default_value() and alpha.has_default_value() and alpha.default_value == 1
    assert alpha.kwarg_only and not second.kwarg_only and isinstance(first.type, torch.TensorType)
    assert [str(a.type) for a in aten.convolution.default._schema.arguments[2:4]] == ["Optional[Tensor]", "List[int]"]
    assert [r.name for r in aten.max.dim._schema.returns] == ["values", "indices"]
    slice_schema = aten.slice.Tensor._schema
    assert [a.name for a in slice_schema.arguments] == ["self", "dim", "start", "end", "step"]
    stride = aten.max_pool2d.default._schema.arguments[3]
    assert (stride.name, stride.default_value, stride.N) == ("padding", [0, 0], 2)
    dtype = aten.sum.dim_IntList._schema.arguments[3]
    assert (str(dtype.type), str(dtype.real_type)) == ("Optional[int]", "Optional[ScalarType]")


def test_what_ops_write_to():
    written = aten.add_.Tensor._schema
    assert written.is_mutable and written.arguments[0].is_write and not written.arguments[0].is_out
    assert written.arguments[0].alias_info.before_set == {"a"} and written.returns[0].alias_info.is_write
    out = aten.add.out._schema
    assert out.is_mutable and [a.name for a in out.arguments if a.is_out] == ["out"]
    assert aten.view.default.is_view and not aten.relu.default.is_view and not aten.relu_.default.is_view
    assert torch.Tag.pointwise in aten.add.Tensor.tags and torch.Tag.core in aten.mm.default.tags
    assert list(aten.relu._schemas) == ["", "out"]


def test_calls():
    assert aten.add.Tensor(M, M, alpha=2).tolist() == (M * 3).tolist()
    assert aten.mul.Scalar(self=M, other=2).tolist() == (M * 2).tolist()
    assert aten.slice.Tensor(M, 1, 0, 9223372036854775807, 2).tolist() == M[:, ::2].tolist()
    assert aten.slice.Tensor(M, 1, 1)._base is M
    assert aten.index.Tensor(M, [None, torch.tensor([2, 0])]).tolist() == M[:, [2, 0]].tolist()
    assert aten._to_copy.default(M, dtype=torch.float64).dtype is torch.float64
    assert aten._local_scalar_dense(M[0, 2]) == 3.0
    assert aten.linalg_vector_norm.default(M).item() == pytest.approx(np.linalg.norm(M.numpy()))
    out = torch.empty(2, 3)
    assert aten.add.out(M, 1, out=out) is out and out.tolist() == (M + 1).tolist()
    assert aten._foreach_add.List([M], [M])[0].tolist() == (M * 2).tolist()


BACKWARD = {
    "sigmoid_backward": (torch.sigmoid, lambda x, y: (y,)),
    "tanh_backward": (torch.tanh, lambda x, y: (y,)),
    "gelu_backward": (torch.nn.functional.gelu, lambda x, y: (x,)),
    "silu_backward": (torch.nn.functional.silu, lambda x, y: (x,)),
    "threshold_backward": (torch.relu, lambda x, y: (x, 0)),
    "leaky_relu_backward": (torch.nn.functional.leaky_relu, lambda x, y: (x, 0.01, False)),
    "elu_backward": (torch.nn.functional.elu, lambda x, y: (1.0, 1.0, 1.0, True, y)),
    "_softmax_backward_data": (lambda x: x.softmax(1), lambda x, y: (y, 1, torch.float32)),
    "_log_softmax_backward_data": (lambda x: x.log_softmax(1), lambda x, y: (y, 1, torch.float32)),
    "slice_backward": (lambda x: x[:, 0:3:2], lambda x, y: (list(x.shape), 1, 0, 3, 2)),
    "select_backward": (lambda x: x[1], lambda x, y: (list(x.shape), 0, 1)),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_are_those_of_the_engine(name):
    function, rest = BACKWARD[name]
    x = M.clone().requires_grad_()
    y = function(x)
    grad = torch.arange(1.0, y.numel() + 1).view(y.shape)
    (expected,) = torch.autograd.grad(y, x, grad)
    found = getattr(aten, name)(grad, *rest(x.detach(), y.detach()))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_that_are_recomputed_can_be_differentiated():
    x = M.clone().requires_grad_()
    (first,) = torch.autograd.grad(torch.nn.functional.gelu(x).sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad(first.sum(), x)
    (found,) = torch.autograd.grad(aten.gelu_backward(torch.ones_like(x), x).sum(), x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    assert not aten.gelu_backward(M, M).requires_grad


def test_products_in_another_dtype():
    half = M.half()
    for found in (
        aten.mm.dtype(half, half.t(), torch.float32),
        torch.ops.aten.bmm.dtype(half[None], half.t()[None], torch.float32)[0],
    ):
        assert found.dtype is torch.float32
        np.testing.assert_allclose(found.numpy(), M.numpy() @ M.numpy().T)


def test_what_does_not_exist():
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'foo'"):
        getattr(aten, "foo")  # noqa: B009
    with pytest.raises(AttributeError, match="The underlying op of 'aten.add' has no overload name 'foo'"):
        getattr(aten.add, "foo")  # noqa: B009
    with pytest.raises(AttributeError, match="'_OpNamespace' 'torchvision' object has no attribute 'nms'"):
        getattr(torch.ops.torchvision, "nms")  # noqa: B009
    with pytest.raises(OSError, match=r"Could not load this library: x.so"):
        torch.ops.load_library("x.so")
    assert not hasattr(torch.ops.quantized_decomposed, "quantize_per_tensor")


def test_kernels_of_gpus():
    with pytest.raises(NotImplementedError, match="Could not run 'aten::_scaled_dot_product_cudnn_attention_backward'"):
        aten._scaled_dot_product_cudnn_attention_backward(M)
    with pytest.raises(RuntimeError, match="softmax with half to float conversion is not supported on CPU"):
        torch._softmax(M, 1, True)


def test_checks():
    aten._assert_scalar(1, "no")
    with pytest.raises(RuntimeError, match="^why$"):
        aten._assert_scalar(0, "why")
    aten._assert_tensor_metadata(M, [2, 3], [3, 1], torch.float32, device="cpu", layout=torch.strided)
    for kwargs, text in [
        ({"size": [3]}, r"Tensor sizes mismatch! Expected: \[3\], Got: \[2, 3\]"),
        ({"dtype": torch.int64}, "Tensor dtype mismatch! Expected: Long, Got: float"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            aten._assert_tensor_metadata(M, **kwargs)


def test_conversions_of_indices():
    rows, starts = torch.tensor([0, 0, 2, 3]), torch.tensor([0, 2, 2, 3, 4, 4])
    assert torch._convert_indices_from_coo_to_csr(rows, 5).tolist() == starts.tolist()
    assert torch._convert_indices_from_coo_to_csr(rows.int(), 5, out_int32=True).dtype is torch.int32
    columns = torch.tensor([1, 3, 0, 2])
    found = torch._convert_indices_from_csr_to_coo(starts, columns)
    assert found.tolist() == [rows.tolist(), columns.tolist()]
    assert torch._convert_indices_from_csr_to_coo(starts, columns, transpose=True).tolist() == found.flip(0).tolist()
    batches = torch._convert_indices_from_csr_to_coo(
        torch.tensor([[0, 1, 2], [0, 0, 2]]), torch.tensor([[0, 1], [1, 0]])
    )
    assert batches.tolist() == [[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 0]]
    with pytest.raises(RuntimeError, match="Input is supposed to be a vector, but got 2 dimensional tensor."):
        torch._convert_indices_from_coo_to_csr(torch.tensor([[0]]), 3)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        torch._convert_indices_from_coo_to_csr(torch.tensor([0.0]), 3)


def test_casts():
    kinds = {"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64"}
    kinds |= {"Half": "float16", "Float": "float32", "Double": "float64"}
    for name, dtype in kinds.items():
        assert getattr(torch, f"_cast_{name}")(torch.tensor([1.0])).dtype is getattr(torch, dtype)


def test_samples_with_gradients():
    concentration = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
    generator = torch.Generator()
    for draw in (torch._standard_gamma, torch._sample_dirichlet):
        first, second = (draw(concentration, generator=generator.manual_seed(1)) for _ in range(2))
        assert first.tolist() == second.tolist() and (first > 0).all()
        (gradient,) = torch.autograd.grad((first * first).sum(), concentration)
        assert gradient.isfinite().all() and gradient.abs().sum() > 0
    assert torch._sample_dirichlet(concentration).sum().item() == pytest.approx(1)
    with pytest.raises(NotImplementedError, match="\"gamma_cpu\" not implemented for 'Long'"):
        torch._standard_gamma(torch.tensor([1]))
    with pytest.raises(
        TypeError, match=r"_standard_gamma\(\): argument 'input' \(position 1\) must be Tensor, not float"
    ):
        torch._standard_gamma(3.0)


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, lambda op: pickle.loads(pickle.dumps(op))])
def test_copies_of_an_op_are_the_op(take):
    for op in (torch.ops.aten.add, torch.ops.aten.add.Tensor):
        assert take(op) is op
    assert not hasattr(torch.ops.aten.add, "__foo__")


@pytest.mark.parametrize("op", [torch.ops.aten.add, torch.ops.aten.add.Tensor])
def test_values_that_stand_for_tensors_see_the_op(op):
    class Named:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs

    named = Named()
    assert op(named, 2, alpha=3) == (op, (named, 2), {"alpha": 3})
    assert op(torch.ones(2), other=named)[2] == {"other": named}


def test_the_namespace_is_in_the_module_of_ops():
    assert torch._ops.ops is torch.ops and torch._ops.OpOverload is type(aten.add.Tensor)


def test_overloads_refuse_out_unless_they_have_it():
    x, out = torch.ones(2), torch.zeros(2)
    with fails(RuntimeError, "Unknown keyword argument 'out' for operator 'aten::add'. Schema: aten::add.Tensor(..."):
        aten.add.Tensor(x, x, out=out)
    assert aten.add.out(x, x, out=out) is out and out.tolist() == [2, 2]
    for overload in (aten.xlogy.OutTensor, aten._scaled_dot_product_efficient_attention_backward.default):
        assert overload._takes_out
