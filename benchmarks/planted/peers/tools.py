"""The tools that are run on planted models, and those that are not, with the reason."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

WORKERS: Final = Path(__file__).parent / "workers"


@dataclass(frozen=True)
class Tool:
    """A program of others, and how it is run."""

    name: str
    """Of its folder of results and of its environment."""
    worker: Path
    packages: tuple[str, ...]
    """What pip installs in its environment."""
    checkout: str | None = None
    """The option that names a checkout of the tool's package, where no package index has it."""
    sources: str = "."
    """Where in the checkout the package lies."""


@dataclass(frozen=True)
class NotRun:
    """A tool or one of its models of which there are no numbers, and why."""

    tool: str
    model: str | None
    reason: str


BASE: Final = ("torch==2.13.0", "transformers==5.23.0")
HOOKED: Final = (*BASE, "transformer-lens==3.9.0")
"""The last version with the class that EAP is written for."""
TOOLS: Final = (
    Tool("detect-head", WORKERS / "detect_head.py", (*BASE, "transformer-lens==4.3.0")),
    Tool("node-attribution", WORKERS / "node_attribution.py", (*HOOKED, "matplotlib"), "eap", "src"),
    Tool("head-gating", WORKERS / "head_gating.py", (*BASE, "nam-causal-head-gating==0.1.0")),
)

NEVER_RUN: Final = (
    NotRun(
        "MIB circuit track, run_attribution.py",
        None,
        "It reads its tasks from a hub, has no option for others, and asks for CUDA. Its function attribute_node, of "
        "the EAP package, is run instead on the planted tasks (node-attribution).",
    ),
    NotRun(
        "MIB attribute_node, method exact",
        None,
        "It breaks off with an IndexError at the node of the logits, for which there is no place among the nodes' "
        "scores (EAP 2.0.0). Its evaluate_graph is asked instead, with one graph for each head.",
    ),
    NotRun(
        "ACDC (Automatic-Circuit-Discovery bc99ace)",
        None,
        "No package index has it; from a checkout, it did not finish one model of 2 layers in five minutes.",
    ),
    NotRun("auto-circuit 1.0.1 (ACDC, EAP)", None, "Neither the package nor its repository has a licence."),
    NotRun(
        "circuitkit 0.2.0 (ACDC and others)",
        None,
        "Its licence (LSAL 1.2) asks an organisation that evaluates with it for a written acknowledgement first.",
    ),
    NotRun("pyvene 0.1.8", None, "It carries out interventions that are written for it; it has no score of heads."),
    NotRun("nnsight 0.8.1", None, "It carries out interventions that are written for it; it has no score of heads."),
)
