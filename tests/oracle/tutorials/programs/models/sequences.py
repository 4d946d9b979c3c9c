"""Names of languages by recurrent networks, tags by LSTMs with and without a CRF, embeddings of words, bags of words."""

import string
import time
import unicodedata

import torch
import torch.autograd as autograd
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from shared import told
from torch.utils.data import DataLoader, Dataset, random_split

letters = string.ascii_letters + " .,;'"
NAMES = {"Irish": ["O'Neal", "Ahearn"], "Polish": ["Ślusarski", "Adamczak"], "Greek": ["Close", "Kouros"]}
LANGUAGES = list(NAMES)


def ascii_of(s):
    plain = unicodedata.normalize("NFD", s)
    return "".join(c for c in plain if unicodedata.category(c) != "Mn" and c in letters)


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, len(letters))
    for i, letter in enumerate(line):
        tensor[i][0][letters.find(letter)] = 1
    return tensor


class NamesDataset(Dataset):
    def __init__(self):
        self.load_time = time.localtime
        self.items = [
            (n, line_to_tensor(ascii_of(n)), torch.tensor([i])) for i, k in enumerate(NAMES) for n in NAMES[k]
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        name, data, label = self.items[i]
        return label, data, LANGUAGES[label], name


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = F.tanh(self.i2h(input) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


torch.manual_seed(1)
names = NamesDataset()
train, test = random_split(names, [0.7, 0.3], generator=torch.Generator().manual_seed(2024))
print([name for *_, name in train], [name for *_, name in test], names[2][1].shape)
rnn, criterion, rate = RNN(len(letters), 12, 3), nn.NLLLoss(), 0.05
for epoch in range(3):
    total = 0
    for label, line, language, name in train:
        hidden = rnn.initHidden()
        rnn.zero_grad()
        for i in range(line.size()[0]):
            output, hidden = rnn(line[i], hidden)
        loss = criterion(output, label)
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-rate)
        total += loss.item()
    print(epoch, f"{total:.4f}")
top_n, top_i = output.topk(1)
print(LANGUAGES[top_i[0].item()], top_n, top_i.item(), rnn)
told(lambda: p.data.add_(-rate, p.grad.data))
confusion = torch.zeros(3, 3)
for label, line, language, name in names:
    confusion[label][top_i[0].item()] += 1
denominator = confusion.sum(dim=1, keepdim=True)
print(confusion / denominator)


class Tagger(nn.Module):
    def __init__(self, embedding_dim, hidden_dim, vocab_size, tagset_size):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim)
        self.hidden2tag = nn.Linear(hidden_dim, tagset_size)

    def forward(self, sentence):
        out, _ = self.lstm(self.word_embeddings(sentence).view(len(sentence), 1, -1))
        return F.log_softmax(self.hidden2tag(out.view(len(sentence), -1)), dim=1)


torch.manual_seed(1)
lstm = nn.LSTM(3, 3)
inputs = [torch.randn(1, 3) for _ in range(5)]
hidden = (torch.randn(1, 1, 3), torch.randn(1, 1, 3))
for i in inputs:
    out, hidden = lstm(i.view(1, 1, -1), hidden)
print(out.detach(), hidden[1], torch.cat(inputs).view(len(inputs), 1, -1).shape)
sentences = [("the dog ate the apple".split(), [0, 1, 2, 0, 1]), ("everybody read that book".split(), [1, 2, 0, 1])]
words = {}
for sentence, _ in sentences:
    for word in sentence:
        words.setdefault(word, len(words))
tagger = Tagger(6, 6, len(words), 3)
optimizer = optim.SGD(tagger.parameters(), lr=0.1)
ids = torch.tensor([words[w] for w in sentences[0][0]], dtype=torch.long)
with torch.no_grad():
    print(tagger(ids))
for _ in range(5):
    for sentence, tags in sentences:
        tagger.zero_grad()
        loss = nn.NLLLoss()(tagger(torch.tensor([words[w] for w in sentence])), torch.tensor(tags))
        loss.backward()
        optimizer.step()
print(loss, tagger(ids).argmax(1))
START, STOP = "<START>", "<STOP>"


def log_sum_exp(vec):
    score = vec[0, torch.max(vec, 1)[1].item()]
    broadcast = score.view(1, -1).expand(1, vec.size()[1])
    return score + torch.log(torch.sum(torch.exp(vec - broadcast)))


