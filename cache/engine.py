"""Engine: a checkpoint on a device, in a number format."""

from dataclasses import dataclass

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles


@dataclass(frozen=True)
class Engine:
    """A checkpoint on a device, in a number format."""

    files: CheckpointFiles
    device: str = "auto"
    dtype: str = "float32"

    def settings(self, settings: PassSettings | None) -> PassSettings:
        """The given settings, or by default the checkpoint's first kind of attention with all heads on."""
        return settings or PassSettings(self.files.kinds[0])
