"""`ModuleTracker`: which modules are running, in the forward pass and in the backward pass."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from cygrad import Tensor
from cygrad._core.engine.backward import number_of_pass, queue_callback
from cygrad.autograd.graph import register_multi_grad_hook
from cygrad.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from cygrad.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """In its block, `parents` are the names of the modules that are running, and "Global".

    The first module that is called has the name of its class, those in it dotted names that begin with that. In a
    backward pass (`is_bw`) a module runs from when the gradients of its outputs are known until those of its inputs
    are.

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
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._handles: list[Any] = []
        self._running: list[str] = []  # in the forward pass
        self._entered: list[str] = []  # in the backward pass

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return number_of_pass() != -1

    def __enter__(self) -> "ModuleTracker":
        self._running, self._entered = [], []
        self._update()
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

    def _update(self) -> None:
        self.parents = {"Global", *self._running, *self._entered}

    def _begin(self, module: Any, args: Any) -> None:
        name = self._name_of(module)
        self._running.append(name)
        self._update()
        self._at_gradients(args, lambda grads: self._leave(name))

    def _end(self, module: Any, args: Any, output: Any) -> None:
        if self._running:
            self._running.pop()
        self._update()
        name = self._name_of(module)
        self._at_gradients(output, lambda grads: self._enter(name))

    def _at_gradients(self, values: Any, fn: Callable[[Any], None]) -> None:
        tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor) and value.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, fn))

    def _enter(self, name: str) -> None:
        if not self._entered:
            queue_callback(self._leave_all)  # where inputs need no gradients, nothing else tells the end
        self._entered.append(name)
        self._update()

    def _leave(self, name: str) -> None:
        if name in self._entered:
            self._entered.remove(name)
        self._update()

    def _leave_all(self) -> None:
        self._entered.clear()
        self._update()

    def remember(self, node: Any) -> None:
        """Have `parents` in the backward pass be, while this node runs, what they are now.

        This is exact, where the gradients of inputs and outputs leave it open in which module a node was recorded.

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
            self.parents = parents

        def end(grad_inputs: Any, grad_outputs: Any) -> None:
            self._update()

        node.register_prehook(begin)
        node.register_hook(end)
