package znode

import (
	"fmt"
	"strings"
)

// ACL is one rule of the authorizer.
type ACL struct {
	Principal  string `json:"principal"`
	Permission string `json:"permissionType"`
	Host       string `json:"host"`
	Operation  string `json:"operation"`
}

type aclsJSON struct {
	ACLs    []ACL `json:"acls"`
	Version int   `json:"version"`
}

// ACLPath is where the rules of a resource are: of the resource itself, or of all whose names begin so.
func ACLPath(kind, name string, prefixed bool) string {
	if prefixed {
		return ACLExtended + "/prefixed/" + kind + "/" + name
	}
	return ACLLiteral + "/" + kind + "/" + name
}

// EncodeACLs is the content of such a node.
func EncodeACLs(list []ACL) []byte {
	if list == nil {
		list = []ACL{}
	}
	return encode(aclsJSON{list, 1})
}

// DecodeACLs reads it.
func DecodeACLs(data []byte) ([]ACL, error) {
	var j aclsJSON
	if err := decode("rules", data, &j, "version", "acls"); err != nil {
		return nil, err
	}
	return j.ACLs, checkVersion("rules", j.Version, 1, 1)
}

// ACLChange tells that the rules of a resource have changed.
type ACLChange struct {
	Kind, Name string // TOPIC, t2
	Prefixed   bool
}

type aclChangeJSON struct {
	Version int    `json:"version"`
	Kind    string `json:"resourceType"`
	Name    string `json:"name"`
	Pattern string `json:"patternType"`
}

// Encode is the plain text of literal rules, the JSON of prefixed ones.
func (c *ACLChange) Encode() []byte {
	if !c.Prefixed {
		return []byte(c.Kind + ":" + c.Name)
	}
	return encode(aclChangeJSON{1, c.Kind, c.Name, "PREFIXED"})
}

// DecodeACLChange reads both.
func DecodeACLChange(data []byte) (c ACLChange, err error) {
	if !strings.HasPrefix(string(data), "{") {
		kind, name, ok := strings.Cut(string(data), ":")
		if !ok {
			return c, fmt.Errorf("change of rules: %q is not TYPE:name", data)
		}
		return ACLChange{Kind: kind, Name: name}, nil
	}
	var j aclChangeJSON
	if err := decode("change of rules", data, &j, "resourceType", "name", "patternType"); err != nil {
		return c, err
	}
	return ACLChange{j.Kind, j.Name, j.Pattern == "PREFIXED"}, nil
}
