package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"millrace/benchmarks/peers/report"
	"millrace/benchmarks/process"
)

// rabbitScript starts RabbitMQ as whoever calls it; the one in PATH would become another user.
const rabbitScript = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// rabbitMQ is Debian's RabbitMQ with its plugin for streams, and with an Erlang port mapper of its own that ends with it.
func (e *env) rabbitMQ() *server {
	return &server{label: report.RabbitMQ, stop: time.Minute, client: otherClient{"rabbitmq"}, start: func(s *server) (*process.Process, string, error) {
		if _, err := os.Stat(rabbitScript); err != nil {
			if _, err := debian(e.ctx, "rabbitmq-server", "rabbitmq-server"); err != nil {
				return nil, "", err
			}
		}
		if _, err := e.others(); err != nil { // its client
			return nil, "", err
		}
		var ports [4]int
		for i := range ports {
			var err error
			if ports[i], err = freePort(); err != nil {
				return nil, "", err
			}
		}
		files := map[string]string{
			"rabbitmq.conf": fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nstream.listeners.tcp.1 = 127.0.0.1:%d\ndisk_free_limit.absolute = 50MB\n", ports[0], ports[1]),
			"plugins":       "[rabbitmq_stream].\n",
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
				return nil, "", err
			}
		}
		mapper := "ERL_EPMD_PORT=" + strconv.Itoa(ports[3])
		epmd, _, err := process.Start("epmd", s.dir, nil, "epmd", "-port", strconv.Itoa(ports[3]), "-address", "127.0.0.1")
		if err != nil {
			return nil, "", errNotHad{err.Error()}
		}
		p, _, err := process.Start("rabbitmq", s.dir, []string{mapper, "HOME=" + s.dir, "RABBITMQ_NODENAME=bench@localhost", "RABBITMQ_MNESIA_BASE=" + filepath.Join(s.dir, "mnesia"),
			"RABBITMQ_LOG_BASE=" + filepath.Join(s.dir, "log"), "RABBITMQ_CONFIG_FILE=" + filepath.Join(s.dir, "rabbitmq.conf"),
			"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(s.dir, "plugins"), "RABBITMQ_DIST_PORT=" + strconv.Itoa(ports[2]),
			"RABBITMQ_PID_FILE=" + filepath.Join(s.dir, "pid")}, rabbitScript)
		if err != nil {
			epmd.Kill()
			return nil, "", err
		}
		go func() { // ends with RabbitMQ, and ends the port mapper then
			<-p.Ended()
			epmd.Kill()
		}()
		addr := fmt.Sprintf("127.0.0.1:%d", ports[1])
		if err := e.answers(p, 2*time.Minute, func() error {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				c.Close()
			}
			return err
		}); err != nil {
			p.Kill()
			return nil, "", err
		}
		return p, addr, nil
	}}
}

func isRoot() bool { return os.Geteuid() == 0 }
