"""What build scripts and libraries import to compile C++ against PyTorch, which cygrad is not made of.

The names are there, so that modules that import them can be imported; building or loading an extension raises
RuntimeError. Write a `cygrad.autograd.Function`, or compile with Cython on NumPy arrays (`tensor.numpy()`).
"""

import os
import shutil

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CUDA_HOME",
    "CppExtension",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]

_ADVICE = (
    "cygrad loads no C++ extensions of PyTorch\n"
    "  write a `torch.autograd.Function`, or compile code for NumPy arrays: `tensor.numpy()` shares its memory"
)


def _cuda_home():
    """Return the folder of the CUDA toolkit, or None."""
    named = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = shutil.which("nvcc")
    return named or (os.path.dirname(os.path.dirname(nvcc)) if nvcc else None)


CUDA_HOME = _cuda_home()
ROCM_HOME = CUDNN_HOME = None
IS_HIP_EXTENSION = False


def CppExtension(name, sources, *args, **kwargs):
    """Raise RuntimeError: an extension cannot be built.

    >>> import cygrad
    >>> cygrad.utils.cpp_extension.CppExtension("mylib", ["mylib.cpp"])
    Traceback (most recent call last):
        ...
    RuntimeError: cygrad loads no C++ extensions of PyTorch...
    """
    raise RuntimeError(_ADVICE)


def CUDAExtension(name, sources, *args, **kwargs):
    """Raise RuntimeError: an extension cannot be built.

    >>> import cygrad
    >>> cygrad.utils.cpp_extension.CUDAExtension("mylib", ["mylib.cu"])
    Traceback (most recent call last):
        ...
    RuntimeError: cygrad loads no C++ extensions of PyTorch...
    """
    raise RuntimeError(_ADVICE)


class BuildExtension:
    """The command of setuptools that builds extensions. Raises RuntimeError when it is run.

    >>> from cygrad.utils.cpp_extension import BuildExtension
    >>> command = BuildExtension.with_options(use_ninja=False)
    """

    def __init__(self, *args, **kwargs):
        raise RuntimeError(_ADVICE)

    @classmethod
    def with_options(cls, **options):
        """Return the command with options."""
        return cls


def load(name, sources, *args, **kwargs):
    """Raise RuntimeError: an extension cannot be built.

    >>> import cygrad
    >>> cygrad.utils.cpp_extension.load("mylib", ["mylib.cpp"])
    Traceback (most recent call last):
        ...
    RuntimeError: cygrad loads no C++ extensions of PyTorch...
    """
    raise RuntimeError(_ADVICE)


def load_inline(name, cpp_sources, *args, **kwargs):
    """Raise RuntimeError: an extension cannot be built.

    >>> import cygrad
    >>> cygrad.utils.cpp_extension.load_inline("mylib", "int f() { return 1; }")
    Traceback (most recent call last):
        ...
    RuntimeError: cygrad loads no C++ extensions of PyTorch...
    """
    raise RuntimeError(_ADVICE)


def include_paths(device_type="cpu", torch_include_dirs=True):
    """Return the folders of PyTorch's headers: there are none.

    >>> import cygrad
    >>> cygrad.utils.cpp_extension.include_paths()
    []
    """
    return []


def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """Return the folders of PyTorch's libraries: there are none.

    >>> import cygrad
    >>> cygrad.utils.cpp_extension.library_paths()
    []
    """
    return []


def is_ninja_available():
    """Whether the build system ninja is installed.

    >>> import cygrad
    >>> cygrad.utils.cpp_extension.is_ninja_available() in (True, False)
    True
    """
    return shutil.which("ninja") is not None


def verify_ninja_availability():
    """Raise RuntimeError unless ninja is installed.

    >>> from cygrad.utils.cpp_extension import is_ninja_available, verify_ninja_availability
    >>> if is_ninja_available():
    ...     verify_ninja_availability()
    """
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")
