"""The parameters of the agents, and how they are read from a command line or a settings file."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from kg_agents.evidence.answers import ClosedBook
from kg_agents.llm import AgentError
from kg_agents.llm.dialogue import Limits, Task, Writer
from kg_agents.llm.texts import schema_of
from kg_boundary.shown import in_plain_words
from kg_prompts import render
from kg_prompts.tools import SystemPrompt

AgentName: TypeAlias = Literal["tools", "oda", "graph-counselor"]

Manner: TypeAlias = Literal["paper", "sextant"]
"""`paper` does what the paper does, to reproduce its tables; `sextant` is the same method, grounded and cheap."""


class _Parameters:
    """Parameters of an agent."""

    __slots__ = ()

    closed_book: ClosedBook | None

    @property
    def in_paper(self) -> bool:
        """Whether the paper is followed: the question as it was asked, no system prompt, answers as the model wrote."""
        return False

    @property
    def own_answers(self) -> ClosedBook:
        """What becomes of what the model says by itself."""
        return self.closed_book or "apart"

    @property
    def paper_score(self) -> bool:
        """Whether observations must be scored exactly as in the paper of ODA."""
        return False

    @property
    def reflects(self) -> bool:
        """Whether a model is asked to reflect in a separate reply, possibly by another model."""
        return False


class _Mannered(_Parameters):
    """Parameters of an agent that has the manner of its paper and another one."""

    __slots__ = ()

    manner: Manner
    temperature: float
    reply_tokens: int
    structured: bool
    stop: str
    model_seed: int | None

    def task(self, purpose: str, write: Writer, form: type[BaseModel] | None = None) -> Task:
        """Return what a model is asked for a purpose.

        Args:
            purpose: What for, in a word.
            write: Writes the prompt.
            form: What the reply fills in, where the service can have it do so.
        """
        return Task(
            purpose,
            write,
            self.reply_tokens,
            self.temperature,
            system="" if self.in_paper else render(SystemPrompt()),
            schema=schema_of(form) if form is not None and self.structured else None,
            stop=self.stop,
            seed=self.model_seed,
        )

    @property
    def in_paper(self) -> bool:
        """See `_Parameters`."""
        return self.manner == "paper"

    @property
    def own_answers(self) -> ClosedBook:
        """What becomes of what the model says by itself."""
        return self.closed_book or ("allowed" if self.in_paper else "apart")


_ALL_OBSERVED: Final = 50_000
"""How long an observation of the paper may be: all that was observed, as far as a prompt goes."""


def _follow_the_paper(settings: "OdaSettings | CounselorSettings") -> None:
    """Set the paper's manner where a part of the paper's method is taken out."""
    if settings.ablation is not None:
        object.__setattr__(settings, "manner", "paper")


def _existing_file(path: str) -> str:
    if path and not Path(path).is_file():
        raise ValueError("there is no such file")
    return path


def _existing_folder(path: str) -> str:
    if path and not Path(path).is_dir():
        raise ValueError("there is no such folder")
    return path


OwnFile: TypeAlias = Annotated[str, AfterValidator(_existing_file)]
"""The path of a file; empty for none."""

OwnFolder: TypeAlias = Annotated[str, AfterValidator(_existing_folder)]
"""The path of a folder; empty for none."""


OdaAblation: TypeAlias = Literal["no-observation", "similar-reflection", "random-reflection", "generated-facts"]
"""A part that is taken out or replaced (sections 4.1 and 4.2)."""


@dataclass(frozen=True, slots=True)
class OdaSettings(_Mannered):
    """Section 3.2 of the paper, and limits.

    Args:
        iterations: The most rounds of observation, action and reflection.
        temperature: How freely the model chooses its words.
        reply_tokens: How long a reply may be.
        hops: How far an observation looks; D in the paper.
        top_n: How many triples of each hop it keeps; N.
        top_percent: From what share of these it goes on; P.
        kept: The most triples that one reflection keeps; K.
        entities: The most task-relevant entities of a round.
        found: The most triples that one action finds.
        paths: The most paths that one action finds; in the paper all, also through hubs.
        path_hops: How long a path may be.
        observation_tokens: How long the observation may be in a prompt; by default 700, in the paper all of it.
        action_tokens: How long the answer to an action may be.
        shown: How many facts of a hub are shown, unless the model names a relation; not in the paper.
        failures: After so many failed steps in a row the run ends.
        closed_book: What becomes of what the model says by itself; by default it counts as an answer in the paper's
            manner, where evidence labels answers and filters none, and stands apart otherwise.
        manner: As in the paper, or as practice taught.
        ablation: Which part of the paper's method is taken out or replaced; none by default. It brings the paper's
            manner with it.
        seed: What the dice of a random reflection begin with.
        batches: In how many parts at most candidates are reflected on.
        examples_folder: A folder with examples of good replies, as `oda-turn.md`; those shipped by default.
        structured: Whether replies are asked for as JSON, where the service can enforce it; not in the paper.
        stop: A text before which replies end; none by default.
        model_seed: What the model's dice begin with, where its service lets that be set.
        limits: What the whole run may use.
    """

    agent: ClassVar[AgentName] = "oda"

    iterations: int = 8
    temperature: float = 0.4
    reply_tokens: int = 500
    hops: int = 3
    top_n: int = 50
    top_percent: float = 10.0
    kept: int = 15
    entities: int = 15
    found: int = 200
    paths: int = 20
    path_hops: int = 3
    observation_tokens: int | None = None
    action_tokens: int = 8_000
    shown: int = 40
    failures: int = 2
    closed_book: ClosedBook | None = None
    manner: Manner = "sextant"
    ablation: OdaAblation | None = None
    seed: int = 0
    batches: int = 10
    examples_folder: OwnFolder = ""
    structured: bool = True
    stop: str = ""
    model_seed: int | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Choose the paper's manner for an ablation."""
        _follow_the_paper(self)

    @property
    def observed_tokens(self) -> int:
        """How long an observation may be."""
        return self.observation_tokens or (_ALL_OBSERVED if self.in_paper else 700)

    @property
    def paper_score(self) -> bool:
        """Whether observations must be scored exactly as in the paper of ODA."""
        return self.in_paper and self.ablation != "no-observation"

    @property
    def reflects(self) -> bool:
        """Whether a model is asked to reflect: in the paper's manner, unless something takes the place of that."""
        return self.in_paper and self.ablation in {None, "no-observation"}


