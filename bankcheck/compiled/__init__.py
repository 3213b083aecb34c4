"""Compiled kernels: machine code -> requests -> counts, executed on arrays instead of a GPU.

The data flows one way: `inputs` makes cubins, `cubin` reads facts from the ELF,
`disassembly` decodes its instructions, `flow` finds what matters for addresses, `execute` runs it, `profile` counts.
"""
