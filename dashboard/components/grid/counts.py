"""Counts on the cells of a grid, such as how often a class chose each head: sent to a grid that is drawn already."""

from collections.abc import Mapping
from typing import Final

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.components.source import Source

_mount: Final = Source(
    name="counts",
    html="<div hidden></div>",
    js="""
export default function ({ data }) {
  const tell = (counts) => {
    window.attentionSieveCounts = counts;
    document.dispatchEvent(new Event("attention-sieve:counts"));
  };
  tell(data);
  return () => tell(null);
}
""",
).registered()


def counts_on_grid(key: str, counts: Mapping[Head, int]) -> None:
    """Write a count on the cells of some heads in the grid of the page."""
    _mount(key=key, data={f"{layer}-{head}": count for (layer, head), count in counts.items()}, height=0)
