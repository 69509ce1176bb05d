package broker

import (
	"testing"
	"testing/synctest"
	"time"
)

// Claim: whoever does not fit waits until others give back, in order; small
// requests are served while large ones wait.
// Method: fill the large share, queue two large ones, take a small one.
func TestBudgetQueuesLargeAndServesSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		stop := make(chan struct{})
		if !b.reserve(75, false, stop) {
			t.Fatal("the first reservation waited")
		}
		order := make(chan int, 2)
		for i := range 2 {
			go func() {
				b.reserve(50, false, stop)
				order <- i
			}()
			synctest.Wait()
		}
		if !b.reserve(20, true, stop) {
			t.Fatal("a small reservation was refused while large ones wait")
		}
		b.release(75)
		synctest.Wait()
		if first := <-order; first != 0 {
			t.Error("the second large reservation overtook the first")
		}
		select {
		case <-order:
			t.Error("the budget gave out more than it has")
		default:
		}
		b.release(50)
		<-order
		b.release(50)
		b.release(20)
		if used := b.used.Load(); used != 0 {
			t.Errorf("%d bytes used at the end, want 0", used)
		}
	})
}

// Claim: when everybody holds some and waits for more, one at a time goes over
// the budget, so nothing stands still; the bound is the limit plus one.
// Method: two holders of half each wait for more than there ever is.
func TestBudgetCannotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		stop := make(chan struct{})
		b.reserve(50, true, stop)
		b.reserve(50, true, stop)
		done := make(chan struct{})
		for range 2 {
			go func() {
				b.reserve(60, true, stop) // grows …
				b.release(50)             // … then gives the smaller stage back
				time.Sleep(time.Second)
				b.release(60)
				done <- struct{}{}
			}()
		}
		begun := time.Now()
		<-done
		<-done
		if took := time.Since(begun); took > 10*budgetPatience {
			t.Errorf("took %v", took)
		}
		if used := b.used.Load(); used != 0 || b.waiting.Load() != 0 {
			t.Errorf("used %d, waiting %d at the end, want 0", used, b.waiting.Load())
		}
	})
}

// Claim: a stop ends all waits and leaves nothing reserved.
// Method: three wait, stop closes.
func TestBudgetWaitsEndWithStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		stop := make(chan struct{})
		b.reserve(100, true, stop)
		results := make(chan bool, 3)
		for i := range 3 {
			go func() { results <- b.reserve(10, i == 0, stop) }()
		}
		synctest.Wait()
		close(stop)
		for range 3 {
			if <-results {
				t.Error("a reservation was granted out of nothing")
			}
		}
		b.release(100)
		if used := b.used.Load(); used != 0 || b.waiting.Load() != 0 {
			t.Errorf("used %d, waiting %d at the end, want 0", used, b.waiting.Load())
		}
	})
}
