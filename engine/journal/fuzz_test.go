package journal

import (
	"bytes"
	"encoding/binary"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim: whatever a journal's file holds, opening it ends, without a panic, in an error or in entries that lie in the file and can be read,
// each of offsets that ascend; and what it allocates is bounded by the file.
// Method: blocks without what pads them to pages, which would be most of the input and leave no time but to shorten it; as they are, and
// with the checksums of all blocks made right, so that the fuzzer gets behind them.
func FuzzReplay(f *testing.F) {
	for _, s := range journalSeeds(f) {
		f.Add(packed(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 16<<10 {
			return
		}
		raw := padded(b)
		contents := [][]byte{raw}
		if right := rightSums(raw); !bytes.Equal(raw, right) {
			contents = append(contents, right)
		}
		for _, content := range contents {
			disk := faultfs.New(nil, faultfs.Seed(1))
			if err := disk.WriteFile(dataDir+"/"+filePrefix+"0", content); err != nil {
				t.Fatal(err)
			}
			j, err := Open(Options{FS: disk, Dir: dataDir, DataDir: dataDir})
			if err != nil {
				continue
			}
			for _, id := range j.Logs() {
				for _, e := range j.Replay(id) {
					if e.Size < 0 || e.Size > len(content) {
						t.Fatalf("an entry of %d bytes in a file of %d", e.Size, len(content))
					}
					p := make([]byte, e.Size)
					if err := e.Read(p); err != nil {
						t.Fatalf("entry %+v: %v", e, err)
					}
				}
			}
			j.Close()
		}
	})
}

// journalSeeds are a journal with batches of several logs and a cut, whole, torn, and two blocks of it.
func journalSeeds(f *testing.F) [][]byte {
	f.Helper()
	disk := faultfs.New(nil, faultfs.Seed(1))
	l, err := openLife(disk, small, nil, newRand(1))
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		for _, name := range logNames {
			l.serial++
			ticket, err := l.logs[name].append(batch{count: int64(i + 1), serial: l.serial, size: 40})
			if err == nil {
				err = l.j.Wait(ticket)
			}
			if err != nil {
				f.Fatal(err)
			}
		}
	}
	whole, err := disk.ReadFile(dataDir + "/" + filePrefix + "0")
	if err != nil {
		f.Fatal(err)
	}
	l.kill()
	whole = whole[:min(len(whole), 16*pageBytes)] // the blocks are at its front
	return [][]byte{whole, whole[:len(whole)/2+100], whole[:2*pageBytes], whole[:headerBytes+10], []byte(emptyHead)}
}

// padded puts each block, one behind the other in b, at a page of its own, as a file has them; packed takes the padding out.
func padded(b []byte) []byte { return moveBlocks(b, 1, pageBytes) }

func packed(b []byte) []byte { return moveBlocks(b, pageBytes, 1) }

// moveBlocks copies blocks that are padded to a multiple of from, and whatever follows them; in the copy they are padded to one of to.
func moveBlocks(b []byte, from, to int) (out []byte) {
	for len(b) >= headerBytes {
		h, ok := parseHeader(b)
		if !ok || headerBytes+h.length > len(b) {
			break
		}
		n := headerBytes + h.length
		out = append(out, b[:n]...)
		out = append(out, make([]byte, padTo(n, to)-n)...)
		b = b[min(len(b), padTo(n, from)):]
	}
	return append(out, b...)
}

// rightSums seals every block whose length fits.
func rightSums(b []byte) []byte {
	b = bytes.Clone(b)
	for at := 0; at+headerBytes <= len(b); {
		h, ok := parseHeader(b[at:])
		if !ok || at+headerBytes+h.length > len(b) {
			break
		}
		binary.LittleEndian.PutUint32(b[at+8:], 0)
		h.seal(b[at : at+headerBytes+h.length])
		at += padTo(headerBytes+h.length, pageBytes)
	}
	return b
}
