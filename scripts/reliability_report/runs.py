"""The long scripts: the command of each, and the lines of its output that contain its result."""

import re

# Every script that runs scripts/test ends with a line of the first kind, and with one of the second
# kind if all tests passed.
TESTS_RAN = r"^== Test run with \d+ of \d+ tests"
TESTS_PASSED = r"^== Test run with ([1-9]\d*) of \1 tests passed after .*, 0 with issues, "
# The lines of scripts/test for a test that failed, did not run, or was late beside others.
TEST_TROUBLE = (r"^(failed|failed, in no test|skipped|not ended|left behind): |^late beside |"
                r"^== .*: not run by the limit| recorded an issue ")
# A line that occurs in no successful run.
FAILURE = re.compile(r"^FAIL\b|^(failed|failed, in no test|not ended|left behind): |^== FAILED|"
                     r" recorded an issue ")


def is_variable(word):
    """Whether a word of a command line sets a variable of its environment."""
    return re.match(r"[A-Z_]+=", word) is not None


class Run:
    """One of the long scripts.

    Each of `proofs` is what a line of its output says when all of it was right: an exit status of 0
    without such lines, or with one that tells of a failure, is a failure. `{--cases}` in it is what
    the command says behind `--cases`, and `{HTTPFS_X}` what it sets that variable to. `figures` are the
    lines to keep, and all proofs are among them. `is_all` looks at these lines as one text and at the
    command's words, where more is to be held than words alone can say.
    """

    def __init__(self, name, about, command, options, quick, limit, proofs, figures, fold=None,
                 is_all=lambda text, words: True):
        self.name, self.about, self.command = name, about, command
        self.options, self.quick, self.limit = options, quick, limit
        self.proofs = proofs
        self.figures = re.compile("|".join(figures))
        self.fold, self.is_all = fold, is_all

    def words(self, is_quick, further):
        """The command line, with further options in the place of the usual ones of their names.

        >>> RUNS["hostile"].words(False, ["--cases", "4"])
        ['scripts/torture', 'hostile', '--seed', '1', '--cases', '4']
        >>> RUNS["pairs"].words(False, ["--seeds", "1"])
        ['scripts/torture', 'faults', '--pairs', '--first-seed', '1', '--seeds', '1']
        >>> RUNS["model"].words(True, [])[:2]
        ['HTTPFS_MODEL_SEEDS=2', 'scripts/test']
        """
        usual = list(self.quick if is_quick else self.options)
        for option in further:
            # Exclude a value that equals the name of another option.
            if option.startswith("-") and option in usual:
                place = usual.index(option)
                del usual[place:place + 2]
        words = [*self.command, *usual, *further]
        return sorted(words, key=lambda word: not is_variable(word))

    def is_proven(self, lines, words=()):
        """Whether the lines say that the run of a command line was right.

        >>> words = RUNS["hostile"].words(False, ["--cases", "20"])
        >>> RUNS["hostile"].is_proven(
        ...     ["20 of 20 cases, seed 1, 2 jobs: **no violation**. 9 hostile answers"], words)
        True
        >>> RUNS["hostile"].is_proven(
        ...     ["1 of 1 cases, seed 1, 2 jobs: **no violation**. 9 hostile answers"], words)
        False
        >>> RUNS["hostile"].is_proven(
        ...     ["20 of 20 cases, seed 1, 2 jobs: no violation. 0 hostile answers"], words)
        False
        >>> RUNS["hostile"].is_proven(
        ...     ["0 of 20 cases, seed 1, 2 jobs: no violation. 9 hostile answers"], words)
        False
        >>> RUNS["hostile"].is_proven(
        ...     ["20 of 20 cases, seed 1, 2 jobs: 14 violations. 9 hostile answers"], words)
        False
        >>> test = "== Test run with 1 of 1 tests passed after 9 seconds, 0 with issues, 0 skipped."
        >>> words = RUNS["kill-test"].words(False, [])
        >>> RUNS["kill-test"].is_proven(["kill-test: 200 kills, 3 reads verified", test], words)
        True
        >>> RUNS["kill-test"].is_proven(["kill-test: 1 kills, 3 reads verified", test], words)
        False
        >>> RUNS["kill-test"].is_proven(["kill-test: 200 kills, 0 reads verified", test], words)
        False
        >>> RUNS["kill-test"].is_proven([test], words)
        False
        >>> soak = ["     seed 1, 30 s, 64 readers", "ok   verified reads: 3, at least 2"]
        >>> RUNS["soak"].is_proven(soak, RUNS["soak"].words(True, []))
        True
        >>> RUNS["soak"].is_proven(soak, RUNS["soak"].words(False, []))
        False
        >>> RUNS["soak"].is_proven([*soak, "FAIL memory: 900 MiB"], RUNS["soak"].words(True, []))
        False
        >>> pairs = ["10 of 10 pairs of 18 conditions pass with every seed: 10 runs in 9 minutes",
        ...          "5 reads compared byte by byte (1 MiB): 0 wrong, "]
        >>> [RUNS["pairs"].is_proven(pairs, ["--seeds", count, "--sample"]) for count in "13"]
        [True, False]
        >>> RUNS["pairs"].is_proven(pairs, ["--seeds", "1"])
        False
        >>> pairs = ["9 of 9 pairs of 16 conditions pass with every seed: 9 runs in 2.1 minutes",
        ...          "18 downloads compared byte by byte (90 MiB): 0 wrong, 0 past the deadline (5 s)"]
        >>> words = RUNS["get-pairs"].words(True, [])
        >>> RUNS["get-pairs"].is_proven(pairs, words), RUNS["pairs"].is_proven(pairs, words)
        (True, False)
        >>> RUNS["get-pairs"].is_proven(pairs, RUNS["get-pairs"].words(False, ["--seeds", "1"]))
        False
        """
        options = dict(zip(words, words[1:])) | dict(
            word.split("=", 1) for word in words if is_variable(word))

        def value(match):
            # If the command lacks the option, no line matches.
            return re.escape(options[match[1]]) if match[1] in options else "(?!)"

        proofs = [re.compile(re.sub(r"\{(--[\w-]+|[A-Z_]+)\}", value, proof)) for proof in self.proofs]
        return not any(FAILURE.search(line) for line in lines) and all(
            any(proof.search(line) for line in lines) for proof in proofs) and self.is_all(
            "\n".join(lines), words)

    def told(self, lines):
        """What the script itself says came of it."""
        kept = [line for line in lines if self.figures.search(line)]
        return self.fold(kept) if self.fold else kept


