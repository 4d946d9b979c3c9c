"""Calls of `torch.ops.aten` give what PyTorch gives, for each overload's own arguments."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def names(library):
    """What the expressions name besides the library."""
    grid = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
    image = np.sin(np.arange(2 * 4 * 6 * 6, dtype=np.float32)).reshape(2, 4, 6, 6)
    tensor = library.tensor
    return {
        "a": library.ops.aten,
        "x": tensor(grid),
        "m": tensor(grid[0]),
        "v": tensor(grid[0, 0]),
        "i": tensor([2, 0, 1]),
        "b": tensor(grid[0] > 0),
        "c": tensor(grid[0] + 1j * grid[1]),
        "im": tensor(image),
        "line": tensor(image[:, :, 0]),
        "vol": tensor(image.reshape(2, 2, 2, 6, 6)),
        "w": tensor(np.cos(np.arange(3 * 4 * 9, dtype=np.float32)).reshape(3, 4, 3, 3)),
        "sq": tensor(grid[0] ** 2),
        "mu": tensor(grid[0] ** 2).mean(1, True),
        "rs": tensor(grid[0] ** 2).var(1, False, True).rsqrt(),
        "plain": ([1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        "places": library.nn.functional.max_pool2d(tensor(image), 2, return_indices=True)[1],
        "attended": library.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[tensor(image)] * 3),
        "z": tensor(grid[0]).requires_grad_(),
        "f32": library.float32,
        "f64": library.float64,
        "library": library,
    }


CASES = """
a.add(m, m)
a.add.Tensor(m, m, alpha=2)
a.add.Tensor(self=m, other=1)
a.add.Scalar(m, 2)
a.add_.Tensor(m.clone(), m)
a.add.out(m, m, out=m.clone())
a.sub.Scalar(m, 2)
a.sub.Tensor(m, m, alpha=3)
a.rsub.Scalar(m, 2)
a.mul.Tensor(m, v)
a.mul.Scalar(m, 3)
a.div.Tensor(m, 3)
a.div.Tensor_mode(m, m + 5, rounding_mode="floor")
a.div.Scalar(m, 3)
a.pow.Tensor_Scalar(m, 2)
a.pow.Tensor_Tensor(m.abs(), m)
a.pow.Scalar(2, m)
a.remainder.Scalar(m, 0.7)
a.fmod.Tensor(m, v)
a.floor_divide.default(m, m + 3)
a.eq.Tensor(m, v)
a.eq.Scalar(m, 1)
a.gt.Tensor(m, v)
a.ge.Scalar(m, 0)
a.bitwise_and.Tensor(b, b)
a.logical_not.default(b)
a.where.self(b, m, -m)
a.where.ScalarOther(b, m, 2.0)
a.clamp.default(m, -1, 1)
a.clamp.Tensor(m, v, v + 1)
a.clamp_min.default(m, 0)
a.maximum.default(m, v)
a.slice.Tensor(x, 1, 1, 9)
a.slice.Tensor(x, 2, 0, 9223372036854775807, 2)
a.slice.Tensor(x)
a.slice.Tensor(x, -1, -3, -1)
a.slice_copy.Tensor(x, 1, 0, 2)
a.slice_scatter.default(m, v.view(1, 4), 0, 1, 2)
a.slice_backward(v.view(1, 4), [3, 4], 0, 1, 2, 1)
a.select.int(x, 1, 2)
a.select_backward(v, [3, 4], 0, 1)
a.select_scatter.default(m, v, 0, 1)
a.diagonal_backward(v[:3], [3, 4], 0, 0, 1)
a.unfold_backward(x.unfold(2, 2, 1), [2, 3, 4], 2, 2, 1)
a.transpose.int(x, 0, 1)
a.permute.default(x, [2, 0, 1])
a.t.default(m)
a.view.default(x, [6, 4])
a._unsafe_view.default(x, [4, 6])
a.reshape.default(x, [4, 6])
a._reshape_alias(m, [2, 2], [1, 2])
a._reshape_copy(m, [4, 3])
a.expand.default(v, [2, 4])
a.squeeze.dim(v.view(1, 4), 0)
a.squeeze.dims(v.view(1, 4, 1), [0, 2])
a.unsqueeze.default(v, 0)
a.alias.default(m)
a.detach.default(m)
a.lift_fresh_copy(m)
a.split.Tensor(x, 2, 2)
a.split_with_sizes.default(x, [1, 2], 1)
a.unbind.int(m, 1)
a.cat.default([m, m], 1)
a.stack.default([v, v])
a.index.Tensor(m, [i])
a.index.Tensor(x, [None, i])
a.index.Tensor(x, [None, i, i])
a._unsafe_index.Tensor(x, [None, None, i])
a.index_put.default(m, [i], v)
a.index_put.default(m, [i, i], v[:3], True)
a.index_put.default(x, [None, i], v)
a.index_put.default(x, [None, i], v, True)
a.index_put_.default(m.clone(), [i], v)
a._unsafe_index_put.default(x, [None, i], v)
a.index_select.default(m, 0, i)
a.index_select_backward(m[i], [3, 4], 0, i)
a.gather.default(m, 0, i.view(1, 3))
a.scatter.src(m, 0, i.view(1, 3), m)
a.scatter.value(m, 0, i.view(1, 3), 5.0)
a.scatter_add.default(m, 0, i.view(1, 3), m)
a.scatter_reduce.two(m, 0, i.view(1, 3), m, "amax", include_self=False)
a.masked_fill.Scalar(m, b, 7)
a.masked_fill.Tensor(m, b, v[0])
a.masked_select.default(m, b)
a.nonzero.default(b)
a.bucketize.Tensor(m, v)
a.bucketize.Scalar(0.1, v, right=True)
a.searchsorted.Tensor(v, m, right=True)
a.searchsorted.Scalar(v, 0.5)
a.repeat_interleave.self_int(m, 2, 1)
a.repeat_interleave.Tensor(i)
a.repeat.default(v, [2, 2])
a.fill_diagonal_(m.clone(), 1.0)
a.fill.Scalar(m, 3)
a.copy.default(m, v)
a.copy_.default(m.clone(), v)
a.to.dtype(m, f64)
a.to.device(m, "cpu", f64)
a.to.dtype_layout(m, dtype=f64, layout=library.strided, device="cpu")
a.to.other(i, m)
a._to_copy.default(m)
a._to_copy.default(m, dtype=f64)
a._to_copy.default(im, memory_format=library.channels_last).stride()
a._cast_Long(m)
a._cast_Double(i, False)
library._cast_Float(i)
library._cast_Byte(i)
a.clone.default(m, memory_format=library.contiguous_format)
a._local_scalar_dense.default(v[0])
a.item.default(v[0])
a.sym_size.int(x, 1)
a.sym_size.default(x)
a.sym_stride.int(x, 0)
a.sym_numel.default(x)
a.sym_storage_offset.default(m[1])
a.is_non_overlapping_and_dense(m.t())
a.is_non_overlapping_and_dense(m[:, :2])
a._is_all_true.default(b)
a._is_any_true.default(b)
a._assert_scalar(1, "no")
a._assert_scalar(0, "why")
a._assert_async.msg(b[0, 0], "why")
a._assert_async.default(b[2, 3])
a._assert_tensor_metadata(m, [3, 4], [4, 1], f32)
a._assert_tensor_metadata(m, dtype=f64)
a._assert_tensor_metadata(m, [3, 5])
a.sym_constrain_range_for_size(3)
a.any.default(b)
a.any.dim(b, 1)
a.any.dims(b, [0, 1])
a.all.dim(b, 0, True)
a.sum.default(m)
a.sum.dim_IntList(m, [1], True)
a.sum.dim_IntList(i, [0], dtype=f64)
a.mean.dim(m, [0])
a.prod.dim_int(m, 1)
a.var.correction(m, [1], correction=0)
a.std.dim(m, [1], False)
a.var_mean.correction(m, [0], correction=1, keepdim=True)
a.amax.default(m, [1])
a.max.dim(m, 1)
a.max.default(m)
a.max.other(m, v)
a.min.dim(m, 0, True)
a.argmax.default(m, 1)
a.norm.ScalarOpt_dim(m, 2, [1])
a.norm.Scalar(m, 1)
a.cumsum.default(m, 1)
a.sort.default(m, 1, True)
a.sort.stable(m, stable=True, dim=1)
a.topk.default(v, 2)
a.logsumexp.default(m, [1])
a._softmax.default(m, 1, False)
a._log_softmax.default(m, 1, False)
a._softmax.default(m, 1, True)
a._safe_softmax.default(m.masked_fill(b, -float("inf")), 1)
a.softmax.int(m, 1)
a._softmax_backward_data(m, m.softmax(1), 1, f32)
library._softmax_backward_data(m, m.softmax(1), 1, f32)
library._log_softmax_backward_data(m, m.log_softmax(1), 1, f32)
a._log_softmax_backward_data.default(m, m.log_softmax(1), 1, f32)
a.mm.default(m, m.t())
a.bmm.default(x, x.mT)
a.addmm.default(v[:3], m, m.t(), beta=2, alpha=3)
a._addmm_activation(v[:3], m, m.t())
a._addmm_activation(v[:3], m, m.t(), use_gelu=True)
a.linear.default(m, m, v[:3])
a.matmul.default(x, v)
a.dot.default(v, v)
a.linalg_vector_norm.default(m, 2, [1])
a.linalg_inv_ex.default(m[:, :3] + library.eye(3))
a.linalg_det.default(m[:, :3] + library.eye(3))
a.fft_fft.default(v)
a._fft_c2c.default(c, [1], 0, True)
a._fft_c2c.default(c, [0, 1], 1, False)
a._fft_c2c.default(c, [1], 2, True)
a._fft_c2c.default(c, [1], 2, False)
a._fft_r2c.default(m, [1], 2, True)
a._fft_r2c.default(m, [1], 0, False)
a._fft_c2r.default(c, [1], 2, 6)
a._fft_c2r.default(c, [1], 0, 6)
a.special_erf.default(v)
a.special_xlogy.default(v, v.abs())
a.gelu.default(v)
a.gelu.default(v, approximate="tanh")
a.gelu_.default(v.clone())
a.silu.default(v)
a.silu_.default(v.clone())
a.mish.default(v)
a.hardtanh.default(v, -0.5, 0.5)
a.hardswish.default(v)
a.hardsigmoid.default(v)
a.relu6.default(v)
a.elu.default(v)
a.elu.default(v, 2.0, 3.0, 0.5)
a.elu_.default(v.clone(), 2.0)
a.softplus.default(v, 2, 10)
a.glu.default(v)
a.log_sigmoid_forward.default(v)[0]
a.leaky_relu.default(v, 0.1)
a.threshold.default(v, 0.5, 7)
a.relu.default(v)
a.sigmoid_backward.default(v, v.sigmoid())
a.tanh_backward.default(v, v.tanh())
a.threshold_backward.default(v, v, 0.5)
a.gelu_backward.default(v, v)
a.gelu_backward.default(v, v, approximate="tanh")
a.silu_backward.default(v, v)
a.mish_backward.default(v, v)
a.hardtanh_backward.default(v, v, -1.5, 1.5)
a.hardswish_backward.default(v, v)
a.hardsigmoid_backward.default(v, v)
a.hardshrink_backward.default(v, v, 1.5)
a.softshrink_backward.default(v, v, 1.5)
a.leaky_relu_backward.default(v, v, 0.1, False)
a.elu_backward.default(v, 1.0, 2.0, 3.0, False, v)
a.elu_backward.default(v, 1.5, 2.0, 1.0, True, v)
a.softplus_backward.default(v, v, 2, 10)
a.glu_backward.default(v[:2], v, 0)
a.log_sigmoid_backward.default(v, v, a.log_sigmoid_forward(v)[1])
a.logit_backward.default(v, v.sigmoid(), None)
a.native_dropout_backward.default(v, b[2], 2.0)
a.native_dropout.default(v, 0.5, False)
a.native_dropout.default(v, 0.0, True)
a.native_dropout.default(v, 1.0, True)
a.dropout.default(v, 0.5, False)
a.mse_loss.default(m, v)
a.mse_loss.default(m, m * 2, 2)
a.mse_loss.default(m, m * 2, 0)
a.l1_loss.default(m, m * 2, reduction=2)
a.smooth_l1_loss.default(m, m * 2, 1, 0.5)
a.huber_loss.default(m, m * 2, 2, 0.5)
a.binary_cross_entropy.default(m.sigmoid(), b.float(), None, 2)
a.binary_cross_entropy_with_logits.default(m, b.float(), None, None, 1)
a.nll_loss.default(m, i, None, 2)
a.nll_loss_forward.default(m, i, v.abs(), 1, -100)
a.nll_loss_forward.default(m, i, None, 2, 1)
a.nll_loss_forward.default(m, i, None, 0, -100)
a.nll_loss_backward.default(library.tensor(2.0), m, i, v.abs(), 1, -100, library.tensor(3.0))
a.cross_entropy_loss.default(m, i, None, 1, -100, 0.1)
a.multi_margin_loss.default(m, i, 2, 0.5)
a.soft_margin_loss.default(m, m.sign())
a.kl_div.default(m, m.abs(), 2)
a.mse_loss_backward.default(m, m, m * 2, 0)
a.mse_loss_backward.default(library.tensor(2.0), m, m * 2, 1)
a.smooth_l1_loss_backward.default(library.tensor(2.0), m, m * 2, 1, 0.5)
a.huber_loss_backward.default(library.tensor(2.0), m, m * 2, 2, 0.5)
a.binary_cross_entropy_backward.default(library.tensor(2.0), m.sigmoid(), b.float(), None, 1)
a.embedding.default(m, i)
a.embedding_dense_backward.default(m, i, 5, -1, False)
a.embedding_dense_backward.default(m, i, 5, 2, False)
a.one_hot.default(i, 4)
a.native_layer_norm.default(m, [4], v, v, 1e-5)
a.native_layer_norm_backward(m, sq, [4], mu, rs, v, v, [True, True, True])
a.native_layer_norm_backward(m, sq, [4], mu, rs, None, None, [True, False, False])[0]
a.native_group_norm.default(im, v, v, 2, 4, 36, 2, 1e-5)
a.native_group_norm_backward(im, im * im, v.view(2, 2), v.view(2, 2) + 3, v, 2, 4, 36, 2, [True, True, True])
a.native_batch_norm.default(im, v, v, None, None, True, 0.1, 1e-5)
a._native_batch_norm_legit.no_stats(im, v, v, True, 0.1, 1e-5)
a._native_batch_norm_legit.default(im, v, v, v * 0, v.abs(), True, 0.1, 1e-5)
a._native_batch_norm_legit_no_training.default(im, v, v, v * 0, v.abs(), 0.1, 1e-5)[0]
a.native_batch_norm_backward(im, im * im, v, None, None, v, v + 3, True, 1e-5, [True, True, True])
a.native_batch_norm_backward(im, im * im, v, v, v.abs(), None, None, False, 1e-5, [True, True, True])
a.batch_norm.default(im, v, v, v, v.abs(), False, 0.1, 1e-5, False)
a.layer_norm.default(m, [4], v, v)
a.convolution.default(im, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
a._convolution.default(im, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1, False, False, True, True)
a._convolution_mode(im, w, None, [1, 1], "same", [1, 1], 1)
a.conv2d.default(im, w)
a.convolution_backward.default(im[:, :3, :4, :4], im, w, [3], *plain, [True, True, True])
a.convolution_backward.default(im[:, :3, :4, :4], im, w, None, *plain, [False, True, False])[1]
a.max_pool2d_with_indices.default(im, [2, 2])
a.max_pool2d_with_indices_backward(im[..., :3, :3], im, [2, 2], [2, 2], [0, 0], [1, 1], False, places)
a.avg_pool2d.default(im, [2, 2])
a.avg_pool2d.default(im, [3, 3], [2, 2], [1, 1], True, False)
a.avg_pool2d_backward.default(im[..., :3, :3], im, [2, 2], [], [0, 0], False, True, None)
a.avg_pool3d.default(vol, [2, 2, 2])
a.avg_pool3d_backward.default(vol[..., :1, :3, :3], vol, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)
a._adaptive_avg_pool2d.default(im, [2, 3])
a.adaptive_avg_pool2d.default(im, [2, 3])
a._adaptive_avg_pool2d_backward.default(im[..., :2, :3], im)
a._adaptive_avg_pool3d_backward.default(vol[..., :1, :2, :3], vol)
a.im2col.default(im, [2, 2], [1, 1], [0, 0], [2, 2])
a.col2im.default(a.im2col.default(im, [2, 2], [1, 1], [0, 0], [2, 2]), [6, 6], [2, 2], [1, 1], [0, 0], [2, 2])
a.upsample_nearest1d.default(line, [9])
a.upsample_nearest2d.default(im, [9, 8])
a.upsample_nearest2d.default(im, [9, 9], 1.5, 1.5)
a.upsample_nearest2d.vec(im, None, [2.0, 2.0])
a.upsample_nearest2d_backward.default(im, [6, 6], [2, 4, 3, 3])
a.upsample_bilinear2d.default(im, [9, 8], False)
a.upsample_bilinear2d.vec(im, [9, 8], True, None)
a.upsample_bilinear2d_backward.default(im, [6, 6], [2, 4, 3, 4], True)
a.upsample_bicubic2d.default(im, [9, 8], False)
a.upsample_linear1d.default(line, [9], True)
a.upsample_trilinear3d.default(vol, [4, 3, 2], False)
a._upsample_nearest_exact2d.default(im, [9, 8])
a.reflection_pad2d.default(im, [1, 2, 2, 1])
a.reflection_pad1d_backward.default(line, line[..., :4], [1, 1])
a.replication_pad2d.default(im, [1, 2, 2, 1])
a.replication_pad3d.default(vol, [1, 1, 1, 1, 1, 1])
a.replication_pad2d_backward.default(im, im[..., :4, :4], [1, 1, 1, 1])
a.constant_pad_nd.default(m, [1, 1], 2.0)
a.pad.default(m, [1, 1], "constant", 2.0)
a._pad_enum(line, [1, 1], 1)
a.pixel_shuffle.default(im, 2)
a.norm_except_dim(x, 2, 0)
a.norm_except_dim(x, 2, -1)
a._weight_norm(x, x[:, :1, :1], 0)
library._weight_norm(x, x[:, :1, :1], 0)
a._int_mm.default(m.to(torch.int8), m.t().to(torch.int8))
library._int_mm(m.to(torch.int8), m.t().to(torch.int8))
a._cdist_forward(m, m + 1, 2.0, None)
a._cdist_forward(m, m + 1, 1.0, 2)
a._pdist_forward(m, 2.0)
a._euclidean_dist(m, m + 1)
a._trilinear(m, m, m, [], [], [], [1])
a._unique2.default(i, True, True, True)
a._unique2.default(i)
a.unique_dim.default(m, 0, True, True, True)
a.unique_dim.default(m, 0)
a.unique_dim_consecutive.default(m, 0, True, True)
a.unique_consecutive.default(i, True, True)
a._shape_as_tensor(x)
library._shape_as_tensor(x)
a._reshape_from_tensor(m, library.tensor([4, 3]))
a._dim_arange(x, 1)
a.full.default([2, 2], 3.0)
a.full_like.default(m, 3)
a.zeros.default([2, 3], dtype=f64)
a.arange.default(4)
a.arange.start(1, 4)
a.arange.start_step(1, 9, 2)
a.eye.m(2, 3)
a.new_zeros.default(m, [2])
a.new_empty_strided(m, [2, 2], [1, 2]).stride()
a.empty.memory_format([2, 2]).shape
a.scalar_tensor.default(2.0)
a.linspace.default(0, 1, 5)
[library.manual_seed(0), a.bernoulli.p(m, 0.5)][1]
[library.manual_seed(0), a.uniform(m, 0.0, 2.0)][1]
[library.manual_seed(0), a.normal_functional(m, 1.0, 2.0)][1]
[library.manual_seed(0), a.exponential(m)][1]
[library.manual_seed(0), a.randint.low(2, 9, [4])][1]
[library.manual_seed(0), a.randn.default([4])][1]
[library.manual_seed(0), a.native_dropout.default(im, 0.5, True)][1]
a._scaled_dot_product_flash_attention_for_cpu(im, im, im)
a._scaled_dot_product_flash_attention_for_cpu(im, im, im, 0.0, True)
a._scaled_dot_product_flash_attention_for_cpu(im, im, im, attn_mask=im[0, 0])[0]
a._scaled_dot_product_attention_math(im, im, im)
a._scaled_dot_product_attention_math(im, im, im, None, 0.0, True)[0]
a._scaled_dot_product_flash_attention_for_cpu_backward(im, im, im, im, *attended, 0.0, False)
a.trace_backward(library.tensor(2.0), [3, 4])
a._conj(c)
a._conj_physical(c)
a.matrix_H(c)
a.numpy_T(m)
library.segment_reduce(v, "sum", lengths=i)
library.segment_reduce(m, "max", lengths=i)
library.segment_reduce(m, "mean", lengths=i, initial=1.5)
library.segment_reduce(m, "min", offsets=library.tensor([0, 1, 3]))
library.segment_reduce(x, "prod", lengths=i.expand(2, 3), axis=1)
library.segment_reduce(m, "sum", lengths=i - 1)
library.segment_reduce(m, "foo", lengths=i)
library.segment_reduce(m, "sum")
library.segment_reduce(i, "sum", lengths=i)
library.autograd.grad(library.segment_reduce(z, "prod", lengths=i).sum(), z)
library.autograd.grad(library.segment_reduce(z, "max", lengths=i, initial=0.0).sum(), z)
library.autograd.grad(library.segment_reduce(z, "mean", lengths=i, initial=0.5).sum(), z)
library._convert_indices_from_coo_to_csr(library.tensor([0, 0, 2, 3]), 5)
library._convert_indices_from_coo_to_csr(library.tensor([0, 0, 2, 3]), 5, out_int32=True)
library._convert_indices_from_coo_to_csr(library.tensor([[0]]), 5)
library._convert_indices_from_csr_to_coo(library.tensor([0, 2, 2, 3]), library.tensor([0, 1, 2]), transpose=True)
library._convert_indices_from_csr_to_coo(library.tensor([[0, 1, 2], [0, 0, 2]]), library.tensor([[0, 1], [1, 0]]))
library._grouped_mm(library.ones(2, 3, 4), library.ones(2, 4, 8))
library.nn.functional.grouped_mm(m, library.ones(2, 4, 8), offs=library.tensor([1, 3], dtype=library.int32))
library.nn.functional.grouped_mm(m, library.ones(2, 4, 8))
[library.manual_seed(0), library._standard_gamma(v.abs())][1]
library._standard_gamma(v.abs(), library.Generator().manual_seed(3))
library.cond(True, library.sin, library.cos, (v,))
library.while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y * 2), (library.tensor(0), v))
a._foreach_add.List([m], [m], alpha=2)
a._foreach_add.Scalar([m], 2)
a._foreach_div.ScalarList([m], [2.0])
"""
LINES = [line for line in CASES.splitlines() if line]


def flat(value):
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (tuple, list)) else [value]


def outcome(library, expression):
    try:
        with np.errstate(all="ignore"):
            return flat(eval(expression, {"torch": library, **names(library)}))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return [type(error).__mro__[-3].__name__, str(error).partition("\n")[0]]


@pytest.mark.parametrize("expression", LINES)
def test_gives_what_pytorch_gives(expression):
    ours, theirs = outcome(cygrad, expression), outcome(torch, expression)
    assert len(ours) == len(theirs), ours
    for one, other in zip(ours, theirs):
        if isinstance(other, torch.Tensor):
            assert isinstance(one, cygrad.Tensor), one
            assert (str(one.dtype), tuple(one.shape)) == (str(other.dtype), tuple(other.shape))
            one, other = (each.detach().resolve_conj().numpy() for each in (one, other))
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
        else:
            assert str(one) == str(other)


def test_the_table_of_schemas():
    """`cygrad/ops/schemas.txt` is what PyTorch says of all ops that have a name here."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, root / "tools" / "record_schemas.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_schemas():
    """All parts of the schemas are read as PyTorch reads them."""
    from cygrad.ops._schema_table import _lines

    wrong = []
    for name, overloads in _lines().items():
        for overload in overloads:
            ours, theirs = (getattr(getattr(lib.ops.aten, name), overload)._schema for lib in (cygrad, torch))
            if described(ours) != described(theirs):
                wrong.append((described(ours), described(theirs)))
    assert wrong == []


