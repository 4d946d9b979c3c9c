"""What `DistributedDataParallel` consists of: buckets, their reduction during backward, and checks before it."""
