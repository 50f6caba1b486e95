"""Stubs for missing modules, so that the parsers of vLLM and SGLang load without a GPU and without torch.

A stubbed module has every name; each is a class that can be called, subclassed and iterated, and is false. The parsers
themselves, and all that they call, are the real ones: `bench.field_peers` checks each with a well-formed call first.
It imports nothing but that package's own dependencies, since it runs in the environment of vLLM or SGLang.
"""

import sys
from collections.abc import Iterator, MutableSequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, Final

from typing_extensions import override

VLLM: Final = (
    *("torch", "triton", "uvloop", "cpuinfo"),
    *("vllm.env_override", "vllm.config", "vllm.distributed", "vllm.model_executor", "vllm.multimodal"),
    "vllm.platforms",
)
"""The modules that vLLM's parsers import and that need torch or a GPU; vLLM 0.32."""
SGLANG: Final = (
    *("torch", "triton", "IPython"),
    *("sglang.lang", "sglang.srt.platforms", "sglang.srt.utils.hf_transformers_patches"),
)
"""The same for SGLang 0.5.23."""


class Nothing(type):
    """The type of stubs: operations on the class itself."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stub(name)

    @override
    def __call__(cls, *given: Any, **named: Any) -> Any:
        if len(given) == 1 and isinstance(given[0], FunctionType) and not named:
            return given[0]  # a decorator
        return super().__call__()

    @override
    def __or__(cls, other: object) -> Any:  # in annotations
        return cls

    __ror__ = __or__

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __setitem__(cls, item: object, value: object) -> None:
        pass

    def __contains__(cls, item: object) -> bool:
        return False

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __lt__(cls, other: object) -> bool:
        return False

    def __bool__(cls) -> bool:
        return False


class Stub(metaclass=Nothing):
    """The instances of stubs behave as their classes do."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stub(name)

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if given and isinstance(given[0], FunctionType) else Stub()

    def __getitem__(self, item: object) -> Any:
        return Stub()

    def __contains__(self, item: object) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False


def stub(name: str) -> Any:
    """Return a new stub."""
    return Nothing(name, (Stub,), {})


class StubModule(ModuleType):
    """A module with every name."""

    __path__: MutableSequence[str] = []  # noqa: RUF012 (the import system reads it)
    __version__ = "2.9.0"

    @override
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, stub(name))
        return getattr(self, name)


class StubFinder(MetaPathFinder, Loader):
    """Finds the named modules and all below them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    @override
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self.names):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    @override
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StubModule(spec.name)

    @override
    def exec_module(self, module: ModuleType) -> None:
        pass


def replace(*names: str) -> None:
    """Stub these modules: whether they are installed or not."""
    sys.meta_path.insert(0, StubFinder(names))
