"""Imports only point down the layers: checks the rules of docs/architecture.md on the sources.

    5  nn  optim  utils  viz  distributions ...     the public names of the layer below
    4  cygrad  cygrad.autograd  cygrad.linalg ...   everything public that is not layer 5
    3  cygrad._ops
    2  cygrad._core
    1  cygrad._kernels

A module imports from its own layer and from those below. There are two exceptions: the Tensor, whose
number slots call ops (it imports them in its `.pyx`, never in its `.pxd`), and the functions of modules
in `cygrad.func`.

Within a private layer, the folders form no circle either: a folder imports only from folders that import nothing from
it, whether at import time or inside functions. The exceptions are stated below. What a module names by `later(...)` is
imported on first use, and may be anywhere in its layer.
"""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import CHECKOUT

SOURCES = sorted(path for pattern in ("*.py", "*.pyx", "*.pxd") for path in (CHECKOUT / "cygrad").rglob(pattern))

PRIVATE_LAYERS = {"_compiled": 1, "_library": 1, "_kernels": 1, "_core": 2, "_ops": 3}
PUBLIC_LAYER = 4
TOP_LAYER = 5
TOP_PACKAGES = {
    *("__main__", "as_torch", "distributed", "distributions", "nn", "optim", "serialization", "utils", "viz"),
    "multiprocessing",
    *("_dynamo", "_inductor", "_jit_internal", "compiler"),  # as programs for compilers see them, and the next
    *("ao", "export", "fx", "jit", "onnx", "quantization"),
    *(
        "_C",
        "_VF",
        "_functorch",
        "_guards",
        "_higher_order_ops",
        "_subclasses",
        "_tensor",
        "_tensor_str",
        "_utils",
    ),  # private names of PyTorch
    "_weights_only_unpickler",
}

