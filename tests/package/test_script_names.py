"""Names that scripts import, query or set although cygrad has no use for them: each works or explains why it cannot."""

import hashlib
import os
import subprocess
import sys

import pytest

import cygrad as torch


def fail_in_process(i, text):
    if i == 1:
        raise KeyError(text)


def exit_in_process(i):
    if i == 0:
        os._exit(3)


def note_in_process(i, directory):
    (directory / str(i)).touch()


def test_data_parallel_on_one_device():
    inner = torch.nn.Linear(2, 1)
    model = torch.nn.DataParallel(inner)
    assert model.module is inner and list(model.state_dict()) == ["module.weight", "module.bias"]
    assert model(torch.ones(3, 2)).equal(inner(torch.ones(3, 2)))
    with pytest.raises(ValueError, match="one device"):
        torch.nn.DataParallel(inner, device_ids=[0, 1])


def test_programs_for_torchscript_run_as_python():
    from cygrad.jit import Final, script

    class Model(torch.nn.Module):
        size: Final[int] = 2

        @torch.jit.export
        def twice(self, x):
            return 2 * x

        @torch.jit.ignore
        def once(self, x):
            return x

        @torch.jit.ignore(drop=True)
        def never(self, x):
            return x

        @torch.jit.unused
        def forward(self, x):
            return self.twice(x) if not torch.jit.is_scripting() and not torch.jit.is_tracing() else None

    model = Model()
    assert script(model) is model and model(torch.ones(1)) == 2
    with pytest.raises(RuntimeError, match="cygrad has no TorchScript\n.*state_dict"):
        torch.jit.save(model, "m.pt")


def test_programs_for_compilers_run_as_python():
    assert not torch.compiler.is_compiling()
    assert torch.compiler.disable(abs)(-1) == 1 and torch.compiler.disable(recursive=False)(abs)(-1) == 1
    assert torch.compiler.allow_in_graph(abs) is abs and torch.compiler.compile(abs)(-1) == 1


def test_versions_and_types():
    from cygrad.types import Device, Number

    assert isinstance(torch.device("cpu"), Device) and isinstance(1.0, Number)
    assert torch.version.cuda is None and torch.version.__version__ == torch.__version__
    assert "NumPy" in torch.__config__.show() and "get_num_threads" in torch.__config__.parallel_info()


def test_weights_from_the_net_are_downloaded_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("cygrad.hub._hub_dir", None)
    source = tmp_path / "weights.pt"
    torch.save({"weight": torch.arange(3.0)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    named = tmp_path / f"net-{digest[:8]}.pt"
    source.rename(named)
    for _ in range(2):
        found = torch.hub.load_state_dict_from_url(named.as_uri(), check_hash=True, progress=False)
        assert found["weight"].tolist() == [0, 1, 2]
    assert capsys.readouterr().err.count("Downloading") == 1
    assert os.listdir(tmp_path / "home" / "hub" / "checkpoints") == [named.name]
    torch.hub.set_dir(tmp_path / "other")
    assert torch.hub.get_dir() == str(tmp_path / "other")
    with pytest.raises(RuntimeError, match="cygrad runs no code from the internet\n.*load_state_dict_from_url"):
        torch.hub.load("pytorch/vision", "resnet18")


def test_a_wrong_file_is_not_kept(tmp_path):
    (tmp_path / "a.pt").write_bytes(b"weights")
    with pytest.raises(RuntimeError, match="invalid hash value"):
        torch.hub.download_url_to_file((tmp_path / "a.pt").as_uri(), tmp_path / "b.pt", "0123", progress=False)
    assert os.listdir(tmp_path) == ["a.pt"]


FORKS = pytest.mark.skipif(sys.platform == "win32", reason="no fork")


@FORKS
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking a process with threads
def test_spawn(tmp_path):
    from cygrad import multiprocessing as mp

    assert mp.spawn(note_in_process, (tmp_path,), nprocs=2, start_method="fork") is None
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]
    with pytest.raises(
        mp.ProcessRaisedException, match="(?s)-- Process 1 terminated with the following.*KeyError: 'why'"
    ):
        mp.spawn(fail_in_process, ("why",), nprocs=2, start_method="fork")
    context = mp.spawn(exit_in_process, nprocs=1, join=False, start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="^process 0 terminated with exit code 3$") as caught:
        context.join()
    assert (caught.value.exit_code, caught.value.error_index) == (3, 0)


def test_multiprocessing_is_pythons():
    import multiprocessing

    from cygrad import multiprocessing as mp

    assert mp.Process is multiprocessing.Process and mp.get_context("spawn").get_start_method() == "spawn"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="expected 'file_descriptor'"):
        mp.set_sharing_strategy("magic")


