"""Scripts, which run as plain Python: there is no compiler, and what is "compiled" is returned as it is.

What `trace` has recorded can be saved and loaded.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from cygrad.nn import Module
from cygrad.nn.parameter import is_lazy
from cygrad.utils import typename

_HOW_TO_SAVE = (
    "torch.jit.trace records a program that can be saved; or save the weights, torch.save(model.state_dict(), path)"
)


class Error(Exception):
    """What TorchScript raises for an exception in a script. A script that runs as Python raises its own exception.

    >>> import cygrad
    >>> issubclass(cygrad.jit.Error, Exception)
    True
    """


class ScriptModule(Module):
    """A module with methods marked by `script_method`: an ordinary `nn.Module` here.

    >>> import cygrad
    >>> class Double(cygrad.jit.ScriptModule):
    ...     @cygrad.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(cygrad.ones(2))
    tensor([2., 2.])
    """

    def define(self, src):
        """Raises RuntimeError: methods given as text in TorchScript cannot be run.

        >>> import cygrad
        >>> cygrad.jit.ScriptModule().define("def forward(self): return 1")
        Traceback (most recent call last):
            ...
        RuntimeError: torch.jit.ScriptModule.define: cygrad has no TorchScript...
        """
        raise _lacking("ScriptModule.define", "write the method in Python")

    def save(self, f: Any, **kwargs: Any) -> None:
        """Raises RuntimeError: a module that is not traced has no program.

        >>> import cygrad
        >>> cygrad.jit.ScriptModule().save("model.pt")
        Traceback (most recent call last):
            ...
        RuntimeError: torch.jit.ScriptModule.save: cygrad has no TorchScript...
        """
        raise _lacking("ScriptModule.save", _HOW_TO_SAVE)


class RecursiveScriptModule(ScriptModule):
    """The class of modules that `load` returns. `script` returns the module it is given.

    >>> import cygrad
    >>> issubclass(cygrad.jit.RecursiveScriptModule, cygrad.nn.Module)
    True
    """


class ScriptFunction:
    """The class of traced functions. `script` returns the function it is given.

    >>> import cygrad
    >>> traced = cygrad.jit.trace(lambda x: x * 2, cygrad.ones(2))
    >>> isinstance(traced, cygrad.jit.ScriptFunction)
    True
    """

    def __new__(cls, *args, **kwargs):
        raise TypeError(
            "ScriptFunction: No constructor defined!\n  `torch.jit.script(function)` is the function itself"
        )


class CompilationUnit:
    """Functions given as text in TorchScript. Only an empty one can be made; text raises RuntimeError.

    >>> import cygrad
    >>> unit = cygrad.jit.CompilationUnit()
    >>> unit.define("def f(x): return x")
    Traceback (most recent call last):
        ...
    RuntimeError: torch.jit.CompilationUnit: cygrad has no TorchScript...
    """

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        if lang is not None:
            self.define(lang)

    def define(self, lang: Any, rcb: Any = None, _frames_up: int = 0) -> Any:
        """Raises RuntimeError: programs given as text cannot be run."""
        raise _lacking("CompilationUnit", "write the functions in Python")


def _lacking(name, advice):
    return RuntimeError(f"torch.jit.{name}: cygrad has no TorchScript\n  {advice}")


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Return the function, class or module unchanged: it behaves the same, and there is no compiler.

    Raises RuntimeError for a module with uninitialized parameters or buffers.

    >>> import cygrad
    >>> @cygrad.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(cygrad.ones(2))
    tensor([2., 2.])
    """
    if isinstance(obj, Module):
        _check_initialized(obj)
    return obj


def _check_initialized(module: Module) -> None:
    for each in module.modules():
        for kind, members in (("parameters", each._parameters), ("buffers", each._buffers)):
            for name, member in members.items():
                if is_lazy(member):
                    raise RuntimeError(
                        f"'{typename(type(each))}' has uninitialized {kind} {name}. Did you forget to run a forward "
                        "pass?"
                    )


