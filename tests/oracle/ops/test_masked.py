"""Functions of `torch.masked` give what PyTorch gives, or its errors."""

import itertools

import pytest

import cygrad

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

REDUCTIONS = ("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "logsumexp", "norm", "var", "std")
OTHERS = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "median")
DIMS = ({}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"dim": (0, 1)}, {"dim": ()}, {"dim": 5}, {"dim": (1, 1)})


def outcomes(library, masked):
    """What each call gives."""
    x = library.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    kept = library.tensor([[True, False, True], [False, False, False]])
    inputs = {"float": x, "double": x.double(), "int": x.long(), "byte": x.abs().to(library.uint8), "bool": x > 0}
    masks = {"none": None, "bool": kept, "row": kept[0], "int": kept.long(), "3d": kept[None]}
    found = {}
    for (kind, value), (shape, mask) in itertools.product(inputs.items(), masks.items()):
        calls = [(name, how) for name in REDUCTIONS for how in (*DIMS, {"dim": 1, "dtype": library.float64})]
        calls += [(name, how) for name in OTHERS for how in ({"dim": 1}, {"dim": 0}, {"dim": 7})]
        calls += [("normalize", {"ord": 2, "dim": 1}), ("var", {"dim": 1, "unbiased": False})]
        calls += [("norm", {"ord": ord, "dim": 1}) for ord in (0, 1, float("inf"), float("-inf"))]
        for name, how in calls:
            if name.startswith("arg") and isinstance(how.get("dim"), tuple):
                continue
            found[kind, shape, name, str(how)] = outcome(getattr(masked, name), value, mask=mask, **how)
    return found


def outcome(function, *args, **kwargs):
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return type(error).__mro__[-3:], str(error).splitlines()[0]
    return str(result.dtype), tuple(result.shape), result.tolist()


def test_as_in_pytorch():
    import torch.masked

    ours, theirs = outcomes(cygrad, cygrad.masked), outcomes(torch, torch.masked)
    assert len(ours) > 1500
    for case, wanted in theirs.items():
        assert ours[case][:2] == wanted[:2], case
        if len(wanted) == 3:
            flat = [torch.tensor(each).flatten().tolist() for each in (ours[case][2], wanted[2])]
            assert flat[0] == pytest.approx(flat[1], rel=1e-5, nan_ok=True), case
