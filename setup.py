"""Builds the compiled part of cygrad: one module per ``.pyx`` file, all of them linked into one shared library.

The metadata is in ``pyproject.toml``, except the long description. Three environment variables change the build
(CONTRIBUTING.md explains them): ``CYGRAD_ANNOTATE``, ``CYGRAD_LINETRACE`` and ``CYGRAD_SANITIZE``.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import Cython
import numpy
from Cython.Build import cythonize
from Cython.Compiler.Errors import CompileError as CythonError
from setuptools import Extension, setup
from setuptools.command.build import build as setuptools_build
from setuptools.command.build_ext import build_ext as setuptools_build_ext
from setuptools.errors import CompileError, LinkError, PlatformError
from setuptools.modified import newer_group

ANNOTATE, LINETRACE, SANITIZE = (
    os.environ.get(f"CYGRAD_{name}", "0") not in ("", "0") for name in ("ANNOTATE", "LINETRACE", "SANITIZE")
)
# The widest vectors, in bits, that loops use: 128, 256 or 512. Narrower builds test the loops of other processors.
WIDEST = os.environ.get("CYGRAD_WIDEST", "512")

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,  # kernels index memory whose extent they have just computed
    "wraparound": False,  # no C-level index is ever negative
    "cdivision": True,  # shapes are never negative, and divisors are never zero
    "initializedcheck": False,  # every memoryview is assigned before it is read
    "freethreading_compatible": True,  # importing cygrad must not re-enable the GIL
    "binding": True,  # functions bind as methods and support inspect.signature
    "linetrace": LINETRACE,
    "auto_pickle": False,  # classes that support pickling define it themselves
}

# The upper layers call the two lower ones, whose functions are builtins: a call takes 25 ns instead of 37 ns. Their
# docstrings begin with a signature that inspect.signature understands.
CORE_DIRECTIVES = DIRECTIVES | {
    "binding": False,
    "always_allow_keywords": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
}

# Kernels dereference their arrays at once; None in place of an array must raise TypeError instead of crashing.
KERNEL_DIRECTIVES = CORE_DIRECTIVES | {"allow_none_for_extension_args": False}

# Directives and optimization flags by module name. The longest matching prefix applies. Partial redundancy elimination
# (PRE) keeps GCC from vectorizing kernels that choose between two results: logarithms would take four times as long.
TABLE = {
    "cygrad": (DIRECTIVES, "-O2"),
    "cygrad._core": (CORE_DIRECTIVES, "-O2"),
    "cygrad._kernels": (KERNEL_DIRECTIVES, "-O2 -fno-tree-pre"),
    "cygrad._kernels.cpu.base.arrays": (KERNEL_DIRECTIVES, "-O3"),
    "cygrad._kernels.cpu.indexing.add_rows": (KERNEL_DIRECTIVES, "-O3"),
}

MACROS = [
    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),  # the oldest NumPy that the wheel runs on
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),  # uses of deprecated API are compile-time errors
    ("CYTHON_COMPRESS_STRINGS", "0"),  # modules would decompress their strings during import
]
if WIDEST != "512":
    MACROS += [("CYGRAD_WIDEST", WIDEST)]
if LINETRACE:
    MACROS += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]

# Flags that are used if the compiler supports them. We never use -march=native, because a wheel must run on other
# machines than the one that built it, nor -ffast-math, because we promise correct NaN, infinity and signed zero.
COMPILER_FLAGS = [
    "-g0",  # debug information would be several times the size of the code
    "-fvisibility=hidden",
    "-Werror=implicit-function-declaration",  # otherwise a missing header is found when the library is loaded
    "-fno-math-errno",  # nobody reads errno, and sqrt becomes one instruction
    "-Wno-unused-function",  # Cython emits helpers that a module may not need
    "/Zc:preprocessor",  # without it, MSVC passes __VA_ARGS__ on to another macro as a single argument
]
LINKER_FLAGS: list[str] = []
# Where functions cannot be compiled for several instruction sets (target_clones.h), modules with loops are compiled
# twice, the second time with the first of these settings that the compiler supports. Outside of loops, which say
# otherwise, fused multiply-adds would change results.
AVX2_FLAGS = ["-mavx2 -mfma -ffp-contract=off", "/arch:AVX2"]
if SANITIZE:
    sanitizers = "-fsanitize=address,undefined,float-cast-overflow"
    COMPILER_FLAGS += [sanitizers, "-fno-wrapv", "-fno-omit-frame-pointer", "-O0", "-g1"]
    LINKER_FLAGS += [sanitizers]

GENERATED = Path("build/cython")  # the C files; builds for all interpreters share them
SETTINGS = "settings.txt"  # how the last build in a directory was configured, which time stamps do not show
PREFIX = Path("cygrad/_core/include/fast_import.h")  # included before the C code of each module
INCLUDE_FLAGS = [f"-include {PREFIX.as_posix()}", f"/FI{PREFIX}"]  # of which the first that works is used
INCLUDE_ROOTS = [Path("cygrad/_core/include"), Path("cygrad/_kernels/include")]
LOOPS = Path("cygrad/_kernels/include/platform/target_clones.h")
GLOBAL = re.compile(r"\b(?:PyInit|__pyx_module_is_main|__pyx_wrapperbase)_\w+")  # what Cython does not declare static
SHARED = Path("cygrad/_cython.c")  # what Cython would otherwise repeat in every module: its function type and others
# The library is named after this module, which lists the others (cygrad/_library.py). With one library per module,
# `import cygrad` would take 41 ms instead of 31 ms, and kernels could not share C functions that are hidden elsewhere.
LIBRARY = Path("cygrad/_compiled.c")

NO_COMPILER = """cygrad needs a C compiler and Python's headers; `{compiler}` cannot compile a file that includes them.
Install them: `apt install gcc python3-dev`, `dnf install gcc python3-devel`, `xcode-select --install` (macOS), or
Visual Studio's "Desktop development with C++" (Windows). `CC=clang pip install .` selects another compiler."""


