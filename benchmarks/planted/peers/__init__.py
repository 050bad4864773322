"""Other tools on the planted models, each in a Python environment of its own, and what each says of every head.

    python -m benchmarks.planted.peers MODELS_FOLDER OUTPUT_FOLDER [--eap CHECKOUT] [--tool NAME]

writes `OUTPUT_FOLDER/<tool>/<model>.json` and goes on where it stopped:

    {"tool": ..., "version": ..., "licence": ..., "model": ..., "says": "head type" or "importance",
     "settings": {...}, "logits_differ": greatest difference from the logits of transformers,
     "scores": {<score's name>: [[of L0 H0, of L0 H1, ...], [of L1 H0, ...]]}}

A larger score says: more of this head type, or more loss without the head; of a signed importance, a negative one says
that the loss falls. `not_run.json` has the tools and models without numbers, with the reason. No number is written for
a model whose logits the tool does not have. The programs in `workers` run in the environments and import nothing of
this project.
"""
