"""Pruning: zeroes elements of a parameter by a mask.

The parameter becomes `weight_orig`, the mask is the buffer `weight_mask`, and `weight` is their product, recomputed
before each `forward`. `remove` makes the pruning permanent.

>>> import cygrad
>>> from cygrad.nn.utils import prune
>>> layer = prune.l1_unstructured(cygrad.nn.Linear(4, 3), "weight", amount=0.25)
>>> int((layer.weight == 0).sum())
3
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn.utils._before_forward import hook_on
from cygrad.nn.utils._pruning_checks import (
    _compute_norm,
    _compute_nparams_toprune,
    _validate_pruning_amount,
    _validate_pruning_amount_init,
    _validate_pruning_dim,
    _validate_structured_pruning,
)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """A pruning method, and the hook that applies its mask. Subclasses define `compute_mask`.

    `PRUNING_TYPE` determines what a further mask may prune of a tensor that is already pruned:
    `"unstructured"` the remaining elements, `"structured"` the remaining slices, `"global"` everything.

    >>> import cygrad
    >>> from cygrad import nn
    >>> class FirstRow(nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask[0] = 0
    ...         return mask
    >>> m = nn.Linear(2, 2)
    >>> hook = FirstRow.apply(m, "weight")
    >>> m.weight_mask
    tensor([[0., 0.],
            [1., 1.]])
    """

    PRUNING_TYPE: str
    _tensor_name: str

    @property
    def name(self) -> str:
        """The name of the pruned tensor."""
        return self._tensor_name

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for a tensor of importance scores, given the existing mask.

        >>> from cygrad import nn
        >>> import cygrad
        >>> nn.utils.prune.L1Unstructured(1).compute_mask(cygrad.tensor([3.0, -1.0]), cygrad.ones(2))
        tensor([1., 0.])
        """

    def apply_mask(self, module: Any) -> Tensor:
        """Return the parameter times its mask.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(2, 2)
        >>> hook = nn.utils.prune.L1Unstructured.apply(m, "weight", 0.5)
        >>> int((hook.apply_mask(m) == 0).sum())
        2
        """
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Prune the tensor of this name, further if it is already pruned; return the hook.

        Adds the parameter `weight_orig` and the buffer `weight_mask` for a tensor named `weight`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(2, 2)
        >>> hook = nn.utils.prune.L1Unstructured.apply(m, "weight", 0.5)
        >>> [name for name, _ in m.named_parameters()]
        ['bias', 'weight_orig']
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        tensor = getattr(module, name)
        scores = tensor if importance_scores is None else importance_scores
        if scores.shape != tensor.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {scores.shape} vs {tensor.shape}"
            )
        before = hook_on(module, BasePruningMethod, name)
        if before is None:
            mask = method.compute_mask(scores.detach(), cygrad.ones_like(tensor.detach()))
            del module._parameters[name]
            module.register_parameter(name + "_orig", tensor)
            module.register_buffer(name + "_mask", mask)
        else:
            container = _container_with(before[1], method)
            mask = container.compute_mask(scores.detach(), getattr(module, name + "_mask"))
            del module._forward_pre_hooks[before[0]]
            setattr(module, name + "_mask", mask)
            method = container
        method(module, None)
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return the tensor with its least important elements zeroed.

        >>> from cygrad import nn
        >>> import cygrad
        >>> nn.utils.prune.L1Unstructured(1).prune(cygrad.tensor([3.0, -1.0]))
        tensor([3., -0.])
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default_mask = cygrad.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask)

    def remove(self, module: Any) -> None:
        """Make the zeros permanent and turn the tensor back into a parameter.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(2, 2)
        >>> hook = nn.utils.prune.L1Unstructured.apply(m, "weight", 0.5)
        >>> hook.remove(m)
        >>> int((m.weight == 0).sum()), [name for name, _ in m.named_parameters()]
        (2, ['bias', 'weight'])
        """
        name = self._tensor_name
        parameter = module._parameters.pop(name + "_orig")
        with cygrad.no_grad():
            parameter.data = (parameter * module._buffers.pop(name + "_mask")).detach()
        delattr(module, name)
        setattr(module, name, parameter)


class PruningContainer(BasePruningMethod):
    """Successive prunings of one tensor; the last one selects from the remaining elements.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.Linear(2, 2)
    >>> for _ in range(2):
    ...     m = nn.utils.prune.l1_unstructured(m, "weight", amount=1)
    >>> int((m.weight == 0).sum())
    2
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            if isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method. Raises `TypeError` for anything else, `ValueError` if it prunes another tensor.

        >>> from cygrad import nn
        >>> import cygrad
        >>> methods = nn.utils.prune.PruningContainer()
        >>> methods.add_pruning_method("half")
        Traceback (most recent call last):
            ...
        TypeError: <class 'str'> is not a BasePruningMethod subclass
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is None:
            return
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask`, combined with the last method's mask on the part that remains.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(2, 1)
        >>> m = nn.utils.prune.custom_from_mask(m, "weight", cygrad.tensor([[0, 1]]))
        >>> m = nn.utils.prune.l1_unstructured(m, "weight", amount=1)
        >>> m.weight_mask
        tensor([[0., 0.]])
        """
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype).clone()
        chosen: Any
        if method.PRUNING_TYPE == "unstructured":
            chosen = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim  # type: ignore[attr-defined]
            kept = mask.sum([d for d in range(t.ndim) if d != dim]) != 0
            chosen = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            chosen = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[chosen] = method.compute_mask(t[chosen], mask[chosen]).to(t.dtype)
        return mask


