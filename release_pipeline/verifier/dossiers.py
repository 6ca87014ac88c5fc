"""The checks of an auditor's dossier, whose chain of events proves the statements of its package."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from release_pipeline.verifier.chain import Event, Head, History, read_history, verify_chain
from release_pipeline.verifier.documents import HEX, NAME, Fault, Json, canonical_json, find_member, get, read_moment
from release_pipeline.verifier.findings import LOOSE_WORDS, name_looks
from release_pipeline.verifier.packages import check_keys, check_package, check_sums, report_tombstone
from release_pipeline.verifier.remarks import REVIEW, REVIEW_FORMAT, is_review
from release_pipeline.verifier.report import Package, Report
from release_pipeline.verifier.statements import MOST_BEFORE, NANO, TOMBSTONES, Key, find_officer, read_keys
from release_pipeline.verifier.succession import VOTE_SLACK, read_officers
from release_pipeline.verifier.trees import CARD, DOSSIER, EVENTS, KEYS, KEYS_SIG, OFFICERS, POPULATIONS, SUMS, SUMS_SIG, Tree


def check_dossier(report: Report, tree: Tree, witnessed: Head | None) -> Package:
    listed = check_sums(report, tree, beside=(), absent=lambda name: "")
    with report.about(OFFICERS):  # the package may be older than the officer of today
        office = read_officers(tree.json(OFFICERS)) if OFFICERS in tree.sizes else None
        if office is not None and office.chain[-1] == find_officer(read_keys(tree.json(KEYS))):
            report.link(office)
    package = check_package(report, tree.under("package"), data_may_be_away=True)
    keys, bound = check_keys(report, tree), {SUMS, EVENTS, KEYS, KEYS_SIG, OFFICERS, POPULATIONS, "candidate/SHA256SUMS"}
    with report.about(DOSSIER):
        dossier = tree.json(DOSSIER)
        if (get(dossier, "release", str), get(dossier, "officer", str)) != (package.release, keys and find_officer(keys)):
            raise Fault("it names another release or officer than the package and the list of trusted keys")
    candidate = _check_candidate(report, tree.under("candidate"), package)
    history = None
    with report.about(EVENTS):
        content, before = tree.read(EVENTS), len(report.findings)
        if not content.endswith(b"\n"):
            raise Fault("its last line is cut off")
        history = read_history(report, verify_chain(content.splitlines()))
        package.events = {event.number: event.hash for event in history.events}
        package.charge = {**package.charge, **_find_charge(history, package.release)}
        lost = {name for event in history.of("restored", "") for name in _list_lost(event)}
        package.lost = {name: _find_charge(history, name) for name in lost}
        note_history(report, history)
        if not any(finding.level == "FAIL" for finding in report.findings[before:]):
            sentence = f"{len(history.signed)} signed statements, each by a key that was trusted then, with the role for it"
            report("ok", f"{EVENTS}: {sentence}")
        _check_head(report, history.events, package)
    if history is not None:
        with report.about(EVENTS):
            _check_witnessed(report, history.events, witnessed)
        with report.about(EVENTS):
            _check_newest_list(report, history)
        with report.about(EVENTS):
            _check_nothing_after_the_office(report, history)
        with report.about(f"{EVENTS}, {KEYS}"):
            _check_lists_of_keys(history, tree, package)
        policy = None
        with report.about(f"{EVENTS}, {package.release}"):
            policy = check_charge(report, history, package, lambda digest: _read_caps(tree, digest))
        with report.about(f"{EVENTS}, package/{CARD}"):
            check_looks(history, package.release, package.looks, "the card")
        with report.about(f"{EVENTS}, candidate/{SUMS}"):
            check_approvals(report, history, package, candidate, policy)
        with report.about(f"{EVENTS}, {REVIEW}"):
            _check_review(report, history, tree.json(REVIEW), package.release)
        bound.add(REVIEW)
        with report.about(f"{EVENTS}, {package.release}"):
            check_moment(report, history, package, policy)
        with report.about(f"{EVENTS}, package"):
            _check_publication(report, history, package)
        bound |= _check_policy_files(report, history, tree)
    bound |= {f"package/{name}" for name in (*package.sums, SUMS, SUMS_SIG)} | {
        "candidate/evidence.json",
        "candidate/report.html",
    }
    bound |= {f"package/{name}.{end}" for name in TOMBSTONES for end in ("json", OFFICERS)}
    if loose := sorted({*listed, *tree.sizes} - bound):
        report("note", f"{LOOSE_WORDS}: {', '.join(loose)}")
    return package


def _check_candidate(report: Report, tree: Tree, package: Package) -> str:
    """Return the candidate's hash, after evidence and data were compared with its list of sums."""
    listed = check_sums(report, tree, beside=(), absent=lambda name: "not in a dossier" * name.startswith("data."))
    with report.about(f"{tree.prefix}{SUMS}"):
        data, published = ({n: h for n, h in sums.items() if n.startswith("data.")} for sums in (listed, package.sums))
        if data != published or not data or "evidence.json" not in listed:
            raise Fault("it lists other data than the package, or no data or no evidence: other data were judged than published")
        report("ok", f"{tree.prefix}{SUMS}: the published data are the candidate's ({', '.join(data)})")
        return tree.digest(SUMS)
    return ""


