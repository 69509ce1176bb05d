package java

// configActs: kafka-configs for each entity that has settings.
func configActs(s *stage) {
	c := func(args string, want ...string) string {
		return s.do(act{tool: "configs", args: args, want: want, mask: []string{`(?m)^  min\.insync\.replicas=1 .*`, kafkasOwn}})
	}
	refused := func(args, exception string) {
		s.do(act{tool: "configs", args: args, status: 1, err: exception, how: alone})
	}
	s.do(act{tool: "topics", args: "--create --topic orders --config retention.ms=3600000"})

	c("--entity-type topics --entity-name orders --describe", "Dynamic configs for topic orders are:", "~retention.ms=3600000 sensitive=false synonyms=.DYNAMIC_TOPIC_CONFIG:retention.ms=3600000.*")
	c("--entity-type topics --entity-name orders --alter --add-config retention.ms=7200000,segment.bytes=2097152", "Completed updating config for topic orders.")
	s.do(act{tool: "configs", args: "--topic orders --describe", how: anyOrder, mask: []string{`(?m)^  min\.insync.*`},
		want: []string{"~segment.bytes=2097152 .*"}})
	c("--entity-type topics --entity-name orders --alter --delete-config retention.ms", "Completed updating config for topic orders.")
	s.do(act{tool: "configs", args: "--topic orders --describe", not: []string{"retention.ms="}, want: []string{"~segment.bytes=2097152 .*"}, how: anyOrder, mask: []string{`(?m)^  min\.insync.*`}})
	s.do(act{tool: "configs", args: "--entity-type topics --entity-name orders --alter --add-config-file {file}", file: "retention.ms=111111\nmax.message.bytes=1500000\n", want: []string{"Completed updating config for topic orders."}})
	s.do(act{tool: "configs", args: "--topic orders --describe --all", how: alone,
		want: []string{"~max.message.bytes=1500000 .*"}})
	refused("--entity-type topics --entity-name orders --alter --add-config nosuch.key=1", "nosuch.key")
	refused("--entity-type topics --entity-name orders --alter --add-config retention.ms=soon", "retention.ms")
	if s.old {
		refused("--entity-type topics --entity-name orders --alter --delete-config nosuch.key", "Invalid config(s): nosuch.key")
	} else {
		c("--entity-type topics --entity-name orders --alter --delete-config nosuch.key") // says nothing
	}
	refused("--entity-type topics --entity-name nosuch --alter --add-config retention.ms=1", "nosuch")
	c("--entity-type topics --describe", "Dynamic configs for topic orders are:")

	c("--entity-type brokers --entity-name 1 --alter --add-config log.retention.ms=86400000", "Completed updating config for broker 1.")
	c("--entity-type brokers --entity-name 1 --describe", "Dynamic configs for broker 1 are:", "~log.retention.ms=86400000 sensitive=false synonyms=.DYNAMIC_BROKER_CONFIG:log.retention.ms=86400000.*")
	c("--broker-defaults --alter --add-config log.segment.bytes=1073741824", "Completed updating default config for brokers in the cluster.")
	c("--entity-type brokers --entity-default --describe", "Default configs for brokers in the cluster are:", "~log.segment.bytes=1073741824 .*")
	s.do(act{tool: "configs", args: "--broker 1 --describe --all", how: alone, want: []string{"All configs for broker 1 are:", "~message.max.bytes=1048588 sensitive=false .*"}})
	c("--entity-type brokers --entity-name 1 --alter --delete-config log.retention.ms", "Completed updating config for broker 1.")
	c("--broker-defaults --alter --delete-config log.segment.bytes")
	c("--entity-type brokers --entity-name 1 --describe", "Dynamic configs for broker 1 are:")
	refused("--entity-type brokers --entity-name 1 --alter --add-config log.retention.ms=soon", "log.retention.ms")
	refused("--entity-type brokers --entity-name 1 --alter --add-config node.id=7", "node.id")

	c("--entity-type clients --entity-name app --alter --add-config producer_byte_rate=1048576,consumer_byte_rate=2097152", "Completed updating config for client app.")
	c("--entity-type clients --entity-default --alter --add-config request_percentage=200", "Completed updating default config for clients in the cluster.")
	c("--entity-type users --entity-name ann --alter --add-config producer_byte_rate=4096")
	c("--entity-type users --entity-name ann --entity-type clients --entity-name app --alter --add-config consumer_byte_rate=4096")
	for _, describe := range []string{"--entity-type clients --entity-name app --describe", "--entity-type clients --describe", "--client-defaults --describe",
		"--entity-type users --entity-type clients --describe", "--user ann --client app --describe"} {
		s.do(act{tool: "configs", args: describe, how: anyOrder, mask: []string{`(producer|consumer)_byte_rate=\d+\.\d+, (producer|consumer)_byte_rate=\d+\.\d+`}, want: []string{"~Quota configs for .*"}})
	}
	s.do(act{tool: "configs", args: "--client app --describe", how: alone, want: []string{"~Quota configs for client-id 'app' are .*producer_byte_rate=1048576.*"}})
	c("--entity-type clients --entity-name app --alter --delete-config producer_byte_rate,consumer_byte_rate", "Completed updating config for client app.")
	c("--entity-type clients --entity-name app --describe")
	refused("--entity-type clients --entity-name app --alter --add-config nosuch_rate=1", "nosuch_rate")
	refused("--entity-type clients --entity-name app --alter --add-config producer_byte_rate=-1", "producer_byte_rate")
	if !s.old {
		groupConfigActs(s)
	}
}

