# Millrace. `make help` lists the commands; docs/HACKING.md says more.

GO ?= go
CONCURRENT = ./engine/... ./wire/... ./replica/... ./coord/... ./broker/...
VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The names of Kafka's scripts under which our programs act.
SCRIPTS = topics console-producer console-consumer consumer-groups configs get-offsets delete-records log-dirs cluster broker-api-versions dump-log
TALLY = $(if $(CI),-tally .cache/tally)

.PHONY: help build run check test race fuzz chaos bench bench-restart bench-peers bench-engine bench-crossover bench-coordination bench-scale compat compat-docs docs clean

help: ## list these commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## bin/millrace, bin/perf-producer, bin/perf-consumer, and links under the names of Kafka's scripts
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/ ./tools/millrace ./tools/perf-producer ./tools/perf-consumer
	@for s in $(SCRIPTS); do ln -sf millrace bin/kafka-$$s.sh; done
	@ln -sf perf-producer bin/kafka-producer-perf-test.sh
	@ln -sf perf-consumer bin/kafka-consumer-perf-test.sh

run: build ## build, then serve on 127.0.0.1:9092 from ./data
	bin/millrace serve

check: ## format, vet, tidy rules, short tests: under a minute
	$(GO) vet ./...
	$(GO) test -short ./tools/tidy ./engine/... ./wire/... ./replica/... ./coord/...

test: build ## everything CI asks of a change except race and compat
	@mkdir -p .cache
	$(GO) vet ./...
	$(GO) run ./tools/runtests $(TALLY) -- ./...
	$(GO) run ./tools/runtests $(TALLY) -C engine/examples -- ./...
	$(GO) run ./tools/compat -short $(TALLY)

race: ## the concurrent packages under the race detector
	@mkdir -p .cache
	$(GO) run ./tools/runtests $(TALLY) -- -race -short $(CONCURRENT)

FUZZTIME ?= 20s
fuzz: ## every fuzz target for FUZZTIME each
	@for p in $$($(GO) list ./engine/... ./wire/... ./broker/...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s $$p || exit 1; \
	  done; \
	done

CHAOS ?= 30m
chaos: build ## random attack on engine and broker for CHAOS (30m); SEED=n repeats a run, ONLY=store,disk,kill,together names parts, ONCE=1 one episode
	@mkdir -p .cache
	$(GO) build -o .cache/chaos-plain ./tools/chaos
	$(GO) build -race -o .cache/chaos-race ./tools/chaos
	.cache/chaos-plain -for $(CHAOS) -race .cache/chaos-race -millrace bin/millrace $(if $(SEED),-seed $(SEED)) $(if $(ONLY),-part $(ONLY)) $(if $(ONCE),-once)

compat: build ## foreign clients against Millrace; ONLY=name runs one
	@mkdir -p .cache
	$(GO) run ./tools/compat $(if $(ONLY),-only $(ONLY)) $(TALLY)

compat-docs: build ## compat, recorded in docs/compat-results.json, and docs/compatibility.md from it
	@mkdir -p .cache
	$(GO) run ./tools/compat $(if $(ONLY),-only $(ONLY)) -record docs/compat-results.json; failed=$$?; $(GO) run ./tools/gendocs && exit $$failed

bench: build ## the rows of benchmarks/limits against the toy and DESIGN's targets
	$(GO) run ./benchmarks/limits -duration 500ms -out benchmarks/results

bench-restart: build ## start, idle memory, and restarts with 1,000 partitions
	$(GO) run ./benchmarks/limits -restart

bench-scale: build ## 20,000 partitions, and 30 GB of data (free space: 45 GB): times, memory, descriptors, maps, messages/s; SCALE='-life 2000 -partitions 1,1000 -data 1,3 -rounds 2', 0 for none
	$(GO) run ./benchmarks/limits -scale -duration 1s -out benchmarks/results $(SCALE)

bench-peers: build ## Kafka, NATS JetStream, Redis streams, RabbitMQ streams and Jafka beside Millrace: half an hour on a quiet machine; PEERS='-sections limits'
	@mkdir -p .cache
	$(GO) build -o .cache/bench-peers ./benchmarks/peers
	.cache/bench-peers $(PEERS)

ENGINE_OUT ?= ../results/engine-peers-$(shell date -u +%F)
bench-engine: ## the engine as a library beside raft-wal, tidwall/wal, etcd, Prometheus, pebble and NATS: ten minutes on a quiet machine; BENCH='-rows reopen'
	@mkdir -p .cache
	cd benchmarks/engine && $(GO) build -o ../../.cache/bench-engine . && ../../.cache/bench-engine -dir ../../.cache -out $(ENGINE_OUT) $(BENCH)
bench-crossover: build ## where one way of I/O begins to pay more than another: journal, syncs, cold reads, producers beside a cold reader; CROSSOVER='-sections sync -rounds 9'
	$(GO) run ./benchmarks/crossover -out benchmarks/results $(CROSSOVER)

bench-coordination: build ## the coordination service beside Apache ZooKeeper 3.9.5, and a million znodes: six minutes on a quiet machine; COORDINATION='-sections million'
	@mkdir -p .cache
	$(GO) build -o .cache/bench-coordination ./benchmarks/coordination
	.cache/bench-coordination -out benchmarks/results $(COORDINATION)

docs: ## the documents that are made from the source's tables
	$(GO) run ./tools/gendocs

clean: ## remove what the build made
	rm -rf bin .cache
