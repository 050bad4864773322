"""Loading a checkpoint in a thread of its own, while the reader looks at what is drawn already."""

from threading import Lock, Thread

from cache.answers import Engine
from cache.models import Models
from cache.passing import warm_parser
from core.errors import AnalysisError


class LoadsBehind:
    """Checkpoints that are loaded before anybody needs them; safe to share between threads."""

    def __init__(self, models: Models) -> None:
        """Begin with nothing; what is loaded goes to these models."""
        self._models = models
        self._begun: set[Engine] = set()
        self._failed: set[Engine] = set()
        self._lock = Lock()

    def is_loading(self, engine: Engine) -> bool:
        """Whether a checkpoint is being loaded, here or by whoever needs it; never waits."""
        return engine in self._begun or self._models.is_loading(engine)

    def load(self, engine: Engine) -> None:
        """Begin to load a checkpoint; an error is met again, and shown, by whoever needs it."""
        with self._lock:
            if self._models.is_loaded(engine) or self.is_loading(engine) or engine in self._failed:
                return
            self._begun.add(engine)
        Thread(target=self._load_quietly, args=(engine,), name="load checkpoint", daemon=True).start()

    def _load_quietly(self, engine: Engine) -> None:
        try:
            with self._models.use(engine):
                pass
            warm_parser()
        except AnalysisError:
            self._failed.add(engine)
        finally:
            self._begun.discard(engine)
        self._models.trim()
