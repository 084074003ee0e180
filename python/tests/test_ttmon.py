"""The installed package, run by scripts/test-wheel in an environment that has it. Each test is a process of its own."""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest
import zipfile

import mock

TTNN = os.environ.get("TTMON_TTNN")
NEEDS_TTNN = unittest.skipUnless(TTNN, "needs the real ttnn: TTMON_TTNN")
PACKAGES = pathlib.Path(sysconfig.get_path("platlib"))
SCRATCH = tempfile.TemporaryDirectory()
MOCK = {}

#: What the programs below begin with.
BEGINNING = """
import json, os, sys

def agents():
    with open("/proc/self/maps") as maps:
        return sorted({line.split()[-1] for line in maps if "libttmon_agent" in line})

def books():
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return sum("ttmon-book" in os.readlink(link) for link in links if os.path.islink(link))
"""

#: A device, and a tensor on it.
TENSOR = """
import ttnn
device = ttnn.open_device(device_id=0)

def tensor(rows=512, memory=ttnn.DRAM_MEMORY_CONFIG):
    shape = [1, 1, rows, 512]
    return ttnn.empty(shape, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory)

def allocator(kind=ttnn.BufferType.DRAM):
    view = ttnn.get_memory_view(device, kind)
    return view.total_bytes_allocated_per_bank * view.num_banks
"""


def run(program, *options, environment=(), arguments=()):
    """Runs a program and answers what it prints, as JSON. It must not print anything else."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TTMON_", "PYTHON", "LD_"))}
    command = [sys.executable, *options, "-c", BEGINNING + program, *arguments]
    variables = {**inherited, **MOCK, **dict(environment)}
    process = subprocess.run(command, cwd=SCRATCH.name, env=variables, capture_output=True, text=True, timeout=120)
    if process.returncode != 0 or process.stderr:
        raise AssertionError(f"exit {process.returncode}: {process.stdout} {process.stderr}")
    return json.loads(process.stdout)


def setUpModule():
    if TTNN:
        MOCK.update(mock.environment(pathlib.Path(TTNN), pathlib.Path(SCRATCH.name) / "root"))


def tearDownModule():
    SCRATCH.cleanup()


@NEEDS_TTNN
class TestWithTtnn(unittest.TestCase):
    def test_the_book_agrees_with_the_allocator_to_the_byte(self):
        told = run(
            TENSOR
            + """
import ttmon
with ttmon.label("kv-cache"):
    a = tensor()
b = tensor(1024)
c = tensor(32, ttnn.L1_MEMORY_CONFIG)

@ttmon.label("by the function")
def make():
    with ttmon.label("inner"):
        first = tensor()
    return first, tensor()

d = make()
full, dram, l1 = ttmon.memory(), allocator(), allocator(ttnn.BufferType.L1)
del a, d
some, later = ttmon.memory(), allocator()
ttnn.deallocate(b)
del c
empty, none = ttmon.memory(), allocator()
view = ttnn.get_memory_view(device, ttnn.BufferType.DRAM)
ttnn.close_device(device)
print(json.dumps([full, dram, l1, some, later, empty, none, view.total_bytes_free_per_bank, ttmon.memory()]))
"""
        )
        full, dram, l1, some, later, empty, none, free, closed = told
        self.assertEqual(full["chips"][0]["dram"]["bytes"], dram)
        self.assertEqual(full["chips"][0]["l1"]["bytes"], l1)
        self.assertTrue(full["exact"])
        labels = sorted(str(buffer["label"]) for buffer in full["buffers"])
        self.assertEqual(labels, ["None", "None", "by the function", "inner", "kv-cache"])
        cache = next(buffer for buffer in full["buffers"] if buffer["label"] == "kv-cache")
        self.assertEqual((cache["logical_bytes"], cache["kind"]), (512 * 512 * 2, "dram"))
        self.assertGreater(cache["bytes"], cache["logical_bytes"], "whole pages in each of 12 banks")
        self.assertEqual(some["chips"][0]["dram"]["bytes"], later)
        self.assertLess(later, dram)
        self.assertEqual((empty["chips"][0]["dram"]["bytes"], none), (0, 0))
        self.assertEqual(empty["chips"][0]["dram"]["peak_bytes"], dram)
        self.assertEqual(empty["chips"][0]["dram"]["banks"]["free_bytes"], free)
        self.assertEqual(closed["buffers"], [])

    def test_every_way_to_import_it_brings_the_agent(self):
        ways = ["import ttnn", "from ttnn import BufferType", "import importlib; importlib.import_module('ttnn._ttnn')"]
        expected = [str(PACKAGES / "ttmon/libttmon_agent.so")]
        for way in ways:
            self.assertEqual(run(f"{way}\nprint(json.dumps(agents()))"), expected, way)
        self.assertEqual(run("import ttnn\nprint(json.dumps(agents()))", "-I"), expected, "isolated")
        self.assertEqual(run("import ttnn\nprint(json.dumps(agents()))", "-E", "-s", "-B", "-O"), expected)

    def test_a_program_that_never_heard_of_ttmon_keeps_a_book(self):
        told = run(TENSOR + "a = tensor()\nprint(json.dumps([books(), len(agents())]))")
        self.assertEqual(told, [1, 1])

    def test_switched_off_nothing_is_loaded(self):
        program = TENSOR + "a = tensor()\nprint(json.dumps([books(), agents()]))"
        self.assertEqual(run(program, environment={"TTMON_AGENT": "Off"}), [0, []])
        self.assertEqual(run("import ttnn\nprint(json.dumps(agents()))", environment={"TTMON_AGENT": "0"}), [])
        told = run(
            TENSOR
            + """
