"""`autograd.graph` against PyTorch's: the same small programs run in both libraries."""

import numpy as np
import pytest

import cygrad

pytestmark = pytest.mark.oracle

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def outcome(action):
    """The result of an action or the error: type name (down to our base class) and first line."""
    try:
        return plain(action())
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
        return kinds[0], str(error).split("\n")[0]


def plain(value):
    """Tensors as lists and nodes by name, so that both libraries can be compared."""
    if hasattr(value, "detach"):
        array = value.detach().numpy()
        return np.round(array, 4).tolist() if array.dtype.kind == "f" else array.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if hasattr(value, "next_functions"):
        return value.name()
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def leaves(torch):
    return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)


@program
def packing(torch):
    x, b = leaves(torch)
    log = []

    def pack(t):
        log.append(("pack", plain(t), t.requires_grad, plain(t.grad_fn), t is x, torch.is_grad_enabled()))
        return t

    def unpack(t):
        log.append(("unpack", torch.is_grad_enabled()))
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        z = x.exp() * 2
        y = (b**2)[1:] * 2
        v = x.sin()
    saved = v.grad_fn._saved_self
    log.append((saved.requires_grad, saved.is_leaf, saved is x))
    log.append(plain(z.grad_fn.next_functions[0][0]._saved_result.grad_fn))
    (g,) = torch.autograd.grad(v.sum(), x, create_graph=True)
    (g * g).sum().backward()
    (z.sum() + y.sum()).backward()
    return log, x.grad, b.grad


@program
def nested_hooks(torch):
    x, _ = leaves(torch)
    hooks, log = torch.autograd.graph.saved_tensors_hooks, []

    def named(name):
        return hooks(lambda t: (log.append(name), t)[1], lambda t: t)

    with named("outer"):
        with named("inner"):
            x.sin()
        x.cos()
    x.exp()
    return log


@program
def bad_hooks(torch):
    x, _ = leaves(torch)
    hooks = torch.autograd.graph.saved_tensors_hooks

    def record(pack, unpack):
        with hooks(pack, unpack):
            return (x * 1).sin()

    def change(t):
        t.detach().add_(1)
        return t

    def fail(t):
        raise ZeroDivisionError("in a hook")

    results = [
        outcome(lambda: record(lambda t: 5, lambda t: 7).sum().backward()),
        outcome(lambda: record(lambda t: 5, lambda t: 7).grad_fn._saved_self),
        outcome(lambda: record(change, lambda t: t)),
        outcome(lambda: record(fail, lambda t: t)),
        outcome(lambda: record(lambda t: t, fail).sum().backward()),
        outcome(lambda: x.sin().sum().backward()),  # no state is left behind
    ]
    return results, x.grad


@program
def disabling(torch):
    x, _ = leaves(torch)
    graph = torch.autograd.graph

    def hooks():
        return graph.saved_tensors_hooks(lambda t: t, lambda t: t)

    def inside():
        with graph.disable_saved_tensors_hooks("no hooks here"), hooks():
            pass

    def around():
        with hooks(), graph.disable_saved_tensors_hooks("too late"):
            pass

    def twice():
        with graph.disable_saved_tensors_hooks("first"):
            with graph.disable_saved_tensors_hooks("second"):
                pass
            with graph.save_on_cpu():
                pass

    def after():
        with hooks():
            return x.sin()

    return [outcome(inside), outcome(around), outcome(twice), outcome(after)]


@program
def raw_saved(torch):
    x, _ = leaves(torch)

    def same(t):
        return t

    log = []
    y = x.sin()
    raw = y.grad_fn._raw_saved_self
    log.append(raw.register_hooks(lambda t: t * 2, lambda t: t / 2))
    log.append(outcome(lambda: raw.register_hooks(same, same)))
    log.append(y.grad_fn._saved_self)
    y.sum().backward()
    log.append(outcome(lambda: raw.register_hooks(same, same)))
    log.append(outcome(lambda: y.grad_fn._saved_self)[0])
    log.append(outcome(lambda: x.sin().grad_fn._raw_saved_self.register_hooks(1, 2))[0])
    log.append(outcome(lambda: x.sin().grad_fn._raw_saved_self.register_hooks(lambda: 1, same))[0])
    log.append(outcome(lambda: type(raw)()))
    z = x * 1
    w = z.sin()
    w.grad_fn._raw_saved_self.register_hooks(same, same)
    z.add_(1)  # hooks disable the version check
    log.append(outcome(lambda: w.sum().backward()))
    return log, x.grad


@program
def raw_saved_of_a_function(torch):
    x, b = leaves(torch)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            result = a * b
            ctx.save_for_backward(a, None, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            a, _, result = ctx.saved_tensors
            return grad * result / a, None

    y = Product.apply(x, b.detach())
    raw = y.grad_fn._raw_saved_tensors
    log = [len(raw), outcome(lambda: raw[1].register_hooks(abs, abs))]
    raw[2].register_hooks(lambda t: t + 1, lambda t: t - 1)
    log.append(outcome(lambda: raw[2].register_hooks(abs, abs)))
    log.append([plain(one.grad_fn) for one in y.grad_fn.saved_tensors if one is not None])
    y.sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda values: torch.tensor(values)):
        z = Product.apply(x, b.detach())
    z.sum().backward()
    return log, x.grad


