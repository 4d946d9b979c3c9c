"""Writes names.json: the names, parameters and ufunc loops of the real CuPy.

Run it where CuPy and ml_dtypes are installed; no driver is needed. Modules that cannot be imported without CUDA's
libraries are read from source.

    python -P tests/support/cupy_standin/record_names.py
"""

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

PATH = Path(__file__).with_name("names.json")

MODULES = """
    cupy cupy.linalg cupy.fft cupy.random cupy.cublas cupy.cuda cupy.cuda.runtime cupy.cuda.memory
    cupy.cuda.pinned_memory cupy.cuda.stream cupy.cuda.device cupy.cuda.graph cupy.cuda.nvtx cupy.cuda.profiler
    cupy.cuda.cufft cupy.lib cupy.lib.stride_tricks cupy._core cupy.cuda.function cupyx cupyx.scipy cupyx.scipy.special
    cupyx.linalg cupyx.scipy.linalg cupyx.scipy.fft cupyx.profiler
""".split()
CLASSES = {
    "cupy": ["ndarray", "ufunc", "ElementwiseKernel", "ReductionKernel", "RawKernel", "RawModule", "dtype"],
    "cupy.cuda": """Device Stream ExternalStream Event MemoryPool PinnedMemoryPool Graph Memory UnownedMemory
        MemoryPointer PinnedMemoryPointer MemoryHook Function""".split(),
    "cupy.cuda.cufft": ["PlanNd"],
    "cupy.random": ["RandomState", "Generator", "XORWOW", "Philox4x3210", "MRG32k3a"],
}


def without_types(parameters):
    """Convert `int axis=-1, *, bool copy=True` to Python syntax."""
    return re.sub(r"(^|, )(?:\w+ )+(?=\w+\s*(?:=|,|$))", r"\1", parameters.replace("\\*", "*"))


def parameters(function):
    """The parameters as text, or None if they cannot be found."""
    try:
        signature = inspect.signature(function)
        bare = [
            p.replace(annotation=p.empty, default=p.default if plain(p.default) else Ellipsis)
            for p in signature.parameters.values()
        ]
        return ", ".join(str(p) for p in bare_with_marks(bare))
    except (ValueError, TypeError):
        pass
    found = re.match(r"[\w.]*\((.*?)\)(?: -> .*)?$", (function.__doc__ or "").split("\n")[0])
    if not found:
        return None
    text = without_types(found[1])
    try:
        ast.parse(f"def f({text}): pass")
    except SyntaxError:
        return None
    return text


def bare_with_marks(bare):
    """The parameters with `/` and `*` where the signature has them."""
    kinds = [p.kind for p in bare]
    for i, p in enumerate(bare):
        if p.kind is p.KEYWORD_ONLY and p.KEYWORD_ONLY not in kinds[:i] and p.VAR_POSITIONAL not in kinds:
            yield "*"
        yield p
        if p.kind is p.POSITIONAL_ONLY and p.POSITIONAL_ONLY not in kinds[i + 1 :]:
            yield "/"


def plain(value):
    return value is inspect.Parameter.empty or value is None or isinstance(value, (bool, int, float, str))


def described(thing):
    """The record of a name: `ufunc` with its loops, parameters in parentheses, or its kind."""
    if type(thing).__name__ == "ufunc":
        return {"nin": thing.nin, "nout": thing.nout, "loops": " ".join(thing.types)}
    if inspect.ismodule(thing):
        return "module"
    if isinstance(thing, type):
        return "class"
    if callable(thing):
        found = parameters(thing)
        return "function" if found is None else f"({found})"
    return "value"


def by_source(name):
    """The public functions that a module's source defines or imports."""
    where = Path(importlib.import_module(name.split(".")[0]).__file__).parent.joinpath(*name.split(".")[1:])
    source = where / "__init__.py" if where.is_dir() else where.with_suffix(".py")
    names = {}
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = f"({ast.unparse(node.args)})"
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for alias in node.names:
                names[alias.asname or alias.name] = in_source(node.module, alias.name)
    return {key: value for key, value in names.items() if not key.startswith("_")}


def in_source(module, name):
    path = Path(importlib.import_module("cupy").__file__).parent.parent.joinpath(*module.split(".")).with_suffix(".py")
    if path.exists():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return f"({ast.unparse(node.args)})"
    return "function"


def names_of(module):
    try:
        found = importlib.import_module(module)
    except ImportError:
        return by_source(module)
    return {name: described(getattr(found, name)) for name in sorted(dir(found)) if not name.startswith("_")}


def members_of(cls):
    kept = {"__array_ufunc__", "__array_function__", "__cuda_array_interface__", "__dlpack__", "__dlpack_device__"}
    every = set(dir(object)) | {"__pyx_vtable__", "__getstate__", "__array_finalize__", "__class_getitem__"}
    every |= {"__buffer__", "__release_buffer__"}  # added by Python 3.12 to everything with a buffer
    return {
        name: described(getattr(cls, name))
        for name in sorted(dir(cls))
        if not name.startswith("_") or name in kept or (name.startswith("__") and name not in every)
    }


def recorded():
    import cupy

    return {
        "version": cupy.__version__,
        "modules": {module: names_of(module) for module in MODULES},
        "classes": {
            f"{module}.{name}": members_of(getattr(importlib.import_module(module), name))
            for module, names in CLASSES.items()
            for name in names
        },
    }


def written(names):
    """Format one name per line, so that a new CuPy version gives a readable diff."""
    return json.dumps(names, indent=0, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(written(recorded()), encoding="utf-8")