# Error classes have their public module loaded, as some picklers look for them in loaded modules only.
UPWARD = {
    ("cygrad/_core/errors/classes.py", "cygrad.errors"),
    ("cygrad/_core/graph/tensor.pyx", "cygrad._ops"),
    ("cygrad/func/modules.py", "cygrad.nn.utils.stateless"),
}
# The private names that layer 5 may use: compiled optimizer steps, the op functions that are public only in
# nn.functional, the repr of a tensor, DLPack devices, gamma distributed numbers, hook handles, whether a profiler is
# active, the memory behind tensors and the state of modules (for files), captured programs and the guards of their
# state (for compiled functions), the running backward pass (for checkpoints),
# and the user's source lines (for checkpoints, pictures and the graph growth warning); modules of settings; and what
# modules stand for that PyTorch has and that are private there; and recorded programs, which `export`, `jit` and `onnx`
# share.
INWARD = {
    # hooks of a running backward pass, and what layers of training on several processes share
    ("cygrad/distributed/_data_parallel/reducer.py", "cygrad._core.engine.backward"),
    ("cygrad/distributed/fsdp/_unit.py", "cygrad._core.engine.backward"),
    ("cygrad/nn/parallel/distributed.py", "cygrad.distributed._data_parallel"),
    ("cygrad/nn/parallel/distributed.py", "cygrad.distributed._data_parallel.agreement"),
    ("cygrad/nn/parallel/distributed.py", "cygrad.distributed._data_parallel.joining"),
    ("cygrad/nn/parallel/distributed.py", "cygrad.distributed._deterministic"),
    ("cygrad/nn/utils/clip_grad.py", "cygrad.distributed.tensor._sharded_parameter"),
    # how tensors travel to other processes
    ("cygrad/multiprocessing/reductions.py", "cygrad._core.graph.internals"),
    ("cygrad/multiprocessing/reductions.py", "cygrad._core.tensor.convert"),
    ("cygrad/multiprocessing/reductions.py", "cygrad._core.tensor.transfer"),
    ("cygrad/_C/__init__.py", "cygrad.__config__"),
    ("cygrad/_C/__init__.py", "cygrad._core.engine.backward"),
    ("cygrad/_C/__init__.py", "cygrad._core.registry.disabled"),
    ("cygrad/_C/__init__.py", "cygrad._core.registry.torch_function"),
    ("cygrad/nn/parameter.py", "cygrad._core.registry.disabled"),
    ("cygrad/_C/__init__.py", "cygrad._core.transforms"),
    ("cygrad/_C/__init__.py", "cygrad.overrides._modes"),
    ("cygrad/_C/_autograd.py", "cygrad._core.engine.backward"),
    ("cygrad/_C/_autograd.py", "cygrad._core.graph.internals"),
    ("cygrad/_C/_autograd.py", "cygrad._core.runtime.thread_state"),
    ("cygrad/_C/_autograd.py", "cygrad._core.saved.saved_tensor_hooks"),
    ("cygrad/_C/_functions.py", "cygrad._core.graph.accumulate_grad"),
    ("cygrad/_C/_functorch.py", "cygrad._core.transforms.forward_mode"),
    ("cygrad/_C/_functorch.py", "cygrad._core.transforms.vmap_levels"),
    ("cygrad/_C/_nn.py", "cygrad.ops._aten"),
    ("cygrad/utils/_contextlib.py", "cygrad._core.runtime.in_contexts"),
    ("cygrad/_dynamo/__init__.py", "cygrad.compiler._backends"),
    ("cygrad/_dynamo/__init__.py", "cygrad.compiler._watching"),
    ("cygrad/_dynamo/config.py", "cygrad.utils._config_module"),
    ("cygrad/_functorch/config.py", "cygrad.utils._config_module"),
    ("cygrad/_functorch/vmap.py", "cygrad._C._functorch"),
    ("cygrad/_functorch/vmap.py", "cygrad._core.errors.sites"),
    ("cygrad/_functorch/vmap.py", "cygrad._core.transforms.forward_mode"),
    ("cygrad/_functorch/vmap.py", "cygrad._core.transforms.vmap_levels"),
    ("cygrad/_functorch/vmap.py", "cygrad._ops.random.generator"),
    ("cygrad/_functorch/vmap.py", "cygrad._ops.shape.stacking"),
    ("cygrad/_functorch/vmap.py", "cygrad.func._batching"),
    ("cygrad/_functorch/vmap.py", "cygrad.utils._pytree"),
    ("cygrad/_inductor/config.py", "cygrad.utils._config_module"),
    ("cygrad/_tensor/__init__.py", "cygrad._core.registry.torch_function"),
    ("cygrad/_tensor_str/__init__.py", "cygrad._core.tensor.tensor_str"),
    ("cygrad/_utils/__init__.py", "cygrad._C._nn"),
    ("cygrad/_utils/__init__.py", "cygrad.serialization._rebuilding"),
    ("cygrad/_weights_only_unpickler.py", "cygrad.serialization._safe_globals"),
    ("cygrad/_weights_only_unpickler.py", "cygrad.serialization._unpickler"),
    ("cygrad/as_torch/__init__.py", "cygrad._core.graph.tensor"),
    ("cygrad/as_torch/ops.py", "cygrad.ops._higher_order"),
    ("cygrad/distributed/tensor/__init__.py", "cygrad.serialization._safe_globals"),
    ("cygrad/fx/_pytree.py", "cygrad.utils._pytree"),
    ("cygrad/fx/_symbolic_trace.py", "cygrad.utils._pytree"),
    ("cygrad/compiler/_backends.py", "cygrad._dynamo.exc"),
    ("cygrad/compiler/_backends.py", "cygrad._inductor"),
    ("cygrad/compiler/_explaining.py", "cygrad._core.replay.guards.signature"),
    ("cygrad/compiler/_state.py", "cygrad._core.replay.guards.state"),
    ("cygrad/compiler/_state.py", "cygrad._core.replay.guards.walk"),
    ("cygrad/compiler/_state.py", "cygrad._core.runtime.settings"),
    ("cygrad/compiler/_state.py", "cygrad._core.types.device"),
    ("cygrad/compiler/_state.py", "cygrad._kernels.device.cupy_library"),
    ("cygrad/compiler/_state.py", "cygrad._kernels.gpu.runtime.matmul_precision"),
    ("cygrad/compiler/_state.py", "cygrad._ops.random.source"),
    ("cygrad/compiler/_state.py", "cygrad.func._batching"),
    ("cygrad/compiler/_state.py", "cygrad.nn.modules._use"),
    ("cygrad/compiler/_step.py", "cygrad._core.errors.classes"),
    ("cygrad/compiler/_step.py", "cygrad._core.replay"),
    ("cygrad/compiler/_step.py", "cygrad._core.replay.capture"),
    ("cygrad/compiler/_step.py", "cygrad._core.replay.casts"),
    ("cygrad/compiler/_step.py", "cygrad._core.replay.calls.plans"),
    ("cygrad/compiler/_step.py", "cygrad._core.replay.program"),
    ("cygrad/compiler/_step.py", "cygrad._core.replay.guards.signature"),
    ("cygrad/compiler/_step.py", "cygrad._core.replay.returns.returned"),
    ("cygrad/compiler/_values.py", "cygrad._core.replay.returns.flows"),
    ("cygrad/compiler/_values.py", "cygrad._core.replay.guards.state"),
    ("cygrad/compiler/_values.py", "cygrad._core.replay.returns.returned"),
    ("cygrad/compiler/_values.py", "cygrad._core.types.return_types"),
    ("cygrad/compiler/_watching.py", "cygrad._core.replay.returns.returned"),
    ("cygrad/compiler/_watching.py", "cygrad._core.replay.situation"),
    ("cygrad/compiler/_watching.py", "cygrad._kernels.device"),
    ("cygrad/compiler/_wrapping.py", "cygrad._dynamo.eval_frame"),
    ("cygrad/distributions/_implicit.py", "cygrad._ops.random.sampling"),
    ("cygrad/export/_exported_module.py", "cygrad._dynamo.exc"),
    ("cygrad/export/_exported_module.py", "cygrad.jit._traced"),
    ("cygrad/export/_onnx_files.py", "cygrad.onnx._onnx_program"),
    ("cygrad/export/_programs/recording.py", "cygrad._core.errors.sites"),
    ("cygrad/export/_programs/recording.py", "cygrad._core.graph.observers"),
    ("cygrad/export/exported_program.py", "cygrad.utils._sympy.value_ranges"),  # the class that PyTorch returns
    ("cygrad/fx/experimental/proxy_tensor.py", "cygrad._core.graph.internals"),
    ("cygrad/fx/experimental/proxy_tensor.py", "cygrad.utils._python_dispatch"),
    ("cygrad/fx/experimental/proxy_tensor.py", "cygrad.utils._pytree"),
    ("cygrad/fx/passes/dialect/common/cse_pass.py", "cygrad.utils._pytree"),
    ("cygrad/fx/passes/tools_common.py", "cygrad.serialization._names"),
    ("cygrad/fx/passes/utils/matcher_with_name_node_map_utils.py", "cygrad.utils._pytree"),
    ("cygrad/fx/passes/utils/source_matcher_utils.py", "cygrad.serialization._names"),
    # what functions of PyTorch's private packages share: nested containers, and dimensions
    ("cygrad/_higher_order_ops/associative_scan.py", "cygrad._prims_common"),
    ("cygrad/_higher_order_ops/associative_scan.py", "cygrad.utils._pytree"),
    ("cygrad/_higher_order_ops/map.py", "cygrad.utils._pytree"),
    ("cygrad/_higher_order_ops/scan.py", "cygrad._prims_common"),
    ("cygrad/_higher_order_ops/scan.py", "cygrad.utils._pytree"),
    ("cygrad/jit/_trace.py", "cygrad.export._programs"),
    ("cygrad/jit/_traced.py", "cygrad.export._programs"),
    ("cygrad/nn/functional.py", "cygrad._ops"),
    ("cygrad/onnx/utils.py", "cygrad.export._onnx_files"),
    ("cygrad/utils/_mode_utils.py", "cygrad._core.registry.dispatch"),
    ("cygrad/utils/_flops.py", "cygrad.ops._dispatch"),
    ("cygrad/utils/_flops.py", "cygrad.ops._dispatch_rules"),
    ("cygrad/utils/_python_dispatch.py", "cygrad._core.registry.dispatch"),
    ("cygrad/utils/module_tracker.py", "cygrad._core.engine.backward"),
    ("cygrad/compiler/_state.py", "cygrad.__future__"),
    ("cygrad/nn/modules/_module/conversion.py", "cygrad.__future__"),
    ("cygrad/nn/modules/_module/state.py", "cygrad.__future__"),
    ("cygrad/nn/parameter.py", "cygrad._core.tensor.tensor_str"),
    ("cygrad/optim/adam.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/adam.py", "cygrad._core.replay.numbers"),
    ("cygrad/optim/adam.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/formula.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/formula.py", "cygrad._core.replay.numbers"),
    ("cygrad/optim/formula.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/muon.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/muon.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/optimizer.py", "cygrad._core.runtime.thread_state"),
    ("cygrad/optim/optimizer.py", "cygrad.utils._foreach_utils"),
    ("cygrad/optim/sgd.py", "cygrad._core.graph.internals"),
    ("cygrad/optim/sgd.py", "cygrad._core.replay.numbers"),
    ("cygrad/optim/optimizer.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/sgd.py", "cygrad._kernels.optimizer_steps"),
    ("cygrad/optim/swa_utils.py", "cygrad._core.replay.decisions"),
    ("cygrad/serialization/_pickler.py", "cygrad._core.registry.wrappers"),  # tensors without elements
    ("cygrad/serialization/_names.py", "cygrad.nn.modules._module.state"),
    ("cygrad/serialization/_pickler.py", "cygrad._ops.shape.memory_ranges"),
    ("cygrad/serialization/_pickler.py", "cygrad.nn.modules._module.exchange"),
    ("cygrad/serialization/_rebuilding.py", "cygrad._ops.shape.memory_ranges"),
    ("cygrad/utils/__init__.py", "cygrad._core.graph.internals"),
    ("cygrad/utils/_flops.py", "cygrad._core.graph.observers"),
    ("cygrad/utils/_flops.py", "cygrad._core.graph.opdef"),
    ("cygrad/utils/_selective.py", "cygrad._core.graph.internals"),
    ("cygrad/utils/_selective.py", "cygrad._core.registry.autocast"),
    ("cygrad/utils/_selective.py", "cygrad._core.saved.saved_tensor_hooks"),
    ("cygrad/utils/_surroundings.py", "cygrad._core.registry.autocast"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.runtime.interrupt_safe"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.engine.backward"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.errors.sites"),
    ("cygrad/utils/checkpoint.py", "cygrad._core.runtime.thread_state"),
    ("cygrad/utils/debugging.py", "cygrad._core.runtime.interrupt_safe"),
    ("cygrad/utils/debugging.py", "cygrad._core.diagnostics.graph_growth"),
    ("cygrad/utils/deterministic.py", "cygrad._core.runtime.settings"),
    ("cygrad/utils/dlpack.py", "cygrad._ops.creation.dlpack"),
    ("cygrad/utils/hooks.py", "cygrad._core.types.hook_handles"),
    ("cygrad/utils/warning.py", "cygrad._core.errors.sites"),
    ("cygrad/viz/_collect.py", "cygrad._core.errors.sites"),
}
CUPY_IS_IMPORTED_IN = ("cygrad/_kernels/", "cygrad/_core/types/device.", "cygrad/cuda")
LONGEST_FILE = 1000  # lines; longer files are listed, but pass
MOST_FILES = 25  # in a folder, `__init__.py` and README.md not counted

# Pairs of folders (importing, imported) that may be on a circle, and why.
TIED = {
    ("_ops.base", "_ops.base.checks"): "the ops reach their checks on first use, and the checks use the ops' parsers",
    ("_kernels.platform", "_kernels.tape"): "threads and memory tell the tape, whose programs run on them",
    ("_core.graph", "_core.engine"): "`Tensor.backward` and `Tensor.grad` are slots of the type in tensor.pyx",
    ("_core.graph", "_core.tensor"): "the conversions of `Tensor` are slots of the type in tensor.pyx",
}
# The only module that may make each of the ties in `_core`.
TYING = {
    ("_core.graph", "_core.engine"): "cygrad/_core/graph/tensor.pyx",
    ("_core.graph", "_core.tensor"): "cygrad/_core/graph/tensor.pyx",
}

GPU, CPU = CHECKOUT / "cygrad" / "_kernels" / "gpu", CHECKOUT / "cygrad" / "_kernels" / "cpu"
NOT_FAMILIES = {"launch", "runtime", "libraries"}
GPU_ONLY = {
    "base/joining.py": "a part of base/arrays.py: no form, but a kernel that its forms launch",
    "image/implicit_convolution.py": "a part of image/convolution.py: no form, but kernels that its forms launch",
    "nn/column_sums.py": "a part of nn/normalization.py: no form, but kernels that its forms launch",
    "nn/runs.py": "likewise",
    "nn/attention_streams.py": "a part of nn/attention.py: no form, but kernels that its forms launch",
    "optim/host_numbers.py": "numbers that captured steps of optimizers read anew: no form",
    "nn/attention_views.py": "a part of nn/attention.py: what its kernels have in common",
    "nn/recurrent_loops.py": "a part of nn/recurrent.py: no form, but kernels that its forms launch",
    "optim/counted_formulas.py": "for steps that are counted on a GPU",
    "optim/grad_scaling.py": "for arrays in memory, amp.GradScaler does the same by tensor ops",
    "optim/matrices.py": "for arrays in memory, Muon does the same by tensor ops",
}

STRINGS = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'', re.DOTALL)
COMMENT = re.compile(r"#.*")
IMPORT = re.compile(
    r"""^(?P<indent>[ \t]*)
        (?: from[ ]+(?P<origin>[\w.]+)[ ]+(?P<how>c?import)[ ]+
            (?: \((?P<list>[^)]*)\) | (?P<names>.+) )
          | (?P<plain>c?import)[ ]+(?P<modules>.+) )$""",
    re.MULTILINE | re.VERBOSE,
)
CALL = re.compile(r"""\b(later|import_module)\(\s*"([\w.]+)"\s*\)""")
BLOCK = re.compile(r"\s*(?:(?P<types>if TYPE_CHECKING)|(?:async )?def|cpdef|cdef(?! (class|extern|struct|enum)))\b")


