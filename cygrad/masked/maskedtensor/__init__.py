"""Tensors with a mask of their own: `MaskedTensor`, and the ops that it answers."""

from cygrad.masked.maskedtensor.binary import _apply_native_binary as _apply_native_binary
from cygrad.masked.maskedtensor.binary import _is_native_binary as _is_native_binary
from cygrad.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from cygrad.masked.maskedtensor.creation import as_masked_tensor, masked_tensor
from cygrad.masked.maskedtensor.passthrough import _apply_pass_through_fn as _apply_pass_through_fn
from cygrad.masked.maskedtensor.passthrough import _is_pass_through_fn as _is_pass_through_fn
from cygrad.masked.maskedtensor.reductions import _apply_reduction as _apply_reduction
from cygrad.masked.maskedtensor.reductions import _is_reduction as _is_reduction
from cygrad.masked.maskedtensor.unary import _apply_native_unary as _apply_native_unary
from cygrad.masked.maskedtensor.unary import _is_native_unary as _is_native_unary

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
