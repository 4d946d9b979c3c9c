"""Attacks of foolbox by way of eagerpy: along gradients, by the smallest changes, and by noise."""

import eagerpy
import foolbox
import torch

torch.manual_seed(0)
images, labels = torch.rand(40, 4), torch.arange(40) % 2
images[:, 0] = 0.3 * images[:, 0] + 0.6 * labels
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
for _ in range(60):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(images), labels).backward()
    optimizer.step()
assert isinstance(eagerpy.astensor(images), eagerpy.PyTorchTensor)
model = foolbox.PyTorchModel(net.eval(), bounds=(0, 1))
accuracy = foolbox.accuracy(model, images, labels)
print("accuracy", accuracy)
attacks = [
    foolbox.attacks.FGSM(),
    foolbox.attacks.LinfPGD(steps=10),
    foolbox.attacks.L2DeepFoolAttack(steps=10),
    foolbox.attacks.L2CarliniWagnerAttack(binary_search_steps=2, steps=20),
    foolbox.attacks.LinfAdditiveUniformNoiseAttack(),
]
for attack in attacks:
    torch.manual_seed(0)
    _, clipped, success = attack(model, images, labels, epsilons=[0.0, 0.5])
    assert clipped[1].shape == images.shape and float(clipped[1].min()) >= 0
    print(type(attack).__name__, success.float().mean(-1).tolist(), (clipped[1] - images).abs().mean().item())
