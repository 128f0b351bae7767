"""What a batch costs: cost models, host and transfer terms, profiles of cards."""