def _check_head(report: Report, events: list[Event], package: Package) -> None:
    number, digest = package.head
    if number > len(events):
        raise Fault(f"it ends with event {len(events)}, and the package names event {number}: events at its end were cut off")
    if number < 1 or events[number - 1].hash != digest:
        raise Fault(f"event {number} is not the one that the package names: the chain was written anew, or is another site's")
    if events[0].hash != package.site:
        raise Fault("its first event is not the one that the package names: it is the chain of another site")
    after = f"what the {len(events) - number} after it say is signed or the word of who sent it"
    report("ok", f"{EVENTS}: whole up to event {number}, which the package names: nothing before was changed; {after}")


def note_history(report: Report, history: History) -> None:
    """Note wrong moments of events, except those that an officer has declared wrong."""
    believed = [event for event in history.events if event.number not in history.doubted]
    report.note_moments((f"{EVENTS}: event {event.number}", event.noted) for event in believed)


def _list_lost(event: Event) -> list[str]:
    """Return the releases that were lost, by what an officer signed when accepting a backup."""
    lost = get(get(event.content, "document", dict), "lost", list)
    return [name for name in lost if isinstance(name, str)]


def _find_charge(history: History, release: str) -> Mapping[str, Any]:
    """Return the charge for a release; empty where no event has it."""
    return next((event.content for event in history.of("reserved", release)), dict[str, Any]())


