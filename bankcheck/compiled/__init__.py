"""Compiled kernels: machine code -> requests -> counts, executed on arrays instead of a GPU.

The data flows one way: `toolchain` makes a cubin and its disassembly, `cubin` reads facts from the ELF,
`sass` decodes instructions, `flow` finds what matters for addresses, `execute` runs it, `profile` counts.
"""
