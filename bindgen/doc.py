"""The headers' Doxygen comments to numpydoc text."""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass, field

_SKIPPED = re.compile(
    r"[\\@](notefnerr|note_async|note_sync|note_memcpy|note_null_stream|note_texture_float_support|note_init_rt|"
    r"note_callback|note_cudaKernel_t|note_destroy_ub|note_graph_thread_safety|note_capture|ingroup\s+\w+|endverbatim|endcode|"
    r"defgroup[^\n]*|addtogroup[^\n]*|struct[^\n]*|typedef[^\n]*|enum[^\n]*|file[^\n]*|cond[^\n]*|endcond|\{|\})"
)

_TAGS = "b|i|em|ul|ol|p|tt|code|pre|small|table|tr|td|th|tbody|thead|caption|sub|sup"
_HEADINGS = "par|notes?|warning|attention|deprecated|remarks|details|brief|li|arg|sa"


@dataclass
class Doc:
    """A function's comment taken apart: ``summary`` (one sentence), ``text``, parameters, see-also names."""

    summary: str = ""
    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    see_also: list[str] = field(default_factory=list)


def plain(comment: str) -> str:
    """Running text without Doxygen and HTML markup."""
    text = re.sub(r"[\\@](latexonly|htmlonly)\b.*?[\\@]end\1\b", "", comment, flags=re.S)
    text = _SKIPPED.sub("", text)
    text = re.sub(r'[\\@]ref\s+[\w:]+(?:\([^()]*\))?\s+"([^"]+)"', r"\1", text)
    text = re.sub(r"[\\@](?:verbatim|code)\b\n?", "", text)
    text = re.sub(r"[\\@](?:p|c|e|b|em|ref|a)\s+(?:::)?(\*{0,2}\w+(?:(?:\.|->|::)\w+)*)", r"`\1`", text)
    text = re.sub(r"[\\@]param\s+(\w+)\s*-?", r"`\1`:", text)
    text = re.sub(r"[\\@]returns?\b", "Returns", text)
    text = re.sub(r"\b(or|zero)::", r"\1 ", text)  # where a space is missing
    text = re.sub(r"(?<=\w)::(?=\w)", ".", text)  # fields of records
    text = re.sub(r"::(\w+)", r"\1", text)
    text = re.sub(r"<br\s*/?>|\\n\b", "", text)
    text = re.sub(r"</tr>", "\n", re.sub(r"</t[dh]>", " ", text))
    text = re.sub(rf"</?(?:{_TAGS})\b[^>]*>", "", text)
    text = re.sub(r"<li>", "- ", text).replace("</li>", "")
    text = re.sub(rf"[\\@](?:{_HEADINGS})\b *", "", text)
    text = re.sub(r"[\\@](\w+)\{([^}]*)\}", r"\2", text)
    text = re.sub(r" ?&tm;|%[A-Z_]+%", "", text).replace("&times;", "*")
    text = re.sub(r"&\w+;", lambda m: html.unescape(m[0]), text)
    text = re.sub(r"\\([*#%])", r"\1", text)
    text = re.sub(r"[ \t]+\n", "\n", text)
    return "\n\n".join(_unindented(p) for p in re.split(r"\n{2,}", text.strip()))


def _unindented(paragraph: str) -> str:
    """A paragraph whose first line is at the margin has no reason to indent the others, unless it is a list."""
    lines = paragraph.splitlines()
    if not lines or lines[0][:1].isspace() or any(re.match(r"\s*[-+*]\s", line) for line in lines):
        return paragraph
    return "\n".join(line.strip() for line in lines)


def brief(comment: str) -> str:
    """The comment of a field, a member or a type as one paragraph; empty when it is but a line of asterisks."""
    text = " ".join(plain(comment).split())
    return text if re.search(r"\w", text) else ""


def parse(comment: str) -> Doc:
    """Take a function's comment apart."""
    doc = Doc()
    sections = re.split(r"\n?[\\@](param|returns?|sa|see|retval)\b", comment)
    head = re.sub(r"[\\@]brief\b|<!--|-->", "", _SKIPPED.sub("", sections[0])).strip()
    summary, _, text = head.strip().partition("\n\n")
    if "\n" in summary.strip() and not text:
        summary, text = _first_sentence(summary.strip())
    doc.summary, doc.text = brief(summary), plain(text)
    for kind, body in zip(sections[1::2], sections[2::2], strict=True):
        if kind == "param":
            _add_parameter(doc, body)
        elif kind in ("sa", "see"):
            doc.see_also = [
                n.split("::")[-1] for n in re.findall(r"(?:::)?(\w{4,})", body) if n.startswith(("cu", "nv"))
            ]
        elif kind.startswith("return"):
            _, _, rest = body.partition("\n\n")
            if rest.strip() and not rest.strip().startswith("\\note"):
                doc.text = f"{doc.text}\n\n{plain(rest)}".strip()
    return doc


def _first_sentence(paragraph: str) -> tuple[str, str]:
    """A paragraph's first sentence, or its first line when a capital letter begins the second one."""
    line, _, rest = paragraph.partition("\n")
    if re.match(r"\s*(?:[A-Z][a-z]|[-*\\])", rest) or line.endswith("."):
        return line, rest
    sentence = re.match(r".*?\.(?=\s|$)", paragraph, re.S)
    return (sentence[0], paragraph[sentence.end() :]) if sentence else (line, rest)


def _add_parameter(doc: Doc, body: str) -> None:
    match = re.match(r"\s*(?:\[[^\]]*\])?\s*([\w,]+)\s*[-:]*\s*(.*)", body, re.S)
    if not match:
        return
    text, _, rest = match[2].partition("\n\n")
    for name in match[1].split(","):
        doc.parameters[name] = brief(text)
    if rest.strip():
        doc.text = f"{doc.text}\n\n{plain(rest)}".strip()


def wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
