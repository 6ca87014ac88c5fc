"""Who calls whom, and all I/O: the path from a policy and a source to what is released."""
