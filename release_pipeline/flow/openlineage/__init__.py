"""What a release did, as OpenLineage events: facts alone, built without a library of theirs and checked against their schemas."""
