"""Vectors from an OpenAI-compatible service: in order, counted, and never at the price of a secret."""

import base64
import gzip
import re
import socket
from contextlib import closing

import numpy as np
import pytest
from pydantic import SecretStr

from embedders import HOSTILE_TEXTS, Asked, Script, answer, failing, serving, vector_of
from kg_adapters.embedding import Embedder, EmbeddingUsage, OpenAiEmbedder
from kg_adapters.embedding.openai_compatible import EncodingFormat
from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from loopback_service import Reply

KEY = "sk-very-secret"


def embedder(
    url: str,
    *,
    batch_size: int = 256,
    timeout_s: float = 10,
    max_retries: int = 0,
    encoding_format: EncodingFormat = "float",
    price_per_million_tokens: float = 0,
) -> OpenAiEmbedder:
    return OpenAiEmbedder(
        model="stand-in",
        dimensions=2,
        api_key=SecretStr(KEY),
        base_url=url,
        batch_size=batch_size,
        timeout_s=timeout_s,
        max_retries=max_retries,
        encoding_format=encoding_format,
        price_per_million_tokens=price_per_million_tokens,
    )


def unit(text: str) -> list[float]:
    vector = np.array(vector_of(text), dtype=np.float32)
    scaled: list[float] = (vector / np.linalg.norm(vector)).tolist()
    return scaled


@pytest.mark.parametrize("encoding", ["float", "base64"])
async def test_vectors_come_in_the_order_of_the_texts_in_batches_and_are_counted(encoding: EncodingFormat) -> None:
    texts = ["a", "bb", "", "cccc", "dd"]
    with serving(answer) as service:
        model = embedder(service.url, batch_size=3, encoding_format=encoding, price_per_million_tokens=20)
        found = await model.embed(texts)
        await model.aclose()
    assert found.tolist() == [pytest.approx(unit(text) if text else [0, 0]) for text in texts]
    assert service.requests == [
        Asked(f"Bearer {KEY}", "stand-in", ["a", "bb", "cccc"], encoding),
        Asked(f"Bearer {KEY}", "stand-in", ["dd"], encoding),
    ]
    assert model.usage == EmbeddingUsage(requests=2, texts=4, tokens=40, cost=0.0008)


async def test_any_text_can_be_sent_and_a_long_one_is_cut() -> None:
    with serving(answer) as service:
        model = embedder(service.url)
        found = await model.embed(HOSTILE_TEXTS)
        assert (await model.embed(["", " "])).tolist() == [[0, 0], [0, 0]]
        await model.aclose()
    (asked,) = service.requests
    assert max(len(text) for text in asked.input) == 2_000
    assert np.linalg.norm(found, axis=1).tolist() == pytest.approx([0, 0, *[1] * (len(HOSTILE_TEXTS) - 2)])


async def test_a_busy_service_is_asked_again() -> None:
    with serving(failing(429), failing(503), answer) as service:
        model = embedder(service.url, max_retries=2)
        found = await model.embed(["a"])
        await model.aclose()
    assert found.tolist() == [pytest.approx(unit("a"))]
    assert (len(service.requests), model.usage.requests) == (3, 1)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "Something is wrong."),
        (401, "Check the authentication in its settings."),
        (404, "There is no embedding service at this path: check the URL."),
        (429, "Ask again later, and less often."),
        (500, "Something is wrong."),
    ],
)
async def test_a_refusal_says_what_to_check(status: int, advice: str) -> None:
    with serving(failing(status)) as service:
        model = embedder(service.url)
        with pytest.raises(
            BackendError, match=rf"^The embedding service 127\.0\.0\.1:\d+ .*\(HTTP {status}\)"
        ) as caught:
            await model.embed(["a"])
        await model.aclose()
    assert "Something is wrong." in str(caught.value)
    assert advice in str(caught.value)


async def test_a_key_is_in_no_message_and_no_representation() -> None:
    with serving(failing(401, f"Incorrect key {KEY}. " + "x" * 1_000)) as service:
        model = embedder(service.url)
        with pytest.raises(BackendError) as caught:
            await model.embed(["a"])
        await model.aclose()
    assert KEY not in f"{caught.value}{model!r}{vars(model)}{model.fingerprint}"
    assert len(str(caught.value)) < 500


def reply(content: object) -> Script:
    return lambda _: Reply(content)


