"""Custom ops: functions of a program that behave like those of the package.

`custom_op` makes an op of one function. `define` and `impl`, or a `Library`, give schema and kernels one by one. Ops
are called as `torch.ops.<namespace>.<name>`.
"""

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import cygrad
from cygrad.library import _operator
from cygrad.library._checks import OpCheckError, opcheck
from cygrad.library._custom_ops import CustomOpDef, custom_op
from cygrad.library._operator import Operator
from cygrad.library._registry import define_operator, operator_of, operators, parse_name, remove_operator
from cygrad.library._schema import infer_schema
from cygrad.ops import missed_libraries

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_listeners = _operator.listeners  # for counters of operations
_RESERVED = ("aten", "prim", "prims")
_DEVICE_OF_KEY = {
    "": "default",
    "default": "default",
    "CompositeExplicitAutograd": "default",
    "CompositeImplicitAutograd": "default",
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
}


def fallthrough_kernel() -> None:
    """As a kernel in `Library.impl`: leaves calls to the kernels of other dispatch keys. It is never called itself.

    >>> import cygrad
    >>> cygrad.library.fallthrough_kernel()
    Traceback (most recent call last):
        ...
    NotImplementedError: fallthrough_kernel() should never be called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


_lasting: list["Library"] = []  # those of ops that `define` made, which stay
_owners: "weakref.WeakValueDictionary[str, Library]" = weakref.WeakValueDictionary()  # by namespace


class Library:
    """Ops and kernels of a namespace, which are removed when the library is.

    `kind` is "DEF" for the one library that owns the namespace, "FRAGMENT" for further ones that define ops, "IMPL" for
    those that only add kernels.

    >>> import cygrad
    >>> library = cygrad.library.Library("docs_library", "DEF")
    >>> library.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> library.impl("twice", lambda x: x * 2, "CPU")
    >>> cygrad.ops.docs_library.twice(cygrad.ones(1))
    tensor([2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            if _owners.get(ns) is not None:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                    "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define "
                    "operators for a single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                    'explicitly indicate this.\nHere these are Library(..., "DEF"), "IMPL" and "FRAGMENT".'
                )
            _owners[ns] = self
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Callable[[], None]] = []
        weakref.finalize(self, _take_back, self._undo).atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an op by its schema, and return its name.

        Raises RuntimeError if there is one of that name, or if the library is of the kind "IMPL".
        """
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema.partition("(")[0]}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  '
                "All def()s should be placed in the (unique) TORCH_LIBRARY block for their namespace.\n"
                f'  to fix it: define the op in a Library("{self.ns}", "FRAGMENT")'
            )
        operator = define_operator(self.ns, schema)
        operator.tags = list(tags) if isinstance(tags, (list, tuple)) else [tags]
        self._undo.append(lambda: remove_operator(operator))
        return operator._opname + (f".{operator._overloadname}" if operator._overloadname != "default" else "")

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register the kernel of an op for a dispatch key such as "CPU", "CUDA", "Meta" or "Autograd".

        Raises RuntimeError if there is no such op, or if namespace or key are not those of the library.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        if isinstance(key, str) and self.dispatch_key and key != self.dispatch_key:
            raise RuntimeError(
                f'impl("{op_name}", ...): Explicitly provided dispatch key ({key}) is inconsistent with the dispatch '
                f"key of the enclosing TORCH_LIBRARY_IMPL block ({self.dispatch_key}).  Please declare a separate "
                "TORCH_LIBRARY_IMPL block for this dispatch key and move your impl() there."
            )
        operator = self._operator(op_name)
        if not isinstance(key, str):
            raise TypeError(f"a dispatch key is the name of one, but got {key!r}")
        if key and key not in cygrad._C.DispatchKey.__members__:
            raise RuntimeError(f"could not parse dispatch key: {key}")
        if fn is not fallthrough_kernel:
            self._undo.append(_register(operator, key, fn))

    def _operator(self, op_name: Any) -> Operator:
        """Return the op of a name, which may lack the namespace."""
        if not isinstance(op_name, str):
            return operator_of(op_name)
        namespace, _, name = op_name.rpartition("::")
        if namespace not in ("", self.ns):
            raise RuntimeError(
                f'impl("{op_name}", ...): Explicitly provided namespace ({namespace}) in operator name does not '
                f"match namespace of enclosing TORCH_LIBRARY_IMPL block ({self.ns}).  Move this definition to the "
                "TORCH_LIBRARY_IMPL block corresponding to this namespace (and consider deleting the namespace from "
                "your schema string.)"
            )
        return operator_of(f"{self.ns}::{name}")

    def _register_fake(self, op_name: str, fn: Callable[..., Any], **where: Any) -> None:
        self._undo.append(_register(operator_of(f"{self.ns}::{op_name}"), "Meta", fn))

    def _destroy(self) -> None:
        """Remove what the library has defined."""
        _take_back(self._undo)
        if _owners.get(self.ns) is self:
            del _owners[self.ns]


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A block with a `Library`, whose ops are removed at the end of the block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def _register(operator: Operator, key: str, function: Callable[..., Any]) -> Callable[[], None]:
    """Register a kernel for a dispatch key or a type of device. Returns a function that takes it back."""
    slot = _DEVICE_OF_KEY.get(key, key)
    if key.startswith("Autograd"):
        table, slot = vars(operator), "autograd_kernel"
    elif key == "Meta":
        table, slot = vars(operator), "fake"
    else:
        table = operator.kernels
    former = table.get(slot)
    table[slot] = function

    def take_back() -> None:
        if table.get(slot) is not function:
            return  # another has been registered since
        if former is None and table is operator.kernels:
            del table[slot]
        else:
            table[slot] = former

    return take_back


def _keep(library: Library | None, take_back: Callable[[], None]) -> None:
    """Have a registration end with a library, if there is one."""
    if library is not None:
        library._undo.append(take_back)


def _take_back(undo: list[Callable[[], None]]) -> None:
    """Undo what a library has registered, the last first."""
    while undo:
        undo.pop()()


def _kind_of_device(name: str) -> str:
    """Check the type of a device; "default" stands for all, and dispatch keys for their devices."""
    if name != "default" and name not in cygrad._C.DispatchKey.__members__:
        cygrad.device(name)  # raises for an unknown one
    return name


@functools.singledispatch
def define(qualname: Any, schema: Any, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an op: `define("namespace::name", "(Tensor x) -> Tensor")`. Kernels are registered by `impl`.

    `define(library, "name(Tensor x) -> Tensor")` returns a decorator, which makes a function the op's kernel on all
    devices.

    >>> import cygrad
    >>> cygrad.library.define("docs_define::twice", "(Tensor x) -> Tensor")
    >>> @cygrad.library.impl("docs_define::twice", "cpu")
    ... def twice(x):
    ...     return x * 2
    >>> cygrad.ops.docs_define.twice(cygrad.ones(2))
    tensor([2., 2.])
    """
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, name = parse_name(qualname)
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _lasting.append(lib)
    lib.define(name + schema, tags=tags)


