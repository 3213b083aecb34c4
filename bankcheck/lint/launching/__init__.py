"""With which blocks and template arguments a kernel is launched: read from host functions, or assumed."""
