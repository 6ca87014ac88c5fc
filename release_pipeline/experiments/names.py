"""The experiments by name, for those who only list them."""

EXPERIMENTS = {
    "idp24": "rank methods on census and wine, mean SSE and F-measures (figures 3 to 6)",
    "kdp13": "insensitive microaggregation with noise on four columns of census, SSE and record linkage",
    "prs20": "random parts: what they cost together and alone, and what they do to errors",
    "kea18": "(k,epsilon)-anonymity on adult: error, linking risk, suppression and information loss by OLA and by Mondrian",
    "ours": "every method at the same exact loss of each column, on census, wine and 100,000 made-up records",
    "choosing": "every method on single columns at the same epsilon, by records times epsilon",
}
