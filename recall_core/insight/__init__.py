"""Insights into what is remembered: what says the same, what it is about, what was new. No language model is asked."""

from __future__ import annotations

from .facade import Insight

__all__ = ["Insight"]
