"""The old form of `torch.distributed.run`: `python -m cygrad.distributed.launch script.py`.

It gives the script its number as the first argument, `--local-rank=N`, unless `--use-env` says that the script reads
`LOCAL_RANK` in its environment.
"""

from cygrad.distributed import run as _run
from cygrad.distributed.run import get_args_parser, run

__all__ = ["get_args_parser", "launch", "main", "parse_args", "run"]


def parse_args(args):
    """Parse the options of `torchrun`, and `--use-env`."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="leave --local-rank out of the script's arguments"
    )
    return parser.parse_args(args)


def launch(args):
    """Run the script of parsed options."""
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    _run.run(args)


def main(args=None):
    """Run the script that the command line, or a list of arguments, names."""
    launch(parse_args(args))


if __name__ == "__main__":
    main()