// groupConfigActs: settings of single groups, which 4.3's tool knows.
func groupConfigActs(s *stage) {
	c := func(args string, want ...string) { s.do(act{tool: "configs", args: args, want: want}) }
	c("--entity-type groups --entity-name g --alter --add-config consumer.session.timeout.ms=50000", "Completed updating config for group g.")
	c("--entity-type groups --entity-name g --describe", "Dynamic configs for group g are:", "~consumer.session.timeout.ms=50000 .*")
	s.do(act{tool: "configs", args: "--group g --describe --all", how: alone, want: []string{"~consumer.session.timeout.ms=50000 .*"}})
	s.do(act{tool: "configs", args: "--entity-type groups --entity-name g --alter --add-config consumer.session.timeout.ms=5", status: 1, how: alone, err: "consumer.session.timeout.ms"})
	c("--entity-type groups --entity-name g --alter --delete-config consumer.session.timeout.ms", "Completed updating config for group g.")
	s.do(act{tool: "configs", args: "--group g --describe", not: []string{"50000"}})
}

// metricsActs: kafka-client-metrics and the settings behind it.
func metricsActs(s *stage) {
	c := func(args string, want ...string) string {
		return s.do(act{tool: "client-metrics", args: args, want: want})
	}
	c("--list")
	c("--alter --name watch --metrics org.apache.kafka.producer.,org.apache.kafka.consumer. --interval 30000 --match client_software_name=apache-kafka-java", "Altered client metrics config for watch.")
	c("--describe --name watch", "Client metrics configs for watch are:", "interval.ms=30000")
	c("--list", "watch")
	s.do(act{tool: "configs", args: "--entity-type client-metrics --entity-name watch --describe", want: []string{"Dynamic configs for client-metric watch are:", "~interval.ms=30000 .*"}})
	s.do(act{tool: "configs", args: "--entity-type client-metrics --entity-name watch --alter --delete-config interval.ms"})
	s.do(act{tool: "configs", args: "--entity-type client-metrics --entity-name watch --describe", not: []string{"interval.ms=30000"}})
	c("--delete --name watch")
	s.do(act{tool: "client-metrics", args: "--list", not: []string{"watch"}})
}
