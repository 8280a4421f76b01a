"""How kernels are compiled, and the one line that says that they are.

Numba compiles a kernel at its first call and keeps the machine code on disk. Instead of leaving the user to
wonder why the first call is slow, ``announce`` looks whether that has happened and, if not, writes one line
through the logger ``lptml`` at WARNING level, which Python shows on the terminal unless logging was
configured otherwise.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from numba import njit
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import PassManager

# Passes of Numba's that look for what no kernel of ours has: closures, ``with``, literal arguments,
# exceptions with a message made at run time, functions to inline, branches that types decide, expressions of
# arrays.
_IDLE = {
    "DeadBranchPrune",
    "FindLiterallyCalls",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NoPythonSupportedFeatureValidation",
    "NopythonRewrites",
    "PreLowerStripPhis",
    "RewriteDynamicRaises",
    "RewriteSemanticConstants",
    "WithLifting",
}


class _Options(Flags):
    """Numba's options for one kind of kernel.

    Numba compares them, twenty values each, for every operation whose type it infers: a tenth of the time. So
    there is one object for equal options, which nothing changes, and it is compared by identity.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__
    _known: ClassVar[dict[str, _Options]] = {}

    @classmethod
    def like(cls, flags: Any) -> _Options:
        options = cls(flags)
        options.enable_ssa = False
        return cls._known.setdefault(options.summary(), options)

    def copy(self) -> _Options:
        return self


class KernelCompiler(CompilerBase):
    """Numba's compiler without its idle passes, which take a tenth of the time.

    Nor does it tell the assignments to a variable from each other, another tenth: in a kernel all that is
    assigned to one name has one type.
    """

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any
    ) -> None:
        super().__init__(typing, target, library, args, result, _Options.like(flags), local)

    def define_pipelines(self) -> list[PassManager]:
        needed = PassManager("kernel")
        for each, what in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if each.__name__ not in _IDLE:
                needed.add_pass(each, what)
        needed.finalize()
        return [needed]


# No test at every division. No ``fastmath``: sums in any order take a quarter off a solve at d = 2, but then
# the order, and the last bits, depend on where in memory the arrays happen to lie.
OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelCompiler,
}

#: Decorator of functions that Python calls.
kernel = njit(**OPTIONS)

#: Decorator of functions that only compiled code calls.
helper = njit(**OPTIONS, no_cpython_wrapper=True)

logger = logging.getLogger("lptml")
_seen: set[int] = set()
_said = False


def announce(*kernels: Any) -> None:
    """Log a notice, once a process, if any of these kernels is neither compiled nor cached on disk.

    Call it right before the first use of a kernel; later calls cost a fraction of a microsecond.

    Parameters
    ----------
    kernels : functions decorated with ``kernel``, or dispatchers like theirs
    """
    global _said
    unseen = [kernel for kernel in kernels if id(kernel) not in _seen]
    if not unseen:
        return
    _seen.update(map(id, unseen))
    if not _said and not all(map(_ready, unseen)):
        _said = True
        logger.warning("lptml: compiling, 10 to 15 seconds, once for this installation")


def _ready(kernel: Any) -> bool:
    """Whether a kernel is in memory, or on disk for this version of its source."""
    if getattr(kernel, "signatures", True):  # plain Python functions need no compiling
        return True
    try:
        return bool(kernel._cache._cache_file._load_index())
    except (AttributeError, OSError):  # another layout of Numba's cache, or an unreadable folder
        return False
