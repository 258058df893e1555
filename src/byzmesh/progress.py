"""A progress bar where the user is: in a notebook, in a terminal, and nothing where nobody looks.

A notebook's bar is an HTML `progress` element that is updated in place; it needs no widgets.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

Tell = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and words beside the bar."""
SECONDS = 0.1
"""Between two updates at least: a notebook's browser draws each of them."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def progress_bar(wanted: bool = True) -> Iterator[Tell]:
    """A bar while the block runs.

    >>> with progress_bar(False) as tell:
    ...     tell(0.5, "half of it")
    """
    if not wanted:
        yield lambda share, words: None
    elif in_notebook():
        yield from _notebook()
    elif sys.stderr.isatty():
        yield from _terminal()
    else:
        yield lambda share, words: None


def _notebook() -> Iterator[Tell]:
    from IPython.display import HTML, display

    handle: Any = display(HTML(bar_html(0.0, "")), display_id=True)
    last = 0.0

    def tell(share: float, words: str) -> None:
        nonlocal last
        if share >= 1.0 or time.monotonic() - last > SECONDS:
            last = time.monotonic()
            handle.update(HTML(bar_html(share, words)))

    yield tell


def bar_html(share: float, words: str) -> str:
    """The bar as HTML.

    >>> bar_html(0.25, "round 5 of 20")
    '<progress value="0.250" max="1"></progress> 25% <span>round 5 of 20</span>'
    """
    return f'<progress value="{share:.3f}" max="1"></progress> {100 * share:.0f}% <span>{escape(words)}</span>'


def _terminal() -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, words: bar.update(task, completed=share, description=words)
