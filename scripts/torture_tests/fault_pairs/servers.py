"""The origin of a pair: our Origin, which can be stopped, and restarted with its previous rules."""

import json
import os
import signal
import subprocess
import time
import urllib.request

from programs import direct


class Server:
    """An Origin on a port of its own, whose rules and logs outlive its process."""

    def __init__(self, binaries, work, name):
        self.binaries, self.work, self.name = binaries, work, name
        self.parameters = {}
        self.rules = {}
        self.logs = []
        # The time at which each process began, in the order of the logs.
        self.starts = []
        self.is_stopped = False
        self.process = None
        self.port = 0
        self.start()

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Starts the process, with all rules from its first request on."""
        number = len(self.logs)
        script, log = (f"{self.work}/{self.name}.{number}.{kind}" for kind in ("script", "log"))
        self.logs.append(log)
        with open(script, "w") as file:
            json.dump(self._messages(), file)
        output = open(f"{self.work}/{self.name}.out", "w+")
        self.starts.append(time.monotonic())
        self.process = subprocess.Popen(
            [f"{self.binaries}/Origin", "--port", str(self.port), "--log", log, "--script", script],
            stdin=subprocess.DEVNULL, stdout=output)
        deadline = time.monotonic() + 10
        while True:
            with open(output.name) as text:
                line = text.read().strip()
            if line:
                self.port = int(line.rpartition(":")[2])
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"Origin does not start on port {self.port}")
            time.sleep(0.01)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.is_stopped = False

    def stop(self):
        """Lets it stand still, its connections with it."""
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    @property
    def is_running(self):
        return self.process.poll() is None and not self.is_stopped

    def _messages(self):
        parameters = [{"match": pattern, "parameters": values}
                      for pattern, values in self.parameters.items() if values]
        return parameters + list(self.rules.values())

    def control(self, pattern, **parameters):
        """Sets parameters of what fits the pattern; None takes one back."""
        mine = self.parameters.setdefault(pattern, {})
        sent = {key.replace("_", "-"): value for key, value in parameters.items()}
        mine.update(sent)
        for key in [key for key, value in mine.items() if value is None]:
            del mine[key]
        self._post({"match": pattern, "parameters": sent})

    def rule(self, name, match, actions, **members):
        self.rules[name] = {"name": name, "match": match, "actions": actions, **members}
        self._post(self.rules[name])

    def remove_rule(self, name):
        if self.rules.pop(name, None):
            self._post({"remove": name})

    def _post(self, message):
        if self.is_running:
            with direct.open(f"{self.base}/control", data=json.dumps(message).encode(),
                             timeout=20) as response:
                response.read()

    def get(self, path):
        with direct.open(urllib.request.Request(self.base + path), timeout=60) as response:
            return response.read()

    def requests(self):
        """All requests that have ended, of all its processes, each with its moment."""
        found = []
        for start, path in zip(self.starts, self.logs):
            if not os.path.exists(path):
                continue
            with open(path) as log:
                for line in log:
                    try:
                        request = json.loads(line)
                        found.append(request | {"moment": start + request["time_ms"] / 1000})
                    except ValueError:
                        pass  # Half a line: the process was killed, or writes it now.
        return found

    def tear_down(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
