"""A small, untrained Whisper: the spectrogram of a tone, greedy and beam decoding, and a step of training."""

import numpy as np
import torch
import whisper
from torch.nn import functional as F
from whisper.model import ModelDimensions, Whisper

torch.manual_seed(0)
sizes = {"n_audio_state": 32, "n_audio_head": 2, "n_audio_layer": 2, "n_text_state": 32, "n_text_head": 2}
model = Whisper(
    ModelDimensions(n_mels=80, n_audio_ctx=1500, n_vocab=51865, n_text_ctx=64, n_text_layer=2, **sizes)
).eval()
for parameter in model.parameters():
    torch.nn.init.normal_(parameter, 0, 0.05)
tone = np.sin(np.arange(48000) * 0.05).astype("float32")
mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(tone))
print("spectrogram", mel.mean().item(), mel.std().item())
for options in ({}, {"beam_size": 3}):
    how = whisper.DecodingOptions(language="en", without_timestamps=True, fp16=False, sample_len=6, **options)
    result = model.decode(mel, how)
    assert len(result.tokens) <= 6
    print("decoded", result.avg_logprob)

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens, following = torch.tensor([[50258, 50259, 50359]]), torch.tensor([1, 2, 3])
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(mel[None], tokens)[0], following)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < losses[0]
