"""Build of the compiled part: a module for every ``.pyx`` below ``cygrad/``, all of them in one shared library.

Metadata stands in ``pyproject.toml``; here is only what needs code. Three environment variables
change the build:

``CYGRAD_ANNOTATE=1``
    write Cython's HTML pages, which show the lines that call Python, into ``build/cython``;
``CYGRAD_LINETRACE=1``
    compile for line tracing, so that ``coverage`` sees the lines of ``.pyx`` files; several
    times slower;
``CYGRAD_SANITIZE=1``
    compile with GCC's or Clang's checks of memory and of undefined behaviour, for
    ``tools/sanitized.py``; several times slower.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tokenize
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
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
from setuptools.command.build_py import build_py as setuptools_build_py
from setuptools.modified import newer_group

try:
    from zopfli import zlib as zopfli
except ImportError:  # the wheel is then 5 % larger
    zopfli = None

ANNOTATE = os.environ.get("CYGRAD_ANNOTATE", "0") not in ("", "0")
LINETRACE = os.environ.get("CYGRAD_LINETRACE", "0") not in ("", "0")
SANITIZE = os.environ.get("CYGRAD_SANITIZE", "0") not in ("", "0")

# Generated C stands apart from the sources: nobody reads it, commits it or ships it.
GENERATED = Path("build", "cython")
SETTINGS = GENERATED / "settings.txt"

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
LAYER_DIRECTIVES = {
    "_kernels": DIRECTIVES | KERNEL_DIRECTIVES,
    "_core": DIRECTIVES | LOW_DIRECTIVES,
    **dict.fromkeys(("_ops", "nn", ""), DIRECTIVES),
}

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
    "-O2",  # as fast as -O3 for a chain of small operations, and a tenth smaller
    "-g0",  # debug information would be most of the wheel
    "-fno-asynchronous-unwind-tables",  # 6 % of the wheel; C code that throws no exception
    "-fno-ident",  # the compiler's name, once in each module
    "-fno-plt",  # 2 %: functions of the interpreter are called through their table entry, without a stub before it
    "-fno-stack-protector",  # 1 %: what Debian's Python adds to each function with an array
    "-fvisibility=hidden",  # modules begin with functions that say themselves that they are to be found
    "-fno-math-errno",  # nobody reads errno, and sqrt becomes one instruction
    "-Wno-unused-function",  # Cython writes helpers that a given module may not need
    "-DCYTHON_UNPACK_METHODS=0",  # 2 %: calls of Python methods are all done in one way
    "-DCYTHON_FAST_THREAD_STATE=0",  # 1 %: so are looks for an exception
    "-DCYTHON_COMPRESS_STRINGS=0",  # strings of all modules together are compressed better by the wheel
]
if sys.platform == "linux":
    GNU_COMPILE_ARGS += ["-fno-align-functions", "-fno-align-jumps", "-fno-align-labels"]  # 2 %: filled with nothing
    # 2 %: nothing is looked at a second time. Loops over elements have both (`clones.h`).
    GNU_COMPILE_ARGS += ["-fno-expensive-optimizations", "-fno-move-loop-invariants"]
# Without the second, a macro that hands on __VA_ARGS__ hands on one argument, of however many.
MSVC_COMPILE_ARGS = ["/O2", "/Zc:preprocessor"]

# Added last: without optimisation all is compiled in a fourth of the time, but the loops that ask for it themselves.
SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow"
SANITIZE_ARGS = [SANITIZERS, "-fno-wrapv", "-fno-omit-frame-pointer", "-O0", "-g1"] if SANITIZE else []

# Modules by package and name. Loops over elements have vectors, for which headers ask themselves. What reads
# arguments, words errors or runs once for a whole array or a whole pass is compiled for size: a quarter smaller, and
# some 10 % slower for arrays of a few elements. What records and runs graphs is compiled by -O2.
LOOPING = {"cygrad/_kernels/cpu/base/arrays.pyx", "cygrad/_kernels/cpu/indexing/add_rows.pyx"}
GNU_SMALL_ARGS, GNU_MIDDLE_ARGS = ["-Os"], []
if sys.platform == "linux":  # where the compiler is GCC
    GNU_SMALL_ARGS += [
        "--param=max-inline-insns-size=6",  # so that reference counting stays inline
        "--param=vect-epilogues-nomask=0",  # 3 %: loops for what vectors leave over have no vectors
    ]
    GNU_MIDDLE_ARGS += ["-fno-align-loops", "-freorder-blocks-algorithm=simple"]  # 7 % smaller, no slower
    for args in (GNU_SMALL_ARGS, GNU_MIDDLE_ARGS):
        args += ["-fno-tree-pre", "-fno-gcse", "-fno-code-hoisting"]  # 1 %: nothing is computed early for later
        # 4 %: nothing is moved away from where it is used, which processors do themselves, so that code repeats itself
        args += ["-fno-schedule-insns2", "-fno-caller-saves"]
        args += ["-fno-tree-slsr", "-fno-partial-inlining"]
    GNU_SMALL_ARGS += ["-fno-tree-dominator-opts"]  # 1 %: no branch is written twice where one of its ways is known
# GCC for x86 would else write `rep movsb` for each memcpy, which takes longer to begin than 128 bytes take to copy.
GNU_STRING_ARGS = ["-mstringop-strategy=libcall"]

# Included before what Cython writes; says itself why.
PREFIX = Path("cygrad", "_core", "include", "fast_import.h")

# The module after which the library is named that holds all others, and that tells their names (cygrad/_library.py).
LIBRARY = Path("cygrad", "_compiled.c")
# Holds once what Cython would put into each module: its function type, the parsing of keywords, ...
SHARED = Path("cygrad", "_cython.c")
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
    if SANITIZE:
        return [SANITIZERS]
    return {"linux": ["-Wl,-s", "-Wl,--build-id=none"], "darwin": ["-Wl,-x"]}.get(sys.platform, [])


def compile_args(source, compiler_type, string_args):
    """What a compiler is told when it compiles the C file of a source; `string_args` if that is to be small."""
    if compiler_type == "msvc":
        return [*MSVC_COMPILE_ARGS, f"/FI{PREFIX}"]
    args = [*GNU_COMPILE_ARGS, "-include", PREFIX.as_posix()]
    if source.as_posix() in LOOPING:
        args += [*GNU_MIDDLE_ARGS, "-ftree-vectorize", "-fvect-cost-model=dynamic"]
    elif source.stem != "run" and source.suffix == ".pyx":
        args += GNU_SMALL_ARGS + string_args
    else:
        args += GNU_MIDDLE_ARGS
    return args + SANITIZE_ARGS


# Linking looks at all modules at once: the helper functions that Cython writes into each are there once, 9 % of the
# wheel, and in one piece, 1 % more: pieces have copies of what is small. It takes half a minute, so that builds in
# place do without it. There, lines in tracebacks are exact, too.
WHOLE_ARGS = ["-flto=auto", "-flto-partition=one", "-fipa-icf", "-DCYGRAD_COARSE_LINES"]
# What an interpreter adds to the linker's command counts for code made while linking: Debian's has `-g`, for which GCC
# writes unwind tables, 3 % of the wheel.
WHOLE_LINK_ARGS = [*WHOLE_ARGS, "-g0", "-fno-asynchronous-unwind-tables"]


def understood(args, compiler, scratch):
    """These arguments if the compiler is a GCC that knows them and has what they need, else none."""
    if sys.platform != "linux" or SANITIZE or LINETRACE or compiler.compiler_type != "unix":
        return []
    source = Path(scratch, "probe.c")
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("#if defined(__clang__)\n#error\n#endif\nint probe(void) { return 0; }\n", encoding="utf-8")
    command = [*compiler.compiler_so, *args, "-shared", str(source), "-o", str(source.with_suffix(".so"))]
    return args if subprocess.run(command, capture_output=True).returncode == 0 else []


IMPORTED_TYPE = re.compile(
    r"^ *__pyx_mstate->(__pyx_ptype_\w+) = __Pyx_ImportType\w*\(.*?if \(!__pyx_mstate->\1\) __PYX_ERR\([^\n]*\n",
    re.DOTALL | re.MULTILINE,
)


# What a function begins its line with, up to the first place that can fail, and how such a place tells where it is.
FIRST_LINE = re.compile(r"(?<= int __pyx_lineno = )0(?=;.*?__PYX_ERR\(\d+, (\d+),)", re.DOTALL)
MARKED_LINE = re.compile(r"(?<= __pyx_lineno = )lineno(?=; \(void\) __pyx_lineno;)")
COARSE_LINES = (
    "\n#ifdef CYGRAD_COARSE_LINES\n#define CYGRAD_LINE(first, exact) first\n#else\n"
    "#define CYGRAD_LINE(first, exact) exact\n#endif\n"
)


# The docstring of a function outside of classes, which begins with its signature.
DOC = re.compile(
    r'(PyDoc_STRVAR\(__pyx_doc_(?:\d+[a-z_]+?_)+\d*[a-z_]+, "(?:\w+\([^"]*?\)\\n--\\n\\n)?)((?:[^"\\]|\\.)*)"'
)


# Modules of the core from which nothing is published: their docstrings, too, stay in the sources.
INNER_PARTS = {"construct", "dual", "events", "inplace", "opdef", "record", "scalar"}


def shorten(unit, is_inner):
    """Rewrite a C file of Cython's so that less is compiled of it.

    Cython has a module import every type that a `.pxd` it reads names, NumPy's fourteen among them: imports of types
    that the module does not use are taken out. And each of 18,000 places that can fail notes its line for tracebacks,
    2 % of the wheel: with CYGRAD_COARSE_LINES a frame of a compiled function shows the first of its lines for all.
    Docstrings of what nobody outside the package calls stay in the sources unless they have an example.
    """
    text = unit.read_text(encoding="utf-8")
    if COARSE_LINES in text:
        return
    uses = Counter(re.findall(r"->(__pyx_ptype_\w+)", text))
    # twice in its import, and twice where the collector looks at it
    text = IMPORTED_TYPE.sub(lambda match: match[0] if uses[match[1]] > 4 else "", text)
    text = FIRST_LINE.sub(lambda match: f"CYGRAD_LINE({match[1]}, 0)", text)
    text = MARKED_LINE.sub("CYGRAD_LINE(__pyx_lineno, lineno)", text)
    if is_inner:
        text = DOC.sub(lambda match: match[0] if ">>>" in match[2] else match[1] + '"', text)
    first, rest = text.split("\n", 1)  # by which Cython knows its own files again
    unit.write_text(first + COARSE_LINES + rest, encoding="utf-8")


def layer_of(source):
    """The first folder below the package."""
    return source.parts[1] if len(source.parts) > 2 else ""


def module_name(source):
    """The full name of the module that a source becomes."""
    return ".".join(source.with_suffix("").parts)


def headers(source):
    """The C headers that a source may include: those beside it, and what stands before everything."""
    return sorted({*Path("cygrad").rglob("*.h")})


def shared_library(sources):
    """The one extension that setuptools is told of; how it is put together stands in `build_ext`."""
    return Extension(
        module_name(LIBRARY),
        sources=[source.as_posix() for source in sources],
        depends=sorted({header.as_posix() for source in sources for header in headers(source)}),
    )


def is_stale(path, modules):
    """Whether a file, given by its place in the package, was made from a source that is no more."""
    if path.suffix in (".so", ".pyd"):
        return ".".join((*path.parent.parts, path.name.split(".")[0])) not in modules
    return not path.exists()


@cache
def public_words():
    """All words of the files that users import from, of which those of functions of ours are published."""
    places = (path.relative_to("cygrad") for path in Path("cygrad").rglob("*.py*") if path.suffix in (".py", ".pyi"))
    found = (Path("cygrad", place).read_text(encoding="utf-8") for place in places if not is_inner_place(place))
    return {word for text in found for word in re.findall(r"\w+", text)}


def is_inner_place(place):
    """Whether a file of the package is, or lies in, what begins with an underscore."""
    return any(part[0] == "_" != part[1] for part in place.parts)


def is_only_called(node, text):
    """Whether this is a function that the text of its file hands to nobody, and nothing public has a word for."""
    is_function = isinstance(node, ast.FunctionDef) and not node.decorator_list and node.name not in public_words()
    return is_function and not re.search(rf"(?<!def )\b{node.name}\b(?!\()", text)


def docstrings(text, place):
    """The docstrings in a file that users do not see and that have no example, each with what follows it.

    These are all those of kernels, and elsewhere those of names with an underscore that get no other name in the file,
    and of modules that are, or lie in, such names, with functions that are only called there and that nothing
    public has a word for. `place` is the file's place in the package.
    """
    is_kernel, is_inner, tree = place.parts[0] == "_kernels", is_inner_place(place), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            own, name = ast.get_docstring(node), getattr(node, "name", "")
            is_private = name.startswith("_") and not name.endswith("_")
            is_private = is_private and not re.search(rf"(property\(|method\(| = ){name}\b(?!\()", text)
            is_hidden = (
                is_kernel
                or is_private
                or (is_inner and (not name or (node in tree.body and is_only_called(node, text))))
            )
            if is_hidden and own is not None and ">>>" not in own:
                yield node.body[0], node.body[1:]


def shortened(path, place):
    """The text of a Python file with its comments taken out, and each line where it was.

    Docstrings of what nobody outside the package calls are taken out, too.
    """
    with tokenize.open(path) as file:
        text = file.read()
    lines = text.split("\n")
    with path.open("rb") as file:
        found = [token.start for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    for line, column in found:
        lines[line - 1] = lines[line - 1][:column].rstrip()
    for docstring, rest in docstrings(text, place):
        before = lines[docstring.lineno - 1][: docstring.col_offset]
        if before.strip() or (rest and rest[0].lineno == docstring.end_lineno):
            continue  # what shares its line with other code stays
        lines[docstring.lineno - 1 : docstring.end_lineno] = [""] * (docstring.end_lineno - docstring.lineno + 1)
        lines[docstring.lineno - 1] = "" if rest else " " * docstring.col_offset + "pass"
    return "\n".join(lines)


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
        for kind, _, path in self.distribution.dist_files if zopfli is not None and not SANITIZE else ():
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


class build_py(setuptools_build_py):
    """Leaves comments, and docstrings of what is private, in the sources for their readers: 5 % of the wheel."""

    def build_module(self, module, module_file, package):
        built, is_copied = super().build_module(module, module_file, package)
        if is_copied:
            place = Path(built).relative_to(Path(self.build_lib, "cygrad"))
            Path(built).write_text(shortened(Path(built), place), encoding="utf-8", newline="\n")
        return built, is_copied


class build_ext(setuptools_build_ext):
    """Translates and compiles in parallel, and only what changed; links it all into one library.

    Translation waits until here, so that an sdist or a look at the metadata runs no compiler.
    """

    def run(self):
        self.stays_here = self.inplace  # setuptools builds elsewhere and copies: `inplace` is False meanwhile
        # In place, what an earlier build made from a `.pyx` that has become a `.py` would still be imported.
        for path in Path("cygrad").rglob("*.*"):
            if is_stale(path, {module_name(LIBRARY)}):
                path.unlink()
        super().run()

    def finalize_options(self):
        super().finalize_options()
        self.parallel = int(self.parallel or usable_cpus())

    def build_extensions(self):
        (library,) = self.extensions
        self.string_args = understood(GNU_STRING_ARGS, self.compiler, self.build_temp)
        self.whole_args = [] if self.stays_here else understood(WHOLE_ARGS, self.compiler, self.build_temp)
        if self.whole_args:
            self.build_temp = str(Path(self.build_temp, "whole"))
        units = self._translate([Path(source) for source in library.sources])
        with ThreadPoolExecutor(self.parallel) as pool:
            objects = list(pool.map(self._compile, *zip(*units)))
        self._link(library, objects)

    def _keep_settings(self, *settings):
        # Time stamps tell that a source has changed, but not that it is to be built otherwise.
        text = repr((Cython.__version__, numpy.__version__, LAYER_DIRECTIVES, MACROS, UNSHARED, settings))
        if not SETTINGS.exists() or SETTINGS.read_text(encoding="utf-8") != text:
            shutil.rmtree(GENERATED, ignore_errors=True)
            GENERATED.mkdir(parents=True)
            SETTINGS.write_text(text, encoding="utf-8")

    def _translate(self, sources):
        """Translate what is written in Cython; returns, for each C file, its module's source, itself and its macros."""
        translated = [*(source for source in sources if source.suffix == ".pyx"), SHARED]
        names = ("CYGRAD_MODULES", f'"{" ".join(sorted(map(module_name, translated)))}"')
        units = [(source, source, [names]) for source in sources if source.suffix == ".c"]
        kind = self.compiler.compiler_type
        self._keep_settings(names, [compile_args(source, kind, self.string_args) for source in sources])
        for layer, directives in LAYER_DIRECTIVES.items():
            parts = [source for source in translated if layer_of(source) == layer]
            try:
                extensions = cythonize(
                    [Extension(module_name(source), [source.as_posix()]) for source in parts],
                    compiler_directives=directives,
                    build_dir=None if LINETRACE else GENERATED.as_posix(),  # coverage looks beside .pyx
                    nthreads=self.parallel,
                    annotate=ANNOTATE,
                    shared_utility_qualified_name=module_name(SHARED),
                    **UNSHARED,
                    force=self.force or LINETRACE,
                )
            except CompileError as error:
                sys.exit(f"Cython cannot translate {error}; its messages stand above")
            units += [(source, Path(extension.sources[0]), MACROS) for source, extension in zip(parts, extensions)]
        for source, unit, _ in units:
            if source.suffix == ".pyx":
                shorten(unit, "_kernels" in source.parts or source.stem in INNER_PARTS)
        return units

    def _compile(self, source, unit, macros):
        """Compile a C file, unless that has been done; returns its object file."""
        (target,) = self.compiler.object_filenames([unit.as_posix()], output_dir=self.build_temp)
        if self.force or newer_group([unit, SETTINGS, *headers(source)], target):
            self.compiler.compile(
                [unit.as_posix()],
                output_dir=self.build_temp,
                macros=macros,
                include_dirs=["cygrad/_core/include", "cygrad/_kernels/include", numpy.get_include()],
                extra_postargs=compile_args(source, self.compiler.compiler_type, self.string_args) + self.whole_args,
            )
        return target

    def _link(self, library, objects):
        # Where this machine keeps its Python says nothing on another one.
        self.compiler.linker_so = [word for word in self.compiler.linker_so if not word.startswith("-Wl,-rpath")]
        self.compiler.link_shared_object(
            objects,
            self.get_ext_fullpath(library.name),
            libraries=self.get_libraries(library),
            library_dirs=library.library_dirs,
            extra_postargs=link_args() + (WHOLE_LINK_ARGS if self.whole_args else []),
            export_symbols=self.get_export_symbols(library),
            build_temp=self.build_temp,
            target_lang="c",
        )


# Processes that translate in parallel import this file again where they cannot fork.
if __name__ == "__main__":
    setup(
        ext_modules=[shared_library([LIBRARY, *sorted(Path("cygrad").rglob("*.pyx"))])],
        cmdclass={"bdist_wheel": bdist_wheel, "build": build, "build_ext": build_ext, "build_py": build_py},
    )
