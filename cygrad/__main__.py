"""Runs a program written for PyTorch on cygrad: `python -m cygrad script.py args...`"""

import code
import os
import runpy
import sys
from types import ModuleType

import cygrad

USAGE = """usage: python -m cygrad [script | -m module | -c command | -] [args...]

Runs a program in which `import torch` means cygrad. Without a program: a prompt.

  script       a file, as `python script` would run it
  -m module    a module or package, as `python -m module` would run it
  -c command   a program given as a text
  -            a program read from standard input
  --version    cygrad's version, and the version of PyTorch whose names it has
"""


def run(arguments):
    """Run what the arguments of a command line name; `sys.argv` and `sys.path` become what Python makes of them."""
    first, rest = (arguments[0], arguments[1:]) if arguments else (None, [])
    if first in ("-h", "--help"):
        print(USAGE, end="")
    elif first in ("-V", "--version"):
        print(f"cygrad {cygrad.__version__} (torch {cygrad.torch_version.__version__})")
    elif first in ("-m", "-c") and not rest:
        sys.exit(f"python -m cygrad: argument expected for {first}\n{USAGE}")
    elif first == "-m":
        cygrad.as_torch()
        sys.argv[:] = rest  # runpy replaces the first by the module's file
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        run_text(rest[0], "<string>", ["-c", *rest[1:]])
    elif first == "-" or (first is None and not sys.stdin.isatty()):
        run_text(sys.stdin.read(), "<stdin>", ["-", *rest])
    elif first is None:
        prompt()
    elif first.startswith("-"):
        sys.exit(f"python -m cygrad: unknown option {first}\n{USAGE}")
    else:
        run_script(first, rest)


def run_script(script, arguments):
    if not os.path.exists(script):
        print(f"python -m cygrad: can't open file '{script}': there is no such file", file=sys.stderr)
        sys.exit(2)  # as Python does
    cygrad.as_torch()
    sys.argv[:] = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(script))
    runpy.run_path(script, run_name="__main__")


def main_module(argv):
    """Return the names of a new `__main__`, for a program that is no file."""
    cygrad.as_torch()
    sys.argv[:] = argv
    sys.path[0] = ""
    program = sys.modules["__main__"] = ModuleType("__main__")
    return vars(program)


def run_text(text, name, argv):
    exec(compile(text, name, "exec"), main_module(argv))


def prompt():
    names = main_module([""])
    try:
        import readline  # not on every system
        import rlcompleter  # needs it

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    except ImportError:
        pass
    banner = f"cygrad {cygrad.__version__}, Python {sys.version.split()[0]}; `import torch` gives cygrad"
    code.interact(banner, local=names, exitmsg="")


def show_error(error_type, error, traceback):
    """Print an uncaught error as Python does for a script: without the frames that ran it."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    sys.__excepthook__(error_type, error.with_traceback(traceback), traceback)


if __name__ == "__main__":
    sys.excepthook = show_error
    run(sys.argv[1:])
