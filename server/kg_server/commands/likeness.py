"""How like a question texts are, for an agent that compares them itself."""

from collections.abc import Sequence

from kg_server.settings import Settings


async def likeness(settings: Settings, question: str, texts: Sequence[str]) -> Sequence[float]:
    """Return the cosine of a question and each text, by the embedder that the settings name.

    Raises:
        ModelUnavailable: It does not answer.
    """
    from kg_adapters.embedding import LexicalEmbedder, OpenAiEmbedder
    from kg_adapters.embedding.protocol import products
    from kg_server.embedders import embedder_of

    embedder = LexicalEmbedder() if settings.embedder == "lexical" else (await embedder_of(settings)).embedder
    try:
        vectors = await embedder.embed([question, *texts])
    finally:
        if isinstance(embedder, OpenAiEmbedder):
            await embedder.aclose()
    cosines: list[float] = products(vectors[1:], vectors[0]).tolist()
    return cosines
