package batch

// OffsetForTime finds, in one entry of any magic, the first record with an offset of at
// least from and a timestamp of at least ts (ms). An entry whose header shows that it
// has none is not expanded. Magic 0 has no timestamps, so nothing is found in it.
func OffsetForTime(b []byte, ts int64, from int64) (off, recTs int64, found bool, err error) {
	off, recTs = -1, noTimestamp
	newest, err := entryMaxTimestamp(b)
	if err != nil || newest < ts {
		return off, recTs, false, err
	}
	s := borrow()
	defer s.giveBack()
	var r Record
	err = s.visit(b, &r, func() bool {
		found = r.Offset >= from && r.Timestamp >= ts
		if found {
			off, recTs = r.Offset, r.Timestamp
		}
		return !found
	})
	return off, recTs, found, err
}

// MaxTimestampOffset finds the first record with the largest timestamp in one entry of
// any magic. (-1, -1) if no record has a timestamp.
func MaxTimestampOffset(b []byte) (off, ts int64, err error) {
	off, ts = -1, noTimestamp
	if _, err := entryMaxTimestamp(b); err != nil {
		return off, ts, err
	}
	s := borrow()
	defer s.giveBack()
	var r Record
	err = s.visit(b, &r, func() bool {
		if r.Timestamp > ts {
			off, ts = r.Offset, r.Timestamp
		}
		return true
	})
	return off, ts, err
}

// entryMaxTimestamp also makes sure that b is exactly one entry.
func entryMaxTimestamp(b []byte) (int64, error) {
	size, err := Split(b)
	switch {
	case err != nil:
		return noTimestamp, err
	case size != len(b):
		return noTimestamp, corrupt("one entry", "%d bytes behind it", len(b)-size)
	case b[atMagic] == 2:
		return View(b).MaxTimestamp(), nil
	}
	m, err := parseMessage(b)
	return m.timestamp, err
}
