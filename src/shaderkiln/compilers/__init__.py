"""Compiler plugins and the jobs that run them: compile, verify, inspect, each pipeline in a process that may die alone."""
