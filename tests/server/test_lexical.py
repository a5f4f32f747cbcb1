from kg_server.lexical import similarities


def test_the_text_that_shares_most_with_the_question_scores_highest() -> None:
    scores = similarities("Where was he born?", ["place of birth", "born in", "occupation"])
    assert max(range(3), key=scores.__getitem__) == 1
    assert scores[2] < scores[1] <= 1


def test_a_text_is_like_itself_and_unlike_nothing() -> None:
    (same, empty) = similarities("capital", ["capital", ""])
    assert round(same, 6) == 1
    assert empty == 0
