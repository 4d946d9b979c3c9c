"""Error messages and warnings: PyTorch's first line, then what went wrong, where, and how to fix it."""

from cygrad._core.errors.sites import warn

NON_LEAF_REQUIRES_GRAD = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
    "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
)
INFERENCE_REQUIRES_GRAD = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
INFERENCE_INPLACE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed."
    "You can make a clone to get a normal tensor before doing inplace update."
    "See https://github.com/pytorch/rfcs/pull/17 for more details."
)
SAVED_DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
    "This is not supported, please use out-of-place `.detach()` instead"
)
BACKWARD_IN_TRANSFORM = (
    "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
    "functorch.vjp instead or call backward() outside of functorch transforms."
)
REQUIRES_GRAD_IN_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of "
    "a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)
DETACH_VIEW_INPLACE = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution."
)
COMPILED_BACKWARD = (
    "the backward pass of this compiled function needs its graph, and the function cannot be called again to make it: "
    "{}\n"
    "  such passes are double backward, and those whose gradients have another layout than before\n"
    "  to fix it: run backward before you change what the function reads, or do not compile it"
)
BACKWARD_TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)
VOLATILE_REQUIRES_GRAD = "Variable can't be volatile and require_grad at the same time!"
VOLATILE_BACKWARD = (
    "element 0 of tensors does not require grad and does not have a grad_fn\n"
    "  it was computed from a Variable(..., volatile=True): such a computation is not recorded and cannot be "
    "differentiated\n"
    "  to differentiate it, make the Variable without volatile; to leave other code unrecorded, use no_grad()"
)
PACK_CHANGED = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)
OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
_TORCH_TYPE = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "bfloat16": "BFloat16",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    **{name: name.capitalize() for name in _FLOAT8},
}


def type_word(array):
    """Return 'torch.FloatTensor' and the like."""
    from cygrad._kernels.device.cupy_library import is_meta  # needed only here

    place = "" if type(array).__module__ == "numpy" else "meta." if is_meta(array) else "cuda."
    return f"torch.{place}{_TORCH_TYPE.get(str(array.dtype), str(array.dtype))}Tensor"


def as_tensor(number):
    """Return a saved Python number as the 0-dim tensor that PyTorch shows, with Python's own precision."""
    import numpy as np  # needed only here

    from cygrad._core.graph.internals import tensor_of  # which imports this module

    return tensor_of(np.asarray(number))


# -- requesting gradients --


def non_scalar_hint(shape):
    """Suggest a replacement for `y.backward()` on a tensor with several elements."""
    return (
        f"\n  this tensor has shape {tuple(shape)}: reduce it first, as in `y.sum().backward()`, "
        "or pass the gradient of the final result: `y.backward(v)` with v of the same shape"
    )


def only_float_requires_grad(dtype):
    """Return the error text for requires_grad on an integer tensor."""
    return (
        "only Tensors of floating point and complex dtype can require gradients\n"
        f"  this one is {dtype}: make it with dtype=torch.float32, or convert it with .float() first"
    )


def refuse_gradient(is_volatile, dtype):
    """Raise the error for requires_grad on a volatile or integer tensor, or on an inference tensor."""
    if is_volatile:
        raise RuntimeError(VOLATILE_REQUIRES_GRAD)
    is_inexact = dtype.is_floating_point or dtype.is_complex
    raise RuntimeError(INFERENCE_REQUIRES_GRAD if is_inexact else only_float_requires_grad(dtype))


# -- assignments to .grad and .data --


def check_grad_assignment(tensor, value):
    """Check a value other than None assigned to `tensor.grad`."""
    from cygrad._core.graph.tensor import Tensor  # which imports this module

    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type_name(value)}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.device.type != tensor.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
            f"'{tensor.device.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if value.device != tensor.device:
        raise RuntimeError("assigned grad has data located on a different device")
    if value.shape != tensor.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
            f"'{list(tensor.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )
    wanted = tensor.grad_dtype if tensor.is_leaf else tensor.dtype
    if wanted is not None and value.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{c_word(value)}' to a tensor with grad_dtype "
            f"'{wanted.type_name}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
            "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any "
            "dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
            "downstream systems that assume they match."
        )


def check_grad_dtype(tensor, value):
    """Check a value assigned to `tensor.grad_dtype`."""
    from cygrad._core.types.dtypes import dtype  # which imports this module

    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type_name(value)}")
    if not tensor.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    present = tensor._grad
    if value is not None and present is not None and present.dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.type_name}' because there is already a gradient with dtype "
            f"'{c_word(present)}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the "
            "new grad_dtype matches the existing gradient's dtype."
        )


