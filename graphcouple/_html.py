"""Tables that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def html_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts as HTML; the first column is to the left, and lines of a text stay lines."""
    style = 'style="text-align: {}; white-space: pre-line; vertical-align: top"'.format
    head = "".join(f"<th {style('right' if c else 'left')}>{escape(cell)}</th>" for c, cell in enumerate(header))
    body = "".join(
        "<tr>" + "".join(f"<td {style('left')}>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
