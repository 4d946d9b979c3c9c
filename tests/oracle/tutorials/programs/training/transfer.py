"""Transfer learning with phases, knowledge distillation, adversarial images, and style transfer by L-BFGS."""

import copy
import os
from tempfile import TemporaryDirectory

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset, Subset


class Shapes(Dataset):
    """Images of bars, upright or level."""

    classes = ["level", "upright"]

    def __init__(self, n, transform=None):
        self.n, self.transform = n, transform

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if torch.is_tensor(index):
            index = index.tolist()
        image = torch.zeros(3, 8, 8)
        place = (slice(None), index % 8) if index % 2 == 0 else (slice(None), slice(None), index % 8)
        image[place] = 1.0
        return (self.transform(image) if self.transform else image), index % 2


def normalized(image):
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return image.sub(mean[:, None, None]).div_(std[:, None, None])


class BasicBlock(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.bn1(self.conv1(x)) + x)


class ResNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.layer1 = nn.Sequential(*(BasicBlock(4) for _ in range(2)))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(4, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        return self.fc(torch.flatten(self.avgpool(self.layer1(self.conv1(x))), 1))


torch.manual_seed(0)
datasets = {"train": Shapes(16, normalized), "val": Subset(Shapes(16, normalized), range(8, 16))}
loaders = {x: DataLoader(datasets[x], batch_size=4, shuffle=True, num_workers=0) for x in ["train", "val"]}
sizes = {x: len(datasets[x]) for x in ["train", "val"]}


def train_model(model, criterion, optimizer, scheduler, num_epochs=2):
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "best_model_params.pt")
        torch.save(model.state_dict(), path)
        best_acc = 0.0
        for epoch in range(num_epochs):
            for phase in ["train", "val"]:
                model.train() if phase == "train" else model.eval()
                running_loss, running_corrects = 0.0, 0
                for inputs, labels in loaders[phase]:
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        outputs = model(inputs)
                        _, preds = torch.max(outputs, 1)
                        loss = criterion(outputs, labels)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    running_loss += loss.item() * inputs.size(0)
                    running_corrects += torch.sum(preds == labels.data)
                if phase == "train":
                    scheduler.step()
                epoch_acc = running_corrects.double() / sizes[phase]
                print(f"{epoch} {phase} Loss: {running_loss / sizes[phase]:.4f} Acc: {epoch_acc:.4f}")
                if phase == "val" and epoch_acc > best_acc:
                    best_acc = epoch_acc
                    torch.save(model.state_dict(), path)
        print(f"Best val Acc: {best_acc:4f}", type(best_acc).__name__, optimizer.param_groups[0]["lr"])
        model.load_state_dict(torch.load(path, weights_only=True))
    return model


model = ResNet(10)
pretrained = copy.deepcopy(model.state_dict())
model.fc = nn.Linear(model.fc.in_features, 2)
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
teacher = train_model(model, nn.CrossEntropyLoss(), optimizer, lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1))
print(teacher.conv1.weight[0, 0])
frozen = ResNet(10)
frozen.load_state_dict(pretrained)
for param in frozen.parameters():
    param.requires_grad = False
frozen.fc = nn.Linear(4, 2)
optimizer = optim.SGD(frozen.fc.parameters(), lr=0.05, momentum=0.9)
train_model(frozen, nn.CrossEntropyLoss(), optimizer, lr_scheduler.ExponentialLR(optimizer, 0.5), 1)
print(torch.equal(frozen.conv1.weight, pretrained["conv1.weight"]), frozen.conv1.weight.grad, frozen.fc.bias)


class Light(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2))
        self.regressor = nn.Sequential(nn.Conv2d(2, 4, 1))
        self.classifier = nn.Linear(4, 2)

    def forward(self, x):
        features = self.regressor(self.features(x))
        return self.classifier(features.mean((2, 3))), features


torch.manual_seed(42)
student, T = Light(), 2
optimizer = optim.Adam(student.parameters(), lr=0.01)
teacher.eval()
hidden = {}
handle = teacher.layer1.register_forward_hook(lambda module, args, output: hidden.update(map=output.detach()))
for inputs, labels in DataLoader(datasets["train"], 8):
    optimizer.zero_grad()
    with torch.no_grad():
        teacher_logits = teacher(inputs)
    logits, features = student(inputs)
    soft_targets = nn.functional.softmax(teacher_logits / T, dim=-1)
    soft_prob = nn.functional.log_softmax(logits / T, dim=-1)
    soft = torch.sum(soft_targets * (soft_targets.log() - soft_prob)) / soft_prob.size()[0] * (T**2)
    divergence = nn.KLDivLoss(log_target=True, reduction="batchmean")(soft_prob, soft_targets.log()) * T**2
    cosine = nn.CosineEmbeddingLoss()(features.flatten(1), hidden["map"].flatten(1), target=torch.ones(inputs.size(0)))
    loss = 0.25 * soft + 0.75 * nn.CrossEntropyLoss()(logits, labels) + cosine + nn.MSELoss()(features, hidden["map"])
    loss.backward()
    optimizer.step()
    print(f"{soft:.4f} {divergence:.4f} {cosine:.4f} {loss:.4f}")
handle.remove()
print(f"{sum(p.numel() for p in student.parameters()):,}", f"{torch.norm(student.features[0].weight).item():.4f}")


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


for epsilon in (0, 0.1, 0.3):
    correct, examples = 0, []
    for data, target in DataLoader(Shapes(6), 1):
        data.requires_grad = True
        output = F.log_softmax(teacher(data), 1)
        init_pred = output.max(1, keepdim=True)[1]
        loss = F.nll_loss(output, target)
        teacher.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(data, epsilon, data.grad.data)
        final = teacher(perturbed).max(1, keepdim=True)[1]
        correct += final.item() == target.item()
        examples.append((init_pred.item(), final.item(), perturbed.squeeze().detach().cpu().numpy()))
    print(f"Epsilon: {epsilon} = {correct} / 6", examples[0][:2], float(examples[0][2].mean()))


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = gram_matrix(target).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


torch.manual_seed(0)
cnn = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(4, 4, 3, padding=1)).double().eval()
style, content = torch.rand(1, 3, 6, 6).double(), torch.rand(1, 3, 6, 6).double()
model, styles, contents, i = nn.Sequential(), [], [], 0
for layer in cnn.children():
    if isinstance(layer, nn.Conv2d):
        i += 1
    elif isinstance(layer, nn.ReLU):
        layer = nn.ReLU(inplace=False)
    model.add_module(f"{layer.__class__.__name__.lower()}_{i}", layer)
    if isinstance(layer, nn.Conv2d):
        styles.append(StyleLoss(model(style)))
        model.add_module(f"style_loss_{i}", styles[-1])
contents.append(ContentLoss(model(content)))
model.add_module("content_loss", contents[0])
print(model)
image = content.clone().requires_grad_(True)
model.eval()
model.requires_grad_(False)
optimizer, run = optim.LBFGS([image]), [0]
while run[0] <= 25:

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        model(image)
        loss = 1e5 * sum(sl.loss for sl in styles) + sum(cl.loss for cl in contents)
        loss.backward()
        run[0] += 1
        return loss

    loss = optimizer.step(closure)
print(run, f"{loss.item():.3f} {styles[0].loss.item():.2e}")
with torch.no_grad():
    image.clamp_(0, 1)
print(image.requires_grad, round(image.mean().item(), 4))
