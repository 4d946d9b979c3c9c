"""Calls of the functions in `cygrad.autograd`, `cygrad.func` and checkpoints, and invalid values for each argument.

A call is an expression; each of its free names that occurs in `right_values` is an argument, which can be replaced by
one of `wrong_values`. Both take the library as a parameter, so that the same calls can be made in PyTorch.
"""

import ast
import contextlib
import functools
import re
import warnings

import numpy as np

import cygrad
import cygrad.utils.checkpoint
from helpers import class_of, first_line

CALLS = """
autograd.functional.vjp(f, x, v, create_graph=yes, strict=no)
autograd.functional.jvp(f, x, v)
autograd.functional.vhp(s, x, v)
autograd.functional.hvp(s, x, v)
autograd.functional.jacobian(f, x, create_graph=no, strict=yes, vectorize=flag, strategy=strategy)
autograd.functional.hessian(s, x, create_graph=no, strict=yes, vectorize=flag, outer_jacobian_strategy=strategy)
func.grad(s, argnums, has_aux)(x)
func.grad_and_value(s, argnums)(x)
func.vjp(f, x)[1](v)
func.jvp(f, primals, vectors)
func.linearize(f, x)[1](v)
func.jacrev(f, argnums, chunk_size=size)(x)
func.jacfwd(f, argnums)(x)
func.jacfwd(pair, has_aux=yes)(x.detach())
func.hessian(s, argnums)(x)
func.functional_call(module, parameters, primals)
func.functional_call(module, parameters, primals, tie_weights=no, strict=flag)
func.stack_module_state(modules)
vmap(f, argnums, out_dims)(x)
vmap(f, randomness=randomness, chunk_size=size)(x)
in_level(lambda: forward_ad.make_dual(x, v))
in_level(lambda: forward_ad.make_dual(x, v, level=level))
in_level(lambda: forward_ad.unpack_dual(x, level=level))
forward_ad.unpack_dual(x, level=level)
forward_ad.exit_dual_level(level=level)
graph.get_gradient_edge(y)
around(lambda: graph.saved_tensors_hooks(pack, unpack))
around(lambda: graph.disable_saved_tensors_hooks(text))
around(lambda: graph.allow_mutation_on_saved_tensors())
graph.register_multi_grad_hook(several, hook, mode=mode)
graph.increment_version(x)
y.grad_fn.register_hook(hook)
y.grad_fn.register_prehook(hook)
y.register_hook(hook)
x.register_post_accumulate_grad_hook(hook)
autograd.grad(out, x, weight, retain_graph=no, create_graph=yes, allow_unused=flag)
autograd.backward(out, weight, inputs=x)
out.backward(weight, no, yes, inputs=x)
checkpoint(f, x, use_reentrant=flag)
checkpoint(f, x, use_reentrant=no, preserve_rng_state=yes, context_fn=contexts, debug=flag)
checkpoint_sequential(functions, segments, x, use_reentrant=flag)
around(lambda: set_checkpoint_early_stop(flag))
around(lambda: set_checkpoint_debug_enabled(flag))
around(lambda: profiler.profile(enabled=flag))
around(lambda: profiler.record_function(text, more))
around(lambda: profiler.emit_nvtx(enabled=no))
around(lambda: autograd.enforce_grad_layout_policy(yes))
graph.region_activation_memory_budget(value)
graph.set_warn_on_accumulate_grad_stream_mismatch(no)
graph.set_override_stale_capture_stream(no)
around(lambda: autograd.set_detect_anomaly(no, check_nan=flag))
autograd.gradcheck(f, double, raise_exception=yes)
autograd.gradgradcheck(f, double)
around(lambda: set_grad_enabled(no))
around(lambda: inference_mode(no))
no_grad()(f)(x)
Square.apply(x)
ForwardSave.apply(x, value)
autograd.function.once_differentiable(f)
autograd.Variable(x, requires_grad=yes)
""".strip().splitlines()


