"""Texts from graphs and models, made safe to print: on a terminal, some characters are orders."""

import json


def printable(text: str) -> str:
    """Return a text on one line, without characters that a terminal obeys or that turn the order of others round."""
    if text.isprintable():
        return text
    return " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())


def json_text(value: object, encoding: str) -> str:
    """Return JSON on several lines, in which such characters, and those that the output cannot take, are escaped.

    Args:
        value: What is written.
        encoding: That of the output.
    """
    text = json.dumps(value, ensure_ascii=not encoding.lower().startswith("utf"), indent=2)
    return "".join(mark if mark == "\n" or mark.isprintable() else json.dumps(mark)[1:-1] for mark in text)
