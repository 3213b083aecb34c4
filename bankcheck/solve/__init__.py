"""The layout of a shared-memory tile under which every access to it is at its ideal: found by search, and proved best.

`spec` (or a source file) makes a `problem`, `families` lists the candidate layouts, `search` counts and ranks them,
`emit` writes the chosen one as code.
"""
