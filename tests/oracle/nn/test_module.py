"""Module and its containers against PyTorch's: members, modes, conversion, state, hooks."""

import copy
import pickle
from collections import OrderedDict

import pytest
from oracle.programs import compare, fill

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle


def tree(lib):
    """A module with children, a shared parameter, and buffers of both kinds."""
    nn = lib.nn

    class Leaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(lib.ones(2))
            self.register_buffer("kept", lib.zeros(2))
            self.register_buffer("lost", lib.zeros(1), persistent=False)
            self.register_buffer("none", None)
            self.register_parameter("absent", None)

        def forward(self, x, scale=1):
            return x * self.weight * scale

    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = Leaf(), Leaf()
            self.again = self.left
            self.own = self.left.weight
            self.rows = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
            self.empty = None

        def forward(self, x):
            return self.rows[0](self.left(x)) + self.right(x, scale=2)

    return fill(Root())


def test_walking():
    def program(lib, say):
        root = tree(lib)
        for recurse in (True, False):
            for unique in (True, False):
                say([n for n, _ in root.named_parameters("p", recurse, unique)])
                say([n for n, _ in root.named_buffers("", recurse, remove_duplicate=unique)])
        for unique in (True, False):
            say([n for n, _ in root.named_modules(prefix="m", remove_duplicate=unique)])
        say([n for n, _ in root.named_children()])
        say([len(list(each)) for each in (root.parameters(), root.buffers(), root.modules(), root.children())])
        say(root)
        say([name for name in dir(root) if name in ("left", "own", "rows", "empty")])

    compare(program)


def test_access_by_path():
    def program(lib, say):
        root = tree(lib)
        for path in ("", "left", "rows.0", "rows.5", "own", "left.weight", "nothing.x", "left.kept", "rows.0.bias"):
            say(lambda: type(root.get_submodule(path)).__name__)
            say(lambda: root.get_parameter(path))
            say(lambda: root.get_buffer(path))
        for path, module, strict in [
            ("left", lib.nn.ReLU(), False),
            ("rows.0", lib.nn.Tanh(), True),
            ("new", lib.nn.Tanh(), False),
            ("newer", lib.nn.Tanh(), True),
            ("own", lib.nn.Tanh(), False),
            ("a.b", lib.nn.Tanh(), False),
            ("", lib.nn.Tanh(), False),
            ("left", 3, False),
        ]:
            say(lambda: root.set_submodule(path, module, strict))
            say(root)

    compare(program)


def test_registration():
    def program(lib, say):
        nn = lib.nn
        root, p = tree(lib), nn.Parameter(lib.ones(1))
        for name in ("left", "own", "fresh", "a.b", "", 3, "forward"):
            say(lambda: root.register_parameter(name, p))
            say(lambda: root.register_buffer(name, lib.ones(1)))
            say(lambda: root.register_module(name, nn.ReLU()))
            say(lambda: root.add_module(name, None))
        for value in (3, lib.ones(1), p * 2, nn.ReLU(), None, nn.Buffer(lib.ones(1), persistent=False)):
            say(lambda: root.register_parameter("q", value))
            say(lambda: root.register_buffer("b", value))
            say(lambda: root.register_module("m", value))
            for name in ("own", "left", "other"):
                say(lambda: setattr(root, name, value))
                say([list(root._parameters), list(root._buffers), list(root._modules)])
        for name in ("own", "left", "rows", "nothing"):
            say(lambda: delattr(root, name))
        say(lambda: setattr(type("M", (nn.Module,), {"__init__": lambda self: None})(), "p", p))
        say(lambda: setattr(type("M", (nn.Module,), {"__init__": lambda self: None})(), "m", nn.ReLU()))
        say(lambda: root.nothing)
        say(lambda: nn.Module()(1))

    compare(program)


def test_modes_and_gradients():
    def program(lib, say):
        root = tree(lib)
        say([m.training for m in root.modules()])
        say([m.training for m in root.eval().modules()])
        say([m.training for m in root.train().modules()])
        say(lambda: root.train(1))
        say([p.requires_grad for p in root.requires_grad_(False).parameters()])
        root.requires_grad_()
        for set_to_none in (True, False):
            root(lib.ones(1, 2)).sum().backward()
            say([p.grad for p in root.parameters()])
            root.zero_grad(set_to_none)
            say([p.grad for p in root.parameters()])
        seen = []
        say(root.apply(lambda m: seen.append(type(m).__name__)) is root)
        say(seen)

    compare(program)


