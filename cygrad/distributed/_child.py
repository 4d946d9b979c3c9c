"""What `cygrad.distributed.run` starts in each process: sets `RANK` and the like, then runs the script.

`python -m cygrad.distributed._child [-m | --no-python] script [arguments]`
"""

import os
import runpy
import sys

import cygrad.distributed  # sets the variables of this rank
from cygrad.distributed._c10d.supervision.launchers import end_killed, is_initialized

__all__ = ["LOCAL_RANK_ARGUMENT", "run_script"]

LOCAL_RANK_ARGUMENT = "--local-rank={local_rank}"  # as the first argument: the number of this process is put there


def run_script(script, arguments, is_module=False):
    """Run a script, or a module by its name, as the main program."""
    sys.argv = [script, *_with_rank(arguments)]
    if is_module:
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        runpy.run_path(script, run_name="__main__")


def _with_rank(arguments):
    if arguments[:1] != [LOCAL_RANK_ARGUMENT]:
        return arguments
    return [f"--local-rank={os.environ.get('LOCAL_RANK', '0')}", *arguments[1:]]


def _main():
    assert cygrad.distributed.is_available()
    kind, script, *arguments = sys.argv[1:]
    if kind == "program":
        os.execvp(script, [script, *_with_rank(arguments)])
    if kind == "script" and not sys.flags.safe_path:
        sys.path.pop(0)  # the current folder, which `-m` put there
    try:
        run_script(script, arguments, is_module=kind == "module")
    except SystemExit as error:
        if error.code not in (None, 0) and not is_initialized():
            if isinstance(error.code, str):
                print(error.code, file=sys.stderr)
            end_killed()  # the others would wait for this process
        raise


if __name__ == "__main__":
    _main()
