"""Scenarios: the schema, reading and checking files, and building a system to simulate."""
