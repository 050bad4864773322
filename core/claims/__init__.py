"""Tests a claim that people make about heads: which of those it names have the role."""
