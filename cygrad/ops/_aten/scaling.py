"""What scalers of gradients do with the gradients and the scale."""

import cygrad
from cygrad.ops._aten.table import aten


@aten
def _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale):
    """Multiply each gradient of a list by `inv_scale`, in place, and set `found_inf` to 1 if one is infinite or NaN.

    >>> import cygrad as torch
    >>> grads, found = [torch.tensor([4.0, 8.0])], torch.zeros(1)
    >>> torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.25))
    >>> grads[0], found
    (tensor([1., 2.]), tensor([0.]))
    """
    _check_one("inv_scale", inv_scale, cygrad.float32)
    _check_one("found_inf", found_inf, cygrad.float32)
    with cygrad.no_grad():
        for grad in self:
            finite = grad.isfinite().all()
            found_inf.masked_fill_(finite.logical_not(), 1.0)
            grad.mul_(inv_scale.reshape(()))


@aten
def _amp_update_scale_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Multiply a scale by the backoff factor if `found_inf` is 1, by the growth factor after enough other steps.

    `growth_tracker`, of int32, counts the steps in between. Both change in place; the scale is returned.

    >>> import cygrad as torch
    >>> scale, steps = torch.tensor([8.0]), torch.zeros(1, dtype=torch.int32)
    >>> torch._amp_update_scale_(scale, steps, torch.ones(1), 2.0, 0.5, 2000)
    tensor([4.])
    """
    _check_one("growth_tracker", growth_tracker, cygrad.int32)
    _check_one("current_scale", self, cygrad.float32)
    _check_one("found_inf", found_inf, cygrad.float32)
    with cygrad.no_grad():
        if found_inf.item():
            growth_tracker.zero_()
            return self.mul_(scale_backoff_factor)
        growth_tracker.add_(1)
        if growth_tracker.item() == growth_interval:
            growth_tracker.zero_()
            if (grown := self * scale_growth_factor).isfinite().all():
                self.copy_(grown)
        return self


def _check_one(name, value, kind):
    if value.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if value.dtype is not kind:
        raise RuntimeError(f"{name} must be {'an int' if kind is cygrad.int32 else 'a float'} tensor.")
