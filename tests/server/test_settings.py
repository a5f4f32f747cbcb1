import re
import traceback
from pathlib import Path

import pytest
from pydantic import SecretStr

from kg_adapters.errors import InvalidRequest
from kg_boundary.secrets import Redactor
from kg_server.commands.invocation import may_hold_secret
from kg_server.commands.loading import LoadedSettings, load_settings
from kg_server.settings import FIELDS, Settings, variable

KEY = "sk-5f3a9c-of-mine"


def fixed(**changes: object) -> dict[str, object]:
    return {"cache_folder": "/cache", "data_folder": "/data", **changes}


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(
    flags: dict[str, object] | None = None, environ: dict[str, str] | None = None, file: Path | None = None
) -> str:
    with pytest.raises(InvalidRequest) as caught:
        load_settings(flags or {}, environ or {}, file)
    return str(caught.value)


def test_without_any_setting_the_sample_is_served_with_the_defaults() -> None:
    loaded = load_settings({}, {})
    assert loaded == LoadedSettings(Settings(), dict.fromkeys(FIELDS, "the default"))
    assert (loaded.settings.graph, loaded.settings.max_tokens, loaded.settings.timeout_s) == ("sample", 2_000, 10.0)


def test_a_flag_beats_the_environment_and_the_environment_beats_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "max_tokens = 700\ntimeout_s = 3\n[sparql]\nmax_rows = 30\ntimeout_s = 4\n")
    environ = {"KG_SEXTANT_MAX_TOKENS": "200", "KG_SEXTANT_SPARQL__TIMEOUT_S": "5", "PATH": "/bin"}
    loaded = load_settings(fixed(max_tokens=600), environ, file)
    assert loaded.settings == Settings.model_validate(
        fixed(max_tokens=600, timeout_s=3.0, sparql={"max_rows": 30, "timeout_s": 5.0})
    )
    assert {name: origin for name, origin in loaded.origins.items() if origin != "the default"} == {
        "cache_folder": "the command line",
        "data_folder": "the command line",
        "max_tokens": "the command line",
        "timeout_s": f"the file {file}",
        "sparql.timeout_s": "the environment",
        "sparql.max_rows": f"the file {file}",
    }


def test_a_flag_that_was_not_given_leaves_the_environment_its_say() -> None:
    assert load_settings({"graph": None}, {"KG_SEXTANT_GRAPH": "mine.ttl"}).settings.graph == "mine.ttl"


@pytest.mark.parametrize("languages", ["de, en", " de,en,"])
def test_languages_are_written_with_commas(languages: str) -> None:
    assert load_settings({}, {"KG_SEXTANT_LANGUAGES": languages}).settings.languages == ("de", "en")


def test_languages_are_a_list_in_the_file_and_the_log_level_may_be_in_capitals(tmp_path: Path) -> None:
    file = write(tmp_path, 'languages = ["de", "en"]\nlog_level = "DEBUG"\n')
    loaded = load_settings({}, {}, file).settings
    assert (loaded.languages, loaded.log_level) == (("de", "en"), "debug")


def test_an_unknown_variable_is_named_with_what_may_have_been_meant() -> None:
    assert refusal(environ={"KG_SEXTANT_MAX_TOKEN": "5"}) == (
        "Unknown setting: KG_SEXTANT_MAX_TOKEN in the environment. Did you mean KG_SEXTANT_MAX_TOKENS?"
    )


def test_an_unknown_key_of_the_file_is_named_with_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "timeout = 5\n")
    assert refusal(file=file) == f"Unknown setting: timeout in the file {file}. Did you mean timeout_s?"


def test_an_unknown_flag_is_named_as_it_is_written() -> None:
    assert refusal({"max_tokns": 5}) == "Unknown setting: --max-tokns in the command line. Did you mean --max-tokens?"


def test_an_unknown_key_of_a_section_is_named_with_what_may_have_been_meant(tmp_path: Path) -> None:
    file = write(tmp_path, "[endpoint]\ntokn = 'x'\n")
    assert refusal(file=file) == f"Unknown setting: endpoint.tokn in the file {file}. Did you mean endpoint.token?"


def test_an_unknown_name_like_no_other_gets_the_list_of_settings() -> None:
    assert refusal(environ={"KG_SEXTANT_XYZZY": "5"}).endswith(f"Known are {', '.join(FIELDS)}.")


