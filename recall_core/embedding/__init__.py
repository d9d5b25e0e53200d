"""Turning text into vectors: the model that ships with recall_core, ONNX models in folders, and checks on vectors.

Importing this package loads neither numpy nor onnxruntime nor tokenizers; the first use does.
"""

from __future__ import annotations

from .choice import BUNDLED_FOLDER, DEFAULT, Default, load_bundled, resolve_embedder
from .cross_encoder import CrossEncoder
from .onnx import OnnxEmbedder, OnnxEmbedderWithMeans, open_model
from .vectors import check_vectors, normalize

__all__ = [
    "BUNDLED_FOLDER",
    "DEFAULT",
    "CrossEncoder",
    "Default",
    "OnnxEmbedder",
    "OnnxEmbedderWithMeans",
    "check_vectors",
    "load_bundled",
    "normalize",
    "open_model",
    "resolve_embedder",
]
