"""Batching rules of ops that draw random numbers (see rules.py, and _core/transforms/vmap_random.py)."""

from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._ops.batching.rules import operands, rule
from cygrad._ops.random.sampling import bernoulli, binomial, multinomial, normal, poisson

_FUNCTIONS: dict = {"bernoulli": bernoulli, "binomial": binomial, "poisson": poisson}


def _parameters(call, params):
    """Return the aligned samples of distribution parameters, for a draw that covers all samples."""
    if call.batch.randomness == "error":
        raise NoBatchingRule(call.op.name)  # `vmap` answers it with an error about random numbers
    if call.batch.randomness == "same" and any(call.has(p) for p in params):
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
            "functorch\n  each sample draws its numbers with different parameters: use randomness='different'"
        )
    call.batch.draws_for_one -= 1
    return operands(call, params)


@rule("bernoulli normal poisson binomial uniform exponential random cauchy log_normal geometric")
def _drawn(call):
    *args, generator = call.needed_args()
    if call.step.writes:
        return _overwritten(call, args, generator)
    name = call.op.name
    if name == "normal":
        found = normal(*_parameters(call, args), generator=generator)
    else:
        found = _FUNCTIONS[name](*_parameters(call, call.inputs), generator=generator)
    return call.shaped(found, call.out.shape)


def _overwritten(call, args, generator):
    """Overwrite the samples with random numbers: drawn consecutively for all samples, or shared by all."""
    params = _parameters(call, [*call.inputs[1:], *args])
    method = getattr(Tensor, f"{call.op.name}_")
    t = call.full(call.out)
    if call.batch.randomness == "different":
        return method(t.clone(), *params, generator=generator)
    return method(t.new_empty(call.out.shape), *params, generator=generator).unsqueeze(0).expand(t.shape)


@rule("multinomial")
def _picked(call):
    count, replacement, generator = call.needed_args()
    (weights,) = _parameters(call, call.inputs)
    rows = weights.reshape(-1, weights.shape[-1])
    return call.shaped(multinomial(rows, count, replacement, generator=generator), call.out.shape)