def test_conversion():
    def program(lib, say):
        def types(module):
            return [t.dtype for t in [*module.parameters(), *module.buffers()]]

        norm = lib.nn.BatchNorm1d(2)
        for convert in [
            lambda m: m.double(),
            lambda m: m.half(),
            lambda m: m.float(),
            lambda m: m.cpu(),
            lambda m: m.to(lib.float64),
            lambda m: m.to("cpu"),
            lambda m: m.to(lib.device("cpu"), lib.float16, non_blocking=True),
            lambda m: m.to(lib.ones(1)),
            lambda m: m.to(device="cpu", dtype=lib.float64),
            lambda m: m.to(lib.int64),
            lambda m: m.type(lib.float32),
            lambda m: m.to(dtype=lib.complex64),
        ]:
            weight = norm.weight
            say(lambda: convert(norm) is norm)
            say([types(norm), norm.weight is weight])
        layer = lib.nn.Linear(2, 2)
        layer(lib.ones(1, 2)).sum().backward()
        say([p.grad for p in layer.double().parameters()])

    compare(program)


def test_state():
    def program(lib, say):
        root = tree(lib)
        state = root.state_dict()
        say([type(state).__name__, dict(state), str(state._metadata)])
        say(list(root.state_dict(prefix="p.")))
        say([v.requires_grad for v in root.state_dict(keep_vars=True).values()])
        target = {}
        say([root.state_dict(destination=target) is target, list(target)])
        other = tree(lib)
        for change in (
            {},
            {"own": lib.zeros(3)},
            {"extra": lib.ones(1), "left.more.x": lib.ones(1)},
            {"own": None},
            {"own": lib.zeros(2).double()},
        ):
            for strict in (True, False):
                given = {**state, **change}
                for name in [k for k, v in change.items() if v is None]:
                    del given[name]
                say(lambda: str(other.load_state_dict(given, strict=strict)))
                say(dict(other.state_dict()))
        given = {k: v.double() for k, v in state.items()}
        say(lambda: str(other.load_state_dict(given, assign=True)))
        say([[p.dtype for p in other.parameters()], other.left.weight.data_ptr() == given["left.weight"].data_ptr()])
        say(lambda: other.load_state_dict([1]))
        for again in (copy.deepcopy(root.rows), pickle.loads(pickle.dumps(root.rows))):
            say([again, dict(again.state_dict())])

    compare(program)


def test_extra_state_and_hooks_of_state():
    def program(lib, say):
        nn, log = lib.nn, []

        class Extra(nn.Linear):
            _version = 3

            def get_extra_state(self):
                return {"n": 5}

            def set_extra_state(self, state):
                log.append(("set", state))

        model = nn.Sequential(fill(Extra(1, 1)))
        say([dict(model.state_dict()), str(model.state_dict()._metadata)])
        say(lambda: str(model.load_state_dict(model.state_dict())))
        without = {k: v for k, v in model.state_dict().items() if "extra" not in k}
        say(lambda: str(model.load_state_dict(without)))
        say(lambda: str(nn.Sequential(nn.Linear(1, 1)).load_state_dict(model.state_dict())))
        say(log)
        log.clear()
        layer = model[0]
        layer.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(("pre", prefix, keep)))
        layer.register_state_dict_post_hook(lambda m, d, prefix, meta: d.update(new=lib.ones(1)))
        layer.register_load_state_dict_pre_hook(lambda m, d, prefix, *rest: d.pop("new", None) and log.append(prefix))
        handle = layer.register_load_state_dict_post_hook(lambda m, keys: log.append(str(keys)))
        say(list(model.state_dict()))
        say(lambda: str(model.load_state_dict(dict(model.state_dict()))))
        say(log)
        handle.remove()
        layer.register_load_state_dict_post_hook(lambda m, keys: 3)
        say(lambda: str(model.load_state_dict(dict(model.state_dict()))))

    compare(program)


