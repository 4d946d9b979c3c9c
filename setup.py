"""Build of the compiled part: one extension module for every ``.pyx`` below ``cygrad/``, and one for what they share.

Metadata stands in ``pyproject.toml``; here is only what needs code. Two environment variables
change the build:

``CYGRAD_ANNOTATE=1``
    write Cython's HTML pages, which show the lines that call Python, into ``build/cython``;
``CYGRAD_LINETRACE=1``
    compile for line tracing, so that ``coverage`` sees the lines of ``.pyx`` files; several
    times slower.
"""

import os
import shutil
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import Cython
import numpy
from Cython.Build import cythonize
from Cython.Compiler import Options
from Cython.Compiler.Errors import CompileError
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel as setuptools_bdist_wheel
from setuptools.command.build import build as setuptools_build
from setuptools.command.build_ext import build_ext as setuptools_build_ext

try:
    from zopfli import zlib as zopfli
except ImportError:  # the wheel is then 5 % larger
    zopfli = None

ANNOTATE = os.environ.get("CYGRAD_ANNOTATE", "0") not in ("", "0")
LINETRACE = os.environ.get("CYGRAD_LINETRACE", "0") not in ("", "0")

# Generated C stands apart from the sources: nobody reads it, commits it or ships it.
GENERATED = Path("build", "cython")

DIRECTIVES = {
    "language_level": 3,  # Python 3 semantics, the only ones we know
    "boundscheck": False,  # kernels index memory whose extent they have just computed
    "wraparound": False,  # no C-level index here is ever negative; saves a branch per access
    "cdivision": True,  # C division: no zero test, no sign fix-up; shapes are never negative
    "initializedcheck": False,  # no memoryview is read before it is assigned
    "freethreading_compatible": True,  # importing cygrad must not switch the GIL back on
    "binding": True,  # compiled functions bind as methods, and inspect.signature works on them
    "embedsignature": False,  # binding tells the signature already; docstrings hold no second copy
    "profile": False,  # a hook call at each function entry costs as much as a small op
    "linetrace": LINETRACE,
    "auto_pickle": False,  # what can be pickled says so itself
}

# The two lower layers are called by the upper ones: as plain C functions, which take 8 % less of the wheel than those
# that bind as methods. The methods of compiled classes, which users see, tell their signature in Argument Clinic's way.
LOW_DIRECTIVES = {
    "binding": False,
    "always_allow_keywords": False,  # those of one argument take it by place
    "embedsignature": True,
    "embedsignature.format": "clinic",
}

# Kernels follow pointers before they look at anything else; from Python, None instead of an array would crash them.
KERNEL_DIRECTIVES = LOW_DIRECTIVES | {"embedsignature": False, "allow_none_for_extension_args": False}
LAYER_DIRECTIVES = {"_kernels": KERNEL_DIRECTIVES, "_core": LOW_DIRECTIVES}

MACROS = [
    # The oldest NumPy a wheel built here must run on, whatever NumPy it is built with.
    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
    # Make every use of an API that NumPy 2.0 calls deprecated a compile-time error.
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
]
if LINETRACE:
    MACROS += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]

# No -march=native: a wheel must run on machines other than its builder's.
# No -ffast-math: NaN, infinity and signed zero are part of the results we promise.
GNU_COMPILE_ARGS = [
    "-g0",  # debug information would be most of the wheel
    "-fno-asynchronous-unwind-tables",  # 6 % of the wheel; C code that throws no exception
    "-fno-ident",  # the compiler's name, once in each module
    "-fno-plt",  # 2 %: functions of the interpreter are called through their table entry, without a stub before it
    "-fno-stack-protector",  # 1 %: what Debian's Python adds to each function with an array
    "-fno-math-errno",  # nobody reads errno, and sqrt becomes one instruction
    "-Wno-unused-function",  # Cython writes helpers that a given module may not need
]
MSVC_COMPILE_ARGS = ["/O2"]

