"""Closed forms, exact chains and bounds: the `analytic` level (not built yet)."""
