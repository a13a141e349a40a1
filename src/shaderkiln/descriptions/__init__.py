"""descriptions"""
