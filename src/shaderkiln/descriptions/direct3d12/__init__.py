"""Direct3D 12 pipeline state streams and state objects as frozen data: builders, validation, canonical keys."""