# --- Reading -----------------------------------------------------------------------------------


@cache
def place(path):
    """A file's path relative to the checkout, as in the tables below."""
    return path.relative_to(CHECKOUT).as_posix()


def module_name(path):
    """`cygrad/_core/graph/node.pyx` is `cygrad._core.graph.node`; an `__init__` is its package."""
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in SOURCES}


class Import(NamedTuple):
    """One imported module; `how` is "import", "cimport", "lazy" (inside a function), "types", or "later"."""

    module: str
    how: str
    line: int


@cache
def imports(path):
    """Return everything that a file imports, wherever in the file."""
    text = path.read_text(encoding="utf-8")
    code = COMMENT.sub("", STRINGS.sub(lambda match: '""' + "\n" * match[0].count("\n"), text))
    lines = code.split("\n")
    found = []
    for match in IMPORT.finditer(code.replace("\\\n", " \f")):
        line = code.count("\n", 0, match.start())
        how = match["how"] or match["plain"]
        if how == "import" and match["indent"]:
            how = _kind_of_block(lines, line, len(match["indent"]))
        if match["origin"]:
            origin = _absolute(match["origin"], path)
            for name in _names((match["list"] or match["names"]).replace("\f", " ")):
                inner = f"{origin}.{name}"
                found.append(Import(inner if inner in MODULES else origin, how, line + 1))
        else:
            found += [Import(name, how, line + 1) for name in _names(match["modules"])]
    for match in CALL.finditer(code):
        found.append(Import(match[2], "later", code.count("\n", 0, match.start()) + 1))
    return found


