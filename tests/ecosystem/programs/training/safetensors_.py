"""Tensors and models are saved to safetensors files, and come back."""

import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

tensors = {
    "a": torch.arange(6.0).reshape(2, 3),
    "b": torch.tensor([1, 2], dtype=torch.int64),
    "c": torch.ones(3, dtype=torch.bfloat16),
    "d": torch.tensor([True, False]),
}
with tempfile.TemporaryDirectory() as directory:
    path = f"{directory}/tensors.safetensors"
    save_file(tensors, path, metadata={"made": "here"})
    loaded = load_file(path)
    assert all(loaded[name].equal(each) and loaded[name].dtype == each.dtype for name, each in tensors.items())
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == {"made": "here"} and file.get_slice("a")[:, 1:].tolist() == [[1, 2], [4, 5]]
    models = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    save_model(models[0], path)
    load_model(models[1], path)
assert models[0].weight.equal(models[1].weight)