def compare_lost(noted: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the parts in which a package or dossier of a lost release differs from the chain that went on after the restore. A
    card has no loss: it follows from policy and records."""
    rows, records = get(other, "rows", int), get(noted, "records", int)
    pairs = {
        "its policy": get(noted, "policy_hash", HEX) == other["policy_hash"],
        "how many records it is of": rows == records and other.get("records", records) == records,
        "its loss": "loss" not in other or get(other, "loss", dict) == get(noted, "loss", dict),
    }
    return [words for words, is_same in pairs.items() if not is_same]


def _check_witnessed(report: Report, events: Sequence[Event], witnessed: Head | None) -> None:
    """Check that the chain has the event that somebody outside kept."""
    if witnessed is None:
        return
    number, digest, _ = witnessed
    if number > len(events):
        ends = f"it ends with event {len(events)}, and event {number} was witnessed"
        raise Fault(f"{ends}: the dossier is older than that, or events at its end were cut off: ask for one of today")
    if events[number - 1].hash != digest:
        raise Fault(f"event {number} is not the one that was witnessed: the chain was written anew, or an older copy put back")
    report("ok", f"{EVENTS}: event {number} is the one that was witnessed")


def _check_newest_list(report: Report, history: History) -> None:
    """Check that the events have no newer list of revoked keys than the one that was given."""
    last = history.of("revoked", "")[-1:]
    newest = get(get(last[0].content, "document", dict), "number", int) if last else 0
    if report.revocations is not None and report.revocations.number < newest:
        sentence = (
            f"list {report.revocations.number} of revoked keys is older than list {newest}, which event {last[0].number} has"
        )
        raise Fault(f"{sentence}: get the newest")


def _check_nothing_after_the_office(report: Report, history: History) -> None:
    """Check that nothing is dated after the last officer of the events left, if it is known that they left: with their key
    somebody could go on with the chain as it was before."""
    left = report.left.get(history.chain[-1]) if history.chain else None
    for number, signed in history.signed:
        if left is not None and number not in history.doubted and read_moment(signed.at) > left:
            sentence = f"event {number} was signed at {signed.at}, and the last officer whom the events know left"
            raise Fault(f"{sentence} at {left:%Y-%m-%d %H:%M:%S} UTC: it does not count")


def _check_lists_of_keys(history: History, tree: Tree, package: Package) -> None:
    """Check that the package's list was trusted at its head, or before it was recorded as published, and the dossier's once."""
    published = max(history.find("package", package.release, package.hash), default=0)
    hashes = [(number, digest) for number, digest, _ in history.lists]
    then = [digest for number, digest in hashes if number <= package.head[0]][-1:]
    then += [digest for number, digest in hashes if package.head[0] < number < published]
    if tree.under("package").digest(KEYS) not in then:
        raise Fault(f"package/{KEYS} is not the list that was trusted when the package was made")
    if tree.digest(KEYS) not in [digest for _, digest in hashes]:
        raise Fault("no event trusted this list")


def _read_caps(tree: Tree, digest: str) -> Any:
    """Return the caps in a dossier, if they are those of that hash."""
    if tree.digest(POPULATIONS) != digest:
        raise Fault("these are not the caps that the officer approved last before the charge")
    return tree.json(POPULATIONS)


def check_looks(history: History, release: str, stated: int, by: str) -> None:
    """Check that the stated number of trials on the data is the number in the events before the charge."""
    charges = history.of("reserved", release)
    counted = sum(
        charge.number > look.number and _concerns(look, charge) and not _became_charge(history, look, charge.number)
        for charge in charges[:1]
        for look in history.looked
    )
    if stated != counted:
        raise Fault(f"{by} tells of {name_looks(stated)} at the data before its charge, and the events of {counted}")


def _became_charge(history: History, look: Event, last: int) -> bool:
    """Return whether a run that was not refused went on to the charge of its release, by the event `last`."""
    stopped, under = look.content.get("stopped"), look.content.get("policy_hash")
    charges = history.of("reserved", stopped) if isinstance(stopped, str) else []
    return any(charge.number <= last and charge.content.get("policy_hash") == under for charge in charges)


def _concerns(look: Event, charge: Event) -> bool:
    """Return whether a trial concerns a later charge: at the same source, at records of its population or of one before it, or
    under a policy of its name. Of a file that was called public: whether it was the source."""
    is_same = bool(_texts(look, "origins") & _texts(charge, "origins"))
    if look.kind == "public":
        return is_same
    charged, looked = get(charge.content, "population", NAME), look.content["population"]
    is_of_these = looked in {charged, *_list_carried(charge)} or charged in _texts(look, "carries")
    return is_same or is_of_these or look.content["policy"] == charge.release.split("/")[0]


def _texts(event: Event, name: str) -> set[str]:
    """Return the texts of a list that an event may have."""
    texts: Json = event.content.get(name, [])
    return {text for text in texts if isinstance(text, str)} if isinstance(texts, list) else set[str]()


def check_charge(report: Report, history: History, package: Package, find_caps: Callable[[str], Any]) -> Any:
    """Return the policy that the release was charged under; checks its approval, that of the caps, and the cap. `find_caps`
    returns the caps of a hash."""
    charges = history.of("reserved", package.release)
    if len(charges) != 1 or charges[0].number > package.head[0]:
        raise Fault(f"it was charged {len(charges)} times, or only after it was published, in place of once before")
    number, content = charges[0].number, charges[0].content
    digest, population = get(content, "policy_hash", HEX), get(content, "population", str)
    noted_as, policy = history.policies.get(digest, (0, {}))
    if not 0 < noted_as < number or (policy["policy"], policy["population"]) != (package.release.split("/")[0], population):
        raise Fault(f"no event before the charge (event {number}) tells its policy, or it is another release's or population's")
    with report.about(f"{EVENTS}, policy {policy['policy']}"):
        approved, hash = history.last("policy", policy["policy"], before=number)
        if hash != digest:
            raise Fault(f"it is not what the officer approved last before the charge (event {number})")
        report("ok", f"{EVENTS}: the policy ({digest[:12]}) was approved in event {approved}, before the charge in {number}")
    caps: Mapping[str, Any] = {}
    with report.about(POPULATIONS):
        approved, hash = history.last("populations", "populations", before=number)
        if not approved:
            raise Fault(f"the officer did not approve any caps before the charge (event {number})")
        approved_caps = find_caps(hash)
        declared, caps = get(approved_caps, population, dict), approved_caps
        if not _is_declared(declared.get("cap"), content):
            raise Fault("the cap that the charge notes is not the one that the officer approved last before it")
        report("ok", f"{POPULATIONS}: approved in event {approved}, before the charge; the cap that this notes is declared in it")
    _check_cap(report, history, charges[0], population, caps)
    return policy


def _is_declared(cap: Json, charge: Mapping[str, Any]) -> bool:
    """Return whether the cap that a charge records is this one of populations.json."""
    if isinstance(cap, dict) and "releases" in cap:
        return (charge.get("unit"), charge.get("cap")) == ("releases", str(cap["releases"]))
    kind = {"dp": "epsilon, DP", "idp": "epsilon, iDP", "zcdp": "rho, zCDP"}.get(get(cap, "definition", str))
    amount = find_member(
        cap, "rho" if kind == "rho, zCDP" else "epsilon"
    )  # for an epsilon at a delta the officer signed its rho, too
    unit = f"{kind}, {get(cap, 'scope', str)}"
    return (charge.get("unit"), _amount(charge.get("cap"))) == (unit, _amount(str(amount)))


def _check_cap(report: Report, history: History, charge: Event, population: str, caps: Mapping[str, Any]) -> None:
    """Check that the charges to the population up to here, and to those that its people were in before by `caps`, add up in
    integers to the recorded total."""
    charged, unit = charge.content, get(charge.content, "unit", str)
    most, spent = _amount(charged.get("cap")), _amount(charged.get("spent"))
    loss = re.fullmatch(r"(releases)|(?:epsilon, (?=DP|iDP)|rho, (?=zCDP))(DP|iDP|zCDP), (centroid|column|table)", unit)
    if loss is None:
        raise Fault(f"the cap of event {charge.number} counts in an unknown unit")
    counted = _list_counted(caps, population)
    events = [event for event in history.events[: charge.number] if event.kind == "reserved"]
    mine = [event for event in events if _find_population(event) in counted]
    if sorted(counted - {population}) != charged.get("carries", []):
        raise Fault(f"event {charge.number} counts the charges of other populations than the approved caps say")
    for event in mine:
        if not counted.issuperset(carried := _list_carried(event)):
            raise Fault(f"event {event.number} counted what {', '.join(sorted({*carried} - counted))} was charged: no more now")
    name = f"{loss[2]}_{loss[3]}".lower()
    costs = [NANO if loss[1] else get(get(event.content, "loss", dict), name, int) for event in mine]
    if min(costs) < 0 or sum(costs) != spent or spent > most:
        raise Fault(f"the charges up to event {charge.number} do not add up to what it notes as spent, or go over the cap")
    sentence = f"{charged['spent']} of {charged['cap']} ({unit})"
    whom = ", ".join([population, *sorted(counted - {population})])
    report("ok", f"{EVENTS}: {len(mine)} charges to {whom} add up to {sentence} with that of event {charge.number}")
    _note_people(report, charge, events, counted)


def _find_population(charge: Event) -> str:
    """Return the population that was charged; empty where that is none."""
    name: Json = charge.content.get("population")
    return name if isinstance(name, str) else ""


def _list_carried(charge: Event) -> list[str]:
    """Return the populations whose charges counted with this one."""
    carried: Json = charge.content.get("carries", [])
    if not isinstance(carried, list) or not all(isinstance(name, str) for name in carried):
        raise Fault(f"event {charge.number} counts the charges of something that is no population")
    return [str(name) for name in carried]


def _note_people(report: Report, charge: Event, charges: Iterable[Event], counted: Collection[str]) -> None:
    """Note a revision that was charged to other people than the revisions before it."""
    for event in charges:
        is_earlier = event.release.rpartition("/r")[0] == charge.release.rpartition("/r")[0]
        if is_earlier and _find_population(event) not in counted:
            sentence = f"was charged to {_find_population(event)}, which does not count with event {charge.number}"
            report("note", f"{EVENTS}: {event.release} {sentence}: a correction in other people's name")


def _list_counted(caps: Mapping[str, Any], name: str) -> frozenset[str]:
    """Return a population and all that its people were in before."""
    known: dict[str, frozenset[str]] = {}
    _trace_counted(caps, name, (), known)
    return known[name]


def _trace_counted(caps: Mapping[str, Any], name: str, below: tuple[str, ...], known: dict[str, frozenset[str]]) -> None:
    declared: Json = caps.get(name)
    before = _list_before(declared if isinstance(declared, dict) else {})
    if name in below or len(below) > MOST_BEFORE:
        raise Fault("in the approved caps a population comes from itself, or from more than can be told apart")
    for ancestor in before:
        if ancestor not in known:
            _trace_counted(caps, ancestor, (*below, name), known)
    known[name] = frozenset({name}).union(*(known[ancestor] for ancestor in before))


def _list_before(population: Mapping[str, Json]) -> list[str]:
    """Return the populations that an entry of the caps names as those that its people were in before."""
    named = population.get("from", [population["was"]] if "was" in population else [])
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise Fault("in the approved caps a population comes from something that is none")
    return [str(name) for name in named]


def _amount(decimal: Any) -> int:
    """Return the nano-epsilon of a decimal."""
    match = re.fullmatch(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?", decimal if isinstance(decimal, str) else "")
    if match is None:
        raise Fault("a cap or what is spent of it is not a decimal number")
    return int(match[1]) * NANO + int((match[2] or "").ljust(9, "0"))


def check_approvals(report: Report, history: History, package: Package, candidate: str, policy: Any) -> None:
    release, head = package.release, package.head[0]
    for kind in ("candidate", "publishing"):
        candidates = [event.content.get("candidate_hash") for event in history.of(kind, release) if event.number <= head]
        if candidates[-1:] != [candidate] and (candidates or kind == "candidate"):
            raise Fault(f"the last event of the kind '{kind}' before it was published is about another candidate, or missing")
    if policy is None:
        raise Fault("how many reviewers must approve it cannot be told")
    needed = get(get(policy, "review", dict), "reviewers", int)
    rejected = min(history.find("reject", release), default=0)
    if rejected:
        raise Fault(f"it was rejected in event {rejected}, so it should never have been published")
    trusted = next((keys for number, _, keys in reversed(history.lists) if number <= head), dict[str, Key]())
    reviewers = {key.fingerprint for key in trusted.values() if key.role == "reviewer"}  # reviewers who left since do not count
    frozen = next(event for event in history.of("candidate", release) if event.content.get("candidate_hash") == candidate)
    judged = [signed for at, signed in history.find("approve", release, candidate).items() if frozen.number < at <= head]
    for signed in judged if frozen.number not in history.doubted else ():
        if read_moment(frozen.noted) - read_moment(signed.at) > VOTE_SLACK:
            sentence = f"the vote of {signed.name} is dated {signed.at}, before there was a candidate to vote on"
            raise Fault(f"{sentence} (event {frozen.number}, {frozen.noted}): it is dated back, or a clock was wrong")
    if any(signed.name == policy["steward"] for signed in judged):
        raise Fault(f"'{policy['steward']}' is the steward of the policy and approved the candidate")
    named = {key.name for key in trusted.values() if key.role == "reviewer"}
    last = {at: signed for kind in ("approve", "return") for at, signed in history.find(kind, release, candidate).items()}
    votes = {signed.name: signed for at, signed in sorted(last.items()) if at <= head}
    returned = sorted(name for name, signed in votes.items() if signed.kind == "return" and name in named)
    if returned:
        raise Fault(f"{', '.join(returned)} returned it before it was published, and did not approve it after that")
    judged = [signed for signed in judged if votes[signed.name].kind == "approve"]
    people = {signed.signer: signed.name for signed in judged if signed.signer in reviewers}
    if len(people) < max(needed, 1):
        raise Fault(f"{len(people)} reviewers approved it before it was published, and the policy asks for {needed}")
    sentence = f"approved by {', '.join(people.values())}, none of them the steward; the policy asks for {needed}"
    report("ok", f"{EVENTS}: candidate {candidate[:12]} was {sentence}")


def _check_review(report: Report, history: History, document: Any, release: str) -> None:
    """Check that the dossier's review has all votes and remarks of the chain; the signatures were checked there."""
    if (get(document, "format", str), get(document, "release", str)) != (REVIEW_FORMAT, release):
        raise Fault(f"its format is not {REVIEW_FORMAT}, or it is of another release")
    wanted: list[Json] = []
    held, count = {number for number, _ in history.signed}, 0
    for event in history.events:
        if is_review(event.kind, event.release, event.content, release):
            count += event.number in held
            entry = {"event": event.number, "kind": event.kind, "noted": event.noted, "signed": event.content.get("signed")}
            wanted.append({**entry, **({"document": event.content.get("document")} if event.kind == "remarked" else {})})
    if canonical_json(get(document, "events", list)) != canonical_json(wanted):
        raise Fault("it does not tell the votes and remarks that the events have")
    report("ok", f"{REVIEW}: {count} votes and remarks, as the events have them, each with a signature that holds")


def check_moment(report: Report, history: History, package: Package, policy: Any) -> None:
    """Check that it was published after its embargo ended, by the clock of the site, and before it was given up."""
    published = [event for event in history.of("published", package.release) if event.number > package.head[0]]
    if policy is None or not published:
        return
    not_before = find_member(find_member(policy, "publish"), "not_before")
    if isinstance(not_before, str) and published[0].number in history.doubted:
        report(
            "note",
            f"{EVENTS}: the moment of event {published[0].number} is not believed: whether its embargo had ended is not told",
        )
    elif isinstance(not_before, str) and read_moment(published[0].noted) < read_moment(not_before):
        raise Fault(
            f"it was published in event {published[0].number}, at {published[0].noted}, before its embargo ended: {not_before}"
        )
    name, _, revision = package.release.rpartition("/r")
    given_up = [event.number for event in history.of("opened", f"{name}/r{int(revision) + 1}")]
    if given_up and given_up[0] < published[0].number:
        raise Fault(f"it was given up in event {given_up[0]} for the next revision, and published after that")
    report("ok", f"{EVENTS}: published at {published[0].noted}, not before its time, nor after it was given up")


def check_not_lost(report: Report, history: History, release: str) -> None:
    """Refuse a release that was published with a revoked key, unless it was retracted, which the tombstone reports."""
    lost = [number for number, name in history.lost.items() if name == release]
    if lost and not history.find("retract", release):
        raise Fault(f"it was published in event {lost[0]} with a revoked key: retract it, and tell who has it")


def _check_publication(report: Report, history: History, package: Package) -> None:
    check_not_lost(report, history, package.release)
    published = history.find("package", package.release)
    if not any(at > package.head[0] and signed.hash == package.hash for at, signed in published.items()):
        raise Fault("no event after the one that it names published it: events at the end are missing")
    if {signed.hash for signed in published.values()} != {package.hash}:
        raise Fault("the release was published with other content too")
    report("ok", f"{EVENTS}: published in event {max(published)}, as signed")
    for event in history.of("delivered", package.release):
        target, where = get(event.content, "target", NAME), get(event.content, "where", str)
        report("ok", f"{EVENTS}: delivered in event {event.number} to {target}: {where}")
    for kind in TOMBSTONES.values():
        events = history.find(kind, package.release, package.hash)
        for at, signed in events.items():
            report_tombstone(report, f"{EVENTS}: event {at}", signed)
        if kind in package.tombstones and not events:
            raise Fault(f"a tombstone ({kind}) is in the package and no event tells of it: events at the end are missing")


def _check_policy_files(report: Report, history: History, tree: Tree) -> set[str]:
    """Check the files of policies: each has the text that an event has, and none is missing. Returns their names."""
    wanted = {f"policies/{known['policy']}.{digest[:12]}.json": digest for digest, (_, known) in history.policies.items()}
    there = {name for name in tree.sizes if name.startswith("policies/") and name.endswith(".json")}
    for name in sorted(there | set(wanted)):
        with report.about(name):
            if name not in wanted or tree.digest(name) != wanted[name]:
                raise Fault("it is not a policy that an event tells under this name")
    return there