class BiLSTM_CRF(nn.Module):
    def __init__(self, vocab_size, tag_to_ix, embedding_dim, hidden_dim):
        super().__init__()
        self.hidden_dim, self.tag_to_ix, self.n = hidden_dim, tag_to_ix, len(tag_to_ix)
        self.word_embeds = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim // 2, num_layers=1, bidirectional=True)
        self.hidden2tag = nn.Linear(hidden_dim, self.n)
        self.transitions = nn.Parameter(torch.randn(self.n, self.n))
        self.transitions.data[tag_to_ix[START], :] = -10000
        self.transitions.data[:, tag_to_ix[STOP]] = -10000

    def features(self, sentence):
        hidden = (torch.randn(2, 1, self.hidden_dim // 2), torch.randn(2, 1, self.hidden_dim // 2))
        out, _ = self.lstm(self.word_embeds(sentence).view(len(sentence), 1, -1), hidden)
        return self.hidden2tag(out.view(len(sentence), self.hidden_dim))

    def forward_alg(self, feats):
        forward_var = torch.full((1, self.n), -10000.0)
        forward_var[0][self.tag_to_ix[START]] = 0.0
        for feat in feats:
            alphas = []
            for tag in range(self.n):
                emit = feat[tag].view(1, -1).expand(1, self.n)
                alphas.append(log_sum_exp(forward_var + self.transitions[tag].view(1, -1) + emit).view(1))
            forward_var = torch.cat(alphas).view(1, -1)
        return log_sum_exp(forward_var + self.transitions[self.tag_to_ix[STOP]])

    def score(self, feats, tags):
        score = torch.zeros(1)
        tags = torch.cat([torch.tensor([self.tag_to_ix[START]], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            score = score + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return score + self.transitions[self.tag_to_ix[STOP], tags[-1]]

    def loss(self, sentence, tags):
        feats = self.features(sentence)
        return self.forward_alg(feats) - self.score(feats, tags)

    def forward(self, sentence):
        feats, back = self.features(sentence), []
        forward_var = torch.full((1, self.n), -10000.0)
        forward_var[0][self.tag_to_ix[START]] = 0
        for feat in feats:
            next_var = forward_var + self.transitions
            best, pointers = next_var.max(1)
            forward_var = (best + feat).view(1, -1)
            back.append(pointers.tolist())
        terminal = forward_var + self.transitions[self.tag_to_ix[STOP]]
        tag = torch.argmax(terminal, 1).item()
        path = [tag]
        for pointers in reversed(back):
            tag = pointers[tag]
            path.append(tag)
        path.pop()
        return terminal[0][path[0]], path[::-1]


torch.manual_seed(1)
tags = torch.tensor([0, 1, 2, 0, 1])
crf = BiLSTM_CRF(len(words), {"B": 0, "I": 1, "O": 2, START: 3, STOP: 4}, 5, 4)
optimizer = optim.SGD(crf.parameters(), lr=0.01, weight_decay=1e-4)
with torch.no_grad():
    print(crf(ids))
for _ in range(6):
    crf.zero_grad()
    loss = crf.loss(ids, tags)
    loss.backward()
    optimizer.step()
print(loss, crf.transitions.grad[:3, :3])


class NGram(nn.Module):
    def __init__(self, vocab_size, embedding_dim, context_size):
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.linear1 = nn.Linear(context_size * embedding_dim, 16)
        self.linear2 = nn.Linear(16, vocab_size)

    def forward(self, inputs):
        embeds = self.embeddings(inputs).view((1, -1))
        return F.log_softmax(self.linear2(F.relu(self.linear1(embeds))), dim=1)


torch.manual_seed(1)
text = "when forty winters shall besiege thy brow and dig deep trenches in thy beauty field".split()
vocabulary = {word: i for i, word in enumerate(sorted(set(text)))}
ngrams = [([text[i - j - 1] for j in range(2)], text[i]) for i in range(2, len(text))]
model, losses = NGram(len(vocabulary), 10, 2), []
optimizer = optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    total = 0
    for context, target in ngrams:
        model.zero_grad()
        log_probs = model(torch.tensor([vocabulary[w] for w in context], dtype=torch.long))
        loss = nn.NLLLoss()(log_probs, torch.tensor([vocabulary[target]], dtype=torch.long))
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(round(total, 4))
print(losses, model.embeddings.weight[vocabulary["thy"]])
x = autograd.Variable(torch.ones(2), requires_grad=True)
print(x, x.data)


class TextClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def collate_batch(batch):
    labels, texts, offsets = [], [], [0]
    for label, line in batch:
        labels.append(int(label) - 1)
        texts.append(torch.tensor([vocabulary[w] for w in line], dtype=torch.int64))
        offsets.append(texts[-1].size(0))
    return (
        torch.tensor(labels, dtype=torch.int64),
        torch.cat(texts),
        torch.tensor(offsets[:-1]).cumsum(dim=0),
    )


torch.manual_seed(1)
lines = [(1 + i % 2, text[i : i + 2 + i % 3]) for i in range(8)]
loader = DataLoader(lines, batch_size=3, shuffle=True, collate_fn=collate_batch)
model, correct, count = TextClassifier(len(vocabulary), 6, 2), 0, 0
optimizer = optim.SGD(model.parameters(), lr=5)
scheduler = optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.1)
for epoch in range(2):
    for label, line, offsets in loader:
        optimizer.zero_grad()
        predicted = model(line, offsets)
        loss = nn.CrossEntropyLoss()(predicted, label)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        correct += (predicted.argmax(1) == label).sum().item()
        count += label.size(0)
    scheduler.step()
    print(f"{correct / count:8.3f} {loss:.4f}", scheduler.get_last_lr(), offsets)
