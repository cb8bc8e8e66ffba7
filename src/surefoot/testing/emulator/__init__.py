"""A strict, scriptable model server on loopback; see `surefoot.testing.emulator.server`.

It shares no code with `surefoot.providers`, so that a fault there is not repeated in its judge.
"""
