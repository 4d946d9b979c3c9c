"""Lists and dictionaries that nobody can change: the arguments of nodes, whose users the graph keeps track of."""

from typing import Any, NoReturn

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise TypeError: the collection cannot be changed."""
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or args "
        "of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
        "    new_args = ...  # copy and mutate args\n    node.args = new_args\n"
    )


class immutable_list(list[Any]):
    """A list that raises TypeError when it is to be changed.

    >>> from cygrad.fx.immutable_collections import immutable_list
    >>> items = immutable_list([1, 2])
    >>> items.append(3)
    Traceback (most recent call last):
        ...
    TypeError: 'immutable_list' object does not support mutation...
    """

    append = extend = insert = remove = pop = clear = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dictionary that raises TypeError when it is to be changed.

    >>> from cygrad.fx.immutable_collections import immutable_dict
    >>> entries = immutable_dict({"a": 1})
    >>> entries.clear()
    Traceback (most recent call last):
        ...
    TypeError: 'immutable_dict' object does not support mutation...
    """

    clear = pop = popitem = update = setdefault = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)
