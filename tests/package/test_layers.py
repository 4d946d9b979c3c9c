"""Imports point down only: the rules of docs/architecture.md, read off the sources.

    5  nn  optim  utils  viz  distributions ...     the public names of the layer below
    4  cygrad  cygrad.autograd  cygrad.linalg ...   everything public that is not layer 5
    3  cygrad._ops
    2  cygrad._core
    1  cygrad._kernels

A module imports from its own layer and from those below. There are two exceptions: the Tensor, whose
number slots call ops (it imports them in its `.pyx`, never in its `.pxd`), and the functions of modules
in `cygrad.func`.
"""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for pattern in ("*.py", "*.pyx", "*.pxd") for path in (CHECKOUT / "cygrad").rglob(pattern))

PRIVATE_LAYERS = {"_compiled": 1, "_library": 1, "_kernels": 1, "_core": 2, "_ops": 3}
PUBLIC_LAYER = 4
TOP_LAYER = 5
TOP_PACKAGES = {"nn", "optim", "serialization", "utils", "viz", "distributions"}

UPWARD = {("cygrad/_core/graph/tensor.pyx", "cygrad._ops"), ("cygrad/func/modules.py", "cygrad.nn.utils.stateless")}
# What layer 5 may reach inside for: compiled steps over arrays, the functions of the op families that are public in
# nn.functional alone, the repr of a tensor, the devices of DLPack, gamma distributed numbers, the handle that every
# hook returns, whether a profiler listens, and for checkpoints the backward pass that runs; for them, for pictures
# and for the warning of a graph that grows the user's lines.
INWARD = {
    ("cygrad/distributions/_implicit.py", "cygrad._ops.random.sampling"),
    ("cygrad/nn/functional.py", "cygrad._ops"),
    ("cygrad/nn/parameter.py", "cygrad._core.tensor.tensor_str"),
    ("cygrad/optim/adam.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/adam.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/formula.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/formula.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/optimizer.py", "cygrad._core.runtime.thread_state"),
    ("cygrad/optim/sgd.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/sgd.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/utils/_selective.py", "cygrad._core.graph.internals"),
    ("cygrad/utils/_selective.py", "cygrad._core.registry.autocast"),
    ("cygrad/utils/_selective.py", "cygrad._core.graph.saved_tensor_hooks"),
    ("cygrad/utils/_surroundings.py", "cygrad._core.registry.autocast"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.runtime.interrupt_safe"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.engine.backward"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.errors.sites"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.runtime.thread_state"),
    ("cygrad/utils/debugging.py", "cygrad._core.runtime.interrupt_safe"),
    ("cygrad/utils/debugging.py", "cygrad._core.diagnostics.graph_growth"),
    ("cygrad/utils/debugging.py", "cygrad._core.errors.sites"),
    ("cygrad/utils/dlpack.py", "cygrad._ops.creation.dlpack"),
    ("cygrad/utils/hooks.py", "cygrad._core.graph.hook_handles"),
    ("cygrad/viz/_collect.py", "cygrad._core.errors.sites"),
}
CUPY_IS_IMPORTED_IN = ("cygrad/_kernels/", "cygrad/_core/types/device.", "cygrad/cuda")
LONGEST_FILE = 650

STRINGS = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'', re.DOTALL)
COMMENT = re.compile(r"#.*")
IMPORT = re.compile(
    r"""^[ \t]*
        (?: from[ ]+(?P<origin>[\w.]+)[ ]+(?P<how>c?import)[ ]+
            (?: \((?P<list>[^)]*)\) | (?P<names>.+) )
          | (?P<plain>c?import)[ ]+(?P<modules>.+) )$""",
    re.MULTILINE | re.VERBOSE,
)
LATER = re.compile(r"""= later\("([\w.]+)"\)""")


# --- Reading -----------------------------------------------------------------------------------


def place(path):
    """A file's place in the checkout, as the texts below spell it."""
    return path.relative_to(CHECKOUT).as_posix()


def module_name(path):
    """`cygrad/_core/graph/node.pyx` is `cygrad._core.graph.node`; an `__init__` is its package."""
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in SOURCES}


