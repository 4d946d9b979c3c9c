"""Checks the dtype of `out=` for ops where PyTorch requires more than that the result can be converted.

Rows state the texts of the errors, or words for texts that several rows share: `out_dtype=` if `out` must have exactly
the dtype of the result, `out_castable=` if the result must be convertible and the usual text does not apply. Rows that
have both require the same dtype. A tuple has one text per result. Two words in `out_castable=`, such as
"linalg.cond result", are the function and the result in `_PART`.
In the texts, a field like {out} is PyTorch's name for the dtype of `out`, {out_c} the C++ name, {out_tensor} that of a
tensor with the dtype; {result}, ... are the same for the dtype of the result, {title} is the name of the row.
"""

from functools import cache

from cygrad._core.errors.messages import c_name
from cygrad._core.graph.opdef import facts_of, registry
from cygrad._core.types.dtypes import can_cast

SHARED = {  # texts, by the words for them in rows
    "same": "Expected out tensor to have dtype {result_c}, but got {out_c} instead",
    "found": "Found dtype {out} but expected {result}",
    "scalar_type": "expected scalar_type {result} but found {out}",
    "middle_values": "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; "
    "but type {out_tensor} does not equal {result_tensor} (while checking arguments for median)",
    "middle_indices": "Expected tensor for argument #1 'indices' to have scalar type Long; but got {out_tensor} "
    "instead (while checking arguments for median)",
    "input": "Expected the dtype for input and out to match, but got {result} for input's dtype and {out} for "
    "out's dtype.",
    "chain": "multi_dot(): expected out tensor to have dtype {result_c} but got {out_c}",
    "result": "result dtype {out} does not match input dtype {result}",
    "output": "tensordot: Expected the output tensor to have dtype {result}, but got an output tensor with dtype {out}",
    "counts": "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {result_c} "
    "and hist {out_c}",
    "positions": "{title}: Expected out tensor to have scalar type Long but got scalar type{out}",
    "truth": "{title} does not support non-boolean outputs.",
    "bool": "{title} only supports bool tensor for result, got: {out}",
    "can_cast": "Expected canCast( typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to be true, "
    "but got false.  (Could this error message be improved?  If so, please report an "
    "enhancement request to PyTorch.)",
}
_PART = "{}: Expected {} to be safely castable from {{result}} dtype, but got {} with dtype {{out}}"
CAST = (
    "result type {result} can't be cast to the desired output type {out}\n  to fix it: convert the tensor that is "
    "written to, or use the form that returns a new tensor, as in x = x + y"
)


def _text(fact, name, place):
    """Return the text that a row states for its result `place`, or None."""
    text = facts_of[fact].get(name)
    if isinstance(text, tuple):
        text = text[place] if place < len(text) else text[0]
    if text is not None and text.count(" ") == 1:
        function, part = text.split()
        return _PART.format(function, part, part)
    return SHARED.get(text, text)


@cache
def name_of(op):
    """Return the registered name of a row ("max.dim"), or that of a variant of one."""
    return next((name for name, row in registry.items() if row is op), op.name)


def _wording(name, place, result, out):
    """Return the error text for an `out` with a dtype different from the result's, or None if that is allowed."""
    wanted = _text("out_dtype", name, place)
    if wanted == SHARED["bool"] and out.name == "uint8":  # PyTorch's former boolean type
        return None
    if can_cast(result, out):
        return wanted
    return _text("out_castable", name, place) or wanted or CAST


def check(name, place, result, out):
    """Raise RuntimeError unless result `place` of a row may be written to an `out` of this different dtype."""
    text = _wording(name, place, result, out)
    if text is not None:
        words = {"title": name}
        for which, dtype in (("result", result), ("out", out)):
            words |= {which: dtype.type_name, f"{which}_c": c_name(dtype), f"{which}_tensor": _tensor_word(dtype)}
        raise RuntimeError(text.format(**words))


def _tensor_word(dtype):
    """Return PyTorch's name for a tensor with a dtype; some are named after their C++ class."""
    name = dtype.type_name
    return f"CPU{name}Type" if name == "Bool" or dtype.is_complex else f"torch.{name}Tensor"
