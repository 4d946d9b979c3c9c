"""`cygrad.save` writes what `torch.save` writes, and each library loads the other's files."""

import io
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()


def written(library, value, **options):
    """The bytes of a file."""
    stream = io.BytesIO()
    library.save(value, stream, **options)
    return stream.getvalue()


def in_torch(value, **options):
    """An object that cygrad saves and PyTorch loads."""
    return torch.load(io.BytesIO(written(cygrad, value, **options)))


def same(ours, theirs):
    assert type(theirs) is torch.Tensor or isinstance(theirs, torch.nn.Parameter)
    assert str(ours.dtype) == str(theirs.dtype) and ours.shape == tuple(theirs.shape)
    assert ours.requires_grad == theirs.requires_grad and ours.stride() == theirs.stride()
    assert (ours.is_conj(), ours.is_neg()) == (theirs.is_conj(), theirs.is_neg())
    a, b = ours.detach().resolve_conj().resolve_neg(), theirs.detach().resolve_conj().resolve_neg()
    if "bfloat16" in str(a.dtype):
        a, b = a.float(), b.float()
    np.testing.assert_array_equal(a.numpy(), b.numpy())


# --- The same bytes --------------------------------------------------------------------------------------


def views(library):
    x = library.arange(6.0)
    return {"all": x, "part": x[1:3], "turned": x.view(2, 3).T, "wide": x[:1].expand(4), "none": x[6:]}


def kinds(library):
    tensors = {name: library.ones(3).to(getattr(library, name)) for name in DTYPES}
    return tensors | {"0-dim": library.tensor(3), "empty": library.zeros(0, 3)}


def flags(library):
    z, other = (library.ones(2, dtype=library.complex64) for _ in range(2))
    parameter = library.nn.Parameter(library.ones(1))
    parameter.bar = 2
    marked = library.ones(2)
    marked.foo = 1
    return [
        z.conj(),
        other.conj().imag,
        library.ones(2, device="meta"),
        parameter,
        marked,
        library.nn.Parameter(library.ones(2), requires_grad=False),
        library.ones(2, requires_grad=True) * 2,
        library.nn.Buffer(library.ones(2), persistent=False),
        library.nn.UninitializedParameter(),
    ]


def plain(library):
    nested = OrderedDict(a=1)
    nested._metadata = OrderedDict({"": {"version": 1}})
    return [1, 2.5, "x", None, 10**30, (1, 2, 3, 4), {1}, b"\0\xff", 1j, nested, library.Size([1, 2]), library.float16]


def storages(library):
    return [library.ones(2).untyped_storage(), library.arange(3)._typed_storage(), library.strided]


def of_optimizer(library):
    parameter = library.nn.Parameter(library.ones(2))
    optimizer = library.optim.AdamW([parameter])
    (parameter * 2).sum().backward()
    optimizer.step()
    schedule = library.optim.lr_scheduler.StepLR(optimizer, 2)
    return {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}


def of_module(library):
    return library.nn.BatchNorm1d(3).state_dict()


CASES = [views, kinds, flags, plain, storages, of_optimizer, of_module]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", [2, 3])
def test_the_same_bytes(case, protocol):
    """Both libraries write the same file, but for its identification.

    In later protocols they differ in which strings count as one object.
    """
    ours, theirs = (written(library, case(library), pickle_protocol=protocol) for library in (cygrad, torch))
    place = theirs.index(b"archive/.data/serialization_id")
    assert ours[:place] == theirs[:place] and len(ours) == len(theirs)


def test_the_folder_in_the_file_bears_its_name(tmp_path):
    for name in ("model.pt", "a.b.ckpt", "x"):
        for library in (cygrad, torch):
            library.save(library.ones(2), tmp_path / name)
            assert zipfile.ZipFile(tmp_path / name).namelist()[0] == f"{name.rpartition('.')[0] or name}/data.pkl"
            assert torch.load(tmp_path / name).tolist() == cygrad.load(tmp_path / name).tolist() == [1, 1]


# --- What PyTorch loads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [views, kinds])
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_tensors_in_torch(case, options):
    ours = case(cygrad)
    if options:  # PyTorch itself does not read these from the old format
        ours = {name: x for name, x in ours.items() if not name.startswith("uint") or name == "uint8"}
    theirs = in_torch(ours, **options)
    assert list(ours) == list(theirs)
    for name in ours:
        same(ours[name], theirs[name])


