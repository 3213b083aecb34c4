"""What `open_device` says where CuPy, a GPU or a recent driver is missing, and how it reads a working one."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from bankcheck.errors import BankcheckError
from bankcheck.verify import device as device_module
from bankcheck.verify.device import open_device


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}\nsecond line")
        self.status = status


def fake_cupy(monkeypatch: pytest.MonkeyPatch, *, count: int | Exception, driver: int, result: int = 42) -> None:
    """A CuPy with as many GPUs, whose test kernel gives `result`."""

    def device_count() -> int:
        if isinstance(count, Exception):
            raise count
        return count

    properties = {
        "name": b"Fake GPU", "major": 9, "minor": 0, "multiProcessorCount": 7, "sharedMemPerBlockOptin": 232448,
    }  # fmt: skip
    cupy = ModuleType("cupy")
    cupy.__version__ = "14.0"  # type: ignore[attr-defined]
    cupy.int32 = int  # type: ignore[attr-defined]
    cupy.zeros = lambda *_, **__: [result]  # type: ignore[attr-defined]
    cupy.RawKernel = lambda source, name: lambda grid, block, arguments: None  # type: ignore[attr-defined]
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        runtime=SimpleNamespace(
            getDeviceCount=device_count, getDevice=lambda: 0, getDeviceProperties=lambda _: properties,
            driverGetVersion=lambda: driver, runtimeGetVersion=lambda: 13000, CUDARuntimeError=CUDARuntimeError,
        )
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "numpy", ModuleType("numpy"))
    monkeypatch.setattr(device_module, "_driver", lambda: "580.1")


def refusal() -> str:
    with pytest.raises(BankcheckError) as caught:
        open_device()
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_missing_cupy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert refusal() == "verify runs kernels on an NVIDIA GPU through CuPy: pip install 'bankcheck[gpu]'"


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, count=0, driver=13000)
    assert refusal().startswith("no NVIDIA GPU found")
    fake_cupy(monkeypatch, count=CUDARuntimeError(100), driver=13000)
    assert refusal().startswith("no NVIDIA GPU found")


def test_no_driver_is_not_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, count=CUDARuntimeError(35), driver=0)
    assert refusal().startswith("no NVIDIA GPU found")


def test_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, count=CUDARuntimeError(35), driver=12040)
    assert refusal() == "the NVIDIA driver is too old for CUDA 13: install driver 580 or newer"


def test_a_gpu_that_fails_its_first_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, count=CUDARuntimeError(999), driver=13000)
    assert refusal().startswith("the GPU does not run a test kernel (cudaError 999): pip install")
    fake_cupy(monkeypatch, count=1, driver=13000, result=7)
    assert refusal() == "the GPU ran a test kernel but its result is wrong"


def test_a_working_gpu_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, count=1, driver=13000)
    facts = open_device().facts
    assert (facts.gpu, facts.arch, facts.driver, facts.cuda, facts.cupy) == (
        "Fake GPU", "sm_90", "580.1", "13.0", "14.0",
    )  # fmt: skip
