"""Hostile session files, traces, configuration files, netrc and cookie files, proxies."""

from .chance import EDGES, damaged, edge, once_in, spelt, strange
from .lists import text_list


def session(chance):
    """A session file, and in a few words what it is."""
    heading = b"# A session of httpfs get; go on with: httpfs get --session FILE\n\n"
    data, what = text_list(chance)
    if data[:2] == b"\x1f\x8b" or once_in(chance, 20):
        return data, "a session that is none"
    if once_in(chance, 3):
        heading = damaged(chance, heading)
    return heading + b"# paused: CANARYstate\n" + data, "a session: " + what


def trace(chance):
    """A trace, and in a few words what it is."""
    lines = [b"# httpfs access trace 1"]
    clock, opened = 0.0, []
    for index in range(chance.randrange(1, 200)):
        clock += chance.random() * 0.01
        times = b"%f\t%f" % (clock, clock + chance.random() * 0.01)
        if once_in(chance, 8):
            times = b"%s\t%s" % (number(chance), number(chance))
        kind = chance.randrange(6)
        if kind == 0 or not opened:
            length = number(chance) if once_in(chance, 2) else b"1000000"
            opened.append(index)
            lines.append(b"%s\topen\t%d\t\t%s\tf%d" % (times, index, length, index % 5))
        elif kind == 1:
            lines.append(b"%s\tclose\t%d\t\t\t" % (times, chance.choice(opened)))
        else:
            offset, count = b"%d" % chance.randrange(900_000), b"4096"
            if once_in(chance, 3):
                offset = number(chance)
            if once_in(chance, 3):
                count = number(chance)
            lines.append(b"%s\tread\t%d\t%s\t%s\t" % (times, chance.choice(opened), offset, count))
    data = b"\n".join(lines) + b"\n"
    if once_in(chance, 3):
        words = [b"\t", b"\n", b"open", b"read", b"close", b"nan", b"inf", b"1e308", b"-1",
                 b"9223372036854775807", b"# httpfs access trace 1\n", b"18446744073709551615"]
        return damaged(chance, data, words, chance.randrange(1, 20)), "a trace with damaged bytes"
    if once_in(chance, 10):
        return data + lines[-1] * 100_000 + b"\n" * 100_000, "a long trace"
    return data, "a trace with odd numbers"


def number(chance):
    return chance.choice([
        b"nan", b"inf", b"-inf", b"1e308", b"1e-308", b"-0", b"0x1p3", spelt(chance, edge(chance)),
        b"%d" % chance.choice(EDGES), b"%d" % chance.choice(EDGES), b"%d.5" % chance.choice(EDGES)])


KEYS = [
    b"cache-size", b"connections", b"rate-limit", b"file-rate-limit", b"read-timeout", b"revalidate",
    b"listing-ttl", b"umask", b"uid", b"gid", b"log-level", b"log-file", b"header", b"header-file", b"proxy",
    b"no-index", b"source", b"mountpoint", b"allow-other", b"tree", b"jobs", b"output", b"url-command",
    b"stall-timeout", b"retries", b"config", b"no-config", b"help", b"conections", b"netrc", b"cookies",
    b"cacert", b"interface", b"daemon", b"", b"\"\"", b"'a b'", b"a.b.c",
]


def configuration(chance):
    """A configuration file, and in a few words what it is."""
    if once_in(chance, 6):
        return chance.choice([
            lambda: b"a=" + b"[" * 200_000,
            lambda: b"a=" + b"{x=" * 50_000,
            lambda: b"[" + b"a." * 100_000 + b"a]\n",
            lambda: b"".join(b"[mounts.m%d]\nsource=\"x\"\n" % index for index in range(20_000)),
            lambda: b"".join(b"[mounts.m%d]\nsource=\"x\"\n" % index for index in range(500)),
            lambda: b"[mount]\nheader=[" + b"\"a: CANARYb\"," * 70_000 + b"]\n",
            lambda: b"[mount]\nno-index=\"" + b"x" * 5_000_000 + b"\"\n",
            lambda: b"#" * 9_000_000,
            lambda: b"[mount]\ncache-size=" + b"9" * 100_000 + b"\n",
        ])(), "a configuration that is costly to read"
    lines = []
    for _ in range(chance.randrange(1, 6)):
        section = chance.choice([b"mount", b"get", b"put", b"mounts.a", b"mounts.\"\"", b"mounts", b"x",
                                 b"mounts.'../x'", b"mounts.\"\\u001b[2J\"", b"[mount]", b"doctor"])
        lines.append(b"[" + section + b"]")
        for _ in range(chance.randrange(0, 6)):
            value = chance.choice([
                b"\"CANARYvalue\"", b"true", b"false", b"%d" % edge(chance), number(chance), b"[]",
                b"[1, \"a\", []]", b"{}", b"{a={b={}}}", b"1979-05-27T07:32:00Z", b"0o777", b"'''\nx\n'''",
                b"\"\\u0000\"", b"\"\\uD800\"", b"\"~/x\"", b"\"~nobody/x\"", b"\"@a\"", b"\"--help\"",
                b"\"-\"", b"\"http://u:CANARYpw@127.203.0.1:9/x?CANARYq\"", b"[\"X: CANARYh\"]",
                b"\"" + strange(chance).replace(b"\"", b"") + b"\""])
            lines.append(chance.choice(KEYS) + b" = " + value)
    data = b"\n".join(lines) + b"\n"
    if once_in(chance, 3):
        words = [b"[", b"]", b"[[", b"=", b"\"\"\"", b"'''", b"{", b"}", b"\\u", b",", b"#", b".", b"\n"]
        return damaged(chance, data, words, chance.randrange(1, 12)), \
            "a configuration with damaged bytes"
    return data, "a configuration with odd values"


