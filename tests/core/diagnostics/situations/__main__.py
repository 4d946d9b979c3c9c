"""Writes the texts of all situations to golden.json."""

import json

from core.diagnostics.situations import GOLDEN, SITUATIONS, text_of

texts = {name: text_of(SITUATIONS[name]).split("\n") for name in sorted(SITUATIONS)}
GOLDEN.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
print(f"{len(texts)} texts written to {GOLDEN}")