def test_a_wrong_value_is_named_with_its_place_and_the_purpose_of_the_setting() -> None:
    assert refusal(environ={"KG_SEXTANT_SPARQL__MAX_ROWS": "200000"}) == (
        "KG_SEXTANT_SPARQL__MAX_ROWS in the environment is wrong: it must be less than or equal to 100000. "
        "The largest `max_rows` of a `Sparql` call."
    )


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("KG_SEXTANT_HTTP__PORT", "name it in --http HOST:PORT of serve"),
        ("KG_SEXTANT_HTTP_PORT", "name it in --http HOST:PORT of serve"),
        ("KG_SEXTANT_MAX_EXPANSIONS", "a path search ends after timeout_s"),
    ],
)
def test_a_setting_that_is_gone_is_refused_with_what_to_do_instead(written: str, advice: str) -> None:
    assert refusal(environ={written: "9"}) == (
        f"{written} in the environment is no longer a setting: {advice}. Remove it."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [("graph = ", "is not valid TOML"), ("graph = '\udcff'", "is not valid TOML")],
    ids=["no value", "no UTF-8"],
)
def test_a_file_that_is_no_toml_says_so(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refusal(file=file).startswith(f"The settings file {file} {message}")


def test_a_file_that_is_missing_says_so(tmp_path: Path) -> None:
    file = tmp_path / "none.toml"
    assert refusal(file=file) == f"The settings file {file} cannot be read: No such file or directory."


def test_the_variables_of_openai_count_where_none_of_ours_is_set() -> None:
    environ = {"OPENAI_API_KEY": "sk-theirs", "OPENAI_BASE_URL": "http://theirs/v1"}
    loaded = load_settings({}, environ)
    assert loaded.settings.embedding.api_key == SecretStr("sk-theirs")
    assert loaded.settings.embedding.base_url == "http://theirs/v1"
    ours = load_settings({}, {**environ, "KG_SEXTANT_EMBEDDING__API_KEY": "sk-ours"})
    assert ours.settings.embedding.api_key == SecretStr("sk-ours")
    assert (loaded.origins["embedding.api_key"], loaded.origins["graph"]) == ("the environment", "the default")


def test_old_names_are_accepted_with_one_warning_that_names_the_new_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "llm = 'gpt'\nimport_literal_mb = 3\nlabel_relations = ['ex:title']\n")
    environ = {"KG_SEXTANT_ENDPOINT_TOKEN": "s", "KG_SEXTANT_EMBEDDER": "LEXICAL", "KG_SEXTANT_HTTP_MAX_STREAMS": "3"}
    settings = load_settings({}, environ, file).settings
    assert (settings.llm.model, settings.imports.literal_mb, settings.relations.labels) == ("gpt", 3, ("ex:title",))
    assert (settings.endpoint.token, settings.embedding.embedder) == (SecretStr("s"), "lexical")
    (warning,) = capsys.readouterr().err.splitlines()
    assert "llm (now llm.model)" in warning
    assert "KG_SEXTANT_ENDPOINT_TOKEN (now KG_SEXTANT_ENDPOINT__TOKEN)" in warning
    assert "KG_SEXTANT_HTTP_MAX_STREAMS (has no effect)" in warning


@pytest.mark.parametrize("old", ["KG_SEXTANT_TYPE_RELATIONS", "KG_SEXTANT_RELATIONS_TYPES"])
def test_the_present_name_of_a_setting_wins_over_an_earlier_one(old: str) -> None:
    loaded = load_settings({}, {old: "http://e/old", "KG_SEXTANT_RELATIONS__TYPES": "http://e/new"})
    assert loaded.settings.relations.types == ("http://e/new",)


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    loaded = load_settings({}, {"KG_SEXTANT_EMBEDDING__API_KEY": "sk-secret"})
    assert "sk-secret" not in f"{loaded!r} {loaded.settings.model_dump(mode='json')} {loaded.settings}"
    wrong = refusal(file=write(tmp_path, "[embedding]\napi_key = 4711"))
    assert ("4711" in wrong, wrong.startswith("embedding.api_key in the file")) == (False, True)


def test_all_secrets_among_the_settings_are_known_once() -> None:
    environ = {
        "KG_SEXTANT_ENDPOINT__USER": "ada",
        "KG_SEXTANT_ENDPOINT__PASSWORD": "secret-1",
        "KG_SEXTANT_LLM__API_KEY": "secret-2",
        "OPENAI_API_KEY": "secret-3",
        "OPENAI_BASE_URL": "https://bob:secret-4@example.org/v1",
        "KG_SEXTANT_MEMORY__DATABASE": "postgresql://cat:secret%2D6@db/memories",
        "KG_SEXTANT_GRAPH": "mine://host?api_key=secret-5&database=wikidata",
    }
    settings = load_settings({}, environ).settings
    secrets = {*(f"secret-{number}" for number in range(1, 7)), environ["KG_SEXTANT_MEMORY__DATABASE"]}
    assert settings.redactor == Redactor(frozenset(secrets), frozenset({"ada", "bob"}))
    assert settings.redactor is settings.redactor


