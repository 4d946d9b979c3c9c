"""What type checkers say of models and training loops; see tensors.py."""

from collections.abc import Iterator
from typing import reveal_type

import cygrad as torch
from cygrad import Tensor, nn
from cygrad.utils.data import DataLoader, Dataset, TensorDataset


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.layer(x)).sum()  # error: Returning Any from function declared to return "Tensor"


class Squares(Dataset[tuple[Tensor, int]]):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.tensor(index**2), index

    def __len__(self) -> int:
        return 8


model = Model()
x = torch.ones(4, 2)
reveal_type(model(x))  # Any
reveal_type(model.forward(x))  # Tensor
reveal_type(model.layer.forward(x))  # Tensor
reveal_type(model.layer.weight)  # Tensor
reveal_type(model.parameters())  # Iterator[Parameter]
reveal_type(model.train().eval())  # Model
reveal_type(model.state_dict())  # dict[str, Any]
nn.Linear("2", 3)  # error: Argument 1 to "Linear" has incompatible type "str"; expected "int"
nn.Linear(2, 3, biass=True)  # error: Unexpected keyword argument "biass" for "Linear"

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
torch.optim.SGD(model.parameters(), rate=0.1)  # error: Unexpected keyword argument "rate" for "SGD"
for images, labels in DataLoader(TensorDataset(x, x), batch_size=2, shuffle=True):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    reveal_type(loss)  # Tensor
    loss.backward()
    optimizer.step()
    schedule.step()
reveal_type(Squares()[0])  # tuple[Tensor, int]
reveal_type(nn.utils.clip_grad_norm_(model.parameters(), 1.0))  # Tensor
reveal_type(torch.distributions.Normal(0.0, 1.0).sample())  # Tensor
reveal_type(torch.autograd.grad(x.sum(), [x]))  # tuple[Tensor, ...]


@torch.no_grad()
def evaluate(batches: Iterator[Tensor]) -> float:
    return float(sum(model(batch) for batch in batches))


reveal_type(evaluate)  # def (batches: Iterator[Tensor]) -> float
