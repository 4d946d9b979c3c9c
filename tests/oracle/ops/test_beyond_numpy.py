"""Dtypes that NumPy lacks, against PyTorch: what they are, float8 conversions, files."""

import pytest

torch = pytest.importorskip("torch")
import cygrad  # noqa: E402

pytestmark = pytest.mark.oracle

FLOAT8 = [f"float8_{kind}" for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")]
NAMES = sorted(name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype))


@pytest.mark.parametrize("name", NAMES)
def test_what_dtypes_are(name):
    ours, theirs = getattr(cygrad, name), getattr(torch, name)
    for asked in ("itemsize", "is_floating_point", "is_complex"):
        assert getattr(ours, asked) == getattr(theirs, asked)
    assert repr(ours) == repr(theirs) and repr(ours.to_real()) == repr(theirs.to_real())
    if not name.startswith(("q", "bits")):  # of which PyTorch does not say it
        assert ours.is_signed == theirs.is_signed
    if theirs.is_floating_point and name != "float4_e2m1fn_x2":
        assert repr(cygrad.finfo(ours)) == repr(torch.finfo(theirs))


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_conversions(name):
    pytest.importorskip("ml_dtypes")
    numbers = [1e39, -1e39, 1e9, -1e9, float("inf"), 460.0, 447.0, 1.0625, 1.1875, 17.0, 19.0, 1e-3, 3.0, 1e-40, 0.0]
    ours = cygrad.tensor(numbers).to(getattr(cygrad, name))
    theirs = torch.tensor(numbers).to(getattr(torch, name))
    assert ours.view(cygrad.uint8).tolist() == theirs.view(torch.uint8).tolist()
    assert str(ours.float().tolist()) == str(theirs.float().tolist())


def test_float8_files(tmp_path):
    pytest.importorskip("ml_dtypes")
    torch.save({name: torch.tensor([1.0, 2.0]).to(getattr(torch, name)) for name in FLOAT8}, tmp_path / "f")
    loaded = cygrad.load(tmp_path / "f")
    assert all(loaded[name].tolist() == [1, 2] and loaded[name].dtype.name == name for name in FLOAT8)
