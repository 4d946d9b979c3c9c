"""Private names of PyTorch that libraries use: what they do."""

import gc
import importlib
import pickle
import threading
from types import SimpleNamespace

import pytest

import cygrad as torch
from cygrad import nn
from helpers import fails

# --- torch._C ----------------------------------------------------------------------------------


def test_transforms_are_noticed():
    seen = []

    def note(x):
        batched = torch._C._functorch.is_batchedtensor(x)
        seen.append((torch._C._are_functorch_transforms_active(), batched, torch._C._functorch.maybe_get_bdim(x)))
        return x

    torch.func.vmap(note)(torch.ones(2))
    torch.func.jvp(note, (torch.ones(2),), (torch.ones(2),))
    note(torch.ones(2))
    assert seen == [(True, True, 0), (True, False, -1), (False, False, -1)]
    assert torch._C._functorch.maybe_get_level(torch.ones(2)) == -1


def test_tables_of_functions():
    assert torch._C._VariableFunctions.add is torch.add
    assert torch._C._linalg.linalg_inv is torch.linalg.inv and torch._C._fft.fft_rfft is torch.fft.rfft
    assert torch._C._special.special_i0 is torch.special.i0 and "special_i0" in dir(torch._C._special)
    for table, name in (("_special", "i0"), ("_linalg", "linalg_none"), ("_VariableFunctions", "float32")):
        assert not hasattr(getattr(torch._C, table), name)


def test_functions_of_nn():
    x = torch.tensor([[-1.0, 2.0]])
    assert torch._C._nn.gelu(x).equal(nn.functional.gelu(x)) and torch._C._nn.linear(x, x).equal(x @ x.T)
    assert torch._C._nn._parse_to("cpu", torch.float16, True) == (torch.device("cpu"), torch.float16, True, None)
    assert torch._C._nn._parse_to(x) == (torch.device("cpu"), torch.float32, False, None)
    tensors = [torch.ones(2, 2), torch.zeros(3)]
    flat = torch._C._nn.flatten_dense_tensors(tensors)
    assert flat.tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert all(a.equal(b) for a, b in zip(torch._C._nn.unflatten_dense_tensors(flat, tensors), tensors))
    assert not hasattr(torch._C._nn, "no_such_name")


def test_devices_of_the_core():
    assert torch._C._get_default_device() == "cpu" and torch._C._get_privateuse1_backend_name() == "privateuseone"
    assert torch._C._get_accelerator() == (torch.accelerator.current_accelerator() or torch.device("cpu"))
    assert torch._C._get_cudnn_enabled() is torch.backends.cudnn.enabled
    x = torch.ones(2, 2)
    assert torch._C._is_alias_of(x, x.view(4)) and not torch._C._is_alias_of(x, x.clone())
    with fails(TypeError, "torch._C.DeviceObjType: No constructor defined!"):
        torch.DeviceObjType()


def test_dispatch_keys():
    key, keys = torch._C.DispatchKey.CPU, torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    assert key == 49 and keys.has(key) and repr(keys) == "DispatchKeySet(CPU)"
    more = keys | torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU)
    assert more.highestPriorityTypeId() == torch._C.DispatchKey.AutogradCPU and more - keys == more.remove(key)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        assert torch.ones(1).item() == 1
    assert torch.Tag.pointwise == 16 and torch._C.Tag is torch.Tag


def test_switches_of_fusers():
    before = torch._C._jit_set_profiling_executor(False)
    assert torch._C._jit_set_profiling_executor(before) is False and not torch._C._jit_can_fuse_on_cpu()
    assert torch._C._get_tracing_state() is torch._C._log_api_usage_once("x") is None and not torch._C._is_tracing()
    assert torch._C._set_tracing_state(None) is None
    for kind in (torch._C.Value, torch._C.ScriptMethod, torch._C.ScriptObject):
        assert not isinstance(torch.ones(1), kind)
        with fails(TypeError, f"torch._C.{kind.__name__}: No constructor defined!"):
            kind()


def test_the_switch_of_the_compiler_of_programs():
    state = importlib.import_module("cygrad.jit._state")
    assert state._enabled and state._enabled.enabled
    state.disable()
    assert not state._enabled
    state.enable()
    assert state._enabled and state._get_script_class(nn.Linear) is state._get_python_class("Linear") is None
    state._clear_class_state()


@pytest.mark.parametrize("name", ["has_cuda", "has_cudnn", "has_mkldnn", "has_mps", "set_vital"])
def test_deprecated_attributes(name):
    with pytest.warns(UserWarning, match=f"'{name}' is deprecated, please "):
        value = getattr(torch, name)
    assert value("a", "b", "c") is None if name == "set_vital" else value in (True, False)


