"""Where planted models, their grades and other tools' scores are kept."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[3] / "build" / "planted"
MODELS: Final = "models"
GRADES: Final = "grades"
PEERS: Final = "peers"
