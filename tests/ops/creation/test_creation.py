"""Creating tensors: what the comparison with PyTorch cannot test, and the essentials of what it can."""

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.cpu.random import linspace
from helpers import fails

# --- Data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (1.5, torch.float32, ()),
        (2, torch.int64, ()),
        (True, torch.bool, ()),
        (1j, torch.complex64, ()),
        ([1, 2.5], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        ([[1, 2], [3, 4], [5, 6]], torch.int64, (3, 2)),
        ([], torch.float32, (0,)),
        ([[], []], torch.float32, (2, 0)),
        (range(4), torch.int64, (4,)),
        ([np.float64(1), 2.0], torch.float64, (2,)),
        ([np.int32(1), np.int32(2)], torch.int32, (2,)),
        (np.ones((2, 1), np.float16), torch.float16, (2, 1)),
        ([[np.ones(2)], [np.zeros(2)]], torch.float64, (2, 1, 2)),
    ],
)
def test_type_and_shape_of_data(data, dtype, shape):
    t = torch.tensor(data)
    assert (t.dtype, tuple(t.shape)) == (dtype, shape)
    expected = np.array(data) if t.numel() else np.zeros(shape)
    np.testing.assert_array_equal(t.numpy(), expected.astype(t.numpy().dtype))


def test_python_floats_take_the_default_type():
    torch.set_default_dtype(torch.float64)
    assert torch.tensor([1.0]).dtype is torch.float64
    assert torch.tensor([1j]).dtype is torch.complex128
    assert torch.zeros(1).dtype is torch.float64


def test_data_is_copied():
    array = np.zeros(3, np.float32)
    made = [torch.tensor(array), torch.tensor(torch.from_numpy(array).tolist())]
    array[:] = 1
    assert [t.sum().item() for t in made] == [0, 0]


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_copy_of_a_tensor_has_no_history():
    x = torch.ones(2, requires_grad=True)
    copy = torch.tensor(x * 2)
    assert copy.is_leaf and not copy.requires_grad and copy.tolist() == [2, 2]


def test_copying_a_tensor_warns_at_the_line():
    with pytest.warns(UserWarning, match="recommended to use sourceTensor.detach") as caught:
        torch.tensor(torch.ones(2))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("array", [np.arange(3)[::-1], np.array([1, 2], ">i4")])
def test_copies_take_arrays_that_can_not_be_shared(array):
    assert torch.tensor(array).tolist() == array.tolist()
    assert torch.as_tensor(array).tolist() == array.tolist()


def test_order_of_memory_is_kept():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert torch.tensor(array).stride() == (1, 2)
    assert torch.tensor(array, dtype=torch.float32).stride() == (1, 2)
    assert torch.tensor(np.broadcast_to(1.0, (2, 3))).stride() == (3, 1)


class Growing(list):
    """A list that grows when its length is queried."""

    def __len__(self):
        self.append(0.0)
        return 2


class Deep(float):
    """A number that clears the list containing it when it is read."""

    def __new__(cls, victim):
        number = super().__new__(cls, 1.0)
        number.victim = victim
        return number

    def __float__(self):
        self.victim.clear()
        return 1.0


def test_hostile_sequences_do_no_harm():
    with pytest.raises((ValueError, TypeError)):
        torch.tensor(Growing([1.0, 2.0]))
    victim = []
    victim.extend([1.0, Deep(victim), 3.0, 4.0])
    outcome = None
    try:
        outcome = torch.tensor(victim, dtype=torch.float32).tolist()
    except (ValueError, IndexError):
        outcome = "error"
    assert outcome == "error" or len(outcome) == 4
    circle = [1.0]
    circle.append(circle)
    with pytest.raises((TypeError, ValueError)):
        torch.tensor(circle)
    deep = 1.0
    for _ in range(100_000):
        deep = [deep]
    with fails(ValueError, "too many dimensions 'list'"):
        torch.tensor(deep)
    while isinstance(deep, list):  # freeing it recursively would overflow the stack in old Pythons
        deep = deep[0]


@pytest.mark.parametrize(
    "data, error, line",
    [
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ([1.0, [2.0]], TypeError, "must be real number, not list"),
        ("abc", TypeError, "new(): invalid data type 'str'"),
        (["abc"], ValueError, "too many dimensions 'str'"),
        ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
        ({"a": 1}, RuntimeError, "Could not infer dtype of dict"),
        (2**63, ValueError, "Overflow when unpacking long long"),
        (
            [torch.ones(2), torch.ones(2)],
            ValueError,
            "only one element tensors can be converted to Python scalars",
        ),
    ],
)
def test_bad_data(data, error, line):
    with fails(error, line):
        torch.tensor(data)


