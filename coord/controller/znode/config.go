package znode

import (
	"fmt"
	"strings"
)

type configJSON struct {
	Version int               `json:"version"`
	Config  map[string]string `json:"config"`
}

// EncodeConfig is the content of an entity's node below /config.
func EncodeConfig(config map[string]string) []byte {
	if config == nil {
		config = map[string]string{}
	}
	return encode(configJSON{1, config})
}

// DecodeConfig reads it; nil for an entity without settings, also where the node holds no data (it is then only the parent of others).
func DecodeConfig(data []byte) (map[string]string, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var j configJSON
	if err := decode("settings", data, &j, "version", "config"); err != nil {
		return nil, err
	}
	if err := checkVersion("settings", j.Version, 1, 1); err != nil {
		return nil, err
	}
	if len(j.Config) == 0 {
		return nil, nil
	}
	return j.Config, nil
}

type changeJSON struct {
	Version    int    `json:"version"`
	EntityPath string `json:"entity_path,omitempty"`
	EntityType string `json:"entity_type,omitempty"`
	EntityName string `json:"entity_name,omitempty"`
}

// EncodeChange tells that an entity's settings have changed.
func EncodeChange(entity string) []byte { return encode(changeJSON{Version: 2, EntityPath: entity}) }

// DecodeChange reads versions 1 and 2 and returns the entity's path.
func DecodeChange(data []byte) (entity string, err error) {
	var j changeJSON
	if err := decode("change of settings", data, &j, "version"); err != nil {
		return "", err
	}
	if j.Version == 1 {
		j.EntityPath = j.EntityType + "/" + j.EntityName
	}
	if kind, name, ok := strings.Cut(j.EntityPath, "/"); !ok || kind == "" || name == "" {
		return "", fmt.Errorf("change of settings: entity path %q is not type/name", j.EntityPath)
	}
	return j.EntityPath, nil
}
