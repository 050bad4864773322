"""Compiles programs with tracr and writes weights, examples and facts; runs in an environment that has tracr.

What is there is not compiled again.

`python -m benchmarks.planted.rasp.compiling FOLDER [PROGRAM ...]`
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
from tracr.compiler.assemble import AssembledTransformerModel
from tracr.compiler.compiling import compile_rasp_to_model
from tracr.rasp import causal_eval, rasp

from benchmarks.planted.rasp.compiled import (
    FACTS_FILE,
    FIRST,
    NO_TARGET,
    CompiledLayer,
    CompiledProgram,
    Examples,
    ProgramHead,
)
from benchmarks.planted.rasp.expressions import HEAD, Program
from benchmarks.planted.rasp.programs import programs

TEXTS: Final = 24
"""Examples of each length."""


def main(folder: Path, names: list[str]) -> None:
    # In single precision the compiler's own rounding would be taken for a difference of the host.
    jax.config.update("jax_enable_x64", True)
    for seed, program in enumerate(programs()):
        is_wanted = not names or program.name in names
        if is_wanted and not (folder / program.name / FACTS_FILE).exists():
            compiled(program, seed).write(folder / program.name)
            jax.clear_caches()
            print(f"Compiled {program.name}.", file=sys.stderr, flush=True)


def compiled(program: Program, seed: int) -> CompiledProgram:
    """Compiles one program.

    Args:
        program: To compile.
        seed: Of the examples.

    Raises:
        ValueError: The compiled model has biases, or a head that belongs to no expression of the program.
    """
    n = program.longest
    # Neighbouring steps of the MLP that turns a share into a number are 1 / ((n + 1) (n + 2)) apart.
    model = compile_rasp_to_model(
        program.output,
        set(program.vocabulary),
        max_seq_len=n,
        causal=program.causal,
        mlp_exactness=3 * (n + 1) * (n + 2),
    )
    layers = tuple(layer(model, index) for index in range(model.model_config.num_layers))
    heads = heads_of(program, model, layers)
    random = np.random.default_rng(seed)
    # Of a shorter causal input the same is seen. The task does not have the longest inputs: without the head that
    # counts tokens, a program takes their number for the greatest.
    lengths = (n,) if program.causal else (n // 2, n, n - 1)
    texts = [[program.sampler(random, length) for _ in range(TEXTS)] for length in lengths]
    selectors = [expression.selector for _, expression in heads]
    return CompiledProgram(
        name=program.name,
        seed=seed,
        cases=program.cases,
        sentence=program.sentence,
        causal=program.causal,
        vocabulary=tuple(map(str, model.input_encoder.encoding_map)),
        values=tuple(map(str, values_of(model))),
        heads=tuple(facts for facts, _ in heads),
        tokens=array(model, "token_embed", "embeddings"),
        positions=array(model, "pos_embed", "embeddings"),
        readout=readout(program, model),
        layers=layers,
        examples=tuple(examples(program, model, selectors, of_length) for of_length in texts),
    )


def array(model: AssembledTransformerModel, module: str, name: str) -> np.ndarray:
    return np.asarray(model.params[module][name], dtype=np.float64)


def values_of(model: AssembledTransformerModel) -> list[Any]:
    """What the program may put out."""
    return list(model.output_encoder.encoding_map)


def readout(program: Program, model: AssembledTransformerModel) -> np.ndarray:
    """Which direction of the residual stream says that a value is put out."""
    values = values_of(model)
    places = [model.residual_labels.index(f"{program.output.label}:{value}") for value in values]
    return np.eye(len(model.residual_labels))[:, places]


def layer(model: AssembledTransformerModel, index: int) -> CompiledLayer:
    """The weights of one layer."""
    place, config = f"transformer/layer_{index}", model.model_config
    parts = ("attn/query", "attn/key", "attn/value", "attn/linear", "mlp/linear_1", "mlp/linear_2")
    if any(array(model, f"{place}/{part}", "b").any() for part in parts):
        raise ValueError(f"Layer {index} has biases, which the compiler does not use otherwise.")
    query, key, value, output, inner, outer = (array(model, f"{place}/{part}", "w") for part in parts)
    read = (len(model.residual_labels), config.num_heads, config.key_size)
    return CompiledLayer(
        query=query.reshape(read),
        key=key.reshape(read),
        value=value.reshape(read),
        output=output.reshape(config.num_heads, config.key_size, -1),
        inner=inner,
        outer=outer,
    )


def heads_of(
    program: Program, model: AssembledTransformerModel, layers: tuple[CompiledLayer, ...]
) -> list[tuple[ProgramHead, rasp.SOp]]:
    """Each head that writes something, and the expression whose value it writes."""
    expressions = {expression.label: expression for expression in program.heads}
    found = []
    for index, weights in enumerate(layers):
        for head, output in enumerate(weights.output):
            written = [model.residual_labels[at] for at in np.flatnonzero(output.any(axis=0))]
            for label in set(map(expression_label, written)):
                expression = expressions[label]
                facts = asdict(expression.annotations[HEAD])
                counts = isinstance(expression, rasp.SelectorWidth)
                found.append((ProgramHead(expression.name, **facts, counts=counts, layer=index, head=head), expression))
    if len(found) != len(expressions):
        raise ValueError(f"The program has {len(expressions)} heads, the compiled model {len(found)}.")
    return found


def expression_label(direction: str) -> str:
    """The expression that a direction of the residual stream belongs to."""
    return direction.partition(":")[0].removesuffix("_selector_width_attn_output")


def examples(
    program: Program, model: AssembledTransformerModel, selectors: list[rasp.Selector], texts: list[list[Any]]
) -> Examples:
    """What the compiled model writes for inputs of one length, and what the program itself puts out."""
    evaluate = causal_eval.evaluate if program.causal else rasp.evaluate
    index = {None: NO_TARGET, **{value: index for index, value in enumerate(values_of(model))}}
    tokens = np.array([model.input_encoder.encode([FIRST, *text]) for text in texts])
    streams = np.asarray(model.forward(model.params, tokens).transformer_output.output)
    return Examples(
        tokens=tokens,
        outputs=streams @ readout(program, model),
        targets=np.array([[NO_TARGET, *(index[value] for value in evaluate(program.output, text))] for text in texts]),
        selected=np.array([[evaluate(selector, text) for selector in selectors] for text in texts], dtype=bool),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
