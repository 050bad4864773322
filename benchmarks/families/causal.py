"""Every causal language model of transformers that can be made small, beside hooks and passes of the benchmark's own:
which layers have attention, how far they see, their maps, what the model writes, and the parts of a logit.

Prints a line for each family. Goal: no fault; what cannot be observed is refused in a sentence.
`python -m benchmarks.families.causal gpt_neo zamba2` goes through these alone.
"""

import logging
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Final

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from attention_sieve.core.errors import CheckpointError, first_line

MOST_PARAMETERS: Final = 6_000_000
"""Of a small model: some families have parts that no setting makes small."""


def main() -> None:
    sys.path += [str(Path(__file__).parents[2] / "tests" / folder) for folder in ("helpers", "material")]
    warnings.simplefilter("ignore")
    transformers_logging.set_verbosity(logging.CRITICAL)
    outcomes = Counter[str]()
    for model_type in sys.argv[1:] or MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        outcome, said = outcome_of(model_type)
        outcomes[outcome] += 1
        print(f"{model_type}: {outcome}{said and f': {said}'}", flush=True)
    print(", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common()))


def outcome_of(model_type: str) -> tuple[str, str]:
    """What becomes of one family, and a sentence."""
    from checked_family import faults_of
    from small_checkpoints import TOKENIZERS
    from small_families import small_family

    tokenizer = TOKENIZERS["llama"]()
    try:
        config = small_family(model_type, len(tokenizer))
        with torch.device("meta"):
            n_parameters = AutoModelForCausalLM.from_config(config).num_parameters()
    except Exception as error:  # what transformers raises for a configuration of ours is open-ended
        return "not made small", first_line(error)
    if n_parameters > MOST_PARAMETERS:
        return "not made small", f"{n_parameters:,} parameters"
    try:
        faults = faults_of(model_type, tokenizer)
    except CheckpointError as error:
        return "refused", str(error)
    except Exception as error:  # a fault of any kind must not end the list
        return "FAULT", f"{type(error).__name__}: {first_line(error)}"
    return ("FAULT", "; ".join(faults)) if faults else ("right", "")


if __name__ == "__main__":
    main()
