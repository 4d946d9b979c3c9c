"""Record random numbers that PyTorch draws, with which the tests compare cygrad's; needs PyTorch.

    python tools/record_draws.py            write tests/ops/random/pytorch_draws.json
    python tools/record_draws.py --check    fail if PyTorch draws other numbers

The expressions are in tests/support/draw_cases.py.
"""

import argparse
import hashlib
import json
import sys
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "ops" / "random" / "pytorch_draws.json"
sys.path.insert(0, str(ROOT / "tests" / "support"))

from draw_cases import CASES, SEED, evaluate  # type: ignore[import-not-found]  # noqa: E402  the path is set above


def state_after(count):
    """Return a digest of the state after a seed and this many normal numbers."""
    torch.manual_seed(SEED)
    for _ in range(count):
        torch.randn(())
    return hashlib.sha256(bytes(torch.get_rng_state().tolist())).hexdigest()


def recorded():
    """Return the text of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = {expression: evaluate(torch, expression) for expression in CASES}
    states = {str(count): state_after(count) for count in (0, 1, 2, 400)}
    lines = [f"  {json.dumps(expression)}: {json.dumps(drawn)}" for expression, drawn in draws.items()]
    return f'{{"states": {json.dumps(states)},\n"draws": {{\n' + ",\n".join(lines) + "\n}}\n"


def main():
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    text = recorded()
    if not parser.parse_args().check:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        sys.exit(f"PyTorch draws other numbers than {FILE} holds: run tools/record_draws.py")


if __name__ == "__main__":
    main()