_CHARACTERS_PER_TOKEN: Final = 3


CounselorAblation: TypeAlias = Literal["no-planning", "single-functions", "no-reflection"]
"""What is taken out (section 3.4): plans; functions inside each other and side by side; all judging."""


FunctionSet: TypeAlias = Literal["four", "all"]
"""The paper's four functions, also inside each other and side by side; or with those that work with sets and values."""


@dataclass(frozen=True, slots=True)
class CounselorSettings(_Mannered):
    """Section 3.1 and appendices A and D of the paper, and limits.

    Args:
        steps: The most steps of an attempt; T in the paper.
        reflections: How often an attempt that failed is reflected on and repeated; N.
        temperature: How freely the models choose their words.
        top_p: From which share of the likeliest words they choose.
        reply_tokens: How long a plan, a thought, an action or a judgement may be.
        reflection_tokens: How long a reflection may be.
        definition_tokens: How long the definition of the graph may be; by default 2,000 in the paper, 600 otherwise.
        closed_book: What becomes of what the model says by itself; by default it counts as an answer in the paper's
            manner, where evidence labels answers and filters none, and stands apart otherwise.
        manner: As in the paper, or as practice taught.
        ablation: What is taken out of the paper's method; nothing by default. It brings the paper's manner with it.
        functions: Which functions there are; by default four in the manner of the paper, and all otherwise.
        learnt: Which reflections the next attempt begins with.
        earlier_answer: Whether an earlier attempt's answer stands where the last one ends without any.
        failures: After so many failed steps in a row an attempt is given up.
        examples_folder: A folder with examples of good replies, as `graph_counselor-step.md`; those shipped by default.
        definition_file: A file with the definition of the graph; what the graph says of itself by default.
        structured: Whether replies are asked for as JSON, where the service can enforce it; not in the paper.
        judge_unreadable: What becomes of a judgement that cannot be read: it does not confirm; or, with `yes`, it does,
            and so does `[no]`, as in the released code.
        stop: A text before which replies end; none by default.
        model_seed: What the model's dice begin with, where its service lets that be set.
        limits: What the whole run may use; of time any in the paper, and 900 seconds otherwise.
    """

    agent: ClassVar[AgentName] = "graph-counselor"

    steps: int = 10
    reflections: Annotated[int, Field(ge=0)] = 2
    temperature: float = 0.7
    top_p: float = 0.9
    reply_tokens: int = 500
    reflection_tokens: int = 1_500
    definition_tokens: int | None = None
    closed_book: ClosedBook | None = None
    manner: Manner = "sextant"
    ablation: CounselorAblation | None = None
    functions: FunctionSet | None = None
    learnt: Literal["all", "latest"] = "all"
    earlier_answer: bool = True
    failures: int = 3
    examples_folder: OwnFolder = ""
    definition_file: OwnFile = ""
    structured: bool = True
    judge_unreadable: Literal["no", "yes"] = "no"
    stop: str = ""
    model_seed: int | None = None
    limits: Limits = field(default_factory=lambda: Limits(tokens=600_000, seconds=None))

    def __post_init__(self) -> None:
        """Choose the paper's manner for an ablation, and the time that the manner allows."""
        _follow_the_paper(self)
        if self.limits.seconds is None and not self.in_paper:
            object.__setattr__(self, "limits", replace(self.limits, seconds=900.0))

    def task(self, purpose: str, write: Writer, form: type[BaseModel] | None = None) -> Task:
        """Return what a model is asked for a purpose; a reflection may be longer than other replies."""
        most = self.reflection_tokens if purpose == "reflection" else self.reply_tokens
        return replace(_Mannered.task(self, purpose, write, form), max_tokens=most, top_p=self.top_p)

    @property
    def defined_tokens(self) -> int:
        """How long the definition of the graph may be."""
        return self.definition_tokens or (2_000 if self.in_paper else 600)

    @property
    def reflects(self) -> bool:
        """Whether an attempt that failed is reflected on."""
        return self.reflections > 0 and self.ablation != "no-reflection"

    @property
    def with_sets(self) -> bool:
        """Whether there are functions that work with sets and values, beside the paper's four."""
        return (self.functions or ("four" if self.in_paper else "all")) == "all"

    @property
    def reflection_characters(self) -> int:
        """How much of each reflection is kept: together they take at most a quarter of a prompt."""
        return self.limits.prompt_tokens * _CHARACTERS_PER_TOKEN // (4 * max(1, self.reflections))


