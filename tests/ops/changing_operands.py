"""Runs ops while another process changes their indices and masks: `python changing_operands.py FOLDER [NAME ...]`.

The integers and booleans of the calls are in a file that both processes map into memory, so that they change at any
time, whatever thread has the GIL. They alternate between the values of the sample and those of `other_values`. Prints
one line for each call whose result is wrong or whose error is none of `ALLOWED`; a read or write out of bounds kills
the process.
"""

import faulthandler
import itertools
import subprocess
import sys
import warnings
from pathlib import Path
from time import monotonic

import numpy as np

ALLOWED = (IndexError, RuntimeError, NotImplementedError, MemoryError)
SECONDS = 0.02  # for one sample
ALIGNED = 64
MUTATOR = """
import os
import sys
import threading
import numpy as np


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
live, first, second = (np.memmap(path, np.uint8, mode) for path, mode in zip(sys.argv[1:], ("r+", "r", "r")))
first, second = first.copy(), second.copy()
print("ready", flush=True)
while True:
    live[:] = second
    live[:] = first
"""


def other_values(a, number):
    """Values for an array of integers or booleans, most of which are out of any bounds."""
    if a.dtype.kind == "b":
        return [np.ones_like(a), np.zeros_like(a), ~a][number % 3]
    largest = {1: 100, 2: 30000, 4: 2**30, 8: 2**44}[a.dtype.itemsize]
    values = [np.full_like(a, largest), np.where(np.arange(a.size).reshape(a.shape) % 2, a, a.dtype.type(largest))]
    if a.dtype.kind == "i":
        values.append(np.full_like(a, -largest))
    return values[number % len(values)]


def is_changed(a):
    return isinstance(a, np.ndarray) and a.dtype.kind in "biu" and a.size > 0


def arrays_in(value):
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in arrays_in(item)]
    return [value] if is_changed(value) else []


