"""Which applications have precompiled shaders on this machine (EP-50): ``installer`` writes it, ``explorer`` reads it."""