def _container_with(hook: BasePruningMethod, method: BasePruningMethod) -> PruningContainer:
    earlier = hook if isinstance(hook, PruningContainer) else [hook]
    return PruningContainer(*earlier, method)


# --- Pruning methods --


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter just gets a mask of ones.

    >>> from cygrad import nn
    >>> import cygrad
    >>> nn.utils.prune.Identity().prune(cygrad.tensor([3.0, -1.0]))
    tensor([ 3., -1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask`.

        >>> from cygrad import nn
        >>> import cygrad
        >>> nn.utils.prune.Identity().compute_mask(cygrad.tensor([3.0, -1.0]), cygrad.ones(2))
        tensor([1., 1.])
        """
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        """Add a mask of ones; see `BasePruningMethod.apply`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(2, 1)
        >>> hook = nn.utils.prune.Identity.apply(m, "weight")
        >>> m.weight_mask
        tensor([[1., 1.]])
        """
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """Prunes `amount` of the elements or slices: a fraction in [0, 1], or a count."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


class RandomUnstructured(_ByAmount):
    """Prunes elements at random.

    >>> from cygrad import nn
    >>> import cygrad
    >>> int((nn.utils.prune.RandomUnstructured(0.5).prune(cygrad.ones(2, 3)) == 0).sum())
    3
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask` without the chosen elements.

        >>> from cygrad import nn
        >>> import cygrad
        >>> nn.utils.prune.RandomUnstructured(1).compute_mask(cygrad.ones(3), cygrad.ones(3)).sum()
        tensor(2.)
        """
        drawn = cygrad.rand(t.numel(), dtype=t.dtype, device=t.device)
        return _without(default_mask, drawn.topk(self._count(t.numel())).indices)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        """Prune `amount` of the tensor; see `BasePruningMethod.apply`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(3, 2)
        >>> hook = nn.utils.prune.RandomUnstructured.apply(m, "weight", 2)
        >>> m.weight_mask.sum()
        tensor(4.)
        """
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """Prunes the elements with the smallest absolute values.

    >>> from cygrad import nn
    >>> import cygrad
    >>> nn.utils.prune.L1Unstructured(0.5).prune(cygrad.tensor([3.0, -1.0, 2.0, 0.5]))
    tensor([3., -0., 2., 0.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask` without the chosen elements.

        >>> from cygrad import nn
        >>> import cygrad
        >>> nn.utils.prune.L1Unstructured(1).compute_mask(cygrad.tensor([3.0, -1.0]), cygrad.ones(2))
        tensor([1., 0.])
        """
        smallest = t.detach().abs().reshape(-1).topk(self._count(t.numel()), largest=False).indices
        return _without(default_mask, smallest)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, importance_scores: Tensor | None = None
    ) -> Any:
        """Prune `amount` of the tensor; see `BasePruningMethod.apply`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(2, 2)
        >>> hook = nn.utils.prune.L1Unstructured.apply(m, "weight", 0.5)
        >>> m.weight_mask.sum()
        tensor(2.)
        """
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_ByAmount):
    """Prunes whole slices along `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        """Return one score per slice; the smallest are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask` without the chosen slices."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        pruned = self._scores(t).topk(self._count(t.shape[self.dim]), largest=False).indices
        return default_mask.clone().index_fill_(self.dim, pruned, 0)


class RandomStructured(_Structured):
    """Prunes slices along `dim` at random.

    >>> from cygrad import nn
    >>> import cygrad
    >>> int((nn.utils.prune.RandomStructured(1, dim=0).prune(cygrad.ones(2, 3)) == 0).sum())
    3
    """

    def _scores(self, t: Tensor) -> Tensor:
        return cygrad.rand(t.shape[self.dim], device=t.device)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        """Prune `amount` of the slices; see `BasePruningMethod.apply`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(3, 2)
        >>> hook = nn.utils.prune.RandomStructured.apply(m, "weight", 1, dim=0)
        >>> m.weight_mask.sum()
        tensor(3.)
        """
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices along `dim` with the smallest norm of order `n`.

    >>> from cygrad import nn
    >>> import cygrad
    >>> nn.utils.prune.LnStructured(1, n=1, dim=0).prune(cygrad.tensor([[3.0, -1.0], [0.5, 2.0]]))
    tensor([[ 3., -1.],
            [ 0.,  0.]])
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        return _compute_norm(t.detach(), self.n, self.dim)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
    ) -> Any:
        """Prune `amount` of the slices; see `BasePruningMethod.apply`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(3, 2)
        >>> hook = nn.utils.prune.LnStructured.apply(m, "weight", 1, n=2, dim=0)
        >>> m.weight_mask.sum()
        tensor(3.)
        """
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    >>> from cygrad import nn
    >>> import cygrad
    >>> nn.utils.prune.CustomFromMask(cygrad.tensor([0, 1])).prune(cygrad.tensor([3.0, -1.0]))
    tensor([ 0., -1.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask` times the mask.

        >>> from cygrad import nn
        >>> import cygrad
        >>> nn.utils.prune.CustomFromMask(cygrad.tensor([0, 1])).compute_mask(cygrad.ones(2), cygrad.ones(2))
        tensor([0., 1.])
        """
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        """Prune by the mask; see `BasePruningMethod.apply`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Linear(2, 1)
        >>> hook = nn.utils.prune.CustomFromMask.apply(m, "weight", cygrad.tensor([[0, 1]]))
        >>> m.weight == 0
        tensor([[ True, False]])
        """
        return super().apply(module, name, mask=mask)


def _without(mask: Tensor, places: Tensor) -> Tensor:
    """Return the mask with zeros at these flat indices."""
    return mask.reshape(-1).index_fill(0, places, 0).reshape(mask.shape)


# --- Functional interface --


def identity(module: Any, name: str) -> Any:
    """Add a mask of ones; return `module`.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.utils.prune.identity(nn.Linear(2, 1), "weight").weight_mask
    tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune `amount` (a fraction in [0, 1], or a count) of the elements at random; return `module`.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.utils.prune.random_unstructured(nn.Linear(3, 2), "weight", amount=0.5)
    >>> m.weight_mask.sum()
    tensor(3.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Tensor | None = None) -> Any:
    """Prune `amount` of the elements, those with the smallest absolute value or score; return `module`.

    `amount` is a fraction in [0, 1], or a count; ValueError for numbers outside of these, TypeError for others.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=1)
    >>> int((m.weight == 0).sum())
    1
    """
    L1Unstructured.apply(module, name, amount, importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune `amount` of the slices along `dim` at random; return `module`.

    `amount` is a fraction in [0, 1], or a count; ValueError for numbers outside of these, TypeError for others.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.utils.prune.random_structured(nn.Linear(3, 2), "weight", amount=1, dim=0)
    >>> m.weight_mask.sum()
    tensor(3.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prune `amount` of the slices along `dim`, those with the smallest norm of order `n`; return `module`.

    `amount` is a fraction in [0, 1], or a count; ValueError for numbers outside of these, TypeError for others.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.utils.prune.ln_structured(nn.Linear(3, 2), "weight", amount=1, n=2, dim=0)
    >>> m.weight_mask.sum(1).sort().values
    tensor([0., 3.])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune by a mask of the tensor's shape, zero where elements are pruned; return `module`.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.utils.prune.custom_from_mask(nn.Linear(2, 1), "weight", cygrad.tensor([[0, 1]]))
    >>> m.weight == 0
    tensor([[ True, False]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any,
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[Any, Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several tensors, given as (module, name) pairs, as if they were one.

    `pruning_method` must be unstructured; `kwargs` are its options. `importance_scores` maps pairs to scores.

    >>> from cygrad import nn
    >>> import cygrad
    >>> a, b = cygrad.nn.Linear(4, 3), cygrad.nn.Linear(3, 2)
    >>> nn.utils.prune.global_unstructured([(a, "weight"), (b, "weight")], nn.utils.prune.L1Unstructured, amount=0.5)
    >>> int((a.weight == 0).sum() + (b.weight == 0).sum())
    9
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, (dict, type(None))):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    given = importance_scores or {}
    tensors = [getattr(module, name) for module, name in pairs]
    scores = [given.get((module, name), tensor) for (module, name), tensor in zip(pairs, tensors)]
    masks = [getattr(module, name + "_mask", cygrad.ones_like(t)) for (module, name), t in zip(pairs, tensors)]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    container = PruningContainer(method)
    flat = [cygrad.cat([t.detach().reshape(-1) for t in each]) for each in (scores, masks)]
    mask = container.compute_mask(*flat)
    for (module, name), tensor, part in zip(pairs, tensors, mask.split([t.numel() for t in tensors])):
        custom_from_mask(module, name, part.reshape(tensor.shape))


def remove(module: Any, name: str) -> Any:
    """Make the pruning of a tensor permanent; return `module`. Raises `ValueError` if it is not pruned.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=1)
    >>> m = nn.utils.prune.remove(m, "weight")
    >>> [name for name, _ in m.named_parameters()], nn.utils.prune.is_pruned(m)
    (['bias', 'weight'], False)
    """
    found = hook_on(module, BasePruningMethod, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    number, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[number]
    return module


def is_pruned(module: Any) -> bool:
    """Whether a tensor of the module or of one of its submodules is pruned.

    >>> import cygrad
    >>> cygrad.nn.utils.prune.is_pruned(cygrad.nn.Linear(2, 2))
    False
    """
    return any(
        isinstance(hook, BasePruningMethod) for each in module.modules() for hook in each._forward_pre_hooks.values()
    )
