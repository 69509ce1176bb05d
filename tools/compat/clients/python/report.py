"""What the Python programs share: how the checks ask for an act, and the JSON lines they get back (see go/report)."""
import base64
import hashlib
import json
import signal
import sys

stopped = False


def line(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def step(name, error=None, detail=""):
    line(step=name, ok=error is None, detail=str(detail) if error is None else "%s: %s" % (type(error).__name__, error))


def must(name, error=None, detail=""):
    step(name, error, detail)
    if error is not None:
        sys.exit(1)


def want(name, got, wanted):
    must(name, None if got == wanted else ValueError("got %r, want %r" % (got, wanted)), got)


def show(b):
    if b is None:
        return None
    if len(b) > 64:
        return "sha256:%s:%d" % (hashlib.sha256(b).hexdigest(), len(b))
    return base64.b64encode(b).decode()


def got(topic, partition, offset, key, value, headers, ms):
    line(step="got", ok=True, topic=topic, p=partition, o=offset, k=show(key), v=show(value), h=[[k, show(v)] for k, v in headers or []], t=ms)


def unpack(b):
    return None if b is None else base64.b64decode(b)


def records(path):
    """The records of a produce act's file: key, value, headers, milliseconds."""
    with open(path) as lines:
        for text in lines:
            r = json.loads(text)
            yield unpack(r["k"]), unpack(r["v"]), [(h["k"], unpack(h["v"])) for h in r["h"] or []], r["t"]


def stop(*_):
    global stopped
    stopped = True


def running():
    return not stopped


def main(version, acts):
    signal.signal(signal.SIGTERM, stop)
    act, bootstrap, text = sys.argv[1:4]
    step("version", detail=version)
    try:
        acts[act](bootstrap, json.loads(text))
    except Exception as e:
        must("end", e)
    must("end")
