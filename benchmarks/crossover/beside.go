package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"millrace/benchmarks/load"
	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// measureBeside runs one broker for each way and durability and asks what a producer waits while somebody reads everything from disk.
func measureBeside(o options, r *results) error {
	defer process.KillAll()
	quiet := load.Row{Records: 10, Size: 100, Partitions: 1, Connections: 8, InFlight: 64, Acks: 1, Rate: 1000}
	produce := [][]byte{load.ProduceFrame(quiet, "beside")}
	for _, mode := range []string{"sync", "page-cache"} {
		var alone, beside []way
		for _, io := range o.ways {
			b, err := startBroker(o, mode, io)
			if err != nil {
				return err
			}
			alone = append(alone, way{io, func() (report.Values, error) { return produceValues(load.Run(b.addr, quiet, produce, o.duration)) }})
			beside = append(beside, way{io, func() (report.Values, error) {
				read := b.readAgainAndAgain()
				v, err := produceValues(load.Run(b.addr, quiet, produce, o.duration))
				mbps, readErr := read()
				if err == nil {
					v[report.MBps] = mbps
				}
				return v, errors.Join(err, readErr)
			}})
		}
		if err := r.row(o, mode+", alone", 0, alone); err != nil {
			return err
		}
		if err := r.row(o, mode+", beside", 0, beside); err != nil {
			return err
		}
		process.KillAll()
	}
	return nil
}

func produceValues(res load.Result, err error) (report.Values, error) {
	return report.Values{report.P50: float64(res.P50), report.P99: float64(res.P99)}, err
}

// broker is one with data to read.
type broker struct {
	addr, dir string
	end       int64 // of each of the 4 partitions
}

func startBroker(o options, mode, io string) (*broker, error) {
	dir, err := os.MkdirTemp(o.dir, mode+"-")
	if err != nil {
		return nil, err
	}
	args := []string{"serve"}
	for _, v := range []string{"listeners=PLAINTEXT://127.0.0.1:0", "admin.listener=127.0.0.1:0", "log.dirs=" + filepath.Join(dir, "data"), "millrace.durability=" + mode, "millrace.io=" + io} {
		if v != "millrace.io=none" { // a broker of before the setting
			args = append(args, "--override", v)
		}
	}
	_, addr, err := process.StartReady("millrace-"+io, dir, o.millrace, args...)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	b := &broker{addr: addr, dir: filepath.Join(dir, "data")}
	fill := load.Row{Records: 64, Size: 1024, Partitions: 4, Connections: 4, InFlight: 1, Acks: 1}
	if err := errors.Join(load.CreateTopic(ctx, addr, "data", 4, nil), load.CreateTopic(ctx, addr, "beside", 1, nil)); err != nil {
		return nil, err
	}
	frame := load.ProduceFrame(fill, "data")
	n := max(8, int(o.gb*1e9)/len(frame))
	b.end = int64(n * fill.Records)
	if err := load.FillTopic(addr, fill, frame, n); err != nil {
		return nil, fmt.Errorf("filling: %w", err)
	}
	return b, nil
}

// readAgainAndAgain reads all data from disk, one reader a partition, until the returned function is called; that gives MB/s.
func (b *broker) readAgainAndAgain() func() (float64, error) {
	stop := make(chan struct{})
	type outcome struct {
		mbps float64
		err  error
	}
	read := make(chan outcome, 1)
	go func() { // ends with the full read that is under way when stop is closed
		var bytes int64
		var took time.Duration
		for {
			err := process.DropFromMemory(b.dir)
			var res load.Result
			if err == nil {
				res, err = load.ReadAll(b.addr, "data", 4, b.end, 1<<20)
			}
			bytes, took = bytes+res.Bytes, took+res.Elapsed
			select {
			case <-stop:
			default:
				if err == nil {
					continue
				}
			}
			read <- outcome{float64(bytes) / took.Seconds() / 1e6, err}
			return
		}
	}()
	return func() (float64, error) {
		close(stop)
		o := <-read
		return o.mbps, o.err
	}
}
