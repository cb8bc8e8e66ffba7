"""Parts for tests: a strict model server, a scripted model, a counting sink, faults and a simulation.

Public: a user tests their own tools with the same parts. Import the module you
need; this package loads nothing by itself.
"""