def test_checks_of_functions_of_nn():
    F = nn.functional
    assert F._verify_batch_size([1, 3, 2]) is F._check_key_padding_mask(torch.zeros(2, 5), 5, 2) is None
    with fails(ValueError, "Expected more than 1 value per channel when training, got input size [1, 3, 1]"):
        F._verify_batch_size([1, 3, 1])
    with fails(AssertionError, "Expected key_padded_mask.shape[0] to be 3, but got 2"):
        F._check_key_padding_mask(torch.zeros(2, 5), 5, 3)
    with fails(AssertionError, "Expected key_padded_mask.shape[1] to be 4, but got 5"):
        F._check_key_padding_mask(torch.zeros(2, 5), 4, 2)


def test_policies_joined_by_or():
    from cygrad.distributed.fsdp.wrap import _or_policy

    def takes(kind):
        return lambda module, recurse, nonwrapped_numel: isinstance(module, kind)

    policies = [takes(nn.Linear), takes(nn.ReLU)]
    found = [_or_policy(module, False, 0, policies) for module in (nn.Linear(1, 1), nn.ReLU(), nn.Tanh())]
    assert found == [True, True, False]


def test_states_attached_to_modules():
    from cygrad.distributed._composable_state import _get_module_state, _insert_module_state, _State
    from cygrad.distributed.fsdp._common_utils import _FSDPState

    module, state = nn.Linear(1, 1), _FSDPState()
    assert _get_module_state(module) is None
    _insert_module_state(module, state)
    assert _get_module_state(module) is state and isinstance(state, _State)
    with fails(AssertionError, "Inserting ... more than once."):
        _insert_module_state(module, state)


def test_the_engine():
    x = torch.ones(1, requires_grad=True)
    number = torch._C._autograd._get_sequence_nr()
    assert (x * 2).grad_fn._sequence_nr() == number
    with torch.profiler.profile():
        assert torch.autograd._profiler_enabled() and torch._C._autograd._profiler_enabled()
    assert not torch.autograd._profiler_enabled() and torch.profiler.kineto_available()
    assert torch._C._autograd.DeviceType.CUDA == 1 and torch.autograd.forward_ad._current_level == -1
    with torch.autograd.forward_ad.dual_level():
        assert torch.autograd.forward_ad._current_level == 0


# --- torch._utils and the like -----------------------------------------------------------------


def test_device_indices():
    index = torch._utils._get_device_index
    assert (index(2), index("cuda:1"), index(torch.device("cpu"), allow_cpu=True)) == (2, 1, -1)
    with fails(ValueError, "Expected a non cpu device, but got: cpu"):
        index("cpu")
    with fails(ValueError, "Expected a torch.device with a specified index or an integer, but got:cuda"):
        index("cuda")
    assert torch._utils._element_size(torch.float16) == 2 and torch._utils.cpu_count() >= 1


def test_lists_of_tensors():
    tensors = [torch.ones(2), torch.ones(2).double(), torch.zeros(3), torch.zeros(2)]
    lists = list(torch._utils._take_tensors(tensors, 24))
    shapes = sorted([(str(each[0].dtype), *(tuple(t.shape) for t in each)) for each in lists])
    assert shapes == [("torch.float32", (2,)), ("torch.float32", (2,), (3,)), ("torch.float64", (2,))]
    mixed = [tensors[1], tensors[0]]
    assert [t.dtype for t in torch._utils._reorder_tensors_as(mixed, tensors[:2])] == [torch.float32, torch.float64]
    assert torch._utils._handle_complex(torch.ones(2, dtype=torch.complex64)).shape == (2, 2)
    assert torch._utils._import_dotted_name("torch.nn.Linear") is nn.Linear