def test_integers_do_not_require_grad():
    with pytest.raises(RuntimeError) as caught:
        torch.tensor([1, 2], requires_grad=True)
    first, hint = str(caught.value).split("\n")
    assert first == "Only Tensors of floating point and complex dtype can require gradients"
    assert "torch.int64" in hint and "[1.0, 2.0]" in hint


# --- Shared memory -----------------------------------------------------------------------------


def test_from_numpy_shares_memory_both_ways():
    array = np.zeros(3)
    t = torch.from_numpy(array)
    array[0] = 1
    t[1] = 2
    assert t.tolist() == array.tolist() == [1, 2, 0]


@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")
def test_from_numpy_keeps_its_shape_whatever_the_array_does():
    array = np.zeros((2, 3))
    t = torch.from_numpy(array)
    array.shape = (6,)
    t.numpy().shape = (3, 2)
    assert t.shape == (2, 3)


def test_read_only_memory_stays_read_only():
    array = np.arange(3.0)
    array.flags.writeable = False
    t = torch.from_numpy(array)
    assert (t + 1).tolist() == [1, 2, 3]  # no warning is raised
    with pytest.raises(RuntimeError, match="read-only") as caught:
        t += 1
    assert __file__ in str(caught.value) and array.tolist() == [0, 1, 2]


def test_memory_mapped_file(tmp_path):
    np.save(tmp_path / "weights.npy", np.arange(4, dtype=np.float32))
    mapped = np.load(tmp_path / "weights.npy", mmap_mode="r")
    t = torch.from_numpy(mapped)
    assert type(t.numpy()) is np.ndarray and t.sum().item() == 6


def test_types_of_one_size_are_one_dtype():
    for kind in (np.long, np.longlong, np.intp):
        t = torch.from_numpy(np.zeros(2, kind))
        assert t.dtype is torch.int64 and (t + torch.zeros(2, dtype=torch.int64)).tolist() == [0, 0]


def test_as_tensor_shares_where_it_can():
    array, t = np.zeros(2), torch.zeros(2)
    assert torch.as_tensor(t) is t
    assert torch.as_tensor(array).numpy().base is array
    assert torch.as_tensor(array, dtype=torch.float32).dtype is torch.float32


# --- Sizes, keywords ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn])
def test_ways_to_give_a_size(make):
    shapes = [make(2, 3), make((2, 3)), make([2, 3]), make(size=(2, 3)), make(torch.Size([2, 3]))]
    assert [tuple(t.shape) for t in shapes] == [(2, 3)] * 5
    assert make(torch.tensor(2), np.int64(3)).shape == (2, 3)
    assert make(()).shape == make([]).shape == ()
    with pytest.raises(TypeError):
        make(2.0)
    with pytest.raises(TypeError):
        make(2, 3, size=(2, 3))
    with pytest.raises(RuntimeError, match="negative"):
        make(2, -1)


