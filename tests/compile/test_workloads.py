"""The workloads of `benchmarks`, compiled: equal to eager bit for bit, on one thread and several."""

import importlib

import pytest
from checkout import CHECKOUT, rows_of_benchmarks

import cygrad

FOLDER = CHECKOUT / "benchmarks"
STEPS = 20

pytestmark = [
    pytest.mark.slow,  # whole training steps of networks, in all combinations
    pytest.mark.skipif(not FOLDER.exists(), reason="the benchmarks are not installed"),
]


def rows():
    with rows_of_benchmarks() as module:
        as_function = importlib.import_module("benchmarks.row").as_function
        return {row.name: (row, *as_function(row.statement)) for row in module.ROWS}


ROWS = rows() if FOLDER.exists() else {}


class Workload:
    """A row's statement as a function."""

    def __init__(self, row, source, clear):
        cygrad.manual_seed(3)
        self.names = dict(row.setup(cygrad))
        exec(source, self.names)
        self.step, self.clear = self.names["step"], clear

    def tensors(self, value):
        if isinstance(value, cygrad.Tensor):
            yield value
            if value.is_leaf and value.grad is not None:
                yield value.grad
        elif isinstance(value, cygrad.nn.Module):
            for each in (*value.parameters(), *value.buffers()):
                yield from self.tensors(each)
        elif isinstance(value, cygrad.optim.Optimizer):
            for group in value.param_groups:
                for p in group["params"]:
                    yield from self.tensors(p)
                    yield from self.tensors(list(value.state[p].values()))
        elif isinstance(value, (list, tuple)):
            for each in value:
                yield from self.tensors(each)

    def run(self, step):
        """Do the step; return all bytes that it has left."""
        result = step()
        names = [self.names[name] for name in sorted(self.names) if name not in ("__builtins__", "step")]
        found = [t.detach().numpy().tobytes() for t in self.tensors([result, names])]
        exec(self.clear, self.names)
        return found


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", ROWS)
def test_workload_has_the_bits_of_eager_steps(name, threads, request):
    before = cygrad.get_num_threads()
    request.addfinalizer(lambda: cygrad.set_num_threads(before))
    cygrad.set_num_threads(threads)
    eager, other = Workload(*ROWS[name]), Workload(*ROWS[name])
    compiled = cygrad.compile(other.step)
    for _ in range(STEPS if threads == 1 else STEPS // 2):
        assert other.run(compiled) == eager.run(eager.step)
