"""Drivers of the model: the SimPy event list, and the choice of an engine."""
