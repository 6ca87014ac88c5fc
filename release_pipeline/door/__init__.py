"""What every web page of ours asks before it answers: by which name it is reached, from which page, and who a proxy says it is.

Dagster's UI has more of it in `dagster_app/door`, the desk in `desk/web`.
"""