def test_every_setting_that_is_secret_by_its_name_is_kept_as_a_secret() -> None:
    named = {
        name for name in FIELDS if re.search("(?<!tls_)key(?!s)|password|secret|(?<!max_)token(?!s)|database", name)
    }
    kept = {name for name, field in FIELDS.items() if field.annotation == SecretStr | None}
    assert named == kept


def test_a_base_url_with_a_query_is_refused_without_showing_it() -> None:
    said = refusal(environ={"KG_SEXTANT_LLM__BASE_URL": "https://ann:pass@example.org/v1?key=sesame"})
    assert said.startswith("KG_SEXTANT_LLM__BASE_URL in the environment is wrong: it must end before ? or #")


@pytest.mark.parametrize("password", ["a@sesame", "[sesame]", "a#sesame"])
def test_a_password_that_ends_the_url_of_a_database_too_early_is_refused(password: str) -> None:
    said = refusal(environ={"KG_SEXTANT_MEMORY__DATABASE": f"postgresql://ann:{password}@db/memories"})
    assert ("@ is written as %40" in said, "sesame" in said) == (True, False)


@pytest.mark.parametrize("wrong", [KEY, f"[{KEY}]", f"a={KEY}", f"en,{KEY}"])
@pytest.mark.parametrize("name", sorted(FIELDS))
def test_no_value_of_a_rejected_setting_is_shown(name: str, wrong: str) -> None:
    shown = "accepted"
    try:
        load_settings({}, {variable(name): wrong})
    except InvalidRequest as error:
        shown = "".join(traceback.format_exception(error))
    assert KEY not in shown


@pytest.mark.parametrize(
    "text",
    [
        f'[llm]\nkey = "{KEY}"',
        f'[llm."{KEY}"]\nx = 1',
        f'max_tokens = "{KEY}"',
        f'llm.api_key = ["{KEY}"]',
        f'llm.api_key = "{KEY}',
        f"llm.api_key = {KEY}",
        f'llm.base_url = "{KEY}"',
        f'[endpoint]\nuser = "{KEY}"',
        f'prefixes = ["ex=http://example.org/", "{KEY}"]',
        f'languages = ["{KEY}!"]',
        f'llm_key = "{KEY}"',
    ],
)
def test_a_key_at_the_wrong_place_of_the_file_is_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        load_settings({}, {}, write(tmp_path, text))
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_name_without_an_end_is_shown_in_part(tmp_path: Path) -> None:
    assert len(refusal(file=write(tmp_path, f"{'x' * 100_000} = 1"))) < 5_000


@pytest.mark.parametrize(
    "tag", ["e", "en_GB", "en gb", 'en") FILTER("', "en|de", "abcdefghi", "en-", "1en", "en\n", "日本"]
)
def test_what_is_no_language_tag_is_refused_before_it_reaches_a_query(tag: str) -> None:
    said = refusal(flags={"languages": ("en", tag)})
    assert "a language tag must be written like en, pt-BR or zh-Hans. The languages of labels" in said


def test_language_tags_may_have_parts() -> None:
    loaded = load_settings({"languages": "en, pt-BR,zh-Hans-CN ,mul,be-tarask"}, {})
    assert loaded.settings.languages == ("en", "pt-BR", "zh-Hans-CN", "mul", "be-tarask")


SEVERAL = """
timeout_s = 5
endpoint.max_retries = 1
[graphs]
films = "https://films.example.org/sparql"
[graphs.people]
graph = "./people.ttl"
languages = ["de"]
relations.labels = ["ex:title"]
endpoint.max_mb = 2
[graphs.wikidata]
"""


def several(file: Path, *words: str, **environ: str) -> LoadedSettings:
    """Load the settings of words of the command line."""
    return load_settings({"graph": list(words)}, {f"KG_SEXTANT_{name}": value for name, value in environ.items()}, file)


