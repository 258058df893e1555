"""What MkDocs does beside the pages in docs/: files of the repository that pages link to, and the generated reference.

Pages keep links that work in the repository (`../reports/paper/README.md`, `../src/byzmesh/doors.py`). Here such a link
leads to a page of the site: another page of Markdown as it is, a program or config as a page that shows it, a folder as
a list of what is in it, anything else as a copy. A link to what does not exist stays as it is, and the strict build
fails.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

import reference  # MkDocs puts the folder of a hook on the path while it loads it
from mkdocs.structure.files import File, Files
from named_pages import linked

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s#]+)(#[^)\s]*)?(\))")
INLINE = re.compile(r"<code>([^<\n]+)</code>")
SHOWN = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".edges": "text"}
"""Files that become a page, with the language of their text."""


def site_path(path: str) -> str:
    """Where a file of the repository is on the site.

    >>> site_path("docs/rules.md"), site_path("CONTRIBUTING.md"), site_path("src/byzmesh/doors.py")
    ('rules.md', 'CONTRIBUTING.md', 'source/src/byzmesh/doors.py.md')
    """
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"source/{path}/index.md"
    return f"source/{path}.md" if PurePosixPath(path).suffix in SHOWN else path


def targets(text: str, page: str) -> list[str]:
    """Files of the repository that a page links to; `page` is its path in the repository."""
    found = []
    for _, target, _, _ in LINK.findall(text):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if ":" not in target and _is_shown(path):
            found.append(path)
    return found


def _is_shown(path: str) -> bool:
    """Whether there is such a file, or a folder outside docs/."""
    return (ROOT / path).is_file() or ((ROOT / path).is_dir() and not f"{path}/".startswith(("docs/", "../", "./")))


def repointed(text: str, page: str) -> str:
    """The page with its links as they are on the site."""
    folder = posixpath.dirname(page)
    here = posixpath.dirname(site_path(page)) or "."

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[2]))
        if ":" in found[2] or not _is_shown(path):
            return found[0]
        return f"{found[1]}{posixpath.relpath(site_path(path), here)}{found[3] or ''}{found[4]}"

    return LINK.sub(link, text)


def on_files(files: Files, config: Any) -> Files:
    """Add the files that pages link to, and the generated pages."""
    os.environ.setdefault("MPLBACKEND", "agg")
    waiting = [f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")]
    for uri, plain in reference.pages().items():
        text = linked(plain, f"docs/{uri}")
        files.append(File.generated(config, uri, content=text))
        waiting += [path for path in targets(text, f"docs/{uri}") if site_path(path) not in files.src_uris]
        _add(files, config, targets(text, f"docs/{uri}"))
    while waiting:
        page = waiting.pop()
        if (ROOT / page).is_file() and page.endswith(".md"):
            waiting += _add(files, config, targets((ROOT / page).read_text(), page))
    return files


def _add(files: Files, config: Any, paths: list[str]) -> list[str]:
    """Add files of the repository; those that were not there yet."""
    new = [path for path in dict.fromkeys(paths) if site_path(path) not in files.src_uris]
    for path in new:
        language = SHOWN.get(PurePosixPath(path).suffix)
        if (ROOT / path).is_dir():
            inside = sorted(f"{path}/{file.name}" for file in (ROOT / path).iterdir() if file.suffix in {*SHOWN, ".md"})
            shown = [
                f"- [{posixpath.basename(one)}]({posixpath.relpath(site_path(one), f'source/{path}')})"
                for one in inside
            ]
            text = "\n".join([f"# {path}", "", *shown, ""])
            files.append(File.generated(config, site_path(path), content=text))
            _add(files, config, inside)
        elif language is None:
            files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))
        else:
            text = f"# {PurePosixPath(path).name}\n\n`{path}`\n\n````{language}\n{(ROOT / path).read_text()}````\n"
            files.append(File.generated(config, site_path(path), content=text))
    return new


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """A number and its interval stay on one line, as do 4e-07 and --option; a picture leads to itself in full size."""
    html = html.replace(" ± ", "\u00a0±\u00a0")
    html = INLINE.sub(_breakable, html)
    html = re.sub(r"(?<=[>\s(])(\d[\d.]*e[+-]\d+)(?=[<\s),;])", r'<span class="whole">\1</span>', html)
    return re.sub(r'(?<!>)(<img alt="[^"]*" src="([^"]+)" />)', r'<a class="picture" href="\2">\1</a>', html)


def _breakable(code: re.Match[str]) -> str:
    """Inline code that breaks between words and inside long names, not after the dashes of an option."""
    words = re.sub(r"\w{30,}", lambda name: name[0].replace("_", "_<wbr>"), code[1])
    return "<code>" + re.sub(r"(?<!\S)(--?[\w-]+)", r'<span class="whole">\1</span>', words) + "</code>"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links as they are on the site."""
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown
    path = uri if (ROOT / uri).is_file() and not (ROOT / "docs" / uri).is_file() else f"docs/{uri}"
    return repointed(linked(markdown, path), path)
