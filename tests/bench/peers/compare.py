# compare: runs cqlua, Taichi and plain C on the same scenes in turn; called by run.sh.
#
# Every competitor is a process that makes one gradient, says "first LOSS", and then runs a pass there and back whenever it is
# told. They take turns, so that what else happens on the machine hits all of them; before each pass that counts they run
# for a tenth of a second. Losses and gradients are held against cqlua's in float64. Throughput is the median of the
# repetitions; the first gradient counts from the start of the process: for Taichi once with nothing compiled, and once
# with what it has kept on disk.
import argparse
import csv
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np

from competitor import Competitor, Failure, output, processor, system

CASES = ["2d-1600", "2d-6400", "3d-8000", "walker", "2d-6400-lattice", "3d-8000-lattice"]
FORMULATIONS = {            # of cqlua: those of the peers' method, and those of the same bodies on grids of their own shape
    "cqlua": [],
    "cqlua_tl": ["--formulation", "total_lagrangian"],
    "cqlua_tl_motion": ["--formulation", "total_lagrangian", "--motion", "true"],
}
MEETS = {"2d-1600"}         # a block that meets itself, which those steps refuse
GRADIENT_ERROR = 1e-3      # relative, of float32 against cqlua's float64; that of all competitors is about 4e-5
LOSS_ERROR = 1e-5
WARM = 0.1                 # seconds of passes before each that counts
STARTS = 3                 # processes whose first gradient is timed, of those that start at once
HERE = os.path.relpath(os.path.dirname(os.path.abspath(__file__)))

parser = argparse.ArgumentParser(prog="run.sh")
parser.add_argument("--cqlua", required=True)
parser.add_argument("--folder", required=True)
parser.add_argument("--compiler", required=True)
parser.add_argument("--command", required=True)
parser.add_argument("--out", help="CSV file; build/peers.csv unless given", default="build/peers.csv")
parser.add_argument("--cases", default=",".join(CASES), help="of " + ", ".join(CASES))
parser.add_argument("--repeats", type=int, default=7)
parser.add_argument("--steps", type=int, help="instead of the scene's own")
parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of cqlua and Taichi; cqlua is measured with one as well")
parser.add_argument("--taichi-threads", type=lambda text: [int(k) for k in text.split(",")], help="of Taichi, as 2,1; each is compiled anew")
parser.add_argument("--total-lagrangian", action="store_true", help="also cqlua's total Lagrangian steps, which is another method")
parser.add_argument("--quick", action="store_true", help="3 repetitions of 50 steps, one process for each start")


def taichi_version():
    from importlib.metadata import version
    return version("taichi")


def warm(competitor):
    """Passes that are not counted, after the others had their turns."""
    start = time.perf_counter()
    while time.perf_counter() - start < WARM:
        competitor.run()


def saved(competitor, path):
    competitor.save(path)
    return np.fromfile(path)


class Case:
    """One scene and its competitors."""

    def __init__(self, name, options, log):
        self.name, self.options = name, options
        self.scene = os.path.join(options.folder, name + ".f64")
        self.steps = ["--steps", str(options.steps)] if options.steps else []
        subprocess.run([options.cqlua, HERE + "/export.lua", "--case", name, "--file", self.scene, *self.steps], check=True)
        head = np.fromfile(self.scene, count=32)
        self.dim, self.work = int(head[0]), head[1] * head[2]
        self.cache = os.path.join(options.folder, "cache-" + name)
        self.log = log
        own = output([options.cqlua, "--version"]).split()[1]
        scalar = [os.path.join(options.folder, "scalar%dd" % self.dim), self.scene]
        self.competitors = []
        for what in FORMULATIONS if options.total_lagrangian and name not in MEETS else ["cqlua"]:
            if what == "cqlua_tl_motion" and name == "walker":
                continue                             # it wants only the gradients of its controller anyway
            self.competitors += [Competitor(what, own, threads, self.own(threads, what), log)
                                 for threads in sorted({options.threads, 1}, reverse=True)]
        for threads in options.taichi_threads or [options.threads]:
            self.competitors.append(Competitor("taichi", taichi_version(), threads, self.taichi(threads), log))
        self.competitors.append(Competitor("scalar", "C", 1, scalar, log))

    def own(self, threads, what="cqlua", precision="float32"):
        return [self.options.cqlua, HERE + "/cqlua.lua", "--case", self.name, "--threads", str(threads), "--precision", precision,
                *FORMULATIONS[what], *self.steps]

    def taichi(self, threads):
        cache = "%s-%d" % (self.cache, threads)      # Taichi compiles again for another number of threads
        shutil.rmtree(cache, ignore_errors=True)
        return [sys.executable, HERE + "/taichi_mpm.py", self.scene, "--threads", str(threads), "--cache", cache]

    def measure_starts(self):
        """The first gradient of fresh processes; for Taichi once with nothing compiled."""
        for competitor in self.competitors:
            if competitor.what == "taichi":
                competitor.first = competitor.start()
                competitor.stop()
        seconds = {competitor: [] for competitor in self.competitors}
        for _ in range(self.options.starts):
            for competitor in self.competitors:
                seconds[competitor].append(competitor.start())
                competitor.stop()
        for competitor in self.competitors:
            competitor.later = statistics.median(seconds[competitor])
            competitor.first = competitor.first or competitor.later

    def measure(self):
        for competitor in self.competitors:
            competitor.start()
        for repeat in range(self.options.repeats):
            for competitor in self.competitors:
                warm(competitor)
                there, back = competitor.run()
                competitor.forward.append(there)
                competitor.backward.append(back)

    def check(self):
        """The largest error of loss and gradients against cqlua's in float64."""
        truths, problems = {}, []
        for what in {c.what if c.what in FORMULATIONS else "cqlua" for c in self.competitors}:
            reference = Competitor("cqlua in float64", "", 1, self.own(1, what, "float64"), self.log)
            reference.start()
            truths[what] = saved(reference, os.path.join(self.options.folder, "reference.f64"))
            reference.stop()
        for competitor in self.competitors:
            truth = truths.get(competitor.what, truths["cqlua"])
            parts = [slice(1, len(truth))]
            if self.name != "walker":      # positions and velocities have gradients of unlike sizes
                half = (len(truth) - 1) // 2
                parts = [slice(1, 1 + half), slice(1 + half, len(truth))]
                if competitor.what == "cqlua_tl_motion":
                    parts = parts[1:]
            result = saved(competitor, os.path.join(self.options.folder, "result.f64"))
            if len(result) != len(truth):
                raise Failure("%s: %s gave %d numbers instead of %d" % (self.name, competitor.name(), len(result), len(truth)))
            competitor.error = max(np.linalg.norm(result[part] - truth[part]) / np.linalg.norm(truth[part]) for part in parts)
            if not abs(result[0] - truth[0]) <= LOSS_ERROR * max(1, abs(truth[0])):
                problems.append("%s: the loss of %s is %.9g and should be %.9g" % (self.name, competitor.name(), result[0], truth[0]))
            if not competitor.error <= GRADIENT_ERROR:
                problems.append("%s: the gradient of %s is off by %.2g" % (self.name, competitor.name(), competitor.error))
        return problems

    def stop(self):
        for competitor in self.competitors:
            competitor.stop()

    def rates(self, competitor):
        return [self.work / statistics.median(seconds) / 1e6 for seconds in (competitor.forward, competitor.backward)]


