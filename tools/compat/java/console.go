package java

// consoleActs: kafka-console-producer and kafka-console-consumer.
func consoleActs(s *stage) {
	reader, formatter := "--reader-property ", "--formatter-property "
	producerSet, consumerSet := "--command-property ", "--command-property "
	if s.old {
		reader, formatter, producerSet, consumerSet = "--property ", "--property ", "--producer-property ", "--consumer-property "
	}
	put := func(args, in string) { s.do(act{tool: "console-producer", args: args, in: in}) }
	get := func(args string, want ...string) {
		s.do(act{tool: "console-consumer", args: args + " --timeout-ms 30000", want: want})
	}
	none := func(args string, want ...string) { // until nothing comes any more
		s.do(act{tool: "console-consumer", args: args + " --timeout-ms 2500", want: want, err: "Processed a total of"})
	}
	s.do(act{tool: "topics", args: "--create --topic words --partitions 1"})
	s.do(act{tool: "topics", args: "--create --topic spread --partitions 3"})

	put("--topic words", "one\ntwo\nthree\n")
	get("--topic words --from-beginning --max-messages 3", "one", "two", "three")
	put("--topic words "+reader+"parse.key=true "+reader+"key.separator=:", "k4:four\nk5:\n")
	put("--topic words "+reader+"parse.key=true "+reader+"parse.headers=true "+reader+"null.marker=NULL", "h1:v1,h2:v2\tk6\tsix\nh3:v3\tNULL\tseven\nNULL\tk8\tNULL\n")
	all := []string{"~CreateTime:\\d{13}\\|Partition:0\\|Offset:0\\|NO_HEADERS\\|-\\|one", "~.*Offset:3\\|NO_HEADERS\\|k4\\|four", "~.*Offset:4\\|NO_HEADERS\\|k5\\|",
		"~.*Offset:5\\|h1:v1,h2:v2\\|k6\\|six", "~.*Offset:6\\|h3:v3\\|-\\|seven", "~.*Offset:7\\|NO_HEADERS\\|k8\\|-"}
	get("--topic words --from-beginning --max-messages 8 "+formatter+"print.key=true "+formatter+"print.headers=true "+formatter+"print.partition=true "+formatter+"print.offset=true "+
		formatter+"print.timestamp=true "+formatter+"key.separator=| "+formatter+"null.literal=-", all...)
	get("--topic words --partition 0 --offset 2 --max-messages 2", "three", "four")
	get("--topic words --partition 0 --offset earliest --max-messages 1", "one")
	none("--topic words --partition 0 --offset latest")
	get("--topic words --from-beginning --max-messages 1 "+formatter+"print.value=false "+formatter+"print.offset=true", "Offset:0")
	get("--topic words --from-beginning --max-messages 2 --formatter org.apache.kafka.tools.consumer.LoggingMessageFormatter", "one", "two")
	get("--topic words --from-beginning --max-messages 2 --formatter org.apache.kafka.tools.consumer.NoOpMessageFormatter")
	get("--topic words --from-beginning --max-messages 2 --isolation-level read_committed", "one", "two")

	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		put("--topic coded-"+codec+" --compression-codec "+codec+" --request-required-acks all "+producerSet+"linger.ms=50", "a "+codec+"\nb "+codec+"\n") // made by itself
	}
	s.do(act{tool: "console-consumer", args: "--include coded-.* --from-beginning --max-messages 10 --timeout-ms 30000", how: anyOrder, want: []string{"~[ab] (none|gzip|snappy|lz4|zstd)"}})
	put("--topic words --sync --request-required-acks 1", "sync\n")
	put("--topic words --request-required-acks 0", "careless\n")
	get("--topic words --partition 0 --offset 8 --max-messages 2", "sync", "careless")

	put("--topic spread "+reader+"parse.key=true "+reader+"key.separator==", "a=1\nb=2\nc=3\nd=4\ne=5\nf=6\n")
	s.do(act{tool: "console-consumer", args: "--topic spread --from-beginning --max-messages 6 --timeout-ms 30000 " + formatter + "print.key=true " + formatter + "print.partition=true", how: anyOrder})
	s.do(act{tool: "console-consumer", args: "--include spr.* --from-beginning --max-messages 6 --timeout-ms 30000", how: anyOrder, want: []string{"~[1-6]"}})

	get("--topic words --group readers --from-beginning --max-messages 4 "+consumerSet+"auto.commit.interval.ms=100", "one", "two", "three", "four")
	get("--topic words --group readers --max-messages 2", "", "six")
	get("--topic words --group readers --max-messages 4", "seven", "null", "sync", "careless")
	put("--topic words", "late\n")
	none("--topic words --group readers "+consumerSet+"client.id=me", "late")
	s.do(act{tool: "console-consumer", args: "--topic __consumer_offsets --from-beginning --timeout-ms 2500 --formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter", how: alone,
		want: []string{`~.*"data":{"group":"readers","topic":"words","partition":0}},"value":{"version":[34],"data":{"offset":4,.*`}})
}
