"""gesim: simulate an inference-serving scheduling policy before anyone touches hardware."""

__version__ = "0.1.0"
