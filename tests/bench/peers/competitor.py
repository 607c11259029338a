# competitor: a process that makes a pass there and back whenever it is told, and what is said of the machine.
import platform
import subprocess
import time


class Failure(Exception):
    pass


class Competitor:
    """A process that answers line by line."""

    def __init__(self, what, version, threads, command, log):
        self.what, self.version, self.threads, self.command, self.log = what, version, threads, command, log
        self.forward, self.backward, self.first, self.later, self.error = [], [], None, None, None
        self.result = None                  # loss or height of the first pass
        self.process = None

    def name(self):
        return "%s, %d thread%s" % (self.what, self.threads, "" if self.threads == 1 else "s")

    def start(self):
        """Seconds from the start of the process to its first gradient."""
        start = time.perf_counter()
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.result = self.answer("first")[0]
        return time.perf_counter() - start

    def answer(self, word):
        while True:
            line = self.process.stdout.readline()
            if not line:
                self.log.flush()
                with open(self.log.name) as log:
                    raise Failure("%s stopped with status %s: %s" % (self.name(), self.process.wait(), log.read()[-2000:]))
            words = line.split()
            if words and words[0] == word:
                return words[1:]

    def tell(self, text, word):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.answer(word)

    def run(self):
        return [float(seconds) for seconds in self.tell("run", "time")]

    def save(self, path):
        self.tell("save " + path, "saved")

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None


def output(command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def system():
    """The system and the number of its release, without what its builder added."""
    return "%s %s" % (platform.system(), platform.release().split("-")[0])
