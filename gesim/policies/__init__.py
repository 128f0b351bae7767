"""The shipped policies: one file each, a dataclass with the rule in it."""
