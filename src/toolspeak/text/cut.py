"""Long text, cut in the middle: its head and its tail say most."""


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` bytes and a note of what is missing; a short one as it is."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return text
    head, tail = data[: most - most // 2], data[len(data) - most // 2 :]
    start, end = head.decode("utf-8", "ignore"), tail.decode("utf-8", "ignore")
    missing = len(data) - len(start.encode()) - len(end.encode())
    return f"{start}\n[… {missing} bytes left out …]\n{end}"
