"""Hostile lists and Metalinks."""

import gzip

from .bodies import bomb
from .chance import EDGES, damaged, edge, once_in, strange

# The hosts of their URLs: no server answers at the second.
HOSTS = [b"127.201.0.1:8080", b"127.203.0.1:9", b"nohost.invalid"]

URLS = [
    b"http://h.invalid/", b"http://h.invalid/..", b"http://h.invalid/%2e%2e", b"http://h.invalid/a/../b",
    b"http://h.invalid/.status", b"http://h.invalid/a%00b", b"http://h.invalid/a%0Ab",
    b"http://h.invalid/a%2Fb", b"http://h.invalid/%FF%FE", b"http://h.invalid/a%C2%85b",
    b"http://h.invalid/same", b"http://h.invalid/same", b"http://h.invalid/e%CC%81",
    b"http://h.invalid/%C3%A9", b"http:// h/x", b"ftp://h.invalid/x", b"file:///etc/passwd",
    b"javascript:alert(1)", b"http://CANARYu:CANARYp@/x?CANARYq", b"http://h.invalid:0/x",
    b"http://h.invalid:65536/x", b"http://h.invalid:99999999999999999999/x", b"http://[::1/x",
    b"http://]/x", b"http://h.invalid/" + b"n" * 255, b"http://h.invalid/" + b"n" * 256,
    b"http://h.invalid/" + b"d/" * 2100 + b"x", b"//h.invalid/x", b"h.invalid/x", b"http:///x",
    b"http://h.invalid", b"http://h.invalid?x", b"http://h.invalid/" + b"x" * 70_000,
    b"http://h.invalid/x#CANARYfragment", b"http://us er:CANARYp@h.invalid/x",
    b"CANARYuser:CANARYpw@h.invalid/x", b"http:/u:CANARYp@h.invalid/x", b"http:u:CANARYp@h.invalid",
    b"http://a@b:CANARYp@h.invalid:99999/x?y=CANARYq", b"http://[CANARYb]/",
]
OPTIONS = [
    b"out=../up", b"out=../../outside/victim", b"out=/etc/victim", b"out=a/../../b", b"out=.",
    b"out=..", b"out=a//b", b"out=a/", b"out=", b"out=.status", b"out=.status/x", b"out=.control/a",
    b"out=link/victim", b"dir=/abs", b"dir=..", b"dir=../x", b"dir=.status", b"dir=link", b"out=same",
    b"out=same/child", b"out=e\xcc\x81", b"out=\xc3\xa9", b"out=a\x00b", b"out=a\x1b[2Jb", b"out=a\x7fb",
    b"out=a\xc2\x85b", b"out=a\tb", b"out=\xe2\x80\xaegnp.exe", b"out=" + b"l" * 255,
    b"out=" + b"l" * 256, b"dir=" + b"p/" * 2047 + b"x", b"out=x.httpfs-part",
    b"out=x.httpfs-part.record", b"out=.netrc", b"out=.ssh/authorized_keys",
    b"header=A: b\rInjected: CANARYh", b"header=A\x00: CANARYh", b"header=: CANARYh",
    b"header=A B: CANARYh", b"header=CANARYh", b"header=A: \x01CANARYh", b"header=Range: bytes=0-1",
    b"header=Host: evil.invalid", b"header=X: CANARYh", b"header=Transfer-Encoding: chunked",
    b"header=Content-Length: 99999", b"header=X: " + b"CANARY" * 9000, b"header=a:b",
    b"user-agent=a\rHost: CANARYh", b"user-agent=CANARYua", b"referer=\x00CANARYr", b"referer=*",
    b"checksum=md5=CANARYsum", b"checksum=crc=00", b"checksum=sha-256=" + b"0" * 64,
    b"checksum=sha-256=" + b"f" * 100_000, b"length=-1", b"length=9223372036854775807",
    b"length=99999999999999999999", b"length=0", b"length=1e3", b"max-download-limit=-5",
    b"max-download-limit=99999999999999999999T", b"max-download-limit=1e400", b"pieces=sha-256:0:00",
    b"pieces=sha-256:-1:00", b"pieces=sha-1:9223372036854775807:" + b"0" * 40,
    b"pieces=sha-256:1:" + b",".join([b"0" * 64] * 500), b"pieces=md5:1:", b"split=5", b"=value", b"out",
    b"no equals sign", b"unknown-option=CANARYo", b"gid=CANARYg", b"http://h.invalid/i?CANARYq",
]
LIST_WORDS = OPTIONS[:30] + URLS[:20] + [b"\n", b"\r\n", b"\t", b"\n  ", b"#", b"=", b"http://", b":"]


