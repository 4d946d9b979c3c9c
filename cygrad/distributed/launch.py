"""The old name of `torch.distributed.run`: `python -m cygrad.distributed.launch script.py`."""

from cygrad.distributed.run import get_args_parser, main, parse_args, run

__all__ = ["get_args_parser", "main", "parse_args", "run"]

if __name__ == "__main__":
    main()
