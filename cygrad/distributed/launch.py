"""The old form of `torch.distributed.run`: `python -m cygrad.distributed.launch script.py`.

It gives the script its number as the first argument, `--local-rank=N`, unless `--use-env` says that the script reads
`LOCAL_RANK` in its environment.
"""

from cygrad.distributed import run as _run
from cygrad.distributed.run import get_args_parser, run

__all__ = ["get_args_parser", "launch", "main", "parse_args", "run"]


def parse_args(args):
    """Parse the options of `torchrun`, and `--use-env`.

    >>> from cygrad.distributed.launch import parse_args
    >>> parse_args(["--use-env", "train.py"]).use_env
    True
    """
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="leave --local-rank out of the script's arguments"
    )
    return parser.parse_args(args)


def launch(args):
    """Run the script of parsed options; without `--use-env`, its first argument is `--local-rank=N`.

    >>> import os, tempfile
    >>> from cygrad.distributed.launch import launch, parse_args
    >>> folder = tempfile.TemporaryDirectory()
    >>> script = os.path.join(folder.name, "train.py")
    >>> with open(script, "w") as file:
    ...     size = file.write("import sys; print(sys.argv[1:])")
    >>> launch(parse_args([script, "--epochs", "3"]))
    ['--local-rank=0', '--epochs', '3']
    >>> folder.cleanup()

    Raises ValueError for `--no-python` without `--use-env`.
    """
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    _run.run(args)


def main(args=None):
    """Run the script that the command line, or a list of arguments, names.

    >>> import os, tempfile
    >>> from cygrad.distributed.launch import main
    >>> folder = tempfile.TemporaryDirectory()
    >>> script = os.path.join(folder.name, "train.py")
    >>> with open(script, "w") as file:
    ...     size = file.write("import os, sys; print(os.environ['LOCAL_RANK'], sys.argv[1:])")
    >>> main(["--use-env", script, "--epochs", "3"])
    0 ['--epochs', '3']
    >>> folder.cleanup()
    """
    launch(parse_args(args))


if __name__ == "__main__":
    main()
