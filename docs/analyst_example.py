# %% [markdown]
# # Analysing a release with the analyst's kit
#
# A release has noise in it, on purpose. Its privacy card says which, from facts that are public: the declared domain,
# grid, epsilon and k. `release_pipeline.analyst` turns these facts into honest intervals, or declines in words. It
# never sees confidential data.
#
# Everything here is made up: 2,000 people with an age, an income and a rent. We play both sides, so that we can
# compare what the kit says with the truth, which an analyst cannot.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np

from release_pipeline.analyst import NoHonestAnswer, read_facts, read_release, simulate, spread_ties

n = 2000
spread = (np.arange(n) * 0.6180339887498949) % 1  # evenly spread numbers in an odd order
other = (np.arange(n) * 0.7548776662466927) % 1
age = np.floor(20 + 60 * spread)
income = np.round(8_000 + 500 * (age - 20) + 20_000 * other**2)
rent = np.round(100 + 0.02 * income + 300 * ((np.arange(n) * 0.5698402909980532) % 1))
sex = np.arange(n) % 2
table = {"age": age, "income": income, "rent": rent, "sex": sex}
{name: round(float(values.mean()), 2) for name, values in table.items()}


# %% [markdown]
# ## What the card declares
#
# `privacy-card.json` of a package has these facts and more. `values: anywhere` says that released values stay where
# the noise put them (`clamp: no` in the policy): the law of the noise is then exact.


# %%
def make_card(method, k, consistency, values, epsilon):
    masked = {"age": ("0", "100", "1"), "income": ("0", "60000", "1"), "rent": ("0", "2000", "1")}
    columns = [
        {"name": name, "done": "noise", "type": "number", "domain": [low, high], "grid": grid, "epsilon": epsilon}
        for name, (low, high, grid) in masked.items()
    ]
    kept = {"name": "sex", "done": "keep", "type": "integer", "domain": None, "grid": None, "epsilon": None}
    return {
        "format": "privacy-card/1",
        "claim": {"records_per_person": 1, "scope": {"name": "column"}},
        "method": {"name": method, "consistency": consistency, "values": values},
        "k": {"value": k},
        "parts": [],
        "rows": {"in": n, "out": n},
        "columns": [*columns, kept],
    }


card = make_card("laplace", None, "none", "anywhere", "8")
read_facts(card).masked

# %% [markdown]
# `simulate` releases a made-up table as a card says: here it stands for the publisher. With a secret it gives the
# same release each time, which keeps this notebook as it is; without one the noise is fresh.

# %%
made = simulate(table, card, secret=bytes([8]) * 32)
folder = Path(tempfile.mkdtemp())
(folder / "privacy-card.json").write_text(json.dumps(card))
rows = zip(*(made.data[name].tolist() for name in made.data), strict=True)
lines = [",".join(made.data), *(",".join(repr(cell) for cell in row) for row in rows)]
(folder / "data.csv").write_text("\n".join(lines) + "\n")

release = read_release(folder)
release

# %% [markdown]
# ## What is known of the noise

# %%
for name in release.facts.masked:
    print(f"{name}: {release.noise_of(name).words}\n")
print(*release.explain(), sep="\n")

# %% [markdown]
# Each value by itself is worth little:

# %%
[round(float(value)) for value in release.data["income"][:8]]


# %% [markdown]
# ## Means
#
# The interval is for the mean of the confidential table. It is about the noise alone. At 95%, one interval in twenty
# misses.


# %%
def show(name, interval, truth):
    inside = "inside" if interval.low <= truth <= interval.high else "OUTSIDE"
    print(f"{name}: {interval.estimate:.4g}, {interval.low:.4g} to {interval.high:.4g}; truth {truth:.4g}, {inside}")
    print(f"    {interval.words}")


for name in release.facts.masked:
    show(name, release.mean(name), float(table[name].mean()))


# %% [markdown]
# ## Slopes
#
# Noise in an explanatory column draws a slope towards 0 (attenuation). Least squares on released values shows it; the
# kit's slope is corrected, and its interval accounts for the noise of both columns.


# %%
def least_squares(x, y):
    return float(np.polyfit(x, y, 1)[0])


