"""Errors of operations that need elements, which meta arrays do not have."""


class NoShape(NotImplementedError):
    """The shape of a result depends on elements."""


def no_data():
    """Return the error for a copy of the elements of a meta tensor to another device."""
    return NotImplementedError(
        "Cannot copy out of meta tensor; no data!\n"
        "  a tensor on the device 'meta' has a shape, but no elements: make one with elements by "
        "torch.empty_like(x, device='cpu'), or those of a module by module.to_empty(device='cpu')"
    )


def no_item():
    """Return the error for reading the only element of a meta tensor."""
    return RuntimeError(
        "Tensor.item() cannot be called on meta tensors\n"
        "  a tensor on the device 'meta' has a shape, but no elements: what depends on values needs device='cpu'"
    )


def no_shape(name):
    """Return the error for an operation whose result's shape depends on the elements."""
    if name == "nonzero":
        return NoShape(
            "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct "
            "data-independent implementation does not exist.\n"
            "  the number of nonzero elements, or of those that a mask selects, is unknown for a tensor on the device "
            "'meta': run this with device='cpu'"
        )
    if name == "repeat_interleave":
        return NoShape(
            "cannot repeat_interleave a meta tensor without output_size\n"
            "  the length of the result is the sum of the repeats: say it as output_size=n"
        )
    return NoShape(
        f"aten::{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
        "registered.\n  the shape of the result, or whether there is one, depends on the elements, and a tensor on the "
        "device 'meta' has none: run it with device='cpu'"
    )


def other_device(first, second):
    """Return the error for operands on the meta device and on another."""
    return RuntimeError(
        f"Tensor on device {second} is not on the expected device {first}!\n"
        "  operands may be on the device 'meta' only together; 0-dim tensors on the CPU count as numbers"
    )
