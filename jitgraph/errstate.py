"""How NumPy is told to handle floating-point errors around a call (`np.errstate`, `np.seterr`).

Compiled code raises no such errors and warns of none, so a call runs in Python where somebody wants more than a
warning.
"""

from __future__ import annotations

from contextvars import Context, ContextVar
from typing import Any

import numpy as np

_found: Any = getattr(getattr(getattr(np, "_core", None), "umath", None), "_extobj_contextvar", None)
#: NumPy's variable; None where there is none of that name.
VARIABLE: ContextVar[Any] | None = _found if isinstance(_found, ContextVar) else None
#: Its value where nobody has set it; lives for ever.
DEFAULT: Any = Context().run(VARIABLE.get, None) if VARIABLE is not None else None


def is_heard() -> bool:
    """Whether errors are raised, logged, printed or given to a function of the user's."""
    if VARIABLE is not None and VARIABLE.get(None) is DEFAULT:
        return False
    return any(how not in ("ignore", "warn") for how in np.geterr().values())
