"""A client of the proof of concept as its Python client is: structs of 112 bytes, buffer types 0 DRAM, 1 L1, 2 L1_SMALL, 3 TRACE.

Written from the description of the protocol alone. Reads commands, a line each, and answers each with a line.
"""

import os
import random
import socket
import struct
import sys
import time

HEADER = struct.Struct("<B3xiQB3xiQQ")
ANSWER = struct.Struct("<B3xiQB3xiQQ4Q2Q6I")
assert HEADER.size == 40 and ANSWER.size == 112
ALLOC, FREE, QUERY, RESPONSE, DUMP, INFO_QUERY, INFO_RESPONSE = range(1, 8)


class Client:
    def __init__(self, path):
        self.path = path
        self.pid = os.getpid()
        self.held = None
        self.connect()

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(self.path)

    def message(self, kind, device=0, size=0, buffer_type=0, buffer=0, now=0):
        return HEADER.pack(kind, device, size, buffer_type, self.pid, buffer, now).ljust(ANSWER.size, b"\0")

    def send(self, message):
        if self.held is None:
            self.socket.sendall(message)
        else:
            self.held += message

    def alloc(self, device, size, buffer_type, buffer):
        self.send(self.message(ALLOC, device, size, buffer_type, buffer, time.time_ns()))

    def free(self, device, buffer):
        # The original says device 0 whatever the device was.
        self.send(self.message(FREE, 0, buffer=buffer))

    def receive(self):
        answer = b""
        while len(answer) < ANSWER.size:
            part = self.socket.recv(ANSWER.size - len(answer))
            if not part:
                raise SystemExit("the server has closed the connection")
            answer += part
        return ANSWER.unpack(answer)

    def query(self, device):
        self.send(self.message(QUERY, device))
        answer = self.receive()
        assert answer[:2] == (RESPONSE, device), answer
        return answer[7:11]

    def info(self, device):
        self.send(self.message(INFO_QUERY, device))
        answer = self.receive()
        assert answer[:2] == (INFO_RESPONSE, device), answer
        return answer[11:]

    def at_random(self, seed, count, device):
        chance, live, totals = random.Random(seed), {}, [0, 0, 0, 0]
        for _ in range(count):
            if live and chance.random() < 0.45:
                buffer, (size, kind) = live.popitem()
                totals[kind] -= size
                self.free(device, buffer)
            else:
                buffer, size, kind = chance.randrange(1, 500) * 4096, chance.randrange(1 << 24), chance.randrange(4)
                if buffer in live:
                    continue
                live[buffer] = (size, kind)
                totals[kind] += size
                self.alloc(device, size, kind, buffer)
        return totals


def main():
    client = Client(sys.argv[1])
    print("READY", os.getpid(), flush=True)
    for line in sys.stdin:
        word, *numbers = line.split()
        numbers = [int(number) for number in numbers]
        answer = ()
        if word == "alloc":
            client.alloc(*numbers)
        elif word == "free":
            client.free(*numbers)
        elif word == "query":
            answer = client.query(*numbers)
        elif word == "info":
            answer = client.info(*numbers)
        elif word == "dump":
            client.send(client.message(DUMP))
        elif word == "pid":
            client.pid = numbers[0]
        elif word == "random":
            answer = client.at_random(*numbers)
        elif word == "reconnect":
            client.socket.close()
            client.connect()
        elif word == "hold":
            client.held = b""
        elif word == "flush":
            held, client.held = client.held, None
            for at in range(0, len(held), numbers[0]):
                client.socket.sendall(held[at : at + numbers[0]])
                time.sleep(numbers[1] / 1000)
        elif word == "fork":
            # The child reports one buffer through the connection of its parent, and under its name.
            parent = os.getpid()
            child = os.fork()
            if child == 0:
                client.alloc(*numbers)
                while os.getppid() == parent:
                    time.sleep(0.02)
                os._exit(0)
            answer = (child,)
        elif word == "raw":
            client.socket.sendall(bytes(numbers))
        else:
            raise SystemExit(f"unknown: {line}")
        print("OK", *answer, flush=True)


main()
