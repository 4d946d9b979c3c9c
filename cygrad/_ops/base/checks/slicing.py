"""Checks and errors for functions that slice, split and join tensors."""

# -- slicing --


def select_of_scalar():
    """Return the error for `select` on a 0-dim tensor."""
    return IndexError("select() cannot be applied to a 0-dim tensor.")


def select_out_of_range(index, shape, dim):
    """Return the error for an index out of range."""
    return IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")


def narrow_of_scalar():
    """Return the error for `narrow` on a 0-dim tensor."""
    return RuntimeError("narrow() cannot be applied to a 0-dim tensor.")


def check_start(start):
    """Raise RuntimeError unless the tensor `start` is an integer."""
    if start.ndim or start.dtype.numpy.kind not in "iu":
        raise RuntimeError("start must be an 0-dim integral Tensor.")


def narrow_out_of_range(start, length, size):
    """Return the error for a range that exceeds the dimension."""
    if length < 0:
        return RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        return IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start += size if start < 0 else 0
    return RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")


# -- splitting --


def unbind_of_scalar():
    """Return the error for `unbind` on a 0-dim tensor."""
    return IndexError("Dimension specified as 0 but tensor has no dimensions")


def split_of_scalar(function):
    """Return the error for `split`, `chunk`, ... on a 0-dim tensor."""
    name = "split" if function == "split_with_sizes" else function
    return RuntimeError(f"{name} expects at least a 1-dimensional tensor")


def is_one_size(sections):
    """Whether `split` got one size instead of a sequence of sizes. Raises TypeError for None."""
    if sections is None:
        raise TypeError("split() missing 1 required positional argument: 'split_size'")
    return hasattr(sections, "__index__")


def wrong_split_size(size, length):
    """Return the error for a split size that is negative, or 0."""
    if size < 0:
        return RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    return RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")


def check_split_sizes(sizes, length, dim):
    """Raise RuntimeError unless the sizes add up to the length of the dimension."""
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(sizes)}"
        )


def no_chunks(count):
    """Return the error for `chunk` into no chunks."""
    return RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {count}")


# -- joining --


def nothing_to_cat():
    """Return the error for `cat` of no tensors."""
    return ValueError("torch.cat(): expected a non-empty list of Tensors")


def cat_of_scalar(tensors):
    """Return the error for `cat` of a 0-dim tensor."""
    position = next(i for i, t in enumerate(tensors) if t.ndim == 0)
    return RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")


def cat_mismatch(tensors, first, dim):
    """Return the error for shapes that differ from the first one in dimensions other than `dim`."""
    expected = first.shape
    for i, t in enumerate(tensors):
        shape = t.shape
        if shape == (0,):
            continue
        if len(shape) != len(expected):
            return RuntimeError(f"Tensors must have same number of dimensions: got {len(expected)} and {len(shape)}")
        for d, (n, m) in enumerate(zip(expected, shape)):
            if d != dim and n != m:
                return RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but got size {m} for "
                    f"tensor number {i} in the list.\n"
                    f"  shapes: {', '.join(str(list(t.shape)) for t in tensors)}"
                )


def nothing_to_stack(function):
    """Return the error for `stack`, `hstack`, ... of no tensors."""
    return RuntimeError(f"{function} expects a non-empty TensorList")


def stack_mismatch(tensors):
    """Return the error for shapes that differ."""
    expected = tensors[0].shape
    i, shape = next((i, t.shape) for i, t in enumerate(tensors) if t.shape != expected)
    return RuntimeError(
        f"stack expects each tensor to be equal size, but got {list(expected)} at entry 0 and {list(shape)} at entry "
        f"{i}"
    )


def wrong_out_type(out):
    """Return the error for an `out` whose dtype the result cannot be converted to."""
    return TypeError(f"torch.cat(): input types can't be cast to the desired output type {out.dtype.type_name}")


def overlap(i):
    """Return the error for an `out` that shares memory with tensor number `i`."""
    return RuntimeError(
        "unsupported operation: the input tensors cannot refer to any of the output memory locations. Found overlap "
        f"with input tensor {i}."
    )
