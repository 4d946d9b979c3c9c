"""Random numbers: copies that are filled, and dropout with its mask."""

import cygrad
from cygrad.ops._aten.table import aten


def _filled(name):
    def fill(self, *args, **kwargs):
        return getattr(cygrad.empty_like(self), f"{name}_")(*args, **kwargs)

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = f"Return a tensor like `self` filled by `{name}_`."
    return aten(fill)


for _name in ("uniform", "exponential", "geometric", "log_normal", "cauchy"):
    _filled(_name)


@aten
def normal_functional(self, mean=0.0, std=1.0, *, generator=None):
    """Return a tensor like `self` filled by `normal_`."""
    return cygrad.empty_like(self).normal_(mean, std, generator=generator)


@aten
def native_dropout(input, p, train):
    """Return dropout of the elements, and the mask of those that are kept.

    >>> import cygrad
    >>> out, mask = cygrad.native_dropout(cygrad.ones(3), 0.0, True)
    >>> out, mask
    (tensor([1., 1., 1.]), tensor([True, True, True]))
    """
    if train is False or p == 0:
        return input.clone(), cygrad.ones_like(input, dtype=cygrad.bool)
    if p == 1:
        return cygrad.zeros_like(input), cygrad.zeros_like(input, dtype=cygrad.bool)
    mask = cygrad.empty_like(input).bernoulli_(1 - p).bool()
    return input * mask * (1 / (1 - p)), mask
