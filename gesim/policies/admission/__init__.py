"""Which request gets into the queue, and for how long."""
