"""Cases that each run a command: get, put, list, replay, doctor."""

import os

from . import bodies, heads, lists, records, words
from .answers import content
from .bounds import COMMAND_SECONDS, Child, Snapshot, Violation, look_at_records, look_at_text
from .chance import damaged, once_in
from .mounts import entry_of, write_private
from .server import INNOCENT, PORT

# The exit statuses of commands: done, failed, damaged, bad usage, an existing destination.
STATUSES = (0, 1, 2, 3, 6, 9, 19, 22, 23, 24, 32, 60, 64, 73)
# The exit statuses of a command that was told to end.
ENDED = STATUSES + (143, -15)
COMMON = ["--no-config", "--retries", "1", "--stall-timeout", "1", "--connect-timeout", "2"]


# The answers of such a server continue longer than any limit: 20 s each (answers.py).
ENDLESS = {bodies.slow_body, bodies.endless, heads.slow_head}
# A list of more URLs takes longer.
MOST_URLS = 1000
# The processor time that each stored file may cost: the user determines their number.
FILE_CPU_SECONDS = 0.002
# The lengths of the innocent server's usual files, of its file for the cases of partial downloads,
# and of the other server's answer.
LENGTH, PARTIAL_LENGTH, ELSEWHERE_LENGTH = 20_000, 300_000, 5_000


def prepare(directory):
    """The directory of a case: its own place, and what is not its own."""
    for name in ("in/.ssh", "home", "outside", "linked"):
        os.makedirs(f"{directory}/{name}")
    for name in ("in/.ssh/authorized_keys", "in/.netrc", "in/same", "home/.bashrc", "outside/victim",
                 "linked/victim"):
        write_private(f"{directory}/{name}", "mine\n")
    os.symlink("../linked", f"{directory}/in/link")


def planted(directory):
    texts = {}
    for name in ("in/.ssh/authorized_keys", "in/.netrc", "in/same", "linked/victim", "outside/victim"):
        try:
            with open(f"{directory}/{name}", "rb") as file:
                texts[name] = file.read()
        except OSError:
            texts[name] = None
    return texts


def run(job, cases, sabotage=None):
    """Runs the one case; gives the violations."""
    case, = cases
    directory = job.directory()
    prepare(directory)
    if case.is_served:
        job.open(cases)
    report = {"leaks": [], "posts": {}, "requests": {}}
    try:
        lines = globals()[f"words_of_{case.kind}"](job, case, directory)
        before = Snapshot(directory, without=(f"{directory}/in",))
        found = []
        for index, (command, environment) in enumerate(lines):
            status, more = look_at_command(job, directory, command, environment, f"command{index}",
                                           is_endless(case))
            found += more
        found += look_at_results(case, directory, status)
    finally:
        if case.is_served:
            report = job.close()
    job.requests += sum(report["requests"].values())
    if case.is_served and not report["requests"].get(case.number):
        found.append(Violation("asked", "its server was not"))
    found += [Violation("secret", text) for _, text in report["leaks"]]
    if may_count_posts(case):
        found += [Violation("post", f"{count} times to {target}")
                  for target, count in report["posts"].items() if count > 1]
    after = Snapshot(directory, without=(f"{directory}/in",))
    found += [Violation("files", path) for path in before.changes(after, [
        f"{directory}/command{index}.{kind}" for index in range(len(lines)) for kind in ("out", "err")])]
    found += [Violation("files", name) for name, text in planted(directory).items()
              if text != b"mine\n"]
    if case.kind != "session":
        found += look_at_records(f"{directory}/in")
    job.remove(directory)
    return [(case.number, violation) for violation in found]


def may_count_posts(case):
    """Whether nothing in the answers of a case asks for the same again."""
    return case.kind == "put" and case.family != "redirect" and not {
        heads.odd_status, heads.damaged_head, heads.interim} & set(case.changes) and not any(
            change.__module__.endswith("redirects") for change in case.changes)


def is_endless(case):
    """Whether a case goes on, by its server or by thousands of files: its command is told to end."""
    return bool(case.is_served and ENDLESS & set(case.changes) or case.url_count > MOST_URLS)


