"""`python -m cygrad.distributed.run script.py`: `torchrun`, for one process.

It sets the variables that tell a program its rank and the world size, and runs the program in this process.
"""

import argparse
import os
import runpy
import sys

from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed.launcher import as_rank_zero

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_IGNORED = (
    "--rdzv-backend", "--rdzv-endpoint", "--rdzv-conf", "--max-restarts", "--monitor-interval", "--start-method",
    "--role", "--log-dir", "-r", "--redirects", "-t", "--tee", "--local-ranks-filter", "--node-rank", "--master-addr",
    "--master-port", "--local-addr",
)  # fmt: skip


def get_args_parser():
    """Return the parser of `torchrun`'s options; those that one process has no use for are read and ignored."""
    parser = argparse.ArgumentParser(
        prog="python -m cygrad.distributed.run", description="Run a script as one process."
    )
    parser.add_argument("--nnodes", default="1:1", help="machines, as a number or min:max; for now 1")
    parser.add_argument("--nproc-per-node", "--nproc_per_node", default="1", help="processes on each; for now 1")
    parser.add_argument("--rdzv-id", "--rdzv_id", default="none", help="a name for the run")
    parser.add_argument("--standalone", action="store_true", help="one machine, as always for now")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    parser.add_argument("--no-python", "--no_python", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--use-env", "--use_env", action="store_true", help=argparse.SUPPRESS)
    for option in _IGNORED:
        names = sorted({option, "--" + option[2:].replace("-", "_")} if option.startswith("--") else {option})
        parser.add_argument(*names, help=argparse.SUPPRESS)
    parser.add_argument("training_script", help="the script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args):
    """Parse the options of `torchrun`."""
    return get_args_parser().parse_args(args)


def _check_is_one(args):
    nodes = args.nnodes.partition(":")[0]
    processes = args.nproc_per_node
    if processes in ("auto", "cpu", "gpu"):
        processes = "1"
    if (nodes, processes) != ("1", "1"):
        raise one_process(f"--nnodes {args.nnodes} --nproc-per-node {args.nproc_per_node}")


def run(args):
    """Run the script of parsed options as the only process."""
    _check_is_one(args)
    sys.argv = [args.training_script, *args.training_script_args]
    with as_rank_zero(args.rdzv_id):
        if args.module:
            runpy.run_module(args.training_script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(args.training_script)))
            runpy.run_path(args.training_script, run_name="__main__")


def main(args=None):
    """Run the script that the command line, or a list of arguments, names."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
