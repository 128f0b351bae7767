"""Devices: the only place of the runtime with threads and compute, and that imports torch."""
