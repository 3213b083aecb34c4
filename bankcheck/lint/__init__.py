"""Bank conflicts in CUDA sources, before they compile.

    text         a file preprocessed and parsed, with its headers: what it defines
    launching    its launches, or what is assumed about them
    interpreter  a kernel executed once for all its threads: the accesses it makes
    counting     wavefronts of each access for all warps, iterations and values of the launch
    facts        all of that for one file
    checking     the rules: findings (their texts are in `rules`, their examples in `examples`)
    fixing       layouts tried on every access of an array before they are offered

`pipeline.check_file` is the way of one file through all of it, `run` the way through many files.
"""
