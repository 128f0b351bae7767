"""Published checkers for policies and for the scheduler.

`gesim.testing.conformance` checks a policy; `gesim.testing.harness` plays requests through the
decision core without a simulator; `gesim.testing.strategies` are hypothesis strategies.
"""
