"""PyTorch's tensors of rows of different lengths, which cygrad does not have.

Programs recognize them: `tensor.is_nested` is False. Pad the rows, and pass a mask:

>>> import cygrad
>>> rows = [cygrad.ones(2), cygrad.ones(3)]
>>> cygrad.nn.utils.rnn.pad_sequence(rows, batch_first=True)
tensor([[1., 1., 0.],
        [1., 1., 1.]])
"""

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged"]
__all__ += ["to_padded_tensor"]


def _no_nested(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch.nested.{name}: cygrad has no nested tensors\n"
            "  pad them by `nn.utils.rnn.pad_sequence`, and pass a mask"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"""Raise NotImplementedError: there are no nested tensors.

    >>> import cygrad
    >>> rows = [cygrad.ones(2), cygrad.ones(3)]
    >>> cygrad.nested.{name}(rows)
    Traceback (most recent call last):
        ...
    NotImplementedError: torch.nested.{name}: cygrad has no nested tensors...
    """
    return refuse


as_nested_tensor = _no_nested("as_nested_tensor")
masked_select = _no_nested("masked_select")
narrow = _no_nested("narrow")
nested_tensor = _no_nested("nested_tensor")
nested_tensor_from_jagged = _no_nested("nested_tensor_from_jagged")
to_padded_tensor = _no_nested("to_padded_tensor")
