"""Work on every pipeline of a source: compile, verify, inspect, and what became of each."""