import ttmon
with ttmon.label("x"):
    a = tensor()
try:
    ttmon.memory()
except ttmon.Error as error:
    print(json.dumps([books(), str(error)]))
""",
            environment={"TTMON_AGENT": "off"},
        )
        self.assertEqual(told, [0, "this process keeps no book: TTMON_AGENT switches the agent off"])

    def test_threads_have_labels_of_their_own(self):
        told = run(
            TENSOR
            + """
import threading, ttmon
kept = []

def work(name):
    with ttmon.label(name):
        for _ in range(50):
            kept.append(tensor(32))
            tensor(64)

threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(4)]
with ttmon.label("outside"):
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print(json.dumps([ttmon.memory(), allocator()]))
"""
        )
        memory, dram = told
        labels = [buffer["label"] for buffer in memory["buffers"]]
        self.assertEqual({label: labels.count(label) for label in labels}, {f"thread {n}": 50 for n in range(4)})
        self.assertEqual(memory["chips"][0]["dram"]["bytes"], dram)

    def test_a_forked_child_leaves_the_book_of_its_parent_alone_and_keeps_its_own(self):
        told = run(
            TENSOR
            + """
import ttmon
a = tensor()
before = ttmon.memory()
ours, theirs = os.pipe()
if os.fork() == 0:
    try:
        ttmon.memory()
    except ttmon.Error as error:
        with ttmon.label("child"):
            b = tensor()
        os.write(theirs, json.dumps([str(error), ttmon.memory(), os.getpid()]).encode())
    os._exit(0)
os.close(theirs)
os.wait()
child = json.loads(open(ours).read())
after = ttmon.memory()
print(json.dumps([child, before == after]))
""",
            "-Wignore::DeprecationWarning",
        )
        (error, memory, pid), unchanged = told
        self.assertIn("keeps no book", error)
        self.assertEqual([buffer["label"] for buffer in memory["buffers"]], ["child"])
        self.assertEqual(memory["pid"], pid)
        self.assertTrue(unchanged)

    def test_spawned_and_other_python_children_are_followed_too(self):
        told = run(
            """
import multiprocessing, subprocess
program = "import sys, ttnn; sys.exit(10 + any('libttmon_agent' in line for line in open('/proc/self/maps')))"
child = subprocess.run([sys.executable, "-c", program]).returncode
spawned = multiprocessing.get_context("spawn").Process(target=exec, args=(program,))
spawned.start()
spawned.join()
print(json.dumps([child, spawned.exitcode, agents()]))
"""
        )
        self.assertEqual(told, [11, 11, []])

    def test_one_agent_is_enough(self):
        copy = pathlib.Path(SCRATCH.name) / "libttmon_agent.so"
        copy.write_bytes((PACKAGES / "ttmon/libttmon_agent.so").read_bytes())
        told = run(
            TENSOR + "import ttmon\na = tensor()\nprint(json.dumps([agents(), ttmon.memory(), allocator()]))",
            environment={"LD_PRELOAD": str(copy)},
        )
        self.assertEqual(told[0], [str(copy)])
        self.assertEqual(told[1]["chips"][0]["dram"]["bytes"], told[2])

    def test_another_process_can_be_asked_about(self):
        told = run(
            TENSOR
            + """
import subprocess, ttmon
with ttmon.label("shared"):
    a = tensor()
