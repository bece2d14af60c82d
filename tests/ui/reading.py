"""What a person reads of a page: its text, its links, its forms, and whether the markup is whole."""

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr", "wbr"}


class Page(HTMLParser):
    """A parsed page. `text` leaves out titles and descriptions of drawings, which are read apart."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.links: dict[str, str] = {}
        self.fields: dict[str, str] = {}
        self.unclosed: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []  # tag, name, value
        self._parts: list[str] = []
        self._href: list[tuple[str, int]] = []
        self.feed(html)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self._parts)).replace("\u202f", " ").strip()

    @property
    def answer(self) -> str:
        found = re.search(r'<p class="answer[^"]*">(.*?)</p>', self.html, re.S)
        assert found is not None
        return Page(found.group(1)).text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.attributes += [(tag, name, value) for name, value in values.items()]
        if tag not in VOID and not self.html_is_self_closing():
            self.unclosed.append(tag)
        if tag == "a":
            self._href.append((values.get("href", ""), len(self._parts)))
        if tag in ("input", "textarea") and "name" in values:
            self.fields[values["name"]] = values.get("value", "")

    def html_is_self_closing(self) -> bool:
        return self.get_starttag_text().endswith("/>")  # type: ignore[union-attr]

    def handle_endtag(self, tag: str) -> None:
        if tag in self.unclosed:
            at = len(self.unclosed) - 1 - self.unclosed[::-1].index(tag)
            # Rows, cells and list items may be left open; nothing else is.
            assert self.unclosed[at:] == [tag], f"<{tag}> closes over {self.unclosed[at + 1 :]}"
            del self.unclosed[at:]
        if tag == "a" and self._href:
            href, start = self._href.pop()
            self.links[" ".join("".join(self._parts[start:]).split())] = href
        if tag in ("p", "td", "th", "li", "dd", "dt", "h1", "h2", "h3", "div", "section", "option", "span"):
            self._parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self.unclosed or self.unclosed[-1] not in ("title", "desc", "style", "script"):
            self._parts.append(data)
