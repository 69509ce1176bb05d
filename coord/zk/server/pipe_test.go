package server

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// Claim: bytes come as they were sent, in order, whatever the sizes of reads and writes; both directions at once; the end comes behind the last.
func TestPipeCarriesEverything(t *testing.T) {
	a, b := newPipe()
	const total = 1 << 20
	var running sync.WaitGroup
	for i, end := range []net.Conn{a, b} {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		running.Go(func() { // ends when all is written
			p := make([]byte, 3*pipeBytes)
			for at := 0; at < total; {
				n := min(rng.IntN(len(p))>>rng.IntN(18)+1, total-at)
				for k := range n {
					p[k] = byte((at + k) * 7)
				}
				if _, err := end.Write(p[:n]); err != nil {
					t.Error(err)
				}
				at += n
			}
		})
		other := []net.Conn{b, a}[i]
		running.Go(func() { // ends when all is read
			p := make([]byte, pipeBytes)
			for at := 0; at < total; {
				n, err := other.Read(p[:1+at%1000])
				if err != nil {
					t.Error(err)
					return
				}
				for k := range n {
					if p[k] != byte((at+k)*7) {
						t.Errorf("byte %d is %d", at+k, p[k])
						return
					}
				}
				at += n
			}
		})
	}
	running.Wait()
	a.Close()
	if n, err := b.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v behind the end", n, err)
	}
}

// Claim: deadlines do what net.Conn says: one that is over fails at once, one that comes frees who waits, one that is taken back frees nobody, and
// closing frees everybody.
func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe()
		one := make([]byte, 1)
		a.SetReadDeadline(time.Now().Add(-time.Second))
		if _, err := a.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read after the deadline: %v", err)
		}
		for _, d := range []time.Duration{time.Second, time.Minute, time.Millisecond} { // the timer is used again
			begun := time.Now()
			a.SetReadDeadline(begun.Add(d))
			if _, err := a.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != d {
				t.Errorf("read until %v: %v after %v", d, err, time.Since(begun))
			}
		}
		got := make(chan error, 1)
		read := func() { // ends with the read
			_, err := a.Read(one)
			got <- err
		}
		a.SetReadDeadline(time.Now().Add(time.Second))
		go read()
		synctest.Wait()
		a.SetReadDeadline(time.Time{})
		time.Sleep(time.Hour)
		if len(got) > 0 {
			t.Error("a deadline that was taken back ended a read")
		}
		a.SetReadDeadline(time.Now().Add(time.Second)) // while it waits
		if err := <-got; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		a.SetDeadline(time.Time{})
		go read()
		synctest.Wait()
		a.Close()
		if err := <-got; err == nil {
			t.Error("read from what was closed")
		}
		if _, err := b.Write(make([]byte, 2*pipeBytes)); err == nil {
			t.Error("written to nobody")
		}
		if n, err := b.Read(one); n != 0 || err != io.EOF {
			t.Errorf("%d, %v behind the end", n, err)
		}
	})
}

// Claim: what was written before the writer went can be read; a writer whose reader does not read is held up at the bound, and its deadline frees it.
func TestPipeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe()
		sent := make([]byte, pipeBytes+5)
		for i := range sent {
			sent[i] = byte(i)
		}
		a.SetWriteDeadline(time.Now().Add(time.Hour))
		begun := time.Now()
		n, err := a.Write(sent)
		if n != pipeBytes || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Hour {
			t.Errorf("%d written after %v: %v", n, time.Since(begun), err)
		}
		a.Close()
		if err := iotest.TestReader(io.MultiReader(b), sent[:pipeBytes]); err != nil {
			t.Error(err)
		}
		if _, err := b.Write([]byte{1}); err == nil {
			t.Error("written to nobody")
		}
		b.Close()
	})
}