def script_method(fn: Any) -> Any:
    """Mark a method of a `ScriptModule` to be compiled: returns it unchanged.

    >>> import cygrad
    >>> class Model(cygrad.nn.Module):
    ...     @cygrad.jit.script_method
    ...     def forward(self, x):
    ...         return x.relu()
    >>> Model()(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return fn


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Return a module unchanged. PyTorch makes its weights constants of the compiled program.

    Raises RuntimeError if the module is in training mode.

    >>> import cygrad
    >>> model = cygrad.nn.Linear(2, 1).eval()
    >>> cygrad.jit.freeze(model) is model
    True
    """
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Return a module unchanged.

    >>> import cygrad
    >>> model = cygrad.nn.Linear(2, 1).eval()
    >>> cygrad.jit.optimize_for_inference(model) is model
    True
    """
    return mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> Any:
    """Leave a module as it is.

    >>> import cygrad
    >>> cygrad.jit.run_frozen_optimizations(cygrad.nn.Linear(2, 1).eval())
    """


@contextmanager
def optimized_execution(should_optimize: bool) -> Any:
    """Context in which compiled programs are optimized or not: without effect.

    >>> import cygrad
    >>> with cygrad.jit.optimized_execution(False):
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """
    yield


@contextmanager
def fuser(name: str) -> Any:
    """Context in which compiled programs use the fuser of this name ("fuser0" to "fuser3"): without effect.

    >>> import cygrad
    >>> with cygrad.jit.fuser("fuser1"):
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """Context that reports ops which could not be fused in compiled programs: without effect.

    >>> import cygrad
    >>> with cygrad.jit.strict_fusion():
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


_fusion = [[("STATIC", 2), ("DYNAMIC", 10)]]


def set_fusion_strategy(strategy: Any) -> Any:
    """Keep a list of (kind, how often) pairs, and return the previous list. Nothing reads it.

    >>> import cygrad
    >>> before = cygrad.jit.set_fusion_strategy([("DYNAMIC", 3)])
    >>> cygrad.jit.set_fusion_strategy(before)
    [('DYNAMIC', 3)]
    """
    before = _fusion[0]
    _fusion[0] = strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Let compiled programs use oneDNN: without effect.

    >>> import cygrad
    >>> cygrad.jit.enable_onednn_fusion(True)
    >>> cygrad.jit.onednn_fusion_enabled()
    False
    """


def onednn_fusion_enabled() -> bool:
    """Whether compiled programs use oneDNN: always False.

    >>> import cygrad
    >>> cygrad.jit.onednn_fusion_enabled()
    False
    """
    return False


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Save what `torch.jit.trace` has made: the program, its parameters and buffers.

    `f` is a path or a binary file, `_extra_files` {name: text or bytes} to keep along. `load` needs none of the code
    that the module was made of. The file is one of `torch.save`, in cygrad's own terms; PyTorch's `torch.jit.load` does
    not read it.

    >>> import cygrad, io
    >>> file = io.BytesIO()
    >>> cygrad.jit.save(cygrad.jit.trace(cygrad.nn.Linear(3, 2), cygrad.ones(1, 3)), file)
    >>> _ = file.seek(0)
    >>> cygrad.jit.load(file)(cygrad.ones(4, 3)).shape
    torch.Size([4, 2])
    """
    if isinstance(m, Module) and not hasattr(m, "save"):
        raise _lacking("save", _HOW_TO_SAVE)
    m.save(f, _extra_files=_extra_files)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Load what `torch.jit.save` has saved. Loading runs no code, and a program calls functions on tensors alone.

    `f` is a path or a binary file. Tensors go to `map_location`, as in `torch.load`. The values of `_extra_files` are
    replaced by those in the file. Raises ValueError if there is no such file, and RuntimeError for other files,
    including those of PyTorch's `torch.jit.save`, whose programs are in TorchScript.

    >>> import cygrad
    >>> import io
    >>> traced = cygrad.jit.trace(cygrad.nn.ReLU(), cygrad.ones(2))
    >>> file = io.BytesIO()
    >>> cygrad.jit.save(traced, file)
    >>> size = file.seek(0)
    >>> cygrad.jit.load(file)(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    from cygrad.jit._traced import load  # which imports this module

    return load(f, map_location, _extra_files)
