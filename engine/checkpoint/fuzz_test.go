package checkpoint

import (
	"errors"
	"maps"
	"testing"

	"millrace/engine/vfs/faultfs"
)

// Claim: no bytes make a reader of the text files panic; each gives what it could read or an error that names the file, and what it gives is
// written and read back the same.
func FuzzTextFiles(f *testing.F) {
	for _, s := range []string{
		"0\n2\nt 0 5\nt 1 9223372036854775807\n", "0\n2\n0 0\n3 17\n", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "0\r\n1\r\nt 0 1\r\n", "0\n1\n",
		"#\n#Thu\ncluster.id=abc\nversion=1\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "version=0\nbroker.id=1\ncluster.id=\\u0041\\\n b", "{\"version\":0,\"brokerEpoch\":3}", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		disk := faultfs.New(nil, faultfs.Seed(1))
		for _, name := range []string{"/d/" + EpochsName, "/d/" + PartitionMetadataName, "/d/" + MetaName, "/d/offsets"} {
			disk.WriteFile(name, b)
		}
		named := func(err error) {
			var format *FormatError
			if err != nil && (!errors.As(err, &format) || format.File == "") {
				t.Fatalf("an error that names no file: %v", err)
			}
		}
		o, err := ReadOffsets(disk, "/d/offsets")
		named(err)
		if err := o.Write(disk, "/again"); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadOffsets(disk, "/again"); err != nil || !maps.Equal(again, o) {
			t.Fatalf("%v: %v, then %v", err, o, again)
		}
		e, err := OpenEpochs(disk, "/d")
		named(err)
		last := EpochStart{-1, -1}
		for _, x := range e.All() {
			if x.Epoch <= last.Epoch || x.Start <= last.Start {
				t.Fatalf("%v follows %v", x, last)
			}
			last = x
		}
		if err := e.Assign(last.Epoch+1, last.Start+1); err != nil && last.Epoch < 1<<31-1 && last.Start < 1<<62 {
			t.Fatal(err)
		}
		_, _, err = ReadTopicID(disk, "/d")
		named(err)
		_, _, err = ReadMeta(disk, "/d")
		named(err)
	})
}
