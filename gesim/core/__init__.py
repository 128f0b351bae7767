"""The decision core: state machines without clock, thread or input/output (sans-IO).

Read in this order: `decisions` (what a policy may answer), `policy` (the contracts), `queue`,
`admission`, `instances`, `scheduler` (the whole), `invariants` (the laws it obeys).
"""