def sum_of_sweeps(lines):
    """The sums of lines such as "pwrite, ENOSPC: 61 failing calls of a mount".

    >>> sum_of_sweeps(["a: 2 failing calls of a mount", "b: 3 failing calls of a mount", "== end"])
    ['5 failing calls of a mount in 2 sweeps', '== end']
    """
    sums, others = {}, []
    for line in lines:
        match = re.search(r": (\d+) (failing calls of a \w+)$", line)
        if match is None:
            others.append(line)
            continue
        count, sweeps = sums.get(match[2], (0, 0))
        sums[match[2]] = count + int(match[1]), sweeps + 1
    return [f"{count} {what} in {sweeps} sweeps" for what, (count, sweeps) in sums.items()] + others


def sum_of_seeds(lines):
    """The sum of lines such as "model: seed 3, 45 answers judged".

    >>> sum_of_seeds(["model: seed 3, 45 answers judged", "model: seed 4, 5 answers judged", "== end"])
    ['model: 2 seeds, 50 answers judged', '== end']
    """
    counts, others = [], []
    for line in lines:
        match = re.match(r"model: seed \d+, (\d+) answers judged", line)
        if match:
            counts.append(int(match[1]))
        else:
            others.append(line)
    return [f"model: {len(counts)} seeds, {sum(counts)} answers judged", *others] if counts else others


