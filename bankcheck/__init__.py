"""bankcheck: CUDA shared-memory bank conflicts, found, proved, explained and fixed without a GPU."""

__version__ = "0.1.0"
