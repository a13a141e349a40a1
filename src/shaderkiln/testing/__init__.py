"""What tests of other implementations can use; needs ``hypothesis``."""