def test_modules_that_pytorch_has_for_single_names():
    import cygrad.nn.parallel.distributed
    from cygrad.cuda.amp.autocast_mode import autocast
    from cygrad.cuda.amp.grad_scaler import GradScaler
    from cygrad.nn.parallel.data_parallel import DataParallel
    from cygrad.utils import model_zoo

    assert (autocast, GradScaler) == (torch.cuda.amp.autocast, torch.cuda.amp.GradScaler)
    for place in ("cpu", "cuda"):
        for module, name in (("autocast_mode", "autocast"), ("grad_scaler", "GradScaler")):
            code = f"from torch.{place}.amp.{module} import {name}"
            subprocess.run([sys.executable, "-m", "cygrad", "-c", code], check=True)
    assert DataParallel is torch.nn.DataParallel and cygrad.nn.parallel is torch.nn.parallel
    assert model_zoo.load_url is torch.hub.load_state_dict_from_url
    assert torch.set_flush_denormal(True) is False


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float16, torch.bfloat16, torch.complex64])
def test_masks_made_in_place(dtype):
    ones = torch.ones(2, 3, dtype=dtype)
    assert ones.clone().triu_(1).tolist() == torch.tensor([[0, 1, 1], [0, 0, 1]]).to(dtype).tolist()
    assert ones.clone().tril_(-1).tolist() == torch.tensor([[0, 0, 0], [1, 0, 0]]).to(dtype).tolist()


def test_names_in_places_that_scripts_import():
    from cygrad.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
    from cygrad.nn.init import _calculate_correct_fan
    from cygrad.nn.modules.module import _IncompatibleKeys
    from cygrad.nn.modules.transformer import _get_clones

    assert torch.functional.einsum is torch.einsum
    assert isinstance(torch.nn.Linear(1, 1).load_state_dict({}, strict=False), _IncompatibleKeys)
    assert _calculate_correct_fan(torch.zeros(2, 3), "fan_out") == 2
    assert len(_get_clones(torch.nn.ReLU(), 3)) == 3
    assert [x.tolist() for x in broadcast_all(torch.zeros(2), 1)] == [[0, 0], [1, 1]]
    p = torch.tensor([0.2, 0.8])
    for is_binary in (True, False):
        torch.testing.assert_close(logits_to_probs(probs_to_logits(p, is_binary), is_binary), p)

    class Once:
        calls = 0

        @lazy_property
        def value(self):
            self.calls += 1
            return self.calls

    assert [once.value for once in [Once()] * 2] == [1, 1]


def test_prefix_of_a_state_dict():
    model = torch.nn.Linear(2, 1)
    state = torch.nn.DataParallel(model).state_dict()
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"] and list(state._metadata) == [""]
    model.load_state_dict(state)


def test_trees_by_pytorchs_names():
    from cygrad.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

    tree = {"a": [1, (2, 3)], "b": None}
    leaves, form = tree_flatten(tree)
    assert leaves == tree_leaves(tree) == [1, 2, 3, None]
    assert tree_unflatten([4, 5, 6, 7], form) == {"a": [4, (5, 6)], "b": 7}
    assert tree_map(lambda x, y: (x, y), (1, [2]), (3, [4])) == ((1, 3), [(2, 4)])
    with pytest.raises(ValueError, match="Node arity mismatch"):
        tree_map(max, (1, 2), (1,))
    with pytest.raises(ValueError, match="`leaves` has length 1 but .* that holds 4 items"):
        tree_unflatten([1], form)
