"""Splitshift: scheduled jobs that cannot silently fail.

Repository path = import path = asset path = handler string.
"""