def has_all_rows(text, words):
    """Whether a run of the fault table had all rows that are built, where its command names none.

    >>> has_all_rows("85 of 85 rows pass", ["--seeds", "5"]), has_all_rows("1 of 1 rows pass", [])
    (True, False)
    """
    return "--row" in words or int(re.search(r"^\d+ of (\d+) rows", text, re.MULTILINE)[1]) >= 85


# The numbers of all pairs of conditions that can hold at once, for a mount and for a download.
MOUNT_PAIRS, GET_PAIRS = 153, 112


def has_all_pairs(text, words):
    """Whether a run had every pair, where its command names none, and every seed of each.

    >>> text = "112 of 112 pairs of 16 conditions pass with every seed: 112 runs in 9 minutes"
    >>> [has_all_pairs(text, ["--pairs", *words, "--seeds", "1"]) for words in ([], ["--get"])]
    [False, True]
    >>> has_all_pairs(text, ["--pairs", "--get", "--seeds", "3"])
    False
    """
    match = re.search(r"^\d+ of (\d+) pairs of .*: (\d+) runs", text, re.MULTILINE)
    options = dict(zip(words, words[1:]))
    every = GET_PAIRS if "--get" in words else MOUNT_PAIRS
    return match is not None and (
        int(match[2]) == int(match[1]) * int(options["--seeds"])
        and ("--pair" in words or "--sample" in words or int(match[1]) >= every))


TEST = ["scripts/test", "--no-install", "--skip-build", "--limit", "7200"]

