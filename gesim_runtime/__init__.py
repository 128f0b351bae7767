"""The live runtime: serves torch models with the same scheduler as the model (not built yet)."""
