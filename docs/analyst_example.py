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

from release_pipeline.analyst import NoHonestAnswer, Release, read_facts, read_release
from release_pipeline.mechanisms import mask_column

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
# The core of the software masks our table as the card says: here it stands for the publisher. With a fixed secret it
# gives the same release each time, which keeps this notebook as it is.


# %%
def publish(card, secret):
    facts = read_facts(card)
    data = dict(table)
    for name in facts.masked:
        column = facts.columns[name]
        data[name] = mask_column(
            table[name],
            domain=(column.grid.lo, column.grid.hi),
            grid=column.grid.step,
            method=facts.method,
            epsilon=column.epsilon,
            k=facts.k,
            consistency=facts.consistency,
            clamp=facts.clamped,
            secret=secret,
            context=(name,),
        ).values
    return Release(facts, data)


made = publish(card, bytes([8]) * 32)
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
    print(f"{name}: {release.noise_of(name).description}\n")
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
    print(f"    {interval.basis}")


for name in release.facts.masked:
    show(name, release.mean(name), float(table[name].mean()))


# %% [markdown]
# ## Clusters: dp-um and idp-cbls
#
# `dp-um` adds noise to the sums of clusters of k records: means are better by far, at the same epsilon. Restored
# order (`isotonic`) does not change a mean over the whole column.

# %%
for method in ("dp-um", "idp-cbls"):
    clustered = publish(make_card(method, 20, "isotonic", "anywhere", "1"), bytes(range(1, 33)))
    print(method, clustered.noise_of("income").description)
    show("income", clustered.mean("income"), float(income.mean()))

# %% [markdown]
# The scales of `idp-cbls` depend on the data and are not published. The kit bounds them by the worst data that there
# could be: the interval is honest and wide. Values that were moved back into the domain, with their order restored,
# have a coarser bound still:

# %%
clamped = publish(make_card("dp-um", 20, "isotonic", "inside", "1"), bytes(range(1, 33)))
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


ask(lambda: clamped.quantile("income", 0.9))
ask(lambda: publish(make_card("idp-cbls", 20, "isotonic", "inside", "0.1"), bytes(32)).mean("income"))

# %% [markdown]
# The kit keeps its promise: of 200 releases, about 95% of the intervals hold the true mean.

# %%
means = [publish(card, number.to_bytes(32, "big")).mean("income") for number in range(200)]
f"{sum(mean.low <= income.mean() <= mean.high for mean in means) / 2:.1f}%"
