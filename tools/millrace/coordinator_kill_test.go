package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	gozk "github.com/go-zookeeper/zk"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/zkclient"
)

// TestMain lets the test's own binary be millrace, for tests that need a process to kill.
func TestMain(m *testing.M) {
	if os.Getenv("MILLRACE_TEST_IS_MILLRACE") != "" {
		main()
	}
	os.Exit(m.Run())
}

// victim is a coordinator process that is killed and started again.
type victim struct {
	t    *testing.T
	addr string
	dir  string
	cmd  *exec.Cmd
}

// newVictim starts one on a port that was free.
func newVictim(t *testing.T) *victim {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{t: t, addr: l.Addr().String(), dir: t.TempDir()}
	l.Close()
	v.start()
	return v
}

func (v *victim) start() {
	v.t.Helper()
	v.cmd = exec.Command(os.Args[0], "coordinator", "--override", "clientPortAddress=127.0.0.1", "--override", "clientPort="+v.addr[strings.LastIndex(v.addr, ":")+1:],
		"--override", "dataDir="+v.dir, "--override", "tickTime=200", "--override", "maxSessionTimeout=60000", "--override", "snapCount=300", "--log-level", "error")
	v.cmd.Env = append(os.Environ(), "MILLRACE_TEST_IS_MILLRACE=1")
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	v.cmd.Stderr = os.Stderr
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready ") {
		v.t.Fatalf("no ready line: %q, %v", line, err)
	}
}

func (v *victim) kill() {
	v.cmd.Process.Kill()
	v.cmd.Wait()
}

func (v *victim) dial(timeout time.Duration) *zkclient.Client {
	v.t.Helper()
	c, err := zkclient.Dial(context.Background(), v.addr, timeout)
	if err != nil {
		v.t.Fatal(err)
	}
	return c
}

// register is one node's data: every write has a number of its own. input is nil for a read.
var register = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		if w, ok := input.(int); ok {
			return true, w
		}
		return output == state, state
	},
}

// history is what clients of one round did to the round's register, and their multis.
type history struct {
	sync.Mutex
	ops   []porcupine.Operation
	acked []string // multis
	began time.Time
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// work is one client's life: it ends with its connection.
func (h *history) work(c *zkclient.Client, id int, round string, rng *rand.Rand) {
	for n := 1; ; n++ {
		call := h.now()
		op := porcupine.Operation{ClientId: id, Call: call}
		switch rng.IntN(3) {
		case 0: // a write of which we may never hear
			value := id*1_000_000 + n
			op.Input = value
			_, err := c.Do(proto.Request{Op: proto.OpSetData, Path: "/reg-" + round, Data: []byte(strconv.Itoa(value)), Version: -1})
			if op.Return = h.now(); err != nil {
				op.Return = math.MaxInt64
			}
			h.Lock()
			h.ops = append(h.ops, op)
			h.Unlock()
			if err != nil {
				return
			}
		case 1:
			value, err := readRegister(c, round)
			if err != nil {
				return
			}
			op.Return, op.Output = h.now(), value
			h.Lock()
			h.ops = append(h.ops, op)
			h.Unlock()
		default:
			name := fmt.Sprintf("%s-%d-%d", round, id, n)
			ops := []proto.Request{{Op: proto.OpSetData, Path: "/last", Data: []byte(name), Version: -1}}
			for _, parent := range []string{"/x/", "/y/", "/z/"} {
				ops = append(ops, proto.Request{Op: proto.OpCreate, Path: parent + name, Data: []byte(name), ACL: proto.OpenACL})
			}
			if _, err := c.Do(proto.Request{Op: proto.OpMulti, Ops: ops}); err != nil {
				return
			}
			h.Lock()
			h.acked = append(h.acked, name)
			h.Unlock()
		}
	}
}

func readRegister(c *zkclient.Client, round string) (int, error) {
	answers, err := c.All([]proto.Request{{Op: proto.OpSync, Path: "/reg-" + round}, {Op: proto.OpGetData, Path: "/reg-" + round}})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(answers[1].Data))
}

func mustDo(t *testing.T, c *zkclient.Client, q proto.Request) proto.Result {
	t.Helper()
	if q.ACL == nil {
		q.ACL = proto.OpenACL
	}
	res, err := c.Do(q)
	if err != nil {
		t.Fatal(q.Op, q.Path, err)
	}
	return res
}

