"""Placeholder for scripts that can export ONNX files, which cygrad does not support."""

__all__ = ["export"]


def export(*args, **kwargs):
    """Raises NotImplementedError."""
    raise NotImplementedError(
        "cygrad cannot write ONNX files\n"
        "  call torch.save(model.state_dict(), path) here; with PyTorch, call "
        "load_state_dict(safetensors.torch.load_file(path)) and torch.onnx.export"
    )
