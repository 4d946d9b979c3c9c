"""PowerSGD (Vogels et al., 2019): sends matrices of low rank in place of gradients."""

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
        self.generator = cygrad.Generator().manual_seed(random_seed)
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
    flat = bucket.buffer()
    side = int(flat.numel() ** 0.5)
    square = flat[: side * side].view(side, side)
    return _hook(state, bucket, [square, flat[side * side :]])


def _hook(state, bucket, gradients):
    is_full = state.iter < state.start_powerSGD_iter
    state.maybe_increase_iter(bucket)
    if is_full:
        return averaged(state.process_group, bucket.buffer())
    with cygrad.no_grad():
        for index, gradient in enumerate(gradients):
            _average(state, (bucket.index(), index), gradient)
    done: Future = Future()
    done.set_result(bucket.buffer())
    return done


def _average(state, key, gradient):
    """Write the approximate mean of a gradient to it."""
    matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() > 1 else gradient.view(-1, 1)
    rank = state.rank_for(*matrix.shape)
    state.total_numel_before_compression += matrix.numel()
    state.total_numel_after_compression += sum(matrix.shape) * rank if rank else matrix.numel()
    if rank is None:
        averaged(state.process_group, gradient).wait()
        return
    if key in state.error_dict:
        matrix.add_(state.error_dict[key])
    whole = matrix.clone()
    right = state.q_memory_dict.get(key)
    if right is None:
        right = cygrad.randn(matrix.shape[1], rank, generator=state.generator).to(matrix)
        right = cygrad.linalg.qr(right)[0]
    left = averaged(state.process_group, whole @ right).wait()
    left = cygrad.linalg.qr(left)[0]
    right = averaged(state.process_group, whole.T @ left).wait()
    matrix.copy_(left @ right.T)
    if state.use_error_feedback:
        state.error_dict[key] = whole - matrix
    if state.warm_start:
        state.q_memory_dict[key] = cygrad.linalg.qr(right)[0]