@pytest.mark.parametrize(
    "make", [torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn, lambda n, **k: torch.arange(float(n), **k)]
)
def test_keywords(make):
    t = make(3, dtype=torch.float64, device="cpu", requires_grad=True, pin_memory=False, layout=torch.strided)
    assert t.dtype is torch.float64 and t.requires_grad and t.is_leaf
    out = torch.zeros(3)
    assert make(3, out=out) is out and out._version == 1
    grown = torch.zeros(0)
    assert make(3, out=grown) is grown and grown.shape == (3,)
    with fails(RuntimeError, "dtype Double does not match dtype of out parameter (Float)"):
        make(3, out=out, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
        make(3, device="cuda")


@pytest.mark.parametrize(
    "make",
    [
        *(torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn, torch.eye, torch.fft.fftfreq),
        lambda n, **k: torch.full((n,), 2.0, **k),
        lambda n, **k: torch.arange(float(n), **k),
        lambda n, **k: torch.linspace(0, 1, n, **k),
        lambda n, **k: torch.logspace(0, 1, n, **k),
        lambda n, **k: torch.normal(0.0, 1.0, (n,), **k),
    ],
)
def test_keywords_that_out_must_fit(make):
    shape = make(3).shape
    out = torch.full(shape, 7.0)
    for named, line in (
        ({"layout": torch.sparse_coo}, "layout Sparse does not match layout of out parameter (Strided)"),
        ({"device": "meta"}, "device type meta does not match device type of out parameter (cpu)"),
    ):
        with fails(RuntimeError, line):
            make(3, out=out, **named)
    with fails(TypeError, "...argument 'out' must be Tensor, not int"):
        make(3, out=3)
    with fails(TypeError, "...argument 'requires_grad' must be bool, not int"):
        make(3, out=out, requires_grad=1)
    assert out.tolist() == torch.full(shape, 7.0).tolist() and not out.requires_grad
    assert make(3, out=out, layout=torch.strided, device="cpu", requires_grad=True) is out
    assert out.requires_grad and out.is_leaf


@pytest.mark.parametrize("make", [torch.arange, torch.randperm, lambda n, **k: torch.randint(9, (n,), **k)])
def test_integers_written_to_out_do_not_require_grad(make):
    out = torch.full((3,), 7)
    with fails(RuntimeError, "Only Tensors of floating point and complex dtype can require gradients"):
        make(3, out=out, requires_grad=True)
    assert out.tolist() == [7, 7, 7]


def test_out_that_requires_grad_is_left_alone():
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.zeros(2, out=leaf)
    with torch.no_grad():
        torch.zeros(2, out=leaf)
    assert leaf.tolist() == [0, 0] and leaf.requires_grad


def test_what_is_made_in_inference_mode_belongs_there():
    with torch.inference_mode():
        made = [torch.zeros(1), torch.tensor(1.0), torch.arange(2), torch.rand(1), torch.ones_like(torch.zeros(1))]
    assert all(t.is_inference() for t in made)


# --- Ranges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(5,), (2, 7), (0, 10, 3), (5, 0, -2), (0, 1, 0.25), (1, 2, 0.3), (3, 3)])
def test_arange(bounds):
    found, expected = torch.arange(*bounds), np.arange(*bounds)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    assert found.dtype is (torch.int64 if expected.dtype.kind == "i" else torch.float32)


def test_arange_does_not_add_up_rounding():
    found = torch.arange(0, 1, 0.001, dtype=torch.float64)
    np.testing.assert_array_equal(found.numpy(), np.arange(1000) * 0.001)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("low, by", [(0.0, 1.0), (-3.7, 0.3), (1e30, -2.5e25), (0.1, 1e-9)])
def test_ranges_are_rounded_once(low, by, dtype):
    for count in (0, 1, 2, 7, 1000, 40_000):
        with np.errstate(over="ignore"):
            expected = (low + by * np.arange(count)).astype(dtype)
        if count:
            end = low + by * (count - 0.5)
            np.testing.assert_array_equal(torch.arange(low, end, by, dtype=getattr(torch, dtype)).numpy(), expected)
        found = linspace.steps_from(np, low, by, count, np.dtype(dtype))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("low, high, by", [(0, 2**31 - 1, 2**30), (5, 6, 10**9), (-(2**40), 2**40, 2**39), (3, 3, 1)])
def test_long_ranges_of_integers(low, high, by):
    assert torch.arange(low, high, by).tolist() == list(range(low, high, by))
    assert torch.arange(high, low, -by).tolist() == list(range(high, low, -by))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("low, high", [(0, 1), (-0.3, 0.7), (5, -5), (-3e38, 3e38), (2, 2), (0.0, np.inf), (np.nan, 1)])
def test_linspace_by_the_loop_is_that_by_numpy(low, high, dtype):
    for count in (1, 2, 3, 8, 9, 1000, 40_001):
        found = linspace.evenly_spaced(np, low, high, count, np.dtype(dtype))
        expected = linspace._evenly_by_library(np, low, high, count, np.dtype(dtype))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 101])
def test_linspace_hits_both_ends(steps):
    found = torch.linspace(-0.3, 0.7, steps, dtype=torch.float64).numpy()
    np.testing.assert_allclose(found, np.linspace(-0.3, 0.7, steps), rtol=1e-12, atol=1e-15)
    if steps > 1:
        assert found[0] == -0.3 and found[-1] == 0.7


def test_logspace_and_eye():
    np.testing.assert_allclose(torch.logspace(-1, 2, 4).numpy(), [0.1, 1, 10, 100], rtol=1e-6)
    np.testing.assert_array_equal(torch.eye(2, 3).numpy(), np.eye(2, 3))


