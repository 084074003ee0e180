"""Operations of ttnn on a mock cluster, counted by the program itself: ROWS COLUMNS LOOPS THREADS.

Prints its PID and what it did, as JSON, and waits for a line before it ends.
"""

import ctypes
import json
import os
import sys
import threading

# As the Python package does, where the agent is not preloaded.
if "AGENT" in os.environ:
    ctypes.CDLL(os.environ["AGENT"], mode=ctypes.RTLD_GLOBAL)

import ttnn

rows, columns, loops, threads = map(int, sys.argv[1:])
if rows * columns == 1:
    device = ttnn.open_device(device_id=0)
else:
    device = ttnn.open_mesh_device(ttnn.MeshShape(rows, columns))


def tensor():
    memory = ttnn.DRAM_MEMORY_CONFIG
    return ttnn.empty([1, 1, 128, 128], dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory)


a, b = tensor(), tensor()
OPERATIONS = {
    "BinaryNgDeviceOperation": lambda: ttnn.add(a, b),
    "MatmulDeviceOperation": lambda: ttnn.matmul(a, b),
    "SoftmaxDeviceOperation": lambda: ttnn.softmax(a, dim=-1),
    "LayerNormDeviceOperation": lambda: ttnn.layer_norm(a),
}
done = dict.fromkeys(OPERATIONS, 0)
# ttnn's own caches are not made for two threads at a time.
lock = threading.Lock()


def work():
    for step in range(loops):
        for every, (name, operation) in enumerate(OPERATIONS.items(), 1):
            if step % every == 0:
                with lock:
                    operation()
                    done[name] += 1


running = [threading.Thread(target=work) for _ in range(threads)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
ttnn.synchronize_device(device)
print(json.dumps({"pid": os.getpid(), "done": done}), flush=True)
sys.stdin.readline()