def _kind_of_block(lines, line, indent):
    """Return how the import on an indented line takes place: "lazy" in a function, "types" for type checkers alone."""
    for above in reversed(lines[:line]):
        if above.strip() and len(above) - len(above.lstrip()) < indent:
            indent = len(above) - len(above.lstrip())
            block = BLOCK.match(above)
            if block:
                return "types" if block["types"] else "lazy"
            if not indent:
                break
    return "import"


def imported(path):
    """Yield `(module, is_cimport)` for everything that a file imports, wherever in the file."""
    for module, how, _ in imports(path):
        yield module, how == "cimport"


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
    """The layer of one of our modules, `None` for third-party modules."""
    first, _, rest = module.partition(".")
    if first != "cygrad":
        return None
    second = rest.partition(".")[0]
    if second in TOP_PACKAGES:
        return TOP_LAYER
    return PRIVATE_LAYERS.get(second, PUBLIC_LAYER)


def is_private(module):
    """Whether it is a module of ours that no user should name."""
    return layer(module) is not None and any(part.startswith("_") for part in module.split("."))


# --- The rules ---------------------------------------------------------------------------------


def test_there_is_something_to_read():
    layers = {layer(module) for module in MODULES}
    assert layers == {1, 2, 3, 4, 5}
    tensor = CHECKOUT / "cygrad" / "_core" / "graph" / "tensor.pxd"
    assert ("cygrad._core.graph.node", True) in set(imported(tensor))


