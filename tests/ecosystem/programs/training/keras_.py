"""Keras with PyTorch as its backend: a classifier and a network of recurrent cells and attention, trained and saved."""

import os
import tempfile
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(512, 20)).astype("float32")
y = (x[:, :5].sum(1) > 0).astype("int64")
model = keras.Sequential(
    [
        keras.Input((20,)),
        layers.Dense(32, activation="relu"),
        layers.BatchNormalization(),
        layers.Dropout(0.1),
        layers.Dense(2, activation="softmax"),
    ]
)
model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy", metrics=["accuracy"])
losses = model.fit(x, y, epochs=4, batch_size=64, verbose=0).history["loss"]
accuracy = model.evaluate(x, y, verbose=0)[1]
print("classifier", losses[0], losses[-1], accuracy)
assert losses[-1] < 0.5 * losses[0] and accuracy > 0.9

words = rng.integers(0, 50, (64, 10))
labels = words[:, 0] % 4
taken = keras.Input((10,), dtype="int32")
embedded = layers.Embedding(50, 16)(taken)
attended = layers.LayerNormalization()(layers.MultiHeadAttention(2, 8)(embedded, embedded) + embedded)
last = layers.Concatenate()([layers.LSTM(12)(attended), layers.GRU(12)(attended)])
model = keras.Model(taken, layers.Dense(4)(last))
model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
losses = model.fit(words, labels, epochs=3, batch_size=16, shuffle=False, verbose=0).history["loss"]
print("sequences", losses[0], losses[-1])
assert losses[-1] < losses[0]

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder, "model.keras"))
    again = keras.models.load_model(Path(folder, "model.keras"))
assert np.array_equal(again.predict(words, verbose=0), model.predict(words, verbose=0))
