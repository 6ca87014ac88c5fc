"""Which library reads and writes what kind of object store; known without loading any."""

STORES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}  # by the beginning of an address