def test_imports_point_down():
    upward = []
    for path in SOURCES:
        own = layer(module_name(path))
        for module, _ in imported(path):
            if layer(module) is not None and layer(module) > own and not is_listed(path, module, UPWARD):
                upward.append(f"{place(path)} (layer {own}) imports {module}")
    assert not upward


def test_top_layer_uses_public_names_alone():
    inward = []
    for path in SOURCES:
        top_package = ".".join(module_name(path).split(".")[:2])
        if layer(top_package) == TOP_LAYER:
            for module, _ in imported(path):
                if is_private(module) and not module.startswith(top_package) and not is_listed(path, module, INWARD):
                    inward.append(f"{place(path)} reaches into {module}")
    assert not inward


def is_listed(path, module, exceptions):
    """Whether a file may import a module, or the package that holds it."""
    return any(place(path) == who and f"{module}.".startswith(f"{what}.") for who, what in exceptions)


def test_pxd_files_form_no_circle():
    # Cython compiles circular .pxd imports only if their order happens to work.
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


def test_cupy_is_imported_in_few_places():
    by_call = re.compile(r"""(import_module|__import__)\(["']cupy""")
    elsewhere = [path for path in SOURCES if not place(path).startswith(CUPY_IS_IMPORTED_IN)]
    importing = [
        place(path)
        for path in elsewhere
        if any(module.partition(".")[0] == "cupy" for module, _ in imported(path))
        or by_call.search(path.read_text("utf-8"))
    ]
    assert len(elsewhere) < len(SOURCES)
    assert not importing


