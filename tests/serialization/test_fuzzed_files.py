"""Files with random changes, and pickles made to take long: they fail in time, and nothing in them is executed."""

import argparse
import io
import os
import pickle
import random
import sys
import time
import zipfile
from collections import Counter, OrderedDict

import pytest
from serialization.archives import Call, Name, archive, storage, tensor

import cygrad as torch

DAMAGED = (RuntimeError, ValueError, pickle.UnpicklingError, EOFError)


def written(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    return stream.getvalue()


def value():
    x = torch.arange(6.0)
    marked = torch.ones(2)
    marked.mark = "m"
    return {
        "model": torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).state_dict(),
        "tensors": [x, x[1:3], x.view(2, 3).T, torch.nn.Parameter(x), torch.ones(2, device="meta"), marked],
        "kinds": [torch.ones(2, dtype=torch.uint16), torch.tensor([True, False]), torch.tensor([1j]).conj()],
        "plain": [1, 2.5, None, True, "text", b"bytes", 10**30, (1, 2), {1, 2}, Counter("ab"), bytearray(b"c"), 1j],
        "torch": [torch.float16, torch.device("cpu"), torch.Size([1, 2]), torch.strided],
        "args": argparse.Namespace(a=1),
    }


def parts(content):
    """The records of a zip file by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def changed(content, draw):
    """Content with a few bytes changed, left out, repeated or put in."""
    new = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(new))
        kind = draw.randrange(4)
        if kind == 0:
            new[place] = draw.choice((0, 1, 0x28, 0x52, 0x62, 0x68, 0x71, 0x81, 0x93, 0xFF, draw.randrange(256)))
        elif kind == 1:
            del new[place : place + draw.randint(1, 9)]
        elif kind == 2:
            new[place:place] = new[place : place + draw.randint(1, 40)]
        else:
            other = draw.randrange(len(new))
            new[place:place] = new[other : other + draw.randint(1, 40)]
        new = new or bytearray(b".")
    return bytes(new)


@pytest.fixture
def watched():
    """The names of what Python executes that a file has no business with, from now on."""
    seen, active = [], [True]

    def hook(event, arguments):
        if active[0] and event in ("os.system", "subprocess.Popen", "exec", "open", "os.mkdir", "os.remove"):
            seen.append((event, arguments))

    torch.load(io.BytesIO(written({"a": torch.ones(1, dtype=torch.bfloat16)})))  # imports what loading needs
    sys.addaudithook(hook)
    yield seen
    active[0] = False


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_changed_pickles(protocol, seed, watched):
    whole = parts(written(value(), pickle_protocol=protocol))
    storages = {name.removeprefix("data/"): data for name, data in whole.items() if name.startswith("data/")}
    draw, damaged = random.Random(seed), 0
    begun = time.perf_counter()
    with torch.serialization.safe_globals([argparse.Namespace]):
        assert torch.load(io.BytesIO(archive(whole["data.pkl"], storages)))["args"].a == 1
        watched.clear()
        for _ in range(400):
            content = archive(changed(whole["data.pkl"], draw), storages)
            try:
                torch.load(io.BytesIO(content))
            except DAMAGED:
                damaged += 1
    assert damaged > 200 and not watched
    assert time.perf_counter() - begun < 60


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_changed_files(options, tmp_path):
    content, draw, damaged = written(value(), **options), random.Random(0), 0
    with torch.serialization.safe_globals([argparse.Namespace]):
        for _ in range(400):
            wrong = changed(content, draw)
            try:
                torch.load(io.BytesIO(wrong))
            except DAMAGED:
                damaged += 1
            (tmp_path / "x.pt").write_bytes(wrong)
            try:
                torch.load(tmp_path / "x.pt", mmap=True)
            except DAMAGED:
                pass
    assert damaged > 100


def test_truncated_files_of_the_old_format():
    content = written({"a": torch.arange(6.0), "b": [1, True]}, _use_new_zipfile_serialization=False)
    for length in range(len(content)):
        with pytest.raises(DAMAGED):
            torch.load(io.BytesIO(content[:length]))


def test_old_files_that_claim_more_than_they_hold():
    content = written(torch.arange(6.0), _use_new_zipfile_serialization=False)
    wrong = content.replace(b"K\x06N", b"J\xff\xff\xff\x7fN")
    assert wrong != content
    with pytest.raises(RuntimeError, match="too short for storage"):
        torch.load(io.BytesIO(wrong))


# A pickle can use one long value again and again. Each program below takes n bytes, and would do work of n squared.
COUNT = 100_000
LONG_LIST = b"](" + b"K\1" * COUNT + b"eq\0"
LONG_TUPLE = b"(" + b"K\1" * COUNT + b"tq\0"
LONG_NUMBER = b"\x8b" + COUNT.to_bytes(4, "little") + b"\1" * COUNT + b"q\0"
LONG_TEXT = b"X" + COUNT.to_bytes(4, "little") + b"a" * COUNT + b"q\0"
LONG_DICT = b"}(" + b"".join(b"X\4\0\0\0%04xK\1" % k for k in range(20_000)) + b"uq\0"
OVER_AND_OVER = {
    "sets of a list": LONG_LIST + b"](" + b"c__builtin__\nset\nh\0\x85R" * COUNT + b"e",
    "sizes of a tuple": LONG_TUPLE + b"](" + b"ctorch\nSize\nh\0\x85R" * COUNT + b"e",
    "a tuple as key": LONG_TUPLE + b"}" + b"h\0K\1s" * COUNT,
    "a number as key": LONG_NUMBER + b"}" + b"h\0K\1s" * COUNT,
    "bytes of a text": LONG_TEXT + b"](" + b"c_codecs\nencode\nh\0X\6\0\0\0latin1\x86R" * COUNT + b"e",
    "attributes of tensors": LONG_DICT
    + b"ctorch._tensor\n_rebuild_from_type_v2\nq\1(ctorch._utils\n_rebuild_meta_tensor_no_storage\n"
    b"ctorch\nTensor\n(ctorch\nfloat32\n))\x89tNtq\2](" + b"h\1(ctorch._utils\n_rebuild_parameter_with_state\n"
    b"ctorch\nTensor\n(h\1h\2R\x89)h\0tNtR" * 20_000 + b"e",
}


@pytest.mark.parametrize("program", OVER_AND_OVER.values(), ids=OVER_AND_OVER)
def test_pickles_take_no_longer_than_their_length_explains(program):
    begun = time.perf_counter()
    with pytest.raises(pickle.UnpicklingError, match="far more often"):
        torch.load(io.BytesIO(archive(b"\x80\2" + program + b".")))
    assert time.perf_counter() - begun < 20  # rather than hours


@pytest.mark.parametrize(
    "call",
    [
        Call(
            Name("torch._utils", "_rebuild_sparse_tensor"),
            (
                Call(Name("torch.serialization", "_get_layout"), ("torch.sparse_coo",)),
                (
                    tensor(storage("LongStorage", "0", 1), (1, 2**40), (0, 0)),
                    tensor(storage("LongStorage", "0", 1), (2**40,), (0,)),
                    Call(Name("torch", "Size"), ((3,),)),
                ),
            ),
        ),
        Call(
            Name("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"),
            (tensor(storage("LongStorage", "0", 1), (2**40,), (0,)), Name("torch", "float64"), "cpu", False),
        ),
    ],
)
def test_few_elements_that_seem_to_be_many_are_not_read(call):
    with pytest.raises(pickle.UnpicklingError, match="far more often"):
        torch.load(io.BytesIO(archive(call, {"0": bytes(8)})))


def test_sparse_tensors_of_many_elements_are_not_suspected():
    x = torch.sparse_coo_tensor(torch.arange(50_000)[None], torch.ones(50_000), (100_000,))
    assert torch.equal(torch.load(io.BytesIO(written(x))).to_dense(), x.to_dense())


def test_long_files_are_not_suspected():
    long = {"texts": ["x" * 1000] * 1000, "sets": [set(range(1000)) for _ in range(50)], "bytes": b"\xff" * 300_000}
    long["keys"] = {(k, "a", 1.5): k for k in range(30_000)}
    assert torch.load(io.BytesIO(written(long))) == long
    ordered = OrderedDict((str(k), torch.ones(1)) for k in range(2000))
    assert len(torch.load(io.BytesIO(written(ordered)))) == 2000


def test_nothing_is_left_behind(tmp_path):
    """The attack of the documentation: a pickle that calls a function as it is loaded."""

    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    for options in ({}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}):
        with pytest.raises(pickle.UnpicklingError):
            torch.load(io.BytesIO(written([Attack()], **options)))
    assert not os.listdir(tmp_path)
