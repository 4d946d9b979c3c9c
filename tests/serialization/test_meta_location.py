"""`load(map_location="meta")` gives tensors of the shapes in a file, without their elements."""

import pytest

import cygrad as torch


@pytest.mark.parametrize("where", ["meta", torch.device("meta"), {"cpu": "meta"}, lambda storage, location: None])
@pytest.mark.parametrize("name", ["weights.pt", "weights.safetensors"])
def test_shapes_without_elements(tmp_path, name, where):
    torch.save({"w": torch.ones(2, 3), "n": torch.ones(4, dtype=torch.int64)}, tmp_path / name)
    found = torch.load(tmp_path / name, map_location=where)
    assert (found["w"].shape, found["n"].dtype) == ((2, 3), torch.int64)
    assert found["w"].is_meta == (not callable(where))
