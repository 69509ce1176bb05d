package tree

import (
	"strings"
	"unicode/utf8"
)

// The nodes that every tree has.
const (
	rootPath   = "/"
	zkPath     = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

func isReserved(path string) bool {
	return path == rootPath || path == zkPath || path == quotaPath || path == configPath
}

// ValidPath is PathUtils.validatePath of ZooKeeper: absolute, no empty, "." or ".."
// part, no slash at the end, no control character, surrogate, private use or special.
func ValidPath(path string) bool {
	switch {
	case path == "" || path[0] != '/':
		return false
	case path == rootPath:
		return true
	}
	for rest := path[1:]; ; {
		name, after, more := strings.Cut(rest, "/")
		if name == "" || name == "." || name == ".." {
			return false
		}
		if !more {
			break
		}
		rest = after
	}
	for _, c := range path {
		if !validRune(c) {
			return false
		}
	}
	return true
}

// validRune is ZooKeeper's rule for one UTF-16 unit. What is no UTF-8 becomes
// RuneError, which is among those refused; so is what UTF-16 needs surrogates for.
func validRune(c rune) bool {
	switch {
	case c <= 0x1f, c >= 0x7f && c <= 0x9f, c >= 0xd800 && c <= 0xf8ff, c >= 0xfff0, c == utf8.RuneError:
		return false
	}
	return true
}

// splitParent cuts a path before its last slash; ok is false if there is none, or a NUL.
func splitParent(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// find returns the node at path. The root answers to the empty path too.
func (t *Tree) find(path string) nodeID {
	if path == "" || path == rootPath {
		return rootID
	}
	if path[0] != '/' {
		return 0
	}
	id := rootID
	for rest, more := path[1:], true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if id = t.nodes.child(id, name); id == 0 {
			return 0
		}
	}
	return id
}

// path writes out where a node is.
func (t *Tree) path(id nodeID) string {
	if id == rootID {
		return rootPath
	}
	size := 0
	for at := id; at != rootID; at = t.nodes.at(at).parent {
		size += 1 + len(t.nodes.at(at).name())
	}
	b := make([]byte, size)
	for at := id; at != rootID; at = t.nodes.at(at).parent {
		name := t.nodes.at(at).name()
		size -= len(name)
		copy(b[size:], name)
		size--
		b[size] = '/'
	}
	return string(b)
}
