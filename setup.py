"""Which folder holds which package, for setuptools; everything else about the project stands in pyproject.toml.

The links in `attention_sieve` are for clones: this builds the same wheel where links are not to be had.
"""

from setuptools import find_packages, setup

ROOMS = ("core", "cache", "dashboard")

setup(
    package_dir={f"attention_sieve.{room}": room for room in ROOMS},
    packages=[
        "attention_sieve",
        "attention_sieve.calls",
        *(f"attention_sieve.{name}" for room in ROOMS for name in find_packages(include=[room, f"{room}.*"])),
    ],
)
