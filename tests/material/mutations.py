"""Spoilt input: valid bytes with a few changes of the kinds that have broken readers."""

from hypothesis import strategies as st

NASTY = [
    b"", b"\0", b"\xef\xbb\xbf" * 50, b"\xff\xfe", b"\xed\xa0\x80", b"\r", b"\r\n", b"\n", b"\x0b", b"\x1c", b"\x85",
    "\u2028\u2029".encode(), "\u202e".encode(), "\ufeff".encode(), "\N{ZERO WIDTH JOINER}".encode() * 20,
    b'"', b"'", b"\\", b"\t", b",", b";", b"|||", b" ||| ", b"\t\t\t", b"[", b"]", b"{", b"}",
    b"[" * 3000, b'{"a":' * 3000,
    b"(" * 500, b")" * 500, b"null", b"true", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1", b"0", b"-0", b"1.5",
    b"9" * 25, b"9" * 5000, b"0x10", b"1_000", "٣".encode(), "²".encode(), b"<b>", b"$x$", b"\\u0000", b"\\ud800",
    b"# newdoc id = ", b"# sent_id = 1", b"1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_\n", b"1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n",
    b"[CLS]", b"[SEP]", b"##", b"word " * 300, b"a" * 10_000, b"\x1f\x8b\x08",
]  # fmt: skip
"""Pieces that are put in."""


@st.composite
def spoilt(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """One of the samples after one to six changes."""
    content = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from((0, 0, 1, 1, 2, 5, 20, 200))))
        match draw(st.sampled_from(("put in", "put in", "cut off", "double", "any bytes", "splice"))):
            case "put in":
                content = content[:start] + draw(st.sampled_from(NASTY)) + content[end:]
            case "cut off":
                content = content[:start]
            case "double":
                content = content[:end] + content[start:end] * draw(st.sampled_from((1, 2, 50))) + content[end:]
            case "any bytes":
                content = content[:start] + draw(st.binary(max_size=8)) + content[end:]
            case "splice":
                content = content[:start] + draw(st.sampled_from(samples))[start:]
    return content
