"""Code above the kernels that decides by the values of arrays is on the list of readers, so that no capture trusts it.

An approximation, in each function by itself: what comes from `array_of` and the like, and what is computed from it, may
not be tested, compared, counted or converted to Python's numbers.
"""

import ast
from pathlib import Path

import pytest

import cygrad
from cygrad._kernels.meta.forms import indexing, reduction
from cygrad._kernels.tape import vetted

FOLDER = Path(cygrad.__file__).parent / "_ops"
SOURCES = {"array_of", "own_array", "holding_memory", "values_of"}
SHAPES = set("base dtype flags itemsize kind nbytes ndim num shape size strides".split())
# Calls whose results say nothing about values, and functions that are noted (calls.pyx)
BLIND = set(
    "len isinstance type id tensor_of record_n record_outputs is_array is_meta is_half has_loop is_dense are_within "
    "first_outside check_each check_bounds first_failure _are_probabilities _out_of_range _is_any any_true _are_equal "
    "_are_regular _are_finite _are_normal _are_within _are_in_range _has_negative _has_less_than _joined_in_bags "
    "_number_of_classes".split()
)
METHODS = set("reshape transpose view swapaxes ravel astype copy squeeze conj to add broadcast_to delivered".split())
NUMBERS = set("float int bool max min any all sum sorted range str repr".split())

# Functions that look like readers: they test whether there is an array, its kind, or its place in memory.
SAFE = {
    "elementwise/complex.py": "require_pairs",
    "elementwise/rounding.py": "check_division",  # by functions that are noted, as the next
    "elementwise/selection.py": "bounded",
    "loss/ctc.py": "ctc_loss_of_package",  # of lengths, which are tested again
    "nn/batch_norm.py": "_check_running",
    "nn/embeddings.py": "embedding_of_package embedding_bag_of_package",  # for their errors
    "nn/recurrent.py": "layer_rule",
    "nn/scaled_dot_product.py": "_is_large blocks_rule attention_by_blocks",
    "reduction/statistics.py": "check_quantiles",
    "reduction/extrema.py": "share_between_equals",  # which is_open() keeps from it
    "shape/memory_ranges.py": "memory_range offset_in",
    "shape/slice_scatter.py": "as_strided_scatter",
    "signal/stft.py": "described",
}


class Function:
    """A function's body, with the names that hold arrays or what was computed from them."""

    def __init__(self, node):
        self.nodes = list(ast.walk(node))
        self.names = set()
        before = -1
        while before != len(self.names):
            before = len(self.names)
            for each in self.nodes:
                if isinstance(each, (ast.Assign, ast.AugAssign, ast.NamedExpr)) and self.holds(each.value):
                    self.enter(each.targets if isinstance(each, ast.Assign) else [each.target])
                elif isinstance(each, (ast.For, ast.comprehension)) and self.holds(each.iter):
                    self.enter([each.target])

    def enter(self, targets):
        self.names.update(each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))

    def holds(self, node):
        """Whether an expression holds elements of an array."""
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.Lambda):
            return False
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else None
            if name in SOURCES or name in BLIND:
                return name in SOURCES
        if isinstance(node, ast.Attribute) and node.attr in SHAPES:
            return False
        if isinstance(node, ast.Compare) and all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            return False
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.holds(node.elt)
        return any(self.holds(each) for each in ast.iter_child_nodes(node) if isinstance(each, (ast.expr, ast.keyword)))

    def reads(self, node):
        """Whether an expression or statement decides by values."""
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return self.holds(node.test)
        if isinstance(node, (ast.BoolOp, ast.Compare)):
            return self.holds(node)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) and self.holds(node.operand)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and self.holds(node.func.value):
            return node.func.attr in ("item", "tolist") or node.func.attr not in METHODS and node.func.attr in NUMBERS
        return isinstance(node.func, ast.Name) and node.func.id in NUMBERS and any(map(self.holds, node.args))


def readers(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            function = Function(node)
            if any(map(function.reads, function.nodes)):
                yield node.name


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_readers_are_listed(path):
    name = path.relative_to(FOLDER).as_posix()
    known = vetted.READERS.get(name, frozenset()) | set(SAFE.get(name, "").split())
    if not name.startswith(vetted.READING):
        assert set(readers(path)) <= known


def test_listed_readers_exist():
    for file, names in vetted.READERS.items():
        tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
        assert names <= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_no_other_function_is_called_safe():
    for file, names in SAFE.items():
        assert set(names.split()) <= set(readers(FOLDER / file))


def test_kernels_of_data_size_are_those_without_a_form_for_meta():
    refusing = {
        name
        for module in (indexing, reduction)
        for name, form in vars(module).items()
        if getattr(form, "__qualname__", "").startswith("refused.")
    }
    assert refusing == vetted.OF_DATA_SIZE
