"""Features shared by all optimizers against PyTorch's: groups, hooks, state dicts, choices of implementation."""

import importlib

import pytest
from oracle.programs import compare

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

NAMES = "SGD Adam AdamW NAdam RAdam Adamax Adagrad Adadelta RMSprop Rprop ASGD".split()


def parameter(lib, n=2):
    p = lib.nn.Parameter(lib.ones(n, n))
    p.grad = lib.ones(n, n)
    return p


@pytest.mark.parametrize("name", NAMES)
def test_choices_of_implementation(name):
    def program(lib, say):
        for option in ({"foreach": True}, {"foreach": False}, {"fused": True}, {"fused": False}, {"maximize": True}):
            p = parameter(lib)
            say(lambda: getattr(lib.optim, name)([p], lr=0.1, **option).step())
            say(p)

    compare(program)


def test_groups():
    def program(lib, say):
        p = parameter(lib)
        for params in [
            3,
            "abc",
            [],
            [3],
            p,
            {p},
            [p, p],
            [{"params": [p]}, {"params": [p]}],
            [{"lr": 1}],
            [p * 2],
            [("a", p)],
            [("a", p), p],
            [{"params": p}],
        ]:
            say(lambda: repr(lib.optim.SGD(params, lr=0.1)))
        optimizer = lib.optim.SGD([p], lr=0.1)
        for group in [
            {"params": [parameter(lib)], "lr": 5.0},
            3,
            {"params": [("name", parameter(lib))]},
            {"params": {parameter(lib)}},
        ]:
            say(lambda: optimizer.add_param_group(group))
        say(repr(optimizer))
        say(optimizer.state_dict())
        for groups in ([], [{"params": [1, 2]}, {"params": []}]):
            say(lambda: optimizer.load_state_dict({"param_groups": groups, "state": {}}))

    compare(program)


def test_hooks():
    def program(lib, say):
        log = []
        optimizer = lib.optim.SGD([parameter(lib)], lr=0.1)
        module = importlib.import_module(f"{lib.__name__}.optim.optimizer")

        def note(name):
            return lambda *values: log.append((name, len(values)))

        handles = [
            optimizer.register_step_pre_hook(note("pre")),
            optimizer.register_step_post_hook(note("post")),
            optimizer.register_state_dict_pre_hook(note("state pre")),
            optimizer.register_state_dict_post_hook(note("state post")),
            optimizer.register_state_dict_post_hook(note("state post first"), prepend=True),
            optimizer.register_load_state_dict_pre_hook(note("load pre")),
            optimizer.register_load_state_dict_post_hook(note("load post")),
            module.register_optimizer_step_pre_hook(note("every pre")),
            module.register_optimizer_step_post_hook(note("every post")),
        ]
        optimizer.step()
        say(lambda: optimizer.step(lambda: lib.tensor(1.0)))
        optimizer.load_state_dict(optimizer.state_dict())
        say(log)
        log.clear()
        for handle in handles:
            handle.remove()
        optimizer.step()
        say(log)
        optimizer.register_step_pre_hook(lambda s, args, kwargs: log.append((args[0] is s, len(args), kwargs)))
        optimizer.register_step_post_hook(lambda s, args, kwargs: log.append((args[0] is s, len(args), kwargs)))
        other = optimizer.register_step_pre_hook(lambda s, args, kwargs: ((*args[:1], lambda: lib.tensor(7.0)), {}))
        say(lambda: optimizer.step(closure=lambda: lib.tensor(1.0)))
        other.remove()
        say(log)
        optimizer.register_step_pre_hook(lambda *values: 3)
        say(lambda: optimizer.step())

    compare(program)
