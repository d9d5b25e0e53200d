"""Long-term memory for AI agents in one SQLite file: keyword and vector search, fused, in Chinese and English."""

__version__ = "0.2.0"