def test_errors_of_threads():
    caught = []

    def work():
        try:
            {}["name"]
        except KeyError:
            caught.append(torch._utils.ExceptionWrapper(where="in thread 3"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with pytest.raises(KeyError, match="Caught KeyError in thread 3.\nOriginal Traceback"):
        caught[0].reraise()

    class Meta:
        @torch._utils.classproperty
        def name(cls):
            return cls.__name__

    assert Meta.name == Meta().name == "Meta"


def test_text():
    x = torch.tensor([1.0, 2.5])
    assert torch._tensor_str._str(x) == repr(x) and torch._tensor_str.PRINT_OPTS.precision == 4
    try:
        torch._tensor_str.PRINT_OPTS.precision = 2
        assert repr(x) == "tensor([1.00, 2.50])"
    finally:
        torch.set_printoptions(profile="default")


def test_class_of_tensors():
    class Own(torch.Tensor):
        pass

    assert torch._tensor.Tensor is torch.Tensor and torch._tensor._dtype_to_typestr(torch.float32) == "<f4"
    assert type(torch._tensor._convert((torch.ones(1),), Own)[0]) is Own


def test_compilers_are_not_there():
    assert torch._guards.detect_fake_mode([torch.ones(1)]) is torch._guards.TracingContext.try_get() is None
    assert not isinstance(torch.ones(1), torch._subclasses.FakeTensor)
    with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
        assert torch.ones(3, 4).is_meta and mode.from_tensor(torch.ones(2, device="cpu")).shape == (2,)
    assert not torch.ones(1).is_meta
    from cygrad._functorch import config
    from cygrad._functorch.apis import vmap

    assert vmap is torch.func.vmap and config.donated_buffer


def test_slices_of_arguments():
    from cygrad._functorch.eager_transforms import _slice_argnums

    assert _slice_argnums((1, 2, 3), -1) == (3,) and _slice_argnums((1, 2, 3), 1, as_tuple=False) == 2
    assert _slice_argnums((1, 2, 3), (2, 0)) == (3, 1)
    with fails(RuntimeError, "Got argnum=1, but only 1 positional inputs"):
        _slice_argnums((1,), 1)


# --- utils -------------------------------------------------------------------------------------


def test_weak_dictionaries():
    from cygrad.utils.weak import TensorWeakRef, WeakIdRef, WeakTensorKeyDictionary

    x, y = torch.ones(2), torch.ones(2)
    notes = WeakTensorKeyDictionary({x: 1})
    notes[y] = 2
    assert (notes[x], notes[y], len(notes), torch.ones(2) in notes, 3 in notes) == (1, 2, 2, False, False)
    reference = TensorWeakRef(x)
    assert reference() is x and WeakIdRef(x) == WeakIdRef(x) != WeakIdRef(y)
    joined = notes | {y: 3}
    assert joined[y] == 3 and notes[y] == 2
    del x
    gc.collect()
    assert reference() is None and len(notes) == 1 and next(iter(notes)) is y
    assert notes.pop(y) == 2 and not notes
    with fails(AssertionError, "expected torch.Tensor, got <class 'int'>."):
        TensorWeakRef(3)


def test_weak_dictionaries_as_mappings():
    import copy

    from cygrad.utils.weak import WeakIdKeyDictionary, _WeakHashRef

    x, y = torch.ones(2), torch.ones(2)
    notes = WeakIdKeyDictionary({x: [1]})
    copied = copy.deepcopy(notes)
    copied[x].append(2)
    assert (notes[x], copied[x]) == ([1], [1, 2])
    joined = {y: 3} | notes
    assert type(joined) is WeakIdKeyDictionary and (joined[x], joined[y]) == ([1], 3)

    def failing():
        yield y, 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        notes.update(failing())
    assert len(notes) == 1

    class Key(str):
        pass

    by_value, key = WeakIdKeyDictionary(ref_type=_WeakHashRef), Key("a")
    by_value[key] = 1
    assert by_value[Key("a")] == 1 and Key("b") not in by_value
    del key
    gc.collect()
    assert not by_value


def test_modes_that_are_the_same():
    from cygrad.utils._mode_utils import all_same_mode, no_dispatch
    from cygrad.utils._python_dispatch import TorchDispatchMode

    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    mode = Refusing()
    assert all_same_mode([mode, mode]) and not all_same_mode([mode, Refusing()])
    with mode, no_dispatch():
        assert (torch.ones(2) + 1).tolist() == [2, 2]


def test_contexts_that_decorate():
    from cygrad.utils._contextlib import _NoParamDecoratorContextManager, context_decorator

    depth = [0]

    class Deeper(_NoParamDecoratorContextManager):
        def __enter__(self):
            depth[0] += 1

        def __exit__(self, *error):
            depth[0] -= 1

    @Deeper
    def here():
        return depth[0]

    @Deeper()
    def numbers():
        for _ in range(2):
            try:
                yield depth[0]
            except ValueError:
                yield -depth[0]
        return "end"

    assert here() == 1 and depth == [0]
    generator = numbers()
    assert next(generator) == 1 and depth == [0] and generator.throw(ValueError) == -1 and depth == [0]
    assert list(numbers()) == [1, 1] and depth == [0]
    with fails(RuntimeError, "Cannot decorate classes; ..."):
        context_decorator(Deeper(), nn.Module)


def test_functions_with_a_default_device():
    from cygrad.utils._device import set_device

    @set_device("meta")
    def numbers():
        yield torch.ones(1).device.type
        yield torch.ones(1).device.type

    @set_device("meta")
    def one():
        return torch.ones(1).device.type

    generator = numbers()
    assert next(generator) == "meta" and torch.ones(1).device.type == "cpu" and one() == "meta"
    assert list(generator) == ["meta"] and torch.ones(1).device.type == "cpu"
    with fails(RuntimeError, "Cannot decorate classes; ..."):
        set_device("meta")(nn.Module)
    assert not callable(torch.device("meta"))  # as in PyTorch, where some libraries ask


def test_stacks_that_are_kept():
    from cygrad.utils import _traceback

    stack = _traceback.CapturedTraceback.extract()
    assert "in test_stacks_that_are_kept" in stack.format()[-1]
    outer = _traceback.CapturedTraceback.extract(skip=1)
    assert len(outer.summary()) == len(stack.summary()) - 1
    assert _traceback.CapturedTraceback.format_all([stack, outer]) == [stack.format(), outer.format()]
    assert pickle.loads(pickle.dumps(stack)).format() == []
    try:
        raise ValueError
    except ValueError as error:
        assert _traceback.format_traceback_short(error.__traceback__).endswith(" in test_stacks_that_are_kept")
    stack.cleanup()
    assert stack.format() == []


def test_the_report_about_the_machine():
    from cygrad.utils import collect_env

    found = collect_env.get_env_info()
    assert found.is_cuda_available == str(torch.cuda.is_available()) and "numpy==" in found.pip_packages
    text = collect_env.pretty_str(found._replace(gcc_version=None, os="Some System"))
    assert "GCC version: Could not collect" in text and "OS: Some System" in text


def test_groups_of_tensors():
    from cygrad.utils import _foreach_utils

    params = [torch.ones(1), torch.ones(2).double(), torch.ones(3)]
    found = _foreach_utils._group_tensors_by_device_and_dtype([params, [p * 2 for p in params], []], True)
    assert [kind for _, kind in found] == [torch.float32, torch.float64]
    lists, places = found[torch.device("cpu"), torch.float32]
    assert places == [0, 2] and [t.tolist() for t in lists[1]] == [[2], [2, 2, 2]] and lists[2] == []
    assert _foreach_utils._has_foreach_support(params, torch.device("cpu"))


def test_settings_and_extensions():
    assert torch.utils.deterministic.fill_uninitialized_memory is True
    torch.utils.deterministic.fill_uninitialized_memory = False
    assert torch.utils.deterministic.fill_uninitialized_memory is False
    torch.utils.deterministic.fill_uninitialized_memory = True
    with fails(RuntimeError, "expected a bool, but got int"):
        torch.utils.deterministic.fill_uninitialized_memory = 1
    assert torch.utils.cpp_extension.include_paths() == []
    with fails(RuntimeError, "cygrad loads no C++ extensions of PyTorch"):
        torch.utils.cpp_extension.load("name", ["file.cpp"])
    with fails(NotImplementedError, "torch.nested.nested_tensor: cygrad has no nested tensors"):
        torch.nested.nested_tensor([torch.ones(2)])


def test_data():
    from cygrad.utils.data import (
        DataLoader,
        IterDataPipe,
        MapDataPipe,
        dataloader,
        functional_datapipe,
        guaranteed_datapipes_determinism,
        non_deterministic,
    )
    from cygrad.utils.data._utils import collate, pin_memory, worker

    alone, crew = iter(DataLoader([1, 2, 3])), iter(DataLoader([1, 2, 3], num_workers=1))
    assert isinstance(alone, dataloader._SingleProcessDataLoaderIter)
    assert isinstance(crew, dataloader._MultiProcessingDataLoaderIter) and next(crew).tolist() == [1]
    crew._shutdown_workers()
    assert isinstance(alone, dataloader._BaseDataLoaderIter) and len(alone) == 3
    assert DataLoader([1])._dataset_kind == dataloader._DatasetKind.Map and DataLoader([1])._auto_collation
    assert worker._generate_state(12345678901234, 3) == [2677634501, 810098766, 226270600, 4115140591]  # PyTorch's
    assert collate.collate_tensor_fn([torch.ones(2)] * 3).shape == (3, 2) and collate.collate_str_fn("ab") == "ab"
    pinnable = SimpleNamespace(pin_memory=lambda: "pinned")
    assert pin_memory.pin_memory({"a": ([pinnable], "text")}, "cpu") == {"a": (["pinned"], "text")}
    assert collate.np_str_obj_array_pattern.search("O") and not collate.np_str_obj_array_pattern.search("f4")

    class Numbers(IterDataPipe):
        def __iter__(self):
            yield from range(3)

    @functional_datapipe("plus")
    class Plus(IterDataPipe):
        def __init__(self, source, number):
            self.source, self.number = source, number

        def __iter__(self):
            return (self.number + each for each in self.source)

    assert list(Numbers().plus(3)) == [3, 4, 5] and list(DataLoader(Numbers().plus(1), batch_size=None)) == [1, 2, 3]
    assert len(torch.utils.data.graph_settings.get_all_graph_pipes(Numbers().plus(1).plus(2))) == 3
    with pytest.raises(Exception, match="plus as it is already taken"):
        functional_datapipe("plus")(Plus)
    with fails(AttributeError, "'Numbers' object has no attribute 'minus"):
        Numbers().minus(1)
    with fails(TypeError, "`functional_datapipe` can only decorate IterDataPipe"):
        functional_datapipe("x")(int)
    random = non_deterministic(type("Random", (MapDataPipe,), {}))
    with guaranteed_datapipes_determinism(), fails(TypeError, "Random is non-deterministic, but you set ..."):
        random()
    assert random() is not None


# --- nn and optim ------------------------------------------------------------------------------


def test_modules():
    from cygrad.nn.modules import module, transformer
    from cygrad.nn.utils import stateless

    assert module._EXTRA_STATE_KEY_SUFFIX == "_extra_state" and not module._global_forward_pre_hooks

    def hook(module, args):
        return None

    handle = nn.modules.module.register_module_forward_pre_hook(hook)
    assert list(module._global_forward_pre_hooks.values()) == [hook] and not module._global_forward_hooks
    handle.remove()
    assert len(module._global_forward_pre_hooks) == 0
    assert transformer._get_activation_fn("gelu") is nn.functional.gelu
    with fails(RuntimeError, "activation should be relu/gelu, not foo"):
        transformer._get_activation_fn("foo")
    layer = nn.Linear(1, 1)
    before = layer.weight
    with stateless._reparametrize_module(layer, {"weight": torch.zeros(1, 1), "bias": torch.ones(1)}):
        assert layer(torch.ones(1)).item() == 1
    assert layer.weight is before
    w = torch.ones(4, requires_grad=True)
    assert nn.init._no_grad_uniform_(w, 2.0, 3.0).min() >= 2 and nn.init._no_grad_zero_(w).sum() == 0


def test_optimizers():
    from cygrad.optim import optimizer

    class Half(torch.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self, closure=None):
            return torch.is_grad_enabled()

    weights = [torch.ones(1, requires_grad=True)]
    assert Half(weights, {"differentiable": True}).step() and not Half(weights, {"differentiable": False}).step()
    assert optimizer._default_to_fused_or_foreach(weights, False, use_fused=True) == (False, False)
    assert optimizer._get_capturable_supported_devices() == ["cuda"] and optimizer._get_value(torch.tensor(2.0)) == 2
    params, states = [torch.ones(1, dtype=torch.complex64)], [torch.zeros(1, dtype=torch.complex64)]
    optimizer._view_as_real(params, states)
    assert params[0].shape == states[0].shape == (1, 2)


def test_processes():
    context = torch.multiprocessing.start_processes(print_nothing, nprocs=2, join=False, start_method="fork")
    while not context.join():
        pass
    assert [process.exitcode for process in context.processes] == [0, 0]


def print_nothing(i):
    assert i in (0, 1)


def test_scalers_and_logs():
    from cygrad.amp.grad_scaler import OptState

    scaler = torch.amp.GradScaler("cpu")
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    assert scaler._per_optimizer_states[id(optimizer)]["stage"] is OptState.UNSCALED
    scaler._init_growth_tracker = 7
    assert scaler.state_dict()["_growth_tracker"] == scaler._init_growth_tracker == 7
    groups = torch.optim.Optimizer._group_tensors_by_device_and_dtype([[w], [w * 2]], with_indices=True)
    assert list(groups) == [(w.device, w.dtype)] and groups[w.device, w.dtype][1] == [0]


def test_logs():
    pytest.importorskip("tensorboardX")
    from cygrad.utils.tensorboard import SummaryWriter, summary, writer

    assert writer.SummaryWriter is SummaryWriter and summary.scalar("loss", 0.5).value[0].tag == "loss"
    assert not hasattr(summary, "no_such_entry")


def test_members_by_name():
    from cygrad.nn.utils._named_member_accessor import NamedMemberAccessor, swap_submodule

    model = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    accessor = NamedMemberAccessor(model)
    before = model[0].weight
    assert accessor.swap_tensor("0.weight", torch.zeros(1, 2)) is before and model[0].weight.sum() == 0
    accessor.set_tensors(["0.weight", "1.running_mean"], [before, torch.ones(1)])
    assert model[0].weight is before and model[1].running_mean.item() == 1
    assert accessor.check_keys(["0.weight", "x"])[1] == ["x"] and "0.bias" in accessor.check_keys(["0.weight"])[0]
    assert dict(accessor.named_tensors()).keys() == model.state_dict().keys()
    accessor.del_tensor("0.bias")
    assert not hasattr(model[0], "bias")
    old = model[1]
    assert accessor.swap_submodule("1", nn.ReLU()) is old and isinstance(model[1], nn.ReLU)
    with fails(AttributeError, "Linear has no attribute `x`"):
        accessor.swap_tensor("0.x", torch.ones(1))
    with fails(TypeError, "3 is not an instance of torch.Tensor"):
        accessor.set_tensor("0.weight", 3)
    with fails(AttributeError, "Sequential has no attribute `5`"):
        swap_submodule(model, "5", nn.ReLU())


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_samples(reduction):
    from cygrad.nn.utils._per_sample_grad import call_for_per_sample_grads

    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(5, 3)
    getattr(call_for_per_sample_grads(model, loss_reduction=reduction)(x), reduction)().backward()
    for i, row in enumerate(x):
        alone = torch.autograd.grad(model(row).sum(), list(model.parameters()))
        for parameter, grad in zip(model.parameters(), alone):
            assert torch.allclose(parameter.grad_sample[i], grad, atol=1e-6)
    assert all(parameter.grad is None for parameter in model.parameters())
    with fails(RuntimeError, "Batch size must be positive, got 0"):
        call_for_per_sample_grads(model, batch_size=0)


# --- functions by private and removed names ----------------------------------------------------


def test_private_functions():
    x = torch.tensor([[1.0, 2.5], [-3.0, 0.0]], dtype=torch.float64, requires_grad=True)
    assert torch._cast_Long(x).tolist() == [[1, 2], [-3, 0]] and torch._cast_Float(x).dtype is torch.float32
    assert torch._shape_as_tensor(x).tolist() == [2, 2] and torch._dim_arange(x, 1).tolist() == [0, 1]
    g = torch.randn(2, 2, dtype=torch.float64)
    for name in ("softmax", "log_softmax"):
        y = getattr(torch, name)(x, 1)
        (expected,) = torch.autograd.grad(y, x, g)
        assert torch.allclose(getattr(torch, f"_{name}_backward_data")(g, y, 1, torch.float64), expected)
        assert getattr(torch, f"_{name}")(x, 1, False).equal(y)
    v, length = torch.randn(3, 4), torch.rand(3, 1)
    assert torch.allclose(torch._weight_norm(v, length, 0).norm(dim=1, keepdim=True), length)
    torch.manual_seed(1)
    drawn = torch._standard_gamma(torch.full((1000,), 2.0))
    assert 1.7 < drawn.mean() < 2.3 and torch.allclose(torch._sample_dirichlet(torch.ones(3, 4)).sum(1), torch.ones(3))


@pytest.mark.parametrize("name", ["matrix_rank", "solve", "lstsq", "eig", "symeig"])
def test_removed_functions(name):
    with fails(RuntimeError, "This function was deprecated since version 1.9 and is now removed...."):
        getattr(torch, name)(torch.ones(2, 2))


# --- further modules ---------------------------------------------------------------------------


def test_functions_of_first_days():
    from cygrad.autograd._functions import Resize, Type, utils

    x = torch.arange(4.0, requires_grad=True)
    (Resize.apply(x, (2, 2)) * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3, 4]
    with fails(RuntimeError, "requested resize to 3 (3 elements in total), but the given tensor has a size of 4 (4..."):
        Resize.apply(x, (3,))
    with pytest.warns(FutureWarning, match="is deprecated as of PyTorch 2.1"):
        y = Type.apply(x, torch.float64)
    y.sum().backward()
    assert y.dtype is torch.float64 and x.grad.tolist() == [2, 3, 4, 5]
    assert utils.maybe_unexpand(torch.ones(2, 3), (1, 3)).tolist() == [[2, 2, 2]]
    assert utils.maybe_view(x, (2, 2)).shape == (2, 2) and utils.maybe_view(x, x.shape) is x


def test_saved_tensors_are_unpacked():
    x = torch.ones(3, requires_grad=True)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    assert saved.unpack() is x
    saved.register_hooks(lambda t: t * 2, lambda t: t / 2)
    assert saved.unpack().equal(x) and x.exp().grad_fn._raw_saved_result.unpack().equal(x.exp())
    y.sum().backward()
    with fails(RuntimeError, "Trying to backward through the graph a second time..."):
        saved.unpack()


def test_processes_and_memory():
    from cygrad.numa import binding

    options = binding.NumaOptions(binding.AffinityMode.NODE)
    wrap = binding._maybe_wrap_command_args_with_numa_binding
    assert wrap(("python",), gpu_index=0, numa_options=None) == ("python",)
    with fails(NotImplementedError, "torch.numa.binding: cygrad ties no processes to processors"):
        wrap(("python",), gpu_index=0, numa_options=options)
    lenient = binding.NumaOptions(binding.AffinityMode("socket"), should_fall_back_if_binding_fails=True)
    assert wrap(("python",), gpu_index=0, numa_options=lenient) == ("python",)


def test_groups_and_remote_calls():
    c10d, rpc = torch._C._distributed_c10d, torch._C._distributed_rpc
    assert c10d.ReduceOp is torch.distributed.ReduceOp and c10d.ProcessGroup is torch.distributed.ProcessGroup
    assert rpc.PyRRef is torch.distributed.rpc.RRef and not rpc._is_current_rpc_agent_set()
    with fails(RuntimeError, "Current RPC agent is not set!"):
        rpc._get_current_rpc_agent()


def test_integers_of_sympy():
    sympy = pytest.importorskip("sympy")
    from cygrad.utils._sympy.functions import CeilDiv, FloorDiv, Mod, ModularIndexing, PythonMod

    x, y = sympy.symbols("x y", integer=True, positive=True)
    assert str(FloorDiv(x + 1, 2) * 3) == "3*(((x + 1)//2))" and FloorDiv(2 * x, 2) == x
    assert FloorDiv(FloorDiv(x, 2), 3) == FloorDiv(x, 6) and FloorDiv(4 * x, 2 * y) == FloorDiv(2 * x, y)
    for a in range(-9, 10):
        for b in (1, 2, 3, 7):
            p, q = sympy.Integer(a), sympy.Integer(b)
            assert FloorDiv(p, q) == a // b and PythonMod(p, q) == a % b and CeilDiv(p, q) == -(-a // b)
            assert ModularIndexing(p, q, sympy.Integer(4)) == a // b % 4
    assert FloorDiv(x + y, 3).subs({x: 5, y: 3}) == 2 and Mod(4 * x, 2) == 0
    with pytest.raises(ZeroDivisionError):
        FloorDiv(x, 0)


def test_what_is_refused():
    with fails(NotImplementedError, "torch._make_per_tensor_quantized_tensor: cygrad has no quantized tensors"):
        torch._make_per_tensor_quantized_tensor(torch.ones(2), 0.1, 0)
    with fails(NotImplementedError, "torch.nested.nested_tensor: cygrad has no nested tensors"):
        torch._nested_view_from_buffer(torch.ones(2), None, None, None)
    with fails(RuntimeError, "expected torch.dtype, but got <class 'str'>"):
        torch._utils._element_size("float32")


def test_annealing():
    one = torch.optim.lr_scheduler.OneCycleLR
    assert one._annealing_cos(1, 0, 0.5) == pytest.approx(0.5) and one._annealing_linear(1, 0, 0.3) == 0.7
    assert torch.optim.swa_utils.SWALR._cosine_anneal(1) == 1 and torch.optim.swa_utils.SWALR._linear_anneal(0.3) == 0.3
    assert [cls(2)._get_no_batch_dim() for cls in (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)] == [
        2,
        3,
        4,
    ]


def test_types_of_programs():
    integer, of_tensor = torch.IntType.get(), torch.TensorType.get()
    assert torch.IntType is torch._C.IntType and integer is torch.IntType.get() and isinstance(integer, torch.Type)
    texts = [
        (torch.ListType(integer), "List[int]"),
        (torch.OptionalType(of_tensor), "Optional[Tensor]"),
        (torch.TupleType([integer, of_tensor]), "Tuple[int, Tensor]"),
        (torch.DictType(torch.StringType.get(), torch.FloatType.get()), "Dict[str, float]"),
        (torch.UnionType([integer, torch.StringType.get()]), "Union[int, str]"),
        (torch.FutureType(torch.BoolType.get()), "Future[bool]"),
    ]
    for found, text in texts:
        assert str(found) == repr(found) == found.annotation_str == found.str() == text
    assert torch.ListType.ofInts() == torch.ListType(integer) != torch.ListType.ofTensors()
    assert integer.kind() == "IntType" and torch.ListType(integer).getElementType() is integer
    assert integer.isSubtypeOf(torch.NumberType.get()) and not torch.NumberType.get().isSubtypeOf(integer)
    assert torch.NoneType.get().isSubtypeOf(torch.OptionalType(integer))
    assert not torch.OptionalType(integer).isSubtypeOf(integer)
    for wrong in (torch.Type, torch.IntType):
        with pytest.raises(TypeError, match="No constructor defined!"):
            wrong()
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        torch.ListType(3)


def test_modules_as_functions():
    from cygrad._functorch import deprecated, make_functional

    model = torch.nn.Linear(2, 1)
    func, params = make_functional.make_functional(model)
    x = torch.rand(3, 2)
    assert torch.equal(func(params, x), model(x)) and params[0].data_ptr() != model.weight.data_ptr()
    assert params[0].requires_grad and not any(p.requires_grad for p in make_functional.make_functional(model, True)[1])
    norm = torch.nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError, match="`model` has buffers"):
        make_functional.make_functional(norm)
    func, params, buffers = make_functional.make_functional_with_buffers(norm)
    func(params, buffers, torch.rand(4, 3) + 5)
    assert (buffers[0] > 0.4).all() and torch.equal(norm.running_mean, torch.zeros(3))
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    func, params, buffers = make_functional.combine_state_for_ensemble(models)
    found = torch.vmap(func, (0, 0, None))(params, buffers, x)
    assert torch.allclose(found, torch.stack([each(x) for each in models]))
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        make_functional.combine_state_for_ensemble([])
    params, func, names = make_functional.functional_init(torch.nn.Linear, (3,))(2, 1)
    assert names == ("weight", "bias") and params[0].shape == (3, 1, 2) and len({*params[1].flatten().tolist()}) == 3
    found = torch.vmap(func, (0, None))(params, (x,))
    assert torch.equal(found[2], func([p[2] for p in params], (x,)))
    assert make_functional.functional_init(torch.nn.Linear)(2, 1)[0][0].shape == (1, 2)
    params, buffers, func, _, names = make_functional.functional_init_with_buffers(torch.nn.BatchNorm1d, [2])(3)
    assert params[0].shape == buffers[0].shape == (2, 3) and names[0] == "running_mean"
    assert func([p[0] for p in params], [b[0] for b in buffers], (torch.rand(4, 3),)).shape == (4, 3)
    for shape, message in (
        ((2, 2), "NYI: ensemble_shape with more than 1 element"),
        ((0,), "num_models 0 should be > 0"),
    ):
        with pytest.raises(ValueError, match=message):
            make_functional.functional_init(torch.nn.Linear, shape)(2, 1)
    with pytest.warns(FutureWarning, match=r"`functorch.grad` is deprecated .* use `torch.func.grad` instead"):
        assert deprecated.grad(torch.sin)(torch.tensor(0.0)) == 1


def test_memory_inside_fake_modes():
    from cygrad._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

    with unset_fake_temporarily() as mode:
        assert mode is None
    with FakeTensorMode() as outer:
        with unset_fake_temporarily() as mode:
            assert mode is outer and not torch.zeros(1).is_meta
        assert torch.zeros(1).is_meta
    assert not torch.zeros(1).is_meta


def test_bases_of_observers():
    from cygrad.ao.quantization import FakeQuantizeBase, ObserverBase

    class Largest(ObserverBase):
        def forward(self, x):
            self.largest = max(getattr(self, "largest", 0), x.max().item())
            return x

        def calculate_qparams(self):
            return self.largest / 127

    observer = Largest.with_args(dtype=torch.int8)()
    assert observer(torch.tensor([1.0, 127.0])).shape == (2,) and observer.calculate_qparams() == 1
    assert Largest.with_callable_args(dtype=lambda: torch.int8).with_args(is_dynamic=True)().is_dynamic
    with pytest.raises(TypeError, match="abstract"):
        FakeQuantizeBase()

    class Rounds(FakeQuantizeBase):
        forward = calculate_qparams = None

    rounds = Rounds()
    rounds.disable_fake_quant()
    assert not rounds.fake_quant_enabled and rounds.observer_enabled and len(rounds.state_dict()) == 2


def test_modules_of_devices():
    from cygrad._utils import _get_device_module

    assert _get_device_module("cpu") is torch.cpu and _get_device_module("cuda") is torch.cuda
    for wrong in ("abc", "ones"):
        with pytest.raises(RuntimeError, match=f"Device '{wrong}' does not have a corresponding module"):
            _get_device_module(wrong)


def test_names_that_restore_torchscripts_state():
    def hook(*args):
        raise AssertionError("nothing is compiled")

    before = torch._C._jit_get_emit_hooks()
    try:
        torch._C._jit_set_emit_hooks(hook, None)
        torch.jit.script(nn.ReLU())
        assert torch._C._jit_get_emit_hooks() == (hook, None)
    finally:
        torch._C._jit_set_emit_hooks(*before)
    torch._C._jit_clear_class_registry()
    torch.jit._state._clear_class_state()
    torch.jit._recursive.concrete_type_store = torch.jit._recursive.ConcreteTypeStore()
    was_on = bool(torch.jit._state._enabled)
    torch.jit._state.disable()
    assert not torch.jit._state._enabled
    (torch.jit._state.enable if was_on else torch.jit._state.disable)()


def test_names_of_overrides_in_functional():
    for name in ("handle_torch_function", "has_torch_function", "has_torch_function_unary"):
        assert getattr(nn.functional, name) is getattr(torch.overrides, name)
    assert nn.functional.has_torch_function_variadic is torch.overrides.has_torch_function_variadic
    assert not hasattr(nn.functional, "no_such_name") and torch._C.FileCheck is torch.testing.FileCheck
