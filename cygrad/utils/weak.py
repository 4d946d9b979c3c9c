"""Weak references to tensors, and dictionaries that hold their keys by them.

Tensors compare by their elements, so that an ordinary `WeakKeyDictionary` cannot hold them: here keys are equal only
if they are the same object.

>>> import cygrad
>>> from cygrad.utils.weak import WeakTensorKeyDictionary
>>> x, notes = cygrad.ones(2), WeakTensorKeyDictionary()
>>> notes[x] = "weights"
>>> notes[x], cygrad.ones(2) in notes
('weights', False)
>>> del x
>>> len(notes)
0
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

from cygrad import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that equals another if both refer to the same object.

    >>> import cygrad
    >>> from cygrad.utils.weak import WeakIdRef
    >>> x = cygrad.ones(2)
    >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(cygrad.ones(2)), WeakIdRef(x)() is x
    (True, False, True)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        mine, others = self(), other()
        return self is other if mine is None or others is None else mine is others

    def __ne__(self, other: Any) -> bool:
        return not self == other


class _WeakHashRef(weakref.ref):
    """A weak reference that is hashed and compared as what it refers to, for keys that compare as a whole."""

    __slots__ = ("_hash",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> bool:
        mine, others = self(), other()
        return self is other if mine is None or others is None else mine == others

    def __ne__(self, other: Any) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose keys are compared by identity, and whose entries go with their keys.

    >>> import cygrad
    >>> from cygrad.utils.weak import WeakIdKeyDictionary
    >>> x = cygrad.ones(2)
    >>> notes = WeakIdKeyDictionary()
    >>> notes[x] = "weights"
    >>> len(notes.copy()), notes.keyrefs()[0]() is x
    (1, True)
    >>> del x
    >>> len(notes)
    0
    """

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        data = self.data

        def forget(reference: Any) -> None:
            data.pop(reference, None)

        self._remove = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # it cannot be referred to weakly
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return sum(reference() is not None for reference in list(self.data))

    def keyrefs(self) -> list[Any]:
        """Return the references to the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return a dictionary with the same entries."""
        return type(self)(self, self.ref_type) if type(self) is WeakIdKeyDictionary else type(self)(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        copied = type(self)()
        copied.ref_type = self.ref_type
        for key, value in self.items():
            copied[key] = deepcopy(value, memo)
        return copied

    def update(self, other: Any = None, /, **kwargs: Any) -> None:
        """Take the entries of another mapping, or of pairs; none if these cannot be read to their end.

        >>> import cygrad
        >>> from cygrad.utils.weak import WeakIdKeyDictionary
        >>> x, notes = cygrad.ones(2), WeakIdKeyDictionary()
        >>> notes.update({x: "weights"})
        >>> notes[x]
        'weights'
        """
        found = dict(other.items() if isinstance(other, Mapping) else other or ())
        found.update(kwargs)
        references = [self.ref_type(key, self._remove) for key in found]
        self.data.update(zip(references, found.values(), strict=True))

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        joined = type(self)()
        joined.ref_type = self.ref_type
        joined.update(other)
        joined.update(self)
        return joined

    def __ior__(self, other: Mapping | Iterable) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


class WeakTensorKeyDictionary(WeakIdKeyDictionary):
    """A `WeakIdKeyDictionary` for tensors.

    >>> import cygrad
    >>> from cygrad.utils.weak import WeakTensorKeyDictionary
    >>> x, notes = cygrad.ones(2), WeakTensorKeyDictionary()
    >>> notes[x] = "weights"
    >>> notes[x], cygrad.ones(2) in notes
    ('weights', False)
    """

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        super().__init__(dict, ref_type)


class TensorWeakRef:
    """A weak reference to a tensor; calling it returns the tensor, or None once that is gone.

    >>> import cygrad
    >>> from cygrad.utils.weak import TensorWeakRef
    >>> x = cygrad.ones(2)
    >>> reference = TensorWeakRef(x)
    >>> reference() is x
    True
    >>> del x
    >>> print(reference())
    None
    """

    ref: WeakIdRef

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
