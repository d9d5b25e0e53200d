"""Turning text into vectors: the model that ships with recall_core, others in folders or behind HTTP, and checks.

Importing this package loads neither numpy nor onnxruntime nor tokenizers nor httpx; the first use does.
"""

from __future__ import annotations

from recall_core.models import DEFAULT, Default

from .attempts import Attempt, attempt
from .choice import BUNDLED_FOLDER, load_bundled, resolve_embedder
from .cross_encoder import CrossEncoder
from .http import HttpEmbedder
from .installed import model_path
from .onnx import OnnxEmbedder, OnnxEmbedderWithMeans, open_model

__all__ = [
    "BUNDLED_FOLDER",
    "DEFAULT",
    "Attempt",
    "CrossEncoder",
    "Default",
    "HttpEmbedder",
    "OnnxEmbedder",
    "OnnxEmbedderWithMeans",
    "attempt",
    "load_bundled",
    "model_path",
    "open_model",
    "resolve_embedder",
]
