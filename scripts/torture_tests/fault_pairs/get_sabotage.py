"""Violations that the judge of downloads must find, for the self-check."""

import os

from .get_conditions import GetCondition


class WrongByte(GetCondition):
    """The only server of a file sends one wrong byte under the right tag."""
    name, rank = "wrong byte", 99

    def shape(self, world):
        world.origin.rule("wrong byte", {"path": "/data/x.bin", "range": "500000-500000"}, [
            "head", {"content": ["first", "499999"]}, {"content": ["500000", "500000"], "version": 9},
            {"content": ["max(first, 500001)", "last"]}])


class Refusal(GetCondition):
    """A server that refuses the file, which nothing promises."""
    name, rank = "refusal", 99

    def begin(self, world):
        world.daemon.kill()
        world.origin.control("*", status=404)

    def end(self, world):
        world.origin.control("*", status=None)


class Crash(GetCondition):
    """A process that ends by a signal though nobody was to end it."""
    name, rank = "crash", 99

    def begin(self, world):
        # Unlike the condition of a kill, this does not report the kill.
        world.daemon.last.process.kill()


class RequestLoop(GetCondition):
    """Somebody asks again and again for the file."""
    name, rank = "request loop", 99

    def begin(self, world):
        for _ in range(1_500):
            world.origin.get("/data/x.bin?length=10")


class Leftover(GetCondition):
    """A file beside the download that no documentation names."""
    name, rank = "leftover", 99

    def begin(self, world):
        with open(f"{world.target}.tmp", "w"):
            pass


class EarlyFile(GetCondition):
    """A part of the file under its final name, and then a failure."""
    name, rank = "early file", 99

    def begin(self, world):
        with open(world.target, "wb") as file:
            file.write(world.contents["x.bin"][1][:1 << 19])


class LostPartial(GetCondition):
    """What was stored is gone before the command that completes the file."""
    name, rank = "lost partial file", 99

    def before_next_mount(self, world):
        start = world.daemon.start

        def lose_and_start():
            for name in world.names():
                os.unlink(f"{world.directory}/{name}")
            start()

        world.daemon.start = lose_and_start

    def end(self, world):
        world.daemon.kill()


# Each with the expected verdict of the judge, and the pair in which it occurs.
STILL = ("hedging", "rate limit")
SABOTAGE = {condition.name: (condition, kind, pair) for condition, kind, pair in (
    (WrongByte, "wrong", STILL), (Refusal, "unpromised", STILL),
    (Crash, "dead", STILL), (RequestLoop, "requests", STILL), (Leftover, "left over", STILL),
    (EarlyFile, "wrong", ("disk failing", "rate limit")), (LostPartial, "lost", ("server stalled", "rate limit")))}
