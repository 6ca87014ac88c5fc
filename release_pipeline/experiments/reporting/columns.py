"""What the columns of the tables of results are: one line for each, in the folder of the experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from release_pipeline.experiments.reporting.claims import table

EVERYWHERE = {
    "table": "census, wine, or made up: 100,000 records of four columns",
    "method": "as a policy names it",
    "k": "records in a cluster or class, at least; 1: no clusters",
    "epsilon": "what the method advertises for a record's values, or a part's; of the definition that the method has",
    "run": "its number; each has noise of its own",
    "error": "mean over columns of squared error over squared deviation from the column's mean: 1 is the error of the mean alone",
    "median_error": "the same, median over columns",
    "loss": "the exact joint losses of the columns' lists on these data, added up: an upper bound on all columns together",
    "clusters": "how records were grouped; no noise",
    "order": "what puts records into one order: distance to a corner of the domain, or a Hilbert curve",
    "parts": "how many random parts the table was published in",
}
ITS_OWN = {
    "idp24": {
        "alpha": "the domain is [0, alpha max] of each column",
        "sse": "the paper's: mean SSE, divided by the square of the variance",
        "without_noise": "error of the exact means; no reader of a release learns it",
        "linkage": "record linkage by all columns, in percent of the records tried",
        "noise_correlation": "mean correlation of the noise of two columns; no reader of a release learns it",
        "above": "F-measure of the class above the bound: ERNVAL above 30,000, quality above 6",
        "not_above": "F-measure of the other class",
        "method": "as a policy names it; original: nothing is masked, with k 0 and epsilon inf",
    },
    "kdp13": {
        "order": "corner and hilbert: what puts records into one order; corner-middle: cut from both ends; mdav: none; laplace: "
        "no clusters, k 1",
        "scope": "whose claim it is: each centroid's on its own, or that of all that a reader sees",
        "share": "split: epsilon / 4 for each column; whole: epsilon for each, so that a centroid's claim is 4 epsilon",
        "sse": "SSE / SST, mean over columns",
        "sse_free": "the same of values that are not moved back into the domain",
        "sse_paper": "mean SSE, divided by the square of the variance, as IDP24 has it",
        "linkage": "record linkage, in percent of all records",
        "averaged": "the share of the noise's variance that is left in the mean of a cluster's records",
        "loss": "the accountant's bound on what all centroids together lose on these data",
    },
    "prs20": {
        "epsilon": "what each part advertises",
        "thousandths": "the share of the records that the one published part has",
        "bbg18": "what that part alone is charged, for eps-DP methods: ln(1 + beta (e^eps - 1))",
        "prs20": "the same by PRS20's Theorem 2; empty where it says nothing",
        "published": "how many of the parts are published",
        "together": "what they are charged together: amplification with their joint share",
        "one_by_one": "the charges of each alone, added up",
        "split": "slots: parts stay as they are; identity: a replaced person may change part",
        "clusters": "how records were grouped, without noise; of `neighbours`: clusters in a part",
        "worst": "the worst loss over all neighbours of this small table; a run is a table",
        "greatest": "the greatest exact loss of a part",
        "sum": "the exact losses of the parts, added up",
        "example": "two neighbours whose parts are by a hash of the identity, k 3, epsilon 1, values 0 to 6",
        "others": "the value of all records but one",
        "beyond": "how far the seen sum lies beyond that of a sample without that one, in grid steps",
        "probability": "of this sum (of `noise seen`: that noise shows whose sample it was)",
        "neighbour": "the probability in the neighbour, with the scales of the first table",
        "log_ratio": "log of the two probabilities' ratio: the loss",
        "charged": "the charge that amplification would make",
        "loss": "the greatest of the parts' losses by the accountant; of `counterexample`: the exact loss",
        "sum_of_losses": "the parts' losses by the accountant, added up",
    },
    "kea18": {
        "grouping": "ola, mondrian; mondrian-labels: Mondrian with age cut by its hierarchy, too",
        "epsilon": "of each record looked at alone, its class held fixed (no DP, no iDP)",
        "chance": "linking by a guess: classes / records in classes",
        "expected_error": "relative, by the closed form, before numbers are moved back into the domain",
        "global_error": "the closed form for noise by the diameter of the whole table in every class",
        "measured_error": "relative, after",
        "linking": "share of the records in classes that are linked by their number",
        "linking_left": "the same of records that confidence leaves; 0 where it leaves none",
        "exposed": "share of all records that confidence suppresses",
        "left_too_small": "share of all records whose class has fewer than k left after that",
        "classes": "their number",
        "records": "those in classes",
        "dropped": "share of the records that the grouping drops",
        "penalty": "normalised certainty penalty of the generalised columns, mean over columns and records in classes",
        **{f"penalty_{name}": f"the same of {name} alone" for name in ("age", "sex", "race", "marital_status")},
        "penalty_all": "the same over all records, 1 for a dropped one",
        "same": "share of the records in classes that have one height only",
        "mean_error": "relative error of one who takes the class's mean for each height",
        "loss": "OLA's own loss of the levels that it chose",
        **dict.fromkeys(("age", "sex", "race", "marital_status"), "the level that OLA chose"),
        "mondrian_over_ola": "CPU time of the one grouping over that of the other",
        "noise_over_ola": "CPU time of the noise over that of the grouping",
        "noise_over_mondrian": "CPU time of the noise over that of the grouping",
    },
    "choosing": {
        "column": "the column of the table that was masked, with an epsilon of its own",
        "records": "how many records of it were taken at random; 0: all",
        "records_masked": "how many these are",
        "together": "how many columns share epsilon 1",
        "by": "epsilon: each has its part of it, pure; rho: of the rho that gives it at delta 0.000001",
        "ks": "the largest difference of the two distribution functions",
        "quantiles": "the mean difference of the quantiles from 1% to 99%, in standard deviations",
        "zeros": "by how much the share of zeros differs",
        "mean": "the difference of the means, in standard deviations",
        "error": "squared error over squared deviation from the column's mean: 1 is the error of the mean alone",
    },
    "ours": {
        "scales": "public: eps-DP by public facts; rescaled: the paper's proportions at this exact loss (iDP); calibrated: the "
        "least expected error at this exact loss (iDP); advertised: epsilon for each centroid, a greater loss",
        "consistency": "isotonic: noisy means put in order by least squares",
        "statistic": "plain or trimmed sums of a cluster",
        "column": "the column of the table that was masked, with an epsilon of its own",
        "alpha": "the domain is [0, alpha max] of each column",
        "least_share": "the least exact loss of a column over its share of epsilon",
        "most_share": "the greatest",
        "clusters": "how records were grouped, without noise; mdav needs distances of all pairs",
        "loss": "the exact joint losses of the columns' lists on these data, added up; of `together`: the accountant's bound",
    },
}


def explain_columns(name: str, tables: Mapping[str, Iterable[str]]) -> str:
    """A page that says what the columns of each table of an experiment are."""
    meanings = EVERYWHERE | ITS_OWN[name]
    parts = [f"# Tables of {name}", "A row for each run of each setting, as CSV and as Parquet."]
    for kind, columns in tables.items():
        parts += [f"## {kind}", table(["column", "what it is"], [[f"`{column}`", meanings[column]] for column in columns])]
    return "\n\n".join(parts) + "\n"