def text_list(chance):
    """A list, and in a few words what it is."""
    form = chance.randrange(10)
    if form == 0:
        return bombs(chance), "a list that is costly to read"
    ending = chance.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r"))
    lines = []
    for index in range(chance.randrange(1, 9)):
        url = chance.choice(URLS) if once_in(chance, 3) else \
            b"http://user:CANARYpw@%s/l%d.bin?token=CANARYtok" % (chance.choice(HOSTS), index)
        if once_in(chance, 6):
            url += b"\thttp://m:CANARYpw@127.203.0.1:9/m%d?CANARYq" % index
        lines.append(url)
        for _ in range(chance.randrange(0, 4)):
            lines.append(chance.choice((b"  ", b" ", b"\t")) + chance.choice(OPTIONS))
        if once_in(chance, 10):
            lines.append(strange(chance))
    data = ending.join(lines) + ending
    what = "a list with odd lines"
    if form > 5:
        data, what = damaged(chance, data, LIST_WORDS, chance.randrange(1, 20)), \
            "a list with damaged bytes"
    if once_in(chance, 12):
        data, what = gzip.compress(data, mtime=0), what + ", gzip"
        if once_in(chance, 2):
            data, what = damaged(chance, data), what + ", damaged"
    return data, what


def bombs(chance):
    url = b"http://u:CANARYpw@127.201.0.1:8080/b.bin?CANARYq"
    return chance.choice([
        lambda: url + b"\n" + b"  header=a:b\n" * chance.choice((1000, 66_000)),
        lambda: url + b"\n" + b"".join(b"  header=X%d: CANARYh\n" % index for index in range(30_000)),
        lambda: url + b"\n" + b"  pieces=sha-256:1:" + b"0" * 64 + b"\n"
        + (b"  pieces=" + b",".join([b"0" * 64] * 900) + b"\n") * 20,
        lambda: b"\t".join(b"http://127.203.0.1:9/%d" % index for index in range(3000)) + b"\n",
        lambda: b"".join(b"http://127.201.0.1:8080/%d.bin\n" % index for index in range(3000)),
        lambda: b"".join(b"http://127.201.0.1:8080/s\n  out=d%d/" % index + b"d/" * 300 + b"x\n"
                         for index in range(20)),
        lambda: b"#" * 2_000_000 + b"\n" + url + b"\n",
        lambda: b"\n" * 3_000_000 + url + b"\n",
        lambda: url + b"\n  out=" + b"x" * 1_000_000 + b"\n",
        lambda: b"x" * 5_000_000,
        lambda: bomb(64),
        lambda: gzip.compress(b"# \n" * (2 << 20), mtime=0),
        lambda: gzip.compress(gzip.compress(bytes(1 << 20), mtime=0), mtime=0),
        lambda: gzip.compress(b"#\n", mtime=0) * 50_000,
    ])()


METALINK_WORDS = [
    b"<file name=\"x\">", b"</file>", b"<url>", b"</url>", b"<hash type=\"sha-256\">", b"<pieces>",
    b"<!DOCTYPE a>", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"&amp;", b"&#0;", b"xmlns=\"\"", b"\"", b"<",
    b">", b"/>", b"<?xml?>", b"<metaurl>", b"<size>-1</size>",
]


