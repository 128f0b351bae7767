"""Where requests come from: arrival processes, closed loops, traces, and what requests ask for."""
