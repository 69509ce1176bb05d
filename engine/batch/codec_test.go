package batch

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"
)

// samples are payloads of the sizes where codecs change their ways, easy and hard to compress.
func samples() [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	var all [][]byte
	for _, n := range []int{0, 1, 13, 100, 32<<10 - 1, 32 << 10, 32<<10 + 1, 64 << 10, 64<<10 + 1, 150_000} {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		all = append(all, make([]byte, n), noise, bytes.Repeat([]byte("a line of a log, "), n/17+1)[:n])
	}
	return all
}

// others are decoders we did not write, as strict as the codec's clients are.
var others = map[Codec]func([]byte) ([]byte, error){
	Gzip: func(b []byte) ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	},
	LZ4: func(b []byte) ([]byte, error) { return io.ReadAll(lz4.NewReader(bytes.NewReader(b))) },
	Zstd: func(b []byte) ([]byte, error) {
		r, err := zstd.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	},
	Snappy: func(b []byte) ([]byte, error) { // as Java's library reads it
		var out []byte
		for b = b[16:]; len(b) > 0; {
			n := binary.BigEndian.Uint32(b)
			block, err := snappy.Decode(nil, b[4:4+n])
			if err != nil {
				return nil, err
			}
			if len(block) > 32<<10 {
				return nil, errors.New("a block over 32 KiB")
			}
			out, b = append(out, block...), b[4+n:]
		}
		return out, nil
	},
}

// Claim: what we compress, at every level, other decoders and our own expand to the same bytes, behind whatever dst held.
// Method: payloads around every block size, at lowest, default and highest levels.
func TestCompressedPayloadsAreReadByOthers(t *testing.T) {
	levels := map[Codec][]int{None: {0}, Gzip: {-1, 0, 1, 9}, Snappy: {0}, LZ4: {0, 1, 9, 17}, Zstd: {-5, 0, 1, 3, 7, 22}}
	for _, codec := range allCodecs {
		for _, level := range levels[codec] {
			for _, want := range samples() {
				if level > 9 && len(want) > 64<<10 {
					continue // slow, and no further block size
				}
				c, err := Compress(codec, level, []byte("before"), want)
				if err != nil || !bytes.HasPrefix(c, []byte("before")) {
					t.Fatal(codec, level, err)
				}
				c = c[6:]
				got, err := Decompress(codec, []byte("before"), c, len(want))
				if err != nil || string(got[:6]) != "before" || !bytes.Equal(got[6:], want) {
					t.Fatalf("%v level %d, %d bytes: %v", codec, level, len(want), err)
				}
				if other := others[codec]; other != nil {
					if got, err := other(c); err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%v level %d, %d bytes: the other decoder says %v", codec, level, len(want), err)
					}
				}
			}
		}
	}
	for codec, level := range map[Codec]int{None: 1, Gzip: 10, Snappy: 1, LZ4: 18, Zstd: 23, 5: 0} {
		if _, err := Compress(codec, level, nil, nil); err == nil {
			t.Errorf("%v level %d was taken", codec, level)
		}
	}
}

// Claim: what other clients send is read: bare snappy blocks, streams in a row, lz4 with checksums and 4 MiB blocks, gzip members in a row, zstd frames without sizes.
// Method: make each with its own library and expand it here.
func TestOtherClientsPayloadsAreRead(t *testing.T) {
	want := bytes.Repeat([]byte("somebody else's line "), 20_000)
	half := len(want) / 2
	lz := func(options ...lz4.Option) []byte {
		var b bytes.Buffer
		w := lz4.NewWriter(&b)
		if err := w.Apply(options...); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(want)
		_ = w.Close()
		return b.Bytes()
	}
	gz := func(part []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(part)
		_ = w.Close()
		return b.Bytes()
	}
	zs := func(options ...zstd.EOption) []byte {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, options...)
		if err != nil {
			t.Fatal(err)
		}
		for part := want; len(part) > 0; part = part[min(len(part), 5000):] {
			_, _ = w.Write(part[:min(len(part), 5000)])
		}
		_ = w.Close()
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		codec Codec
		src   []byte
	}{
		"snappy, bare":               {Snappy, snappy.Encode(nil, want)},
		"snappy, bare by s2":         {Snappy, s2.EncodeSnappy(nil, want)},
		"snappy, xerial twice":       {Snappy, appendXerial(appendXerial(nil, want[:half]), want[half:])},
		"lz4, 4 MiB blocks":          {LZ4, lz(lz4.BlockSizeOption(lz4.Block4Mb))},
		"lz4, all checksums":         {LZ4, lz(lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true), lz4.ChecksumOption(true))},
		"lz4, content size":          {LZ4, lz(lz4.SizeOption(uint64(len(want))))},
		"gzip, two members":          {Gzip, append(gz(want[:half]), gz(want[half:])...)},
		"zstd, stream without size":  {Zstd, zs()},
		"zstd, checksum, big window": {Zstd, zs(zstd.WithEncoderCRC(true), zstd.WithWindowSize(128<<20))},
		"zstd, two frames":           {Zstd, append(zs(), appendZstd(nil, nil, 1)...)},
	} {
		got, err := Decompress(c.codec, nil, c.src, len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Decompress(c.codec, nil, c.src, len(want)-1); !errors.Is(err, ErrExpansion) {
			t.Errorf("%s, one byte over the limit: %v", name, err)
		}
	}
}