# --- Like another tensor -----------------------------------------------------------------------


def test_like_keeps_type_shape_and_order_of_memory():
    x = torch.zeros(2, 3, 4, dtype=torch.float64).permute(2, 0, 1)
    for t in (torch.ones_like(x), torch.empty_like(x), torch.full_like(x, 2), torch.rand_like(x)):
        assert (t.shape, t.stride(), t.dtype) == (x.shape, x.stride(), x.dtype)
    assert torch.ones_like(x, memory_format=torch.contiguous_format).is_contiguous()
    assert torch.zeros_like(torch.ones(2, requires_grad=True)).requires_grad is False
    assert torch.zeros_like(x.expand(4, 2, 3)[..., :1].expand(4, 2, 5)).stride() == (10, 5, 1)


def test_new_methods_take_the_type():
    x = torch.zeros(2, dtype=torch.float64)
    assert x.new_zeros(2, 3).dtype is x.new_tensor([1, 2]).dtype is x.new_full((1,), 7).dtype is x.dtype
    assert x.new_ones(2, dtype=torch.int32).dtype is torch.int32
    assert x.new_empty((4,)).shape == (4,)


def test_meshgrid_makes_views_with_history():
    x, y = torch.arange(2.0).requires_grad_(), torch.arange(3.0)
    rows, columns = torch.meshgrid(x, y, indexing="ij")
    assert rows.shape == columns.shape == (2, 3) and rows.data_ptr() == x.data_ptr()
    (rows * columns).sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.parametrize("make", [torch.Tensor, torch.FloatTensor, torch.ones(2).new])
def test_legacy_constructors_have_their_own_device(make):
    assert make(2, device="cpu").shape == (2,)
    for device in ("cuda", "meta"):
        expected = f"legacy constructor expects device type: cpu but device type: {device} was passed"
        with pytest.raises(RuntimeError, match=expected):
            make(2, device=device)


@pytest.mark.parametrize("error", [TypeError, ValueError, KeyError, IndexError])
def test_sequences_without_a_first_element(error):
    class Sequence:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            raise error("no element")

    with pytest.raises(ValueError, match="could not determine the shape of object type 'Sequence'"):
        torch.tensor(Sequence())


def test_scalars_of_numpy_cannot_be_aliased():
    assert torch.asarray(np.float32(1)).item() == 1
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars. Either remove copy=False"):
        torch.asarray(np.float32(1), copy=False)


def test_types_and_methods_of_one_dtype_refuse_others():
    x, whole = torch.ones(2), torch.tensor([1, 2])
    assert x.new(x) is not x and x.new(x).tolist() == [1, 1]
    for make in (x.new, torch.FloatTensor):
        with pytest.raises(TypeError, match=r"expected TensorOptions\(dtype=float, .*\(got TensorOptions\(dtype=long"):
            make(whole)


def test_types_of_one_dtype_have_no_subclasses():
    with pytest.raises(TypeError, match=r"type 'torch.FloatTensor' is not an acceptable base type"):
        type("Own", (torch.FloatTensor,), {})


@pytest.mark.parametrize("make", [torch.Tensor, torch.FloatTensor, torch.ones(2).new])
def test_legacy_constructors_take_no_device_beside_a_tensor(make):
    with pytest.raises(RuntimeError, match="^Legacy tensor constructor of the form"):
        make(torch.ones(2), device="cpu")


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor])
def test_lists_that_contain_themselves(make):
    itself = [0]
    itself.append(itself)
    for data in (itself, [[1, 2], itself], (itself, 3)):
        with pytest.raises(TypeError, match="self-referential lists are incompatible"):
            make(data)


def test_lengths_whose_strides_overflow():
    for lengths in ((0, 4, 2**61), (5, 0, 2**62, 4)):
        with pytest.raises(RuntimeError, match="^Stride calculation overflowed"):
            torch.empty(lengths)
    for lengths in ((8, 8, 2**29, 2**29), (1, 2, 2**62), (2**62, 4, 0)):
        with pytest.raises(RuntimeError, match="^Storage size calculation overflowed"):
            torch.empty(lengths)


def test_read_only_buffers_warn():
    torch.frombuffer(bytearray(4), dtype=torch.int8)
    with pytest.warns(UserWarning, match="^The given buffer is not writable"):
        assert torch.frombuffer(bytes(4), dtype=torch.int8).tolist() == [0, 0, 0, 0]
