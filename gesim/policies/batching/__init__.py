"""When a batch starts and how many requests it takes."""