@define.register
def _(lib: Library, schema: str, alias_analysis: str = "") -> Any:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        lib.impl(lib.define(schema, alias_analysis), function)
        return function

    return register


@functools.singledispatch
def impl(qualname: Any, types: Any, func: Callable[..., Any] | None = None, *, lib: Library | None = None) -> Any:
    """Register the kernel of an op for a type of device such as "cpu", for several, or for all: "default".

    `impl(library, "name", "CPU")` returns a decorator, which calls `Library.impl`.

    >>> import cygrad
    >>> cygrad.library.define("docs_impl::twice", "(Tensor x) -> Tensor")
    >>> cygrad.library.impl("docs_impl::twice", ("cpu", "cuda"), lambda x: x * 2)
    >>> cygrad.ops.docs_impl.twice(cygrad.ones(2))
    tensor([2., 2.])
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        operator = operator_of(qualname)
        for one in (types,) if isinstance(types, str) else types:
            _keep(lib, _register(operator, _kind_of_device(one), function))
        return function

    return register if func is None else (register(func), None)[1]


@impl.register
def _(lib: Library, name: Any, dispatch_key: str = "") -> Any:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        lib.impl(name, function, dispatch_key)
        return function

    return register


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Register the function that an op runs for tensors on a type of device, or on several; None stands for all.

    >>> import cygrad
    >>> @cygrad.library.custom_op("docs_register_kernel::twice", mutates_args=(), device_types="cuda")
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> @cygrad.library.register_kernel("docs_register_kernel::twice", "cpu")
    ... def on_cpu(x):
    ...     return x + x
    >>> twice(cygrad.ones(2))
    tensor([2., 2.])
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        operator = operator_of(op)
        for one in (device_types,) if device_types is None or isinstance(device_types, str) else device_types:
            _keep(lib, _register(operator, _kind_of_device(one or "default"), function))
        return function

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Register the function that makes an op's results for tensors on the device "meta".

    Raises RuntimeError for an op that does not exist. If a C++ library could not be loaded, its ops do not exist
    either, but the package that it belongs to may run without them, so that functions for them are ignored.

    >>> import cygrad
    >>> @cygrad.library.custom_op("docs_register_fake::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> @cygrad.library.register_fake("docs_register_fake::twice")
    ... def on_meta(x):
    ...     return cygrad.empty_like(x)
    >>> twice(cygrad.ones(2, device="meta")).shape
    torch.Size([2])
    """
    operator = None if _is_of_missed_library(op) else operator_of(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if operator is not None:
            _keep(lib, _register(operator, "Meta", function))
        return function

    return register if func is None else register(func)


def _is_of_missed_library(op: Any) -> bool:
    """Whether an op may be one of a library that `ops.load_library` could not load."""
    if not isinstance(op, str) or not missed_libraries:
        return False
    namespace, _ = parse_name(op)
    return all(operator.namespace != namespace for operator in operators.values())


def impl_abstract(qualname: str, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The former name of `register_fake`.

    >>> import cygrad
    >>> import warnings
    >>> @cygrad.library.custom_op("docs_impl_abstract::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     on_meta = cygrad.library.impl_abstract("docs_impl_abstract::twice", lambda x: cygrad.empty_like(x))
    >>> twice(cygrad.ones(2, device="meta")).shape
    torch.Size([2])
    """
    return register_fake(qualname, *(() if func is None else (func,)), lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Register the gradient of an op; see `CustomOpDef.register_autograd`.

    >>> import cygrad
    >>> @cygrad.library.custom_op("docs_register_autograd::square", mutates_args=())
    ... def square(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * x
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, grad):
    ...     return 2 * grad * ctx.saved_tensors[0]
    >>> cygrad.library.register_autograd("docs_register_autograd::square", backward, setup_context=setup_context)
    >>> x = cygrad.tensor([3.0], requires_grad=True)
    >>> square(x).backward()
    >>> x.grad
    tensor([6.])
    """
    operator = operator_of(op)
    if operator.schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {operator.schema}. Please "
            "create a functional operator and register an autograd formula for that."
        )
    operator.require_positional_tensors("register_autograd")
    operator.backward, operator.setup_context = backward, setup_context


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Register the rule by which `vmap` applies an op to all samples; see `CustomOpDef.register_vmap`.

    >>> import cygrad
    >>> @cygrad.library.custom_op("docs_register_vmap::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> @cygrad.library.register_vmap("docs_register_vmap::twice")
    ... def all_samples(info, in_dims, x):
    ...     return twice(x), in_dims[0]
    >>> cygrad.vmap(twice)(cygrad.ones(2))
    tensor([2., 2.])
    """
    operator = operator_of(op)
    operator.require_positional_tensors("register_vmap")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.vmap = function
        return function

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Have an op's inputs cast to a dtype in an autocast block for this type of device.

    >>> import cygrad
    >>> @cygrad.library.custom_op("docs_register_autocast::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> cygrad.library.register_autocast("docs_register_autocast::twice", "cpu", cygrad.float16)
    >>> with cygrad.autocast("cpu"):
    ...     twice(cygrad.ones(2)).dtype
    torch.float16
    """
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    operator_of(op).autocast[device_type] = cast_inputs


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Register `func(mode or class, func, types, args, kwargs)` for a mode or class with `__torch_dispatch__`.

    >>> import cygrad
    >>> from cygrad.utils._python_dispatch import TorchDispatchMode
    >>> @cygrad.library.custom_op("docs_register_dispatch::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> class Mode(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         return func(*args, **(kwargs or {}))
    >>> @cygrad.library.register_torch_dispatch("docs_register_dispatch::twice", Mode)
    ... def in_mode(mode, func, types, args, kwargs):
    ...     return "seen"
    >>> with Mode():
    ...     twice(cygrad.ones(2))
    'seen'
    """
    operator = operator_of(op)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.dispatch[torch_dispatch_class] = function
        return function

    return register if func is None else register(func)


def get_ctx() -> Any:
    """Return the context of a running fake kernel whose results have sizes that depend on values. There is none here.

    Raises RuntimeError: tensors on the device "meta" have sizes that are known.

    >>> import cygrad
    >>> cygrad.library.get_ctx()
    Traceback (most recent call last):
        ...
    RuntimeError: get_ctx() can only be called inside a fake impl whose sizes are symbolic...
    """
    raise RuntimeError(
        "get_ctx() can only be called inside a fake impl whose sizes are symbolic\n"
        '  here: fake kernels run on tensors of the device "meta", whose sizes are numbers'
    )


def get_kernel(op: Any, dispatch_key: Any) -> Callable[..., Any]:
    """Return the kernel of an op for a dispatch key such as "CPU".

    >>> import cygrad
    >>> cygrad.library.define("docs_get_kernel::twice", "(Tensor x) -> Tensor")
    >>> cygrad.library.impl("docs_get_kernel::twice", "cpu", lambda x: x * 2)
    >>> kernel = cygrad.library.get_kernel("docs_get_kernel::twice", "CPU")
    """
    return operator_of(op).kernel_for(_DEVICE_OF_KEY.get(str(dispatch_key), str(dispatch_key)))


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """Make an op of a function that calls Triton kernels; without a compiler, the same as `custom_op`.

    >>> import cygrad
    >>> @cygrad.library.triton_op("docs_triton_op::twice", mutates_args=())
    ... def twice(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> twice(cygrad.ones(2))
    tensor([2., 2.])
    """
    return custom_op(name, *(() if fn is None else (fn,)), mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Any:
    """Return a Triton kernel as it is: without a compiler, nothing has to see it.

    >>> import cygrad
    >>> def kernel(pointer):
    ...     pass
    >>> cygrad.library.wrap_triton(kernel) is kernel
    True
    """
    return triton_kernel
