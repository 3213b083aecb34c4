"""`bankcheck verify`: a GPU confirms that the lanes get the data and that a request takes the wavefronts predicted.

>>> from bankcheck.verify import open_device, verify_addresses
>>> verify_addresses("ld.shared.b32", [128 * lane for lane in range(32)], open_device()).verdict  # doctest: +SKIP
'match'
"""

from bankcheck.verify.checks import Row, verify_addresses, verify_all, verify_requests
from bankcheck.verify.device import Device, open_device
from bankcheck.verify.identity import Identity, verify_layout
from bankcheck.verify.layouts import verify_layouts
from bankcheck.verify.plan import Request

__all__ = [
    "Device", "Identity", "Request", "Row", "open_device", "verify_addresses", "verify_all", "verify_layout",
    "verify_layouts", "verify_requests",
]  # fmt: skip
