"""bankcheck: CUDA shared-memory bank conflicts, found, proved, explained and fixed without a GPU.

    text            access      expr, lower     what a lane accesses, as an expression
    -> addresses    warps       layout          32 byte addresses of each warp
    -> count        banks       hardware        wavefronts, by the measured rules
    -> for all      proof       symbolic        cases that cover every value of the unknowns
    -> report       commands    report          text, JSON

The functions here return the objects that the reports print:

>>> import bankcheck
>>> bankcheck.analyze("tile[tx][ty+j]").wavefronts
32
>>> bankcheck.analyze("tile[tx][ty+j]", pad=1).wavefronts
1
>>> bankcheck.count("ld.shared.b32", [128 * lane for lane in range(32)]).ways
32
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bankcheck.errors import BankcheckError

if TYPE_CHECKING:
    from bankcheck.analysis import analyze
    from bankcheck.matrix.model import ldmatrix
    from bankcheck.trace import count

__version__ = "0.1.0"
__all__ = ["BankcheckError", "__version__", "analyze", "count", "ldmatrix"]

_WHERE = {"analyze": "bankcheck.analysis", "count": "bankcheck.trace", "ldmatrix": "bankcheck.matrix.model"}


def __getattr__(name: str) -> Any:
    """The public functions, imported when first used: the command line needs only some of them."""
    if name not in _WHERE:
        raise AttributeError(f"module 'bankcheck' has no attribute '{name}'")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value