def described(schema):
    parts = [str(schema), schema.name, schema.overload_name, schema.is_mutable, schema._is_view_op()]
    for each in [*schema.arguments, *schema.returns]:
        info = each.alias_info
        default = each.default_value if isinstance(each.default_value, (bool, int, list, str)) else None
        parts.append((each.name, str(each.type), str(each.real_type), each.N, each.kwarg_only, each.is_out, default))
        parts.append(info and (set(info.before_set), set(info.after_set), info.is_write))
    return parts


def test_own_functions():
    """Each function that only this library has exists in PyTorch's, and in the package where PyTorch has it there."""
    from cygrad.ops import _aten

    names = {*_aten.functions}
    assert [name for name in names if not hasattr(torch.ops.aten, name)] == []
    public = [name for name in names if callable(getattr(torch, name, None))]
    assert [name for name in public if not hasattr(cygrad, name)] == []


def test_descriptions():
    for name in ("add.Tensor", "mm.default", "sum.dim_IntList"):
        packet, _, overload = name.partition(".")
        ours, theirs = (getattr(getattr(lib.ops.aten, packet), overload) for lib in (cygrad, torch))
        for attribute in ("__name__", "namespace", "_opname", "_overloadname"):
            assert getattr(ours, attribute) == getattr(theirs, attribute)
        assert (str(ours), repr(ours), ours.name()) == (str(theirs), repr(theirs), theirs.name())
        for attribute in ("name", "overload_name", "is_mutable"):
            assert getattr(ours._schema, attribute) == getattr(theirs._schema, attribute)
    assert json.dumps(cygrad.ops.aten.any.overloads())
