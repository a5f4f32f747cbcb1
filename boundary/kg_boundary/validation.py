"""What is wrong with a value that somebody wrote, in plain words in place of the validator's."""

from typing import Final

_BEGINNINGS: Final = (
    ("Value error, ", ""),
    ("Input should ", "it must "),
    ("String should ", "the text must "),
    ("List should ", "the list must "),
    ("Field required", "it is missing"),
    ("Extra inputs are not permitted", "there is no such field"),
)
_KINDS: Final = (
    ("a valid string, unable to parse raw data as a unicode string", "a text without lone surrogates"),
    ("a valid string", "a text"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid boolean", "true or false"),
    ("a valid dictionary", "an object"),
    ("a valid list", "a list"),
)
_REASON: Final = ", unable to parse string"


def in_plain_words(message: str) -> str:
    """Return what pydantic says of a value as a person would, to stand behind a colon: `it must be a whole number`."""
    said = message.partition(_REASON)[0]
    for theirs, ours in _BEGINNINGS:
        if said.startswith(theirs):
            said = ours + said.removeprefix(theirs)
            break
    for theirs, ours in _KINDS:
        said = said.replace(theirs, ours)
    return said
