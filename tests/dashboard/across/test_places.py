"""Where things stand on a page, without a browser."""

import pytest

VISITS = {
    "inspect": ("inspect", {}),
    "roles": ("roles", {}),
    "claims": ("claims", {"claim": "L0 H2 is a local head"}),
    "surface": ("surface", {}),
    "relations": ("grammar", {}),
    "coreference": ("grammar", {"grammar section": "Coreference"}),
    "probes": ("grammar", {"grammar section": "Probes"}),
    "similarity": ("similarity", {}),
    "compare": ("compare", {"text": "The cat sat."}),
    "importance": ("importance", {"keep one": "true"}),
    "fine-tune": ("fine-tune", {}),
    "laboratory": ("laboratory", {}),
}
"""What is visited: a page, and what its link says."""


def places(at):
    """Where each widget stands: the places of all that it is part of, then its own."""
    found = {}

    def look(block, path):
        for place, child in block.children.items():
            if hasattr(child, "children"):
                look(child, (*path, place))
            elif identity := getattr(child.proto, "id", ""):
                found[identity] = (*path, place)

    look(at._tree, ())
    return found


@pytest.mark.parametrize("visit", VISITS)
def test_what_was_waited_for_leaves_everything_in_its_place(app, small, visit):
    """Streamlit's front end builds anew what stands in another place, and an upload under way is lost."""
    where, link = VISITS[visit]
    texts = f"A first sentence for {visit}.\nThe dog that barked saw its {visit}."  # that no other visit has scored
    if where == "compare":
        link = link | {"with": small("bert", "SequenceClassification", num_labels=2)}
    at = app(where, corpus_text=texts, checkpoint=small("bert"), **link)
    first = places(at)
    assert len(first) > 5
    then = places(at.run())
    assert not at.exception
    assert {identity: place for identity, place in first.items() if then.get(identity, place) != place} == {}
