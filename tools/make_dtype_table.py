"""Write tools/op_dtypes.json: which dtypes each op takes, which dtype its result has, and what other dtypes raise.

    python tools/make_dtype_table.py            call each op with its samples in every dtype, and write the table
    python tools/make_dtype_table.py --check    fail if the table is out of date

The reference (docs/_ext/reference.py) shows these sentences. An op takes a dtype if one of its samples runs with it.
What is cast are the floating-point and complex operands of a sample, or all operands if there are none: integers
beside others are indices. Samples that ask for a dtype are left out if there are others.
"""

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "op_dtypes.json"
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "tests" / "support")]

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from make_ops_page import ops, place_of  # noqa: E402
from ops import calls  # type: ignore[import-not-found]  # noqa: E402

import cygrad  # noqa: E402
from cygrad._core.graph.opdef import registry  # noqa: E402

DTYPES: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "complex128": np.complex128,
    "complex64": np.complex64,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.bool_,
}
GROUPS = {
    "floating-point": ("float64", "float32", "float16", "bfloat16"),
    "complex": ("complex128", "complex64"),
    "integer": ("int64", "int32", "int16", "int8", "uint8"),
    "bool": ("bool",),
}


def arrays_in(values):
    """Yield the arrays among values and within their lists and tuples."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from arrays_in(value)


def converted(array, dtype):
    """Return an array in another dtype, with values that this dtype has."""
    if array.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        array = array.real
    return (np.abs(array) if np.dtype(dtype).kind == "u" else array).astype(dtype)


def outcome(name, sample, dtype):
    """Return the dtype of the first result of a sample, None if that is no tensor, or the exception it raises."""
    arrays = [*arrays_in(sample.args), *arrays_in(sample.kwargs.values())]
    inexact = any(map(calls.is_inexact, arrays))

    def change(array):
        return converted(array, dtype) if calls.is_inexact(array) or not inexact else array

    try:
        results = calls.Call(name, sample, change, requires_grad=False).run()
    except Exception as error:
        return error
    tensors = [each for each in results if isinstance(each, cygrad.Tensor)]
    return str(tensors[0].dtype).removeprefix("torch.") if tensors else None


def asks_for_dtype(sample):
    return "dtype" in sample.kwargs or any(isinstance(each, cygrad.dtype) for each in sample.args)


def outcomes_of(names):
    """Return {dtype: that of the results, or an exception} of an op whose rows have these names."""
    samples = [(name, sample) for name in names for sample in calls.SAMPLES.get(name, ())]
    samples = [(name, s) for name, s in samples if [*arrays_in([*s.args, *s.kwargs.values()])]]
    samples = [(name, s) for name, s in samples if not asks_for_dtype(s)] or samples
    found = {}
    for word, dtype in DTYPES.items() if samples else ():
        outcomes = [outcome(name, sample, dtype) for name, sample in samples]
        found[word] = next((each for each in outcomes if not isinstance(each, Exception)), outcomes[0])
    return found


def listed(dtypes):
    """Return dtypes in words, whole groups by their names."""
    words = []
    for group, members in GROUPS.items():
        present = [f"`{each}`" for each in members if each in dtypes]
        words += [group] if len(present) == len(members) > 1 else present
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def sentences(outcomes):
    """Return what the outcomes for each dtype mean for a user."""
    refused = {word: each for word, each in outcomes.items() if isinstance(each, Exception)}
    taken = {word: each for word, each in outcomes.items() if word not in refused}
    said = [f"Takes {listed(taken)} tensors." if refused else "Takes tensors of every common dtype."]
    kinds = sorted({kind_of(error) for error in refused.values()})
    if kinds:
        said.append(f"Other dtypes raise {' or '.join(f'`{kind}`' for kind in kinds)}.")
    given: dict[str, list[str]] = {}
    for word, result in taken.items():
        if result is not None:
            given.setdefault(result, []).append(word)
    if len(given) == 1 and len(taken) > 1:
        return " ".join([*said, f"The result is `{next(iter(given))}`."])
    for result, words in given.items():
        if others := [word for word in words if word != result]:
            sentence = f"{listed(others)} {'tensors give' if len(others) > 1 else 'gives'} `{result}`."
            said.append(sentence[0].upper() + sentence[1:])
    return " ".join(said)


def kind_of(error):
    """Return the name of the first class of an exception that Python has itself."""
    return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")


def table():
    """Return {public name: sentences} of all ops that have samples with tensors."""
    found = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for family in ops().values():
            for base, names in family.items():
                outcomes = outcomes_of(names)
                aliases = registry[base].aliases if base in registry else ()
                if any(not isinstance(each, Exception) for each in outcomes.values()):
                    found.update(dict.fromkeys((place_of(base), *aliases), sentences(outcomes)))
    return dict(sorted(found.items()))


def text():
    """Return the text of the table."""
    return json.dumps(table(), indent=2, ensure_ascii=False) + "\n"


def main():
    """Write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the table is out of date")
    if parser.parse_args().check:
        if TABLE.read_text(encoding="utf-8") != text():
            sys.exit(f"{TABLE} is out of date: run python tools/make_dtype_table.py")
        return
    TABLE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
