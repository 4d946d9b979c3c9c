"""PPO takes some steps on CartPole, is saved and loaded, and acts as before."""

import tempfile

import numpy as np
from stable_baselines3 import PPO

model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
before = [p.detach().clone() for p in model.policy.parameters()]
model.learn(256)
assert any(not a.equal(b) for a, b in zip(before, model.policy.parameters()))
with tempfile.TemporaryDirectory() as directory:
    model.save(f"{directory}/model")
    loaded = PPO.load(f"{directory}/model", device="cpu")
observation = np.array([0.01, -0.02, 0.03, 0.04], np.float32)
assert model.predict(observation, deterministic=True)[0] == loaded.predict(observation, deterministic=True)[0]
