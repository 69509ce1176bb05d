package faultfs

// settle decides what of a file's unsynced changes is on the disk, keeping about
// pct percent, and returns the contents; 0 is exactly the synced state, 100
// exactly all of it.
//
// A sector reaches the disk whole, as it was at some moment: so of the writes that
// touched it, those up to one chosen by chance are there, and none after. Each
// truncation is there or not. What was cut off by a truncation that got lost can
// so stand behind newer bytes, as blocks do that are freed and used again. The
// size is an inode's matter and lies anywhere between the extremes.
func (d *Disk) settle(n *node, pct int) *image {
	img := n.disk.clone()
	kept := d.keptSectors(n.changes, pct)
	low, high := img.size, img.size
	for i, c := range n.changes {
		switch {
		case !c.truncate:
			writeKept(img, c, kept[i])
			high = max(high, c.end())
		case kept[i] != nil:
			img.resize(c.size)
			low, high = c.size, c.size
		default:
			high = max(high, c.size)
		}
	}
	img.resize(d.sizeBetween(low, high, pct))
	return img
}

// sizeBetween picks a size, the extremes often.
func (d *Disk) sizeBetween(low, high int64, pct int) int64 {
	switch {
	case pct <= 0:
		return low
	case pct >= 100:
		return high
	}
	switch d.rng.IntN(4) {
	case 0:
		return low
	case 1:
		return high
	}
	return low + d.rng.Int64N(high-low+1)
}

// keptSectors chooses, for each change, which of its sectors count: one flag for
// each sector touched, or nil for none. A truncation has one flag. From the last
// change to the first: a sector kept from a later write has the earlier ones in it.
func (d *Disk) keptSectors(changes []change, pct int) [][]bool {
	kept := make([][]bool, len(changes))
	later := make(map[int64]bool)
	for i := len(changes) - 1; i >= 0 && pct > 0; i-- {
		c := changes[i]
		if c.truncate {
			if d.chance(pct) {
				kept[i] = []bool{true}
			}
			continue
		}
		first, last := c.off/sectorBytes, (c.end()-1)/sectorBytes
		kept[i] = make([]bool, last-first+1)
		for s := first; s <= last; s++ {
			keep := pct >= 100 || later[s] || d.chance(pct)
			kept[i][s-first] = keep
			if keep && pct < 100 {
				later[s] = true
			}
		}
	}
	return kept
}

// writeKept writes the flagged sectors of a write, adjacent ones at once.
func writeKept(img *image, c change, kept []bool) {
	first := c.off / sectorBytes
	for i := 0; i < len(kept); i++ {
		if !kept[i] {
			continue
		}
		from := i
		for i < len(kept) && kept[i] {
			i++
		}
		p := c.part((first+int64(from))*sectorBytes, (first+int64(i))*sectorBytes)
		img.write(p.data, p.off, p.size)
	}
}

// prefix chooses how many of n changes of names are on the disk.
func (d *Disk) prefix(n, pct int) int {
	switch {
	case pct <= 0:
		return 0
	case pct >= 100:
		return n
	}
	return d.rng.IntN(n + 1)
}
