"""The privacy card as one frozen type; page, note and catalogue entries are made from it too. A field is a key; one with nothing
to say is null or empty. `in_` is the key `in`. `public.complete_card` fills in the texts that have a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, TypeAlias

from release_pipeline.formats.about import About
from release_pipeline.policy.documents import Hash

CardAmount: TypeAlias = Annotated[str, "pattern:^([0-9]+([.][0-9]+)?|infinity)$"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """The trials after which parameters may have been chosen with knowledge of the data. They are the trials on confidential
    records (mask, and runs that released nothing) that the registry noted before the release was charged: on the same source, on
    the records of its population or of one of its predecessors, or under the policy's name."""

    count: Annotated[int, "minimum:1", "How many."]
    runs: Annotated[
        int,
        "minimum:0",
        "How many of them were runs that read the records and released nothing: one for each "
        "policy and each version of the records.",
    ]
    last: Annotated[str, "pattern:^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "The day of the last."]
    words: Annotated[str, "What that means for the claim."] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyName:
    """The policy that the release follows."""

    name: Annotated[str, "Its name."]
    steward: Annotated[str, "Who answers for it."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The definition that epsilon belongs to."""

    name: Annotated[str, "dp, zcdp or idp. They must never be compared by epsilon."]
    words: Annotated[str, "What it says."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBudget:
    """The budget of one column."""

    column: Annotated[str, "Its name."]
    epsilon: Annotated[CardAmount | None, "Its epsilon; null under zcdp, where it has a part of rho."]
    rho: Annotated[CardAmount | None, "Its rho, under zcdp."]
    of: Annotated[str, "What this epsilon is of."]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBudget:
    """The budget of one table."""

    table: Annotated[str, "Its name."]
    epsilon: Annotated[CardAmount | None, "Its epsilon; null where its noise is by rho, which no epsilon bounds."]
    rho: Annotated[CardAmount | None, "Its rho, under zcdp."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The epsilon of the release, in all and by column."""

    total: Annotated[CardAmount | None, "Epsilon of the release; null where the method has none."]
    delta: Annotated[
        CardAmount | None, "Under zcdp: the delta at which every epsilon of this card holds; null under other definitions."
    ]
    rho: Annotated[CardAmount | None, "Under zcdp: the rho of the release, which is what adds up; null under other definitions."]
    of: Annotated[str, "What the total is of."] = ""
    columns: Annotated[tuple[ColumnBudget, ...], "The part of each masked column."] = ()
    tables: Annotated[tuple[TableBudget, ...], "The part of each table beside the rows."] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The scope that the guarantee covers."""

    name: Annotated[str, "class, centroid, column or table."]
    words: Annotated[str, "What that means."] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WiderScope:
    """A wider scope, and what is lost at it."""

    scope: Annotated[str, "Its name."]
    bound: Annotated[str, "What is known of it, in words: a bound from public facts, or that it is not bounded."]
    why: Annotated[str | None, "Why it is not bounded; null where it is bounded."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The guarantee. An epsilon means nothing without its definition, its neighbours and its scope."""

    words: Annotated[str, "The whole claim in one sentence."]
    statement: Annotated[
        str, "The claim as a formal statement: what is claimed. It is in English on every card, for in English it is proved."
    ]
    definition: Definition
    neighbours: Annotated[str, "Which two tables must be hard to tell apart."]
    records_per_person: Annotated[
        int,
        "minimum:1",
        "How many records one person, or household, may have in the release; the total of epsilon covers them together.",
    ]
    privacy_unit: Annotated[str, "enum:person,household", "Whose records the claim is about."]
    record_count: Annotated[
        str | None,
        "enum:not protected",
        "That the claim does not protect how many records one person or household has, for it compares"
        " tables in which each has as many records; null where one has one record.",
    ] = None
    epsilon: Budget
    scope: Scope
    wider: Annotated[tuple[WiderScope, ...], "Scopes that the claim does not cover by itself."]
    not_protected: Annotated[tuple[str, ...], "What the release does not protect."]
    caveats: Annotated[tuple[str, ...], "What holds for every claim of this definition."] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """The method by which the values were masked."""

    name: Annotated[str, "Its short name."]
    words: Annotated[str, "What it does."]
    paper: Annotated[str, "Where it is described."]
    consistency: Annotated[str, "What was done to the noisy values afterwards: isotonic (their order was restored) or none."]
    values: Annotated[
        str,
        "enum:inside,anywhere",
        "Where masked values lie: inside (their declared domain) or anywhere (the noise left them where they are).",
    ]
    grid: Annotated[
        str,
        "enum:on,off",
        "Whether every masked value is a point of its column's declared grid: on, or off where "
        "values may lie between its points.",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The audience that may read the release."""

    readers: Annotated[
        str, "enum:public,licensed,internal", "Everybody, readers who are bound by terms, or people of the organisation."
    ]
    terms: Annotated[
        str | None,
        "The terms of licensed readers; of a public release the reason why more of its rows may be "
        "linked than is usual; else null.",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The size of the clusters or classes."""

    value: Annotated[
        int | None,
        "minimum:1",
        "The least number of records in a cluster of one column, or in a class; null where the method has neither.",
    ]
    words: Annotated[str, "What k is."]
    is_k_anonymity: Annotated[
        bool, "Whether every combination of the generalised quasi-identifiers has k records; false for clusters of one column."
    ] = False
    why_not: Annotated[str | None, "Why not; null where it is."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymity:
    """The anonymity achieved on the quasi-identifiers that are released unmasked."""

    value: Annotated[int | None, "minimum:1", "The smallest group of records that are equal in them; null where there are none."]
    words: Annotated[str, "What was counted."] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The total exposure of the same people, compared with the cap of their population."""

    epsilon: Annotated[
        CardAmount | None,
        "The sum of the releases of this policy so far, in its own definition and scope; null where it does not add up.",
    ]
    of: Annotated[str, "Which releases these are."] = ""
    population_spent: Annotated[CardAmount, "What is charged to the population in all, by whatever policy."]
    cap: Annotated[CardAmount, "The most that may be charged to the population."]
    cap_unit: Annotated[str, "What is counted: epsilon in one definition and scope, or releases."]
    words: Annotated[str, "How it is counted."] = ""


@dataclass(frozen=True, slots=True)
class SwappedView:
    """A release whose values were swapped at random, column by column, inside blocks of similar records: a row does not belong to
    one person."""

    k: Annotated[int, "How many people a block has at the least."]
    records: Annotated[int, "How many records a block has at the least: k for each that one person may have."]
    within: Annotated[tuple[str, ...], "The columns in which all records of a block have the same entries."]
    columns: Annotated[tuple[str, ...], "The columns whose values changed places."]
    words: Annotated[str, "Whose values a row has."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Counts of records."""

    in_: Annotated[int, "minimum:0", "In the confidential table."]
    out: Annotated[int, "minimum:0", "In the release."]
    kind: Annotated[str | None, "Whose rows these are, where they are nobody's; else null."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Records and cells removed because their group was small."""

    words: Annotated[str, "The rule."]
    cells_blanked: Annotated[int, "minimum:0", "How many cells were blanked."]


class EntryLabel(NamedTuple):
    """The label of one entry."""

    value: Annotated[str, "The entry, as a text."]
    label: Annotated[str, "What it means."]


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A released column. Columns that are dropped are not listed."""

    name: Annotated[str, "The column's name, as in the data."]
    role: Annotated[
        str, "What the column is: quasi (it could help to recognise somebody) or confidential. Identifiers are never released."
    ]
    done: Annotated[
        str,
        "What was done to it: noise (masked by the method), keep (released as it is), generalise,"
        " or missing (it says why the cells of the column before it are empty).",
    ]
    type: Annotated[
        str,
        "enum:number,integer,string,date,datetime",
        "The type of its values. Dates and times are those of ISO 8601 without a zone, and so are"
        " 'domain', 'atoms' and 'centre' of such a column; 'grid' is an amount of time, like 1 "
        "day.",
    ]
    why: Annotated[str, "Why it is declared and released like this, in the steward's words."]
    domain: Annotated[
        tuple[str, str] | None,
        "The declared domain, lower and upper end; confidential values beyond were clamped or "
        "stopped the release. Released ones may lie beyond where method.values is anywhere. Null "
        "where values are listed.",
    ] = None
    grid: Annotated[
        str | None,
        "The declared grid that values were rounded to before masking. Whether released values "
        "lie on it too says the method's 'grid'.",
    ] = None
    values: Annotated[
        tuple[str, ...], "uniqueItems:true", "The declared values, as texts; empty where a domain is declared."
    ] = ()
    epsilon: Annotated[CardAmount | None, "Epsilon of this column alone; null where no noise was added."] = None
    noise: Annotated[
        str | None,
        "How large the mean absolute noise of one released value can be, from declared facts "
        "alone; null where no noise was added.",
    ] = None
    missing: Annotated[str | None, "What a missing value became, and what a blank cell means."] = None
    hierarchy: Annotated[str | None, "By what a generalised column was made coarser, and how far; null for other columns."] = None
    levels: Annotated[
        tuple[str, ...],
        "The levels of a generalised column in words, from the value itself to the coarsest; empty for other columns.",
    ] = ()
    level: Annotated[
        int | None,
        "minimum:0",
        "The level that all records are released at; null where classes have labels of several levels, and for other columns.",
    ] = None
    law: Annotated[
        str | None,
        "What is known of the law of the column's noise, from declared facts alone; null where the column was not masked.",
    ] = None
    atoms: Annotated[
        tuple[str, ...],
        "uniqueItems:true",
        "Declared values that readers count, as decimals: restoring the order of the noisy values"
        " did not move them. Empty where none are declared.",
    ] = ()
    centre: Annotated[
        str | None, "Of a column that was counted by value: where its cells are finest, as a decimal; null where it was not."
    ] = None
    rho: Annotated[CardAmount | None, "Under zcdp: its part of rho; null under other definitions."] = None
    label: Annotated[str | None, "What the column has, in the steward's words; null where the policy gives none."] = None
    description: Annotated[
        str | None, "What there is to know of it, in the steward's words; null where the policy says nothing."
    ] = None
    unit: Annotated[str | None, "What its numbers count or measure; null where the policy says nothing."] = None
    question: Annotated[str | None, "What people were asked; null where the policy says nothing."] = None
    labels: Annotated[
        tuple[EntryLabel, ...], "What its entries mean, in the steward's words; empty where the policy labels none."
    ] = ()

    @property
    def label_of(self) -> dict[str, str]:
        """Return the label of each entry that has one."""
        return dict(self.labels)


@dataclass(frozen=True, slots=True)
class WeightView:
    """A weight: how many records each record counts for, or a factor for its number."""

    column: Annotated[str, "The column of weights, which need not be released."]
    least: Annotated[CardAmount, "The least weight that a record may have."]
    largest: Annotated[CardAmount, "The largest weight that a record may have, which noise is made for."]


@dataclass(frozen=True, slots=True)
class LevelView:
    """One level of a table."""

    level: Annotated[int, "minimum:0", "Its number: 0 for the values themselves."]
    cells: Annotated[int, "minimum:1", "How many cells it has."]
    noise: Annotated[
        str,
        "pattern:^(Laplace [0-9]+|Gaussian [0-9]+(/[0-9]+)?)(, of some)?$",
        "The law of the independent noise of each cell, in steps: discrete Laplace of a scale, or"
        " discrete Gaussian of a variance; Laplace 0 and Gaussian 0 for none.",
    ]
    words: Annotated[str, "Cells and noise in words."]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table of counts, or of sums."""

    name: Annotated[str, "Its name."]
    file: Annotated[
        str,
        "Its file in the package: for each cell its labels, `value`, which adds up, and `noisy`, "
        "which was measured. Of a table in levels `level`, too, and `within`: the label of the "
        "level above that the cell lies in.",
    ]
    by: Annotated[tuple[str, ...], "The columns whose labels make its cells: every combination of declared ones."]
    sum: Annotated[str | None, "The column that is added up; null where records are counted."]
    deep: Annotated[str | None, "The column that has several levels; null where none has."] = None
    epsilon: Annotated[
        CardAmount | None, "What it may lose for one person, with all of their records; null where its noise is by rho."
    ]
    rho: Annotated[CardAmount | None, "The same in rho, under zcdp."]
    step: Annotated[CardAmount, "A step of its noise: in records, or in the unit of the column."]
    weight: Annotated[WeightView | None, "Null where records count as one."] = None
    having: Annotated[str | None, "The masked column that counted records have a value in; null where all are counted."] = None
    lacking: Annotated[
        str | None,
        "enum:nothing",
        "What records without a value add to the sum; null where every record adds something.",
    ] = None
    levels: Annotated[tuple[LevelView, ...], "Its levels, the coarsest first."]
    words: Annotated[str, "What its cells have."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashes:
    """Hashes of the files and settings that the release depends on."""

    policy: Annotated[Hash, "Of the policy in its canonical form."]
    candidate: Annotated[Hash, "Of the candidate that was reviewed and approved."]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryHead:
    """The last event of the registry's chain when the package was made. A registry without this event is a different one, or was
    changed since."""

    event: Annotated[int, "minimum:1", "Its number."]
    hash: Annotated[Hash, "Its hash."]
    first: Annotated[Hash, "The hash of the first event of the chain, which no other site's chain has."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The public description of a released table: what is guaranteed and for what, what is not protected, and how large the noise
    can be. Numbers are declared, or counts of released rows; no figure is computed from confidential values. Amounts of epsilon
    are decimal texts, so that nothing rounds them."""

    FORMAT: ClassVar[str] = "privacy-card/1"

    headline: Annotated[
        str | None,
        "The claim as one number, where one holds for everything in the package; else null.",
    ] = None
    looks: Annotated[Looks | None, "Null says that the software noted no trial, and no more."] = None
    about: About
    audience: Audience
    release: Annotated[str, "The release: policy/partition/revision."]
    published: Annotated[str, "When the package was made."]
    supersedes: Annotated[str | None, "The release that this one replaces; null if none."]
    tool: Annotated[str, "The software that made the package, with its version."]
    policy: PolicyName
    population: Annotated[str, "The people whose privacy budget the release spends."]
    claim: Claim
    method: Method
    k: Groups
    anonymity_k: Anonymity
    series: Series
    parts: Annotated[tuple[str, ...], "What random parts of the records mean for this release; empty where there are none."]
    swap: Annotated[SwappedView | None, "Null where values stay in their rows."] = None
    rows: Rows
    suppression: Suppression
    noise: Annotated[str, "What the noise of the columns is, and what it is not."] = ""
    columns: Annotated[tuple[ColumnView, ...], "The released columns, in the order of the data."]
    tables: Annotated[
        tuple[TableView, ...], "The tables beside the rows, each with noise of its own; empty where there are none."
    ]
    how_to_use: Annotated[tuple[str, ...], "Advice on using the data."]
    analysis: Annotated[
        tuple[str, ...], "What the analyst's kit (release_pipeline.analyst) offers for this release, and what it declines."
    ] = ()
    formats: Annotated[
        tuple[Annotated[str, "enum:parquet,csv,dta,sav"], ...],
        "uniqueItems:true",
        "The formats of the data in the package: data.csv, data.parquet.",
    ]
    hashes: Hashes
    registry_head: RegistryHead