# Loops over elements are vectorised by -O3. What else a chain of small operations spends its time in is as fast
# with -O2, which takes 12 % less of the wheel. The rest reads arguments, words errors or runs once for a whole array or
# a whole pass (and the loops over elements ask for -O3 in their headers): for size, it takes another quarter less, and
# some 10 % longer for arrays of a few elements.
LOOPING = {"cygrad._kernels.arrays", "cygrad._kernels.rows"}
FAST_FAMILIES = {"arithmetic"}
SMALL = {
    "cygrad._core": (
        "access accumulate construct dtypes dual engine engine_hooks events function inplace node opdef scalar"
        " tensor_hooks"
    ).split(),
    "cygrad._kernels": "activations elementwise native nn optim parallel pool reduce strided walk".split(),
}
# What takes room and saves no time where no loop over elements is.
GNU_PLAIN_ARGS = [
    "-DCYTHON_FAST_THREAD_STATE=0",  # 1 %: looks for an exception are all done in one way
    "-DCYTHON_USE_DICT_VERSIONS=0",  # 1 %: and those for a module's name, on Python 3.11
]
if sys.platform == "linux":
    GNU_PLAIN_ARGS += ["-fno-align-functions", "-fno-align-jumps", "-fno-align-labels"]  # 2 %: filled with nothing
GNU_SMALL_ARGS = [
    "-Os",
    "-DCYTHON_UNPACK_METHODS=0",  # 3 %: and calls of Python methods
]
if sys.platform == "linux":
    GNU_SMALL_ARGS += [
        "--param=max-inline-insns-size=6",  # so that reference counting stays inline
        *("-fno-schedule-insns2", "-fno-caller-saves"),  # 3 %: instructions in a regular order compress better
        # 3 %: jumps go where the source says, and ends of functions that return an error stay one
        *("-fno-thread-jumps", "-fno-partial-inlining", "-fno-tree-dominator-opts", "-fno-gcse"),
    ]

# Included before what Cython writes; says itself why.
PREFIX = Path("cygrad", "_core", "found_module.h")

# Holds once what Cython would put into each module: its function type, the parsing of keywords, ...
SHARED = "cygrad._cython"
# We use no memoryviews, which are half of that; Cython can leave them out since 3.3.
UNSHARED = {"shared_utility_features_disabled": ["MemoryView"]}
if not UNSHARED.keys() <= Options.default_options.keys():
    UNSHARED = {}


