# others: cqlua beside Taichi, Genesis and Newton, each on one thread, in turn, by processor time; called by `make peers`.
#
#   python3 tests/bench/peers/others.py --cqlua build/cqlua [--folder DIR] [--out FILE.csv] [--peers taichi,newton]
#   [--repeats 3]
#
# Each peer is installed from PyPI into an environment of its own in the folder, and stays there. One that cannot be
# installed is left out, in a sentence. What is not comparable stands beside each row.
import argparse
import csv
import datetime
import os
import shutil
import statistics
import subprocess
import sys

from competitor import Competitor, Failure, output, processor, system

HERE = os.path.relpath(os.path.dirname(os.path.abspath(__file__)))
PEERS = {                   # what pip installs, and how much disk that takes [GiB]
    "taichi": (["taichi==1.7.4", "numpy<3"], 1),
    "genesis": (["genesis-world==1.4.5", "torch==2.15.0"], 11),
    "newton": (["newton==1.8.0", "warp-lang==1.19.0", "numpy<3"], 1),
}
DURATION = 0.1
IMPLICIT = [(0.005, 1e-4), (0.005, 1e-6)]                   # of Newton: step and tolerance
OURS = "0.01"                                                # our tolerance beside them

parser = argparse.ArgumentParser(prog="others.py")
parser.add_argument("--cqlua", required=True)
parser.add_argument("--folder", default="build/peers")
parser.add_argument("--out", default="build/peers-others.csv")
parser.add_argument("--peers", default=",".join(PEERS), help="of " + ", ".join(PEERS))
parser.add_argument("--repeats", type=int, default=3)


def install(peer, folder):
    """The Python of a peer's environment; None, with a sentence, if it cannot be installed."""
    packages, disk = PEERS[peer]
    home = os.path.join(folder, "venv" if peer == "taichi" else peer)          # Taichi's is that of run.sh
    python, (name, version) = os.path.join(home, "bin", "python"), packages[0].split("==")
    check = "from importlib.metadata import version; import sys; sys.exit(version('%s') != '%s')" % (name, version)
    if os.path.exists(python) and subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL).returncode == 0:
        return python
    free = shutil.disk_usage(folder).free / 2**30
    if free < disk:
        print("%s is left out: it needs %d GiB of disk, and %s has %.1f" % (peer, disk, folder, free))
        return None
    print("installing %s into %s" % (" ".join(packages), home))
    for command in ([sys.executable, "-m", "venv", "--clear", home],
                    [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", *packages]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            lines = done.stdout.strip().splitlines() or ["status %d" % done.returncode]
            print("%s is left out: it could not be installed: %s" % (peer, lines[-1]))
            return None
    return python


class Turn:
    """Competitors that do the same, the first of them cqlua."""

    def __init__(self, case, note, competitors):
        self.case, self.note, self.competitors = case, note, competitors

    def measure(self, repeats):
        for competitor in self.competitors:
            competitor.start()
        for _ in range(repeats):
            for competitor in self.competitors:
                there, back = competitor.run()
                competitor.forward.append(there)
                competitor.backward.append(back)
        for competitor in self.competitors:
            competitor.stop()

    def rows(self):
        ours = self.competitors[0]
        for competitor in self.competitors:
            there, back = (statistics.median(seconds) for seconds in (competitor.forward, competitor.backward))
            against = [statistics.median(ours.forward), statistics.median(ours.backward)]
            yield [self.case, competitor.what, competitor.version, "%.4f" % there, "%.4f" % back, competitor.result,
                   "%.3g" % (there / against[0]), "%.3g" % (back / against[1]) if back > 0 and against[1] > 0 else "",
                   self.note if competitor is not ours else ""]


def turns(options, log):
    own = output([options.cqlua, "--version"]).split()[1]

    def ours(script, *arguments):
        return Competitor("cqlua", own, 1, [options.cqlua, HERE + "/" + script, "--threads", "1", *arguments], log)

    def scene(case):
        path = os.path.join(options.folder, case + ".f64")
        subprocess.run([options.cqlua, HERE + "/export.lua", "--case", case, "--file", path], check=True)
        return path

    def explicit(case):
        return ours("cqlua.lua", "--case", case, "--precision", "float32", "--clock", "processor")

    for peer in options.peers.split(","):
        if peer not in PEERS:
            parser.error("there is no peer %s; there are %s" % (peer, ", ".join(PEERS)))
    for peer in options.peers.split(","):
        python = install(peer, options.folder)
        if not python:
            continue
        version = PEERS[peer][0][0].split("==")[1]

        def theirs(script, *arguments):
            return Competitor(peer, version, 1, [python, HERE + "/" + script, *arguments], log)

        if peer == "taichi":
            yield Turn("2d-1600", "its gradients are those of states alone", [explicit("2d-1600"), theirs(
                "taichi_mpm.py", scene("2d-1600"), "--threads", "1", "--clock", "processor",
                "--cache", os.path.join(options.folder, "taichi-cache"))])
        if peer == "genesis":
            path = scene("3d-8000-smooth")
            for more in [], ["--gradient"]:
                yield Turn("3d-8000-smooth", "its gradients are those of states alone" if more else "",
                           [explicit("3d-8000-smooth"), theirs("genesis_mpm.py", path, *more)])
        if peer == "newton":
            path = scene("3d-8000")
            for dt, tolerance in IMPLICIT:
                arguments = ["--dt", str(dt), "--duration", str(DURATION)]
                yield Turn("3d-8000, steps of %g" % dt, "tolerance %g, of another residual than ours; another elastic law; linear"
                           " shape functions" % tolerance,
                           [ours("implicit.lua", "--case", "3d-8000", "--tolerance", OURS, *arguments),
                            theirs("newton_mpm.py", path, "--tolerance", str(tolerance), *arguments)])


COLUMNS = ["case", "what", "version", "forward_s", "backward_s", "result", "forward_ratio", "backward_ratio", "not_comparable"]


def main():
    options = parser.parse_args()
    try:
        os.makedirs(options.folder, exist_ok=True)
        log = open(os.path.join(options.folder, "stderr.log"), "w+")
    except OSError as problem:
        sys.exit("others.py: --folder %s cannot be used: %s" % (options.folder, problem.strerror))
    found = []
    with log:
        for turn in turns(options, log):
            try:
                turn.measure(options.repeats)
            except Failure as failure:
                print("%s is left out: %s" % (turn.competitors[1].what, str(failure).strip().splitlines()[-1]))
                continue
            for row in turn.rows():
                found.append(row)
                print("  ".join(str(cell) for cell in row), flush=True)
    if not found:
        sys.exit("others.py: no peer was measured")
    with open(options.out, "w", newline="") as file:
        file.write("# %s, %d cores, %s, %s; load average %s\n" % (processor(), len(os.sched_getaffinity(0)), system(),
                   datetime.date.today(), " ".join("%.1f" % x for x in os.getloadavg())))
        file.write("# tests/bench/peers/others.py %s\n" % " ".join(sys.argv[1:]))
        file.write("# seconds of processor time on one thread, medians of %d in turn; result: loss, or the height of the cube;"
                   " ratio: by cqlua's\n" % options.repeats)
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(found)
    print("written to %s" % options.out)


if __name__ == "__main__":
    main()
