"""The interpreter: a kernel is executed once for all its threads, and every access on the way is recorded."""
