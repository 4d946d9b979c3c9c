"""Writes exact_derivatives.json: functions and their first and second derivatives, computed by mpmath with 1000 digits.

Run `python tests/ops/exact_derivatives.py` after a change; it needs mpmath and takes a minute. The tests only read the
file.
"""

import json
from itertools import product
from pathlib import Path

PATH = Path(__file__).with_suffix(".json")
SIZES = (1e-300, 1e-30, 1e-8, 0.01, 0.5, 1.0, 2.5, 7.0, 20.0, 40.0, 1000.0, 1e30, 1e100, 1e300)
POINTS = [0.0, *SIZES, *[-size for size in SIZES]]
SIDES = (0.0, 1.0, -1.0, 0.5, 40.0, -40.0, 1000.0, -1000.0, 1e30, -1e30)


def functions(mp):
    def sigmoid(x):
        return 1 / (1 + mp.exp(-x))

    def gelu_tanh(x):
        return x * sigmoid(mp.sqrt(8 / mp.pi) * (x + mp.mpf("0.044715") * x**3))

    def log2(x):
        return mp.log(x) / mp.log(2)

    one = {
        **{name: getattr(mp, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "erf", "erfc")},
        **{name: getattr(mp, name) for name in ("asin", "acos", "atan", "sinh", "cosh", "acosh", "atanh")},
        "exp2": lambda x: mp.mpf(2) ** x,
        "log2": log2,
        "log1p": lambda x: mp.log(1 + x),
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "reciprocal": lambda x: 1 / x,
        "sigmoid": sigmoid,
        "sinc": lambda x: mp.sin(mp.pi * x) / (mp.pi * x) if x else mp.mpf(1),
        "logit": lambda x: mp.log(x / (1 - x)),
        "ndtr": lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
        "gelu_tanh": gelu_tanh,
        "silu": lambda x: x * sigmoid(x),
        "mish": lambda x: x * mp.tanh(mp.log(1 + mp.exp(x))),
        "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "logsigmoid": lambda x: -mp.log(1 + mp.exp(-x)),
        "tanhshrink": lambda x: x - mp.tanh(x),
        "softsign": lambda x: x / (1 + abs(x)),
    }
    two = {
        "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        "logaddexp2": lambda x, y: log2(mp.mpf(2) ** x + mp.mpf(2) ** y),
        "hypot": lambda x, y: mp.sqrt(x * x + y * y),
        "xlogy": lambda x, y: x * mp.log(y),
        "xlog1py": lambda x, y: x * mp.log(1 + y),
    }
    return one, two


def exact(mp, function, point, orders):
    """The derivative as a float, or None where there is none or it is no finite, normal float."""
    try:
        found = mp.diff(function, tuple(map(mp.mpf, point)), orders) if any(orders) else function(*map(mp.mpf, point))
        found = float(found)
    except (ZeroDivisionError, ValueError, OverflowError, TypeError):
        return None
    return found if found == 0 or 2.3e-308 < abs(found) < 1.79e308 else None


def main():
    import mpmath as mp

    mp.mp.dps = 1000
    one, two = functions(mp)
    found = {}
    for name, function in one.items():
        found[name] = [[[x], [exact(mp, function, (x,), (n,)) for n in range(3)]] for x in POINTS]
    for name, function in two.items():
        orders = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
        found[name] = [[p, [exact(mp, function, p, n) for n in orders]] for p in product(SIDES, SIDES) if any(p)]
    lines = []
    for name, rows in found.items():
        written = ",\n".join(map(json.dumps, rows))
        lines.append(f"{json.dumps(name)}: [\n{written}\n]")
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
