"""Flows from noise to data are learned by conditional flow matching, of four kinds, and followed."""

import numpy as np
import torch
from torchcfm import conditional_flow_matching as matching
from torchcfm.models import MLP

np.random.seed(0)  # noqa: NPY002, which transport plans are sampled by
torch.manual_seed(0)
kinds = (
    matching.ConditionalFlowMatcher,
    matching.ExactOptimalTransportConditionalFlowMatcher,
    matching.TargetConditionalFlowMatcher,
    matching.VariancePreservingConditionalFlowMatcher,
)
for kind in kinds:
    matcher, model = kind(sigma=0.1), MLP(dim=2, w=16, time_varying=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        start, end = torch.randn(64, 2), torch.randn(64, 2) * 0.2 + torch.tensor([3.0, 0.0])
        t, place, direction = matcher.sample_location_and_conditional_flow(start, end)
        loss = (model(torch.cat([place, t[:, None]], 1)) - direction).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(kind.__name__, losses[0], losses[-1])
    assert losses[-1] < 0.8 * losses[0]