// Claim (C2): whenever the process is killed, in the middle of multis too, every
// acknowledged write is there after the restart, multis are whole, reads and writes are
// linearizable over it, nodes of sessions whose clients are gone go, and a session whose
// client comes back in time goes on.
// Method: clients write as fast as they can until SIGKILL; what they were told is compared
// with what is there. MILLRACE_ROUNDS and MILLRACE_SEED choose how often and how.
func TestCoordinatorKilled(t *testing.T) {
	rounds, seed := 8, rand.Uint64()
	if testing.Short() {
		rounds = 2
	}
	if s := os.Getenv("MILLRACE_ROUNDS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("MILLRACE_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	v := newVictim(t)
	defer func() { v.kill() }()
	c := v.dial(time.Minute)
	for _, path := range []string{"/x", "/y", "/z", "/last"} {
		mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: path, Data: []byte{}})
	}
	live, _, err := gozk.Connect([]string{v.addr}, time.Minute, gozk.WithLogInfo(false), gozk.WithLogger(nobody{}))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if _, err := live.Create("/live", nil, gozk.FlagEphemeral, gozk.WorldACL(gozk.PermAll)); err != nil {
		t.Fatal(err)
	}
	session := live.SessionID()
	var acked []string
	for round := range rounds {
		acked = append(acked, v.round(strconv.Itoa(round), rng)...)
		c := v.dial(time.Minute)
		v.whole(c, acked)
		stat := mustDo(t, c, proto.Request{Op: proto.OpExists, Path: "/live"}).Stat
		if _, _, err := live.Get("/live"); err != nil || live.SessionID() != session || stat.EphemeralOwner != session {
			t.Fatalf("the live session is not resumed: %v, 0x%x, was 0x%x", err, live.SessionID(), session)
		}
		c.Close()
	}
	t.Logf("%d kills, %d multis acknowledged", rounds, len(acked))
}

type nobody struct{}

func (nobody) Printf(string, ...any) {}

// round is clients at work, a kill, a restart, and the look at the register and at the
// nodes of the sessions that were left.
func (v *victim) round(round string, rng *rand.Rand) (acked []string) {
	t := v.t
	c := v.dial(time.Minute)
	mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: "/reg-" + round, Data: []byte("0")})
	mustDo(t, v.dial(time.Second), proto.Request{Op: proto.OpCreate, Path: "/dead-" + round, Data: []byte{}, Mode: proto.Ephemeral})
	h := &history{began: time.Now()}
	var busy sync.WaitGroup
	for id := range 4 {
		one, own := v.dial(time.Minute), rand.New(rand.NewPCG(rng.Uint64(), 0))
		busy.Go(func() { h.work(one, id+1, round, own) })
	}
	time.Sleep(time.Duration(50+rng.IntN(300)) * time.Millisecond) // when, not whether: nothing waits for it
	v.kill()
	busy.Wait()
	v.start()
	c = v.dial(time.Minute)
	defer c.Close()
	call := h.now()
	value, err := readRegister(c, round)
	if err != nil {
		t.Fatal(err)
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: 0, Call: call, Output: value, Return: h.now()})
	if res := porcupine.CheckOperationsTimeout(register, h.ops, time.Minute); res != porcupine.Ok {
		t.Fatalf("round %s: a history of %d operations is not linearizable: %v", round, len(h.ops), res)
	}
	for gone := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := c.Do(proto.Request{Op: proto.OpExists, Path: "/dead-" + round})
		if err == proto.ErrNoNode {
			return h.acked
		}
		if err != nil || time.Now().After(gone) {
			t.Fatalf("the node of a dead session is still there: %v", err)
		}
	}
}

// whole compares the traces of all multis with what was acknowledged.
func (v *victim) whole(c *zkclient.Client, acked []string) {
	v.t.Helper()
	var sets [3][]string
	for i, path := range []string{"/x", "/y", "/z"} {
		sets[i] = mustDo(v.t, c, proto.Request{Op: proto.OpGetChildren, Path: path}).Children
		slices.Sort(sets[i])
		if !slices.Equal(sets[i], sets[0]) {
			v.t.Fatalf("a multi is not whole: %d nodes below %s, %d below /x", len(sets[i]), path, len(sets[0]))
		}
	}
	there := map[string]bool{}
	for _, name := range sets[0] {
		there[name] = true
	}
	for _, name := range acked {
		if !there[name] {
			v.t.Fatalf("the acknowledged multi %s is lost", name)
		}
	}
	if last := string(mustDo(v.t, c, proto.Request{Op: proto.OpGetData, Path: "/last"}).Data); last != "" && !there[last] {
		v.t.Fatalf("a multi is not whole: %s set /last and made nothing", last)
	}
}

// Claim: a process that was stopped for longer than every time-out expires nobody for it,
// neither who asked meanwhile nor who could only ask afterwards.
// Method: SIGSTOP for three time-outs of sessions that then go on.
func TestCoordinatorStopped(t *testing.T) {
	v := newVictim(t)
	defer func() { v.kill() }()
	const timeout = 2 * time.Second
	clients := []*zkclient.Client{v.dial(timeout), v.dial(timeout)}
	for i, c := range clients {
		mustDo(t, c, proto.Request{Op: proto.OpCreate, Path: fmt.Sprintf("/e%d", i), Data: []byte{}, Mode: proto.Ephemeral})
	}
	v.cmd.Process.Signal(syscall.SIGSTOP)
	asked := make(chan error, 1)
	go func() { // ends with the answer
		_, err := clients[0].Do(proto.Request{Op: proto.OpPing})
		asked <- err
	}()
	time.Sleep(3 * timeout) // the stop itself
	v.cmd.Process.Signal(syscall.SIGCONT)
	if _, err := clients[1].Do(proto.Request{Op: proto.OpPing}); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	for i, c := range clients {
		if s := mustDo(t, c, proto.Request{Op: proto.OpExists, Path: fmt.Sprintf("/e%d", i)}); s.Stat.EphemeralOwner != c.Session {
			t.Errorf("session %d: %+v", i, s.Stat)
		}
	}
}
