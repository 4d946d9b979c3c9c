"""The names of the `_saved_...` attributes of every node that the samples of ops make, against PyTorch's.

Nodes here save no more tensors than their gradients need, so attributes of tensors may be missing; those of arguments
and shapes may not, and there are no others.
"""

import pytest
from ops.calls import DIFFERENTIABLE, SAMPLES, Call, Cygrad
from oracle.ops.test_ops import OTHER_NODES, SHARED, Torch

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Nodes with other attributes: {name: reason}.
OTHER_NAMES = {
    **dict.fromkeys(
        ("AsStridedBackward0", "AsStridedBackward0_copy", "AsStridedScatterBackward0", "NarrowCopyBackward0"),
        "views are kept as places in memory",
    ),
    **dict.fromkeys(
        ("MaxPool2DWithIndicesBackward0", "MaxPool3DWithIndicesBackward0"),
        "a missing stride is not told from a given one",
    ),
    **dict.fromkeys(("AvgPool2DBackward0", "AvgPool3DBackward0"), "windows are kept as tables"),
    **dict.fromkeys(
        [
            f"Upsample{mode}Backward0"
            for mode in """Bicubic2DAa Bicubic2D Bilinear2DAa Bilinear2D Lanczos2DAa Linear1D Nearest1D Nearest2D
            Nearest3D NearestExact1D NearestExact2D NearestExact3D Trilinear3D""".split()
        ],
        "places and weights are kept as tables",
    ),
    **dict.fromkeys(
        ("FractionalMaxPool2DBackward0", "FractionalMaxPool3DBackward0"), "the indices are all that the gradient needs"
    ),
    **dict.fromkeys(
        ("CummaxBackward0", "CumminBackward0", "GatherBackward0", "TakeBackward0", "UnbindBackward0"),
        "the shape is kept in place of the tensor",
    ),
    "UnbindBackward0_copy": "as `UnbindBackward0`",
    **dict.fromkeys(
        ("SortBackward0", "SortBackward1", "TopkBackward0"), "the row is that of choices that may keep the dimension"
    ),
    **dict.fromkeys(("FillBackward0", "MaskedFillBackward0"), "shows the value"),
    **dict.fromkeys(
        ("AddmmBackward0", "MmBackward0", "UnsafeViewBackward0", "MulBackward0", "SubBackward0"),
        "a linear layer, product or loss is one row here, with the node that ends PyTorch's",
    ),
    "ConstantPadNdBackward0": "of the transforms, which keep a length",
    "ConvolutionBackward0": "the bias is not kept",
    "DivBackward2": "each mode of rounding is a row",
    "ExpandBackward0_copy": "the engine sums to the shape of the input",
    "FftC2RBackward0": "shows the length of the result",
    "LOBPCGAutogradFunctionBackward": "a Python function there",
    "LinalgEighBackward0": "shows the triangle that was read",
    "NormBackward1": "the row is that of `linalg.vector_norm`",
    "PolarBackward0": "the angle is needed for its second derivative",
    "SpecialNdtriBackward0": "computed from the input",
}


def attributes(name, sample, on):
    """{name of a node: names of its attributes}, for all nodes of a result; None if the sample fails."""
    try:
        results = Call(name, sample, on=on).run()
    except Exception:
        return None
    found, seen = {}, set()
    nodes = [node for out in results if (node := getattr(out, "grad_fn", None)) is not None]
    while nodes:
        node = nodes.pop()
        if id(node) not in seen:
            seen.add(id(node))
            names = [each for each in dir(node) if each.startswith(("_saved_", "_raw_saved_"))]
            found.setdefault(node.name(), (node, set()))[1].update(names)
            nodes += [inner for inner, _ in node.next_functions if inner is not None]
    return {key: names for key, (_, names) in found.items()}


def without_tensors(names):
    return {each for each in names if not each.startswith("_raw_") and f"_raw{each}" not in names}


@pytest.mark.parametrize("name", [name for name in SHARED if name in DIFFERENTIABLE and name not in OTHER_NODES])
def test_names(name):
    for sample in filter(lambda sample: sample.grad, SAMPLES[name]):
        found, expected = attributes(name, sample, Cygrad), attributes(name, sample, Torch)
        for node in (found or {}).keys() & (expected or {}).keys() - OTHER_NAMES.keys():
            missing = without_tensors(expected[node]) - found[node]
            assert not missing, f"{sample}: {node} lacks {missing}"
            assert found[node] <= expected[node], f"{sample}: {node} has {found[node] - expected[node]}"
