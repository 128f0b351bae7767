"""The live runtime: serves torch models with the very scheduler of the model."""
