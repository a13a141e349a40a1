"""Where pipelines come from: a Fossilize archive or a state object database, behind one interface."""
