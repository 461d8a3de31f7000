"""The daemon of a pair: a mount that can be killed and mounted again."""

import json
import os
import signal
import subprocess
import time

from programs import is_mounted


class Daemon:
    """An httpfs mount in the foreground; `start` begins a new one where the last has ended."""

    def __init__(self, binaries, work, cache, source, options, environment):
        self.mountpoint, self.work = f"{work}/mnt", work
        os.mkdir(self.mountpoint)
        self.command = [f"{binaries}/httpfs", "mount", *options, "--no-config", "--cache-dir", cache,
                        "--log-level", "notice", "--log-file", f"{work}/httpfs.log", source,
                        self.mountpoint]
        self.environment = os.environ | environment
        self.process = None
        self.output = None
        self.generation = 0

    def start(self):
        """Starts a daemon; `is_ready` says when it can be read."""
        self.generation += 1
        self.output = f"{self.work}/mount.{self.generation}"
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, env=self.environment,
            stdout=open(f"{self.output}.out", "w"), stderr=open(f"{self.output}.err", "w"))

    @property
    def is_ready(self):
        with open(f"{self.output}.out") as text:
            return text.read().startswith("mounted ")

    @property
    def is_alive(self):
        return self.process.poll() is None

    def wait_until_ready(self, seconds=20):
        deadline = time.monotonic() + seconds
        while not self.is_ready:
            if not self.is_alive or time.monotonic() > deadline:
                raise SystemExit(f"no mount: {self.errors()}")
            time.sleep(0.01)

    def errors(self):
        with open(f"{self.output}.err", errors="replace") as text:
            return text.read().strip()[-500:]

    def log(self):
        """The last lines of its log."""
        try:
            with open(f"{self.work}/httpfs.log", errors="replace") as text:
                return text.read().splitlines()[-12:]
        except FileNotFoundError:
            return []

    def kill(self):
        self.process.send_signal(signal.SIGKILL)

    def status(self):
        with open(f"{self.mountpoint}/.status.json") as text:
            return json.load(text)

    def command_line(self, text):
        """Writes commands to the mount's control file."""
        descriptor = os.open(f"{self.mountpoint}/.control", os.O_WRONLY)
        try:
            os.write(descriptor, text.encode() + b"\n")
        finally:
            os.close(descriptor)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def is_mounted(self):
        return is_mounted(self.mountpoint)

    def unmount(self, seconds=20):
        """Ends the mount; gives the exit code, or in words why it does not end."""
        # A recent close may still be in flight.
        deadline = time.monotonic() + 5
        while True:
            result = subprocess.run(
                ["fusermount3", "-u", self.mountpoint], capture_output=True, text=True, timeout=30)
            if result.returncode == 0 or not self.is_mounted:
                break
            if time.monotonic() > deadline:
                return f"{result.stderr.strip()}; {', '.join(self.users()) or 'nobody has it open'}"
            time.sleep(0.1)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return "it runs on"

    def users(self):
        """Who has something of the mount open, as far as can be seen."""
        found = []
        for name in os.listdir("/proc"):
            try:
                for number in os.listdir(f"/proc/{name}/fd") if name.isdigit() else ():
                    target = os.readlink(f"/proc/{name}/fd/{number}")
                    if target.startswith(self.mountpoint):
                        found.append(f"process {name} has {target}")
            except OSError:
                pass
        return found

    def tear_down(self):
        if self.process is not None and self.is_alive:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        subprocess.run(["umount", "-l", self.mountpoint], capture_output=True, timeout=20)
        if self.process is not None:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                pass
