"""What `cygrad.distributed.run` starts in each process: sets `RANK` and the like, then runs the script.

`python -m cygrad.distributed._child {script | module | program} name [arguments]`; with `function`, the name is that
of a folder with a function, where its result is left (`launcher.py`).
"""

import os
import pickle
import runpy
import sys
from multiprocessing import reduction, spawn

import cygrad.distributed  # sets the variables of this rank
from cygrad.distributed import _logs
from cygrad.distributed._c10d.supervision.launchers import end_killed, is_initialized, launched

__all__ = ["AS_TORCH", "LOCAL_RANK_ARGUMENT", "run_script"]

AS_TORCH = "CYGRAD_DISTRIBUTED_AS_TORCH"  # a variable: whether `import torch` means cygrad, as it does in `run`
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


def _call(folder):
    """Call the function in a folder, and leave its result there."""
    with open(os.path.join(folder, "main"), "rb") as file:
        main = pickle.load(file)
    if main is not None:
        spawn.prepare(main)  # import the program that the function is from
    with open(os.path.join(folder, "call"), "rb") as file:
        function, arguments = pickle.load(file)
    result = function(*arguments)
    with open(os.path.join(folder, f"result-{os.environ['RANK']}"), "wb") as file:
        reduction.ForkingPickler(file).dump(result)


def _set_variables():
    """Set those of `torchrun`'s variables that launchers of MPI do not know; a role has all processes."""
    rank, size = int(os.environ.setdefault("RANK", "0")), int(os.environ.setdefault("WORLD_SIZE", "1"))
    local_rank, local_size = int(os.environ.setdefault("LOCAL_RANK", "0")), int(os.environ["LOCAL_WORLD_SIZE"])
    os.environ["GROUP_RANK"] = os.environ.get("SLURM_NODEID", str(rank // local_size))
    os.environ["GROUP_WORLD_SIZE"] = str(-(-size // local_size))
    os.environ["ROLE_RANK"], os.environ["ROLE_WORLD_SIZE"] = str(rank), str(size)
    _logs.enter(rank, local_rank)


def _main():
    assert cygrad.distributed.is_available()
    kind, script, *arguments = sys.argv[1:]
    _set_variables()
    if os.environ.pop(AS_TORCH, ""):
        cygrad.as_torch()
    if kind == "program":
        os.execvp(script, [script, *_with_rank(arguments)])
    if kind == "script" and not sys.flags.safe_path:
        sys.path.pop(0)  # the current folder, which `-m` put there
    try:
        if kind == "function":
            _call(script)
        else:
            run_script(script, arguments, is_module=kind == "module")
    except SystemExit as error:
        if error.code not in (None, 0) and launched() is not None and not is_initialized():
            if isinstance(error.code, str):
                print(error.code, file=sys.stderr)
            end_killed()  # the others would wait for this process
        raise
    except Exception as error:
        _logs.leave_error(error)
        raise


if __name__ == "__main__":
    _main()