def module_name(source):
    """The full name of the module compiled from a source file."""
    return ".".join(source.with_suffix("").parts)


def how(source):
    """The entry of `TABLE` for a source file."""
    name = module_name(source)
    return TABLE[max((prefix for prefix in TABLE if f"{name}.".startswith(f"{prefix}.")), key=len)]


def headers(source):
    """The headers that a source file may include: those of its layer and those of the core."""
    layer = Path("cygrad/_kernels") if source == LIBRARY else Path(*source.parts[:2])
    return [*Path("cygrad/_core").rglob("*.h"), *layer.rglob("*.h")]


def has_loops(source):
    """Tell whether a Cython file includes, directly or not, the header for loops."""
    seen, waiting = set(), [source]
    for file in waiting:
        for name in re.findall(r'"([a-z_0-9/]+\.h)"', file.read_text(encoding="utf-8")):
            found = [path for root in INCLUDE_ROOTS if (path := root / name) not in seen and path.exists()]
            seen.update(found)
            waiting += found
    return LOOPS in seen


def messages(compiler, text, *flags, link=False):
    """What the compiler (or the linker) says of a C file; None if it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "probe.c")
        source.write_text(text, encoding="utf-8")
        target = source.with_suffix(".o")
        if compiler.compiler_type == "msvc":
            command = [compiler.cc, "/nologo", "/c", f"/Fo{target}"]
        else:
            command = [*(compiler.linker_so if link else [*compiler.compiler_so, "-c"]), "-o", str(target)]
        folders = [f"-I{folder}" for folder in (*compiler.include_dirs, *INCLUDE_ROOTS)]
        run = subprocess.run([*command, *folders, *flags, str(source)], capture_output=True, text=True)
    return run.stdout + run.stderr if run.returncode == 0 else None


def supported(compiler, flags, link=False):
    """The flags with which the compiler (or the linker) processes a file without any additional message.

    Clang only warns about flags that it does not know. -Werror would also reject every flag of ours if the compiler
    does not know one of those that the interpreter was built with, so we compare the messages instead.
    """
    if not flags:
        return []
    text = "int probe;\n"
    expected = messages(compiler, text, link=link)
    return [flag for flag in flags if messages(compiler, text, *flag.split(), link=link) == expected]


def settings_changed(directory, *settings):
    """Tell whether the last build in a directory had other settings, and write down those of this one."""
    file, text = directory / SETTINGS, repr(settings)
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return False
    directory.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return True


class build(setuptools_build):
    """Removes files of earlier builds, and compiles first, so that errors do not follow a long list of copied files."""

    sub_commands = setuptools_build.sub_commands[::-1]

    def run(self):
        if Path(self.build_lib).parent == Path("build"):  # the default, and not a directory that the user chose
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class build_ext(setuptools_build_ext):
    """Translates and compiles in parallel, only what changed, and links everything into one library."""

    def finalize_options(self):
        super().finalize_options()
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.parallel = int(self.parallel or usable or 1)

    def build_extensions(self):
        (library,) = self.extensions
        sources = [Path(source) for source in library.sources]
        if self.verbose < 2:
            logging.disable(logging.INFO)  # the compiler's command lines; `python setup.py -v build_ext` shows them
        self._probe_compiler()
        print(f"compiling up to {len(sources)} modules; all of them take about two minutes on two cores", flush=True)
        try:
            units = self._for_processors(self._translate(sources))
            compiler = (self.compiler.compiler_type, getattr(self.compiler, "compiler_so", None))
            flags = (self.compile_args, self.avx2_flags)
            settings_changed(Path(self.build_temp), compiler, flags, units, numpy.__version__)
            with ThreadPoolExecutor(self.parallel) as pool:
                objects = list(pool.map(self._compile, *zip(*units)))
            self._link(library, objects)
        except (CythonError, CompileError, LinkError) as error:
            sys.exit(f"cygrad could not be compiled ({error}); see the messages above")

    def _probe_compiler(self):
        """Check that the compiler works, and find out which flags it supports."""
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch, "probe.c")
            source.write_text("#include <Python.h>\n", encoding="utf-8")
            try:
                self.compiler.compile([str(source)], output_dir=scratch)
            except (CompileError, PlatformError):
                sys.exit(NO_COMPILER.format(compiler=getattr(self.compiler, "compiler_so", ["cl"])[0]))
        levels = sorted({level for _, level in TABLE.values()})
        self.link_args = supported(self.compiler, LINKER_FLAGS, link=True)
        included = "#ifndef CYGRAD_FOUND_MODULE_H\n#error\n#endif\n"
        prefixes = [flag.split() for flag in INCLUDE_FLAGS]
        prefixes = [words for words in prefixes if messages(self.compiler, included, *words) is not None]
        flags = [*supported(self.compiler, COMPILER_FLAGS), *next(iter(prefixes), [])]
        self.compile_args = {level: supported(self.compiler, level.split()) + flags for level in levels}
        no_clones = '#include "platform/target_clones.h"\n#ifdef CYGRAD_CLONED\n#error\n#endif\n'
        if WIDEST == "128" or messages(self.compiler, no_clones) is None:
            self.avx2_flags = None
        else:
            self.avx2_flags = next(iter(supported(self.compiler, AVX2_FLAGS)), None)

    def _translate(self, sources):
        """Translate the Cython files; returns the source, the C file and the macros of each module."""
        translated = [*(source for source in sources if source.suffix == ".pyx"), SHARED]
        names = ("CYGRAD_MODULES", f'"{" ".join(sorted(map(module_name, translated)))}"')
        units = [(LIBRARY, LIBRARY, [names])]
        declarations = Path(numpy.__file__).with_name("__init__.cython-30.pxd")  # the C files hold what they declare
        if settings_changed(GENERATED, Cython.__version__, TABLE, names, zlib.crc32(declarations.read_bytes())):
            for unit in GENERATED.rglob("*.c"):
                unit.unlink()
        for directives in (DIRECTIVES, CORE_DIRECTIVES, KERNEL_DIRECTIVES):
            parts = [source for source in translated if how(source)[0] is directives]
            extensions = cythonize(
                [Extension(module_name(source), [source.as_posix()]) for source in parts],
                compiler_directives=directives,
                build_dir=None if LINETRACE else GENERATED.as_posix(),  # coverage searches beside the .pyx files
                nthreads=self.parallel,
                annotate=ANNOTATE,
                shared_utility_qualified_name=module_name(SHARED),
                force=self.force or LINETRACE,
            )
            units += [(source, Path(extension.sources[0]), MACROS) for source, extension in zip(parts, extensions)]
        return units

    def _for_processors(self, units):
        """Add to each unit the processors it is compiled for ("" for all): modules with loops are compiled twice if
        functions cannot be, and _compiled.c chooses between the functions that initialize them."""
        if self.avx2_flags is None:
            return [(*unit, "") for unit in units]
        found, choices = [], []
        for source, unit, macros in units:
            if source.suffix != ".pyx" or not has_loops(source):
                found.append((source, unit, macros, ""))
                continue
            choices.append(f"CHOICE(PyInit_{source.stem})")
            names = sorted(set(GLOBAL.findall(unit.read_text(encoding="utf-8"))))
            for processors in ("plain", "avx2"):
                own = [("CYGRAD_PROCESSORS", processors), *((name, f"{name}_{processors}") for name in names)]
                found.append((source, unit, [*macros, *own], processors))
        library = next(macros for source, _, macros, _ in found if source == LIBRARY)
        library.append(("CYGRAD_CHOICES", " ".join(choices)))
        return found

    def _compile(self, source, unit, macros, processors):
        """Compile a C file unless its object file is up to date; returns the object file."""
        folder = str(Path(self.build_temp, processors))
        (target,) = self.compiler.object_filenames([unit.as_posix()], output_dir=folder)
        if self.force or newer_group([unit, Path(self.build_temp, SETTINGS), *headers(source)], target):
            folders = [source.parent, *filter(Path.is_dir, INCLUDE_ROOTS)]
            more = self.avx2_flags.split() if processors == "avx2" else []
            self.compiler.compile(
                [unit.as_posix()],
                output_dir=folder,
                macros=macros,
                include_dirs=[*(folder.as_posix() for folder in folders), numpy.get_include()],
                extra_postargs=[*self.compile_args[how(source)[1]], *more],
            )
        return target

    def _link(self, library, objects):
        # The directory of this machine's Python is meaningless on other machines.
        self.compiler.linker_so = [word for word in self.compiler.linker_so if not word.startswith("-Wl,-rpath")]
        self.compiler.link_shared_object(
            objects,
            self.get_ext_fullpath(library.name),
            libraries=self.get_libraries(library),
            extra_postargs=self.link_args,
            export_symbols=self.get_export_symbols(library),
            build_temp=self.build_temp,
        )


def description():
    """Return the README with whole addresses: PyPI shows it without the files that it links to."""
    source = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    text = Path("README.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\((?!\w+:|#)", f"]({source}/blob/main/", text)
    return re.sub(r'src="(?!\w+:)', f'src="{source}/raw/main/', text)


# Processes that translate in parallel import this file again where they cannot fork.
if __name__ == "__main__":
    sources = [LIBRARY, *sorted(Path("cygrad").rglob("*.pyx"))]
    library = Extension(module_name(LIBRARY), [source.as_posix() for source in sources])
    setup(
        long_description=description(),
        long_description_content_type="text/markdown",
        ext_modules=[library],
        cmdclass={"build": build, "build_ext": build_ext},
    )
