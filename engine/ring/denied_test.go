package ring

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"millrace/engine/ring/ringtest"
)

// childEnv makes the test binary the child of TestADeniedRingSaysWhy: its value is the error number that the filter answers with.
const childEnv = "MILLRACE_RING_DENIED"

// Claim: where a seccomp filter forbids io_uring_setup, or hides it, NewRing says so.
// Method: a child with such a filter, as container runtimes set it.
func TestADeniedRingSaysWhy(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childEnv, errno))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", errno, err, out)
		}
	}
}

func child() int {
	var errno unix.Errno
	if _, err := fmt.Sscan(os.Getenv(childEnv), (*uintptr)(unsafe.Pointer(&errno))); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := ringtest.Deny(errno); err != nil {
		fmt.Println("no filter could be set:", err)
		return 1
	}
	_, err := NewRing()
	var refused *SetupError
	if !errors.As(err, &refused) || !errors.Is(err, errno) {
		fmt.Printf("NewRing says %v, want a SetupError of %v\n", err, errno)
		return 1
	}
	return 0
}
