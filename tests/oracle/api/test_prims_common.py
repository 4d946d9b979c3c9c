"""Helpers of `torch._prims_common` give what PyTorch's give."""

import itertools

import pytest

import cygrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
SHAPES = ((), (2,), (2, 3), (2, 3, 4), (2, 0, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6), (1, 1, 1, 1))


def of(function, *args, **kwargs):
    try:
        found = function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
    return found.__name__ if isinstance(found, type) else str(found)


def about_dtypes(library, prims):
    """What the functions of dtypes say."""
    found = {}
    one = (
        "is_boolean_dtype is_integer_dtype is_float_dtype is_complex_dtype is_low_precision_dtype is_grad_dtype "
        "corresponding_real_dtype corresponding_complex_dtype dtype_to_type get_computation_dtype"
    )
    for name, a in itertools.product(one.split(), DTYPES):
        found[name, a] = of(getattr(prims, name), getattr(library, a))
    for a, b in itertools.product(DTYPES, DTYPES):
        kinds = getattr(library, a), getattr(library, b)
        found["higher", a, b] = of(prims.get_higher_dtype, *kinds)
        found["cast", a, b] = of(prims.can_safe_cast_to, cast_to=kinds[0], cast_from=kinds[1])
    for a, b in itertools.product((bool, int, float, complex), repeat=2):
        found["type", a, b] = of(prims.get_higher_type, a, b), of(prims.is_weakly_lesser_type, a, b)
        found["dtype", a] = of(prims.type_to_dtype, a)
    return found


def about_results(library, prims):
    """The dtypes of elementwise results of vectors, 0-dim tensors and numbers."""
    values = {(name, n): library.ones((2,) * n, dtype=getattr(library, name)) for name in DTYPES for n in (0, 1)}
    values |= {(str(number), "number"): number for number in (True, 1, 1.0, 1j)}
    kinds = prims.ELEMENTWISE_TYPE_PROMOTION_KIND
    pairs = itertools.product(values, values, kinds.__members__)
    return {
        (a, b, k): of(prims.elementwise_dtypes, values[a], values[b], type_promotion_kind=kinds[k]) for a, b, k in pairs
    }


def about_shapes(library, prims):
    """What the functions of shapes say."""
    found = {}
    for rank, idx, wrap in itertools.product((0, 1, 3), range(-4, 4), (True, False)):
        found["dim", rank, idx, wrap] = of(prims.canonicalize_dim, rank, idx, wrap), of(prims.validate_idx, rank, idx)
    for dims in (None, (0,), (0, -1), (0, 0), (5,), ()):
        found["dims", dims] = of(prims.reduction_dims, (2, 3), dims)
        found["output", dims] = of(prims.compute_reduction_output_shape, (2, 3), dims or ())
    for shape in SHAPES:
        strides = prims.make_contiguous_strides_for(shape)
        found["strides", shape] = strides, prims.make_contiguous_strides_for(shape, False)
        found["last", shape] = of(prims.make_channels_last_strides_for, shape)
        found["memory", shape] = prims.compute_required_storage_length(shape, strides, 3)
        for count in (0, 6, 24):
            found["open", shape, count] = of(prims.infer_size, (*shape, -1), count)
            found["given", shape, count] = of(prims.infer_size, shape, count)
        for other in ((), (1,), (3,), (2, 1), (2, 3), (4, 2, 3)):
            found["both", shape, other] = of(prims.infer_size_shapes, shape, other)
            found["expandable", shape, other] = prims.is_expandable_to(shape, other)
    for args in ((), (True,), (False,), (None, 0), (None, 2.5), (True, 1), (None, "a")):
        found["correction", args] = of(prims.set_correction, *args)
    for order in ((0, 1, 2), (2, 0, 1)):
        found["order", order] = list(prims.invert_perm(order)), list(prims.apply_perm("abc", order))
    a, b, c = library.ones(2), library.ones(3), library.tensor(1.0)
    for number, args in enumerate(((a, a), (a, b), (a, c), (c,), (c, c), (1,), ())):
        for allowed in (True, False):
            found["shape", number, allowed] = of(prims.extract_shape, *args, allow_cpu_scalar_tensors=allowed)
    return found


@pytest.mark.parametrize("facts", [about_dtypes, about_results, about_shapes])
def test_as_in_pytorch(facts):
    import torch._prims_common

    ours, theirs = facts(cygrad, cygrad._prims_common), facts(torch, torch._prims_common)
    assert len(ours) > 50
    assert {case: (ours[case], wanted) for case, wanted in theirs.items() if ours[case] != wanted} == {}
