"""Which request goes first."""
