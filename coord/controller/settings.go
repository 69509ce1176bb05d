package controller

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"millrace/coord"
	"millrace/coord/controller/znode"
)

// settings are all that stands below /config, as the image has it.
type settings struct {
	topics          map[string]map[string]string
	defaults        map[string]string
	own             map[int32]map[string]string
	groups, metrics coord.NamedConfigs
	quotas          map[coord.QuotaEntity]map[string]float64
}

func newSettings() *settings {
	return &settings{topics: map[string]map[string]string{}, own: map[int32]map[string]string{}, groups: coord.NamedConfigs{}, metrics: coord.NamedConfigs{}, quotas: map[coord.QuotaEntity]map[string]float64{}}
}

func topicEntity(topic string) string { return znode.EntityTopics + "/" + topic }

// entityOf is where a resource's settings are.
func entityOf(r coord.ConfigResource) string {
	switch {
	case r.Topic != "":
		return topicEntity(r.Topic)
	case r.Group != "":
		return znode.EntityGroups + "/" + znode.Sanitize(r.Group)
	case r.ClientMetrics != "":
		return znode.EntityClientMetrics + "/" + znode.Sanitize(r.ClientMetrics)
	case r.Broker == coord.AllBrokers:
		return znode.EntityBrokers + "/" + znode.DefaultEntity
	}
	return znode.EntityBrokers + "/" + strconv.Itoa(int(r.Broker))
}

// set takes over the settings of one entity as they were read. nil maps in s are made where they are needed.
func (s *settings) set(entity string, config map[string]string) error {
	kind, name, _ := strings.Cut(entity, "/")
	named := func(all *coord.NamedConfigs) error {
		name, err := znode.Desanitize(name)
		if err != nil || name == "" {
			return fmt.Errorf("settings of %s: the name cannot be read", entity)
		}
		*all = put(*all, name, config)
		return nil
	}
	switch kind {
	case znode.EntityTopics:
		s.topics[name] = config
	case znode.EntityGroups:
		return named(&s.groups)
	case znode.EntityClientMetrics:
		return named(&s.metrics)
	case znode.EntityBrokers:
		if name == znode.DefaultEntity {
			s.defaults = config
			return nil
		}
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return fmt.Errorf("settings of %s: no broker has that id", entity)
		}
		s.own = put(s.own, int32(id), config)
	case znode.EntityClients, znode.EntityUsers, znode.EntityIPs:
		e, err := quotaEntity(entity)
		if err != nil {
			return err
		}
		s.quotas = put(s.quotas, e, quotasIn(config))
	default:
		return fmt.Errorf("settings of %s: that kind of entity is not known", entity)
	}
	return nil
}

// put is all with one entry, or without it if it is empty.
func put[K comparable, V any, M ~map[K]map[string]V](all M, key K, values map[string]V) M {
	if len(values) == 0 {
		delete(all, key)
		return all
	}
	if all == nil {
		all = M{}
	}
	all[key] = values
	return all
}

// quotaPath is where an entity's quotas are.
func quotaPath(e coord.QuotaEntity) string {
	name := func(p coord.QuotaPart) string {
		if p.Name == "" {
			return znode.DefaultEntity
		}
		return znode.Sanitize(p.Name)
	}
	switch {
	case e.IP.Given:
		if e.IP.Name == "" {
			return znode.EntityIPs + "/" + znode.DefaultEntity
		}
		return znode.EntityIPs + "/" + e.IP.Name // an address is written as it is
	case e.User.Given && e.Client.Given:
		return znode.EntityUsers + "/" + name(e.User) + "/clients/" + name(e.Client)
	case e.User.Given:
		return znode.EntityUsers + "/" + name(e.User)
	}
	return znode.EntityClients + "/" + name(e.Client)
}

// quotaEntity reads such a path.
func quotaEntity(path string) (e coord.QuotaEntity, err error) {
	part := func(name string) coord.QuotaPart {
		if name == znode.DefaultEntity {
			return coord.QuotaPart{Given: true}
		}
		text, bad := name, error(nil)
		if !strings.HasPrefix(path, znode.EntityIPs+"/") {
			text, bad = znode.Desanitize(name)
		}
		if bad != nil || text == "" {
			err = fmt.Errorf("settings of %s: the name cannot be read", path)
		}
		return coord.QuotaPart{Given: true, Name: text}
	}
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 2 && parts[0] == znode.EntityClients:
		e.Client = part(parts[1])
	case len(parts) == 2 && parts[0] == znode.EntityIPs:
		e.IP = part(parts[1])
	case len(parts) == 2 && parts[0] == znode.EntityUsers:
		e.User = part(parts[1])
	case len(parts) == 4 && parts[0] == znode.EntityUsers && parts[2] == "clients":
		e.User, e.Client = part(parts[1]), part(parts[3])
	default:
		err = fmt.Errorf("settings of %s: that kind of entity is not known", path)
	}
	return e, err
}

// isQuota says whether a setting of a user, client or address is a quota: a positive number. Credentials stand beside them.
func isQuota(key, value string) (float64, bool) {
	if strings.HasPrefix(key, "SCRAM-") {
		return 0, false
	}
	rate, err := strconv.ParseFloat(value, 64)
	return rate, err == nil && rate > 0 && !math.IsInf(rate, 0)
}

func quotasIn(config map[string]string) map[string]float64 {
	out := map[string]float64{}
	for key, value := range config {
		if rate, ok := isQuota(key, value); ok {
			out[key] = rate
		}
	}
	return out
}

// quotaText writes a quota as Kafka does: rates in bytes and connections are whole numbers there, the others always have a decimal point.
func quotaText(key string, value float64) string {
	whole := value == math.Trunc(value) && value < 1<<53
	switch {
	case whole && (key == "request_percentage" || key == "controller_mutation_rate") && value < 1e7:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case whole:
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}
