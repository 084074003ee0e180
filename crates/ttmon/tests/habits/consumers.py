"""How programs read tt-smi, in our own words. Each function is one way that was seen in use; it prints what it finds."""

import collections
import contextlib
import io
import json
import re
import subprocess
import sys


def call(*options):
    return subprocess.run(["tt-smi", *options], capture_output=True, text=True, timeout=60)


def devices():
    """The usual idiom: a snapshot without a terminal, thrown away unless it succeeds."""
    done = call("-s", "--snapshot_no_tty")
    if done.returncode != 0:
        raise SystemExit(f"tt-smi failed with {done.returncode}: {done.stderr}")
    begin, end = done.stdout.find("{"), done.stdout.rfind("}")
    return json.loads(done.stdout[begin : end + 1])["device_info"]


def hottest():
    """A test bench that waits until all boards are cool."""
    temperatures = [float(str(device["telemetry"]["asic_temperature"]).strip()) for device in devices()]
    print(max(temperatures))


def power_trace():
    """A sampler for energy: every figure is a number in a text."""
    for device in devices():
        telemetry = device["telemetry"]
        row = [float(telemetry[key]) for key in ("power", "voltage", "current")] + [int(telemetry["aiclk"])]
        print(all(value > 0 for value in row))


def clock():
    """A benchmark that notes the clock from the raw word, which is hexadecimal."""
    print([int(str(device["smbus_telem"]["AICLK"]), 16) & 0xFFFF for device in devices()])


def usable():
    """A scheduler that hands out devices whose DRAM works, and that are below their limit."""
    good = []
    for index, device in enumerate(devices()):
        limits = device["limits"]
        limit = float(limits["thm_limit"]) or float(limits["therm_trip_l1_limit"])
        if device["board_info"]["dram_status"] is True and float(device["telemetry"]["asic_temperature"]) < limit:
            good.append(index)
    print(good)


def inventory():
    """A server that chooses a model by the boards that it finds: two chips of an n300 are one board."""
    kinds = collections.Counter()
    for device in devices():
        kind = device["board_info"]["board_type"]
        if not kind.endswith(" R"):
            kinds[kind.removesuffix(" L")] += 1
    print(dict(kinds))


def links():
    """A check of the slots: the generation is a number, the width a text with a number."""
    print([(device["board_info"]["pcie_speed"] >= 1, int(device["board_info"]["pcie_width"])) for device in devices()])


def health_check():
    """A script that trusts the exit code and then looks for the list."""
    done = call("--snapshot_no_tty", "--snapshot")
    print(done.returncode, "device_info" in done.stdout)


def generation():
    """A test suite that asks the list for the name of the generation."""
    done = subprocess.run(["tt-smi", "-ls"], capture_output=True, text=True, check=True)
    print([name for name in ("Blackhole", "Wormhole") if name in done.stdout])


def system():
    """A worker that counts the left chips of n300 boards in the list."""
    left = re.findall(r"\bn300\s+l\b", call("-ls").stdout.lower())
    print(len(left))


def boards():
    """A bring-up tool that reads the chip numbers of both tables: all chips, and those that can be reset."""
    everything, resettable, target = [], [], None
    for line in call("-ls", "--local").stdout.splitlines():
        if "All available boards" in line:
            target = everything
        elif "Boards that can be reset" in line:
            target = resettable
        cells = [cell.strip() for cell in line.split("│") if cell.strip()]
        if line.startswith("│") and target is not None and cells[0].isdigit():
            target.append((int(cells[0]), cells[1], cells[4], len(cells[5])))
    print(everything, resettable)


def report():
    """A bug report: the snapshot in a file, in a folder that is not there yet."""
    path = sys.argv[1] + "/new/folder/report.json"
    done = call("-f", path)
    with open(path) as file:
        content = json.load(file)
    print(done.returncode, "Saved tt-smi log to: " in done.stdout, sorted(content))


def standard_output():
    print(sorted(json.loads(call("-f", "-").stdout)))


def version():
    """An installer that compares versions."""
    print(tuple(int(part) for part in call("--version").stdout.split("+")[0].split(".")) >= (3, 0, 0))


def heartbeat():
    """A watchdog that reads the heartbeat's word of a Blackhole, with an option for resets that does no harm."""
    first = json.loads(call("-s", "--snapshot_no_tty", "--no_reinit").stdout)["device_info"][0]
    print(int(first["smbus_telem"]["TIMER_HEARTBEAT"], 16) > 0)


found = {}
for name in sys.argv[2:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        globals()[name]()
    found[name] = out.getvalue().rstrip()
print(json.dumps(found))
