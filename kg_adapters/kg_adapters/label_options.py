"""The settings of the relations that name, describe and type entities, and of those that are inverse."""

from pydantic import Field

from kg_adapters.sections import Section, Texts


class RelationSettings(Section):
    """Which relations hold the names, descriptions and classes of entities."""

    labels: Texts = Field(
        default=(),
        description="Relations whose values are the names of entities, tried before the usual ones such as "
        "`rdfs:label`: IRIs, or prefixed names such as `ex:title`.",
    )
    aliases: Texts = Field(
        default=(), description="Relations whose values are other names of entities, tried before the usual ones."
    )
    descriptions: Texts = Field(
        default=(), description="Relations whose values describe entities, tried before the usual ones."
    )
    types: Texts = Field(
        default=(),
        description="Relations from an entity to its class, tried before the usual ones such as `rdf:type`.",
    )
    label_keys: Texts = Field(
        default=(),
        description="For each node type of a `graph.json`, the feature that holds its names, such as "
        "`opinion=plain_text`.",
    )
    standard_inverses: bool = Field(
        default=True,
        description="Whether pairs of well-known vocabularies, such as `skos:broader` and `skos:narrower`, count as "
        "inverse where the graph does not declare it.",
    )