def imported(path):
    """Yield `(module, is_cimport)` for everything that a file imports, wherever in the file."""
    code = COMMENT.sub("", STRINGS.sub('""', path.read_text(encoding="utf-8")))
    code = code.replace("\\\n", " ")
    for match in IMPORT.finditer(code):
        if match["origin"]:
            origin = _absolute(match["origin"], path)
            is_cimport = match["how"] == "cimport"
            for name in _names(match["list"] or match["names"]):
                inner = f"{origin}.{name}"
                yield (inner if inner in MODULES else origin), is_cimport
        elif match["plain"]:
            for name in _names(match["modules"]):
                yield name, match["plain"] == "cimport"
    for match in LATER.finditer(path.read_text(encoding="utf-8")):
        yield match[1], False


def _names(text):
    """The first word of each item: `a, b as c` gives `a`, `b`."""
    return [item.split()[0] for item in text.split(",") if item.strip()]


def _absolute(origin, path):
    dots = len(origin) - len(origin.lstrip("."))
    if not dots:
        return origin
    package = path.relative_to(CHECKOUT).parent.parts
    base = package[: len(package) - dots + 1]
    return ".".join((*base, *filter(None, origin[dots:].split("."))))


def layer(module):
    """The layer of a module of ours, `None` for others' modules."""
    first, _, rest = module.partition(".")
    if first != "cygrad":
        return None
    second = rest.partition(".")[0]
    if second in TOP_PACKAGES:
        return TOP_LAYER
    return PRIVATE_LAYERS.get(second, PUBLIC_LAYER)


def is_private(module):
    return any(part.startswith("_") for part in module.split("."))


# --- The rules ---------------------------------------------------------------------------------


def test_there_is_something_to_read():
    layers = {layer(module) for module in MODULES}
    assert layers == {1, 2, 3, 4, 5}
    tensor = CHECKOUT / "cygrad" / "_core" / "graph" / "tensor.pxd"
    assert ("cygrad._core.graph.node", True) in set(imported(tensor))


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_imports_point_down(path):
    own = layer(module_name(path))
    for module, _ in imported(path):
        if layer(module) is None or any(place(path) == who and module.startswith(what) for who, what in UPWARD):
            continue
        assert layer(module) <= own, f"{place(path)} (layer {own}) imports {module}"


@pytest.mark.parametrize("path", [path for path in SOURCES if layer(module_name(path)) == TOP_LAYER], ids=place)
def test_top_layer_uses_public_names_alone(path):
    top_package = ".".join(module_name(path).split(".")[:2])
    for module, _ in imported(path):
        if layer(module) is not None and not module.startswith(top_package):
            allowed = any(place(path) == who and f"{module}.".startswith(f"{what}.") for who, what in INWARD)
            assert allowed or not is_private(module), f"{place(path)} reaches into {module}"


def test_pxd_files_form_no_circle():
    # Cython compiles a circle of .pxd files only by luck of the order.
    graph = {
        module_name(path): {module for module, is_cimport in imported(path) if is_cimport and layer(module)}
        for path in SOURCES
        if path.suffix == ".pxd"
    }
    done = set()

    def visit(module, trail):
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for other in graph.get(module, ()):
                visit(other, [*trail, module])
            done.add(module)

    for module in graph:
        visit(module, [])


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_cupy_is_imported_in_few_places(path):
    if place(path).startswith(CUPY_IS_IMPORTED_IN):
        return
    modules = {module.partition(".")[0] for module, _ in imported(path)}
    assert "cupy" not in modules
    assert not re.search(r"""(import_module|__import__)\(["']cupy""", path.read_text("utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_files_are_short(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_FILE, f"{place(path)} has {lines} lines: split it by concept"


def test_each_module_is_compiled_once():
    # One extension per .pyx: no file is pasted into another, no .py stands beside a .pyx.
    for path in SOURCES:
        code = STRINGS.sub('""', path.read_text(encoding="utf-8"))
        assert not re.search(r"^\s*include\s+[\"']", code, re.MULTILINE), place(path)
        if path.suffix == ".pyx":
            assert not path.with_suffix(".py").exists(), place(path)


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_cython_sees_what_is_cimported(path):
    """Cython compiles a file again when a `.pxd` it uses changes, but overlooks `from package cimport module`."""
    for match in IMPORT.finditer(COMMENT.sub("", STRINGS.sub('""', path.read_text(encoding="utf-8")))):
        if match["origin"] and match["how"] == "cimport":
            names = _names(match["list"] or match["names"])
            modules = [name for name in names if f"{match['origin']}.{name}" in MODULES]
            assert not modules, f"write `cimport {match['origin']}.{modules[0]} as {modules[0]}`"
