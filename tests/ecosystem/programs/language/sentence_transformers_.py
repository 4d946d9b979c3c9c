"""Embeddings of sentences from a small BERT and a pooling layer learn by contrasts; similarity and search."""

import os
import tempfile

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from transformers import BertConfig, BertModel, BertTokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat", "runs", "sleeps", "car", "drives", "fast"]
TEXTS = ["a dog runs", "a dog runs fast", "a cat sleeps", "a car drives", "a car drives fast", "cat sleeps"]
torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(WORDS))
    BertTokenizer(os.path.join(folder, "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertModel(config).save_pretrained(folder)
    word = models.Transformer(folder)
    model = SentenceTransformer(
        modules=[word, models.Pooling(16), models.Dense(16, 8), models.Normalize()], device="cpu"
    )
loss_of = losses.MultipleNegativesRankingLoss(model)
pairs = [("a dog runs", "a dog runs fast"), ("a car drives", "a car drives fast"), ("a cat sleeps", "cat sleeps")]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model.eval()
values = []
for _ in range(6):
    features = [model.tokenize([pair[i] for pair in pairs]) for i in range(2)]
    optimizer.zero_grad()
    loss = loss_of(features, None)
    loss.backward()
    optimizer.step()
    values.append(loss.item())
print("losses", values[0], values[-1])
vectors = model.encode(TEXTS, convert_to_tensor=True)
scores = util.cos_sim(vectors, vectors)
print("similarities", *scores[0].tolist())
hits = util.semantic_search(vectors[:1], vectors, top_k=2)
print("found", [hit["corpus_id"] for hit in hits[0]], hits[0][1]["score"])
assert values[-1] < values[0] and model.encode("a dog").shape == (8,)
