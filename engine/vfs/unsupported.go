//go:build !linux || !(amd64 || arm64)

package vfs

// The compiler's complaint about the next line is the message: the engine's
// promises rest on Linux calls (pwritev, O_DIRECT|O_DSYNC, syncfs, sendfile with
// an offset) whose meaning elsewhere differs or is unknown, so there is no build
// that would only seem to keep them.
var _ = millrace_supports_only_linux_on_amd64_and_arm64
