"""compilers"""
