"""What a report of a bug should say about the machine: `python -m cygrad.utils.collect_env` prints it."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from typing import Any, NamedTuple

import cygrad

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

_PACKAGES = """
    cupy cygrad flake8 ml_dtypes mypy numpy onnx onnxruntime onnxscript opt_einsum optree safetensors scipy torch triton
""".split()
_SECONDS = 10  # that a compiler may take to say its version


class SystemEnv(NamedTuple):
    """What is known about the machine; None where it could not be found out.

    >>> from cygrad.utils.collect_env import SystemEnv
    >>> SystemEnv._fields[:2]
    ('torch_version', 'is_debug_build')
    """

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: str
    is_xnnpack_available: str
    cpu_info: str | None


# The lines of the report: a label, and the field that it shows. An empty label is an empty line.
_LINES = (
    ("PyTorch version", "torch_version"),
    ("Is debug build", "is_debug_build"),
    ("CUDA used to build PyTorch", "cuda_compiled_version"),
    ("ROCM used to build PyTorch", "hip_compiled_version"),
    ("", ""),
    ("OS", "os"),
    ("GCC version", "gcc_version"),
    ("Clang version", "clang_version"),
    ("CMake version", "cmake_version"),
    ("Libc version", "libc_version"),
    ("", ""),
    ("Python version", "python_version"),
    ("Python platform", "python_platform"),
    ("Is CUDA available", "is_cuda_available"),
    ("CUDA runtime version", "cuda_runtime_version"),
    ("CUDA_MODULE_LOADING set to", "cuda_module_loading"),
    ("GPU models and configuration", "nvidia_gpu_models"),
    ("Nvidia driver version", "nvidia_driver_version"),
    ("cuDNN version", "cudnn_version"),
    ("Is XPU available", "is_xpu_available"),
    ("HIP runtime version", "hip_runtime_version"),
    ("MIOpen runtime version", "miopen_runtime_version"),
    ("Is XNNPACK available", "is_xnnpack_available"),
    ("Caching allocator config", "caching_allocator_config"),
)


def _said_by(*command: str) -> str | None:
    """Return the first line that a program prints, or None if it does not run."""
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.partition("\n")[0].strip() or None


def _operating_system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"


def _packages() -> str:
    lines = []
    for name in _PACKAGES:
        try:
            lines.append(f"[pip3] {name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "\n".join(lines)


def _processor() -> str | None:
    """Return what Linux says about the first processor, or the name that Python knows."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return file.read().partition("\n\n")[0].replace("\t", "")
    except OSError:
        return platform.processor() or None


def _gpus() -> str | None:
    names = [cygrad.cuda.get_device_name(i) for i in range(cygrad.cuda.device_count())]
    return "\n".join(f"GPU {i}: {name}" for i, name in enumerate(names)) or None


def get_env_info() -> SystemEnv:
    """Return what is known about cygrad, Python, the compilers, the GPUs and the machine.

    >>> from cygrad.utils.collect_env import get_env_info
    >>> import platform
    >>> get_env_info().python_version.startswith(platform.python_version())
    True
    """
    version = sys.version.replace("\n", " ")
    return SystemEnv(
        torch_version=f"cygrad {cygrad.__version__}",
        is_debug_build="False",
        cuda_compiled_version=cygrad.version.cuda,
        gcc_version=_said_by("gcc", "--version"),
        clang_version=_said_by("clang", "--version"),
        cmake_version=_said_by("cmake", "--version"),
        os=_operating_system(),
        libc_version="-".join(platform.libc_ver()).strip("-") or "N/A",
        python_version=f"{version} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(cygrad.cuda.is_available()),
        cuda_runtime_version=None,
        cuda_module_loading="N/A",
        nvidia_driver_version=_said_by("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        nvidia_gpu_models=_gpus(),
        cudnn_version=None,
        is_xpu_available="False",
        pip_version="pip3",
        pip_packages=_packages(),
        conda_packages=None,
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config="N/A",
        is_xnnpack_available="False",
        cpu_info=_processor(),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """Return a report of several lines.

    >>> from cygrad.utils.collect_env import get_env_info, pretty_str
    >>> pretty_str(get_env_info()._replace(torch_version="1.0")).splitlines()[0]
    'PyTorch version: 1.0'
    """
    said: dict[str, Any] = {
        name: "Could not collect" if value is None else value for name, value in envinfo._asdict().items()
    }
    lines = [f"{label}: {said[name]}" if label else "" for label, name in _LINES]
    lines += ["", "CPU:", said["cpu_info"], "", "Versions of relevant libraries:", said["pip_packages"]]
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """Return the report about this machine.

    >>> from cygrad.utils.collect_env import get_pretty_env_info
    >>> "Versions of relevant libraries:" in get_pretty_env_info()
    True
    """
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report about this machine.

    >>> from cygrad.utils.collect_env import main
    >>> main()  # doctest: +ELLIPSIS
    PyTorch version: ...
    """
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