@program
def gradient_edges(torch):
    x, _ = leaves(torch)
    graph, grad = torch.autograd.graph, torch.autograd.grad
    y = x * 2
    z, w = (y * 3).sum(), x.sin()
    edge, leaf = graph.get_gradient_edge(y), graph.get_gradient_edge(x)
    v = torch.ones(2)
    keep = {"retain_graph": True}
    log = [type(edge).__name__, plain(edge.node), edge.output_nr, plain(leaf.node)]
    for action in (
        lambda: graph.get_gradient_edge(torch.ones(1)),
        lambda: grad(z, edge, **keep),
        lambda: grad(z, [edge, x], **keep),
        lambda: grad(z, leaf, **keep),
        lambda: z.backward(inputs=edge, **keep),
        lambda: z.backward(inputs=[leaf], **keep),
        lambda: torch.autograd.backward(graph.get_gradient_edge(z), **keep),
        lambda: torch.autograd.backward(edge, v, **keep),
        lambda: torch.autograd.backward([edge], [v], **keep),
        lambda: grad(edge, x, v, **keep),
        lambda: grad(edge, x, **keep),
        lambda: grad(edge, x, torch.ones(3), **keep),
        lambda: grad(graph.get_gradient_edge(z), graph.get_gradient_edge(z), **keep),
        lambda: grad(z, graph.get_gradient_edge(w), **keep),
        lambda: grad(z, graph.get_gradient_edge(w), allow_unused=True, **keep),
        lambda: grad(z, graph.get_gradient_edge(w), materialize_grads=True, **keep),
        lambda: grad(z, graph.GradientEdge(edge.node, 0), **keep),
        lambda: grad(z, [5], **keep),
        lambda: torch.autograd.backward([5]),
    ):
        log.append((outcome(action), plain(x.grad)))
    return log


@program
def multi_grad_hooks(torch):
    a, b = leaves(torch)
    c, d = a * b, a + b
    log = []
    register, keep = torch.autograd.graph.register_multi_grad_hook, {"retain_graph": True}
    handle = register((a, b, c, d), lambda grads: log.append(plain(grads)))
    c.sum().backward(**keep)
    c.sum().backward(inputs=(a,), **keep)
    (c + d).sum().backward(**keep)
    torch.autograd.grad((c + d).sum(), [c], **keep)
    handle.remove()
    (c + d).sum().backward(**keep)
    with register((a, b, c, d), lambda grad: log.append(plain(grad)), mode="any"):
        (c + d).sum().backward(**keep)
        c.sum().backward(**keep)
    c.sum().backward(**keep)

    def fail(grads):
        raise ZeroDivisionError("in a hook")

    with register((a, b), fail):
        log.append(outcome(lambda: c.sum().backward(**keep)))
    with register((a, b), lambda grads: log.append(plain(grads))):
        c.sum().backward(**keep)
    for action in (
        lambda: register((a,), print, mode="some"),
        lambda: register((torch.ones(1),), print),
        lambda: register((), print).remove(),
        lambda: register((a, torch.ones(1)), print, mode="any").remove(),
    ):
        log.append(outcome(action))
    return log


@program
def versions(torch):
    t = torch.ones(2)
    increment = torch.autograd.graph.increment_version
    increment(t)
    log = [t._version]
    increment([t, t])
    log.append(t._version)
    return [*log, outcome(lambda: increment(5)), outcome(lambda: increment([t, 5]))]


@program
def mutation(torch):
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors
    log = []
    with allow() as context:
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.backward()
        log.append(plain(a.grad))
        c = torch.ones(2, requires_grad=True)
        b = c.clone()
        out = (b**2).sum()
        b[:1].mul_(5)
        out.backward()
        log.append(plain(c.grad))
        out = (c**3).sum()
        with torch.no_grad():
            c.mul_(2)
        out.backward()
        log.append(plain(c.grad))
        kept = (b**3).sum()
        b.mul_(2)
    log.append(outcome(kept.backward))

    def nested():
        with allow(), allow():
            pass

    def cleared():
        with allow() as context:
            b = c.clone()
            out = (b**3).sum()
            b.mul_(2)
            context.clear()
            out.backward()

    def outside():
        b = c.clone()
        out = (b**2).sum()
        b.mul_(2)
        with allow():
            out.backward()

    assert context is not None
    return [*log, outcome(nested), outcome(cleared), outcome(outside)]


@program
def hook_order(torch):
    x, _ = leaves(torch)
    log = []
    x.register_post_accumulate_grad_hook(lambda t: log.append("post-accumulate"))
    node = torch.autograd.graph.get_gradient_edge(x).node
    node.register_hook(lambda *grads: log.append("post"))
    node.register_prehook(lambda *grads: log.append("pre"))
    x.register_hook(lambda grad: log.append("tensor"))
    y = x * 2
    y.grad_fn.register_hook(lambda *grads: log.append("post of y"))
    y.retain_grad()
    y.register_hook(lambda grad: log.append(("tensor of y", grad.tolist())))
    y.grad_fn.register_prehook(lambda *grads: log.append("pre of y"))
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    return log, y.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_what_pytorch_does(name):
    import torch

    assert plain(PROGRAMS[name](cygrad)) == plain(PROGRAMS[name](torch))