truth = least_squares(income, rent)
print(f"least squares on released values: {least_squares(release.data['income'], release.data['rent']):.4f}")
show("rent on income", release.slope("rent", ["income"])["income"], truth)
show("correlation", release.correlation("rent", "income"), float(np.corrcoef(income, rent)[0, 1]))

# %% [markdown]
# Several columns at once, `sex` among them, which was released as it is and has no noise:

# %%
x = np.column_stack([age, sex, np.ones(n)])
true = np.linalg.lstsq(x, income, rcond=None)[0]
for (name, interval), value in zip(release.slope("income", ["age", "sex"]).items(), true, strict=False):
    show(name, interval, float(value))

# %% [markdown]
# ## Clusters: dp-um and idp-cbls
#
# `dp-um` adds noise to the sums of clusters of k records: means are better by far, at the same epsilon. Restored
# order (`isotonic`) does not change a mean over the whole column.

# %%
for method in ("dp-um", "idp-cbls"):
    clustered = simulate(table, make_card(method, 20, "isotonic", "anywhere", "1"), secret=bytes(range(1, 33)))
    print(method, clustered.noise_of("income").words)
    show("income", clustered.mean("income"), float(income.mean()))

# %% [markdown]
# The scales of `idp-cbls` depend on the data and are not published. The kit bounds them by the worst data that there
# could be: the interval is honest and wide. Values that were moved back into the domain, with their order restored,
# have a coarser bound still:

# %%
clamped = simulate(table, make_card("dp-um", 20, "isotonic", "inside", "1"), secret=bytes(range(1, 33)))
show("income", clamped.mean("income"), float(income.mean()))


# %% [markdown]
# ## Where it declines
#
# There is no honest answer to every question. The kit says why, and what to do instead.


# %%
def ask(question):
    try:
        return question()
    except NoHonestAnswer as reason:
        print(f"- {reason}\n")


ask(lambda: clamped.slope("rent", ["income"]))
ask(lambda: simulate(table, make_card("laplace", None, "none", "anywhere", "0.5"), secret=bytes(32)).slope("rent", ["income"]))
ask(lambda: simulate(table, make_card("laplace", None, "none", "inside", "8"), secret=bytes(32)).slope("rent", ["income"]))
ask(lambda: simulate(table, make_card("idp-cbls", 20, "isotonic", "inside", "0.1"), secret=bytes(32)).mean("income"))

# %% [markdown]
# ## Anything else: simulate
#
# What would a quantile be worth in a release like this one? Make up a table that could be like the confidential one,
# release it many times, and look how far your figure moves. Below, 200 releases: the 90% quantile of released incomes
# is far too high in all of them, since noise widens a column; no interval around it would be honest.

# %%
again = [simulate(table, release, secret=number.to_bytes(32, "big")).data["income"] for number in range(200)]
tops = [float(np.quantile(values, 0.9)) for values in again]
print(f"true 90% quantile {np.quantile(income, 0.9):.0f}; released ones {min(tops):.0f} to {max(tops):.0f}")

# %% [markdown]
# The published table itself is not such a table: where records share values by clusters, masking it again moves nothing,
# and that would look like certainty. `simulate` refuses it. `spread_ties` makes up a table from it.

# %%
published = simulate(table, make_card("idp-cbls", 20, "isotonic", "inside", "1"), secret=bytes(range(1, 33)))
ask(lambda: simulate(published.data, published))


def moves(start):
    medians = [np.median(simulate(start, published, secret=n.to_bytes(32, "big")).data["income"]) for n in range(100)]
    return float(np.std(medians))


made_up = {name: spread_ties(published.data[name]) for name in published.facts.masked}
print(f"the median of income moves by {moves(made_up):.0f}; that of the table behind the release by {moves(table):.0f}")

# %% [markdown]
# Simulation shows too that the kit keeps its promise: of 200 releases, about 95% of the intervals hold the true mean
# and the true slope.

# %%
held = {"mean": 0, "slope": 0}
for number in range(200):
    once_more = simulate(table, release, secret=number.to_bytes(32, "big"))
    mean, slope = once_more.mean("income"), once_more.slope("rent", ["income"])["income"]
    held["mean"] += mean.low <= income.mean() <= mean.high
    held["slope"] += slope.low <= truth <= slope.high
{name: f"{count / 2:.1f}%" for name, count in held.items()}