def netrc(chance):
    """A netrc file, and in a few words what it is."""
    if once_in(chance, 6):
        return chance.choice([
            lambda: b"machine h login " + b"l" * 2_000_000 + b" password CANARYn\n",
            lambda: b"machine h login l password CANARYn\n" * 50_000,
            lambda: b"macdef x\n" + b"y\n" * 500_000,
            lambda: b"machine " * 300_000,
            lambda: b" " * 5_000_000,
            lambda: b"\"" + b"\\\"" * 500_000,
        ])(), "a netrc that is costly to read"
    words = [b"machine 127.201.0.1", b"machine *", b"machine", b"default", b"login l", b"login",
             b"password CANARYn", b"password \"CANARY \\\" n\"", b"password \"CANARYn", b"account a",
             b"macdef init\nls\n\n", b"# CANARYcomment", b"\n", b"machine 127.201.0.1:8080", strange(chance),
             b"password " + strange(chance) + b"CANARYn", b"login \xff", b"machine [::1]"]
    data = b" ".join(chance.choice(words) for _ in range(chance.randrange(1, 20))) + b"\n"
    if once_in(chance, 2):
        return damaged(chance, data, words, chance.randrange(1, 10)), "a netrc with damaged bytes"
    return data, "a netrc with odd words"


def cookie_file(chance):
    """A cookie file, and in a few words what it is."""
    if once_in(chance, 5):
        return b"".join(
            b"127.201.0.1\tFALSE\t/\tFALSE\t0\tc%d\tCANARYc\n" % index for index in range(3000)), \
            "very many cookies"
    lines = []
    for _ in range(chance.randrange(1, 9)):
        lines.append(b"\t".join([
            chance.choice((b"127.201.0.1", b".1", b"", b"127.200.0.1", b"#HttpOnly_127.201.0.1", b"*")),
            chance.choice((b"TRUE", b"FALSE", b"x")), chance.choice((b"/", b"", b"x")),
            chance.choice((b"TRUE", b"FALSE")), number(chance), strange(chance),
            b"CANARYc" + strange(chance)]))
    data = b"# Netscape HTTP Cookie File\n" + b"\n".join(lines) + b"\n"
    return damaged(chance, data), "odd cookies"


def proxy(chance):
    """A proxy of the environment, and in a few words what it is."""
    password = b"u:CANARYproxy@"
    return chance.choice([
        b"http://" + password + b"127.0.0.1:99999", b"http://" + password + b"127.203.0.1:9",
        b"htp://" + password + b"127.203.0.1:9", b"http://" + password + b"127.0 .0.1:9",
        b"http://" + password + b"[::1", b"socks5://" + password + b"127.203.0.1:9",
        b"socks9://" + password + b"127.203.0.1:9", password + b"127.203.0.1:9", password,
        b"http://" + password, b"http://" + password + b"h.invalid:9", b"http:" + password + b"x",
        b"http://u:CANARY\x1bproxy@127.203.0.1:9", b"http://" + password + b"127.203.0.1:-1",
        b"http://" + password + b"127.203.0.1:" + b"9" * 400, b"://" + password,
        b"http://" + password * 5000 + b"127.203.0.1:9", b"http://" + password + b"127.200.0.1:8080",
        b"https://" + password + b"127.200.0.1:8080", b"socks4a://" + password + b"127.200.0.1:8080",
        b"http://" + password + b"h.invalid:0/CANARYpath?CANARYq#CANARYf", b"|;|" + password,
    ]), "a proxy of the environment"
