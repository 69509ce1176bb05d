package tree

import (
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strings"

	"millrace/coord/zk/proto"
)

// aclID is an access list's place in the table.
type aclID uint32

// openACL is world:anyone:all, which nearly all nodes have; it is never released.
const openACL aclID = 0

// aclTable keeps every access list that is in use once. Lists never change.
type aclTable struct {
	lists [][]proto.ACL // nil: free
	refs  []int32
	ids   map[string]aclID
	free  []aclID
}

func newACLTable() aclTable {
	t := aclTable{ids: map[string]aclID{}}
	t.take(proto.OpenACL)
	return t
}

// aclKey writes a list so that equal lists are equal strings.
func aclKey(list []proto.ACL) string {
	var b strings.Builder
	for _, a := range list {
		b.WriteByte(byte(a.Perms >> 24))
		b.WriteByte(byte(a.Perms >> 16))
		b.WriteByte(byte(a.Perms >> 8))
		b.WriteByte(byte(a.Perms))
		for _, s := range []string{a.ID.Scheme, a.ID.ID} {
			n := len(s)
			b.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
			b.WriteString(s)
		}
	}
	return b.String()
}

// take returns the list's id and counts one more user.
func (t *aclTable) take(list []proto.ACL) aclID {
	if len(t.lists) > 0 && slices.Equal(list, t.lists[openACL]) { // most are; it is never dropped
		t.refs[openACL]++
		return openACL
	}
	key := aclKey(list)
	if id, ok := t.ids[key]; ok {
		t.refs[id]++
		return id
	}
	var id aclID
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
	} else {
		id = aclID(len(t.lists))
		t.lists, t.refs = append(t.lists, nil), append(t.refs, 0)
	}
	t.lists[id], t.refs[id], t.ids[key] = slices.Clone(list), 1, id
	return id
}

func (t *aclTable) drop(id aclID) {
	if t.refs[id]--; t.refs[id] > 0 || id == openACL {
		return
	}
	delete(t.ids, aclKey(t.lists[id]))
	t.lists[id] = nil
	t.free = append(t.free, id)
}

// Allows reports whether somebody with the identities who has one of perms on a node
// with the list. Nothing guards an empty list.
func Allows(list []proto.ACL, perms int32, who []proto.ID) bool {
	if len(list) == 0 || slices.ContainsFunc(who, func(id proto.ID) bool { return id.Scheme == "super" }) {
		return true
	}
	for _, a := range list {
		if a.Perms&perms == 0 {
			continue
		}
		if isAnyone(a.ID) {
			return true
		}
		for _, id := range who {
			if id.Scheme == a.ID.Scheme && matches(id, a.ID.ID) {
				return true
			}
		}
	}
	return false
}

func isAnyone(id proto.ID) bool { return id.Scheme == "world" && id.ID == "anyone" }

func matches(who proto.ID, rule string) bool {
	switch who.Scheme {
	case "digest":
		return who.ID == rule
	case "ip":
		return matchesIP(who.ID, rule)
	}
	return false
}

// fixACL makes of the list that a client sends the one that is stored: without
// duplicates, every scheme known, "auth" replaced by what the client has proven.
func fixACL(list []proto.ACL, who []proto.ID) ([]proto.ACL, proto.Code) {
	out := make([]proto.ACL, 0, len(list))
	for i, a := range list {
		if slices.Contains(list[:i], a) {
			continue
		}
		switch {
		case isAnyone(a.ID):
			out = append(out, a)
		case a.ID.Scheme == "auth":
			n := len(out)
			for _, id := range who {
				if id.Scheme == "digest" { // an address proves nothing
					out = append(out, proto.ACL{Perms: a.Perms, ID: id})
				}
			}
			if len(out) == n {
				return nil, proto.ErrInvalidACL
			}
		case validID(a.ID):
			out = append(out, a)
		default:
			return nil, proto.ErrInvalidACL
		}
	}
	if len(out) == 0 {
		return nil, proto.ErrInvalidACL
	}
	return out, proto.OK
}

func validID(id proto.ID) bool {
	switch id.Scheme {
	case "digest":
		// Java's split: user and hash, and empty parts at the end do not count.
		return len(strings.Split(strings.TrimRight(id.ID, ":"), ":")) == 2
	case "ip":
		return validIPRule(id.ID)
	}
	return false
}

// Prove adds to who what the credentials of an auth request prove: nothing new for "ip",
// which every connection has from the start; superDigest ("user:hash", or "" for nobody)
// makes the super user, whom no list keeps out.
func Prove(who []proto.ID, scheme string, credentials []byte, superDigest string) ([]proto.ID, proto.Code) {
	switch scheme {
	case "ip":
		return who, proto.OK
	case "digest":
		id := DigestID(string(credentials))
		ids := []proto.ID{id}
		if superDigest != "" && id.ID == superDigest {
			ids = append(ids, proto.ID{Scheme: "super"})
		}
		for _, id := range ids {
			if !slices.Contains(who, id) {
				who = append(slices.Clip(who), id)
			}
		}
		return who, proto.OK
	}
	return who, proto.ErrAuthFailed
}

// DigestID is the identity that a digest password (user:password) proves.
func DigestID(password string) proto.ID {
	user, _, _ := strings.Cut(password, ":")
	sum := sha1.Sum([]byte(password))
	return proto.ID{Scheme: "digest", ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// userName is what whoAmI shows of an identity.
func userName(id proto.ID) string {
	switch id.Scheme {
	case "digest":
		user, _, _ := strings.Cut(id.ID, ":")
		return user
	case "ip":
		return id.ID
	}
	return ""
}

// hideDigests is what getACL shows to who may read a node but not administer it.
func hideDigests(list []proto.ACL) []proto.ACL {
	out := slices.Clone(list)
	for i := range out {
		if user, _, ok := strings.Cut(out[i].ID.ID, ":"); ok && out[i].ID.Scheme == "digest" {
			out[i].ID.ID = user + ":x"
		}
	}
	return out
}