class Shared:
    """Memory that another process changes, in a file of a folder."""

    def __init__(self, folder, arrays):
        self.paths = [str(folder / name) for name in ("live", "first", "second")]
        starts = np.cumsum([0, *(-(-a.nbytes // ALIGNED) * ALIGNED for a in arrays)])
        for path in self.paths:
            Path(path).write_bytes(bytes(int(starts[-1]) or ALIGNED))
        self.memory = [np.memmap(path, np.uint8, "r+") for path in self.paths]
        self.arrays = [np.asarray(self._put(a, start, k)) for k, (a, start) in enumerate(zip(arrays, starts.tolist()))]
        for block in self.memory:
            block.flush()

    def _put(self, a, start, number):
        for block, values in zip(self.memory, (a, a, other_values(a, number))):
            part = np.frombuffer(block, a.dtype, a.size, start).reshape(a.shape)
            part[...] = values
        return np.frombuffer(self.memory[0], a.dtype, a.size, start).reshape(a.shape)

    def __enter__(self):
        command = [sys.executable, "-c", MUTATOR, *self.paths]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()


def run_samples(names, folder, all_samples):
    """Run the samples of ops forwards and backwards. Return how many were run."""
    from ops.calls import SAMPLES, Call, Cygrad
    from ops.test_hostile import ALSO, NAMES

    chosen = []
    for name in names or NAMES:
        changing = [s for s in SAMPLES[name] if arrays_in([*s.args, *s.kwargs.values()])]
        chosen += [(name, sample) for sample in (changing if all_samples else changing[:1])]
    given = [arrays_in([*sample.args, *sample.kwargs.values()]) for _, sample in chosen]
    with Shared(folder, list(itertools.chain(*given))) as shared:
        left = iter(shared.arrays)
        for name, sample in chosen:

            class Changing(Cygrad):
                @staticmethod
                def tensor(array):
                    return Cygrad.tensor(next(left) if is_changed(array) else array)

            call = Call(name, sample, on=Changing)
            repeat(f"{name}: {sample}", lambda call=call: run_backwards(call), (*ALLOWED, ALSO.get(name, IndexError)))
    return len(chosen)


def run_backwards(call):
    outputs = call.outputs()
    if outputs:
        call.gradients(call.weights(outputs), outputs)


def large_calls(t, F, index, mask):
    """Calls on many elements, for the loops of large arrays; all right results consist of ones."""
    n = index.numel()
    ones, row = t.ones(n), t.ones(n, 1)
    few = t.ones(10)
    rows = {dtype: t.ones(10, 3, dtype=dtype) for dtype in (t.float32, t.float64, t.float16, t.uint8)}
    for x in rows.values():
        yield lambda x=x: x[index]
        yield lambda x=x: x[index, index]
        yield lambda x=x: x[index, index * 0]
        yield lambda x=x: x.index_select(0, index)
        yield lambda x=x: x.take(index)
        yield lambda x=x: x[:, 0].gather(0, index)
        yield lambda x=x: x.gather(0, index.view(-1, 1))
        yield lambda x=x: x.clone().put_(index, t.ones(n, dtype=x.dtype))
        yield lambda x=x: x.clone().index_fill_(0, index, 1)
        yield lambda x=x: x.clone().index_copy_(0, index, t.ones(n, 3, dtype=x.dtype))
        yield lambda x=x: x.index_put((index,), t.ones((), dtype=x.dtype))
        yield lambda x=x: x[:, 0].scatter(0, index, t.ones(n, dtype=x.dtype))
        yield lambda x=x: t.ones(n, dtype=x.dtype)[mask]
        yield lambda x=x: t.ones(n, dtype=x.dtype).masked_select(mask)
        yield lambda x=x: t.ones(n, dtype=x.dtype).masked_scatter(mask, t.ones(n, dtype=x.dtype))
        yield lambda x=x: t.ones(n, dtype=x.dtype).index_put((mask,), t.ones((), dtype=x.dtype))
    yield lambda: F.embedding(index, rows[t.float32])
    yield lambda: t.ones(n)[mask.nonzero()[:, 0]]
    yield lambda: t.ones(n)[mask.nonzero(as_tuple=True)]
    yield lambda: t.ones(n, 1)[t.where(mask.view(n, 1))]
    yield lambda: (index.bincount(minlength=10).sum() == n).float()
    yield lambda: (F.one_hot(index, 10).sum(1) == 1).float()
    yield lambda: t.ones(n)[index.argsort()]
    yield lambda: t.ones(n)[index.to(t.int8).argsort(stable=True)]
    yield lambda: t.ones(n)[index.double().sort(descending=True)[1]]
    yield lambda: t.ones(n)[t.arange(n).repeat_interleave(index % 3)]
    yield lambda: few.index_add(0, index, t.zeros(n))
    yield lambda: few.scatter_add(0, index, t.zeros(n))
    yield lambda: few.scatter_reduce(0, index, ones, "amax")
    yield lambda: few.index_reduce(0, index, ones, "prod")
    yield lambda: F.nll_loss(-row.expand(n, 10), index)
    yield lambda: (F.cross_entropy(row.expand(n, 10), index) - 2.302585).abs() < 1e-4


def run_large(sizes, folder):
    import cygrad as t
    from cygrad._core.graph.internals import tensor_of

    given = [a for n in sizes for a in (np.zeros(n, np.int64), np.arange(n) % 3 == 0)]
    with Shared(folder, given) as shared:
        for index, mask in zip(*[iter(map(tensor_of, shared.arrays))] * 2):
            for number, call in enumerate(large_calls(t, t.nn.functional, index, mask)):
                repeat(f"call {number} of {index.numel()} elements", lambda call=call: check_ones(call()), ALLOWED)


def check_ones(result):
    if not bool((result == 1).all()):
        raise ValueError(f"not only ones: {result}")


def repeat(what, call, allowed):
    """Repeat a call for a while, and print errors that are not allowed."""
    end = monotonic() + SECONDS
    while monotonic() < end:
        try:
            call()
        except allowed:
            pass
        except Exception as error:
            print(f"{what}: {type(error).__name__}: {error}"[:1000])
            return


if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parent.parent))
    folder, what = Path(sys.argv[1]), sys.argv[2]
    if what == "large":
        run_large((1, 50, 3000, 70000), folder)
    else:
        assert run_samples(sys.argv[3:], folder, what == "all") > 50