def test_hooks_of_calls():
    def program(lib, say):
        nn, log = lib.nn, []
        layer = fill(nn.Linear(2, 2))
        x = lib.ones(1, 2, requires_grad=True)

        def note(name, result=None):
            return lambda module, *values: (log.append((name, len(values))), result)[1]

        handles = [
            layer.register_forward_pre_hook(note("pre")),
            layer.register_forward_pre_hook(note("pre 2", (x * 2,)), prepend=True),
            layer.register_forward_pre_hook(note("pre kwargs"), with_kwargs=True),
            layer.register_forward_hook(note("post")),
            layer.register_forward_hook(lambda m, args, out: out + 1, prepend=True),
            layer.register_forward_hook(note("always"), always_call=True, with_kwargs=True),
            layer.register_full_backward_pre_hook(note("backward pre")),
            layer.register_full_backward_hook(lambda m, gi, go: (log.append([gi, go]), (gi[0] * 10,))[1]),
            nn.modules.module.register_module_forward_pre_hook(note("global pre")),
            nn.modules.module.register_module_forward_hook(note("global post")),
            nn.modules.module.register_module_full_backward_hook(note("global backward")),
        ]
        out = layer(x)
        say(out)
        out.sum().backward()
        say([x.grad, log])
        log.clear()
        say(lambda: layer("a"))
        say(log)
        log.clear()
        for handle in handles:
            handle.remove()
        layer(x)
        say(log)
        layer.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
        say(lambda: layer(x))
        say(lambda: layer.register_backward_hook(note("old")))
        say(lambda: layer.register_full_backward_hook(note("new")))

    compare(program)


def test_containers():
    def program(lib, say):
        nn = lib.nn
        a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
        row, rows = nn.Sequential(a, b, c), nn.ModuleList([a, b])
        for call in [
            lambda: row[1:],
            lambda: row[-1],
            lambda: row[3],
            lambda: row.insert(1, nn.GELU()),
            lambda: row.insert(9, nn.GELU()),
            lambda: row.insert(0, 3),
            lambda: row.append(nn.GELU()),
            lambda: row.extend([a, b]),
            lambda: row.pop(1),
            lambda: row.pop(slice(0, 2)),
            lambda: row + row[:1],
            lambda: row + [a],
            lambda: row * 2,
            lambda: 2 * row,
            lambda: row * 0,
            lambda: row * 1.5,
            lambda: row.__setitem__(0, c),
            lambda: row.__delitem__(slice(0, 1)),
            lambda: [len(row), a in row, list(reversed(list(row)))],
            lambda: rows.insert(1, c),
            lambda: rows + [a],
            lambda: rows.extend(3),
            lambda: rows.append(3),
            lambda: rows.pop(-1),
            lambda: rows[:1],
            lambda: rows["a"],
            lambda: rows(1),
            lambda: nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), a]),
            lambda: nn.Sequential(OrderedDict({"one": a, "two": b})),
        ]:
            say(call)
            say([row, rows])
        table = nn.ModuleDict({"a": a, "b": b})
        for call in [
            lambda: table.update({"c": c}),
            lambda: table.update([("d", a)]),
            lambda: table.update(3),
            lambda: table.update([("e",)]),
            lambda: table.update([3]),
            lambda: table.__setitem__("f", 3),
            lambda: table.pop("a"),
            lambda: table["nothing"],
            lambda: [list(table), list(table.keys()), "b" in table, len(table)],
            lambda: table.clear(),
        ]:
            say(call)
            say(table)

    compare(program)


def test_containers_of_parameters():
    def program(lib, say):
        nn = lib.nn
        row, table = nn.ParameterList([lib.ones(2), 3]), nn.ParameterDict({"a": lib.ones(2), "b": "text"})
        for call in [
            lambda: row.append(lib.zeros(1)),
            lambda: row.extend([lib.ones(1)]),
            lambda: row.extend(3),
            lambda: row[-1],
            lambda: row[9],
            lambda: row[1:],
            lambda: row.__setitem__(0, lib.ones(3)),
            lambda: row.pop(0),
            lambda: row(1),
            lambda: table.update({"c": lib.zeros(2)}),
            lambda: table.pop("a"),
            lambda: table.popitem(),
            lambda: table.setdefault("d", lib.ones(1)),
            lambda: table.get("nothing", 5),
            lambda: table.fromkeys(["x", "y"], 1),
            lambda: table | {"z": lib.ones(1)},
            lambda: table[3],
            lambda: table["nothing"],
            lambda: table.copy(),
            lambda: [list(table), list(reversed(table)), "d" in table, len(table)],
            lambda: table(1),
            lambda: table.clear(),
        ]:
            say(call)
            say([row, table, [n for n, _ in row.named_parameters()], [n for n, _ in table.named_parameters()]])

    compare(program)


@pytest.mark.parametrize("kind", [dict, OrderedDict, list])
def test_order_of_parameter_dict(kind):
    orders = []
    for library in (cygrad, torch):
        pairs = [(name, library.zeros(1)) for name in "cab"]
        made = library.nn.ParameterDict(kind(pairs))
        made.update(kind([("e", library.zeros(1)), ("d", library.zeros(1))]))
        orders.append([list(made), [name for name, _ in made.named_parameters()], list(made.copy())])
    assert orders[0] == orders[1]