def vectors(*data: object) -> Script:
    return reply({"data": data})


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (reply(b"<html>"), "the answer has an unexpected form."),
        (reply({"error": "none"}), "the answer has an unexpected form."),
        (vectors(), "there are 0 vectors for 1 texts."),
        (vectors({"index": 1, "embedding": [1, 2]}), "there are 1 vectors for 1 texts."),
        (vectors({"index": 0, "embedding": [1, 2, 3]}), "a vector has 3 dimensions, and 2 were set."),
        (vectors({"index": 0, "embedding": [1e300, 1]}), "a vector holds what is not a number."),
        (vectors({"index": 0, "embedding": "not base64!"}), ""),
        (vectors({"index": 0, "embedding": "AAAA"}), ""),
    ],
)
async def test_an_answer_without_the_right_vectors_is_an_error(script: Script, reason: str) -> None:
    with serving(script) as service:
        model = embedder(service.url)
        with pytest.raises(BackendError, match=rf"gave no embeddings: .*{re.escape(reason)}"):
            await model.embed(["a"])
        await model.aclose()
    assert model.usage == EmbeddingUsage()


async def test_a_service_that_never_answers_is_given_up_at_the_deadline() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port: int = silent.getsockname()[1]
        model = embedder(f"http://127.0.0.1:{port}/v1", timeout_s=0.05)
        with pytest.raises(BackendTimeout, match=r"gave no answer within 0\.05 s"):
            await model.embed(["a"])
        await model.aclose()


def test_the_fingerprint_tells_models_services_and_lengths_apart_and_can_name_a_folder() -> None:
    models = [
        OpenAiEmbedder(model="org/model:1", dimensions=2),
        OpenAiEmbedder(model="org/model 1", dimensions=2),
        OpenAiEmbedder(model="org/model:1", dimensions=3),
        OpenAiEmbedder(model="org/model:1", dimensions=2, base_url="http://127.0.0.1:1/v1"),
        OpenAiEmbedder(model="x" * 500, dimensions=2),
    ]
    assert all(isinstance(model, Embedder) for model in models)
    fingerprints = {model.fingerprint for model in models}
    assert len(fingerprints) == len(models)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,100}", each) for each in fingerprints)
    same = OpenAiEmbedder(
        model="org/model:1", dimensions=2, base_url="https://api.openai.com/v1/", api_key=SecretStr("k")
    )
    assert same.fingerprint == models[0].fingerprint


async def test_a_service_without_a_key_is_asked_without_one_of_the_users() -> None:
    with serving(answer) as service:
        model = OpenAiEmbedder(model="local", dimensions=2, base_url=service.url)
        await model.embed(["a"])
        await model.aclose()
        await model.aclose()
    assert [asked.authorization for asked in service.requests] == [None]


async def test_a_reply_without_usage_counts_no_tokens() -> None:
    with serving(vectors({"index": 0, "embedding": [3, 4]})) as service:
        model = embedder(service.url)
        assert (await model.embed(["a"])).tolist() == [pytest.approx([0.6, 0.8])]
        await model.aclose()
    assert model.usage == EmbeddingUsage(requests=1, texts=1)


async def test_a_key_is_not_shown_in_another_form_either() -> None:
    packed = base64.b64encode(f"me:{KEY}".encode()).decode()
    with serving(failing(403, f"You sent Basic {packed}.")) as service:
        model = embedder(service.url.replace("//", "//ann:sesame@"))
        with pytest.raises(BackendError) as caught:
            await model.embed(["a"])
        await model.aclose()
    assert "(HTTP 403): You sent Basic …. " in str(caught.value)
    assert "sesame" not in str(caught.value)


async def test_an_answer_is_read_within_bounds_however_it_is_packed() -> None:
    def packed(content: bytes, packing: str = "gzip") -> Script:
        return lambda _: Reply(gzip.compress(content), 200, {"Content-Encoding": packing})

    async def said(script: Script) -> str:
        with serving(script) as service:
            model = embedder(service.url)
            with pytest.raises(BackendError) as caught:
                await model.embed(["a"])
            await model.aclose()
        return str(caught.value)

    assert "is larger than 1.01638 MB and was not read further" in await said(packed(b"0" * 5_000_000))
    assert "compressed its answer ('br') in a way that cannot be read" in await said(packed(b"", "br"))


def test_a_base_url_with_a_query_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidRequest, match=r"must end before \? or #") as raised:
        embedder("https://example.org/v1?key=sesame")
    assert "sesame" not in str(raised.value)
