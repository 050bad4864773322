"""Texts that would do harm where they are taken for markup, and whether they were."""

import re

from playwright.sync_api import expect
from steps import error, settle

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    ":material/home:",
    "$x$",
)
ALL = " ".join(HOSTILE)


def expect_nothing_rendered(page):
    settle(page)
    main = page.get_by_test_id("stApp")
    expect(main.locator("img[src='x']")).to_have_count(0)
    expect(main.locator("script")).to_have_count(0)
    expect(main.locator("a[href^='javascript']")).to_have_count(0)
    expect(main.locator(".katex").locator("visible=true")).to_have_count(0)
    expect(main.get_by_test_id("stIconMaterial").filter(has_text="home")).to_have_count(0)


def expect_said(page, words):
    """In the error sentence, where word joiners of no width keep signs apart."""
    spread = "\u2060?".join(re.escape(sign) for sign in words)
    expect(error(page)).to_have_text(re.compile(spread))