// Claim: a payload that is cut, or has bytes behind its end, is refused.
// Method: every prefix of a payload and one byte more, for every codec and framing.
func TestCutAndOverlongPayloadsAreRefused(t *testing.T) {
	src := []byte(strings.Repeat("cut me ", 40))
	for _, codec := range allCodecs[1:] {
		whole, err := Compress(codec, DefaultLevel, nil, src)
		if err != nil {
			t.Fatal(err)
		}
		for n := range whole {
			got, err := Decompress(codec, nil, whole[:n], 1<<20)
			if err == nil && !(codec == Snappy && n == len(xerialHeader) && len(got) == 0) {
				t.Errorf("%v: the first %d of %d bytes gave %d bytes", codec, n, len(whole), len(got))
			}
		}
		if got, err := Decompress(codec, nil, whole, math.MaxInt); err != nil || !bytes.Equal(got, src) {
			t.Errorf("%v without a limit: %v", codec, err)
		}
		if _, err := Decompress(codec, nil, append(whole, 0), 1<<20); err == nil {
			t.Errorf("%v: a byte behind the end was taken", codec)
		}
	}
}

// Claim: lz4 frames that Kafka's Java reader refuses are refused here.
// Method: change one thing in a good frame's header at a time, with the header checksum made right.
func TestLZ4FramesJavaRefuses(t *testing.T) {
	good := appendLZ4(nil, []byte("some text, some text, some text"), 0, lz4Descriptor)
	for name, change := range map[string]func(b []byte){
		"magic":            func(b []byte) { b[0]++ },
		"version":          func(b []byte) { b[4] = b[4]&0x3f | 0x80 },
		"dependent blocks": func(b []byte) { b[4] &^= lz4Independent },
		"dictionary":       func(b []byte) { b[4] |= 1 },
		"reserved bit":     func(b []byte) { b[4] |= 2 },
		"block size 3":     func(b []byte) { b[5] = 3 << 4 },
		"block size 8":     func(b []byte) { b[5] = 8 << 4 },
		"low bits":         func(b []byte) { b[5] |= 1 },
	} {
		b := bytes.Clone(good)
		change(b)
		b[6] = byte(xxh32(b[4:6]) >> 8)
		if _, err := Decompress(LZ4, nil, b, 1000); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	empty := append(bytes.Clone(good[:7]), 0, 0, 0, 0x80)
	if _, err := Decompress(LZ4, nil, append(empty, good[7:]...), 1000); err == nil {
		t.Error("an empty block, at which Java stops: taken")
	}
	b := bytes.Clone(good)
	b[6]++
	if _, err := Decompress(LZ4, nil, b, 1000); err == nil {
		t.Error("wrong header checksum: taken")
	}
	if _, err := expandLZ4(nil, b, 1000, lz4Ignored); err != nil {
		t.Errorf("wrong header checksum, as magic 0 and 1 may have: %v", err)
	}
}

// Claim: snappy blocks that use s2's extensions, which no Kafka client reads, are refused.
// Method: let s2 encode something it would use them for.
func TestSnappyIsPlainSnappy(t *testing.T) {
	src := []byte(strings.Repeat("abcdefgh01234567", 5000))
	block := s2.EncodeBest(nil, src)
	if _, err := s2.Decode(nil, block); err != nil {
		t.Fatal(err)
	}
	if _, err := Decompress(Snappy, nil, block, 1<<20); err == nil {
		t.Error("taken")
	}
	framed := appendXerial(nil, src)
	framed[11] = 0
	if _, err := Decompress(Snappy, nil, framed, 1<<20); err == nil {
		t.Error("framing of version 0, which Java refuses: taken")
	}
}

// Claim: the pools may be used by everyone at once.
// Method: goroutines compress and expand different payloads side by side; meant for the race detector.
func TestCodecsAreSafeSideBySide(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			records := someRecords(20+i, 50)
			for _, codec := range allCodecs {
				for range 20 {
					b := build(codec, records)
					if _, err := Check(b, &Rules{}); err != nil {
						t.Error(err)
					}
					if got, err := collect(b); err != nil || len(got) != len(records) {
						t.Error(len(got), err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// Claim: recompressing changes the codec and nothing else.
// Method: random records from every codec to every other; records, header fields and validity must stay.
func TestRecompressKeepsEverythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.SampledFrom(allCodecs).Draw(t, "from"), rapid.SampledFrom(allCodecs).Draw(t, "to")
		records := anyRecords(t)
		b := build(from, records, Producer(5, 2, 7), Transactional())
		c, err := Recompress(b, to, DefaultLevel)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Check(c, &Rules{})
		if err != nil {
			t.Fatal(err)
		}
		want := View(b).info()
		want.Size, want.Attributes = len(c), want.Attributes&^attrCodec|int16(to)
		requireEqual(t, got, want)
		all, err := collect(c)
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, all, records)
	})
}

// Claim: codec names are Kafka's.
// Method: parse what String says; a wrong name must be refused.
func TestCodecNames(t *testing.T) {
	for _, c := range allCodecs {
		if got, err := ParseCodec(c.String()); err != nil || got != c {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if c, err := ParseCodec("uncompressed"); err != nil || c != None {
		t.Error(c, err)
	}
	if _, err := ParseCodec("producer"); err == nil {
		t.Error("producer is no codec")
	}
}
