"""Runs a program on PyTorch: `python on_pytorch.py program.py`.

torchvision's library in C++ fits only the build of PyTorch that it was made for, which need not be the one at hand.
The programs do not use it, but torchvision cannot be imported unless two of its ops exist, so these are declared.
"""

import runpy
import sys
from importlib.util import find_spec

import torch

if find_spec("torchvision") is not None:
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for op in ("nms", "qnms"):
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
