"""A LightningModule is fitted by the Trainer, with validation and a checkpoint."""

import tempfile

import pytorch_lightning as pl
import torch

pl.seed_everything(0, verbose=False)
x = torch.randn(64, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]])


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.losses = []

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        self.log("validation", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
model = Model()
with tempfile.TemporaryDirectory() as directory:
    trainer = pl.Trainer(
        max_epochs=15, accelerator="cpu", devices=1, logger=False, default_root_dir=directory,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model, loader, loader)
    trainer.save_checkpoint(f"{directory}/model.ckpt")
    again = Model.load_from_checkpoint(f"{directory}/model.ckpt", weights_only=False)
print("losses", model.losses[0], model.losses[-1])
assert model.losses[-1] < 0.2 * model.losses[0]
assert again.layer.weight.equal(model.layer.weight)
