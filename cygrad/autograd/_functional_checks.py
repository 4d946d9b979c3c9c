"""Argument checks of `functional`, with PyTorch's error texts."""

_JACOBIAN = "torch.autograd.functional.jacobian"
_STRICT = " This is not allowed in strict mode."


def check_strategy(strategy, vectorize, create_graph, strict):
    """Raise if these options of `jacobian` are incompatible."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        other = '`strategy="forward-mode"` are not supported together (yet).'
        if create_graph:
            raise NotImplementedError(
                f"{_JACOBIAN}: `create_graph=True` and {other} Please either set `create_graph=False` or "
                '`strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                f'{_JACOBIAN}: `strict=True` and {other} Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
                "`vectorize=True`."
            )


def check_not_vectorized(vectorize, strict):
    """Raise if `strict` is combined with `vectorize`."""
    if vectorize and strict:
        raise RuntimeError(
            f"{_JACOBIAN}: `strict=True` and `vectorized=True` are not supported together. Please either set "
            "`strict=False` or `vectorize=False`."
        )


def one_element(tensors, whose):
    """Raise unless there is a single tensor with one element, for which a vector may be omitted."""
    if len(tensors) != 1 or tensors[0].numel() != 1:
        raise RuntimeError(f"The vector v can only be None if {whose} a single Tensor with a single element.")


def require_real(outputs):
    """Raise if an output is complex: the derivative of a complex output has two parts."""
    for t in outputs:
        if t.is_complex():
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {t.dtype}")


def checked_vector(v, targets, is_tuple):
    """Raise unless each tensor of `v` has the shape of its target."""
    if len(v) != len(targets):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(targets)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (each, target) in enumerate(zip(v, targets, strict=True)):
        if each.shape != target.shape:
            entry = f"Entry {i} in v" if is_tuple else "v"
            raise RuntimeError(f"{entry} has invalid size: should be {target.shape} but got {each.shape}.")


_NO_GRADIENT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {} is independent of the input." + _STRICT + " You should ensure that your function is twice differentiable "
    "and that the jacobian depends on the inputs (this would be violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the inputs."
    + _STRICT,
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function."
    + _STRICT,
}


def require_gradients(tensors, what):
    """Raise unless all tensors require grad."""
    for i, t in enumerate(tensors):
        if t is None or not t.requires_grad:
            raise RuntimeError(_NO_GRADIENT[what].format(i))


_MISSING = {
    "back": "The output of the user-provided function is independent of input {}." + _STRICT,
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using "
    "the double backward trick to compute forward mode gradients." + _STRICT,
    "double_back": "The jacobian of the user-provided function is independent of input {}." + _STRICT,
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian."
    " This is not allowed in strict mode as it prevents from using the double backward trick to replace forward "
    "mode AD.",
}


def require_dependence(gradient, i, stage, create_graph):
    """Raise if the gradient for input `i` is missing, or constant although the next derivative is wanted."""
    if gradient is None:
        raise RuntimeError(_MISSING[stage].format(i))
    if create_graph and not gradient.requires_grad:
        what = "hessian" if "double" in stage else "jacobian"
        raise RuntimeError(
            f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict "
            "mode when create_graph=True."
        )


def require_dependence_of_row(row, output, create_graph):
    """Same for a row of the Jacobian of this output, which the second error text names."""
    for i, gradient in enumerate(row):
        if gradient is None:
            raise RuntimeError(f"Output {output} of the user-provided function is independent of input {i}.{_STRICT}")
        require_dependence(gradient, output, "back", create_graph)
