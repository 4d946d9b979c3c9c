"""Compiles C++ sources to functions with the system's compiler and caches the results on disk."""

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).parent
HEADERS = sorted(HERE.glob("*.h"))
FLAGS = ["-std=c++17", "-O1", "-fPIC", "-w", "-fno-strict-aliasing", "-ffp-contract=off",
         "-U_FORTIFY_SOURCE"]  # fmt: skip
MEETING = re.compile(r"__syncthreads|__syncwarp|__shfl|__ballot|__any_sync|__all_sync|__reduce_\w+_sync")
lock = threading.Lock()
being_compiled: dict = {}


class CompileException(Exception):
    """`cupy.cuda.compiler.CompileException`."""

    def __init__(self, text, source):
        super().__init__(text)
        self.source = source


@functools.cache
def compiler():
    """The system's C++ compiler, or None."""
    if sys.platform == "win32":
        return None  # fibers need ucontext
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    return None


def threads_meet(text):
    """Whether the kernel's threads wait for each other, so that each needs its own stack."""
    return MEETING.search(text) is not None


@functools.cache
def cache():
    """The cache directory for this compiler and these headers, which contains the precompiled headers."""
    if compiler() is None:
        raise RuntimeError("the stand-in for CuPy runs kernels by a C++ compiler, and there is none")
    version = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout
    key = digest(version, *FLAGS, *[path.read_text("utf-8") for path in HEADERS])
    folder = Path(tempfile.gettempdir()) / f"cupy-standin-{os.getuid()}" / key
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        header = folder / "cuda_on_cpu.h"
        for path in HEADERS:
            replace(folder / path.name, path.read_bytes())
        made = folder / f"made-{os.getpid()}.gch"
        built = subprocess.run([*compiler(), *FLAGS, "-x", "c++-header", str(header), "-o", str(made)],
                               capture_output=True, text=True)  # fmt: skip
        if built.returncode:
            raise CompileException(built.stderr, header.read_text("utf-8"))
        made.replace(folder / "cuda_on_cpu.h.gch")
        replace(folder / "ready", b"")
    return folder


def replace(path, content):
    """Replace a file atomically, since other processes may be writing it too."""
    new = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    new.write_bytes(content)
    new.replace(path)


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


COMPLEX = re.compile(r'^\s*#\s*include\s*[<"]cupy/complex\.cuh[>"].*$', re.M)
HARMLESS = re.compile(
    r'^\s*#\s*include\s*[<"](cuda_fp16\.h|cuda_bf16\.h|cuda_runtime\.h|math_constants\.h|cupy/[\w/]+\.cuh|curand_kernel\.h)'
    r'[>"].*$',
    re.M,
)
DYNAMIC = re.compile(
    r"extern\s+__shared__\s+((?:__align__|alignas)\s*\(\s*\w+\s*\)\s*)?([\w:<>\s]+?)\s+(\w+)\s*\[\s*\]\s*;"
)


# Instructions for tensor cores, as kernels write them in assembly with these names of operands, and what runs instead.
_ADDRESS = r'"r"\(\(unsigned\)__cvta_generic_to_shared\((?:row|to)\)\)'
TENSOR_CORES = {
    r'mma\.sync\.aligned\.m16n8k"\s*DEPTH\s*"\.row\.col\.f32\."\s*KIND\s*"\."\s*KIND\s*"\.f32 [^;]*;"\s*'
    r':\s*("\+f"\(c\[\d\]\),?\s*){4}:\s*("r"\(a\[\d\]\),?\s*){4}("r"\(b\[\d\]\),?\s*){2}': (
        "multiply_fragments(KIND, DEPTH, c, a, b)"
    ),
    r'ldmatrix\.sync\.aligned\.m8n8\.x4\.shared\.b16 [^;]*;"\s*:\s*("=r"\(a\[\d\]\),?\s*){4}:\s*'
    rf'{_ADDRESS}\s*:\s*"memory"': "load_matrices(a, row, false)",
    r'ldmatrix\.sync\.aligned\.m8n8\.x4\.trans\.shared\.b16 [^;]*;"\s*:\s*("=r"\(a\[\d\]\),?\s*){4}:\s*'
    rf'{_ADDRESS}\s*:\s*"memory"': "load_matrices(a, row, true)",
    rf'cp\.async\.cg\.shared\.global \[%0\], \[%1\], 16, %2;"\s*::\s*{_ADDRESS},\s*"l"\(from\),\s*'
    r'"r"\(is_there \? 16 : 0\)\s*:\s*"memory"': "begin_copy(to, from, is_there)",
    r'cp\.async\.commit_group;"\s*:::\s*"memory"': "end_group_of_copies()",
    r'cp\.async\.wait_group %0;"\s*::\s*"n"\(LAST\)\s*:\s*"memory"': "wait_for_copies(LAST)",
    r'cvt\.rna\.tf32\.f32 %0, %1;"\s*:\s*"=r"\(made\)\s*:\s*"f"\(given\)': "round_to_tf32(made, given)",
    r'cvt\.rn\."\s*KIND\s*"x2\.f32 %0, %1, %2;"\s*:\s*"=r"\(made\)\s*:\s*"f"\(high\),\s*"f"\(low\)': (
        "pack_halves(KIND, made, high, low)"
    ),
}
TENSOR_CORES = {
    re.compile(rf'asm\s*(?:volatile\s*)?\(\s*"{text}\s*\)\s*;'): call for text, call in TENSOR_CORES.items()
}


def for_the_cpu(text):
    """CUDA C++ with the constructs replaced that macros cannot translate."""
    for statement, call in TENSOR_CORES.items():
        text = statement.sub(f"cuda_on_cpu::{call};", text)
    text = COMPLEX.sub('#include "cuda_complex.h"', text)
    text = HARMLESS.sub("", text)
    return DYNAMIC.sub(r"\2* \3 = (\2*)cuda_on_cpu::shared_memory;", text)


def library(text):
    """The functions of a C++ source as a `ctypes.CDLL`."""
    key = digest(text)
    with lock:
        own = being_compiled.setdefault(key, threading.Lock())
    with own:
        return loaded(key, text)


@functools.cache
def loaded(key, text):
    path = cache() / f"{key}.so"
    if not path.exists():
        source = cache() / f"{key}.{os.getpid()}.cpp"
        source.write_text(f'#include "cuda_on_cpu.h"\n{text}', "utf-8")
        made = source.with_suffix(".so")
        built = subprocess.run([*compiler(), *FLAGS, "-shared", f"-I{cache()}", str(source), "-o", str(made)],
                               capture_output=True, text=True)  # fmt: skip
        source.unlink()
        if built.returncode:
            raise CompileException(built.stderr, text)
        made.replace(path)
    return ctypes.CDLL(str(path))


class Failed(AssertionError):
    """A kernel did something undefined in CUDA, such as an out-of-bounds read or a deadlock of its threads."""


def called(function, name, *arguments):
    """Call a kernel's function, which returns a message if it failed."""
    function.restype = ctypes.c_char_p
    failure = function(*arguments)
    if failure:
        raise Failed(f"{name}: {failure.decode()}")
