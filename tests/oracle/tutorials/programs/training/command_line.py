"""A script as in PyTorch's examples: options, loaders, schedules, averaging, resuming with states of all generators."""

import argparse
import io
import os
import random
import tempfile
import warnings
from enum import Enum

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.parallel
import torch.optim as optim
import torch.utils.data
import torch.utils.data.distributed
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR, StepLR
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.bn = nn.BatchNorm2d(4)
        self.dropout1 = nn.Dropout2d(0.25)
        self.fc1 = nn.Linear(36, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv1(x))), 2)
        x = F.relu(self.fc1(torch.flatten(self.dropout1(x), 1)))
        return F.log_softmax(self.fc2(x), dim=1)


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter:
    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name, self.fmt, self.summary_type = name, fmt, summary_type
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val, self.sum, self.count = val, self.sum + val * n, self.count + n
        self.avg = self.sum / self.count

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float32)
        self.sum, self.count = total.tolist()
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk, batch_size = max(topk), target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / batch_size) for k in topk]


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    losses, top1, top2 = (AverageMeter(n, ":6.2f") for n in ("Loss", "Acc@1", "Acc@2"))
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        acc1, acc2 = accuracy(output, target, topk=(1, 2))
        losses.update(loss.item(), data.size(0))
        top1.update(acc1[0], data.size(0))
        top2.update(acc2[0], data.size(0))
        if batch_idx % args.log_interval == 0:
            done = 100.0 * batch_idx / len(loader)
            print(
                f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(loader.dataset)} ({done:.0f}%)]\tLoss: {loss:.4f}"
            )
    losses.all_reduce()
    print(losses, top1, top2)


def test(model, device, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(dim=1, keepdim=True).eq(target.view_as(output.argmax(1, True))).sum().item()
    print(
        f"\nTest set: Average loss: {test_loss / len(loader.dataset):.4f}, Accuracy: {correct}/{len(loader.dataset)}\n"
    )


def states():
    return {"python": random.getstate(), "numpy": np.random.get_state()[1][:3].tolist(), "torch": torch.get_rng_state()}


def main():
    parser = argparse.ArgumentParser(description="example")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--no-accel", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=2)
    args = parser.parse_args([])
    use_accel = not args.no_accel and torch.accelerator.is_available()
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    device = torch.accelerator.current_accelerator() if use_accel else torch.device("cpu")
    g = torch.Generator()
    g.manual_seed(0)
    images, labels = torch.rand(24, 1, 8, 8), torch.randint(3, (24,))
    train_set = torch.utils.data.TensorDataset(images, labels)
    sampler = None
    loader = torch.utils.data.DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=(sampler is None),
        num_workers=0,
        pin_memory=use_accel,
        generator=g,
    )
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    print(args, device.type, next(model.parameters()).device, optimizer)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pth.tar")
        for epoch in range(1, args.epochs + 1):
            train(args, model, device, loader, optimizer, epoch)
            test(model, device, loader)
            scheduler.step()
            if epoch == 2:
                checkpoint = {
                    "epoch": epoch,
                    "state_dict": model.state_dict(),
                    "best_acc1": torch.tensor(3.5),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "rng": torch.get_rng_state(),
                    "generator": g.get_state(),
                }
                torch.save(checkpoint, path)
        again = torch.load(path, map_location=torch.device("cpu"), weights_only=True)
        fresh = Net()
        fresh.load_state_dict(again["state_dict"])
        resumed = optim.Adadelta(fresh.parameters(), lr=0.3)
        resumed.load_state_dict(again["optimizer"])
        follow = StepLR(resumed, step_size=1, gamma=args.gamma)
        follow.load_state_dict(again["scheduler"])
        torch.set_rng_state(again["rng"])
        g.set_state(again["generator"])
        print(again["epoch"], resumed.param_groups[0]["lr"], follow.get_last_lr(), list(again))
        train(args, fresh, device, loader, resumed, 3)
        print(max((a - b).abs().max().item() for a, b in zip(fresh.parameters(), model.parameters())))
    print({k: type(v).__name__ for k, v in states().items()}, states()["torch"].dtype, states()["torch"].shape)
    averaged = AveragedModel(model)
    sgd = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    swa = SWALR(sgd, anneal_strategy="cos", anneal_epochs=2, swa_lr=0.01)
    plan = SequentialLR(sgd, [LinearLR(sgd, 0.1, total_iters=2), CosineAnnealingLR(sgd, 3)], milestones=[2])
    for epoch in range(5):
        for data, target in loader:
            sgd.zero_grad()
            F.nll_loss(model(data), target).backward()
            sgd.step()
        if epoch > 2:
            averaged.update_parameters(model)
            swa.step()
        else:
            plan.step()
        print(epoch, f"{sgd.param_groups[0]['lr']:.5f}", plan.get_last_lr())
    update_bn(loader, averaged)
    print(averaged.n_averaged, averaged.module.bn.running_mean, averaged.module.bn.num_batches_tracked)
    test(averaged, device, loader)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel = torch.nn.DataParallel(model)
    buffer = io.BytesIO()
    torch.save(parallel.state_dict(), buffer)
    buffer.seek(0)
    names = list(torch.load(buffer))
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state := dict.fromkeys(names), "module.")
    print(names[:2], list(state)[:2], torch.equal(parallel.eval()(images), model.eval()(images)))


if __name__ == "__main__":
    main()
