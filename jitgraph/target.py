"""The CPU that code is generated for: name, features, vector width, caches.

`host()` is the CPU we run on, or the one that the setting `cpu` (JITGRAPH_CPU) names; it asks LLVM, which is imported
at the first call only.
"""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from typing import Any

from jitgraph.config import config
from jitgraph.records import dataclass

#: Widest vector registers, in bytes, of CPUs that a user may name; anything else has 16.
_VECTOR_BYTES: tuple[tuple[str, int], ...] = (
    (r"x86-64-v4|znver[4-9]|skylake-avx512|cascadelake|icelake.*|sapphirerapids|graniterapids|emeraldrapids", 64),
    (r"x86-64-v3|haswell|broadwell|skylake|alderlake|raptorlake|znver[1-3]", 32),
)
#: CPUs that load and store half of their widest registers at once.
_HALF_MEMORY = "znver4"
#: Architectures, besides x86 with F16C, that convert float16 in hardware.
_HALF_TRIPLES = ("aarch64", "arm64")
_CACHES = "/sys/devices/system/cpu/cpu0/cache"


@dataclass(frozen=True, slots=True)
class Target:
    """What code generation needs to know of a CPU.

    Attributes:
        cpu, features: as LLVM writes them; `features` is empty where the name says it all.
        vector_bytes: width of the widest vector registers.
        has_fma: multiply-add with one rounding in hardware.
        has_half: conversions between float16 and float32 in hardware (F16C, AArch64).
        has_masks: masked loads, gathers and blends at full speed (AVX-512, SVE).
        l1_bytes, l2_bytes, l3_bytes: data caches, one core's view.
    """

    cpu: str
    features: str
    triple: str
    vector_bytes: int = 16
    has_fma: bool = False
    has_masks: bool = False
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 16 << 20
    has_half: bool = False

    @property
    def has_avx512(self) -> bool:
        """x86 with 512-bit vectors and masks: code may use its own instructions."""
        return self.has_masks and self.triple.startswith("x86_64")

    @property
    def memory_bytes(self) -> int:
        """What one load or store moves at once."""
        return self.vector_bytes // 2 if self.cpu == _HALF_MEMORY else self.vector_bytes

    def lanes(self, itemsize: int) -> int:
        """Elements of `itemsize` bytes in one vector."""
        return max(1, self.vector_bytes // itemsize)

    @property
    def key(self) -> str:
        """Names the machine code: equal keys, equal code."""
        return f"{self.triple};{self.cpu};{self.features};{self.vector_bytes}"


#: The host, if something else than LLVM has told of it.
_known: list[Target] = []


def host() -> Target:
    """The CPU to compile for. The setting `cpu` names another than the host's; code then has to run on this one too."""
    if config.cpu and config.cpu != "host":
        return named(config.cpu)
    return _known[0] if _known else _detect()


def is_known() -> bool:
    """Whether the host need not be asked for."""
    return bool(_known) or _detect.cache_info().currsize > 0


def know(target: Target) -> None:
    """The host is this one: as LLVM has said before."""
    _known[:] = [target]


def to_plain(target: Target) -> dict[str, Any]:
    """As numbers and strings, for a JSON file."""
    return {f.name: getattr(target, f.name) for f in fields(target)}


def from_plain(plain: dict[str, Any]) -> Target:
    """From what `to_plain` made.

    Raises:
        TypeError: that is something else.
    """
    kinds = {"str": str, "int": int, "bool": bool}
    for f in fields(Target):
        if type(plain.get(f.name)) is not kinds[str(f.type)]:
            raise TypeError(f"{f.name} of a CPU is {plain.get(f.name)!r}")
    return Target(**plain)


@cache
def named(cpu: str) -> Target:
    """The target that LLVM calls `cpu` ("x86-64-v3", "znver2", "generic"), without features beyond its name."""
    import llvmlite.binding as llvm

    width = next((bytes_ for pattern, bytes_ in _VECTOR_BYTES if re.fullmatch(pattern, cpu)), 16)
    triple = llvm.get_process_triple()
    fma = width > 16 or not triple.startswith(("x86_64", "i686"))
    l1, l2, l3 = _cache_bytes()
    half = width > 16 if triple.startswith(("x86_64", "i686")) else triple.startswith(_HALF_TRIPLES)
    masks = width == 64
    return Target(cpu, "", triple, width, fma, masks, l1_bytes=l1, l2_bytes=l2, l3_bytes=l3, has_half=half)


@cache
def _detect() -> Target:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    if triple.startswith(("x86_64", "i686")):
        masks = all(features.get(name) for name in ("avx512f", "avx512vl", "avx512dq", "avx512bw"))
        width = 64 if masks else 32 if features.get("avx2") else 16
        fma, half = bool(features.get("fma")), bool(features.get("f16c"))
    else:
        masks, width, fma, half = False, 16, True, triple.startswith(_HALF_TRIPLES)
    l1, l2, l3 = _cache_bytes()
    return Target(llvm.get_host_cpu_name(), features.flatten(), triple, width, fma, masks, l1, l2, l3, half)


def _text(path: str) -> str:
    with open(path) as f:  # noqa: PTH123  # see `_cache_bytes`
        return f.read().strip()


@cache
def _cache_bytes() -> tuple[int, int, int]:
    """Sizes of the data caches, level 1 to 3; usual sizes where the system does not tell."""
    sizes = {1: 32 << 10, 2: 512 << 10, 3: 16 << 20}
    for number in range(8):  # plain files: pathlib takes five times as long, in every start of a process
        try:
            kind, level, size = [_text(f"{_CACHES}/index{number}/{name}") for name in ("type", "level", "size")]
            if kind != "Instruction" and size.endswith("K"):
                sizes[int(level)] = int(size[:-1]) << 10
        except (OSError, ValueError):  # a container may hide any of these files
            continue
    return sizes[1], sizes[2], sizes[3]
