"""Module: registration, traversal, modes, conversion, repr, copies."""

import copy
import pickle

import pytest

import cygrad as torch
from cygrad import nn
from helpers import fails, first_line


class Scale(nn.Module):
    """A parameter, a persistent buffer, and a non-persistent buffer."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor([2.0]))
        self.register_buffer("shift", torch.tensor([1.0]))
        self.register_buffer("scratch", torch.tensor([0.0]), persistent=False)

    def forward(self, x, times=1):
        return (x * self.factor + self.shift) * times


def tied():
    """A linear layer shared as "0", as "2" and in a list."""
    shared = nn.Linear(1, 1)
    return nn.Sequential(shared, nn.ReLU(), shared, nn.ModuleList([shared, nn.Linear(1, 2, bias=False)]))


def names(pairs):
    return [name for name, _ in pairs]


# ------------------------------------------------------------------ registration


def test_assigned_members_are_found_in_their_tables_and_not_in_the_dict():
    module = Scale()
    assert names(module.named_parameters()) == ["factor"]
    assert names(module.named_buffers()) == ["shift", "scratch"]
    assert "factor" not in vars(module)
    assert module.factor is module._parameters["factor"]


@pytest.mark.parametrize(
    ("assign", "what"),
    [
        (lambda m: setattr(m, "w", nn.Parameter(torch.ones(1))), "parameters"),
        (lambda m: setattr(m, "w", nn.Linear(1, 1)), "module"),
        (lambda m: setattr(m, "w", nn.Buffer(torch.ones(1))), "buffer"),
        (lambda m: m.register_buffer("w", torch.ones(1)), "buffer"),
        (lambda m: m.register_parameter("w", None), "parameter"),
    ],
)
def test_assignment_before_init_says_so(assign, what):
    class Forgetful(nn.Module):
        def __init__(self):
            assign(self)

    with fails(AttributeError, f"cannot assign {what} before Module.__init__() call"):
        Forgetful()


def test_a_parameter_takes_the_place_of_an_attribute_a_buffer_and_a_module():
    module = Scale()
    module.plain = 3
    module.child = nn.ReLU()
    for name in ("plain", "shift", "child"):
        setattr(module, name, nn.Parameter(torch.ones(1)))
    assert names(module.named_parameters()) == ["factor", "plain", "shift", "child"]
    assert names(module.named_buffers()) == ["scratch"]
    assert names(module.named_children()) == []


def test_assigning_none_keeps_the_name_reserved():
    layer = nn.Linear(2, 3)
    layer.bias = None
    assert layer.bias is None
    assert names(layer.named_parameters()) == ["weight"]
    assert layer(torch.ones(1, 2)).shape == (1, 3)


def test_assigning_the_wrong_kind_names_both():
    layer = nn.Sequential(nn.Linear(2, 3))[0]
    layer.register_buffer("mask", torch.ones(1))
    layer.child = nn.ReLU()
    expected = "(torch.nn.Parameter or None expected)"
    with fails(TypeError, f"cannot assign 'torch.FloatTensor' as parameter 'weight' {expected}"):
        layer.weight = torch.ones(3, 2)
    with fails(TypeError, f"cannot assign 'int' as parameter 'weight' {expected}"):
        layer.weight = 3
    expected = "(torch.nn.Module or None expected)"
    with fails(TypeError, f"cannot assign 'int' as child module 'child' {expected}"):
        layer.child = 3
    expected = "(torch.nn.Buffer, torch.Tensor or None expected)"
    with fails(TypeError, f"cannot assign 'int' as buffer 'mask' {expected}"):
        layer.mask = 3
    assert layer.weight.shape == (3, 2)


@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
def test_bad_names_are_refused(kind):
    module = Scale()
    register = getattr(module, f"register_{kind}")
    with fails(TypeError, f"{kind} name should be a string. Got int"):
        register(3, None)
    with fails(KeyError, f"'{kind} name can\\'t contain \".\"...'"):
        register("a.b", None)
    with fails(KeyError, f"'{kind} name can\\'t be empty string \"\"'"):
        register("", None)
    with fails(KeyError, "\"attribute 'forward' already exists\""):
        register("forward", None)


def test_bad_members_are_refused():
    module = Scale()
    needed = "(torch.nn.Parameter or None required)"
    with fails(TypeError, f"cannot assign 'torch.FloatTensor' object to parameter 'p' {needed}"):
        module.register_parameter("p", torch.ones(1))
    with fails(TypeError, "cannot assign 'int' object to buffer 'b' (torch Tensor or None required)"):
        module.register_buffer("b", 3)
    with fails(TypeError, "int is not a Module subclass"):
        module.add_module("m", 3)


def test_missing_attributes_and_deletion():
    module = Scale()
    with fails(AttributeError, "'Scale' object has no attribute 'nope'"):
        module.nope  # noqa: B018
    del module.scratch, module.factor
    assert not hasattr(module, "factor")
    assert module._non_persistent_buffers_set == set()
    with fails(AttributeError, "'Scale' object has no attribute 'factor'"):
        del module.factor


def test_dir_lists_members_but_not_numbers():
    assert {"factor", "shift", "forward", "training"} <= set(dir(Scale()))
    assert not any(name.isdigit() for name in dir(tied()))


# ------------------------------------------------------------------ parameters and buffers


def test_parameter():
    data = torch.zeros(2)
    parameter = nn.Parameter(data)
    assert parameter.requires_grad and parameter.is_leaf and isinstance(parameter, torch.Tensor)
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    with torch.no_grad():
        parameter.add_(1)
    assert data.tolist() == [1.0, 1.0], "a parameter shares memory with its data"
    assert type(parameter * 2) is torch.Tensor
    assert nn.Parameter().shape == (0,)


def test_parameter_repr():
    assert repr(nn.Parameter(torch.zeros(2))) == ("Parameter containing:\ntensor([0., 0.], requires_grad=True)")
    assert repr(nn.Parameter(torch.zeros(2), requires_grad=False)) == ("Parameter containing:\ntensor([0., 0.])")


def test_parameter_of_integers_cannot_require_grad():
    with fails(RuntimeError, "Only Tensors of floating point and complex dtype can require gradients"):
        nn.Parameter(torch.ones(1, dtype=torch.int64))
    assert nn.Parameter(torch.ones(1, dtype=torch.int64), requires_grad=False).dtype == torch.int64


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))], ids=["copy", "pickle"])
def test_parameters_and_buffers_are_copied_whole(duplicate):
    parameter = nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.note = "kept"
    again = duplicate(parameter)
    assert type(again) is nn.Parameter
    assert not again.requires_grad and again.note == "kept"
    again.add_(1)
    assert parameter.tolist() == [1.0, 1.0]
    assert not duplicate(nn.Buffer(torch.ones(1), persistent=False)).persistent


def test_buffer_registers_itself_and_knows_whether_it_is_saved():
    module = nn.Module()
    module.kept = nn.Buffer(torch.ones(1))
    module.dropped = nn.Buffer(torch.ones(1), persistent=False)
    assert names(module.named_buffers()) == ["kept", "dropped"]
    assert list(module.state_dict()) == ["kept"]
    module.dropped = torch.zeros(1)
    assert list(module.state_dict()) == ["kept"]
    module.dropped = nn.Buffer(torch.zeros(1))
    assert list(module.state_dict()) == ["kept", "dropped"]


def test_a_buffer_takes_no_name_that_is_in_use():
    module = nn.Module()
    module.plain = 3
    with fails(KeyError, "\"attribute 'plain' already exists\""):
        module.plain = nn.Buffer(torch.ones(1))
    assert module.plain == 3 and not list(module.buffers())


# ------------------------------------------------------------------ traversal


def test_walks_visit_shared_members_once_unless_told_otherwise():
    model = tied()
    assert names(model.named_modules()) == ["", "0", "1", "3", "3.1"]
    assert names(model.named_modules(remove_duplicate=False)) == [
        "", "0", "1", "2", "3", "3.0", "3.1",
    ]  # fmt: skip
    assert names(model.named_children()) == ["0", "1", "3"]
    assert names(model.named_parameters()) == ["0.weight", "0.bias", "3.1.weight"]
    assert len(names(model.named_parameters(remove_duplicate=False))) == 7
    assert names(model.named_parameters("net", recurse=False)) == []
    assert names(model[0].named_parameters("net")) == ["net.weight", "net.bias"]
    assert len(list(model.parameters())) == 3 and len(list(model.modules())) == 5


def test_access_by_path():
    model = nn.Sequential(nn.Sequential(Scale()))
    assert model.get_submodule("") is model
    assert model.get_submodule("0.0") is model[0][0]
    assert model.get_parameter("0.0.factor") is model[0][0].factor
    assert model.get_buffer("0.0.shift") is model[0][0].shift
    with fails(AttributeError, "Sequential has no attribute `7`"):
        model.get_submodule("0.7")
    with fails(AttributeError, "`factor` is not an nn.Module"):
        model.get_submodule("0.0.factor.x")
    with fails(AttributeError, "`shift` is not an nn.Parameter"):
        model.get_parameter("0.0.shift")
    with fails(AttributeError, "`factor` is not a buffer"):
        model.get_buffer("0.0.factor")


def test_set_submodule():
    model = nn.Sequential(nn.Sequential(Scale()))
    model.set_submodule("0.0", nn.Tanh())
    assert repr(model[0][0]) == "Tanh()"
    model.set_submodule("0.new", nn.ReLU())
    with fails(AttributeError, "Sequential has no attribute `newer`"):
        model.set_submodule("0.newer", nn.ReLU(), strict=True)
    with fails(ValueError, "Cannot set the submodule without a target name!"):
        model.set_submodule("", nn.ReLU())
    with fails(ValueError, "`module` is not an nn.Module, found <class 'int'>"):
        model.set_submodule("0", 3)


def test_apply_visits_children_first():
    visited = []
    nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh()).apply(lambda module: visited.append(type(module).__name__))
    assert visited == ["ReLU", "Sequential", "Tanh", "Sequential"]


# ------------------------------------------------------------------ modes and gradients


def test_train_and_eval_reach_every_module():
    model = nn.Sequential(nn.Sequential(nn.Dropout()))
    assert all(module.training for module in model.modules())
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    assert model.train()[0][0].training
    with fails(ValueError, "training mode is expected to be boolean"):
        model.train(3)


def test_requires_grad_freezes():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    model(torch.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is None and model[1].weight.grad is not None


def test_zero_grad_drops_or_fills():
    layer = nn.Linear(1, 1)
    layer(torch.ones(1, 1)).sum().backward()
    grad = layer.weight.grad
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad is grad and grad.tolist() == [[0.0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_forward_is_required_and_takes_keywords():
    with fails(NotImplementedError, 'Module [Module] is missing the required "forward" function'):
        nn.Module()(1)
    assert Scale()(torch.ones(1), times=3).tolist() == [9.0]
    with fails(TypeError, "Module.__init__() takes 1 positional argument but 2 were given"):
        nn.Module(3)


# ------------------------------------------------------------------ conversion


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [
        (lambda m: m.double(), torch.float64),
        (lambda m: m.half(), torch.float16),
        (lambda m: m.double().float(), torch.float32),
        (lambda m: m.to(torch.float64), torch.float64),
        (lambda m: m.to("cpu", torch.float64), torch.float64),
        (lambda m: m.to(dtype=torch.float64), torch.float64),
        (lambda m: m.to(torch.zeros(1, dtype=torch.float64)), torch.float64),
        (lambda m: m.cpu(), torch.float32),
    ],
)
def test_conversion_keeps_the_objects_and_converts_the_gradient(convert, dtype):
    module = Scale()
    module.register_buffer("count", torch.tensor([3]))
    module(torch.ones(1)).sum().backward()
    factor, grad = module.factor, module.factor.grad
    assert convert(module) is module
    assert module.factor is factor and factor.dtype == dtype and factor.requires_grad
    assert factor.grad is grad and grad.dtype == dtype
    assert module.shift.dtype == dtype
    assert module.count.dtype == torch.int64


@pytest.mark.parametrize("of_gradient", [False, True])
def test_changes_in_place_of_what_is_saved_are_noticed(of_gradient):
    module = Scale()
    module.factor.grad = torch.ones_like(module.factor).requires_grad_()
    changed = module.factor.grad if of_gradient else module.factor
    product = changed * changed
    before = changed._version
    module._apply(lambda t: t.add_(1))
    assert changed._version > before and changed is (module.factor.grad if of_gradient else module.factor)
    with fails(
        RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace ..."
    ):
        product.sum().backward()


def test_a_conversion_that_fails_changes_nothing():
    module = nn.Linear(2, 3)
    module.weight.grad = torch.ones(3, 2)

    def fail(t):
        raise ValueError

    with pytest.raises(ValueError):
        module._apply(fail)
    assert module.weight.grad.tolist() == [[1, 1]] * 3


def test_conversion_to_integers_is_refused():
    line = "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int64"
    module = Scale()
    with fails(TypeError, line):
        module.to(torch.int64)
    assert module.factor.dtype == torch.float32


def test_type_converts_integers_too():
    module = Scale()
    module.register_buffer("count", torch.tensor([3]))
    module.type(torch.float64)
    assert module.count.dtype == module.factor.dtype == torch.float64


def test_to_empty_keeps_shapes():
    layer = nn.Linear(2, 3).to_empty(device="cpu")
    assert layer.weight.shape == (3, 2) and layer.weight.requires_grad


def test_orders_of_memory_are_for_images():
    model = nn.ModuleList([nn.Conv2d(2, 3, 3), nn.Conv1d(2, 3, 3), nn.Linear(2, 3)])
    assert model.to(memory_format=torch.channels_last) is model
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert model[1].weight.is_contiguous() and model[2].weight.is_contiguous()
    model.to(dtype=torch.float64, memory_format=torch.contiguous_format)
    assert model[0].weight.is_contiguous() and model[2].weight.dtype == torch.float64


# ------------------------------------------------------------------ repr and copies


def test_repr_nests():
    class Doc(nn.Module):
        def extra_repr(self):
            return "one line\nand another"

    assert repr(nn.Sequential(nn.Sequential(), Doc(), nn.Linear(2, 3))) == (
        "Sequential(\n"
        "  (0): Sequential()\n"
        "  (1): Doc(\n"
        "    one line\n"
        "    and another\n"
        "  )\n"
        "  (2): Linear(in_features=2, out_features=3, bias=True)\n"
        ")"
    )


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"])
def test_copies_are_independent_and_keep_sharing(duplicate):
    model = tied()
    model.register_buffer("note", torch.ones(1), persistent=False)
    again = duplicate(model)
    assert again[0] is again[2] is again[3][0]
    assert again[0].weight is not model[0].weight
    assert list(again.state_dict()) == list(model.state_dict())
    with torch.no_grad():
        again[0].weight.fill_(7)
    assert model[0].weight.item() != 7


def test_a_path_that_leads_nowhere_is_quoted_after_the_first_line():
    with pytest.raises(AttributeError) as caught:
        nn.Sequential(nn.Linear(1, 1)).get_submodule("0.weight")
    assert first_line(caught.value) == "`weight` is not an nn.Module"
    assert "0.weight" in str(caught.value)


@pytest.mark.parametrize("name", ["T_destination", "call_super_init", "dump_patches", "forward", "to", "training"])
def test_members_may_not_hide_attributes_of_the_class(name):
    for register, value in (
        ("register_buffer", torch.ones(1)),
        ("register_buffer", None),
        ("register_parameter", nn.Parameter(torch.ones(1))),
        ("add_module", nn.ReLU()),
        ("register_module", None),
    ):
        module = nn.Module()
        with pytest.raises(KeyError, match=f"attribute '{name}' already exists"):
            getattr(module, register)(name, value)
        assert not module.state_dict() and not list(module.children())


def test_classes_beside_module_are_initialized_on_request():
    class Other:
        def __init__(self, number=1):
            self.number = number

    class Both(nn.Module, Other):
        call_super_init = True

    class Without(nn.Module, Other):
        pass

    assert Both(3).number == 3 and Both(number=4).number == 4 and Both().training
    assert not hasattr(Without(), "number")
    with pytest.raises(TypeError, match=r"Without.__init__\(\) takes 1 positional argument but 2 were given"):
        Without(3)
    with pytest.raises(TypeError, match=r"Without.__init__\(\) got an unexpected keyword argument 'number'"):
        Without(number=3)


def test_a_module_becomes_like_a_tensor_given_by_name():
    module = nn.Linear(2, 2).to(tensor=torch.ones(1, dtype=torch.float64), non_blocking=True)
    assert module.weight.dtype is torch.float64
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        module.to(tensor=torch.ones(1, dtype=torch.int64))
    for wrong in ({"tensor": None}, {"tensor": torch.ones(1), "dtype": torch.float32}):
        with pytest.raises(TypeError):
            module.to(**wrong)
    assert module.weight.dtype is torch.float64