def right_values(library):
    """Fresh valid values for the arguments in `CALLS`."""
    x = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y, module = x * 2, library.nn.Linear(3, 1)
    return {
        "f": lambda x: x**2,
        "s": lambda x: (x**3).sum(),
        "x": x,
        "y": y,
        "v": library.ones(3),
        "out": (x * x).sum(),
        "double": library.tensor([1.0, 2.0], dtype=library.float64, requires_grad=True),
        "weight": None,
        "yes": True,
        "no": False,
        "flag": False,
        "strategy": "reverse-mode",
        "argnums": 0,
        "has_aux": False,
        "primals": (x.detach(),),
        "vectors": (library.ones(3),),
        "size": None,
        "module": module,
        "parameters": {name: p.detach() for name, p in module.named_parameters()},
        "modules": [module, library.nn.Linear(3, 1)],
        "out_dims": 0,
        "randomness": "error",
        "level": None,
        "pack": lambda t: t,
        "unpack": lambda t: t,
        "text": "text",
        "more": None,
        "several": [x, y],
        "hook": lambda *gradients: None,
        "mode": "all",
        "contexts": lambda: (contextlib.nullcontext(), contextlib.nullcontext()),
        "functions": [lambda x: x + 1, lambda x: x * 2],
        "segments": 2,
        "pair": lambda x: (x**2, x),
        "value": None,
    }


@functools.cache
def namespace(library):
    """The other names used in `CALLS`."""

    def around(manager):
        with manager():
            return library.ones(1, requires_grad=True).exp()

    def in_level(function):
        with library.autograd.forward_ad.dual_level():
            return function()

    class Square(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    class ForwardSave(library.autograd.Function):
        @staticmethod
        def forward(ctx, x, value):
            ctx.save_for_forward(value)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad, None

    found = {name: getattr(library, name) for name in ("autograd", "func", "vmap", "no_grad", "inference_mode")}
    found |= {name: getattr(library.autograd, name) for name in ("graph", "profiler", "forward_ad")}
    found |= {name: value for name, value in vars(library.utils.checkpoint).items() if "checkpoint" in name}
    found |= {"set_grad_enabled": library.set_grad_enabled, "Square": Square, "ForwardSave": ForwardSave}
    return found | {"around": around, "in_level": in_level}


ARGUMENTS = list(right_values(cygrad))


def raises(*args, **kwargs):
    raise KeyError("of one's own")


def wrong_values(library):
    """The replacements for an argument."""
    return {
        "None": None,
        "3": 3,
        "-1": -1,
        "2.5": 2.5,
        "True": True,
        "'a'": "a",
        "[]": [],
        "()": (),
        "{}": {},
        "(None,)": (None,),
        "gives None": lambda *args: None,
        "raises": raises,
        "integers": library.tensor([1, 2, 3]),
        "short": library.ones(2),
        "constant": library.ones(3),
        "scalar": library.tensor(1.0, requires_grad=True),
        "matrix": library.ones(2, 3, requires_grad=True),
        "complex": library.ones(3, dtype=library.complex64),
        "float64": library.ones(3, dtype=library.float64),
        "list of tensors": [library.ones(3), library.ones(3)],
        "tuple of tensors": (library.ones(3, requires_grad=True), library.ones(3, requires_grad=True)),
        "array": np.ones(3),
        "class": dict,
    }


def arguments(call):
    """The names in a call that can be replaced."""
    names = dict.fromkeys(part.id for part in ast.walk(ast.parse(call)) if isinstance(part, ast.Name))
    return [name for name in names if name in ARGUMENTS]


def outcome(library, call, name, what):
    """The type name of the result of a call with one argument replaced, or (class, first line) of its error."""
    names = namespace(library) | right_values(library) | {name: wrong_values(library)[what]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = eval(call, names)
        except NameError:
            raise  # an error in the call itself
        except Exception as error:
            text = re.sub(r"0x[0-9a-f]+", "0x", first_line(error)).replace("cygrad", "torch")
            return class_of(error), text.replace("'torch.Tensor' object", "'Tensor' object")
        finally:
            names.clear()  # once a thread has run, free-threaded CPython 3.13 never frees functions made by `eval`
    return type(value).__name__