def print_case(case):
    print("\n%s" % case.name)
    print("  %-15s %7s %9s %9s %14s %12s %10s" % ("", "threads", "forward", "backward", "first gradient", "later", "error"))
    for c in case.competitors:
        there, back = case.rates(c)
        print("  %-15s %7d %9.2f %9.2f %12.3f s %10.3f s %10.1e" % (c.what, c.threads, there, back, c.first, c.later, c.error))
    for what in FORMULATIONS:
        own = max((c for c in case.competitors if c.what == what), key=lambda c: c.threads, default=None)
        for peer in ("taichi", "scalar"):
            if own is None:
                continue
            rates = [case.rates(c) for c in case.competitors if c.what == peer]
            best = [max(rate[k] for rate in rates) for k in range(2)]
            ours = case.rates(own)
            print("  %s, %d threads, against %s at its best: %.1f times forward, %.1f times backward" %
                  (what, own.threads, peer, ours[0] / best[0], ours[1] / best[1]))
    sys.stdout.flush()


def write(cases, options):
    folder = os.path.dirname(options.out)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(options.out, "w", newline="") as file:
        file.write("# %s, %d cores, %s, %s\n" % (processor(), len(os.sched_getaffinity(0)), system(), datetime.date.today()))
        file.write("# load average %s at the end, of which the competitors are about %d\n" %
                   (" ".join("%.1f" % x for x in os.getloadavg()), options.threads))
        file.write("# Python %s, NumPy %s; scalar: %s\n" % (platform.python_version(), np.__version__, options.compiler))
        file.write("# %s\n" % options.command.strip())
        file.write("# million particle-steps a second, medians of %d; float32; first gradient: from process start, for taichi with nothing\n"
                   % options.repeats)
        file.write("# compiled; later gradient: the same with what it kept on disk; error: relative, of the gradient against float64\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["case", "what", "version", "threads", "forward_mps", "backward_mps", "first_gradient_s", "later_gradient_s", "gradient_error"])
        for case in cases:
            for c in case.competitors:
                rows.writerow([case.name, c.what, c.version, c.threads, *("%.3f" % rate for rate in case.rates(c)), "%.3f" % c.first,
                               "%.3f" % c.later, "%.1e" % c.error])


def main():
    options = parser.parse_args()
    options.starts = 1 if options.quick else STARTS
    if options.quick:
        options.repeats, options.steps = 3, options.steps or 50
    names, cases, problems = options.cases.split(","), [], []
    for name in names:
        if name not in CASES:
            parser.error("there is no case %s; there are %s" % (name, ", ".join(CASES)))
    print("million particle-steps a second, medians of %d; seconds from process start to the first gradient" % options.repeats)
    with open(os.path.join(options.folder, "stderr.log"), "w+") as log:
        for name in names:
            case = Case(name, options, log)
            try:
                case.measure_starts()
                case.measure()
                problems += case.check()
            finally:
                case.stop()
            cases.append(case)
            print_case(case)
            write(cases, options)
    print("\nwritten to %s" % options.out)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("run.sh: %s" % failure)
    except KeyboardInterrupt:
        sys.exit(130)