_C_WORDS = {
    "Float": "float",
    "Double": "double",
    "Half": "c10::Half",
    "BFloat16": "c10::BFloat16",
    "Long": "long int",
    "Int": "int",
    "Short": "short int",
    "Char": "signed char",
    "Byte": "unsigned char",
    "Bool": "bool",
    "UInt16": "unsigned short",
    "UInt32": "unsigned int",
    "UInt64": "unsigned long",
    "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
}


def c_name(dtype):
    """Return the C++ name of a dtype, which some of PyTorch's texts use."""
    return _C_WORDS.get(dtype.type_name, dtype.type_name)


def c_word(tensor):
    """Return the C++ name of a tensor's dtype."""
    return c_name(tensor.dtype)


def check_data_assignment(tensor, value):
    """Check a value assigned to `tensor.data`."""
    from cygrad._core.graph.tensor import Tensor  # which imports this module

    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type_name(value)}")
    if tensor.layout is not value.layout:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
            f"type.\n  the layouts {tensor.layout} and {value.layout} are stored differently: convert the value first"
        )
    if tensor.requires_grad and not (value.dtype.is_floating_point or value.dtype.is_complex):
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")


def warn_imaginary_lost():
    """Warn that a complex tensor was written into a real one."""
    warn("Casting complex values to real discards the imaginary part")


said: set[str] = set()  # messages to be issued once per process that have been


def warn_scalar_of_gradient():
    """Warn about float() of a tensor that requires grad: once per process, unless `set_warn_always` is on."""
    from cygrad._core.runtime.settings import is_warn_always_enabled  # needed only for the warning

    if "scalar of gradient" in said and not is_warn_always_enabled():
        return
    warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first."
    )
    said.add("scalar of gradient")


# -- shapes and types --


def contiguous_strides(shape):
    """Return the strides of a contiguous tensor of this shape; a size of 0 counts as 1."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def no_dimensions(dim):
    """Return the error for accessing a dimension of a 0-dim tensor."""
    return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def no_parts_of_conjugate():
    """Return the error for the parts of a conjugate, which its memory does not hold."""
    return RuntimeError(
        "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view "
        "it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
    )


def check_result_type(from_num, to_num, op=None, place=0):
    """Raise unless a result of the first dtype may be written into a tensor of the second (`out=` of `op` if given)."""
    from cygrad._core.registry import out_dtypes  # which imports this module
    from cygrad._core.types.dtypes import dtype_by_num  # which imports this module

    result, output = dtype_by_num(from_num), dtype_by_num(to_num)
    out_dtypes.check(None if op is None else out_dtypes.name_of(op), place, result, output)


def check_asked_type(name, dtype, out):
    """Raise unless an `out` passed together with a `dtype` has that dtype, as reductions require."""
    from cygrad._core.registry import out_dtypes  # which imports this module
    from cygrad._core.types.dtypes import as_dtype  # which imports this module

    if out.dtype is not as_dtype(dtype):
        out_dtypes.check(name, 0, as_dtype(dtype), out.dtype)


def check_out_type(array, out):
    """Raise unless `out` has exactly the dtype of the result `array`, as some ops require."""
    from cygrad._core.graph.tensor import Tensor  # which imports this module
    from cygrad._core.types.dtypes import dtype_by_num  # which imports this module

    if isinstance(out, Tensor) and array.dtype.num != out.dtype.num:  # non-tensors are rejected when written
        expected = c_name(dtype_by_num(array.dtype.num))
        raise RuntimeError(f"Expected out tensor to have dtype {expected}, but got {c_word(out)} instead")


def check_clamp_type(result, out):
    """Same for `clamp` with numbers, whose text uses the C++ name of the second dtype."""
    from cygrad._core.graph.tensor import Tensor  # which imports this module
    from cygrad._core.types.dtypes import can_cast  # which imports this module

    if isinstance(out, Tensor) and not can_cast(result, out.dtype):
        raise RuntimeError(f"result type {result.type_name} can't be cast to the desired output type {c_word(out)}")


def check_inplace_shape(result, out):
    """Raise unless the shape of a result broadcasts to the shape of the operand that it will be written into."""
    import numpy as np  # needed only here

    try:
        broadcast = np.broadcast_shapes(result, out)
    except ValueError:
        broadcast = result
    if broadcast != out:
        raise RuntimeError(f"output with shape {list(out)} doesn't match the broadcast shape {list(broadcast)}")


def output_resized(shape, required):
    """Warn that an `out` with elements is resized."""
    warn(
        f"An output with one or more elements was resized since it had shape {list(shape)}, which does not match the "
        f"required output shape {list(required)}. This behavior is deprecated, and in a future PyTorch release outputs "
        "will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, "
        "inplace, to zero elements with t.resize_(0)."
    )


NOT_RESIZABLE = (
    "Trying to resize storage that is not resizable\n"
    "  the memory belongs to a NumPy array or to another library: clone() the tensor first"
)


# -- deprecated names --


def warn_volatile():
    """Warn that a tensor is made volatile."""
    warn("volatile=True is deprecated: run the computation inside `with no_grad():`", DeprecationWarning)


def deprecated(old, new):
    """Warn that a deprecated name was used."""
    warn(f"{old} is deprecated; use {new}", DeprecationWarning)


def former_order(function, old, new):
    """Warn that arguments were passed in the order of early PyTorch."""
    out = ", Tensor out = None"
    warn(
        f"This overload of {function} is deprecated:\n\t{function}({old}, *{out})\nConsider using one of the following "
        f"signatures instead:\n\t{function}({new}{out})"
    )


def grad_variables_deprecated():
    """Warn that `grad_variables` was passed to `backward`."""
    warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)


def only_inputs_deprecated():
    """Warn that `only_inputs=False` has no effect."""
    warn(
        "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient "
        "for other parts of the graph, please use torch.autograd.backward.",
        FutureWarning,
    )


# -- arguments --


def type_name(value):
    """Return the type of a value as PyTorch's texts spell it."""
    kind = type(value)
    if kind.__module__ == "numpy":
        return f"numpy.{kind.__name__}"
    return f"torch.{kind.__name__}" if kind.__name__ in _TORCH_NAMES and _is_ours(kind) else kind.__name__


