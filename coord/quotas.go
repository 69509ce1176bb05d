package coord

import (
	"cmp"
	"maps"
)

// QuotaEntity names whom a quota is for: a user, a client id, both together, or an
// address. It can be a map's key.
type QuotaEntity struct {
	User, Client, IP QuotaPart
}

// QuotaPart is one name of a QuotaEntity. A given part without a name is the default:
// it stands for everyone who has no quota of their own.
type QuotaPart struct {
	Given bool
	Name  string
}

// CompareQuotaEntities orders entities by user, client id and address.
func CompareQuotaEntities(a, b QuotaEntity) int {
	return cmp.Or(a.User.compare(b.User), a.Client.compare(b.Client), a.IP.compare(b.IP))
}

func (p QuotaPart) compare(o QuotaPart) int {
	switch {
	case p.Given != o.Given && o.Given:
		return -1
	case p.Given != o.Given:
		return 1
	}
	return cmp.Compare(p.Name, o.Name)
}

// MaxQuotaEntities is how many entities may have quotas. The whole state is written
// anew at each change; an entity takes some 150 bytes.
const MaxQuotaEntities = 10_000

// QuotaChange edits the quotas of one entity. Edit is as ConfigChange's: it gets the
// quotas that the entity has by their keys (nil if none; not to be changed), and
// decides alone what is allowed.
type QuotaChange struct {
	Entity QuotaEntity
	Edit   func(before map[string]float64) (after map[string]float64, code int16, message string)
}

// Quotas are the quotas of all entities, by key. Read-only, with all it holds. It is the
// same map as an older image's where nothing has changed.
func (img *Image) Quotas() map[QuotaEntity]map[string]float64 { return img.quotas }

// WithQuotas returns a new image with other quotas. It takes over the map.
func (img *Image) WithQuotas(quotas map[QuotaEntity]map[string]float64) *Image {
	next := *img
	next.quotas = quotas
	return &next
}

// SameQuotas reports whether both images have the same quotas.
func SameQuotas(a, b *Image) bool {
	return maps.EqualFunc(a.quotas, b.quotas, maps.Equal[map[string]float64, map[string]float64])
}
