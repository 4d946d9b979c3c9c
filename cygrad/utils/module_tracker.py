"""`ModuleTracker`: which modules are running, in the forward pass and in the backward pass."""

from typing import Any
from weakref import WeakKeyDictionary

from cygrad.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """In its block, `parents` are the names of the modules that are running, and "Global".

    The first module that is called has the name of its class, those in it dotted names that begin with that.

    >>> import cygrad
    >>> from cygrad.utils.module_tracker import ModuleTracker
    >>> class Shows(cygrad.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with ModuleTracker() as tracker:
    ...     _ = cygrad.nn.Sequential(Shows())(cygrad.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self.is_bw = False
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._handles: list[Any] = []
        self._running: list[str] = []

    def __enter__(self) -> "ModuleTracker":
        self.parents = {"Global"}
        self._running = []
        self._handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()

    def _name_of(self, module: Any) -> str:
        if module not in self._names:
            own = type(module).__name__
            for name, child in module.named_modules():
                self._names.setdefault(child, f"{own}.{name}" if name else own)
        return self._names[module]

    def _begin(self, module: Any, args: Any) -> None:
        self._running.append(self._name_of(module))
        self.parents = {"Global", *self._running}

    def _end(self, module: Any, args: Any, output: Any) -> None:
        if self._running:
            self._running.pop()
        self.parents = {"Global", *self._running}

    def remember(self, node: Any) -> None:
        """Have `parents` in the backward pass be, while this node runs, what they are now.

        Backward passes through the node have these names as `parents`, and `is_bw` is True.

        >>> import cygrad
        >>> from cygrad.utils.module_tracker import ModuleTracker
        >>> x = cygrad.ones(1, requires_grad=True)
        >>> with ModuleTracker() as tracker:
        ...     y = x * 2
        ...     tracker.remember(y.grad_fn)
        ...     y.backward()
        """
        if not self._running or self.is_bw:
            return
        parents = set(self.parents)

        def begin(grads: Any) -> None:
            self.parents, self.is_bw = parents, True

        def end(grad_inputs: Any, grad_outputs: Any) -> None:
            self.parents, self.is_bw = {"Global", *self._running}, False

        node.register_prehook(begin)
        node.register_hook(end)
