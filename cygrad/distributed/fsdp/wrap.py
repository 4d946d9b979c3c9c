"""Policies that choose which modules within a model are wrapped."""

from contextlib import contextmanager
from functools import partial

from cygrad.nn import ModuleDict, ModuleList, MultiheadAttention

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


def always_wrap_policy(*args, **kwargs):
    """Wrap every module.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp.wrap import always_wrap_policy
    >>> always_wrap_policy(cygrad.nn.ReLU(), recurse=False, nonwrapped_numel=0)
    True
    """
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Wrap the modules for which `lambda_fn` is true.

    >>> import cygrad
    >>> from functools import partial
    >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
    >>> from cygrad.distributed.fsdp.wrap import lambda_auto_wrap_policy
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> policy = partial(lambda_auto_wrap_policy, lambda_fn=lambda module: isinstance(module, cygrad.nn.Linear))
    >>> model = FSDP(cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.ReLU()), auto_wrap_policy=policy)
    >>> len(FSDP.fsdp_modules(model))  # the layer, and the whole
    2
    >>> dist.destroy_process_group()
    """
    return True if recurse else lambda_fn(module)


def _or_policy(module, recurse, nonwrapped_numel, policies):
    """A policy that wraps what any of these policies wraps."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Wrap the modules of these classes, e.g. the layers of a transformer.

    >>> import cygrad
    >>> from functools import partial
    >>> from cygrad.distributed.fsdp.wrap import transformer_auto_wrap_policy
    >>> policy = partial(transformer_auto_wrap_policy, transformer_layer_cls={cygrad.nn.TransformerEncoderLayer})
    >>> policy(cygrad.nn.TransformerEncoderLayer(4, 2), recurse=False, nonwrapped_numel=0)
    True
    """
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module, recurse, nonwrapped_numel, min_num_params=int(1e8), force_leaf_modules=None, exclude_wrap_modules=None
):
    """Wrap the modules with at least `min_num_params` parameters that are not in a wrapped one.

    >>> import cygrad
    >>> from functools import partial
    >>> from cygrad.distributed.fsdp.wrap import size_based_auto_wrap_policy
    >>> policy = partial(size_based_auto_wrap_policy, min_num_params=100)
    >>> policy(cygrad.nn.Linear(20, 20), recurse=False, nonwrapped_numel=420)
    True
    >>> policy(cygrad.nn.Linear(2, 2), recurse=False, nonwrapped_numel=6)
    False
    """
    leaves = _SIZE_LEAVES if force_leaf_modules is None else tuple(force_leaf_modules)
    excluded = _SIZE_EXCLUDED if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, leaves)
    return is_large and not isinstance(module, excluded)


_SIZE_LEAVES = (MultiheadAttention,)
_SIZE_EXCLUDED = (ModuleList, ModuleDict)
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = set(_SIZE_LEAVES)  # type: ignore[attr-defined]
size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = set(_SIZE_EXCLUDED)  # type: ignore[attr-defined]


class ModuleWrapPolicy:
    """Wrap the modules of these classes.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp.wrap import ModuleWrapPolicy
    >>> policy = ModuleWrapPolicy({cygrad.nn.Linear})
    >>> policy(cygrad.nn.Linear(2, 1), recurse=False), policy(cygrad.nn.ReLU(), recurse=False)
    (True, False)
    """

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module, recurse, *args, **kwargs):
        return True if recurse else isinstance(module, tuple(self._module_classes))

    def __repr__(self):
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy:
    """Wrap the modules for which a function returns True, or a dict of options for the wrapper.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
    >>> from cygrad.distributed.fsdp.wrap import CustomPolicy
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> policy = CustomPolicy(lambda module: isinstance(module, cygrad.nn.Linear))
    >>> model = FSDP(cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.ReLU()), auto_wrap_policy=policy)
    >>> len(FSDP.fsdp_modules(model))
    2
    >>> dist.destroy_process_group()
    """

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def __call__(self, module, recurse, *args, **kwargs):
        return True if recurse else self._lambda_fn(module)


def _numel(module, ignored=()):
    return sum(parameter.numel() for parameter in module.parameters() if parameter not in ignored)


def wrap_chosen(module, policy, wrapper, ignored=()):
    """Wrap the modules in `module` that a policy chooses, in place, inner ones first."""
    done: dict = {}  # a module in several places is wrapped once

    def visit(parent):
        """Wrap what is in `parent`; returns how many parameters are in wrapped modules."""
        count = 0
        for name, child in list(parent.named_children()):
            if child in done:
                setattr(parent, name, done[child])
                continue
            if child in ignored:
                continue
            size = _numel(child)
            inside = visit(child) if policy(module=child, recurse=True, nonwrapped_numel=size) else 0
            chosen = policy(module=child, recurse=False, nonwrapped_numel=size - inside)
            if chosen:
                done[child] = wrapper(child, **(chosen if isinstance(chosen, dict) else {}))
                setattr(parent, name, done[child])
                inside = size
            count += inside
        return count

    visit(module)


_surrounding: dict = {}


@contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Within this context `wrap(module)` returns `wrapper_cls(module, **wrapper_kwargs)`.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
    >>> from cygrad.distributed.fsdp.wrap import enable_wrap, wrap
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> with enable_wrap(wrapper_cls=FSDP):
    ...     layer = wrap(cygrad.nn.Linear(2, 1))
    >>> type(layer).__name__
    'FullyShardedDataParallel'
    >>> dist.destroy_process_group()
    """
    before = dict(_surrounding)
    _surrounding.clear()
    _surrounding["wrapper"] = partial(wrapper_cls, **wrapper_kwargs)
    try:
        yield
    finally:
        _surrounding.clear()
        _surrounding.update(before)


def wrap(module, **wrap_overrides):
    """Wrap a module as the surrounding `enable_wrap` says; without one, return it as it is.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp.wrap import wrap
    >>> type(wrap(cygrad.nn.Linear(2, 1))).__name__
    'Linear'
    """
    wrapper = _surrounding.get("wrapper")
    return module if wrapper is None else wrapper(module, **wrap_overrides)