_TORCH_NAMES = {"dtype", "device", "Size", "layout", "memory_format"}


def _is_ours(kind):
    return kind.__module__.partition(".")[0] == "cygrad"


def wrong_type(function, argument, position, wanted, value):
    """Return the error for an argument of the wrong type."""
    place = f"argument '{argument}' (position {position})"
    remedy = without_quotes(value) if wanted == "torch.dtype" else ""
    return TypeError(f"{function}(): {place} must be {wanted}, not {type_name(value)}{remedy}")


def wrong_keyword(function, argument, wanted, value):
    """Return the error for a keyword argument of the wrong type."""
    remedy = without_quotes(value) if wanted == "torch.dtype" else ""
    return TypeError(f"{function}(): argument '{argument}' must be {wanted}, not {type_name(value)}{remedy}")


def without_quotes(value):
    """Return a line for an error about a value if that is the name of a dtype, where the dtype was meant."""
    from cygrad._core.types.dtypes import by_name  # which imports this module

    name = value.removeprefix("torch.") if isinstance(value, str) else None
    return f"\n  to fix it: write torch.{name}, without quotes" if name in by_name() else ""


def check_flag(function, argument, position, value):
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise wrong_type(function, argument, position, "bool", value)


def fits_none(function):
    """Return the error of a call that fits no signature; `refused_calls.py` adds the arguments and the signatures."""
    return TypeError(f"{function}() received an invalid combination of arguments")


def no_such_call(function, arguments, keywords, signatures):
    """Return the error for arguments that fit none of a function's signatures."""
    from cygrad._core.graph.tensor import Tensor  # which imports this module

    def word(value):
        return "Tensor" if isinstance(value, Tensor) else type_name(value)

    got = ", ".join(word(value) for value in arguments)
    by_name = ", ".join(f"{name}={word(value)}" for name, value in reversed(keywords.items()))
    if by_name:  # as in PyTorch
        got = f"{got}, {by_name}" if got else f"{by_name}, "
    lines = "".join(f"\n * ({signature})" for signature in signatures)
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({got}), but expected one of:{lines}\n"
    )


def not_implemented_for(kernel, dtype):
    """Return the error for an op that does not support a dtype."""
    is_integer = not (dtype.is_floating_point or dtype.is_complex)
    remedy = "\n  to fix it: convert it first, as in x.float()" if is_integer else ""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.type_name}'{remedy}")
