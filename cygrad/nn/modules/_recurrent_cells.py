"""Recurrent cells, which compute a single step."""

from __future__ import annotations

import math
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import init
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter


class RNNCellBase(Module):
    """Base of recurrent cells, with `weight_ih`, `weight_hh`, and `bias_ih` and `bias_hh` (or None).

    All are initialized uniformly in +-1/sqrt(hidden_size). `num_chunks` is the number of gates.

    >>> from cygrad import nn
    >>> m = nn.GRUCell(3, 4)
    >>> isinstance(m, nn.RNNCellBase), m.weight_ih.shape
    (True, torch.Size([12, 3]))
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        kwargs = {"device": device, "dtype": dtype}
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(cygrad.empty((rows, input_size), **kwargs))
        self.weight_hh = Parameter(cygrad.empty((rows, hidden_size), **kwargs))
        for name in ("bias_ih", "bias_hh"):
            if bias:
                setattr(self, name, Parameter(cygrad.empty(rows, **kwargs)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all parameters.

        >>> from cygrad import nn
        >>> m = nn.GRUCell(3, 4)
        >>> m.reset_parameters()
        >>> bool(m.weight_ih.abs().max() <= 0.5)
        True
        """
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _step(self, function: str, input: Tensor, hx: Any) -> Any:
        """Return the new state, or states if `hx` is a tuple, of a batch or one sample; None starts from zeros."""
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        states = hx if isinstance(hx, tuple) else (hx,)
        for i, state in enumerate(states):
            if state is not None and state.dim() not in (1, 2):
                what = f"hx[{i}]" if isinstance(hx, tuple) else "hidden"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {state.dim()}D instead")
        is_batched = input.dim() == 2
        x = input if is_batched else input.unsqueeze(0)
        zeros = cygrad.zeros(len(x), self.hidden_size, dtype=x.dtype, device=x.device) if None in states else None
        states = tuple(zeros if s is None else s if is_batched else s.unsqueeze(0) for s in states)
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        new = getattr(cygrad, function)(x, states if isinstance(hx, tuple) else states[0], *weights)
        if is_batched:
            return new
        return tuple(s.squeeze(0) for s in new) if isinstance(hx, tuple) else new.squeeze(0)

    def extra_repr(self) -> str:
        """Return the sizes and the settings that differ from the defaults.

        >>> from cygrad import nn
        >>> nn.GRUCell(3, 4).extra_repr()
        '3, 4'
        """
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += ", bias=False"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of a plain recurrent layer: h = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu.

    Shapes: input (N, input_size), state (N, hidden_size), or both without N.

    >>> import cygrad
    >>> cygrad.nn.RNNCell(10, 20)(cygrad.randn(3, 10)).shape
    torch.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the state that follows `hx` (zeros if None).

        The shapes are (N, input_size) and (N, hidden_size), or both without N. Raises RuntimeError for others.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.RNNCell(3, 4)(cygrad.ones(2, 3)).shape
        torch.Size([2, 4])
        """
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        state: Tensor = self._step(f"rnn_{self.nonlinearity}_cell", input, hx)
        return state


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: (h, c) from the input and (h, c).

    i, f, o = sigmoid and g = tanh of w_ih x + b_ih + w_hh h + b_hh; c = f c + i g, and h = o tanh(c).

    Shapes: input (N, input_size), states (N, hidden_size), or all without N.

    >>> import cygrad
    >>> h, c = cygrad.nn.LSTMCell(10, 20)(cygrad.randn(3, 10))
    >>> h.shape, c.shape
    (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the states that follow `hx` (zeros if None).

        The shapes are (N, input_size) and (N, hidden_size), or all without N. Raises RuntimeError for others.

        >>> import cygrad
        >>> from cygrad import nn
        >>> h, c = nn.LSTMCell(3, 4)(cygrad.ones(2, 3))
        >>> h.shape, c.shape
        (torch.Size([2, 4]), torch.Size([2, 4]))
        """
        states: tuple[Tensor, Tensor] = self._step("lstm_cell", input, (None, None) if hx is None else hx)
        return states


class GRUCell(RNNCellBase):
    """One step of a `GRU`: the new state from the input and the state.

    With r, z = sigmoid(w_ih x + b_ih + w_hh h + b_hh) and n = tanh(w_in x + b_in + r (w_hn h + b_hn)), the new state is
    (1 - z) n + z h.

    Shapes: input (N, input_size), state (N, hidden_size), or both without N.

    >>> import cygrad
    >>> cygrad.nn.GRUCell(10, 20)(cygrad.randn(3, 10)).shape
    torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the state that follows `hx` (zeros if None).

        The shapes are (N, input_size) and (N, hidden_size), or both without N. Raises RuntimeError for others.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.GRUCell(3, 4)(cygrad.ones(2, 3)).shape
        torch.Size([2, 4])
        """
        state: Tensor = self._step("gru_cell", input, hx)
        return state
