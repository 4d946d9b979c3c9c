"""Sobol' sequences: points that fill the unit cube more evenly than random ones."""

from typing import Any

import numpy as np

import cygrad
from cygrad._core.graph.tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol' sequence in the unit cube of some dimension, PyTorch's for the same seed.

    dimension: from 1 to 21201. scramble: whether to mix the digits of the points at random, by a lower triangular
    matrix for each dimension and a shift, which makes estimates unbiased. seed: of that; None takes numbers from the
    default generator.

    The direction numbers are SciPy's; raises ImportError without it, ValueError for another dimension.

    >>> import cygrad as torch
    >>> torch.quasirandom.SobolEngine(dimension=2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    >>> engine = torch.quasirandom.SobolEngine(dimension=2)
    >>> engine.draw_base2(2).shape
    torch.Size([4, 2])
    >>> start = engine.reset()
    >>> ahead = engine.fast_forward(2)
    >>> engine.draw(1)
    tensor([[0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = cygrad.from_numpy(_direction_numbers(dimension, self.MAXBIT))
        self.shift = cygrad.zeros(dimension, dtype=cygrad.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next `n` points, of shape (n, dimension), in `dtype` or the default dtype; write them to `out`.

        Raises RuntimeError for a negative `n`, NotImplementedError if the dtype is not floating-point.
        """
        if not isinstance(n, int):
            raise TypeError(f"draw(): argument 'n' (position 1) must be int, not {type(n).__name__}")
        dtype = cygrad.get_default_dtype() if dtype is None else dtype
        begins = self.num_generated == 0
        points = self._points(n - begins, dtype) if n != 1 or not begins else None
        if points is None:
            points = self._first_point.to(dtype)
        elif begins:
            points = cygrad.cat((self._first_point.to(dtype), points), -2)
        self.num_generated += n
        if out is not None:
            out.resize_as_(points).copy_(points)
            return out
        return points

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next 2**m points. Raises ValueError unless there are a power of 2 of points then."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> "SobolEngine":
        """Begin the sequence again."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Skip the next `n` points."""
        steps = self._steps(n - (self.num_generated == 0))
        if steps.size:
            self.quasi.copy_(cygrad.from_numpy(steps[-1]))
        self.num_generated += n
        return self

    def _steps(self, n: int) -> Any:
        """Return the digits of the next `n` points after the current one, as integers, in an array (n, dimension)."""
        done = np.arange(n) + max(self.num_generated - 1, 0)
        bit = np.bitwise_count(done ^ (done + 1)) - 1  # the place of the lowest 0 among the bits of each number
        changes = self.sobolstate.numpy().T[bit]
        if n > 0:
            changes[0] ^= self.quasi.numpy()
        return np.bitwise_xor.accumulate(changes, axis=0)

    def _points(self, n: int, dtype: Any) -> Tensor:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}, {self.dimension}]")
        if not dtype.is_floating_point:
            raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{dtype.type_name}'")
        digits = self._steps(n)
        if n:
            self.quasi.copy_(cygrad.from_numpy(digits[-1]))
        return cygrad.from_numpy(digits).to(dtype) * 2.0**-self.MAXBIT

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = cygrad.Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shift = cygrad.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (shift * 2 ** cygrad.arange(bits)).sum(-1)
        matrices = cygrad.randint(2, (self.dimension, bits, bits), generator=generator).tril().numpy()
        matrices[:, range(bits), range(bits)] = 1
        places = np.arange(bits)[::-1]  # the first row and column belong to the highest digit
        digits = self.sobolstate.numpy()[:, None, :] >> places[:, None] & 1  # (dimension, digit, number)
        mixed = np.matmul(matrices.astype(np.float32), digits.astype(np.float32)).astype(np.int64) & 1
        self.sobolstate = cygrad.from_numpy((mixed << places[:, None]).sum(1))

    def __repr__(self) -> str:
        options = [f"dimension={self.dimension}"]
        if self.scramble:
            options.append("scramble=True")
        if self.seed is not None:
            options.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(options)})"


def _direction_numbers(dimension: int, bits: int) -> Any:
    """Return the direction numbers of Joe and Kuo for each dimension, an array (dimension, bits)."""
    try:
        from scipy.stats import qmc  # optional
    except ImportError:
        raise ImportError(
            "SobolEngine takes its direction numbers from SciPy, which is not installed\n  to fix it: pip install scipy"
        ) from None
    return qmc.Sobol(dimension, scramble=False, bits=bits)._sv.astype(np.int64)
