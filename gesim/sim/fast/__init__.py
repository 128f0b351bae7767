"""The fast lane: a batch-granular loop over arrays, compiled by numba.

`policy_source` turns a policy object into plain functions, `kernel` is the loop, `compiled`
makes a module of both, `calling` calls policies that have no compiled form, `engine` feeds the
loop and hands the recorder what came out.
"""
