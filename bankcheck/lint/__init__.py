"""Bank conflicts in CUDA sources, before they compile.

    text -> preprocess -> syntax tree (source) -> definitions (program) -> launches
         -> interpret: statements (interpret, loops), expressions (reader), calls, asm -> accesses (memory.Site)
         -> merge -> judge: wavefronts for all warps, iterations and launch values -> rules -> findings

`check.check_source` is the whole pipeline in one function.
"""