def look_at_command(job, directory, command, environment, name, is_endless=False):
    """Runs a command; gives how it has ended, and what is wrong with it."""
    child = Child([job.httpfs, *command], f"{directory}/in",
                  {**job.environment(directory), **environment}, f"../{name}")
    found = []
    if is_endless:
        child.wait(COMMAND_SECONDS)
    else:
        found += child.ended(job.pace, "ends", command[0], job.seconds)
    if child.status is None:
        found += child.end(job.pace, ENDED)
    elif child.status not in STATUSES:
        found.append(Violation("alive", f"{command[0]} ended with {child.status}: {child.tail()}"))
    for path in (child.output, child.errors):
        with open(path, "rb") as file:
            found += look_at_text(f"{command[0]} {os.path.basename(path)}", file.read(),
                                  is_for_terminal=path == child.errors)
    job.commands += 1
    stored = sum(len(names) for _, _, names in os.walk(f"{directory}/in"))
    return child.status, found + child.costs(
        job.cpu_seconds + (FILE_CPU_SECONDS * stored if stored > 100 else 0))


# The command lines of each kind, with their environments.

def words_of_get(job, case, directory):
    url, *fields = entry_of(case).split("\n")
    options = case.chance.choice(([], ["-q"], ["--json"], ["--compressed"], ["--no-resume"]))
    if once_in(case.chance, 4):
        write_private(f"{directory}/in/c.txt", f"{case.host}\tFALSE\t/\tFALSE\t0\tck\t"
                      f"CANARYck{case.number}\n")
        options = options + ["--cookies", f"{directory}/in/c.txt"]
        # The file belongs to the user, and keeps its content.
        os.rename(f"{directory}/in/c.txt", f"{directory}/c.txt")
        options[-1] = f"{directory}/c.txt"
    return [(["get", *COMMON, *options, "-H", f"X-Secret: CANARYhdr{case.number}", url, "-o", "out.bin"],
             {})]


def words_of_put(job, case, directory):
    url = entry_of(case).split("\n")[0]
    with open(f"{directory}/in/body", "wb") as file:
        file.write(bytes(case.chance.choice((0, 100, 100_000, 2_000_000))))
    options = case.chance.choice((
        ["body"], ["--method", "POST", "body"], ["--form", "a=CANARYform", "--form", "f=@body"],
        ["--authenticate-on-challenge", "body"], ["--redirect-as-get", "body"]))
    if "--authenticate-on-challenge" in options:
        case.changes = case.changes + [heads.odd_status]
    output = case.chance.choice(([], ["-o", "answer"]))
    return [(["put", *COMMON, "-H", f"X-Secret: CANARYhdr{case.number}", *output, *options, url], {})]


def lines_of_list(case, directory, data):
    # Outside the download directory: it is the user's file and holds secrets.
    path = f"{directory}/list"
    case.url_count = data.count(b"http://")
    write_private(path, data)
    options = case.chance.choice(([], ["--json"], ["--tree"]))
    return [(["list", *options, path], {}),
            (["get", *COMMON, "-i", path, "-o", "."], {})]


def words_of_list(job, case, directory):
    data, case.what = lists.text_list(case.chance)
    return lines_of_list(case, directory, data)


def words_of_metalink(job, case, directory):
    data, case.what = lists.metalink(case.chance)
    return lines_of_list(case, directory, data)


def words_of_session(job, case, directory):
    data, case.what = words.session(case.chance)
    write_private(f"{directory}/in/session", data)
    return [(["get", *COMMON, "--session", "session"], {})]


def words_of_trace(job, case, directory):
    data, case.what = words.trace(case.chance)
    write_private(f"{directory}/trace", data)
    return [(["replay", f"{directory}/trace"], {})]


def words_of_config(job, case, directory):
    data, case.what = words.configuration(case.chance)
    write_private(f"{directory}/config.toml", data)
    url = f"http://{INNOCENT}:{PORT}/l1.bin"
    return [(["doctor", "--show-config", "--config", f"{directory}/config.toml"], {}),
            (["get", "--config", f"{directory}/config.toml", *COMMON[1:], url, "-o", "out.bin"], {})]


def words_of_netrc(job, case, directory):
    url = f"http://{INNOCENT}:{PORT}/l1.bin"
    data, case.what = words.netrc(case.chance)
    option = "--netrc-file"
    if once_in(case.chance, 3):
        data, case.what = words.cookie_file(case.chance)
        option = "--cookies"
    write_private(f"{directory}/secret", data)
    return [(["get", *COMMON, option, f"{directory}/secret", url, "-o", "out.bin"], {})]


