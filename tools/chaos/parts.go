package main

import "time"

// part is one way of attack.
type part struct {
	name    string
	weight  int           // its share of the time
	slice   time.Duration // how long a child of it runs
	patient time.Duration // an episode that takes longer hangs
	episode func(seed uint64, c *counts, stop func() bool) error
}

// parts are all of them.
var parts = []part{
	{"store", 4, 20 * time.Second, 2 * time.Minute, func(seed uint64, c *counts, stop func() bool) error {
		return storeEpisode(seed, false, c, stop)
	}},
	{"disk", 1, 15 * time.Second, 2 * time.Minute, func(seed uint64, c *counts, stop func() bool) error {
		return storeEpisode(seed, true, c, stop)
	}},
	{"together", 2, 20 * time.Second, 2 * time.Minute, func(seed uint64, c *counts, stop func() bool) error {
		return togetherEpisode(seed, 6*time.Second, c, stop)
	}},
	{"kill", 3, 25 * time.Second, 4 * time.Minute, func(seed uint64, c *counts, stop func() bool) error {
		return killEpisode(seed, 4, c, stop)
	}},
}

func partOf(name string) *part {
	for i := range parts {
		if parts[i].name == name {
			return &parts[i]
		}
	}
	return nil
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}
