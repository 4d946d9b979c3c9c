"""LoRA trains a small Llama, is saved, merged, and answers as before; other adapters take a step."""

import tempfile

import peft
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

config = LlamaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64)
tokens = torch.arange(12).reshape(2, 6)


def trained(adapter, steps):
    torch.manual_seed(0)
    model = peft.get_peft_model(AutoModelForCausalLM.from_config(config), adapter)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(type(adapter).__name__, losses[0], losses[-1])
    assert losses[-1] < losses[0]
    return model.eval()


model = trained(peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"), 8)
expected = model(input_ids=tokens).logits
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    torch.manual_seed(0)
    again = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_config(config), folder).eval()
assert torch.allclose(again(input_ids=tokens).logits, expected, atol=1e-5)
assert torch.allclose(model.merge_and_unload()(input_ids=tokens).logits, expected, atol=1e-4)
trained(peft.LoraConfig(r=4, use_dora=True, target_modules=["q_proj"]), 3)
trained(peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3), 3)
trained(peft.LoHaConfig(r=2, target_modules=["q_proj"]), 3)
