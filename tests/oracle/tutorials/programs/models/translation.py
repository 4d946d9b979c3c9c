"""Translation by recurrent networks with attention, and by a transformer, after PyTorch's tutorials."""

import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

SOS, EOS, PAD, LENGTH = 0, 1, 2, 6
PAIRS = [
    ("je suis ici", "i am here"),
    ("tu es la", "you are there"),
    ("il est grand", "he is tall"),
    ("nous sommes la", "we are there"),
    ("je suis grand", "i am tall"),
]


class Lang:
    def __init__(self, sentences):
        self.index2word = {SOS: "SOS", EOS: "EOS", PAD: "PAD"}
        self.word2index, self.word2count = {}, {}
        for word in (word for sentence in sentences for word in sentence.split(" ")):
            self.word2count[word] = self.word2count.get(word, 0) + 1
            if word not in self.word2index:
                self.word2index[word] = len(self.index2word)
                self.index2word[len(self.index2word)] = word

    def indexes(self, sentence):
        return [self.word2index[word] for word in sentence.split(" ")] + [EOS]


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa, self.Ua, self.Va = (nn.Linear(hidden_size, n) for n in (hidden_size, hidden_size, 1))

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, hidden, target=None):
        decoder_input = torch.empty(encoder_outputs.size(0), 1, dtype=torch.long).fill_(SOS)
        outputs, attentions = [], []
        for i in range(LENGTH):
            context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
            output, hidden = self.gru(torch.cat((self.embedding(decoder_input), context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            if target is not None:
                decoder_input = target[:, i].unsqueeze(1)
            else:
                _, topi = output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden, torch.cat(attentions, dim=1)


random.seed(0)
torch.manual_seed(0)
french, english = Lang([a for a, _ in PAIRS]), Lang([b for _, b in PAIRS])
inputs, targets = torch.full((len(PAIRS), LENGTH), PAD), torch.full((len(PAIRS), LENGTH), PAD)
for row, (a, b) in enumerate(PAIRS):
    ids = french.indexes(a), english.indexes(b)
    inputs[row, : len(ids[0])], targets[row, : len(ids[1])] = torch.tensor(ids[0]), torch.LongTensor(ids[1])
print(inputs, targets.dtype, random.choice(PAIRS))
data = TensorDataset(inputs, targets)
loader = DataLoader(data, sampler=RandomSampler(data), batch_size=2)
encoder, decoder = EncoderRNN(len(french.index2word), 16), AttnDecoderRNN(16, len(english.index2word))
optimizers = [torch.optim.Adam(part.parameters(), lr=0.01) for part in (encoder, decoder)]
criterion = nn.NLLLoss(ignore_index=PAD)
for epoch in range(6):
    total = 0
    for source, target in loader:
        for optimizer in optimizers:
            optimizer.zero_grad()
        encoded, hidden = encoder(source)
        output, _, _ = decoder(encoded, hidden, target)
        loss = criterion(output.view(-1, output.size(-1)), target.view(-1))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        total += loss.item()
    print(f"{epoch} {total / len(loader):.4f}")
encoder.eval()
decoder.eval()
with torch.no_grad():
    encoded, hidden = encoder(inputs[:1])
    output, _, attention = decoder(encoded, hidden)
    _, topi = output.topk(1)
    print([english.index2word[i.item()] for i in topi.squeeze()], attention.shape, attention.sum(-1))


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, dropout, maxlen=10):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        embedding = torch.zeros((maxlen, emb_size))
        embedding[:, 0::2], embedding[:, 1::2] = torch.sin(pos * den), torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", embedding.unsqueeze(-2))

    def forward(self, tokens):
        return self.dropout(tokens + self.pos_embedding[: tokens.size(0), :])


class Seq2Seq(nn.Module):
    def __init__(self, size, sources, targets):
        super().__init__()
        self.transformer = nn.Transformer(size, 2, 1, 1, 32, 0.1)
        self.generator = nn.Linear(size, targets)
        self.source, self.target = nn.Embedding(sources, size), nn.Embedding(targets, size)
        self.positional = PositionalEncoding(size, 0.1)
        self.scale = math.sqrt(size)

    def forward(self, src, trg, src_mask, tgt_mask, src_padding, tgt_padding, memory_padding):
        source = self.positional(self.source(src.long()) * self.scale)
        target = self.positional(self.target(trg) * self.scale)
        return self.generator(
            self.transformer(source, target, src_mask, tgt_mask, None, src_padding, tgt_padding, memory_padding)
        )

    def encode(self, src, mask):
        return self.transformer.encoder(self.positional(self.source(src) * self.scale), mask)

    def decode(self, tgt, memory, mask):
        return self.transformer.decoder(self.positional(self.target(tgt) * self.scale), memory, mask)


def square_mask(n):
    mask = (torch.triu(torch.ones((n, n))) == 1).transpose(0, 1)
    return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))


def masks(src, tgt):
    return (
        torch.zeros((src.shape[0], src.shape[0])).type(torch.bool),
        square_mask(tgt.shape[0]).bool(),
        (src == PAD).transpose(0, 1),
        (tgt == PAD).transpose(0, 1),
    )


def collate(batch):
    ends = [torch.cat((torch.tensor([SOS]), torch.tensor(lang.indexes(text)))) for lang, text in batch]
    return pad_sequence(ends, padding_value=PAD)


torch.manual_seed(0)
model = Seq2Seq(16, len(french.index2word), len(english.index2word))
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005, betas=(0.9, 0.98), eps=1e-9)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
src, tgt = (collate([(lang, pair[i]) for pair in PAIRS]) for i, lang in enumerate((french, english)))
print(src.shape, square_mask(3))
for epoch in range(5):
    model.train()
    given, expected = tgt[:-1, :], tgt[1:, :]
    src_mask, tgt_mask, src_padding, tgt_padding = masks(src, given)
    logits = model(src, given, src_mask, tgt_mask, src_padding, tgt_padding, src_padding)
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, logits.shape[-1]), expected.reshape(-1))
    loss.backward()
    optimizer.step()
    print(epoch, f"{loss.item():.4f}")
model.eval()
with torch.no_grad():
    memory = model.encode(src[:, :1], torch.zeros(src.shape[0], src.shape[0]).type(torch.bool))
    words = torch.ones(1, 1).fill_(SOS).type(torch.long)
    for _ in range(4):
        out = model.decode(words, memory, square_mask(words.size(0)).bool())
        prob = model.generator(out.transpose(0, 1)[:, -1])
        _, word = torch.max(prob, dim=1)
        words = torch.cat([words, torch.ones(1, 1).type_as(src.data).fill_(word.item())], dim=0)
    print(words.flatten().tolist(), prob)
