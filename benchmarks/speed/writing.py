"""Time of a token that SmolLM2-135M-Instruct writes with all heads' rows, relative to the bare cached step.

The bare step is transformers' own: its SDPA attention, its cache of keys and values, and the likeliest token.
"""

from typing import Any, Final

import torch
import transformers

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER, has_sample_decoder
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.sample_decoder import make_sample_decoder
from attention_sieve.core.generation.settings import WritingSettings
from attention_sieve.core.generation.writer import Writer
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import text_of_ids
from benchmarks.shared import material

LENGTHS: Final = (40, 400)
"""Tokens before the first that is written."""
N_TOKENS: Final = 4
"""Written in one round."""
SECONDS: Final = 60


def main() -> None:
    if not has_sample_decoder():
        make_sample_decoder()
    material.print_machine()
    checkpoint = load_checkpoint(find_checkpoint(SAMPLE_DECODER), device="cpu")
    folder = checkpoint.files.folder
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()
    for n_tokens in LENGTHS:
        report(checkpoint, model, n_tokens)


def report(checkpoint: Checkpoint, model: Any, n_tokens: int) -> None:
    ids = torch.randint(100, 40_000, (n_tokens,), generator=torch.Generator().manual_seed(0)).tolist()
    writer = Writer(text_of_ids(GivenTokens(tuple(ids))), PassSettings(), WritingSettings(1_000))
    bare = Bare(model, ids)
    writer.write(checkpoint)
    bare.step()

    def of_writer() -> None:
        for _ in range(N_TOKENS):
            writer.write(checkpoint)

    def of_bare() -> None:
        for _ in range(N_TOKENS):
            bare.step()

    seconds, ratios = material.median_ratios([of_bare, of_writer], SECONDS)
    if writer.end is not None:
        raise RuntimeError("The text ended before the time was up, so steps that wrote nothing were timed.")
    print(
        f"after {n_tokens} tokens: {1000 * seconds / N_TOKENS:.0f} ms for a bare step, with every head's row "
        f"{ratios[1]:.2f} times as long",
        flush=True,
    )


class Bare:
    """Writes with transformers alone."""

    def __init__(self, model: Any, ids: list[int]) -> None:
        self.model, self.ids, self.cache = model, ids, None

    @torch.inference_mode()
    def step(self) -> None:
        """Write one token."""
        output = self.model(torch.tensor([self.ids]), past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        self.cache, self.ids = output.past_key_values, [int(output.logits[0, -1].argmax())]


if __name__ == "__main__":
    main()
