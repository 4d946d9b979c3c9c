"""Collectives in a group of one process: each result is what this process sends."""

import pytest

import cygrad as torch
import cygrad.distributed as dist
from cygrad.distributed import ReduceOp

pytestmark = pytest.mark.usefixtures("group")


def values():
    return torch.arange(4.0)


def received(call):
    """What a call writes to a tensor of zeros."""
    target = torch.zeros(4)
    assert call(target) is None
    return target.tolist()


def test_results():
    sent = [0, 1, 2, 3]
    assert received(lambda to: dist.all_gather([to], values())) == sent
    assert received(lambda to: dist.all_gather_into_tensor(to, values())) == sent
    assert received(lambda to: dist.gather(values(), [to])) == sent
    assert received(lambda to: dist.scatter(to, [values()])) == sent
    assert received(lambda to: dist.reduce_scatter(to, [values()])) == sent
    assert received(lambda to: dist.reduce_scatter_tensor(to, values())) == sent
    assert received(lambda to: dist.all_to_all([to], [values()])) == sent
    assert received(lambda to: dist.all_to_all_single(to, values())) == sent
    for call in (dist.all_reduce, lambda x: dist.broadcast(x, 0), lambda x: dist.reduce(x, group_dst=0)):
        x = values()
        assert call(x) is None and x.tolist() == sent


@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_one_value_is_its_own_reduction(op, dtype):
    x = torch.tensor([1.5, -2.0], dtype=dtype)
    dist.all_reduce(x, op)
    assert x.tolist() == [1.5, -2.0]


def test_reductions_that_do_not_exist():
    with pytest.raises(RuntimeError, match="^Cannot use ReduceOp.BAND with non-integral dtype"):
        dist.all_reduce(values(), ReduceOp.BAND)
    with pytest.raises(ValueError, match="^all_reduce does not support RedOpType.MAX on complex tensors"):
        dist.all_reduce(torch.ones(1, dtype=torch.complex64), ReduceOp.MAX)
    with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
        dist.all_reduce(torch.ones(1, dtype=torch.int64), ReduceOp.AVG)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        dist.all_reduce(values(), "sum")


def test_work():
    x = values()
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
    assert work.result()[0] is x
    assert work.get_future().then(lambda done: done.value()[0].sum().item()).wait() == 6
    with pytest.raises(RuntimeError, match=r"^sourceRank\(\)"):
        work.source_rank()
    assert dist.barrier() is None and dist.monitored_barrier() is None
    assert isinstance(dist.barrier(async_op=True), dist.Work)


def test_wrong_arguments():
    for call, error, message in (
        (lambda: dist.all_reduce([values()]), TypeError, "Expected parameter `tensor` of type torch.Tensor"),
        (lambda: dist.all_gather(values(), values()), TypeError, "`tensor_list` of type List"),
        (lambda: dist.all_gather([values()] * 2, values()), RuntimeError, "expected length 1, got 2"),
        (lambda: dist.all_gather([torch.zeros(3)], values()), RuntimeError, r"expected \(4\), got \(3\)"),
        (lambda: dist.all_gather([values().double()], values()), ValueError, "tensors with different dtypes"),
        (lambda: dist.reduce(values()), ValueError, "Must specify global_rank or group_rank"),
        (lambda: dist.reduce(values(), 0, group_dst=0), ValueError, "Can't specify both"),
        (lambda: dist.broadcast(values(), 1), RuntimeError, "invalid root rank: 1"),
        (lambda: dist.scatter(values()), ValueError, "``scatter_list`` must be specified on source rank"),
        (lambda: dist.gather(values(), [values()], 1), ValueError, "must NOT be specified on non-destination"),
        (lambda: dist.all_to_all_single(values(), values(), [3], [4]), RuntimeError, "Split sizes doesn't match"),
        (lambda: dist.send(values(), 0), ValueError, "destination rank should not be the same as the rank"),
        (lambda: dist.isend(values(), 1), RuntimeError, "invalid peer rank: 1"),
        (lambda: dist.recv(values()), RuntimeError, "no other process"),
        (lambda: dist.P2POp(dist.send, values(), 0), ValueError, "Invalid ``op``"),
        (lambda: dist.all_reduce(values(), group=3), ValueError, "Process group 3 is not initialized"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_a_group_of_others():
    x = values()
    with pytest.warns(UserWarning, match="Running all_reduce on global rank 0 which does not belong"):
        assert dist.all_reduce(x, group=dist.GroupMember.NON_GROUP_MEMBER) is None


def test_autograd_does_not_see_what_arrives():
    x = torch.zeros(4, requires_grad=True)
    dist.all_gather([x], values())
    assert x.tolist() == [0, 1, 2, 3] and x.is_leaf and x.requires_grad


def test_objects():
    results, sent = [None], {"loss": [1]}
    dist.all_gather_object(results, sent)
    assert results == [sent] and results[0] is not sent
    results = [None]
    dist.gather_object(sent, results)
    assert results == [sent]
    objects = [sent, 2]
    dist.broadcast_object_list(objects, 0)
    assert objects[0] is sent
    dist.scatter_object_list(results, [[7]])
    assert results == [[7]]
    with pytest.raises(ValueError, match="to be a list of size at least 1"):
        dist.scatter_object_list([], [[7]])
    with pytest.raises(RuntimeError, match="Incorrect input list size 2"):
        dist.scatter_object_list(results, [1, 2])
    with pytest.raises(Exception, match="pickle"):
        dist.all_gather_object(results, lambda: 0)


def test_low_level_names(group):
    x, y = values(), torch.zeros(4)
    group.allreduce([x]).wait()
    group.allgather([[y]], [x]).wait()
    assert y.tolist() == [0, 1, 2, 3]
    group.broadcast(x, 0).wait()
    group.barrier().wait()