def words_of_proxy(job, case, directory):
    value, case.what = words.proxy(case.chance)
    url = f"http://{INNOCENT}:{PORT}/l1.bin"
    name = case.chance.choice(("http_proxy", "all_proxy"))
    option = case.chance.choice(([], [], ["--proxy", os.fsdecode(value).replace("\0", "")]))
    return [(["get", *COMMON, *option, url, "-o", "out.bin"],
             {} if option else {name: os.fsdecode(value).replace("\0", "")})]


def words_of_partial(job, case, directory):
    """A download that was cut, whose sidecar is not as it was."""
    url = f"http://u:CANARYpw@{INNOCENT}:{PORT}/small-p.bin"
    # The record identifies the partial file by its inode: a copy would not match.
    part = f"{directory}/in/out.bin.httpfs-part"
    for _ in range(5):
        child = Child([job.httpfs, "get", "--no-config", "--retries", "0", "-H", "X-Cut: 200000", url,
                       "-o", "out.bin"], f"{directory}/in", job.environment(directory),
                      "../command-before")
        if child.wait(20) is None:
            child.kill()
        if os.path.exists(part + ".record"):
            break
        # A busy machine has reported the cut as a server that never answered.
    resume = [(["get", *COMMON, url, "-o", "out.bin"], {})]
    chance = case.chance
    if not os.path.exists(part + ".record"):
        case.what = "no partial file"
        return resume
    form = chance.randrange(10)
    if form < 6:
        with open(part + ".record", "rb") as file:
            data, case.what = records.bad(chance, file.read())
        # Damage in a record is no reason to fail: the download restarts. But a record of a later
        # version of httpfs is preserved, with an error (CACHE-FORMAT).
        case.must_succeed = "later version" not in case.what
        with open(part + ".record", "wb") as file:
            file.write(data)
    elif form < 8:
        case.what = "the record is " + records.displace(chance, part + ".record", linkable(directory))
    elif form < 9:
        case.what = "the partial file is " + records.displace(chance, part, linkable(directory))
    else:
        with open(part, "r+b") as file:
            data = damaged(chance, file.read())
            file.seek(0)
            file.write(data)
        case.what = "a partial file with damaged bytes"
    return resume


def linkable(directory):
    """A directory with files that links may lead to."""
    write_private(f"{directory}/outside/.bashrc", "mine\n")
    write_private(f"{directory}/outside/hard", "mine, too\n")
    return f"{directory}/outside"


def look_at_results(case, directory, status):
    """What the innocent servers have sent is right, and is there where the command says so."""
    right = {"partial": [content(3, 0, PARTIAL_LENGTH)]}.get(
        case.kind, [content(3, 0, LENGTH), content(0, 0, ELSEWHERE_LENGTH)])
    if case.is_served:
        # Whatever it has sent is acceptable.
        return []
    found = []
    if case.kind in ("config", "netrc", "proxy", "partial") and status == 0 \
            and not os.path.isfile(f"{directory}/in/out.bin"):
        found.append(Violation("bytes", f"get ended with 0, and there is no file: {case.what}"))
    if case.must_succeed and status != 0:
        found.append(Violation("bytes", f"get ended with {status}, and its server does nothing wrong: "
                               f"{case.what}"))
    count = 0
    for root, _, names in os.walk(f"{directory}/in"):
        for name in names:
            path = f"{root}/{name}"
            is_own = root == f"{directory}/in" and name in ("session", "same", ".netrc") \
                or root == f"{directory}/in/.ssh" and name == "authorized_keys"
            if is_own or os.path.islink(path) or not os.path.isfile(path) \
                    or name.endswith((".httpfs-part", ".httpfs-part.record")):
                continue
            count += 1
            with open(path, "rb") as file:
                data = file.read(PARTIAL_LENGTH + 1)
            if data not in right:
                found.append(Violation("bytes", f"of {os.path.relpath(path, directory)}, "
                                       f"{len(data)} bytes: {case.what}"))
    if case.url_count and status == 0 and not count and os.path.getsize(f"{directory}/command0.out"):
        found.append(Violation("bytes", f"get ended with 0, and there is no file: {case.what}"))
    return found[:3]
