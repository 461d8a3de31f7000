"""Hostile redirects, cookies and challenges."""

from .chance import edge, strange

# The server that must get no secret of another origin; the query of a Location is the server's own.
ELSEWHERE = b"http://127.200.0.1:8080/"


def location(chance, number, host):
    """Where a redirect of a case may lead."""
    own = b"/%d/f.bin" % number
    query = b"?tok=CANARYlocq"
    return chance.choice([
        ELSEWHERE + b"x", ELSEWHERE + b"x" + query, b"//127.200.0.1:8080/x",
        b"http://u:CANARYloc@127.200.0.1:8080/x" + query, b"http://%s:8081/x" % host,
        b"http://u:CANARYloc@%s:8081/x" % host, b"http://localhost:8080/x", b"http://127.1:8080/x",
        b"HTTP://127.200.0.1:8080\\@%s:8080/x" % host, b"http://%s:8080@127.200.0.1:8080/x" % host,
        b"http://127.200.0.1:8080#@%s:8080/" % host, b"http://%s.:8080/x" % host,
        b"http://2130706433:8080/x", b"http://0x7fc80001:8080/x", b"http://0177.0310.0.1:8080/x",
        b"http://[::ffff:127.200.0.1]:8080/x", b"http://[::1]:8080/x", b"http://[::1%25lo]:8080/",
        b"http://nohost.invalid/x" + query, b"http://u:CANARYloc@[::x]/" + query,
        b"http://u:CANARYloc@h:99999/" + query, b"https://%s:8080/x" % host + query,
        b"file:///etc/passwd", b"gopher://127.200.0.1:8080/_x",
        b"ftp://127.200.0.1/x", b"javascript:x", b"data:,x", b"", b" ", b"#", b"?", b"/", b"..", b"*",
        own, own + b"?" + b"%d" % chance.getrandbits(30), b"?" + b"q" * 50_000, b"http:", b"http://",
        b"http:///x", b"http://%s:8080/" % host + b"x" * 90_000, b"http://" + b"h" * 70_000 + b"/",
        b"http://%s:%d/" % (host, edge(chance)), b"/" + strange(chance),
        b"/x\r\n Injected: y", b"/%0d%0aX: y", b"/a\\b", b"./" * 20_000 + b"x", b"../" * 20_000 + b"x",
        b"/%zz%", b"http://\xff\xfe/", b"http://xn--/x", b"http://a..b/", b"http://%00/",
    ])


def redirect(chance, answer, number, host):
    """a redirect"""
    answer.status = b"HTTP/1.1 " + chance.choice([
        b"301 M", b"302 F", b"302 F", b"303 S", b"307 T", b"308 P", b"300 M", b"305 U", b"306 x",
        b"304 N", b"201 C", b"399 x"])
    answer.drop(b"content-range")
    answer.set_body(chance.choice((b"", b"", b"moved", bytes(100_000))))
    for _ in range(chance.choice((1, 1, 1, 2, 200))):
        answer.fields.append(b"Location: " + location(chance, number, host))


def loop(chance, answer, number, host):
    """redirects without end"""
    answer.status = chance.choice((b"HTTP/1.1 302 F", b"HTTP/1.1 307 T", b"HTTP/1.1 308 P"))
    answer.drop(b"content-range")
    answer.set_body(b"")
    form = chance.randrange(3)
    if form == 0:
        answer.put(b"Location: /%d/f.bin" % number)
    elif form == 1:
        # To a URL without any earlier request.
        answer.put(b"Location: /%d/%d/f.bin" % (number, chance.getrandbits(60)))
    else:
        answer.put(b"Location: " + b"/%d" % number + b"/x" * chance.randrange(1, 3000))


def cookies(chance, answer, number, host):
    """a flood of cookies"""
    form = chance.randrange(6)
    nonce = chance.getrandbits(40)
    if form == 0:
        lines = [b"c%d-%d=%s; Path=/" % (nonce, index, b"x" * 3900) for index in range(50)]
    elif form == 1:
        lines = [b"c%d-%d=v" % (nonce, index) for index in range(3000)]
    elif form == 2:
        lines = [b"a=b; Domain=127.200.0.1", b"a=b; Domain=.1", b"a=b; Domain=localhost",
                 b"a=b; Domain=.com", b"a=b; Domain=", b"__Host-a=b; Domain=127.200.0.1"]
    elif form == 3:
        lines = [b"a=b; Max-Age=%d; Expires=x" % edge(chance), b"a=b; Expires=" + b"9" * 4000,
                 b"a=b; Path=" + b"/p" * 2000, b"=", b";", b"a", b"a=" + strange(chance)]
    elif form == 4:
        lines = [b"; ".join(b"k%d=v" % index for index in range(20_000))]
    else:
        lines = [b"n" * 100_000 + b"=v", b"a=" + b"v" * 100_000]
    answer.fields += [b"Set-Cookie: " + line for line in lines]


def challenge(chance, answer, number, host):
    """a challenge for credentials"""
    answer.status = chance.choice((b"HTTP/1.1 401 U", b"HTTP/1.1 401 U", b"HTTP/1.1 407 P"))
    answer.drop(b"content-range")
    answer.set_body(b"no")
    name = b"WWW-Authenticate: " if b"401" in answer.status else b"Proxy-Authenticate: "
    for _ in range(chance.choice((1, 1, 3, 300))):
        answer.fields.append(name + chance.choice([
            b"Basic realm=\"x\"", b"Basic realm=\"" + b"r" * 90_000 + b"\"", b"Basic", b"Basic realm=\"",
            b"Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5", b"Digest nonce=",
            b"Digest realm=\"r\", nonce=\"" + b"n" * 50_000 + b"\"", b"NTLM", b"NTLM " + b"A" * 3000,
            b"Negotiate", b"Bearer", b"AWS4-HMAC-SHA256", b"", b",,,", strange(chance)]))


REDIRECTS = [redirect, redirect, redirect, redirect, loop, cookies, cookies, challenge]

