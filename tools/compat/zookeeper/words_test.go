package zookeeper

import (
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"millrace/coord/zk"
	"millrace/coord/zk/server"
	"millrace/tools/compat/harness"
)

// say sends a four-letter word.
func say(t *testing.T, addr, word string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, word)
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(word, err)
	}
	return string(b)
}

// Claim: the names in the words that monitoring reads are ZooKeeper's.
// Method: the names in each word's lines on both servers, with a client connected. mntr's
// may be fewer here, since most of ZooKeeper's are of its own inside.
func TestWordsHaveZooKeepersNames(t *testing.T) {
	if os.Getenv("MILLRACE_ZOOKEEPER") == "" {
		t.Skip("opt-in: set MILLRACE_ZOOKEEPER=1; it runs a real ZooKeeper (java)")
	}
	real, err := Start("../../../.cache", t.TempDir())
	var skip harness.Skip
	if errors.As(err, &skip) {
		t.Skip(skip)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer real.Stop()
	ours, err := zk.Start(zk.Options{Dir: t.TempDir(), Address: "127.0.0.1:0", Config: server.Config{Words: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	addrs := []string{real.Addr, ours.Addr().String()}
	for _, addr := range addrs {
		c, err := Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for word, names := range map[string]string{
		"srvr": `(?m)^([A-Z][\w /]*):`, "stat": `(?m)^([A-Z][\w /]*):|(queued|recved|sent)=`, "cons": `[(,](\w+)=`, "conf": `(?m)^(\w+)=`, "dirs": `(?m)^(\w+):`,
		"mntr": `(?m)^(\w+)\t`, "envi": `(?m)^(zookeeper\.version|host\.name|java\.version|os\.name|os\.arch|user\.dir)=`,
	} {
		var got [2][]string
		for i, addr := range addrs {
			for _, m := range regexp.MustCompile(names).FindAllString(say(t, addr, word), -1) {
				if !slices.Contains(got[i], m) {
					got[i] = append(got[i], m)
				}
			}
			slices.Sort(got[i])
		}
		for _, name := range got[1] {
			if !slices.Contains(got[0], name) && name != "zk_last_processed_zxid\t" && name != "clientPortAddress=" {
				t.Errorf("%s: %q is not a name of ZooKeeper's", word, name)
			}
		}
		for _, name := range got[0] {
			if !slices.Contains(got[1], name) && word != "mntr" && name != "clientPortListenBacklog=" {
				t.Errorf("%s: %q is missing here", word, name)
			}
		}
		if len(got[1]) == 0 {
			t.Errorf("%s: no names", word)
		}
	}
}
