"""Hostile directory listings."""

import functools

from .chance import damaged, edge, once_in, spelt, strange

HREFS = [
    b"ok.txt", b"../up", b"..", b".", b"./", b"a/b", b"/abs", b"%2e%2e", b"%2e%2e/", b"..%2f..%2fetc",
    b"a%2fb", b"a%00b", b"x%0ay", b"%1b[31m", b"c1%c2%9b", b"n" * 256, b"n" * 255, b".status",
    b".control", b".status.json", b"http://evil.invalid/x", b"//127.200.0.1:8080/x",
    b"http://127.200.0.1:8080/x", b"file:///etc/passwd", b"javascript:x", b"?C=N", b"#f", b"a?b",
    b"&#46;&#46;/", b"&lt;b&gt;", b"%ff%fe", b"e%cc%81", b"%c3%a9", b"dir/", b"dir", b"sp ace",
    b"tab\there", b"q&quot;q", b"%e2%80%aegpj.exe", b"\\..\\x", b"a\\b", b"C:\\x", b"~", b"-rf", b"*",
    b"$(id)", b"`id`", b";x", b"a%25b", b"http:ok2", b"././././deep", b"deep//x", b"x%", b"%", b"",
    b" ", b"&#x2f;", b"&#0;", b"&#1114112;", b"&#99999999999999999999;", b"&amp;" * 3000,
    b"&nosuch;", b"&" + b"e" * 50_000, b"\xff", b"\x00", b"d/" * 3000, b"%2e/", b"same", b"same/", b"Same",
]
DATES = [b"21-Nov-2026 09:01", b"2026-11-21 09:01", b"99-Nov-2026 99:99", b"21-Nov-99999999999 09:01",
         b"0000-00-00 00:00", b"21-Xyz-2026 09:01", b"2026-11-21 09:01:61", b"31-Feb-2026 24:00", b""]
WORDS = [b"<", b">", b"<a href=", b"</a>", b"\"", b"'", b"<!--", b"-->", b"<![CDATA[", b"<script>",
         b"</script>", b"<base href=\"/\">", b"<html>", b"<table>", b"</tr>", b"&amp;", b"&#", b"\x00",
         b"<plaintext>", b"<textarea>", b"<frameset>", b"<svg>", b"<meta charset=utf-16>", b"21-Nov-2026"]


def size(chance):
    return chance.choice([
        lambda: b"%d" % edge(chance), lambda: spelt(chance, edge(chance)), lambda: b"1.5K",
        lambda: b"9999999999999999G", lambda: b"-", lambda: b"1e30M", lambda: b"17"])()


def entry(chance, index):
    href = chance.choice(HREFS) if once_in(chance, 2) else b"f%d.bin" % index
    if once_in(chance, 8):
        href = b"d%d/" % index
    if once_in(chance, 12):
        href = strange(chance)
    quote = chance.choice((b"\"", b"'", b""))
    return b"<a href=%s%s%s>%s</a>  %s  %s\n" % (
        quote, href, quote, href[:60], chance.choice(DATES), size(chance))


def usual(chance):
    """a listing with odd names, sizes and dates"""
    lines = b"".join(entry(chance, index) for index in range(chance.randrange(1, 60)))
    return b"<html><head><title>Index of /</title></head><body><pre>" + lines + b"</pre></body></html>"


@functools.lru_cache
def attributes(count):
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = []
    for index in range(count):
        name = ""
        for _ in range(5):
            name, index = letters[index % 26] + name, index // 26
        names.append(name.encode())
    return b"<html><body><a " + b" ".join(names) + b">x</a></body></html>"


def bombs(chance):
    """a listing that is costly to read"""
    return chance.choice([
        lambda: attributes(chance.choice((500, 4000, 60_000))),
        lambda: b"".join(b"<a href=f%06d>" % index
                         for index in range(chance.choice((5000, 100_000, 100_001)))),
        lambda: b"<div>" * chance.choice((127, 129, 5000, 500_000)),
        lambda: b"<a href=x>" * 50_000,
        lambda: b"<a href='" + b"&amp;" * 500_000 + b"'>",
        lambda: b"<a href='" + b"x" * 4_000_000 + b"'>",
        lambda: b"<!--" * 300_000,
        lambda: b"<" * 1_000_000,
        lambda: b"<a" * 400_000,
        lambda: b"<b><i>" * 100_000 + b"</b></i>" * 100_000,
        lambda: b"<table><td><p>" * 50_000,
        lambda: b"<!DOCTYPE x [<!ENTITY a \"" + b"b" * 1000 + b"\">]><html>&a;&a;",
        lambda: b"<!DOCTYPE html [" + b"".join(
            b"<!ENTITY e%d \"&e%d;&e%d;\">" % (index + 1, index, index) for index in range(60))
        + b"]><a href=\"&e60;\">",
        lambda: b"<base href=\"" + b"../" * 100_000 + b"\"><a href=x>",
        lambda: b"<base href=\"http://127.200.0.1:8080/\"><a href=x>x</a>",
        lambda: b"<base href=x>" * 50_000,
        lambda: b"<script>" + b"</scrip" * 300_000,
        lambda: b" " * (17 << 20),
        lambda: b"<a href=\"f\">" + b"21-Nov-2026 09:01 " * 100_000,
        lambda: b"<a href=\"f\">" + b"1" * 2_000_000,
        lambda: b"<meta charset=\"utf-16\"><a href=x>" + b"\xd8\x00" * 50_000,
        lambda: b"<?xml version=\"1.0\" encoding=\"EBCDIC-US\"?><a href=x/>",
        lambda: b"<a href=d/>d</a>",
        lambda: b"\x00" * 1_000_000,
    ])()


def listing(chance):
    """The page of a case, and in a few words what it is."""
    form = chance.randrange(8)
    if form < 4:
        page, what = usual(chance), usual.__doc__
    elif form < 6:
        page, what = bombs(chance), bombs.__doc__
    else:
        page = damaged(chance, usual(chance), WORDS, chance.randrange(1, 30))
        what = "a listing with damaged bytes"
    return page, what