@dataclass(frozen=True, slots=True)
class ToolsSettings(_Parameters):
    """How the model converses with the tools, and limits.

    Args:
        turns: The most replies; in the last one the model can only answer.
        calls: The most calls of tools.
        at_once: How many calls of one reply are made at the same time.
        failures: After so many calls in a row that the server did not answer, the model has to answer.
        temperature: How freely the model chooses its words.
        reply_tokens: How long a reply may be.
        result_tokens: How much of one result the model is shown.
        only: The tools that it is offered, separated by commas; `all` for all that the server has.
        seed: What the model's dice begin with, where its service lets that be set.
        closed_book: What becomes of what the model says by itself; by default it stands apart.
        limits: What the whole run may use.
    """

    agent: ClassVar[AgentName] = "tools"

    turns: int = 12
    calls: int = 20
    at_once: int = 8
    failures: int = 3
    temperature: float = 0.0
    reply_tokens: int = 2_000
    result_tokens: int = 4_000
    only: str = "Retrieve,GetNeighbor,GetPath,Schema,Compose,Sparql,Recall"
    seed: int | None = None
    closed_book: ClosedBook | None = None
    limits: Limits = field(default_factory=lambda: Limits(prompt_tokens=24_000))


AgentSettings: TypeAlias = OdaSettings | CounselorSettings | ToolsSettings

AGENTS: Final[Mapping[str, type[AgentSettings]]] = {
    kind.agent: kind for kind in (ToolsSettings, OdaSettings, CounselorSettings)
}
"""The parameters of each agent, by its name."""


_LIMITS: Final = tuple(field.name for field in fields(Limits))

S = TypeVar("S")


class InvalidParameter(AgentError):
    """A parameter is unknown, or has a wrong value; the text says which, and what is valid."""


def read_parameters(kind: type[S], written: Iterable[str]) -> S:
    """Return the parameters of an agent or a method, from texts such as `hops=2`; the last of a name counts.

    Args:
        kind: Those of which agent or method: a dataclass.
        written: The texts; those of limits are named as the limit, as in `tokens=50000`.

    Raises:
        InvalidParameter: One is unknown, or has a wrong value.
    """
    names = [*signature(kind).parameters]
    own = [name for name in names if name != "limits"]
    given = dict(_named(each, (*own, *(_LIMITS if "limits" in names else ()))) for each in written)
    values: dict[str, object] = {name: given[name] for name in own if name in given}
    adapter = TypeAdapter(kind)
    try:
        usual = adapter.validate_python(values)
        if isinstance(usual, AgentSettings):
            values["limits"] = asdict(usual.limits) | {name: given[name] for name in _LIMITS if name in given}
        return adapter.validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][-1])
        # The validator's own text shows the value, which may be a secret that was written at the wrong place.
        raise InvalidParameter(f"The parameter {name} cannot be used: {in_plain_words(first['msg'])}.") from None


def _named(written: str, known: Iterable[str]) -> tuple[str, str]:
    """Return the name and the value of a parameter.

    Raises:
        InvalidParameter: It has not this form, or nothing has this name.
    """
    name, sign, value = (part.strip() for part in written.partition("="))
    name = name.replace("-", "_")
    if not sign:
        which = f"The parameter {name}" if name in known else "A parameter"
        raise InvalidParameter(f"{which} has no value. Write name=value, as in hops=2.")
    if name not in known:
        near = get_close_matches(name, list(known), n=1)
        meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
        raise InvalidParameter(f"There is no parameter {name!r}. {meant}")
    return name, value
