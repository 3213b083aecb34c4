"""Stand-ins for the host headers that CUDA files include and NVRTC does not have. Device code needs little of them."""

from __future__ import annotations

_EMPTY = """
    stdio.h cstdio stdlib.h cstdlib string.h cstring iostream iomanip sstream fstream vector map set
    unordered_map memory functional chrono thread mutex random ctime time.h cmath math.h cuda_runtime.h cuda.h
    device_launch_parameters.h cuda_runtime_api.h cublas_v2.h curand.h getopt.h unistd.h sys/time.h stdexcept
    exception numeric iterator helper_cuda.h helper_functions.h helper_string.h helper_timer.h omp.h
    cstdarg stdarg.h cerrno errno.h cuda_profiler_api.h nvToolsExt.h
"""

_INTEGERS = """#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t;
typedef unsigned int uint32_t; typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t; typedef long intptr_t;
"""
_LIMITS = """#pragma once
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
"""
_ASSERT = "#pragma once\n#undef assert\n#define assert(condition) ((void)0)\n"

PRELUDE = "bankcheck_prelude.h"
"""Included before every file: names that nvcc's host headers declare."""
_PRELUDE_TEXT = """#pragma once
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
"""

HEADERS: dict[str, str] = dict.fromkeys(_EMPTY.split(), "#pragma once\n")
HEADERS.update(dict.fromkeys(("stdint.h", "cstdint", "inttypes.h", "cinttypes"), _INTEGERS))
HEADERS.update(dict.fromkeys(("limits.h", "climits", "float.h", "cfloat"), _LIMITS))
HEADERS.update(dict.fromkeys(("assert.h", "cassert"), _ASSERT))
HEADERS.update({name: f"#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n" for name in
                ("type_traits", "utility", "limits", "tuple", "array", "algorithm")})  # fmt: skip
HEADERS[PRELUDE] = _PRELUDE_TEXT
