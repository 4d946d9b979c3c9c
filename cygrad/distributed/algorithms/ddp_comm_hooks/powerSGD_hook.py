"""PowerSGD (Vogels et al., 2019): sends matrices of low rank in place of gradients."""

import math

import numpy as np

import cygrad
from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import averaged
from cygrad.futures import Future

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """The state of `powerSGD_hook`.

    A gradient of n rows and m columns is sent as factors of `matrix_approximation_rank` columns if that divides the
    number of elements by at least `min_compression_rate`, from iteration `start_powerSGD_iter` on; before, gradients
    are averaged in full. With `use_error_feedback` what the approximation lacks is added to the next gradient, and with
    `warm_start` it starts at the last factors.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(100, 50))
    >>> state = PowerSGDState(matrix_approximation_rank=1, start_powerSGD_iter=2)
    >>> model.register_comm_hook(state, powerSGD_hook)  # which calls state.maybe_increase_iter(bucket)
    >>> for _ in range(3):
    ...     model(cygrad.ones(3, 100)).sum().backward()
    >>> state.rank_for(50, 100), state.compression_stats()
    (1, (25.25, 5050, 200))
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        process_group=None,
        matrix_approximation_rank=1,
        start_powerSGD_iter=1000,
        min_compression_rate=2,
        use_error_feedback=True,
        warm_start=True,
        orthogonalization_epsilon=0,
        random_seed=0,
        compression_stats_logging_frequency=10000,
        batch_tensors_with_same_shape=False,
    ):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because "
                "PowerSGD can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = np.random.RandomState(random_seed)
        self.iter = 0
        self.error_dict: dict = {}
        self.q_memory_dict: dict = {}
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket):
        """Count the iteration when its last bucket has arrived."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self):
        """Return the compression rate so far, and the numbers of elements before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0, before, after)

    def rank_for(self, rows, columns):
        """The rank of the factors for a matrix of this shape, or None to send it in full."""
        rank = min(rows, columns, self.matrix_approximation_rank)
        return rank if (rows + columns) * rank * self.min_compression_rate < rows * columns else None


def powerSGD_hook(state, bucket):
    """Average the gradients through factors of low rank, each matrix by itself; vectors are averaged in full.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(100, 50))
    >>> model.register_comm_hook(PowerSGDState(start_powerSGD_iter=2), powerSGD_hook)
    >>> model(cygrad.ones(3, 100)).sum().backward()
    >>> dist.destroy_process_group()
    """
    return _hook(state, bucket, bucket.gradients())


def batched_powerSGD_hook(state, bucket):
    """Average the gradients through factors of low rank, the whole bucket as one square matrix.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, batched_powerSGD_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(100, 50))
    >>> model.register_comm_hook(PowerSGDState(start_powerSGD_iter=2), batched_powerSGD_hook)
    >>> model(cygrad.ones(3, 100)).sum().backward()
    >>> dist.destroy_process_group()
    """
    return _hook(state, bucket, None)


def _hook(state, bucket, gradients):
    """Average a bucket: each of these gradients by itself, or, for None, all of it as one square matrix."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(state.process_group, bucket.buffer())
    with cygrad.no_grad():
        if gradients is None:
            _average_as_square(state, bucket.index(), bucket.buffer())
        else:
            _average_each(state, bucket.index(), gradients)
    state.maybe_increase_iter(bucket)
    done: Future = Future()
    done.set_result(bucket.buffer())
    return done


def _average_each(state, bucket, gradients):
    """Write the approximate means of gradients to them."""
    chosen, others = [], []
    for index, gradient in enumerate(gradients):
        matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() > 0 else gradient.view(1, 1)
        rank = state.rank_for(*matrix.shape)
        state.total_numel_before_compression += matrix.numel()
        state.total_numel_after_compression += sum(matrix.shape) * rank if rank else matrix.numel()
        chosen += [((bucket, index), matrix, rank)] if rank else []
        others += [] if rank else [gradient]
    if others:
        joint = averaged(state.process_group, cygrad.cat([each.reshape(-1) for each in others])).wait()
        for gradient, mean in zip(others, joint.split([each.numel() for each in others]), strict=True):
            gradient.copy_(mean.view_as(gradient))
    if any(key not in state.q_memory_dict for key, _, _ in chosen):
        drawn = _drawn(state, [(matrix.shape[1], rank) for _, matrix, rank in chosen], chosen[0][1])
        state.q_memory_dict.update({key: each for (key, _, _), each in zip(chosen, drawn, strict=True)})
    for key, matrix, _ in chosen:
        _approximate(state, key, matrix)


def _average_as_square(state, bucket, flat):
    """Write the approximate mean of a whole bucket to it."""
    side = math.ceil(math.sqrt(flat.numel()))
    rank = min(side, state.matrix_approximation_rank)
    state.total_numel_before_compression += flat.numel()
    state.total_numel_after_compression += 2 * side * rank
    square = flat.new_zeros(side * side)
    square[: flat.numel()] = flat
    if bucket not in state.q_memory_dict:
        (state.q_memory_dict[bucket],) = _drawn(state, [(side, rank)], flat)
    _approximate(state, bucket, square.view(side, side))
    flat.copy_(square[: flat.numel()])


def _drawn(state, shapes, like):
    """Random matrices, the same in all processes, and for a seed the same as PyTorch's."""
    generator = cygrad.Generator().manual_seed(int(state.rng.randint(1_000_000_000)))
    return [cygrad.randn(1, *shape, dtype=like.dtype, generator=generator)[0].to(like.device) for shape in shapes]


def _approximate(state, key, matrix):
    """Write an approximation of its mean to a matrix; `state.q_memory_dict[key]` is where that starts."""
    if key in state.error_dict:
        matrix.add_(state.error_dict[key])
    whole = matrix.clone() if state.use_error_feedback else matrix
    right = _orthonormal(state.q_memory_dict[key], state.orthogonalization_epsilon)
    left = averaged(state.process_group, whole @ right).wait()
    left = _orthonormal(left, state.orthogonalization_epsilon)
    right = averaged(state.process_group, whole.T @ left).wait()
    matrix.copy_(left @ right.T)
    if state.use_error_feedback:
        state.error_dict[key] = whole - matrix
    if state.warm_start:
        state.q_memory_dict[key] = right
    else:
        del state.q_memory_dict[key]


def _orthonormal(matrix, epsilon):
    """Orthonormal columns that span those of a matrix.

    epsilon: if not 0, what is added to the norms of columns that are made orthogonal one after another, instead of by
    `qr`: columns that vanish stay 0 then.
    """
    if epsilon == 0:
        is_half = matrix.dtype in (cygrad.float16, cygrad.bfloat16)  # which `qr` does not take
        return cygrad.linalg.qr(matrix.float() if is_half else matrix)[0].to(matrix.dtype)
    matrix = matrix.clone()
    for index in range(matrix.shape[1]):
        column, rest = matrix[:, index : index + 1], matrix[:, index + 1 :]
        column.div_(column.norm() + epsilon)
        rest.sub_((column * rest).sum(0) * column)
    return matrix
