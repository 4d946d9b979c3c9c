"""Accelerate prepares a model, an optimizer and a loader, and trains with accumulation; state is saved and loaded."""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

set_seed(0)
x = torch.randn(64, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses = []
for _ in range(20):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach()).mean().item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.1 * losses[0]
with tempfile.TemporaryDirectory() as directory:
    accelerator.save_state(directory)
    before = accelerator.unwrap_model(model).weight.detach().clone()
    with torch.no_grad():
        accelerator.unwrap_model(model).weight.zero_()
    accelerator.load_state(directory)
assert accelerator.unwrap_model(model).weight.equal(before)
