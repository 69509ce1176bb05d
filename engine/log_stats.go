package engine

// Stats is what a log looks like from outside, at one moment.
type Stats struct {
	Segments   int
	Bytes      int64 // in all segments
	Pinned     int   // ranges being read or synced: they keep segment files open
	Start, End Offset
}

// Stats returns the present figures. It takes no lock; the figures may be a
// write apart.
func (l *Log) Stats() Stats {
	s := Stats{Start: l.Start(), End: l.End()}
	list := *l.segments.Load()
	s.Segments = len(list)
	for _, seg := range list {
		s.Bytes += seg.size.Load()
		if n := int(seg.pins.Load()); n > 1 { // one is the log's own
			s.Pinned += n - 1
		}
	}
	return s
}