program = f"import json, ttmon; print(json.dumps(ttmon.process({os.getpid()})))"
outside = json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
print(json.dumps([outside, ttmon.memory()]))
"""
        )
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0]["buffers"][0]["label"], "shared")


class TestWithoutTtnn(unittest.TestCase):
    def test_a_program_without_ttnn_has_no_agent_and_no_book(self):
        self.assertEqual(run("import json.tool, email\nprint(json.dumps([books(), agents()]))"), [0, []])
        self.assertEqual(run("import ttmon\nprint(json.dumps([books(), agents()]))"), [0, []])

    def test_without_site_nothing_happens(self):
        program = "print(json.dumps([agents(), any('ttmon' in name for name in sys.modules)]))"
        self.assertEqual(run(program, "-S"), [[], False])

    def test_the_start_of_python_imports_nothing_for_us(self):
        loaded = run("print(json.dumps([name for name in sys.modules if 'ttmon' in name or name == 'ctypes']))")
        self.assertEqual(loaded, ["_ttmon_hook"])

    def test_a_broken_installation_is_silent(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "ttmon.py").write_text("raise RuntimeError('not the one you want')")
            pathlib.Path(folder, "ttnn.py").write_text("x = 1")
            program = "import ttnn\nprint(json.dumps(ttnn.x))"
            self.assertEqual(run(program, environment={"PYTHONPATH": folder}), 1)

    def test_a_package_in_an_archive_is_found_as_ever(self):
        archive = pathlib.Path(SCRATCH.name) / "packages.zip"
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("ttrt/__init__.py", "x = 1")
        program = "import ttrt\nprint(json.dumps([ttrt.x, len(agents())]))"
        self.assertEqual(run(program, environment={"PYTHONPATH": str(archive)}), [1, 1])

    def test_no_warning_comes_of_it(self):
        self.assertEqual(run("import ttmon\nwith ttmon.label('x'): print(len(agents()))", "-W", "error", "-I"), 1)

    def test_errors_are_sentences(self):
        told = run(
            """
import ttmon

def why(query, *arguments):
    try:
        return query(*arguments)
    except ttmon.Error as error:
        return str(error)

print(json.dumps([why(ttmon.memory), why(ttmon.process, 2**31 - 1), why(ttmon.process, os.getpid()), why(ttmon.ops)]))
""",
        )
        no_book = "this process keeps no book: nothing was allocated on a device since the agent was loaded"
        self.assertEqual(told[:3], [no_book, "there is no process 2147483647", no_book])
        self.assertRegex(told[3], "^no operations of process [0-9]+ are recorded$")

    def test_the_version_is_the_wheels(self):
        ours = run("import ttmon\nprint(json.dumps(ttmon.__version__))")
        self.assertEqual(ours, importlib.metadata.version("ttmon"))

    def test_devices_of_a_machine_are_shown(self):
        binary = os.environ.get("TTMON_BINARY")
        if not binary:
            self.skipTest("needs ttmon itself: TTMON_BINARY")
        command = [binary, "sim", "n300x2"]
        simulated = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            root = simulated.stdout.readline().strip()
            told = run(
                """
import ttmon
try:
    ttmon.system(9)
except ttmon.Error as error:
    print(json.dumps([ttmon.system(), ttmon.system(0), ttmon.detailed(0), str(error)]))
""",
                environment={"TTMON_ROOT": root},
            )
        finally:
            simulated.terminate()
            simulated.communicate()
        system, one, detailed, error = told
        self.assertEqual(system["schema"], 1)
        self.assertGreater(len(system["devices"]), 1)
        self.assertEqual({device["id"].rstrip("R") for device in one["devices"]}, {"0"})
        self.assertEqual([d["id"] for d in detailed["devices"]], [d["id"] for d in one["devices"]])
        self.assertTrue(all("book" in process for process in detailed["processes"]))
        self.assertEqual(error, "there is no device 9")


def start_up_cost():
    """What the package adds to each start of Python, in the middle of many."""
    pth = PACKAGES / "ttmon.pth"
    aside = pth.with_suffix(".aside")

    def start():
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"])
        return time.perf_counter() - began

    with_it, without = [], []
    for _ in range(40):
        with_it.append(start())
        pth.rename(aside)
        try:
            without.append(start())
        finally:
            aside.rename(pth)
    middle = [sorted(times)[len(times) // 2] * 1000 for times in (with_it, without)]
    print("a start of Python: %.2f ms with ttmon.pth, %.2f ms without" % tuple(middle))
    inside = """
import contextlib, ctypes, functools, json, sys, time, typing  # as ttnn does
took = [time.perf_counter()]
del sys.modules["_ttmon_hook"], sys.meta_path[0]
import _ttmon_hook
took.append(time.perf_counter())
import ttmon._agent
took.append(time.perf_counter())
ttmon._agent.activate()
took.append(time.perf_counter())
hook, package, agent = [(after - before) * 1000 for before, after in zip(took, took[1:])]
print("the hook: %.2f ms; once ttnn is imported: the package %.2f ms, the agent %.2f ms" % (hook, package, agent))
"""
    subprocess.run([sys.executable, "-c", inside])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    start_up_cost()
    skipped = result.skipped and "CI" in os.environ
    sys.exit(bool(skipped or not result.wasSuccessful()))
