"""Recurrent layers."""

from __future__ import annotations

import math
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import init
from cygrad.nn.modules._packed_sequence import PackedSequence
from cygrad.nn.modules._recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter
from cygrad.utils.warning import warn

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _reordered(state: Tensor, permutation: Tensor | None) -> Tensor:
    """Reorder the sequences of a state (layers, N, H)."""
    return state if permutation is None else state.index_select(1, permutation)


class RNNBase(Module):
    """Base of recurrent layers: weights per layer and direction, and the input checks.

    `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, with a projection `weight_hr_l0`; the same with suffix
    `_reverse` for the reverse direction, and with `l1`, ... for further layers. All are initialized uniformly in
    +-1/sqrt(hidden_size). `mode` is "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".

    >>> from cygrad import nn
    >>> m = nn.LSTM(3, 4)
    >>> isinstance(m, nn.RNNBase), [name for name, _ in m.named_parameters()]
    (True, ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0'])
    """

    _function: str

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings(dropout)
        if mode not in GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self._all_weights: list[list[str]] = []
        directions = 2 if bidirectional else 1
        width = proj_size or hidden_size
        gates = GATES[mode] * hidden_size
        for layer in range(num_layers):
            for direction in range(directions):
                shapes: dict[str, Any] = {
                    "weight_ih": (gates, width * directions if layer else input_size),
                    "weight_hh": (gates, width),
                }
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(cygrad.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def _check_settings(self, dropout: Any) -> None:
        if not 0 <= self.dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}"
            )
        for name in ("input_size", "hidden_size"):
            if not isinstance(getattr(self, name), int):
                raise TypeError(f"{name} should be of type int, got: {type(getattr(self, name)).__name__}")
        for name in ("bias", "batch_first"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} should be of type bool, got: {type(getattr(self, name)).__name__}")
        if self.input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    # Parameters

    _computed_names: tuple[str, ...] = ("_flat_weights_names", "_flat_weights")

    def _computed_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._computed_names}

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        own: dict[str, Any] = self._parameters  # the others are computed by a parametrization
        return [own[name] if name in own else getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Return the parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        """Reinitialize all parameters.

        They are drawn uniformly from [-b, b] with b = 1 / sqrt(hidden_size).

        >>> from cygrad import nn
        >>> m = nn.GRU(3, 4)
        >>> m.reset_parameters()
        >>> bool(m.weight_ih_l0.abs().max() <= 0.5)
        True
        """
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """No-op, for scripts that prepare weights for a GPU.

        >>> from cygrad import nn
        >>> nn.GRU(3, 4).flatten_parameters()
        """

    # Checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise RuntimeError if an input (padded or packed) has the wrong size, ValueError for a wrong dtype.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.GRU(3, 4)
        >>> m.check_input(cygrad.ones(5, 2, 3), None)
        >>> m.check_input(cygrad.ones(5, 2, 9), None)
        Traceback (most recent call last):
            ...
        RuntimeError: input.size(-1) must be equal to input_size. Expected 3, got 9
        """
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype and not cygrad.is_autocast_enabled("cpu"):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the shape of h0 for an input, padded or packed.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.GRU(3, 4, num_layers=2).get_expected_hidden_size(cygrad.ones(5, 2, 3), None)
        (2, 2, 4)
        """
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise RuntimeError if a state has the wrong shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.GRU(3, 4).check_hidden_size(cygrad.zeros(1, 2, 9), (1, 2, 4))
        Traceback (most recent call last):
            ...
        RuntimeError: Expected hidden size (1, 2, 4), got [1, 2, 9]
        """
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise RuntimeError if an input or state has the wrong shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.GRU(3, 4)
        >>> m.check_forward_args(cygrad.ones(5, 2, 3), cygrad.zeros(1, 2, 4), None)
        >>> m.check_forward_args(cygrad.ones(5, 2, 3), cygrad.zeros(1, 2, 9), None)
        Traceback (most recent call last):
            ...
        RuntimeError: Expected hidden size (1, 2, 4), got [1, 2, 9]
        """
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Reorder the sequences of a state.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.GRU(3, 1).permute_hidden(cygrad.tensor([[[1.0], [2.0]]]), cygrad.tensor([1, 0]))
        tensor([[[2.],
                 [1.]]])
        """
        return _reordered(hx, permutation)

    # Computation

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        """Return a zero initial state."""
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _begun(self, input: Tensor, hx: Any, batch_sizes: Tensor | None) -> Any:
        """Check the input, and the state if given; return the initial state (zeros if None)."""
        if hx is None:
            self.check_input(input, batch_sizes)
            return self._zeros(input, batch_sizes)
        self.check_forward_args(input, hx, batch_sizes)
        return hx

    def _check_states(self, hx: Any, dims: int) -> None:
        """Raise RuntimeError unless the states have the number of dimensions that matches the input."""
        if hx.dim() != dims:
            word = "batched 3-D" if dims == 3 else "unbatched 2-D"
            raise RuntimeError(f"For {word} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")

    def _with_batch(self, hx: Any) -> Any:
        return hx.unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _compute(self, x: Tensor, hx: Any, batch_sizes: Tensor | None) -> tuple[Tensor, Any]:
        """Return (out, last state) of a batch, padded or packed."""
        how = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        function = getattr(cygrad, self.mode.lower())
        hx = self._begun(x, hx, batch_sizes)
        if batch_sizes is None:
            out, *last = function(x, hx, *how, self.batch_first)
        else:
            out, *last = function(x, batch_sizes, hx, *how)
        return out, last[0] if len(last) == 1 else tuple(last)

    def _forward(self, input: Any, hx: Any) -> Any:
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            hx = hx if hx is None else self.permute_hidden(hx, order)
            out, last = self._compute(data, hx, batch_sizes)
            return PackedSequence(out, batch_sizes, order, back), self.permute_hidden(last, back)
        if input.dim() not in (2, 3):
            what = "tensor instead" if self.mode.startswith("RNN") else "instead"
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D {what}")
        is_batched = input.dim() == 3
        if hx is not None:
            self._check_states(hx, input.dim())
        batch_dim = 0 if self.batch_first else 1
        x = input if is_batched else input.unsqueeze(batch_dim)
        if hx is not None and not is_batched:
            hx = self._with_batch(hx)
        out, last = self._compute(x, hx, None)
        return (out, last) if is_batched else (out.squeeze(batch_dim), self._without_batch(last))

    def extra_repr(self) -> str:
        """Return the sizes and the settings that differ from the defaults.

        >>> from cygrad import nn
        >>> nn.GRU(3, 4, num_layers=2).extra_repr()
        '3, 4, num_layers=2'
        """
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        for name, default in {**defaults, "bidirectional": False}.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


def _require_no_projection(arguments: dict[str, Any]) -> None:
    if "proj_size" in arguments:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Plain recurrent layers: h = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu with `nonlinearity="relu"`.

    `RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
    bidirectional=False)`; see `LSTM` for the arguments and shapes. Called with (input, h0), returns (out, h_n).

    >>> import cygrad
    >>> out, h = cygrad.nn.RNN(10, 20, 2)(cygrad.randn(5, 3, 10))
    >>> out.shape, h.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _require_no_projection(kwargs)
        if len(args) > 3:
            *first, nonlinearity = args[:4]
            args = (*first, *args[4:])
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return (out, h_n): outputs of the last layer, final states of all; `hx` is the initial state (or zeros).

        `input` has the shape (T, N, input_size), (N, T, input_size) with `batch_first`, (T, input_size), or is packed.
        Raises RuntimeError for other sizes.

        >>> import cygrad
        >>> from cygrad import nn
        >>> out, h = nn.RNN(3, 4)(cygrad.ones(5, 2, 3))
        >>> out.shape, h.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
        """
        return self._forward(input, hx)


class GRU(RNNBase):
    """Gated recurrent units.

    `GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False)`; see
    `LSTM` for the arguments and shapes. r, z = sigmoid(w_ih x + b_ih + w_hh h + b_hh);
    n = tanh(w_in x + b_in + r (w_hn h + b_hn)); h = (1 - z) n + z h. Called with (input, h0), returns (out, h_n).

    >>> import cygrad
    >>> out, h = cygrad.nn.GRU(10, 20, bidirectional=True)(cygrad.randn(5, 3, 10))
    >>> out.shape, h.shape
    (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _require_no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return (out, h_n): outputs of the last layer, final states of all; `hx` is the initial state (or zeros).

        `input` has the shape (T, N, input_size), (N, T, input_size) with `batch_first`, (T, input_size), or is packed.
        Raises RuntimeError for other sizes.

        >>> import cygrad
        >>> from cygrad import nn
        >>> out, h = nn.GRU(3, 4)(cygrad.ones(5, 2, 3))
        >>> out.shape, h.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
        """
        return self._forward(input, hx)


class LSTM(RNNBase):
    """Long short-term memory.

    `LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    proj_size=0)`. i, f, o = sigmoid and g = tanh of w_ih x + b_ih + w_hh h + b_hh; c = f c + i g; h = o tanh(c), or
    w_hr o tanh(c) with `proj_size`. Layers are stacked, with `dropout` between them in training; `bidirectional` layers
    concatenate the outputs of both directions.

    Called with (input, (h0, c0)), returns (out, (h_n, c_n)). Shapes: input (T, N, input_size), or with `batch_first`
    (N, T, input_size), or (T, input_size), or a `PackedSequence`; out the same with hidden_size (or proj_size) per
    direction; states (layers * directions, N, hidden_size), h with proj_size. Raises RuntimeError for wrong sizes,
    ValueError for a dtype other than the weights'.

    >>> import cygrad
    >>> layer = cygrad.nn.LSTM(10, 20, num_layers=2)
    >>> out, (h, c) = layer(cygrad.randn(5, 3, 10))
    >>> out.shape, h.shape, c.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the shape of c0 for an input, padded or packed.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.LSTM(3, 4, num_layers=2).get_expected_cell_size(cygrad.ones(5, 2, 3), None)
        (2, 2, 4)
        """
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise RuntimeError if an input or a state has the wrong shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.LSTM(3, 4)
        >>> x, h = cygrad.ones(5, 2, 3), cygrad.zeros(1, 2, 4)
        >>> m.check_forward_args(x, (h, h), None)
        >>> m.check_forward_args(x, (h, cygrad.zeros(1, 2, 9)), None)
        Traceback (most recent call last):
            ...
        RuntimeError: Expected hidden[1] size (1, 2, 4), got [1, 2, 9]
        """
        self.check_input(input, batch_sizes)
        text = "Expected hidden[{}] size {{}}, got {{}}"
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), text.format(0))
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), text.format(1))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Reorder the sequences of both states.

        >>> import cygrad
        >>> from cygrad import nn
        >>> h = cygrad.tensor([[[1.0], [2.0]]])
        >>> nn.LSTM(3, 1).permute_hidden((h, h), cygrad.tensor([1, 0]))[0]
        tensor([[[2.],
                 [1.]]])
        """
        return tuple(_reordered(state, permutation) for state in hx)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        state = super()._zeros(input, batch_sizes)
        return state, input.new_zeros(self.get_expected_cell_size(input, batch_sizes)) if self.proj_size else state

    def _check_states(self, hx: Any, dims: int) -> None:
        if hx[0].dim() != dims or hx[1].dim() != dims:
            word = "batched 3-D" if dims == 3 else "unbatched 2-D"
            raise RuntimeError(
                f"For {word} input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                "tensors"
            )

    def _with_batch(self, hx: Any) -> Any:
        return tuple(state.unsqueeze(1) for state in hx)

    def _without_batch(self, hx: Any) -> Any:
        return tuple(state.squeeze(1) for state in hx)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return (out, (h_n, c_n)): outputs of the last layer, final states of all; `hx` are the initial ones.

        `input` has the shape (T, N, input_size), (N, T, input_size) with `batch_first`, (T, input_size), or is packed.
        Raises RuntimeError for other sizes.

        >>> import cygrad
        >>> from cygrad import nn
        >>> out, (h, c) = nn.LSTM(3, 4)(cygrad.ones(5, 2, 3))
        >>> out.shape, h.shape, c.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]), torch.Size([1, 2, 4]))
        """
        return self._forward(input, hx)