def test_memory_is_shared_in_torch():
    x = cygrad.arange(6.0)
    parts = [x[2:4].detach(), x[3:6].data, x, x[0:1].detach()]  # later ones need more of the memory
    found = in_torch(parts)
    found[2].mul_(10)
    assert [part.tolist() for part in found] == [[20, 30], [30, 40, 50], [0, 10, 20, 30, 40, 50], [0]]
    assert len(zipfile.ZipFile(io.BytesIO(written(cygrad, parts))).namelist()) == 7


def test_tied_weights_are_written_once():
    def tied(library):
        model = library.nn.Sequential(library.nn.Embedding(50, 8), library.nn.Linear(8, 50, bias=False))
        model[1].weight = model[0].weight
        return model

    state = tied(cygrad).state_dict()
    found = in_torch(state)
    assert found["0.weight"].data_ptr() == found["1.weight"].data_ptr()
    assert len(written(cygrad, state)) == len(written(torch, tied(torch).state_dict()))
    back = cygrad.load(io.BytesIO(written(torch, tied(torch).state_dict())))
    back["0.weight"].zero_()
    assert not back["1.weight"].any()


def test_unusual_memory_in_torch():
    grid = np.arange(24.0).reshape(4, 6)
    ours = [
        cygrad.from_numpy(grid[:, ::2]),
        cygrad.from_numpy(grid.T),
        cygrad.from_numpy(np.broadcast_to(np.float32(3), (2, 3)).copy()[:, :1]),
        cygrad.arange(4.0).flip(0),
    ]
    for a, b in zip(ours, in_torch(ours), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_part_of_an_array_is_written_without_the_rest():
    part = cygrad.from_numpy(np.arange(100_000.0)[10:20])
    assert len(written(cygrad, part)) == len(written(torch, torch.from_numpy(np.arange(100_000.0)[10:20])))


def test_types_that_disagree():
    for library in (cygrad, torch):
        x = library.ones(2)
        with pytest.raises(RuntimeError, match="^Cannot save multiple tensors or storages that view the same data as"):
            written(library, [x, x.view(library.int32)])


# --- What cygrad loads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_files_of_torch(case, options):
    found = cygrad.load(io.BytesIO(written(torch, case(torch), **options)), weights_only=case is not flags)
    again = in_torch(found) if case in (views, kinds) else None
    ours = case(cygrad)
    if isinstance(ours, dict):
        assert list(found) == list(ours)
    for name in again or ():
        same(found[name], case(torch)[name])
    if case in (plain,):
        assert found == ours
    if case is flags:
        assert [type(x) for x in found] == [type(x) for x in ours]
        assert [x.requires_grad for x in found] == [x.requires_grad for x in ours]
        assert found[0].is_conj() and found[1].is_neg() and found[2].is_meta
        assert found[3].bar == 2 and found[4].foo == 1 and found[7].persistent is False
    if case is storages:
        assert found[1].tolist() == [0, 1, 2] and found[0].nbytes() == 8


def test_files_as_if_from_cuda():
    """PyTorch's files of tensors on a GPU, made by changing the location in one of the CPU."""
    with zipfile.ZipFile(io.BytesIO(written(torch, {"w": torch.arange(3.0)}))) as file:
        program = file.read("archive/data.pkl").replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:0")
        records = {name: file.read(name) for name in file.namelist()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, data in {**records, "archive/data.pkl": program}.items():
            made.writestr(name, data)
    for options in ({"map_location": "cpu"}, {"map_location": {"cuda:0": "cpu"}}):
        assert cygrad.load(io.BytesIO(stream.getvalue()), **options)["w"].tolist() == [0, 1, 2]
        assert torch.load(io.BytesIO(stream.getvalue()), **options)["w"].tolist() == [0, 1, 2]
    for library in (cygrad, torch):
        with pytest.raises(RuntimeError, match="^Attempting to deserialize object on a CUDA device but torch.cuda.is_"):
            library.load(io.BytesIO(stream.getvalue()))


def test_numpy_where_it_is_allowed():
    value = {"a": np.arange(3.0), "b": np.float32(2)}
    core = np._core.multiarray
    names = [core._reconstruct, core.scalar, np.ndarray, np.dtype, type(np.dtype("f8")), type(np.dtype("f4"))]
    for source, target in ((torch, cygrad), (cygrad, torch)):
        content = written(source, value)
        with target.serialization.safe_globals(names):
            found = target.load(io.BytesIO(content))
        assert found["a"].tolist() == [0, 1, 2] and found["b"] == 2
        unsafe = [
            library.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(content)) for library in (source, target)
        ]
        assert sorted(unsafe[0]) == sorted(unsafe[1])
