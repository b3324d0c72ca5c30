"""Tables that notebooks show."""

from collections.abc import Iterable
from html import escape


def html_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table of texts, with line breaks. Under a header, columns after the first are right-aligned."""
    names = list(header)

    def row(cells: Iterable[str], kind: str) -> str:
        inner = ""
        for c, cell in enumerate(cells):
            side = "right" if names and c else "left"
            style = f"text-align: {side}; white-space: pre-line; vertical-align: top"
            inner += f'<{kind} style="{style}">{escape(cell)}</{kind}>'
        return f"<tr>{inner}</tr>"

    head = f"<thead>{row(names, 'th')}</thead>" if names else ""
    return f"<table>{head}<tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>"