RUNS = {run.name: run for run in (
    Run("faults", "The fault table, row by row: one fault at a time, in a mount and in downloads.",
        ["scripts/torture", "faults", "--skip-build"],
        ["--seeds", "5", "--first-seed", "1"], ["--seeds", "1", "--first-seed", "1"], 4 * 3600,
        [r"^(\d+) of \1 rows pass with {--seeds} seed\(s\) from {--first-seed}: ",
         r"^[1-9]\d* reads compared .*: 0 wrong, 0 past the deadline \+ 5 s, 0 daemons dead"],
        [r"^\d+ of \d+ rows pass", r"^\d+ reads compared",
         r"^Rows? [\d, ]+(is not|without)", r"^Left behind", r"^row \d\d, ",
         r"^\| \d\d \|.*\*\*[A-Z].*\|$"], is_all=has_all_rows),
    Run("pairs", "Two conditions at a time: every pair of conditions, with readers of several kinds.",
        ["scripts/torture", "faults", "--pairs"],
        ["--seeds", "3", "--first-seed", "1"], ["--seeds", "1", "--first-seed", "1", "--sample"],
        4 * 3600,
        [r"^([1-9]\d*) of \1 pairs of \d+ conditions pass", r"^[1-9]\d* reads compared .*: 0 wrong, "],
        [r"^\d+ of \d+ pairs", r"^\d+ reads compared", r"^\d+ requests, ",
         r"^\|.*\*\*.*\*\* \|$", r"^- [\w ]+: "], is_all=has_all_pairs),
    Run("get-pairs", "Two conditions at a time during a download: every pair of those that can hold at once.",
        ["scripts/torture", "faults", "--pairs", "--get"],
        ["--seeds", "3", "--first-seed", "1"], ["--seeds", "1", "--first-seed", "1", "--sample"],
        4 * 3600,
        [r"^([1-9]\d*) of \1 pairs of \d+ conditions pass",
         r"^[1-9]\d* downloads compared .*: 0 wrong, 0 past the deadline "],
        [r"^\d+ of \d+ pairs", r"^\d+ downloads compared", r"^\d+ requests, ",
         r"^\|.*\*\*.*\*\* \|$", r"^- [\w ]+: "], is_all=has_all_pairs),
    Run("hostile", "Generated servers and files that mean harm, against all commands.",
        ["scripts/torture", "hostile"],
        ["--cases", "2000", "--seed", "1"], ["--cases", "60", "--seed", "1"], 2 * 3600,
        [r"^({--cases}) of \1 cases, seed {--seed}, .*: \W*no violation\W+[1-9]\d* hostile answers"],
        [r"^\d+ of \d+ cases", r"^(FAIL|once)\b"]),
    Run("kill-test", "`kill -9` of a mount's daemon at random moments.",
        ["scripts/torture", "kill-test", "--skip-build"],
        ["--count", "200", "--seed", "1"], ["--count", "10", "--seed", "1"], 3700,
        [r"^kill-test: {--count} kills, [1-9]\d* reads ", TESTS_PASSED], [r"^kill-test: ", TESTS_RAN, TEST_TROUBLE]),
    Run("power-cut-test", "Loss of power of the disk below the cache at random moments.",
        ["scripts/torture", "power-cut-test", "--skip-build"],
        ["--count", "50", "--seed", "1"], ["--count", "3", "--seed", "1"], 3700,
        [r"^power-cut-test: {--count} cuts .*, [1-9]\d* reads .*[1-9]\d*\.\d+ MiB of them due",
         TESTS_PASSED],
        [r"^power-cut-test: ", TESTS_RAN, TEST_TROUBLE]),
    Run("call-sweeps", "The Nth system call on the cache or the destination fails, for every N.",
        [*TEST, "--filter", "CallSweeps/"], ["HTTPFS_CALL_SWEEP=all"], [], 7300,
        [TESTS_PASSED, r"[1-9]\d* failing calls"],
        [TESTS_RAN, TEST_TROUBLE, r": \d+ failing calls of a \w+$"], sum_of_sweeps),
    Run("model", "A reference model against random operations, faults, kills and evictions.",
        [*TEST, "--filter", "RealMounts/Model/"],
        ["HTTPFS_MODEL_SEEDS=200"], ["HTTPFS_MODEL_SEEDS=2"], 7300,
        [TESTS_PASSED, r"^model: {HTTPFS_MODEL_SEEDS} seeds, [1-9]\d* answers"],
        [TESTS_RAN, TEST_TROUBLE, "^model: "], sum_of_seeds),
    Run("fuzz", "Mutated lists, listings, Metalinks, records, heads, fields, status and commands.",
        [*TEST, "--filter", "FuzzTests"],
        ["HTTPFS_FUZZ_SCALE=10"], ["HTTPFS_FUZZ_SCALE=0.1"], 7300,
        [TESTS_PASSED], [TESTS_RAN, TEST_TROUBLE]),
    Run("soak", "Readers under faults, evictions, remote changes and reloads.",
        ["scripts/torture", "soak"],
        ["--seconds", "600", "--seed", "1"], ["--seconds", "30", "--seed", "1"], 3600,
        [r"^ +seed {--seed}, {--seconds} s, ", r"^ok +verified reads: [1-9]"], [r"^(ok  |FAIL) ", r"^     \S"]),
    Run("readers", "Thousands of readers at once, all of one file, then of many.",
        ["scripts/torture", "readers"],
        ["--readers", "10000", "--seed", "1"], ["--readers", "1000", "--seed", "1"], 1200,
        [r"^ok   {--readers} readers of 1 file, errors: 0$",
         r"^ok   {--readers} readers of \d+ files, errors: 0$", r"^ok   both: "],
        [r"^(ok  |FAIL) ", r"^     \S"]),
    Run("address", "AddressSanitizer: the unit tests, and suites over mounts.",
        ["scripts/torture", "sanitize", "address"], [], ["--skip-mounts"], 4 * 3600,
        [r"^   no report of the sanitizer$"], [r"^== (address|passed|FAILED)", r"^   \S"]),
    Run("thread", "ThreadSanitizer: the unit tests of several threads, and suites over mounts.",
        ["scripts/torture", "sanitize", "thread"], [], ["--skip-mounts"], 4 * 3600,
        [r"^   no report of the sanitizer$"], [r"^== (thread|passed|FAILED)", r"^   \S"]),
)}