def test_each_graph_has_settings_of_its_own_over_those_that_all_share(tmp_path: Path) -> None:
    file = write(tmp_path, SEVERAL)
    settings = load_settings({"max_tokens": 600}, {"KG_SEXTANT_GRAPHS__FILMS__TIMEOUT_S": "7"}, file).settings
    films, people, wikidata = (settings.of(name) for name in settings.graphs)
    assert [each.graph for each in (films, people, wikidata)] == [
        "https://films.example.org/sparql",
        "./people.ttl",
        "wikidata",
    ]
    assert [each.timeout_s for each in (films, people, wikidata)] == [7.0, 5.0, 5.0]
    assert (people.languages, people.relations.labels) == (("de",), ("ex:title",))
    assert (people.endpoint.max_mb, people.endpoint.max_retries) == (2, 1)
    assert (films.languages, films.endpoint.max_mb, films.endpoint.max_retries) == (("en", "mul"), 32, 1)
    assert {each.max_tokens for each in (settings, films, people, wikidata)} == {600}
    assert not people.graphs
    with pytest.raises(InvalidRequest, match="The graphs are films, people, wikidata"):
        settings.of("film")


def test_a_flag_wins_over_what_a_graph_has_of_its_own(tmp_path: Path) -> None:
    flags = {"graph": ["people", "films"], "languages": "fr"}
    settings = load_settings(flags, {}, write(tmp_path, SEVERAL)).settings
    assert [(name, settings.of(name).languages) for name in settings.graphs] == [
        ("people", ("fr",)),
        ("films", ("fr",)),
    ]


@pytest.mark.parametrize(
    ("words", "environ", "name", "graph"),
    [
        (["people"], {}, "people", "./people.ttl"),
        (["People=./new.ttl"], {}, "people", "./new.ttl"),
        ([], {"GRAPH": "people"}, "people", "./people.ttl"),
        (["./other.ttl"], {}, None, "./other.ttl"),
        (["https://people.example.org/sparql?people=1"], {}, None, "https://people.example.org/sparql?people=1"),
    ],
)
def test_one_graph_is_chosen_among_several(
    tmp_path: Path, words: list[str], environ: dict[str, str], name: str | None, graph: str
) -> None:
    loaded = several(write(tmp_path, SEVERAL), *words, **environ)
    assert (loaded.name, loaded.settings.graph, dict(loaded.settings.graphs)) == (name, graph, {})
    assert loaded.settings.languages == (("en", "mul") if name is None else ("de",))