def folder(module):
    """The folder of a module, as a package without "cygrad."."""
    parts = module.split(".")
    is_package = (CHECKOUT / Path(*parts)).is_dir()
    return ".".join(parts[1:] if is_package else parts[1:-1])


def arrows(layer, hows):
    """Return {(importing folder, imported folder): [(file, line, module)]} for the imports within one private layer."""
    found = defaultdict(list)
    for path in SOURCES:
        own = folder(module_name(path))
        if f"{own}.".startswith(f"{layer}."):
            for module, how, line in imports(path):
                if how in hows and module.startswith(f"cygrad.{layer}.") and folder(module) != own:
                    found[own, folder(module)].append((place(path), line, module))
    return found


def reachable(start, graph):
    found, todo = set(), [start]
    while todo:
        for other in graph.get(todo.pop(), ()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


@pytest.mark.parametrize(
    ("layer", "hows"),
    [
        ("_kernels", {"import", "cimport", "lazy"}),
        ("_ops", {"import", "cimport", "lazy"}),
        ("_core", {"import", "cimport"}),  # diagnostics and transforms are reached on first use
    ],
)
def test_folders_form_no_circle(layer, hows):
    pairs = arrows(layer, hows)
    assert pairs
    graph = defaultdict(set)
    for own, other in pairs.keys() - TIED.keys():
        graph[own].add(other)
    for own, other in pairs.keys() - TIED.keys():
        assert own not in reachable(other, graph), f"{own} -> {other} closes a circle: {pairs[own, other]}"


def test_ties_are_needed_and_made_in_one_module():
    for (own, other), reason in TIED.items():
        layer = own.partition(".")[0]
        pairs = arrows(layer, {"import", "cimport"} if layer == "_core" else {"import", "cimport", "lazy"})
        assert (own, other) in pairs, f"{own} -> {other} is tied no more: remove it ({reason})"
        if (own, other) in TYING:
            assert {file for file, *_ in pairs[own, other]} == {TYING[own, other]}


def test_folders_are_small():
    folders = {path.parent for path in SOURCES} | {path.parent for path in (CHECKOUT / "cygrad").rglob("*.h")}
    suffixes = {".py", ".pyx", ".pxd", ".h"}
    for each in folders:
        if any(part in PRIVATE_LAYERS for part in each.parts):
            count = sum(path.suffix in suffixes and path.name != "__init__.py" for path in each.iterdir())
            assert count <= MOST_FILES, f"{place(each)} holds {count} files: split it by concept"


def gpu_modules():
    found = [path for path in GPU.rglob("*.py") if path.name != "__init__.py" and path.parent != GPU]
    return [path for path in found if path.relative_to(GPU).parts[0] not in NOT_FAMILIES]


def test_gpu_modules_have_namesakes():
    # A form is found by the name of its kernel's module; one in another place would silently not be used.
    assert len(gpu_modules()) > 30
    for path in gpu_modules():
        name = path.relative_to(GPU)
        twins = [(CPU / name).with_suffix(suffix) for suffix in (".py", ".pyx")]
        assert (name.as_posix() in GPU_ONLY) != any(twin.exists() for twin in twins), place(path)


def test_forms_in_float32_have_kernels():
    # The decorator has an effect only on functions that are found as the form of a kernel.
    marked = 0
    for path in gpu_modules():
        for name in re.findall(r"^@half_as_float32\ndef (\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            twin = next(
                twin
                for suffix in (".py", ".pyx")
                if (twin := (CPU / path.relative_to(GPU)).with_suffix(suffix)).exists()
            )
            kernel = rf"^(def {name}\(|cpdef [^(\n]*\b{name}\(|{name} = )"
            assert re.search(kernel, twin.read_text(encoding="utf-8"), re.MULTILINE), f"no kernel is named {name}"
            marked += 1
    assert marked > 15


def test_lazy_imports_state_their_reason():
    silent = []
    for path in SOURCES:
        lines = path.read_text(encoding="utf-8").split("\n")
        for module, how, line in imports(path):
            reason = "#" in lines[line - 1] or lines[line - 2].lstrip().startswith("#")
            if how == "lazy" and not reason:
                silent.append(f"{place(path)}:{line} imports {module} in a function: state the reason in a comment")
    assert not silent


def test_long_files(record_property):
    """List the long files, without failing: length alone is no reason to split a file."""
    for path in SOURCES:
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONGEST_FILE:
            record_property("long file", f"{place(path)}: {lines} lines")
            print(f"{place(path)} has {lines} lines: could it be split by concept?")


def test_each_module_is_compiled_once():
    # One extension per .pyx: no `include`, and no .py with the same name.
    for path in SOURCES:
        code = STRINGS.sub('""', path.read_text(encoding="utf-8"))
        assert not re.search(r"^\s*include\s+[\"']", code, re.MULTILINE), place(path)
        if path.suffix == ".pyx":
            assert not path.with_suffix(".py").exists(), place(path)


def test_cython_sees_what_is_cimported():
    """Cython recompiles a file when a `.pxd` it uses changes, but misses `from package cimport module`."""
    missed = []
    for path in SOURCES:
        for match in IMPORT.finditer(COMMENT.sub("", STRINGS.sub('""', path.read_text(encoding="utf-8")))):
            if match["origin"] and match["how"] == "cimport":
                for name in _names(match["list"] or match["names"]):
                    if f"{match['origin']}.{name}" in MODULES:
                        missed.append(f"{place(path)}: write `cimport {match['origin']}.{name} as {name}`")
    assert not missed
