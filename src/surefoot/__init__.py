"""surefoot: an AI agent runtime whose tool calls tell the truth."""

__version__ = "0.1.0"
