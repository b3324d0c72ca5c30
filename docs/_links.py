"""Check the links inside the built site: python docs/_links.py docs/_build/html. Exits with 1 if one leads nowhere."""

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINK = re.compile(r'(?:href|src)="([^"]+)"')
NAME = re.compile(r'(?:id|name)="([^"]+)"')


def main(folder):
    """Print each broken link with its page."""
    pages = {
        path.resolve(): path.read_text() for path in Path(folder).rglob("*.html") if path.name != "webpack-macros.html"
    }
    names = {path: {unquote(name) for name in NAME.findall(text)} for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for link in LINK.findall(text):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            here = unquote(parts.fragment)
            if not target.exists() or (here and target in names and here not in names[target]):
                broken.append(f"{path.name}: {link}")
    print("\n".join(broken) or f"{len(pages)} pages, no broken link")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
