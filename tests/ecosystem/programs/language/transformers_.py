"""BERT from a configuration learns to tell two sentences apart, and is saved and loaded."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=2,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(0, 50, (8, 12), generator=torch.Generator().manual_seed(1))
labels = torch.arange(8) % 2
mask = torch.ones_like(tokens)
mask[:, 9:] = 0
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
model.eval()
with tempfile.TemporaryDirectory() as directory:
    model.save_pretrained(directory)
    again = BertForSequenceClassification.from_pretrained(directory).eval()
with torch.no_grad():
    assert torch.allclose(model(tokens, mask).logits, again(tokens, mask).logits, atol=1e-6)
