"""Points kazoo's own tests at a running server: pytest -p kazoo_external, with ZK_TARGET=host:port.

The tests ask kazoo.testing for a cluster that they may stop. This one has a single server, a port of its own that passes
every byte to the target: stopping it cuts the connections and refuses new ones, the target itself goes on.
"""
import os
import socket
import threading

import pytest

from kazoo.testing import harness


class Server:
    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self.target = (host, int(port))
        self.lock = threading.Lock()
        self.open = set()
        self.listener = None
        self.port = 0
        self.run()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    @property
    def running(self):
        return self.listener is not None

    def run(self):
        if self.listener:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def stop(self):
        listener, self.listener = self.listener, None
        if listener:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self.lock:
            for s in self.open:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.open.clear()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self.target)
            except OSError:
                return
            with self.lock:
                self.open.update((near, far))
            for a, b in ((near, far), (far, near)):
                a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    def _pump(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)  # four-letter words half-close before they read the answer
            return
        except OSError:
            pass
        for s in (source, sink):
            with self.lock:
                self.open.discard(s)
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Cluster(list):
    def start(self):
        for s in self:
            s.run()

    def stop(self):
        for s in self:
            s.stop()

    terminate = stop


cluster = Cluster()


def get_global_cluster():
    if not cluster:
        cluster.append(Server(os.environ["ZK_TARGET"]))
    return cluster


harness.get_global_cluster = get_global_cluster


@pytest.fixture(autouse=True)
def up():
    """A test that stops the server and fails must not take the next one with it."""
    get_global_cluster().start()
    yield
