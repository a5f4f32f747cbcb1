from kg_server.answers.results import fitting, token_count


def test_tokens_are_estimated_from_above_by_bytes() -> None:
    assert [token_count(text) for text in ("", "a", "abc", "abcd", "\u6771\u4eac")] == [0, 1, 1, 2, 2]


def test_only_whole_lines_fit() -> None:
    assert fitting(["12345", "12345", "12345"], max_tokens=4) == 2
    assert fitting(["1" * 100], max_tokens=4) == 0
    assert fitting([], max_tokens=4) == 0
    assert fitting(["1", "2"], max_tokens=4) == 2


def test_lines_are_made_until_one_is_too_many() -> None:
    lines = iter(["12345", "12345", "12345", "12345"])
    assert fitting(lines, max_tokens=4) == 2
    assert list(lines) == ["12345"]
