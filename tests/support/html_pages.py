"""What a browser makes of a page: its tags, its text, and the style of nothing."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Collects tags with their attributes, and the text outside of style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every tag of this name."""
        return [found for name, found in self.tags if name == tag]

    def ids(self) -> list[str]:
        """The ids of all tags."""
        return [str(found["id"]) for _, found in self.tags if "id" in found]
