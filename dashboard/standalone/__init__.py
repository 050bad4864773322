"""The components without Streamlit: one plain script of those that are named, and the colours of the page."""

import json
import re
from collections.abc import Sequence
from typing import Final, Literal

from attention_sieve.dashboard.components.source import Source, joined
from attention_sieve.dashboard.configuration import stated_options

_EXPORT: Final = re.compile(r"^export default function \(", re.MULTILINE)
FONT: Final = '"Source Sans 3", "Source Sans Pro", system-ui, "Segoe UI", Roboto, sans-serif'


def script(sources: Sequence[Source]) -> str:
    """The components as `components` by name, with `mounted` and `LinkedText`: for a script, or the top of a module.

    Each keeps its names to itself: several have their own `views`, say. The text holds no `</script`.
    """
    parts = [f"const components = {{\n{','.join(map(_component, sources))}\n}};"]
    parts.append(joined("page.js", "../standalone/mounted.js", "../standalone/linked_text.js"))
    return "\n".join(parts)


def _component(source: Source) -> str:
    js, n_exports = _EXPORT.subn("function exported(", source.js)
    if n_exports != 1:
        raise ValueError(f"The script of {source.name} has {n_exports} default exports, not one.")
    markup, styles = json.dumps(source.html).replace("</", r"<\/"), json.dumps(source.css)
    return f"{source.name}: {{ html: {markup}, css: {styles}, run: (() => {{\n{js}\nreturn exported;\n}})() }}"


def theme_variables(mode: Literal["light", "dark"]) -> str:
    """Declarations of the variables by which components take their colours, those of the dashboard."""
    prefix = f"theme.{mode}."
    colors = {name.removeprefix(prefix): value for name, value in stated_options().items() if name.startswith(prefix)}
    names = {name: re.sub("[A-Z]", lambda capital: f"-{capital[0].lower()}", name) for name in colors}
    lines = [f"--st-{names[name]}: {value};" for name, value in colors.items()]
    return "\n".join([f"color-scheme: {mode};", f"--st-font: {FONT};", *lines])


def theme_style() -> str:
    """The colours of a page, light or dark as the system is, and light on paper."""
    dark = f":root {{\n{theme_variables('dark')}\n}}"
    return f":root {{\n{theme_variables('light')}\n}}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
