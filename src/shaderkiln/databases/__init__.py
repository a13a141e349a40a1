"""databases"""
