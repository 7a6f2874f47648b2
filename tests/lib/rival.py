"""
rival.py - programs that share the gateways' locks, for tests: kazoo's Lock, and the lock recipe in C that comes with
ZooKeeper (zoo_lock.c, which Debian does not package), written again: same names, same order.

    rival.py kazoo|c|members HOSTS

Reads "acquire PATH" and "release PATH" on standard input; answers "held PATH", "released PATH" or "error TEXT". kazoo's Lock
objects are kept, as a program would, until "forget PATH". With `members` it plays gateways instead: it reads "burst +NAME -NAME ...", makes and
deletes their nodes without waiting in between, and answers "done".
"""

import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError


class RecipeInC:
    """Sorts the children by what follows the last '-', and crashes on a name without one."""

    def __init__(self, client, path):
        self.client = client
        self.path = path
        self.node = None

    def acquire(self):
        try:
            self.client.create(self.path)
        except NodeExistsError:
            pass
        prefix = "%s/x-%016x-" % (self.path, self.client.client_id[0])
        self.node = self.client.create(prefix, ephemeral=True, sequence=True).rsplit("/", 1)[1]
        while True:
            children = sorted(self.client.get_children(self.path), key=lambda name: name[name.rindex("-") + 1 :])
            place = children.index(self.node)
            if place == 0:
                return
            gone = threading.Event()
            if self.client.exists(self.path + "/" + children[place - 1], watch=lambda event: gone.set()):
                gone.wait()

    def release(self):
        self.client.delete(self.path + "/" + self.node)


def burst(client, changes):
    replies = []
    for change in changes:
        path = "/pg_sheet/members/" + change[1:]
        if change[0] == "+":
            replies.append(client.create_async(path, b"1 of-a-test serving", ephemeral=True))
        else:
            replies.append(client.delete_async(path))
    for reply in replies:
        reply.get()
    print("done", flush=True)


def main():
    kind, hosts = sys.argv[1:]
    client = KazooClient(hosts, timeout=15)
    client.start()
    locks = {}
    for line in sys.stdin:
        if kind == "members":
            burst(client, line.split()[1:])
            continue
        verb, path = line.split()
        if verb == "forget":
            del locks[path]
            continue
        if path not in locks:
            locks[path] = client.Lock(path, "a rival") if kind == "kazoo" else RecipeInC(client, path)
        try:
            if verb == "acquire":
                locks[path].acquire()
                print("held", path, flush=True)
            else:
                locks[path].release()
                print("released", path, flush=True)
        except (NoNodeError, ValueError) as error:
            print("error", repr(error), flush=True)
    client.stop()


main()