def metalink(chance):
    """A Metalink, and in a few words what it is."""
    form = chance.randrange(10)
    if form < 3:
        return metalink_bomb(chance), "a Metalink that is costly to read"
    files = b"".join(metalink_file(chance, index) for index in range(chance.randrange(1, 5)))
    if once_in(chance, 4):
        data = b"<?xml version=\"1.0\"?><metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\">" \
            b"<files>" + files + b"</files></metalink>"
    else:
        data = b"<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">" + files \
            + b"</metalink>"
    if form < 7:
        return data, "a Metalink with odd values"
    return damaged(chance, data, METALINK_WORDS, chance.randrange(1, 20)), \
        "a Metalink with damaged bytes"


def metalink_file(chance, index):
    name = chance.choice([
        b"m%d.bin" % index, b"m%d.bin" % index, b"../outside/victim", b"/etc/victim", b"a/../../b", b"",
        b"link/victim", b".ssh/authorized_keys", b"same", b"&#27;[2J", b"&#x9b;2J", b"n" * 300,
        b"a&#0;b", b".status", strange(chance).replace(b"\"", b"").replace(b"<", b"")])
    number = chance.choice([b"%d" % edge(chance), b"%d" % chance.choice(EDGES), b"5000", b"x", b""])
    urls = b"".join(
        b"<url priority=\"%d\" location=\"de\">%s</url>" % (edge(chance), url.replace(b"&", b"&amp;"))
        for url in chance.choices(URLS + [b"http://u:CANARYpw@127.201.0.1:8080/m?CANARYq"] * 30,
                                  k=chance.randrange(0, 5)) if b"\x00" not in url)
    kind = chance.choice((b"sha-256", b"sha-1", b"md5", b"sha-512", b"x", b""))
    pieces = b"".join(b"<hash>" + b"0" * chance.choice((64, 40, 1)) + b"</hash>"
                      for _ in range(chance.choice((0, 1, 2, 2000))))
    return b"<file name=\"%s\"><size>%s</size><hash type=\"%s\">%s</hash>" \
        b"<pieces length=\"%s\" type=\"%s\">%s</pieces>%s</file>" % (
            name, number, kind, b"0" * 64, chance.choice((number, b"1", b"262144")), kind, pieces, urls)


def metalink_bomb(chance):
    begin = b"<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"a\">"
    end = b"</file></metalink>"
    url = b"<url>http://127.203.0.1:9/0</url>"
    return chance.choice([
        lambda: begin + b"".join(b"<url>http://127.203.0.1:9/%d</url>" % index for index in range(
            chance.choice((1001, 20_000, 40_000)))) + end,
        lambda: begin + b"<pieces length=\"1\" type=\"sha-256\">" + (
            b"<hash>" + b"0" * 64 + b"</hash>") * 60_000 + b"</pieces>" + url + end,
        lambda: begin + b"<hash type=\"sha-256\">" + b"0" * 64 + b"</hash>" + url + end + b"<x>" * 100_000,
        lambda: begin[:begin.index(b"<file")] + b"".join(
            b"<file name=\"f%d\">%s</file>" % (index, url) for index in range(3000)) + b"</metalink>",
        lambda: b"<x>" * chance.choice((15, 17, 200_000)),
        lambda: b"<a " + b" ".join(b"a%d=\"\"" % index for index in range(5000)) + b">",
        lambda: b"<a xmlns:" + b" xmlns:".join(b"a%d=\"u%d\"" % (index, index) for index in range(4000))
        + b"/>",
        lambda: b"<!DOCTYPE m [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><metalink>&b;"
        b"</metalink>",
        lambda: b"<!DOCTYPE m SYSTEM \"file:///etc/passwd\"><metalink/>",
        lambda: b"<!DOCTYPE m SYSTEM \"http://127.200.0.1:8080/CANARYdtd\"><metalink/>",
        lambda: begin + b"<url>" + b"x" * 3_000_000 + b"</url>" + end,
        lambda: begin + b"<!--" + b"-" * 2_000_000,
        lambda: begin + b"&amp;" * 400_000 + end,
        lambda: begin + b"<url><![CDATA[" + b"]" * 2_000_000,
        lambda: b"<" + b" " * 4_000_000,
        lambda: gzip.compress(begin + b"<!--" + bytes(8 << 20), mtime=0),
    ])()