def test_a_file_whose_path_looks_like_a_named_graph_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people=old.ttl").touch()
    assert load_settings({"graph": "people=old.ttl"}, {}).settings.graph == "people=old.ttl"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("./Old people.nt.gz", "old-people"),
        ("store/", "store"),
        ("https://u:secret@query.films.example.org/sparql?key=secret", "example"),
        ("https://www.uniprot.org/sparql", "uniprot"),
        ("http://127.0.0.1:7200/repositories/x", "127-0-0-1"),
        ("http://localhost:3030/ds", "localhost"),
        ("sample:world", "sample-world"),
        ("wikidata:https://mirror.example.org", "wikidata"),
        ("mine://host?password=secret", "mine"),
        ("./a-very-long-name-of-a-file.ttl", "a-very-long-name"),
    ],
)
def test_a_graph_without_a_name_gets_one_of_several_from_its_file_or_address(word: str, name: str) -> None:
    assert list(load_settings({"graph": [word, "x=sample"]}, {}).settings.graphs) == [name, "x"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["my_people=./p.ttl"], "'my_people' cannot be the name of a graph: names have letters, digits and hyphens"),
        (["a-name-too-long-x=./p.ttl"], "at most 16, as in people."),
        (["-x=./p.ttl"], "cannot be the name of a graph"),
        (["=./p.ttl"], "cannot be the name of a graph"),
        (["людей=./p.ttl"], "cannot be the name of a graph"),
        (["people="], "There is no graph behind people=. Write it as in people=./people.ttl."),
        (["./people.ttl", "old/people.nt"], "Two graphs are called people. Give each a name of its own"),
        (["https://[::x/sparql", "sample"], "has no name. Give it one"),
        (["./люди.ttl", "sample"], "has no name. Give it one, as in people=./люди.ttl."),
    ],
)
def test_a_graph_whose_name_cannot_be_used_is_refused(words: list[str], said: str) -> None:
    assert said in refusal({"graph": words})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[graphs.my_people]", "'my_people' cannot be the name of a graph"),
        ("[graphs.people.endpoint]\ntokn = 'x'", "Did you mean graphs.people.endpoint.token?"),
        ("[graphs.people]\nmax_tokens = 600", "cannot be set for one graph: it holds for all, as max_tokens."),
        ("[graphs.people]\ntimeout_s = -1", "graphs.people.timeout_s in the file"),
        ("[graphs.people]\nendpoint.token.x = 1", "graphs.people.endpoint in the file"),
        ("[graphs.people]\nendpoint.user = 'ada'", "The setting graphs.people.endpoint is wrong: user and password"),
        ("graphs = 'people'", "Unknown setting: graphs in the file"),
        ("graphs.people = 7", "graphs.people in the file"),
        ("[graphs]\npeople = 'a.ttl'\nPEOPLE = 'b.ttl'", "are called people: capital letters make no other name."),
        (
            "graph = 'sample'\n[graphs.people]",
            "is one graph, beside those by their names: people. Remove graph to serve",
        ),
    ],
)
def test_a_wrong_setting_of_a_graph_is_named_with_the_graph(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(file=write(tmp_path, text))


def test_notes_are_those_of_one_graph(tmp_path: Path) -> None:
    several: dict[str, object] = {"graph": ["a=sample", "b=sample:world"]}
    said = "would give a and b the same notes. Name those of each graph in the settings file, as notes in [graphs.a]"
    assert said in refusal({**several, "notes": "a.md"})
    own = "[graphs.a]\nnotes = 'a.md'\n"
    assert said.replace("graphs.a", "graphs.b") in refusal(several, {"KG_SEXTANT_NOTES": "b.md"}, write(tmp_path, own))
    loaded = load_settings(several, {}, write(tmp_path, f"{own}[graphs.b]\nnotes = 'b.md'"))
    assert [str(each.notes) for each in loaded.settings.graphs.values()] == ["a.md", "b.md"]


def test_the_secrets_of_every_graph_are_known_to_each_of_them_even_of_those_not_served() -> None:
    environ = {
        "KG_SEXTANT_GRAPHS__MY_FILMS__ENDPOINT__TOKEN": "secret-1",
        "KG_SEXTANT_GRAPHS__PEOPLE__ENDPOINT__USER": "ada",
        "KG_SEXTANT_GRAPHS__PEOPLE__ENDPOINT__PASSWORD": "secret-2",
        "KG_SEXTANT_GRAPHS__OLD__GRAPH": "https://bob:secret-3@old.example.org/sparql",
        "KG_SEXTANT_LLM__API_KEY": "secret-4",
    }
    words = ["my-films=https://films.example.org/sparql", "people=https://people.example.org/sparql"]
    settings = load_settings({"graph": words}, environ).settings
    all_of_them = Redactor(frozenset(f"secret-{number}" for number in range(1, 5)), frozenset({"ada", "bob"}))
    one = load_settings({"graph": "people=./p.ttl"}, environ).settings
    for each in (settings, settings.of("people"), settings.of("my-films"), one):
        assert each.redactor == all_of_them
        assert "secret" not in f"{each!r} {each.model_dump(mode='json', exclude={'graph', 'graphs'})}"
    assert settings.of("my-films").endpoint.token == SecretStr("secret-1")
    made = Settings(graphs={"films": settings.of("my-films"), "people": Settings()})
    assert made.of("people").redactor.secrets == {"secret-1", "secret-4"}
    assert settings.of("people").endpoint.token is None


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("KG_SEXTANT_GRAPHS__OLD_FILMS__ENDPOINT__TOKEN", True),
        ("KG_SEXTANT_graphs__films__endpoint__password", True),
        ("KG_SEXTANT_ENDPOINT__TOKEN", True),
        ("KG_SEXTANT_GRAPHS__FILMS__ENDPOINT__MAX_MB", False),
        ("KG_SEXTANT_MAX_TOKENS", False),
    ],
)
def test_variables_that_may_hold_a_secret_of_any_graph_are_known_by_their_names(name: str, secret: bool) -> None:
    assert may_hold_secret(name) == secret


def test_credentials_that_graphs_share_are_sent_to_one_host_alone() -> None:
    shared = {"KG_SEXTANT_ENDPOINT__TOKEN": "secret-1"}
    words = ["people=https://people.example.org/sparql", "films=https://films.example.org/sparql"]
    said = refusal({"graph": words}, shared)
    assert "KG_SEXTANT_ENDPOINT__TOKEN in the environment would be sent to the endpoints of people and films" in said
    assert "as KG_SEXTANT_GRAPHS__FILMS__ENDPOINT__TOKEN." in said
    own = {
        "KG_SEXTANT_GRAPHS__FILMS__ENDPOINT__USER": "ada",
        "KG_SEXTANT_GRAPHS__FILMS__ENDPOINT__PASSWORD": "secret-2",
    }
    settings = load_settings({"graph": words}, {**shared, **own}).settings
    assert [settings.of(name).endpoint.token for name in settings.graphs] == [SecretStr("secret-1"), None]
    same = ["people=https://example.org/people/sparql", "films=https://example.org/films/sparql", "./local.ttl"]
    assert list(load_settings({"graph": same}, shared).settings.graphs) == ["people", "films", "local"]