def usable_cpus():
    """The number of processors this process may use, which a container's mask can make fewer."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def link_args():
    """Flags that strip the symbols nobody outside a module uses, and what tells builds apart."""
    return {"linux": ["-Wl,-s", "-Wl,--build-id=none"], "darwin": ["-Wl,-x"]}.get(sys.platform, [])


def is_small(module):
    """Whether an extension module is compiled for size rather than for speed."""
    package, _, name = module.rpartition(".")
    if package == "cygrad._ops":
        return name not in FAST_FAMILIES
    return module == SHARED or name in SMALL.get(package, ())


def gnu_optimisation(module):
    """What GCC and Clang are to optimise an extension module for."""
    if module in LOOPING:
        return ["-O3"]
    return GNU_PLAIN_ARGS + (GNU_SMALL_ARGS if is_small(module) else ["-O2"])


def extension(source):
    """The extension module of one source, named after its place; C headers lie beside it."""
    return Extension(
        ".".join(source.with_suffix("").parts),
        [source.as_posix()],
        include_dirs=[source.parent.as_posix(), numpy.get_include()],
        depends=sorted(header.as_posix() for header in {*source.parent.glob("*.h"), PREFIX}),
        define_macros=MACROS,
    )


def is_stale(path, modules):
    """Whether a file, given by its place in the package, was made from a source that is no more."""
    if path.suffix in (".so", ".pyd"):
        return ".".join((*path.parent.parts, path.name.split(".")[0])) not in modules
    return not path.exists()


def deflated(data):
    """Data compressed by Zopfli, which takes a hundred times as long as zlib to make what every unzipper reads."""
    return zopfli.compress(data, numiterations=5)[2:-4]  # without zlib's own head and sum


class Deflated:
    """What `zipfile` takes for a compressor; all it may meet has been compressed before."""

    def __init__(self, packed):
        self.packed, self.data = packed, b""

    def compress(self, data):
        self.data += data
        return b""

    def flush(self):
        return self.packed[self.data]


def compress_again(wheel):
    """Compress the files in a wheel as well as they can be."""
    with zipfile.ZipFile(wheel) as archive:
        files = [(info, archive.read(info)) for info in archive.infolist()]
    contents = {data for _, data in files}
    with ThreadPoolExecutor(usable_cpus()) as pool:
        packed = dict(zip(contents, pool.map(deflated, contents)))
    with (
        mock.patch.object(zipfile, "_get_compressor", lambda *_: Deflated(packed)),
        zipfile.ZipFile(wheel, "w") as archive,
    ):
        for info, data in files:
            archive.writestr(info, data)


class bdist_wheel(setuptools_bdist_wheel):
    """Makes a smaller wheel where Zopfli is installed."""

    def run(self):
        super().run()
        for kind, _, path in self.distribution.dist_files if zopfli is not None else ():
            if kind == "bdist_wheel":
                compress_again(path)


class build(setuptools_build):
    """Leaves out of a wheel what an earlier build made from a source that is no more."""

    def run(self):
        built = Path(self.build_lib)
        modules = {module.name for module in self.distribution.ext_modules}
        for path in built.rglob("*.*"):
            if is_stale(path.relative_to(built), modules):
                path.unlink()
        super().run()


class build_ext(setuptools_build_ext):
    """Translates and compiles in parallel, and only what changed.

    Translation waits until here, so that an sdist or a look at the metadata runs no compiler.
    """

    def run(self):
        # In place, an extension module from a `.pyx` that has become a `.py` would still be imported instead of it.
        modules = {module.name for module in self.extensions}
        for path in Path("cygrad").rglob("*.*"):
            if is_stale(path, modules):
                path.unlink()
        super().run()

    def finalize_options(self):
        super().finalize_options()
        self.parallel = int(self.parallel or usable_cpus())

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":
            flags = {module.name: [*MSVC_COMPILE_ARGS, f"/FI{PREFIX}"] for module in self.extensions}
            strip_args = []
        else:
            compile_args = [*GNU_COMPILE_ARGS, "-include", PREFIX.as_posix()]
            flags = {module.name: compile_args + gnu_optimisation(module.name) for module in self.extensions}
            strip_args = link_args()
            # Where this machine keeps its Python says nothing on another one.
            self.compiler.linker_so = [word for word in self.compiler.linker_so if not word.startswith("-Wl,-rpath")]
        for module in self.extensions:
            module.extra_compile_args = flags[module.name]
            module.extra_link_args = strip_args
        self._forget_other_settings(flags, strip_args)
        self._translate()
        super().build_extensions()

    def _forget_other_settings(self, *flags):
        # Time stamps tell that a source has changed, but not that it is to be compiled otherwise.
        settings = repr((Cython.__version__, DIRECTIVES, LAYER_DIRECTIVES, MACROS, UNSHARED, flags))
        stamp = GENERATED / "settings.txt"
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != settings:
            shutil.rmtree(GENERATED, ignore_errors=True)
            GENERATED.mkdir(parents=True)
            stamp.write_text(settings, encoding="utf-8")

    def _translate(self):
        layers: dict[str, list[Extension]] = {"_kernels": [], "_core": [], "_ops": []}
        for module in self.extensions:
            layers.get(module.name.split(".")[1], layers["_ops"]).append(module)
        generated = {}
        for layer, modules in layers.items():
            directives = DIRECTIVES | LAYER_DIRECTIVES.get(layer, {})
            try:
                translated = cythonize(
                    modules,
                    compiler_directives=directives,
                    build_dir=None if LINETRACE else GENERATED.as_posix(),  # coverage looks beside .pyx
                    nthreads=self.parallel,
                    annotate=ANNOTATE,
                    shared_utility_qualified_name=SHARED,
                    **UNSHARED,
                    force=self.force or LINETRACE,
                )
            except CompileError as error:
                sys.exit(f"Cython cannot translate {error}; its messages stand above")
            generated.update({module.name: module.sources for module in translated})
        for module in self.extensions:
            module.sources = generated[module.name]


# Processes that translate in parallel import this file again where they cannot fork.
if __name__ == "__main__":
    sources = sorted(Path("cygrad").rglob("*.pyx"))
    setup(
        ext_modules=[extension(source) for source in (*sources, Path(*SHARED.split(".")).with_suffix(".c"))],
        cmdclass={"bdist_wheel": bdist_wheel, "build": build, "build_ext": build_ext},
    )
