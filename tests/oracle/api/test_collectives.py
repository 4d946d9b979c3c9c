"""Collectives and their errors beside PyTorch's gloo, in two processes; cygrad's ranks are threads."""

import subprocess
import sys

import pytest

import cygrad
from cygrad.distributed._fake import simulate

pytestmark = pytest.mark.oracle

PROGRAM = """
def answers(torch, dist):
    found, rank, x = [], dist.get_rank(), torch.ones(2)

    def ask(name, call):
        try:
            value = call()
            found.append((name, value.tolist() if isinstance(value, torch.Tensor) else value))
        except Exception as error:
            found.append((name, type(error).__name__, str(error).splitlines()[0].partition(" <")[0]))

    def result(call, *shape, dtype=torch.float32):
        tensor = (torch.arange(4) + rank).to(dtype).reshape(shape or (4,))
        call(tensor)
        return tensor

    op = dist.ReduceOp
    for each in (op.SUM, op.PRODUCT, op.MIN, op.MAX):
        for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8):
            ask(f"all_reduce {each} {dtype}", lambda: result(lambda t: dist.all_reduce(t, each), dtype=dtype))
    for each in (op.BAND, op.BOR, op.BXOR):
        ask(f"all_reduce {each}", lambda: result(lambda t: dist.all_reduce(t, each), dtype=torch.int32))
    ask("bitwise of floats", lambda: result(lambda t: dist.all_reduce(t, op.BAND)))
    ask("broadcast", lambda: result(lambda t: dist.broadcast(t, 1), 2, 2))
    ask("all_gather_into_tensor", lambda: (lambda t: (dist.all_gather_into_tensor(t, x * rank), t)[1])(torch.zeros(4)))
    ask("reduce_scatter", lambda: (lambda t: (dist.reduce_scatter(t, [x, 2 * x]), t)[1])(torch.zeros(2)))
    ask("all_to_all_single", lambda: (lambda t: (dist.all_to_all_single(t, x + rank), t)[1])(torch.zeros(2)))
    ask("invalid root", lambda: dist.broadcast(x, 5))
    ask("to itself", lambda: dist.send(x, rank))
    ask("too few outputs", lambda: dist.all_gather([x], x))
    ask("too few inputs", lambda: dist.reduce_scatter(x, [x]))
    ask("ranks", lambda: dist.new_group([0, 2]))
    ask("duplicates", lambda: dist.new_group([0, 0]))
    ask("gather", lambda: dist.gather(x, [x], 0))
    ask("scatter", lambda: dist.scatter(x, [x], 1))
    ask("not a tensor", lambda: dist.all_reduce(3))
    ask("dtypes", lambda: dist.all_gather([x, x.double()], x))
    ask("parts", lambda: dist.all_to_all_single(x, x, [1], [2]))
    part = dist.new_group([0])
    ask("outside", lambda: (dist.get_rank(part), dist.get_world_size(part), dist.all_reduce(x, group=part)))
    ask("group rank", lambda: dist.get_group_rank(dist.new_group([1, 0]), 7) if rank < 2 else None)
    return found
"""

WITH_TORCH = f"""
import sys, torch, torch.distributed as dist
{PROGRAM}
dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1], 2), rank=int(sys.argv[2]), world_size=2)
print(repr(answers(torch, dist)))
dist.destroy_process_group()
"""


def of_torch(tmp_path):
    """What PyTorch answers in two processes."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", WITH_TORCH, str(tmp_path / "store"), str(rank)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    return [eval(process.communicate(timeout=120)[0].splitlines()[-1]) for process in processes]


@pytest.mark.filterwarnings("ignore:Running all_reduce on global rank")
def test_answers(tmp_path):
    scope: dict = {}
    exec(PROGRAM, scope)
    ours = simulate(lambda: scope["answers"](cygrad, cygrad.distributed), 2)
    for rank, (mine, theirs) in enumerate(zip(ours, of_torch(tmp_path))):
        assert len(mine) == len(theirs) > 30
        for one, other in zip(mine, theirs):
            assert one == other, rank
