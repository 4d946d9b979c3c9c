"""Every sample of every op, captured and replayed: the same bits as eager, also for other values; or refused.

`refused.json` lists the rows of which some sample is refused, and how many; it may only shrink. Rewrite it with
`python tests/compile/test_every_row.py`.
"""

import json
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from compile.replays import refusal
from ops.calls import SAMPLES

GOLDEN = Path(__file__).with_name("refused.json")
FAMILIES = 16  # parts of the registry, tested one by one


def refused(names):
    """{row: how many samples are refused}."""
    counts = {name: sum(refusal(name, sample) is not None for sample in SAMPLES[name]) for name in names}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.slow  # captures thousands of calls
@pytest.mark.skipif(not GOLDEN.exists(), reason="write refused.json first: python tests/compile/test_every_row.py")
@pytest.mark.parametrize("part", range(FAMILIES))
def test_replays_have_the_bits_of_eager_calls(part, monkeypatch):
    known = json.loads(GOLDEN.read_text(encoding="utf-8"))
    names = sorted(SAMPLES)[part::FAMILIES]
    found = refused(names)
    assert {name: count for name, count in found.items() if count > known.get(name, 0)} == {}
    assert found == {name: known[name] for name in names if name in known}, "fewer are refused: rewrite refused.json"


@pytest.mark.parametrize("name", ["add", "exp", "matmul", "sum", "sigmoid", "where", "softmax", "addmm", "clone"])
def test_common_ops_can_be_replayed(name):
    outcomes = [refusal(name, sample) for sample in SAMPLES[name]]
    assert None in outcomes


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(refused(sorted(SAMPLES)), indent=0, sort_keys=True) + "\n", encoding="utf-8")
