"""Loads checkpoints in the background."""

from threading import Lock, Thread

from attention_sieve.cache.engine import Engine
from attention_sieve.cache.serving.batch import warm_parser
from attention_sieve.cache.serving.models import Models
from attention_sieve.core.errors import AnalysisError


class LoadsBehind:
    """Loads checkpoints before they are needed; thread-safe."""

    def __init__(self, models: Models) -> None:
        """Begin with nothing; what is loaded goes to these models."""
        self._models = models
        self._begun: set[Engine] = set()
        self._failed: set[Engine] = set()
        self._lock = Lock()

    def load(self, engine: Engine) -> None:
        """Start loading a checkpoint; an error is raised again by the next request that needs it."""
        with self._lock:
            is_known = engine in self._begun or engine in self._failed
            if is_known or self._models.is_loaded(engine) or self._models.is_loading(engine):
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
